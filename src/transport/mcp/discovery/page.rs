//! A long list of tools in pages.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rmcp::model::Tool;

use crate::registry::Offered;
use crate::transport::mcp::definition::shown;

/// Most tools of a page.
const TOOLS_MAX: usize = 100;
/// Most bytes of a page's tools; a single larger one is a page of its own.
const BYTES_MAX: usize = 256 * 1024;
/// Longest cursor, in characters.
const CURSOR_CHARS_MAX: usize = 1_024;

/// A cursor is none that a page gave.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the cursor is none that a page gave")]
pub(super) struct CursorError;

/// One page by name, and where the next begins. A cursor is the name of the last tool that was
/// listed, so that it stays good when tools come and go between two pages.
pub(super) fn page(
    mut tools: Vec<&Offered>,
    cursor: Option<&str>,
) -> Result<(Vec<Tool>, Option<String>), CursorError> {
    let after = cursor.map(read).transpose()?;
    if let Some(after) = &after {
        tools.retain(|offered| **after < *offered.tool.name());
    }
    tools.sort_by(|a, b| a.tool.name().cmp(b.tool.name()));
    let (mut page, mut bytes) = (Vec::new(), 0);
    for offered in &tools {
        let tool = shown(offered.tool.name().to_owned(), offered.tool.tool());
        bytes += serde_json::to_string(&tool).map_or(0, |text| text.len());
        if TOOLS_MAX <= page.len() || (!page.is_empty() && BYTES_MAX < bytes) {
            let last = page
                .last()
                .map(|tool: &Tool| URL_SAFE_NO_PAD.encode(&*tool.name));
            return Ok((page, last));
        }
        page.push(tool);
    }
    Ok((page, None))
}

fn read(cursor: &str) -> Result<String, CursorError> {
    if CURSOR_CHARS_MAX < cursor.len() {
        return Err(CursorError);
    }
    let bytes = URL_SAFE_NO_PAD
        .decode(cursor)
        .map_err(|_not_ours| CursorError)?;
    String::from_utf8(bytes).map_err(|_not_ours| CursorError)
}
