//! Which tools stand in a list as they are.

use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::domain::ToolId;
use crate::toolkits::name;

/// A pattern is not a glob.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{pattern}` is not a pattern over `toolkit__tool`: {message}")]
pub struct ParseEagerError {
    pattern: String,
    message: String,
}

/// Which tools are eager; the others are cold.
#[derive(Clone, Debug)]
pub enum Eager {
    /// None.
    None,
    /// All.
    All,
    /// Those that match.
    Matching(GlobSet),
}

impl Eager {
    /// Those whose whole name `toolkit__tool` matches one of the globs. `*` stands for any
    /// characters.
    pub fn matching(patterns: &[String]) -> Result<Self, ParseEagerError> {
        let mut builder = GlobSetBuilder::new();
        for pattern in patterns {
            let glob = Glob::new(pattern).map_err(|error| wrong(pattern, &error))?;
            builder.add(glob);
        }
        let set = builder.build();
        Ok(Self::Matching(
            set.map_err(|error| wrong(&patterns.join(" "), &error))?,
        ))
    }

    /// Whether a tool is eager.
    pub fn matches(&self, id: &ToolId) -> bool {
        match self {
            Self::None => false,
            Self::All => true,
            Self::Matching(set) => set.is_match(name::whole(id)),
        }
    }
}

fn wrong(pattern: &str, error: &globset::Error) -> ParseEagerError {
    ParseEagerError {
        pattern: pattern.to_owned(),
        message: error.kind().to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_are_over_toolkit_and_tool() {
        let check = |patterns: &[&str], id: &str, expected: bool| {
            let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
            let eager = Eager::matching(&patterns).unwrap();
            assert_eq!(eager.matches(&id.parse().unwrap()), expected, "{id}");
        };
        check(&["github__create_*"], "github/create_issue", true);
        check(&["github__create_*"], "gitlab/create_issue", false);
        check(&["*__create_issue", "time__*"], "time/now", true);
        check(&["github__*"], "github/a/b c", true);
        check(&["github"], "github/create_issue", false);
        check(&[], "github/create_issue", false);
        let wrong = Eager::matching(&["a[".to_owned()]).unwrap_err();
        assert!(wrong.to_string().starts_with("`a[` is not a pattern"));
    }
}
