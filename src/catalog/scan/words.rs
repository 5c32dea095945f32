//! A text as plain words, its disguises taken off.

use unicode_normalization::UnicodeNormalization;

use crate::domain::hidden_characters;

/// Letters one by one that make a word when put together.
const SPELLED_MIN: usize = 5;

/// A word in lower-case ASCII where that is possible.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Word {
    /// As it reads.
    pub(super) plain: String,
    /// With digits read as the letters they look like, where it has both.
    pub(super) leet: Option<String>,
}

/// The text in lower case, compatibility forms and look-alike letters made plain, hidden
/// characters left out.
pub(super) fn fold(text: &str) -> String {
    text.nfkc()
        .filter(|c| c.is_whitespace() || hidden_characters(c.encode_utf8(&mut [0; 4])) == 0)
        .map(plain_letter)
        .flat_map(char::to_lowercase)
        .collect()
}

/// The words of a folded text. Letters that stand one by one are put together.
pub(super) fn words(folded: &str) -> Vec<Word> {
    let mut words: Vec<Word> = Vec::new();
    let mut spelled = String::new();
    let without_quotes: String = folded
        .chars()
        .filter(|c| !matches!(c, '\'' | '\u{2019}'))
        .collect();
    for part in without_quotes.split(|c: char| !c.is_alphanumeric()) {
        match part.chars().count() {
            0 => {}
            1 => spelled.push_str(part),
            _ => {
                flush(&mut spelled, &mut words);
                words.push(Word::new(part));
            }
        }
    }
    flush(&mut spelled, &mut words);
    words
}

fn flush(spelled: &mut String, words: &mut Vec<Word>) {
    if SPELLED_MIN <= spelled.chars().count() {
        words.push(Word::new(spelled));
    } else {
        let mut place = [0; 4];
        words.extend(
            spelled
                .chars()
                .map(|letter| Word::new(letter.encode_utf8(&mut place))),
        );
    }
    spelled.clear();
}

impl Word {
    fn new(text: &str) -> Self {
        let digits = text.chars().any(|c| c.is_ascii_digit());
        let letters = text.chars().any(char::is_alphabetic);
        Self {
            plain: text.to_owned(),
            leet: (digits && letters).then(|| text.chars().map(plain_digit).collect()),
        }
    }
}

/// The letter that a digit looks like.
pub(super) fn plain_digit(c: char) -> char {
    match c {
        '0' => 'o',
        '1' => 'i',
        '3' => 'e',
        '4' => 'a',
        '5' => 's',
        '7' => 't',
        other => other,
    }
}

/// The Latin letter that a Cyrillic, Greek or Armenian one looks like (after Unicode TR 39).
pub(super) fn plain_letter(c: char) -> char {
    match c {
        '\u{430}' | '\u{410}' | '\u{3b1}' | '\u{391}' => 'a',
        '\u{412}' | '\u{392}' => 'b',
        '\u{441}' | '\u{421}' | '\u{3f2}' => 'c',
        '\u{501}' => 'd',
        '\u{435}' | '\u{415}' | '\u{451}' | '\u{395}' => 'e',
        '\u{261}' => 'g',
        '\u{4bb}' | '\u{41d}' | '\u{397}' => 'h',
        '\u{456}' | '\u{406}' | '\u{3b9}' | '\u{399}' | '\u{131}' | '\u{457}' => 'i',
        '\u{458}' | '\u{408}' => 'j',
        '\u{43a}' | '\u{41a}' | '\u{3ba}' | '\u{39a}' => 'k',
        '\u{4cf}' | '\u{4c0}' => 'l',
        '\u{41c}' | '\u{39c}' => 'm',
        '\u{578}' | '\u{39d}' => 'n',
        '\u{43e}' | '\u{41e}' | '\u{3bf}' | '\u{39f}' | '\u{585}' => 'o',
        '\u{440}' | '\u{420}' | '\u{3c1}' | '\u{3a1}' => 'p',
        '\u{51b}' => 'q',
        '\u{455}' | '\u{405}' => 's',
        '\u{422}' | '\u{3a4}' => 't',
        '\u{57d}' | '\u{3c5}' => 'u',
        '\u{3bd}' | '\u{475}' => 'v',
        '\u{51d}' => 'w',
        '\u{445}' | '\u{425}' | '\u{3c7}' | '\u{3a7}' => 'x',
        '\u{443}' | '\u{423}' | '\u{3b3}' | '\u{3a5}' => 'y',
        '\u{396}' => 'z',
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let words = words(&fold(text));
        let plain: Vec<_> = words.iter().map(|word| word.plain.as_str()).collect();
        assert_eq!(plain, expected);
    }

    #[test]
    fn disguises_come_off() {
        check("Don't, IGNORE!", &["dont", "ignore"]);
        check("i g n o r e all", &["ignore", "all"]);
        check("\u{456}gn\u{43e}r\u{435}", &["ignore"]);
        check(
            "\u{ff49}\u{ff47}\u{ff4e}\u{ff4f}\u{ff52}\u{ff45}",
            &["ignore"],
        );
        check("ig\u{200b}nore", &["ignore"]);
        assert_eq!(words("1gn0re")[0].leet.as_deref(), Some("ignore"));
    }
}
