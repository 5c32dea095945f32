//! Whom the server works for, and what they may use.

use std::fmt;
use std::str::FromStr;

use globset::{Glob, GlobSet, GlobSetBuilder};

use crate::domain::ToolId;

/// Longest tenant id, in characters.
const TENANT_ID_MAX: usize = 64;

/// A text is not a tenant id.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{0}` is not a tenant id: 1 to 64 of `a-z`, `0-9`, `-`, `_`")]
pub struct ParseTenantIdError(String);

/// A tenant's name: 1 to 64 of `a-z`, `0-9`, `-`, `_`.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TenantId(Box<str>);

impl TenantId {
    /// The id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The one tenant of a server that runs open, on loopback without tenants, and of the command
    /// line.
    pub fn local() -> Self {
        Self("local".into())
    }
}

impl FromStr for TenantId {
    type Err = ParseTenantIdError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let allowed = |b: u8| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
        if (1..=TENANT_ID_MAX).contains(&text.len()) && text.bytes().all(allowed) {
            Ok(Self(text.into()))
        } else {
            Err(ParseTenantIdError(text.to_owned()))
        }
    }
}

impl fmt::Display for TenantId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A pattern of a scope is not a glob.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("`{pattern}` is not a pattern over `server/tool`: {message}")]
pub struct ParseScopeError {
    pattern: String,
    message: String,
}

/// Which tools a tenant may use: globs over `server/tool`, a leading `!` takes away. Without a
/// positive pattern everything is allowed that no `!` takes away.
///
/// A pattern without `/` means all tools of the servers it matches.
#[derive(Clone)]
pub struct Scope {
    patterns: Vec<String>,
    allowed: Option<GlobSet>,
    denied: GlobSet,
}

impl Scope {
    /// Everything.
    pub fn everything() -> Self {
        Self {
            patterns: Vec::new(),
            allowed: None,
            denied: GlobSet::empty(),
        }
    }

    /// From patterns.
    pub fn new(patterns: &[String]) -> Result<Self, ParseScopeError> {
        let (mut allowed, mut denied) = (Vec::new(), Vec::new());
        let mut kept = Vec::new();
        for pattern in patterns {
            let (list, glob) = match pattern.strip_prefix('!') {
                Some(glob) => (&mut denied, glob),
                None => (&mut allowed, pattern.as_str()),
            };
            let whole = if glob.contains('/') {
                glob.to_owned()
            } else {
                format!("{glob}/*")
            };
            list.push(Glob::new(&whole).map_err(|error| wrong(pattern, &error))?);
            kept.push(pattern.to_owned());
        }
        let set = |globs: Vec<Glob>| {
            let mut builder = GlobSetBuilder::new();
            for glob in globs {
                builder.add(glob);
            }
            builder.build()
        };
        let all = patterns.join(" ");
        Ok(Self {
            allowed: if allowed.is_empty() {
                None
            } else {
                Some(set(allowed).map_err(|error| wrong(&all, &error))?)
            },
            denied: set(denied).map_err(|error| wrong(&all, &error))?,
            patterns: kept,
        })
    }

    /// Whether a tool may be used.
    pub fn allows(&self, id: &ToolId) -> bool {
        if self.patterns.is_empty() {
            return true;
        }
        let text = id.to_string();
        self.allowed.as_ref().is_none_or(|set| set.is_match(&text)) && !self.denied.is_match(&text)
    }

    /// Whether everything may be used, which needs no filter.
    pub fn is_everything(&self) -> bool {
        self.patterns.is_empty()
    }

    /// The patterns as given; two scopes with equal patterns allow the same.
    pub fn patterns(&self) -> &[String] {
        &self.patterns
    }
}

fn wrong(pattern: &str, error: &globset::Error) -> ParseScopeError {
    ParseScopeError {
        pattern: pattern.to_owned(),
        message: error.kind().to_string(),
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Scope").field(&self.patterns).finish()
    }
}

/// A tenant: who it is and what it may use.
#[derive(Clone, Debug)]
pub struct Tenant {
    /// Its id.
    pub id: TenantId,
    /// What it may search and run.
    pub scope: Scope,
}

impl Tenant {
    /// The tenant of an open server and of the command line: everything is allowed.
    pub fn local() -> Self {
        Self {
            id: TenantId::local(),
            scope: Scope::everything(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(patterns: &[&str], id: &str, expected: bool) {
        let scope =
            Scope::new(&patterns.iter().map(ToString::to_string).collect::<Vec<_>>()).unwrap();
        assert_eq!(
            scope.allows(&id.parse().unwrap()),
            expected,
            "{patterns:?} {id}"
        );
    }

    #[test]
    fn patterns_give_and_take() {
        check(&[], "a/b", true);
        check(&["slack"], "slack/post", true);
        check(&["slack"], "slack-two/post", false);
        check(&["slack/*_read"], "slack/x_write", false);
        check(&["git*"], "github-official/issue/write", true);
        check(
            &["!github-official/delete_*"],
            "github-official/delete_file",
            false,
        );
        check(&["!github-official/delete_*"], "slack/delete_file", true);
        check(&["slack", "!slack/post"], "slack/post", false);
        assert!(Scope::new(&["a[/b".to_owned()]).is_err());
    }
}
