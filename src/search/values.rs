//! What a query hands to a tool rather than asks of it: quoted texts, paths, addresses.

/// Quoted parts longer than this are sentences, not values.
const QUOTED_CHARS_MAX: usize = 80;
/// A lone slash is no path.
const PATH_BYTES_MIN: usize = 3;
/// What stands behind the last dot of a file name, at most.
const EXTENSION_BYTES_MAX: usize = 5;

/// The text without values. Quoted ones go; a path leaves the kind of its file and an address its
/// host, since a wish is about such a file or such a service whatever comes behind. A text that is nearly all values
/// stays as it is.
pub(super) fn leave_out(text: &str) -> String {
    named(&without_quoted(text))
}

/// The text with paths and addresses replaced by the words for what they are.
fn named(text: &str) -> String {
    let words: Vec<String> = text
        .split_whitespace()
        .map(|word| {
            let value = word
                .trim_matches(|c: char| "()[]<>,;!?".contains(c))
                .trim_end_matches('.');
            match kind(value) {
                Some(kind) => word.replacen(value, kind, 1),
                None => word.to_owned(),
            }
        })
        .collect();
    words.join(" ")
}

/// What a value is, if it is one: of a path its extension, which says what kind of file it is, and
/// of an address its host, which may be that of a service.
fn kind(value: &str) -> Option<&str> {
    if let Some((scheme, rest)) = value.split_once("://") {
        let is_scheme = !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric());
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        return (is_scheme && !host.is_empty()).then_some(host);
    }
    let rooted = ["/", "~/", "./", "../"]
        .iter()
        .any(|start| value.starts_with(start));
    if !rooted || value.len() < PATH_BYTES_MIN {
        return None;
    }
    let name = value.rsplit('/').next().unwrap_or_default();
    match name.rsplit_once('.') {
        Some((_, extension)) if (1..=EXTENSION_BYTES_MAX).contains(&extension.len()) => {
            Some(extension)
        }
        _ => Some("folder"),
    }
}

/// The text without quoted values: what stands in quotes is handed to a tool, not asked of it.
/// A text that is nearly all quoted stays as it is.
fn without_quoted(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, quote)) = rest
        .char_indices()
        .find(|(_, c)| "'\"`\u{201c}".contains(*c))
    {
        let (before, from) = rest.split_at(at);
        let close = if quote == '\u{201c}' {
            '\u{201d}'
        } else {
            quote
        };
        let inside = from.get(quote.len_utf8()..).unwrap_or_default();
        // An apostrophe inside a word opens nothing.
        let opens = !before.ends_with(char::is_alphanumeric);
        let end = inside
            .find(close)
            .filter(|end| opens && 0 < *end && *end <= QUOTED_CHARS_MAX);
        plain.push_str(before);
        if let Some(end) = end {
            plain.push(' ');
            rest = inside.get(end + close.len_utf8()..).unwrap_or_default();
        } else {
            plain.push(quote);
            rest = inside;
        }
    }
    plain.push_str(rest);
    let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
    if plain
        .split(' ')
        .filter(|word| word.contains(char::is_alphanumeric))
        .count()
        < 2
    {
        text.to_owned()
    } else {
        plain
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn quoted_values_go_unless_there_is_nothing_else() {
        for (text, plain) in [
            ("create issue 'Search is slow' now", "create issue now"),
            ("\"web search\"", "\"web search\""),
            ("what's new", "what's new"),
        ] {
            assert_eq!(leave_out(text), plain);
        }
    }

    #[test]
    fn paths_and_addresses_leave_what_they_are() {
        for (text, plain) in [
            (
                "save it at /data/a b/report.md.",
                "save it at folder b/report.md.",
            ),
            ("read ~/notes/list.csv, then stop", "read csv, then stop"),
            ("what is in /var/log?", "what is in folder?"),
            (
                "list issues of https://github.com/a/b?c=d now",
                "list issues of github.com now",
            ),
            ("either/or, 1/2 and / alone", "either/or, 1/2 and / alone"),
            ("call a::b or x://", "call a::b or x://"),
        ] {
            assert_eq!(leave_out(text), plain);
        }
    }

    proptest! {
        #[test]
        fn no_text_panics_or_grows(text in any::<String>()) {
            prop_assert!(leave_out(&text).chars().count() <= 2 * text.chars().count() + 8);
        }
    }
}
