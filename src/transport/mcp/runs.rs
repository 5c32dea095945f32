//! Whole results of runs whose reply was cut, as resources `toolcrib://runs/<run id>?page=<n>`.

use rmcp::model::{ErrorData, MetaObject, ReadResourceResult, ResourceContents, ResourceTemplate};
use serde_json::json;

use crate::domain::RunId;
use crate::transport::desk::{Desk, Guest};

/// Stands before the run id.
const PREFIX: &str = "toolcrib://runs/";

/// The resource of a run's whole result.
pub(in crate::transport) fn uri(run_id: RunId) -> String {
    format!("{PREFIX}{run_id}")
}

/// What can be read, for clients that ask.
pub(super) fn template() -> ResourceTemplate {
    ResourceTemplate::new(
        format!("{PREFIX}{{run_id}}?page={{page}}"),
        "whole result of a run",
    )
    .with_description(
        "The whole result of a run whose reply was cut, for ten minutes, in pages from 0. \
             The reply's _meta names it under toolcrib/truncated.",
    )
}

/// Reads one page. What is unknown, over, or another tenant's is one answer.
pub(super) fn read(desk: &Desk, guest: &Guest, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let unknown = || {
        let text = format!("there is no resource `{uri}`, or its ten minutes are over");
        ErrorData::resource_not_found(text, Some(json!({ "uri": uri })))
    };
    let (run_id, page) = parse(uri).ok_or_else(unknown)?;
    let page = desk.whole_result(guest, run_id, page).ok_or_else(unknown)?;
    let meta = json!({ "toolcrib/page": page.number, "toolcrib/pages": page.pages });
    let meta: Option<MetaObject> = serde_json::from_value(meta).ok();
    Ok(ReadResourceResult::new(vec![
        ResourceContents::TextResourceContents {
            uri: uri.to_owned(),
            mime_type: Some("application/json".to_owned()),
            text: page.text,
            meta,
        },
    ]))
}

fn parse(uri: &str) -> Option<(RunId, usize)> {
    let rest = uri.strip_prefix(PREFIX)?;
    let (run_id, page) = match rest.split_once("?page=") {
        Some((run_id, page)) => (run_id, page.parse().ok()?),
        None => (rest, 0),
    };
    Some((run_id.parse().ok()?, page))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn uris_name_a_run_and_a_page() {
        let run_id: RunId = "w1a2b3c4d".parse().unwrap();
        assert_eq!(parse(&uri(run_id)), Some((run_id, 0)));
        assert_eq!(parse(&format!("{}?page=3", uri(run_id))), Some((run_id, 3)));
        assert_eq!(parse("toolcrib://runs/w1?page=1"), None);
        assert_eq!(parse("file:///etc/passwd"), None);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>()) {
            let _ = parse(&text);
            let _ = parse(&format!("{PREFIX}{text}"));
        }
    }
}
