//! Bodies of HTTP answers, read within limits.

use bytes::Bytes;
use futures::{Stream, StreamExt};
use rmcp::transport::streamable_http_client::StreamableHttpError;

use crate::call::upstream::http::Failure;

/// A body that is an error past its limit. One stream may carry many events, so that the limit
/// counts since the last end of an event.
pub(super) fn bounded(
    bytes: impl Stream<Item = Result<Bytes, reqwest::Error>> + Send + 'static,
    bytes_max: usize,
) -> impl Stream<Item = Result<Bytes, std::io::Error>> + Send + 'static {
    let mut event = 0_usize;
    bytes.map(move |chunk| {
        let chunk = chunk.map_err(std::io::Error::other)?;
        let end = chunk
            .windows(2)
            .rposition(|pair| pair == b"\n\n" || pair == b"\n\r");
        event = match end {
            Some(at) => chunk.len() - at,
            None => event + chunk.len(),
        };
        if bytes_max < event {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        Ok(chunk)
    })
}

/// A whole body, or `None` past the limit.
pub(super) async fn read(
    bytes: impl Stream<Item = Result<Bytes, reqwest::Error>>,
    bytes_max: usize,
) -> Result<Option<Vec<u8>>, Failure> {
    let mut bytes = std::pin::pin!(bytes);
    let mut body = Vec::new();
    while let Some(chunk) = bytes.next().await {
        let chunk = chunk.map_err(StreamableHttpError::Client)?;
        if bytes_max < body.len() + chunk.len() {
            return Ok(None);
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Some(body))
}
