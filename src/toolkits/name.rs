//! Public names, `toolkit__tool`, short and plain enough for every client.
//!
//! A name that is at most 64 of `A-Z a-z 0-9 _ -` stands as it is. Any other is shortened to
//! `toolkit_hash__tool`: at most 20 characters of the server, ten that are a hash of the whole id,
//! and what fits of the tool with `_` for other characters. The form depends on the id alone, so a
//! name never changes because another tool came or went, and tells nothing of it. A server's name
//! has no `_`, so the first `_` of a plain name is followed by another one and that of a shortened
//! name by its hash: no name of one form is a name of the other.

use std::str::FromStr;

use sha2::{Digest, Sha256};

use crate::domain::{ServerName, Slot, ToolId};
use crate::search::Shelf;

/// Longest public name, in characters.
pub const NAME_CHARS_MAX: usize = 64;
/// Characters of the server in a shortened name.
const SERVER_CHARS: usize = 20;
/// Characters of the hash, five bits each.
const HASH_CHARS: usize = 10;
/// Longest name of a search toolkit: its longest tool still fits.
const TOOLKIT_CHARS_MAX: usize = NAME_CHARS_MAX - "__describe_tool".len();
/// Alphabet of the hash.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// A text does not name a search toolkit.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "`{0}` does not name a toolkit: a letter and then `a-z`, `0-9` or `-`, at most {TOOLKIT_CHARS_MAX} in all"
)]
pub struct ParseToolkitError(String);

/// What the names of the search toolkit's tools begin with.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ToolkitName(ServerName);

impl ToolkitName {
    /// Its tool that finds.
    pub fn search_tools(&self) -> String {
        format!("{}__search_tools", self.0)
    }

    /// Its tool that describes.
    pub fn describe_tool(&self) -> String {
        format!("{}__describe_tool", self.0)
    }

    /// Its tool that runs.
    pub fn execute_tool(&self) -> String {
        format!("{}__execute_tool", self.0)
    }

    /// Whether a whole name is one of the three.
    fn takes(&self, whole: &str) -> bool {
        [
            self.search_tools(),
            self.describe_tool(),
            self.execute_tool(),
        ]
        .iter()
        .any(|name| name == whole)
    }
}

impl FromStr for ToolkitName {
    type Err = ParseToolkitError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ParseToolkitError(text.to_owned());
        if TOOLKIT_CHARS_MAX < text.len() {
            return Err(wrong());
        }
        text.parse().map(Self).map_err(|_cause| wrong())
    }
}

/// The name before it is shortened.
pub(super) fn whole(id: &ToolId) -> String {
    format!("{}__{}", id.server, id.tool)
}

/// The public name. A server of the search toolkit's name does not take its tools' names.
pub(super) fn public(id: &ToolId, toolkit: Option<&ToolkitName>) -> String {
    let whole = whole(id);
    let plain = whole.len() <= NAME_CHARS_MAX && whole.bytes().all(is_plain);
    match plain && !toolkit.is_some_and(|toolkit| toolkit.takes(&whole)) {
        true => whole,
        false => shortened(id),
    }
}

/// The tool of a public name. A whole name that would be shortened is understood as well.
pub(super) fn find(shelf: &Shelf, name: &str, toolkit: Option<&ToolkitName>) -> Option<Slot> {
    let (server, rest) = name.split_once('_')?;
    if let Some(tool) = rest.strip_prefix('_') {
        let id = ToolId {
            server: server.parse().ok()?,
            tool: tool.parse().ok()?,
        };
        let taken = toolkit.is_some_and(|toolkit| toolkit.takes(name));
        return shelf.find(&id).filter(|_| !taken);
    }
    // Only tools of servers that begin so can have the name; their ids stand side by side.
    let servers = shelf.catalog().servers();
    let from = servers.partition_point(|other| other.name.as_str() < server);
    let candidates = servers.get(from..)?.iter();
    candidates
        .take_while(|other| other.name.as_str().starts_with(server))
        .flat_map(|other| {
            other.tools.iter().map(|tool| ToolId {
                server: other.name.clone(),
                tool: tool.name().clone(),
            })
        })
        .filter_map(|id| shelf.find(&id).map(|slot| (id, slot)))
        .find(|(id, _)| public(id, toolkit) == name)
        .map(|(_, slot)| slot)
}

fn shortened(id: &ToolId) -> String {
    let server: String = id.server.as_str().chars().take(SERVER_CHARS).collect();
    let hash = Sha256::digest(id.to_string().as_bytes());
    let bits = hash
        .iter()
        .take(8)
        .fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    let letter = |at: usize| char::from(ALPHABET[(bits >> (59 - 5 * at) & 31) as usize]);
    let hash: String = (0..HASH_CHARS).map(letter).collect();
    let head = format!("{server}_{hash}__");
    let tool = id.tool.as_str().chars().map(|c| match c {
        c if u8::try_from(c).is_ok_and(is_plain) => c,
        _ => '_',
    });
    let room = NAME_CHARS_MAX - head.len();
    head.chars().chain(tool.take(room)).collect()
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn check(id: &str, expected: &str) {
        let toolkit = "crib".parse().unwrap();
        let name = public(&id.parse().unwrap(), Some(&toolkit));
        assert_eq!(name, expected);
    }

    #[test]
    fn plain_names_stand_and_others_are_shortened() {
        check("github/create_issue", "github__create_issue");
        check("github/_x", "github___x");
        check(
            &format!("a/{}", "x".repeat(61)),
            &format!("a__{}", "x".repeat(61)),
        );
        check(
            &format!("a/{}", "x".repeat(62)),
            &format!("a_j2elpqrtmt__{}", "x".repeat(50)),
        );
        check("notion/API post/page", "notion_43yudqbpmn__API_post_page");
        check("crib/search_tools", "crib_ay2xdqp6pt__search_tools");
        check("crib/other", "crib__other");
    }

    #[test]
    fn a_toolkit_is_named_like_a_server_and_leaves_room() {
        assert!("a".repeat(49).parse::<ToolkitName>().is_ok());
        for text in [
            "a".repeat(50),
            "A".to_owned(),
            "a_b".to_owned(),
            String::new(),
        ] {
            assert!(text.parse::<ToolkitName>().is_err(), "{text}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        /// Short alphabets, so that names are alike.
        #[test]
        fn every_name_is_legal_and_no_two_tools_share_one(
            ids in prop::collection::hash_set("[ab-]{0,2}[a]{0,23}/[a_. -]{1,3}[b/]{0,70}", 200)
        ) {
            let toolkit: ToolkitName = "a".parse().unwrap();
            let mut seen: HashMap<String, ToolId> = HashMap::new();
            let ids = ids.iter().filter_map(|id| id.parse::<ToolId>().ok());
            for id in ids {
                let name = public(&id, Some(&toolkit));
                prop_assert!(name.len() <= NAME_CHARS_MAX && name.bytes().all(is_plain), "{name}");
                let other = seen.insert(name.clone(), id.clone());
                prop_assert!(other.as_ref().is_none_or(|other| *other == id), "{name}: {other:?}");
            }
        }
    }
}
