//! JSON as servers really write it.
//!
//! A text cut in the middle of an emoji leaves half a surrogate pair, which JavaScript and Python
//! both write out; a log of bytes leaves what is no UTF-8. Either would lose a whole result, so the
//! broken characters are replaced by U+FFFD.

use serde_json::Value;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The JSON of a line, mended where it needs to be.
pub(super) fn parse(line: &[u8]) -> Option<Value> {
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
    if let Ok(value) = serde_json::from_slice(line) {
        return Some(value);
    }
    // Noise is passed over without a second look.
    if !line.trim_ascii_start().starts_with(b"{") {
        return None;
    }
    let text = String::from_utf8_lossy(line);
    serde_json::from_str(&mend_surrogates(&text)).ok()
}

/// Replaces escapes of half a surrogate pair.
fn mend_surrogates(text: &str) -> String {
    let mut mended = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        mended.push_str(before);
        let (escape, tail) = match surrogate(after) {
            Some((0xD800..=0xDBFF, tail)) => match tail.strip_prefix('\\').and_then(surrogate) {
                Some((0xDC00..=0xDFFF, end)) => (after.strip_suffix(end).unwrap_or(after), end),
                _ => ("ufffd", tail),
            },
            Some((_low, tail)) => ("ufffd", tail),
            None => {
                // One character belongs to this backslash, so that `\\\\` is not read as two.
                let end = after.chars().next().map_or(0, char::len_utf8);
                after.split_at_checked(end).unwrap_or((after, ""))
            }
        };
        mended.push('\\');
        mended.push_str(escape);
        rest = tail;
    }
    mended.push_str(rest);
    mended
}

/// The surrogate that an escape without its backslash stands for, and what follows.
fn surrogate(escape: &str) -> Option<(u16, &str)> {
    let (digits, tail) = escape.strip_prefix('u')?.split_at_checked(4)?;
    let code = u16::from_str_radix(digits, 16).ok()?;
    (0xD800..=0xDFFF).contains(&code).then_some((code, tail))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn half_an_emoji_does_not_lose_the_rest() {
        let check = |line: &str, expected: &str| {
            assert_eq!(
                parse(line.as_bytes()),
                Some(json!({"t": expected})),
                "{line}"
            );
        };
        check(r#"{"t":"a\ud83d"}"#, "a\u{fffd}");
        check(r#"{"t":"\ude00b"}"#, "\u{fffd}b");
        check(r#"{"t":"\ud83d\ude00 \ud83d"}"#, "\u{1f600} \u{fffd}");
        check(r#"{"t":"\\ud83d \ud83d\n"}"#, "\\ud83d \u{fffd}\n");
        assert_eq!(parse(b"{\"t\":\"\xff\"}"), Some(json!({"t": "\u{fffd}"})));
        assert_eq!(parse(b"\xEF\xBB\xBF{}"), Some(json!({})));
        assert_eq!(parse(b"Listening on stdio"), None);
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_good_json_is_untouched(bytes in any::<Vec<u8>>(), text in any::<String>()) {
            parse(&bytes);
            let good = json!({ "t": text });
            let line = good.to_string();
            prop_assert_eq!(mend_surrogates(&line), line.clone());
            prop_assert_eq!(parse(line.as_bytes()), Some(good));
        }
    }
}
