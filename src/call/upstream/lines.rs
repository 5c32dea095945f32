//! JSON-RPC over a child's standard streams, one message a line.
//!
//! rmcp's own transport drops a line that is too long or no JSON without a word, and the call that
//! waits for it ends by its deadline only. Here the call gets an error at once.

use std::sync::Arc;

use rmcp::model::{ErrorCode, ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::service::{RoleClient, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

use crate::call::upstream::tap::Tap;

/// Of a line over the limit this much is kept at both ends, to find its id.
const ENDS_BYTES: usize = 256;
/// Marks the error that stands for an answer that was not read, for the session that gets it.
pub(super) const UNREAD: ErrorCode = ErrorCode(-31_001);

/// Where messages are written; nothing once closed.
type Writer<W> = Arc<Mutex<Option<W>>>;

/// Messages as lines, with a limit on their length.
pub(super) struct Lines<R, W> {
    read: BufReader<R>,
    /// The line so far. A dropped `receive` goes on here.
    line: Vec<u8>,
    /// Bytes of the line so far, those not kept included.
    bytes: usize,
    bytes_max: usize,
    write: Writer<W>,
    tap: Arc<Tap>,
}

impl<R: AsyncRead + Unpin + Send, W: AsyncWrite + Unpin + Send + 'static> Lines<R, W> {
    pub(super) fn new(read: R, write: W, bytes_max: usize, tap: Arc<Tap>) -> Self {
        Self {
            read: BufReader::with_capacity(64 * 1024, read),
            line: Vec::new(),
            bytes: 0,
            bytes_max,
            write: Arc::new(Mutex::new(Some(write))),
            tap,
        }
    }

    /// The next whole line is in `line` when this is true; false at the end of input.
    async fn next_line(&mut self) -> bool {
        loop {
            let Ok(available) = self.read.fill_buf().await else {
                return false;
            };
            if available.is_empty() {
                return false;
            }
            let newline = memchr::memchr(b'\n', available);
            let taken = newline.map_or(available.len(), |at| at + 1);
            let part = available
                .get(..newline.unwrap_or(taken))
                .unwrap_or_default();
            self.bytes += part.len();
            self.line.extend_from_slice(part);
            if self.bytes_max < self.bytes {
                keep_ends(&mut self.line);
            }
            self.read.consume(taken);
            if newline.is_some() {
                return true;
            }
        }
    }

    /// The message in `line`, which is empty afterwards.
    fn take_message(&mut self) -> Option<ServerJsonRpcMessage> {
        let bytes = std::mem::take(&mut self.bytes);
        let message = if self.bytes_max < bytes {
            let why = format!(
                "the answer has {bytes} bytes, over the limit of {}",
                self.bytes_max
            );
            unread(&self.line, why)
        } else {
            let broken = || unread(&self.line, "the answer is no valid JSON".to_owned());
            self.tap.incoming(&self.line).or_else(broken)
        };
        // One huge line must not keep its memory for the life of the session.
        self.line = Vec::new();
        message
    }
}

impl<R, W> Transport<RoleClient> for Lines<R, W>
where
    R: AsyncRead + Unpin + Send + 'static,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.tap.outgoing(&message);
        let write = self.write.clone();
        async move {
            let mut line = serde_json::to_vec(&message)?;
            line.push(b'\n');
            let mut write = write.lock().await;
            let Some(write) = write.as_mut() else {
                return Err(std::io::ErrorKind::NotConnected.into());
            };
            write.write_all(&line).await?;
            write.flush().await
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        while self.next_line().await {
            // Noise between messages is passed over: some servers log to standard output.
            if let Some(message) = self.take_message() {
                return Some(message);
            }
        }
        None
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        // A writer that is stuck in a full pipe holds the lock; the child is stopped anyway.
        if let Ok(mut write) = self.write.try_lock() {
            write.take();
        }
        Ok(())
    }
}

fn keep_ends(line: &mut Vec<u8>) {
    if 4 * ENDS_BYTES < line.len() {
        let tail = line.len() - ENDS_BYTES;
        line.drain(ENDS_BYTES..tail);
    }
}

/// An error in place of an answer that cannot be read, when it says whose answer it is.
pub(super) fn unread(line: &[u8], why: String) -> Option<ServerJsonRpcMessage> {
    let head = line.get(..ENDS_BYTES).unwrap_or(line);
    let tail = line
        .get(line.len().saturating_sub(ENDS_BYTES)..)
        .unwrap_or(line);
    let id = id_at_head(head).or_else(|| id_at_tail(tail))?;
    let error = ErrorData::new(UNREAD, why, None);
    Some(JsonRpcMessage::error(error, Some(RequestId::Number(id))))
}

const ID_KEY: &[u8] = b"\"id\":";

/// As in `{"jsonrpc":"2.0","id":5,"result":..`: the id stands before the result, which may hold
/// ids of its own.
fn id_at_head(head: &[u8]) -> Option<i64> {
    const RESULT: &[u8] = b"\"result\"";
    let result = head
        .windows(RESULT.len())
        .position(|window| window == RESULT)?;
    let before = head.get(..result)?;
    let key = before
        .windows(ID_KEY.len())
        .position(|window| window == ID_KEY)?;
    Some(number(before.get(key + ID_KEY.len()..)?)?.0)
}

/// As in `..},"jsonrpc":"2.0","id":5}`: nothing but the end follows.
fn id_at_tail(tail: &[u8]) -> Option<i64> {
    let key = tail
        .windows(ID_KEY.len())
        .rposition(|window| window == ID_KEY)?;
    let (id, rest) = number(tail.get(key + ID_KEY.len()..)?)?;
    (rest.trim_ascii() == b"}" || rest.starts_with(b",\"jsonrpc\":\"2.0\"}")).then_some(id)
}

fn number(bytes: &[u8]) -> Option<(i64, &[u8])> {
    let bytes = bytes.trim_ascii_start();
    let end = bytes
        .iter()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(bytes.len());
    let digits = str::from_utf8(bytes.get(..end)?).ok()?;
    Some((digits.parse().ok()?, bytes.get(end..)?))
}

#[cfg(test)]
mod tests {
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn an_answer_that_is_not_read_says_whose_it_is() {
        let check = |line: &str, expected: Option<i64>| {
            let found = unread(line.as_bytes(), String::new());
            let id = found.and_then(|message| match message {
                JsonRpcMessage::Error(error) => error.id,
                _ => None,
            });
            assert_eq!(id, expected.map(RequestId::Number), "{line}");
        };
        check(r#"{"jsonrpc":"2.0","id":5,"result":{"a":NaN}}"#, Some(5));
        check(r#"{"jsonrpc": "2.0", "id": 12, "result": NaN}"#, Some(12));
        check(
            r#"{"result":{"id":3,"a":NaN},"jsonrpc":"2.0","id":7}"#,
            Some(7),
        );
        check(
            r#"{"result":{"id":3,"a":NaN},"id":7,"jsonrpc":"2.0"}"#,
            Some(7),
        );
        check(r#"{"result":{"id":3,"a":NaN},"more":1}"#, None);
        check(r#"{"id":5,"method":"ping"}"#, None);
        check(r#"{"id":99999999999999999999,"result":1}"#, None);
    }

    async fn next_response<R, W>(lines: &mut Lines<R, W>) -> Option<ServerJsonRpcMessage>
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        loop {
            let message = lines.receive().await?;
            if matches!(message, JsonRpcMessage::Response(_)) {
                return Some(message);
            }
        }
    }

    /// Whatever comes before it, in whatever pieces, a good message is read, and no more than the
    /// limit is kept.
    #[tokio::test]
    async fn a_message_is_read_behind_any_noise() {
        let mut rng = StdRng::seed_from_u64(7);
        for _ in 0..200 {
            let noise: Vec<u8> = (0..rng.random_range(0..3_000))
                .map(|_| rng.random())
                .collect();
            let good = r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}"#;
            let all = [noise.as_slice(), b"\n", good.as_bytes(), b"\n"].concat();
            let (mut far, near) = tokio::io::duplex(rng.random_range(1..200));
            let (read, write) = tokio::io::split(near);
            let mut lines = Lines::new(read, write, 1_000, Arc::default());
            let writing = async move {
                far.write_all(&all).await.unwrap();
                far
            };
            let reading = next_response(&mut lines);
            let (_far, last) = tokio::join!(writing, reading);
            assert!(
                matches!(last, Some(JsonRpcMessage::Response(_))),
                "{last:?}"
            );
        }
    }
}
