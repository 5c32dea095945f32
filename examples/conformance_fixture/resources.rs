//! Resources of the suite: a text, an image, one that is watched, and a template.

use rmcp::model::{ErrorData, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use crate::content::PNG;

/// The one that `test_touch_resource` touches.
pub(crate) const WATCHED: &str = "test://watched-resource";

const PREFIX: &str = "test://template/";
const SUFFIX: &str = "/data";
/// Longest `{id}`, in bytes.
const ID_BYTES_MAX: usize = 64;

pub(crate) fn all() -> Vec<Resource> {
    let resource = |uri, name, description, kind| {
        Resource::new(uri, name)
            .with_description(description)
            .with_mime_type(kind)
    };
    vec![
        resource(
            "test://static-text",
            "static-text",
            "A text that never changes.",
            "text/plain",
        ),
        resource(
            "test://static-binary",
            "static-binary",
            "An image that never changes.",
            "image/png",
        ),
        resource(
            WATCHED,
            "watched-resource",
            "A text to subscribe to.",
            "text/plain",
        ),
    ]
}

pub(crate) fn template() -> ResourceTemplate {
    ResourceTemplate::new("test://template/{id}/data", "template")
        .with_description("Data of the thing with this id.")
        .with_mime_type("application/json")
}

pub(crate) fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let text = |text: &str| ResourceContents::text(text, uri).with_mime_type("text/plain");
    let contents = match uri {
        "test://static-text" => text("This is the content of the static text resource."),
        "test://static-binary" => ResourceContents::blob(PNG, uri).with_mime_type("image/png"),
        WATCHED => text("This is the content of the watched resource."),
        _ => of_template(uri).ok_or_else(|| {
            let data = json!({ "uri": uri });
            ErrorData::resource_not_found("no such resource", Some(data))
        })?,
    };
    Ok(ReadResourceResult::new(vec![contents]))
}

fn of_template(uri: &str) -> Option<ResourceContents> {
    let id = uri.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    if id.is_empty() || ID_BYTES_MAX < id.len() || id.contains('/') {
        return None;
    }
    let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
    let contents = ResourceContents::text(data.to_string(), uri);
    Some(contents.with_mime_type("application/json"))
}
