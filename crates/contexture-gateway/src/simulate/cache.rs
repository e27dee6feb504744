//! The prefix cache of a provider, for bodies as they are sent.

use contexture::wire::Format;
pub use contexture::wire::prefix_cache::Took;
use contexture::wire::prefix_cache::{CacheKind, Prefix, ProviderCache};
use serde_json::{Value, json};

/// How many tokens a provider counts for a block.
pub type Counting = fn(&Value) -> u64;

/// The cache of a provider.
pub struct Cache {
    held: ProviderCache<blake3::Hash>,
    counting: Option<Counting>,
}

impl Default for Cache {
    fn default() -> Self {
        Self::with_life(0)
    }
}

impl Cache {
    /// Creates a cache whose entries expire when they are not used for this many milliseconds.
    pub fn with_life(life_ms: u64) -> Self {
        Self { held: ProviderCache::new(life_ms, 1), counting: None }
    }

    /// Counts tokens otherwise than by bytes divided by four.
    pub fn counting(self, counting: Counting) -> Self {
        Self { counting: Some(counting), ..self }
    }

    /// Serves a request at the given time.
    pub fn serve(&mut self, format: Format, body: &str, now_ms: u64) -> Took {
        // A body that is not JSON is never cached.
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        let (prefixes, mut marks) = chain(blocks_of(format, &body), self.counting);
        // A request may leave the mark at its end to the provider.
        if body["cache_control"].is_object() {
            marks.extend(prefixes.len().checked_sub(1));
        }
        let kind = if format == Format::Messages { CacheKind::Marked } else { CacheKind::Automatic };
        self.held.serve(kind, &prefixes, &marks, now_ms)
    }
}

fn blocks_of(format: Format, body: &Value) -> Vec<Value> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let texts = |value: &Value| match value {
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        value => list(value),
    };
    let mut blocks = list(&body["tools"]);
    match format {
        Format::Messages => {
            blocks.extend(texts(&body["system"]));
            for message in list(&body["messages"]) {
                blocks.extend(texts(&message["content"]).into_iter().map(|block| said_by(block, &message["role"])));
            }
        }
        Format::Chat => blocks.extend(list(&body["messages"]).into_iter().map(parsed)),
        Format::Responses => {
            blocks.extend(texts(&body["instructions"]));
            blocks.extend(texts(&body["input"]).into_iter().map(parsed));
        }
        Format::Gemini => {
            blocks.insert(0, body["systemInstruction"].clone());
            for content in list(&body["contents"]) {
                blocks.extend(list(&content["parts"]).into_iter().map(|part| said_by(part, &content["role"])));
            }
        }
    }
    blocks
}

/// A block with the role of its message.
fn said_by(mut block: Value, role: &Value) -> Value {
    if let Some(fields) = block.as_object_mut() {
        fields.insert("role".to_owned(), role.clone());
    }
    block
}

/// Parses arguments into values, because a provider's template writes them in its own form.
fn parsed(mut message: Value) -> Value {
    if !message.is_object() {
        return message;
    }
    let parse = |value: &mut Value| {
        if let Some(parsed) = value.as_str().and_then(|text| serde_json::from_str(text).ok()) {
            *value = parsed;
        }
    };
    for call in message["tool_calls"].as_array_mut().into_iter().flatten() {
        call.pointer_mut("/function/arguments").into_iter().for_each(parse);
    }
    if message.get("arguments").is_some() {
        parse(&mut message["arguments"]);
    }
    message
}

/// The prefixes of a request up to each of its blocks, and which of them are marked.
fn chain(values: Vec<Value>, counting: Option<Counting>) -> (Vec<Prefix<blake3::Hash>>, Vec<usize>) {
    let mut before = Prefix { key: blake3::hash(b""), blocks: 0, size: 0 };
    let (mut prefixes, mut marks) = (Vec::new(), Vec::new());
    for mut value in values {
        let is_marked = value.as_object_mut().is_some_and(|fields| fields.remove("cache_control").is_some());
        let text = value.to_string();
        let mut hasher = blake3::Hasher::new();
        hasher.update(before.key.as_bytes()).update(text.as_bytes());
        let tokens = counting.map_or(text.len() as u64 / 4, |count| count(&value));
        before = Prefix { key: hasher.finalize(), blocks: before.blocks + 1, size: before.size + tokens };
        marks.extend(is_marked.then_some(prefixes.len()));
        prefixes.push(before);
    }
    (prefixes, marks)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Serves two bodies one after the other, and returns how much of the second was read.
    fn read_of(format: Format, first: &Value, second: &Value) -> u64 {
        let mut cache = Cache::with_life(1_000);
        assert_eq!(cache.serve(format, &first.to_string(), 0).read, 0);
        cache.serve(format, &second.to_string(), 1).read
    }

    #[test]
    fn instructions_are_counted_and_a_change_of_them_is_noticed() {
        let text = "do as you are told ".repeat(400);
        let input = json!([{"role": "user", "content": "go on ".repeat(1_000)}]);
        let body = |instructions: &str| json!({"instructions": instructions, "input": input});
        let took = Cache::with_life(1_000).serve(Format::Responses, &body(&text).to_string(), 0);
        assert!(took.total() >= (text.len() + 6_000) as u64 / 4, "{took:?}");
        assert!(read_of(Format::Responses, &body(&text), &body(&text)) > text.len() as u64 / 4);
        assert_eq!(read_of(Format::Responses, &body(&text), &body("something else")), 0);
    }

    #[test]
    fn a_system_prompt_and_an_input_that_are_bare_texts_are_counted() {
        let text = "do as you are told ".repeat(400);
        let mark = json!({"type": "ephemeral"});
        let said = json!([{"role": "user", "content": [{"type": "text", "text": "go on", "cache_control": mark}]}]);
        let body = |system: &str| json!({"system": system, "messages": said});
        assert!(read_of(Format::Messages, &body(&text), &body(&text)) > text.len() as u64 / 4);
        assert_eq!(read_of(Format::Messages, &body(&text), &body("something else")), 0);
        let took = Cache::with_life(1_000).serve(Format::Responses, &json!({"input": text}).to_string(), 0);
        assert!(took.total() >= text.len() as u64 / 4, "{took:?}");
    }
}
