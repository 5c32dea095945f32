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

/// Whether a result is over its cap.
pub(crate) fn is_over(result: &Map<String, Value>, chars_max: usize) -> bool {
    chars_max < counted(result)
}

/// Cuts a result to about `chars_max` characters of JSON and says so in its `_meta`. Blocks stay
/// whole but for their text; when all texts are short, blocks without pictures and sound go, from
/// the end. The data of pictures and sound is not text: it neither counts nor is it cut.
pub(crate) fn cap(result: &mut Map<String, Value>, chars_max: usize) -> Option<Truncated> {
    let chars = counted(result);
    if chars <= chars_max {
        return None;
    }
    if let Some(structured) = result.remove("structuredContent") {
        // A cut inside would break its schema: it goes as a whole. By the protocol's rule the text
        // says the same; where there is none, its JSON becomes the text.
        let content = result.entry("content").or_insert_with(|| json!([]));
        if let Value::Array(blocks) = content
            && blocks.is_empty()
        {
            blocks.push(json!({"type": "text", "text": structured.to_string()}));
        }
    }
    let surplus = counted(result).saturating_sub(chars_max);
    if let Some(Value::Array(content)) = result.get_mut("content") {
        cut_texts(content, surplus);
    }
    let surplus = counted(result).saturating_sub(chars_max);
    if let Some(Value::Array(content)) = result.get_mut("content") {
        drop_blocks(content, surplus);
    }
    let kept = counted(result);
    let mark = json!({"characters": chars, "kept": kept});
    match result.get_mut("_meta") {
        Some(Value::Object(meta)) => {
            meta.insert(TRUNCATED_KEY.to_owned(), mark);
        }
        _ => {
            result.insert("_meta".to_owned(), json!({ TRUNCATED_KEY: mark }));
        }
    }
    Some(Truncated { chars, kept })
}

/// Characters of a result as JSON, about, data of pictures and sound left out.
fn counted(result: &Map<String, Value>) -> usize {
    let blocks = result.get("content").and_then(Value::as_array);
    let data: usize = blocks.into_iter().flatten().map(data_length).sum();
    let all: usize = result.values().map(length).sum();
    all.saturating_sub(data)
}

/// Length of the encoded picture, sound or file of a block.
fn data_length(block: &Value) -> usize {
    let data = match block.get("type").and_then(Value::as_str) {
        Some("image" | "audio") => block.get("data"),
        Some("resource") => block.pointer("/resource/blob"),
        _ => None,
    };
    data.and_then(Value::as_str).map_or(0, str::len)
}

/// Takes `surplus` characters from the longest texts: all over some length are cut to it.
fn cut_texts(content: &mut [Value], surplus: usize) {
    let mut lengths: Vec<usize> = content
        .iter()
        .filter_map(text_of)
        .map(length_of)
        .filter(|length| TEXT_CHARS_MIN < *length)
        .collect();
    lengths.sort_unstable_by(|a, b| b.cmp(a));
    let (mut level, mut sum) = (TEXT_CHARS_MIN, 0);
    for (count, length) in (1_usize..).zip(&lengths) {
        sum += length;
        let needed = surplus + count * length_of(MARK);
        let next = lengths.get(count).copied().unwrap_or(TEXT_CHARS_MIN);
        // Cutting the `count` longest down to the next one frees enough.
        if needed <= sum.saturating_sub(next * count) {
            level = (sum - needed) / count;
            break;
        }
    }
    for block in content {
        if let Some(text) = text_of(block)
            && level < length_of(text)
        {
            let cut = cut(text, level);
            set_text(block, cut);
        }
    }
}

fn drop_blocks(content: &mut Vec<Value>, mut surplus: usize) {
    for at in (0..content.len()).rev() {
        if surplus == 0 {
            return;
        }
        if content.get(at).is_some_and(|block| data_length(block) == 0) {
            let block = content.remove(at);
            surplus = surplus.saturating_sub(1 + length(&block));
        }
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
    let mut chars = 0;
    let end = text.bytes().position(|byte| {
        chars += written(byte);
        chars_max < chars
    });
    // The byte that is too much starts a character: the others count nothing.
    let kept = text.get(..end.unwrap_or(text.len())).unwrap_or_default();
    format!("{kept}{MARK}")
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
    text.bytes().map(written).sum()
}

/// Characters that JSON needs for one byte of text.
fn written(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        0..=0x1f => 6,
        // The bytes behind the first of a character.
        0x80..=0xbf => 0,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            other => panic!("{other}"),
        }
    }

    fn texts(lengths: &[usize]) -> Map<String, Value> {
        let block = |length: &usize| json!({"type": "text", "text": "x".repeat(*length)});
        object(json!({"content": lengths.iter().map(block).collect::<Vec<_>>()}))
    }

    #[test]
    fn a_result_at_the_cap_is_left_alone_and_one_past_it_is_cut() {
        let mut result = texts(&[1_000]);
        let chars = counted(&result);
        assert_eq!(cap(&mut result, chars), None);
        assert_eq!(result, texts(&[1_000]));
        let truncated = cap(&mut result, chars - 1).unwrap();
        assert_eq!(truncated.chars, chars);
        assert_eq!(
            result["_meta"][TRUNCATED_KEY],
            json!({"characters": chars, "kept": truncated.kept})
        );
        assert!(
            result["content"][0]["text"]
                .as_str()
                .unwrap()
                .ends_with(MARK)
        );
    }

    #[test]
    fn the_longest_text_is_cut_first() {
        let mut result = texts(&[300, 5_000, 200]);
        cap(&mut result, 2_000).unwrap();
        assert_eq!(result["content"][0]["text"], "x".repeat(300));
        assert_eq!(result["content"][2]["text"], "x".repeat(200));
        assert!(result["content"][1]["text"].as_str().unwrap().len() < 1_500);
    }

    #[test]
    fn a_picture_neither_counts_nor_is_cut() {
        let picture =
            json!({"type": "image", "data": "A".repeat(100_000), "mimeType": "image/png"});
        let mut result = object(json!({"content": [picture]}));
        assert_eq!(cap(&mut result, 1_000), None);
        let mut result =
            object(json!({"content": [{"type": "text", "text": "y".repeat(9_000)}, picture]}));
        assert!(cap(&mut result, 1_000).is_some());
        assert_eq!(result["content"][1], picture);
    }

    #[test]
    fn structured_content_goes_as_a_whole_and_alone_becomes_text() {
        let rows: Vec<u32> = (0..5_000).collect();
        let both = json!({"content": [{"type": "text", "text": "short"}], "structuredContent": {"rows": rows}});
        let mut result = object(both);
        cap(&mut result, 1_000).unwrap();
        assert_eq!(result["content"][0]["text"], "short");
        assert!(!result.contains_key("structuredContent"));
        let mut result = object(json!({"content": [], "structuredContent": {"rows": rows}}));
        cap(&mut result, 1_000).unwrap();
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("{\"rows\":[0,1,2,"));
    }

    proptest! {
        #[test]
        fn no_result_stays_over_its_cap(
            texts in proptest::collection::vec("(\\PC|[\"\n]){0,400}", 0..40),
            max in 600_usize..4_000,
        ) {
            let block = |text: &String| json!({"type": "text", "text": text});
            let blocks: Vec<_> = texts.iter().map(block).collect();
            let mut result = object(json!({"content": blocks, "isError": false}));
            let whole = Value::Object(result.clone());
            let truncated = cap(&mut result, max);
            if truncated.is_some() {
                prop_assert!(counted(&result) <= max + 150, "{}", counted(&result));
            } else {
                prop_assert_eq!(Value::Object(result), whole);
            }
        }
    }
}
