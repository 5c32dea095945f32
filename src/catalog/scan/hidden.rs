//! Characters that a person does not see and a model reads.

use crate::catalog::scan::{Finding, FindingKind, Severity};
use crate::domain::hidden_characters;

/// Zero-width characters in one text that pass for an accident of copying.
const STRAY_MAX: usize = 2;
/// Blanks in a row that push what follows out of sight.
const BLANKS_MAX: usize = 120;
/// Blank lines in a row that do the same.
const BLANK_LINES_MAX: usize = 15;

/// Characters of one text, by what they are good for.
#[derive(Debug, Default)]
struct Tally {
    escapes: usize,
    turns: usize,
    tags: usize,
    selectors: usize,
    splits: usize,
    zero_width: usize,
    controls: usize,
    private: usize,
}

/// What is hidden in a text.
pub(super) fn scan(place: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut found = |severity, kind, excerpt: &str| {
        findings.push(Finding::new(severity, kind, place, excerpt));
    };
    if hidden_characters(text) != 0 {
        let tally = tally(text);
        let count = |count: usize, what: &str| format!("{count} {what}");
        if 0 < tally.escapes {
            let text = count(tally.escapes, "escape sequences");
            found(Severity::High, FindingKind::TerminalEscape, &text);
        }
        if 0 < tally.turns {
            let text = count(tally.turns, "bidirectional controls");
            found(Severity::High, FindingKind::BidirectionalText, &text);
        }
        let smuggled = tally.tags + tally.selectors + tally.splits;
        let hidden = smuggled + tally.zero_width + tally.controls + tally.private;
        if 0 < hidden {
            let severity = match smuggled {
                0 if hidden <= STRAY_MAX => Severity::Low,
                0 if tally.zero_width + tally.private <= STRAY_MAX => Severity::Medium,
                _ => Severity::High,
            };
            let text = count(hidden, "characters that show nothing");
            found(severity, FindingKind::HiddenCharacters, &text);
        }
    }
    if let Some(behind) = pushed_away(text) {
        found(Severity::High, FindingKind::PushedOutOfSight, behind);
    }
    findings
}

fn tally(text: &str) -> Tally {
    let characters: Vec<char> = text.chars().collect();
    let mut tally = Tally::default();
    let at = |index: Option<usize>| index.and_then(|index| characters.get(index)).copied();
    for (index, c) in characters.iter().enumerate() {
        let before = at(index.checked_sub(1));
        let after = at(Some(index + 1));
        match c {
            '\n' | '\r' | '\t' => {}
            '\u{1b}' | '\u{9b}' => tally.escapes += 1,
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => tally.turns += 1,
            '\u{e0000}'..='\u{e007f}' if is_flag(&characters, index) => {}
            '\u{e0000}'..='\u{e00ff}' => tally.tags += 1,
            '\u{fe00}'..='\u{fe0e}' | '\u{e0100}'..='\u{e01ef}' => {
                // One of them styles the character before; a row of them spells bytes.
                tally.selectors += usize::from(before.is_some_and(is_selector));
            }
            // Emoji, Persian and Indic scripts join and part letters with these.
            '\u{200c}' | '\u{200d}' if before.is_some_and(|b| !b.is_ascii()) => {}
            // Takes back what a person has just seen.
            '\u{8}' | '\u{7f}' => tally.splits += 1,
            c if c.is_control() => tally.controls += 1,
            '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}' => tally.private += 1,
            // A mark of byte order that an editor left in front.
            '\u{feff}' if index == 0 => {}
            c if hidden_characters(c.encode_utf8(&mut [0; 4])) == 1 => {
                let letter = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphabetic());
                match letter(before) && letter(after) && *c != '\u{ad}' {
                    true => tally.splits += 1,
                    false => tally.zero_width += 1,
                }
            }
            _ => {}
        }
    }
    tally
}

fn is_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Whether a tag character belongs to the flag of England, Scotland or Wales: a black flag, five
/// letters, an end.
fn is_flag(characters: &[char], index: usize) -> bool {
    let start = (1..=6).find(|back| {
        let at = index.checked_sub(*back);
        at.and_then(|at| characters.get(at)) == Some(&'\u{1f3f4}')
    });
    let Some(start) = start.and_then(|back| index.checked_sub(back)) else {
        return false;
    };
    characters.get(start + 6) == Some(&'\u{e007f}')
}

/// What stands behind a gap that no window is wide enough to show.
fn pushed_away(text: &str) -> Option<&str> {
    let (mut blanks, mut lines) = (0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '\n' => (blanks, lines) = (0, lines + 1),
            c if c.is_whitespace() => blanks += 1,
            _ if BLANKS_MAX < blanks || BLANK_LINES_MAX < lines => return text.get(at..),
            _ => (blanks, lines) = (0, 0),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(Severity, FindingKind)]) {
        let found = scan("description", text);
        let found: Vec<_> = found.iter().map(|f| (f.severity, f.kind)).collect();
        assert_eq!(found, expected, "{text:?}");
    }

    #[test]
    fn honest_text_has_nothing_hidden() {
        check("Reads a file.\r\n\tWith tabs.\n\nAnd a blank line.", &[]);
        check("\u{feff}A byte order mark in front", &[]);
        check("ok \u{2714}\u{fe0f} \u{1f468}\u{200d}\u{1f4bb}", &[]);
        check(
            "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
            &[],
        );
        check(
            "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}",
            &[],
        );
    }

    #[test]
    fn hidden_text_is_told_from_an_accident() {
        use FindingKind::{BidirectionalText, HiddenCharacters, PushedOutOfSight, TerminalEscape};
        use Severity::{High, Low};
        check("a soft\u{ad}hyphen", &[(Low, HiddenCharacters)]);
        check("ig\u{200b}nore", &[(High, HiddenCharacters)]);
        check("x \u{e0041}\u{e0042}", &[(High, HiddenCharacters)]);
        check("x\u{fe01}\u{fe02}\u{fe03}", &[(High, HiddenCharacters)]);
        check("\u{1b}[2J", &[(High, TerminalEscape)]);
        check("a \u{202e}b", &[(High, BidirectionalText)]);
        check(
            &format!("a{}b", " ".repeat(200)),
            &[(High, PushedOutOfSight)],
        );
        check(
            &format!("a{}b", "\n".repeat(40)),
            &[(High, PushedOutOfSight)],
        );
    }
}
