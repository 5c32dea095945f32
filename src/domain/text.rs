//! Catalog text is data from strangers: made safe to print and to put into a reply.

use std::borrow::Cow;

/// Puts at the end of a text that was cut.
const ELLIPSIS: &str = "...";

/// Whether a character shows nothing of its own, or changes how its neighbours are read: controls,
/// bidirectional marks, zero-width characters, tags, variation selectors beyond the emoji one,
/// and the private and non-character ranges.
///
/// Such characters hide instructions in plain sight (Unicode TR 36 and TR 39).
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00AD}' | '\u{034F}' | '\u{061C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}'
            | '\u{17B5}' | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}'
            | '\u{2028}'..='\u{202E}' | '\u{2060}'..='\u{206F}' | '\u{3164}'
            | '\u{FE00}'..='\u{FE0E}' | '\u{FEFF}' | '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}'
            | '\u{E000}'..='\u{F8FF}' | '\u{1BCA0}'..='\u{1BCA3}' | '\u{1D173}'..='\u{1D17A}'
            | '\u{E0000}'..='\u{E0FFF}' | '\u{F0000}'..='\u{10FFFF}')
}

/// How many hidden characters a text holds, line breaks and tabs not counted.
pub fn hidden_characters(text: &str) -> usize {
    text.chars()
        .filter(|c| !matches!(c, '\n' | '\r' | '\t') && is_hidden(*c))
        .count()
}

/// The text without hidden characters and terminal escapes, line breaks kept, runs of blank lines
/// and spaces folded, cut at `chars_max` characters on a word boundary.
pub fn clean_text(text: &str, chars_max: usize) -> String {
    let mut clean = String::with_capacity(text.len().min(chars_max * 4));
    for line in without_escapes(text).lines() {
        let words = fold_spaces(line);
        if words.is_empty() && (clean.is_empty() || clean.ends_with("\n\n")) {
            continue;
        }
        clean.push_str(&words);
        clean.push('\n');
    }
    shorten(clean.trim(), chars_max).into_owned()
}

/// As [`clean_text`], on one line.
pub fn clean_line(text: &str, chars_max: usize) -> String {
    let line = fold_spaces(&without_escapes(text).replace(['\n', '\r'], " "));
    shorten(&line, chars_max).into_owned()
}

/// At most `chars_max` characters of the text, cut behind a whole word and marked with `...`.
pub fn shorten(text: &str, chars_max: usize) -> Cow<'_, str> {
    if text.chars().nth(chars_max).is_none() {
        return Cow::Borrowed(text);
    }
    let room = chars_max.saturating_sub(ELLIPSIS.len());
    let cut: String = text.chars().take(room).collect();
    // A script without spaces has no word boundary near the end: cut it where the room ends.
    let whole_words = match cut.rfind(char::is_whitespace) {
        Some(at) if cut.len() / 2 < at => cut.get(..at).unwrap_or(&cut),
        _ => &cut,
    };
    let trimmed = whole_words.trim_end_matches(|c: char| c.is_whitespace() || ",;:(".contains(c));
    Cow::Owned(format!("{trimmed}{ELLIPSIS}"))
}

/// Drops ANSI escape sequences whole, then what else is hidden.
fn without_escapes(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' | '\u{9b}' => {
                if c == '\u{1b}' && rest.peek() == Some(&'[') {
                    rest.next();
                } else if c == '\u{1b}' {
                    continue;
                }
                while rest.next_if(|c| !('@'..='~').contains(c)).is_some() {}
                rest.next();
            }
            '\n' | '\r' => kept.push(c),
            '\t' => kept.push(' '),
            c if is_hidden(c) => {}
            c => kept.push(c),
        }
    }
    kept
}

fn fold_spaces(line: &str) -> String {
    let mut folded = String::with_capacity(line.len());
    for word in line.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.push_str(word);
    }
    folded
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hidden_characters_and_escapes_are_taken_out() {
        let poisoned = "Read\u{200b} a \u{1b}[31mfile\u{1b}[0m\u{202e}.\u{e0041}\u{e0042}";
        assert_eq!(clean_text(poisoned, 100), "Read a file.");
        assert_eq!(hidden_characters("a\tb\nc"), 0);
        assert_eq!(hidden_characters(poisoned), 6);
    }

    #[test]
    fn a_long_text_is_cut_behind_a_word() {
        assert_eq!(shorten("one two three four", 15), "one two...");
        assert_eq!(shorten("one two", 7), "one two");
        assert_eq!(shorten("一二三四五六七八九十", 7), "一二三四...");
    }

    #[test]
    fn emoji_keep_their_presentation_selector() {
        assert_eq!(clean_line("ok \u{2714}\u{fe0f}", 10), "ok \u{2714}\u{fe0f}");
    }

    proptest! {
        #[test]
        fn clean_text_hides_nothing_and_keeps_the_limit(text in any::<String>(), max in 8_usize..80) {
            let clean = clean_text(&text, max);
            prop_assert_eq!(hidden_characters(&clean), 0);
            prop_assert!(clean.chars().count() <= max);
            prop_assert_eq!(clean_text(&clean, max), clean);
        }
    }
}
