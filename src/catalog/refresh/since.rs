//! What changed in a registry since it was last read: only that is asked for, and the rest stays.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use reqwest::Url;
use serde_json::Value;

use crate::catalog::import::{Document, Format};
use crate::catalog::snapshot::SourceState;
use crate::domain::{Server, ServerName};

/// The query parameter of registries.
const PARAMETER: &str = "updated_since";
/// Where the official registry says what it knows of an entry.
const OFFICIAL: &str = "io.modelcontextprotocol.registry/official";
/// Length of a time to the second, as in `2026-01-31T09:30:00`.
const SECOND_CHARS: usize = 19;

/// The URL that gives what changed since a time; `None` where the operator's URL has a time of its
/// own.
pub(super) fn url_since(url: &Url, newest: &str) -> Option<Url> {
    if url.query_pairs().any(|(name, _)| name == PARAMETER) {
        return None;
    }
    let mut url = url.clone();
    url.query_pairs_mut().append_pair(PARAMETER, newest);
    Some(url)
}

/// The newest time of an update in the pages of a registry, cut to the second: what shares its
/// second is read twice, and never missed. `None` for documents that are no pages.
pub(super) fn newest(documents: &[Document]) -> Option<String> {
    let mut newest: Option<String> = None;
    for document in documents {
        let page: Value = serde_json::from_str(&document.text).ok()?;
        page.get("metadata")?;
        for entry in entries(&page) {
            let time = official(entry, &["updatedAt", "updated_at"]).and_then(Value::as_str);
            let time = time.and_then(to_the_second);
            // Of one length and zone, texts are ordered as times are.
            newest = newest.max(time);
        }
    }
    newest
}

fn to_the_second(time: &str) -> Option<String> {
    let (second, rest) = time.split_at_checked(SECOND_CHARS)?;
    let shape = |(at, byte): (usize, u8)| match at {
        4 | 7 => byte == b'-',
        10 => byte == b'T',
        13 | 16 => byte == b':',
        _ => byte.is_ascii_digit(),
    };
    let fits = second.bytes().enumerate().all(shape) && rest.ends_with('Z');
    fits.then(|| format!("{second}Z"))
}

fn entries(page: &Value) -> impl Iterator<Item = &Value> {
    let found = ["/servers", "/data/servers"].iter();
    let mut found = found.filter_map(|path| page.pointer(path)?.as_array());
    found.next().into_iter().flatten()
}

fn official<'a>(entry: &'a Value, keys: &[&str]) -> Option<&'a Value> {
    let metas = [entry.get("_meta"), entry.pointer("/server/_meta")];
    let mut found = metas.into_iter().flatten().filter_map(|meta| {
        let said = meta.get(OFFICIAL)?;
        keys.iter().find_map(|key| said.get(*key))
    });
    found.next()
}

/// Servers that changed, and servers that are gone.
#[derive(Debug, Default)]
pub(super) struct Part {
    pub(super) servers: Vec<Server>,
    pub(super) removed: Vec<ServerName>,
}

impl Part {
    /// Of what was read, beside what is known. `None` where a server has another name here than it
    /// has there: names depend on all servers of a source, so that only a whole reading can tell.
    pub(super) fn of(
        state: &SourceState,
        servers: Vec<Server>,
        documents: &[Document],
    ) -> Option<Self> {
        let published = state.servers.iter().map(|server| &**server);
        let held = state.held.values().filter_map(|held| held.head.as_deref());
        let mut by_name: HashMap<&ServerName, &str> = HashMap::new();
        let mut by_source: HashMap<&str, &ServerName> = HashMap::new();
        for server in published.chain(held) {
            by_name.insert(&server.name, &server.provenance.source);
            by_source.insert(&server.provenance.source, &server.name);
        }
        let agrees = |server: &Server| {
            let source = &*server.provenance.source;
            match (by_name.get(&server.name), by_source.get(source)) {
                (Some(known), _) => *known == source,
                (None, known) => known.is_none(),
            }
        };
        if !servers.iter().all(agrees) {
            return None;
        }
        let present: HashSet<&ServerName> = servers.iter().map(|server| &server.name).collect();
        let removed = deleted(documents).into_iter();
        let removed = removed.filter_map(|source| by_source.get(source.as_str()).copied());
        let removed = removed.filter(|name| !present.contains(name)).cloned();
        Some(Self {
            removed: removed.collect(),
            servers,
        })
    }
}

/// Deleted entries, as the provenance of their servers names them.
fn deleted(documents: &[Document]) -> Vec<String> {
    let mut found = Vec::new();
    for document in documents {
        let page: Value = serde_json::from_str(&document.text).unwrap_or_default();
        for entry in entries(&page) {
            let server = entry.get("server").unwrap_or(entry);
            let said = official(entry, &["status"]).or_else(|| server.get("status"));
            let older = official(entry, &["isLatest", "is_latest"]);
            let is_deleted = said.is_some_and(|status| status == "deleted");
            if is_deleted && older.is_none_or(|latest| latest != false) {
                let name = server["name"].as_str().unwrap_or_default();
                found.push(format!("{}:{name}", Format::OfficialRegistry));
            }
        }
    }
    found
}

/// Seconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "the age of a reading outlives the process, and with it every other clock"
)]
pub(super) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

/// Whether it is time to read a registry whole, to see what was taken out of it. So it is when the
/// clock has gone backwards.
pub(super) fn is_due(whole_at: Option<u64>, whole_after: Duration) -> bool {
    let age = whole_at.and_then(|at| now().checked_sub(at));
    age.is_none_or(|age| whole_after.as_secs() <= age)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn page(times: &[&str]) -> Document {
        let entry = |time: &&str| json!({"server": {"name": "a"}, "_meta": {OFFICIAL: {"updatedAt": time}}});
        let entries: Vec<Value> = times.iter().map(entry).collect();
        Document {
            name: "page".to_owned(),
            text: json!({"servers": entries, "metadata": {"count": 1}}).to_string(),
        }
    }

    #[test]
    fn the_newest_time_is_cut_to_its_second() {
        let check = |times: &[&str], expected: Option<&str>| {
            assert_eq!(newest(&[page(times)]).as_deref(), expected, "{times:?}");
        };
        check(
            &["2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05Z"],
            Some("2026-01-02T03:04:05Z"),
        );
        check(
            &["2025-12-31T23:59:59Z", "2026-01-01T00:00:00.1Z"],
            Some("2026-01-01T00:00:00Z"),
        );
        check(&["2026-01-02T03:04:05+02:00", "yesterday", ""], None);
        check(&[], None);
        let no_pages = Document {
            name: "x".to_owned(),
            text: "[]".to_owned(),
        };
        assert_eq!(newest(&[page(&["2026-01-02T03:04:05Z"]), no_pages]), None);
    }

    #[test]
    fn a_time_of_the_operators_own_stays() {
        let url = |text: &str| Url::parse(text).unwrap();
        let since = url_since(
            &url("https://a.example/v0/servers?limit=9"),
            "2026-01-02T03:04:05Z",
        );
        let expected =
            "https://a.example/v0/servers?limit=9&updated_since=2026-01-02T03%3A04%3A05Z";
        assert_eq!(since.unwrap().as_str(), expected);
        assert_eq!(
            url_since(&url("https://a.example/?updated_since=x"), "y"),
            None
        );
    }
}
