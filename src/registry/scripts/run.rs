//! One run of a script: its arguments, its limits, its end.

use std::path::Path;

use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;

use crate::call::Process;
use crate::domain::{ServerName, clean_text};
use crate::registry::provider::{Call, ProvideError};
use crate::registry::scripts::{Pass, Script, ScriptLimits};
use crate::registry::{Arguments, ReadArgumentError, ToolOutput};

/// What of standard error is shown of a script that failed, in characters.
const STDERR_CHARS_MAX: usize = 2_000;
/// What of standard error is read.
const STDERR_BYTES_MAX: usize = 64 * 1024;
/// The environment of every script.
const ENVIRONMENT: [(&str, &str); 2] = [
    ("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ("LANG", "C.UTF-8"),
];
/// How long a script's group may take to end when asked to.
const KILL_AFTER: std::time::Duration = std::time::Duration::from_millis(500);

/// What one run printed.
enum Printed {
    Whole(Vec<u8>, Vec<u8>),
    TooMuch,
}

pub(super) async fn run(
    provider: &ServerName,
    folder: &Path,
    script: &Script,
    call: Call,
    limits: ScriptLimits,
) -> Result<ToolOutput, ProvideError> {
    let mut command = Command::new(&script.program);
    command.current_dir(folder).env_clear().envs(ENVIRONMENT);
    let mut input = Vec::new();
    match script.pass {
        Pass::Arguments => {
            command.args(options(&call.arguments, script)?);
        }
        Pass::Input => {
            input = Value::Object(call.arguments.into_map())
                .to_string()
                .into_bytes();
            input.push(b'\n');
        }
    }
    let name = provider.as_str();
    let (mut process, mut streams) = Process::spawn(command)
        .map_err(|error| ProvideError::unavailable(name, format!("it did not start: {error}")))?;
    let printed = async {
        // A script need not read what it is given.
        let give = async {
            let _unread = streams.stdin.write_all(&input).await;
            drop(streams.stdin);
        };
        let (out_max, err_max) = (limits.output_bytes_max, STDERR_BYTES_MAX);
        let read = async {
            tokio::join!(
                read(&mut streams.stdout, out_max),
                drain(&mut streams.stderr, err_max)
            )
        };
        let ((), (out, err)) = tokio::join!(give, read);
        match out {
            Some(out) => (Printed::Whole(out, err), process.ended().await.ok()),
            None => (Printed::TooMuch, None),
        }
    };
    let ended = tokio::select! {
        ended = tokio::time::timeout(limits.run_max, printed) => ended.ok(),
        () = call.side.cancel.cancelled() => None,
    };
    // Whatever it started ends with it.
    process.stop(KILL_AFTER).await;
    match ended {
        Some((Printed::Whole(out, err), Some(status))) if status.success() => {
            Ok(success(&out, &err))
        }
        Some((Printed::Whole(_, err), status)) => {
            Ok(failure(status.and_then(|status| status.code()), &err))
        }
        Some((Printed::TooMuch, _)) => {
            let max = limits.output_bytes_max;
            Ok(ToolOutput::error(format!(
                "the script printed more than {max} bytes and was ended"
            )))
        }
        None if call.side.cancel.is_cancelled() => Err(ProvideError::Cancelled),
        None => Err(ProvideError::TimedOut {
            provider: name.to_owned(),
            after: limits.run_max,
        }),
    }
}

/// `--name=value` of each argument that the schema knows, in the order in which they came.
fn options(arguments: &Arguments, script: &Script) -> Result<Vec<String>, ReadArgumentError> {
    let known = script.metadata.tool().input().arguments();
    let option = |(name, value): (&String, &Value)| {
        // An unknown name could be an option that the definition keeps from callers.
        let wrong = |expected| ReadArgumentError::Type {
            name: name.clone(),
            expected,
        };
        if !known.iter().any(|argument| *argument.name == **name) || name.contains('=') {
            return Err(wrong("an argument of this script"));
        }
        let text = match value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        match text.contains('\0') {
            true => Err(wrong("free of null characters")),
            false => Ok(format!("--{name}={text}")),
        }
    };
    let given = arguments
        .as_map()
        .iter()
        .filter(|(_, value)| !value.is_null());
    given.map(option).collect()
}

/// All of a stream; `None` if it is more than allowed.
async fn read(stream: &mut (impl AsyncRead + Unpin), bytes_max: usize) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = u64::try_from(bytes_max)
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    // A stream that breaks has ended.
    let _ended = stream.take(most).read_to_end(&mut bytes).await;
    (bytes.len() <= bytes_max).then_some(bytes)
}

/// The end of a stream, read to its end.
async fn drain(stream: &mut (impl AsyncRead + Unpin), bytes_max: usize) -> Vec<u8> {
    let (mut tail, mut part) = (Vec::new(), [0; 4_096]);
    while let Ok(count @ 1..) = stream.read(&mut part).await {
        tail.extend_from_slice(part.get(..count).unwrap_or_default());
        let over = tail.len().saturating_sub(bytes_max);
        tail.drain(..over);
    }
    tail
}

fn success(out: &[u8], err: &[u8]) -> ToolOutput {
    let text = String::from_utf8_lossy(out);
    match serde_json::from_str::<Value>(text.trim()) {
        Ok(value @ Value::Object(_)) => ToolOutput::json(value),
        _ if text.trim().is_empty() && !err.is_empty() => {
            ToolOutput::text(String::from_utf8_lossy(err))
        }
        _ => ToolOutput::text(text),
    }
}

fn failure(code: Option<i32>, err: &[u8]) -> ToolOutput {
    let ended = match code {
        Some(code) => format!("the script ended with exit code {code}"),
        None => "the script was killed".to_owned(),
    };
    match clean_text(&String::from_utf8_lossy(err), STDERR_CHARS_MAX) {
        text if text.is_empty() => ToolOutput::error(ended),
        text => ToolOutput::error(format!("{ended}\n{text}")),
    }
}
