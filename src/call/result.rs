//! The cap on a result: cut validly, the longest text first, and marked.

use serde_json::{Map, Value, json};

/// Key of the mark in a cut result's `_meta`.
pub const TRUNCATED_KEY: &str = "toolcrib/truncated";
/// Put behind a text that was cut.
const MARK: &str = "\n[cut by toolcrib]";
/// A text is never cut below this, so that something of each is left.
const TEXT_CHARS_MIN: usize = 100;

/// What was cut from a result.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Truncated {
    /// Characters of the whole result as JSON.
    pub chars: usize,
    /// Characters that are left.
    pub kept: usize,
}

/// Cuts a result to about `chars_max` characters of JSON and says so in its `_meta`. Blocks stay
/// whole but for their text; when all texts are short, blocks go from the end.
pub(crate) fn cap(result: &mut Map<String, Value>, chars_max: usize) -> Option<Truncated> {
    let chars = result.values().map(length).sum::<usize>();
    if chars <= chars_max {
        return None;
    }
    let mut surplus = chars - chars_max;
    if let Some(structured) = result.remove("structuredContent") {
        // A cut inside would break its schema: it goes as a whole. By the protocol's rule the text
        // says the same; where there is none, its JSON becomes the text.
        surplus = surplus.saturating_sub(length(&structured));
        let content = result.entry("content").or_insert_with(|| json!([]));
        if let Value::Array(blocks) = content
            && blocks.is_empty()
        {
            let text = structured.to_string();
            surplus = length_of(&text).saturating_sub(chars_max);
            blocks.push(json!({"type": "text", "text": text}));
        }
    }
    if let Some(Value::Array(content)) = result.get_mut("content") {
        surplus = cut_texts(content, surplus);
        drop_blocks(content, surplus);
    }
    let kept = result.values().map(length).sum::<usize>();
    let truncated = Truncated { chars, kept };
    let mark = json!({"characters": chars, "kept": kept});
    match result.get_mut("_meta") {
        Some(Value::Object(meta)) => {
            meta.insert(TRUNCATED_KEY.to_owned(), mark);
        }
        _ => {
            result.insert("_meta".to_owned(), json!({ TRUNCATED_KEY: mark }));
        }
    }
    Some(truncated)
}

/// Takes from the longest text first: all texts over some length are cut to it.
fn cut_texts(content: &mut [Value], surplus: usize) -> usize {
    let mut lengths: Vec<usize> = content
        .iter()
        .map(|block| text_of(block).map_or(0, length_of))
        .collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    let mut level = TEXT_CHARS_MIN;
    let mut over = 0;
    for (count, length) in (1_usize..).zip(&lengths) {
        over += length;
        let next = lengths.get(count).copied().unwrap_or(0).max(TEXT_CHARS_MIN);
        // Cutting the `count` longest to the next length frees this much.
        if surplus + MARK.len() * count <= over.saturating_sub(next * count) {
            level = (over.saturating_sub(surplus + MARK.len() * count) / count).max(TEXT_CHARS_MIN);
            break;
        }
    }
    let mut left = surplus;
    for block in content {
        let Some(text) = text_of(block) else { continue };
        let before = length_of(text);
        if before <= level {
            continue;
        }
        let cut = cut(text, level);
        left = left.saturating_sub(before.saturating_sub(length_of(&cut)));
        set_text(block, cut);
        if left == 0 {
            break;
        }
    }
    left
}

fn drop_blocks(content: &mut Vec<Value>, mut surplus: usize) {
    while 0 < surplus
        && let Some(block) = content.pop()
    {
        surplus = surplus.saturating_sub(length(&block));
    }
}

/// The text of a text block or of an embedded text resource.
fn text_of(block: &Value) -> Option<&str> {
    block
        .get("text")
        .or_else(|| block.get("resource")?.get("text"))?
        .as_str()
}

fn set_text(block: &mut Value, text: String) {
    let place = match block.get("text") {
        Some(_) => block.get_mut("text"),
        None => block
            .get_mut("resource")
            .and_then(|resource| resource.get_mut("text")),
    };
    if let Some(place) = place {
        *place = Value::String(text);
    }
}

/// The start of a text that takes at most `chars_max` characters as JSON.
fn cut(text: &str, chars_max: usize) -> String {
    let mut kept = String::new();
    let mut chars = 0;
    for character in text.chars() {
        chars += written(character);
        if chars_max < chars {
            break;
        }
        kept.push(character);
    }
    kept.push_str(MARK);
    kept
}

/// Characters of a value as JSON, about.
fn length(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(number) => number.to_string().len(),
        Value::String(text) => 2 + length_of(text),
        Value::Array(items) => 2 + items.iter().map(|item| 1 + length(item)).sum::<usize>(),
        Value::Object(map) => {
            let pairs = map
                .iter()
                .map(|(key, value)| 4 + length_of(key) + length(value));
            2 + pairs.sum::<usize>()
        }
    }
}

fn length_of(text: &str) -> usize {
    text.chars().map(written).sum()
}

/// Characters that JSON needs for one.
fn written(character: char) -> usize {
    match character {
        '"' | '\\' | '\n' | '\r' | '\t' => 2,
        '\0'..='\u{1f}' => 6,
        _ => 1,
    }
}
