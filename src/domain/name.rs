//! Names of servers, tools and settings.

use std::fmt;
use std::str::FromStr;

use crate::domain::text::is_hidden;

/// Longest server name, in characters.
const SERVER_NAME_MAX: usize = 64;
/// Longest tool name, in characters. The longest seen in 11,287 published tools has 96.
const TOOL_NAME_MAX: usize = 128;
/// Longest setting name, in characters.
const SETTING_NAME_MAX: usize = 96;

/// Why a text is not a name.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ParseNameError {
    /// Nothing was given.
    #[error("name is empty")]
    Empty,
    /// The text is over the limit.
    #[error("name is {chars} characters long, over the limit of {max}")]
    TooLong {
        /// Length of the text.
        chars: usize,
        /// The limit.
        max: usize,
    },
    /// A character outside the alphabet.
    #[error("`{name}` has the character {character:?}; {allowed}")]
    Character {
        /// The offending text.
        name: String,
        /// The first wrong character.
        character: char,
        /// The alphabet, in words.
        allowed: &'static str,
    },
    /// A tool id has no `/`.
    #[error("`{0}` is not written as `server/tool`")]
    NoSlash(String),
}

/// A catalog server name: 1 to 64 of `a-z`, `0-9`, `-`, starting with a letter.
///
/// The alphabet leaves out `/`, since a [`ToolId`] is written `server/tool`.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ServerName(Box<str>);

impl ServerName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The nearest legal name to any text, for importers of foreign catalogs: lower case, other
    /// characters turned into single `-`, cut at 64, `x-` in front of a digit.
    ///
    /// Two texts may give one name: the importer has to check for that.
    pub fn nearest_to(text: &str) -> Option<Self> {
        let mut name = String::new();
        for character in text.chars().flat_map(char::to_lowercase) {
            if character.is_ascii_lowercase() || character.is_ascii_digit() {
                name.push(character);
            } else if !name.is_empty() && !name.ends_with('-') {
                name.push('-');
            }
        }
        if name.starts_with(|c: char| c.is_ascii_digit()) {
            name.insert_str(0, "x-");
        }
        name.truncate(SERVER_NAME_MAX);
        name.trim_end_matches('-').parse().ok()
    }
}

impl FromStr for ServerName {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        within(text, SERVER_NAME_MAX)?;
        let wrong = text.char_indices().find(|(at, c)| match c {
            'a'..='z' => false,
            '0'..='9' | '-' => *at == 0,
            _ => true,
        });
        if let Some((_, character)) = wrong {
            return Err(ParseNameError::Character {
                name: text.to_owned(),
                character,
                allowed: "a server name is a letter followed by `a-z`, `0-9` or `-`",
            });
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for ServerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A tool name as its server spells it: 1 to 128 printable characters.
///
/// Published names hold `/`, spaces and `${..}`; they are data here, never an identifier of ours.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ToolName(Box<str>);

impl ToolName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for ToolName {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        within(text, TOOL_NAME_MAX)?;
        if text.trim() != text {
            return Err(ParseNameError::Character {
                name: text.to_owned(),
                character: ' ',
                allowed: "a tool name neither starts nor ends with white space",
            });
        }
        if let Some(character) = text.chars().find(|c| is_hidden(*c)) {
            return Err(ParseNameError::Character {
                name: text.to_owned(),
                character,
                allowed: "a tool name holds printable characters only",
            });
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for ToolName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A secret or configuration value that a server asks for, such as `slack.bot_token`:
/// 1 to 96 of `a-z`, `A-Z`, `0-9`, `_`, `-`, `.`.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct SettingName(Box<str>);

impl SettingName {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SettingName {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        within(text, SETTING_NAME_MAX)?;
        let allowed = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        if let Some(character) = text.chars().find(|c| !allowed(c)) {
            return Err(ParseNameError::Character {
                name: text.to_owned(),
                character,
                allowed: "a setting name holds `a-z`, `A-Z`, `0-9`, `_`, `-` and `.`",
            });
        }
        Ok(Self(text.into()))
    }
}

impl fmt::Display for SettingName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One tool of one server, written `server/tool`. Ordered by server, then tool: ties in ranking
/// break by this order.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ToolId {
    /// The server that runs it.
    pub server: ServerName,
    /// Its name there.
    pub tool: ToolName,
}

impl FromStr for ToolId {
    type Err = ParseNameError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (server, tool) = text
            .split_once('/')
            .ok_or_else(|| ParseNameError::NoSlash(text.to_owned()))?;
        Ok(Self {
            server: server.parse()?,
            tool: tool.parse()?,
        })
    }
}

impl fmt::Display for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.server, self.tool)
    }
}

fn within(text: &str, max: usize) -> Result<(), ParseNameError> {
    let chars = text.chars().count();
    if chars == 0 {
        return Err(ParseNameError::Empty);
    }
    if max < chars {
        return Err(ParseNameError::TooLong { chars, max });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_server_name_at_the_limit_passes_and_one_past_it_does_not() {
        assert!("a".repeat(64).parse::<ServerName>().is_ok());
        assert_eq!(
            "a".repeat(65).parse::<ServerName>(),
            Err(ParseNameError::TooLong { chars: 65, max: 64 })
        );
    }

    #[test]
    fn a_tool_name_may_hold_a_slash_but_nothing_hidden() {
        let id: ToolId = "notion/API post/page".parse().unwrap();
        assert_eq!(id.tool.as_str(), "API post/page");
        assert!("a\u{200b}b".parse::<ToolName>().is_err());
        assert!(" a".parse::<ToolName>().is_err());
    }

    #[test]
    fn foreign_names_are_brought_into_the_alphabet() {
        for (text, expected) in [
            ("@Acme/My Server", Some("acme-my-server")),
            ("3d_print", Some("x-3d-print")),
            ("../..", None),
            ("", None),
        ] {
            let name = ServerName::nearest_to(text);
            assert_eq!(name.as_ref().map(ServerName::as_str), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn print_then_parse_is_identity(text in "[a-z][a-z0-9-]{0,63}/[a-zA-Z_/.]{1,40}") {
            let id: ToolId = text.parse().unwrap();
            prop_assert_eq!(id.to_string(), text);
        }

        #[test]
        fn no_text_panics(text in any::<String>()) {
            let _ = text.parse::<ToolId>();
            let _ = text.parse::<SettingName>();
            if let Some(name) = ServerName::nearest_to(&text) {
                prop_assert!(name.as_str().parse::<ServerName>().is_ok());
            }
        }
    }
}
