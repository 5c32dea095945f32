//! The trace that a request belongs to, as its caller says it: W3C Trace Context.

use std::fmt;
use std::str::FromStr;

/// Characters of a `traceparent` of version 00.
const PARENT_CHARS: usize = 55;
/// Longest `traceparent` of a later version.
const PARENT_CHARS_MAX: usize = 128;
/// Where the trace id stands.
const TRACE_ID: std::ops::Range<usize> = 3..35;
/// Where the id of the caller's span stands.
const PARENT_ID: std::ops::Range<usize> = 36..52;
/// Longest `tracestate`.
const STATE_CHARS_MAX: usize = 512;
/// Members of a `tracestate`.
const STATE_MEMBERS_MAX: usize = 32;

/// A text is no `traceparent`.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("a traceparent is `<version>-<trace id>-<parent id>-<flags>` in hexadecimal digits")]
pub struct ParseTraceError;

/// A valid `traceparent` and the `tracestate` beside it, both as they came.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Trace {
    parent: Box<str>,
    state: Option<Box<str>>,
}

impl Trace {
    /// Of what a caller sent. A malformed parent is no trace at all, a malformed state none of its
    /// own.
    pub fn read(parent: Option<&str>, state: Option<&str>) -> Option<Self> {
        let trace: Self = parent?.parse().ok()?;
        let state = state.filter(|state| is_state(state));
        Some(Self {
            state: state.map(Into::into),
            ..trace
        })
    }

    /// The `traceparent`.
    pub fn parent(&self) -> &str {
        &self.parent
    }

    /// The `tracestate`.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// The id of the caller's span.
    pub fn parent_id(&self) -> &str {
        self.parent.get(PARENT_ID).unwrap_or_default()
    }

    /// The id that all spans of the trace have.
    pub fn id(&self) -> &str {
        self.parent.get(TRACE_ID).unwrap_or_default()
    }
}

impl FromStr for Trace {
    type Err = ParseTraceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let hex = |part: Option<&str>| {
            part.is_some_and(|part| {
                part.bytes()
                    .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
            })
        };
        let some = |part: Option<&str>| part.is_some_and(|part| part.bytes().any(|it| it != b'0'));
        let dashes = [2, 35, 52]
            .iter()
            .all(|at| text.as_bytes().get(*at) == Some(&b'-'));
        let version = text.get(..2);
        let length = match version {
            Some("00") => text.len() == PARENT_CHARS,
            // What a later version appends is unknown, but it begins with a dash.
            _ => {
                text.len() <= PARENT_CHARS_MAX
                    && matches!(text.as_bytes().get(PARENT_CHARS), None | Some(b'-'))
                    && text.bytes().all(|byte| byte.is_ascii_graphic())
            }
        };
        let ids = [TRACE_ID, PARENT_ID].map(|range| text.get(range));
        let fine = hex(version)
            && version != Some("ff")
            && length
            && dashes
            && ids.iter().all(|id| hex(*id) && some(*id))
            && hex(text.get(53..PARENT_CHARS));
        match fine {
            true => Ok(Self {
                parent: text.into(),
                state: None,
            }),
            false => Err(ParseTraceError),
        }
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.parent)
    }
}

/// Members `key=value`, divided by commas. Empty ones are allowed.
fn is_state(state: &str) -> bool {
    let key = |key: &str| {
        let plain =
            |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/' | b'@');
        (1..=256).contains(&key.len()) && key.bytes().all(plain)
    };
    let value = |value: &str| {
        let printable = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'=';
        (1..=256).contains(&value.len()) && value.bytes().all(printable)
    };
    let member = |member: &str| {
        let member = member.trim_matches([' ', '\t']);
        member.is_empty()
            || member
                .split_once('=')
                .is_some_and(|(k, v)| key(k) && value(v))
    };
    state.len() <= STATE_CHARS_MAX
        && state.split(',').count() <= STATE_MEMBERS_MAX
        && state.split(',').all(member)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn a_valid_parent_is_kept_as_it_came() {
        let later = PARENT.replacen("00", "01", 1) + "-more";
        for text in [PARENT, &later] {
            let trace: Trace = text.parse().unwrap();
            assert_eq!(trace.to_string(), text);
            assert_eq!(trace.id(), "0af7651916cd43dd8448eb211c80319c");
        }
    }

    #[test]
    fn a_malformed_parent_is_none() {
        for wrong in [
            "",
            "00",
            PARENT.get(..54).unwrap(),
            &format!("{PARENT}-more"),
            &format!("{}x", PARENT.replacen("00", "01", 1)),
            &PARENT.replacen("00", "ff", 1),
            &PARENT.replace("0af7651916cd43dd8448eb211c80319c", &"0".repeat(32)),
            &PARENT.replace("b7ad6b7169203331", &"0".repeat(16)),
            &PARENT.to_uppercase(),
            &PARENT.replace('-', "_"),
            &PARENT.replace("01", "é"),
        ] {
            assert_eq!(wrong.parse::<Trace>(), Err(ParseTraceError), "{wrong}");
        }
    }

    #[test]
    fn a_malformed_state_goes_and_the_parent_stays() {
        let state = |state: &str| {
            let trace = Trace::read(Some(PARENT), Some(state)).unwrap();
            trace.state().map(str::to_owned)
        };
        for fine in [
            "vendor=1",
            "a=1, b@c=x y ,,d=~",
            &format!("a={}", "x".repeat(256)),
        ] {
            assert_eq!(state(fine).as_deref(), Some(fine));
        }
        let long = format!("a={},b={}", "x".repeat(256), "x".repeat(255));
        let many = vec!["a=1"; STATE_MEMBERS_MAX + 1].join(",");
        for wrong in [
            "vendor", "=1", "a=", "a=b=c", "A=1", "a=\n", "a=é", &long, &many,
        ] {
            assert_eq!(state(wrong), None, "{wrong}");
        }
        assert_eq!(Trace::read(None, Some("vendor=1")), None);
        assert_eq!(Trace::read(Some("wrong"), Some("vendor=1")), None);
    }

    proptest! {
        #[test]
        fn print_then_parse_is_identity(text in "[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}") {
            if let Ok(trace) = text.parse::<Trace>() {
                prop_assert_eq!(trace.to_string(), text);
            }
        }
    }
}
