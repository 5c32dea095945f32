//! The ways in which strangers write "put your own value here".

/// A piece of a foreign text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Piece {
    /// Stands for itself.
    Text(String),
    /// A value that each user sets, with what stands in for it where that is given.
    Value {
        /// Its name, as the text gives it.
        name: String,
        /// What is used when it is not set.
        default: Option<String>,
    },
}

/// Endings and words that make a name that of a secret.
const SECRET_WORDS: [&str; 16] = [
    "key",
    "apikey",
    "token",
    "secret",
    "password",
    "passwd",
    "pwd",
    "pass",
    "passphrase",
    "credential",
    "credentials",
    "cookie",
    "cookies",
    "pat",
    "authorization",
    "dsn",
];
/// Words that say that a name is about a secret, and is none.
const HARMLESS_WORDS: [&str; 12] = [
    "path", "file", "dir", "limit", "max", "type", "method", "name", "endpoint", "timeout",
    "count", "header",
];
/// Names whose values hold a password among other things.
const CONNECTIONS: [&str; 7] = [
    "database_url",
    "db_url",
    "connection_string",
    "mongodb_uri",
    "postgres_url",
    "redis_url",
    "webhook_url",
];

/// Whether a value of this name is a secret.
pub(super) fn is_secret(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    if CONNECTIONS.iter().any(|known| lower.contains(known)) {
        return true;
    }
    let words: Vec<&str> = lower
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    if words.iter().any(|word| HARMLESS_WORDS.contains(word)) {
        return false;
    }
    let ends = ["key", "token", "secret", "password"];
    words
        .iter()
        .any(|word| SECRET_WORDS.contains(word) || ends.iter().any(|end| word.ends_with(end)))
}

/// Splits at `${NAME}`, `${NAME:-default}`, `${input:name}`, `${env:NAME}`, `{{name}}` and
/// `<name>`; a whole text `$NAME` is one too. `{NAME}` counts where `known` knows it.
pub(super) fn split(text: &str, known: &dyn Fn(&str) -> bool) -> Vec<Piece> {
    if let Some(name) = text.strip_prefix('$')
        && is_variable(name)
    {
        return vec![value(name, None)];
    }
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let Some((found, after)) = placeholder(rest, known) else {
            plain.push(first);
            rest = rest.get(first.len_utf8()..).unwrap_or_default();
            continue;
        };
        if !plain.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut plain)));
        }
        pieces.push(found);
        rest = after;
    }
    if !plain.is_empty() {
        pieces.push(Piece::Text(plain));
    }
    pieces
}

/// The placeholder that a text starts with, and what follows it.
fn placeholder<'a>(text: &'a str, known: &dyn Fn(&str) -> bool) -> Option<(Piece, &'a str)> {
    if let Some(rest) = text.strip_prefix("{{") {
        let (inside, after) = rest.split_once("}}")?;
        // Docker writes filters behind a bar: `{{paths|volume|into}}`.
        let name = inside.split('|').next()?.trim();
        return is_name(name).then(|| (value(name, None), after));
    }
    if let Some(rest) = text.strip_prefix("${") {
        let (inside, after) = rest.split_once('}')?;
        let inside = ["input:", "env:", "config:"]
            .iter()
            .find_map(|prefix| inside.strip_prefix(prefix))
            .unwrap_or(inside);
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        return is_name(name).then(|| (value(name, default), after));
    }
    if let Some(rest) = text.strip_prefix('{') {
        let (name, after) = rest.split_once('}')?;
        return known(name).then(|| (value(name, None), after));
    }
    if let Some(rest) = text.strip_prefix('<') {
        let (name, after) = rest.split_once('>')?;
        let is_words = name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | ' ' | '.'));
        let fits = is_words && name.starts_with(|c: char| c.is_ascii_alphabetic());
        return fits.then(|| (value(name, None), after));
    }
    None
}

/// Whether a literal only shows where a value belongs, as in `YOUR_API_KEY` or `sk-xxxx`.
pub(super) fn is_sample(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let starts = [
        "your", "my-", "my_", "insert", "replace", "<", "path/to", "/path/to",
    ];
    starts.iter().any(|start| lower.starts_with(start))
        || lower.contains("xxx")
        || lower.contains("your-")
        || lower.contains("your_")
        || lower.contains("/path/to/")
}

fn value(name: &str, default: Option<&str>) -> Piece {
    Piece::Value {
        name: name.trim().to_owned(),
        default: default.map(str::to_owned),
    }
}

fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ' ');
    !name.trim().is_empty() && name.chars().all(fits)
}

fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
        && name
            .chars()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn shown(text: &str) -> String {
        let pieces = split(text, &|name| name == "KNOWN");
        let show = |piece: &Piece| match piece {
            Piece::Text(text) => text.clone(),
            Piece::Value { name, default } => match default {
                Some(default) => format!("[{name}={default}]"),
                None => format!("[{name}]"),
            },
        };
        pieces.iter().map(show).collect()
    }

    #[test]
    fn placeholders_of_all_kinds_are_found() {
        for (text, expected) in [
            ("Bearer ${TOKEN}", "Bearer [TOKEN]"),
            ("${PORT:-8080}/x", "[PORT=8080]/x"),
            ("${input:api-key}", "[api-key]"),
            ("{{slack.team_id}}", "[slack.team_id]"),
            ("{{fs.paths|volume|into}}", "[fs.paths]"),
            ("$HOME", "[HOME]"),
            ("<your key>", "[your key]"),
            ("{KNOWN}-{other}", "[KNOWN]-{other}"),
            ("a < b > c ${} $x {{", "a < b > c ${} $x {{"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    #[test]
    fn secrets_are_told_from_settings_by_their_names() {
        for name in [
            "SLACK_BOT_TOKEN",
            "apiKey",
            "GITHUB_PAT",
            "X-Api-Key",
            "DATABASE_URL",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in ["SLACK_TEAM_ID", "KEYCLOAK_URL", "TOKEN_LIMIT", "KEY_PATH"] {
            assert!(!is_secret(name), "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in any::<String>()) {
            let _ = split(&text, &|_| true);
        }
    }
}
