//! Tools that answer at once, with content of each kind.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// One red pixel.
pub(crate) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR42mP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
/// Four samples of silence.
const WAV: &str = "UklGRiwAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQQAAACAgICA";

/// Names of the tools of [`result`], and what each answers with.
pub(crate) const TOOLS: &[(&str, &str)] = &[
    ("test_simple_text", "Answers with one text."),
    ("test_image_content", "Answers with an image."),
    ("test_audio_content", "Answers with a sound."),
    ("test_embedded_resource", "Answers with a resource."),
    (
        "test_multiple_content_types",
        "Answers with a text, an image and a resource.",
    ),
    ("test_error_handling", "Fails, and says so in its result."),
];

/// What a tool of [`TOOLS`] answers.
pub(crate) fn result(name: &str) -> Option<CallToolResult> {
    let image = || ContentBlock::image(PNG, "image/png");
    let blocks = match name {
        "test_simple_text" => vec![ContentBlock::text(
            "This is a simple text response for testing.",
        )],
        "test_image_content" => vec![image()],
        "test_audio_content" => vec![ContentBlock::audio(WAV, "audio/wav")],
        "test_embedded_resource" => vec![ContentBlock::embedded_text(
            "test://embedded-resource",
            "This is an embedded resource content.",
        )],
        "test_multiple_content_types" => {
            let text = r#"{"test":"data","value":123}"#;
            let resource = ResourceContents::text(text, "test://mixed-content-resource")
                .with_mime_type("application/json");
            vec![
                ContentBlock::text("Multiple content types test:"),
                image(),
                ContentBlock::resource(resource),
            ]
        }
        "test_error_handling" => {
            let text = "This tool intentionally returns an error for testing";
            return Some(CallToolResult::error(vec![ContentBlock::text(text)]));
        }
        _ => return None,
    };
    Some(CallToolResult::success(blocks))
}
