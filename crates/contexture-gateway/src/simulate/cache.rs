//! An exact simulation of a provider's prefix cache: Anthropic's cache marks, and the automatic prefix of
//! OpenAI and Google.

use std::collections::HashMap;

use contexture::wire::Format;
use serde_json::{Value, json};

/// How many blocks before a mark are looked up.
pub(crate) const LOOK_BACK: usize = 20;

/// The shortest prefix that is cached.
pub(super) const LEAST: u64 = 1024;

/// How many tokens a provider counts for a block.
pub type Counting = fn(&Value) -> u64;

/// The cached prefixes by hash, with the time of last use.
#[derive(Default)]
pub struct Cache {
    prefixes: HashMap<blake3::Hash, u64>,
    life_ms: u64,
    counting: Option<Counting>,
}

/// The usage of a request, in tokens: bytes divided by four, unless they are counted otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Took {
    /// Read from the cache.
    pub read: u64,
    /// Written to the cache, where that has a price.
    pub written: u64,
    /// The rest of the input.
    pub plain: u64,
}

impl Took {
    /// The cost, in tokens at the plain input price.
    pub fn bill(&self, format: Format) -> f64 {
        let write = if format == Format::Messages { 1.25 } else { 1.0 };
        self.read as f64 * 0.1 + self.written as f64 * write + self.plain as f64
    }

    /// The total.
    pub fn total(&self) -> u64 {
        self.read + self.written + self.plain
    }

    /// The usage as the provider reports it.
    pub fn usage(&self, format: Format, output: u64) -> Value {
        match format {
            Format::Messages => {
                json!({"input_tokens": self.plain, "cache_read_input_tokens": self.read, "cache_creation_input_tokens": self.written, "output_tokens": output})
            }
            Format::Chat => {
                json!({"prompt_tokens": self.total(), "completion_tokens": output, "total_tokens": self.total() + output, "prompt_tokens_details": {"cached_tokens": self.read}})
            }
            Format::Gemini => {
                json!({"promptTokenCount": self.total(), "candidatesTokenCount": output, "totalTokenCount": self.total() + output, "cachedContentTokenCount": self.read})
            }
            Format::Responses => {
                json!({"input_tokens": self.total(), "output_tokens": output, "total_tokens": self.total() + output, "input_tokens_details": {"cached_tokens": self.read}})
            }
        }
    }
}

/// A block as the cache sees it.
struct CacheBlock {
    hash: blake3::Hash,
    tokens: u64,
    is_marked: bool,
}

impl Cache {
    /// Creates a cache whose entries expire when they are not used for this many milliseconds.
    pub fn with_life(life_ms: u64) -> Self {
        Self { life_ms, ..Self::default() }
    }

    /// Counts tokens otherwise than by bytes.
    pub fn counting(self, counting: Counting) -> Self {
        Self { counting: Some(counting), ..self }
    }

    /// Serves a request at the given time.
    pub fn serve(&mut self, format: Format, body: &str, now_ms: u64) -> Took {
        // A body that is not JSON is never cached.
        let body: Value = serde_json::from_str(body).unwrap_or_default();
        let mut blocks = chain(blocks_of(format, &body), self.counting);
        // A request may leave the mark at its end to the provider.
        if let Some(last) = blocks.last_mut().filter(|_| body["cache_control"].is_object()) {
            last.is_marked = true;
        }
        match format {
            Format::Messages => self.marked(&blocks, now_ms),
            _ => self.automatic(&blocks, now_ms),
        }
    }

    fn holds(&self, hash: &blake3::Hash, now_ms: u64) -> bool {
        self.prefixes.get(hash).is_some_and(|used| now_ms - used <= self.life_ms)
    }

    fn marked(&mut self, blocks: &[CacheBlock], now_ms: u64) -> Took {
        let before = |end: usize| blocks[..end].iter().map(|block| block.tokens).sum::<u64>();
        let marks: Vec<usize> =
            (0..blocks.len()).filter(|at| blocks[*at].is_marked && before(*at + 1) >= LEAST).collect();
        let Some(last) = marks.last().copied() else { return Took { plain: before(blocks.len()), ..Took::default() } };
        let found = marks.iter().rev().flat_map(|mark| (mark.saturating_sub(LOOK_BACK - 1)..=*mark).rev());
        let found = found.filter(|at| self.holds(&blocks[*at].hash, now_ms)).max();
        let read = found.map_or(0, |at| before(at + 1));
        for at in marks.iter().copied().chain(found) {
            self.prefixes.insert(blocks[at].hash, now_ms);
        }
        Took { read, written: before(last + 1).saturating_sub(read), plain: before(blocks.len()) - before(last + 1) }
    }

    fn automatic(&mut self, blocks: &[CacheBlock], now_ms: u64) -> Took {
        let total: u64 = blocks.iter().map(|block| block.tokens).sum();
        let shared = blocks.iter().take_while(|block| self.holds(&block.hash, now_ms));
        let shared: u64 = shared.map(|block| block.tokens).sum();
        let read = if shared >= LEAST { shared / 128 * 128 } else { 0 };
        for block in blocks {
            self.prefixes.insert(block.hash, now_ms);
        }
        Took { read, written: 0, plain: total - read }
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

fn chain(values: Vec<Value>, counting: Option<Counting>) -> Vec<CacheBlock> {
    let mut before = blake3::hash(b"");
    let mut blocks = Vec::new();
    for mut value in values {
        let is_marked = value.as_object_mut().is_some_and(|fields| fields.remove("cache_control").is_some());
        let text = value.to_string();
        let mut hasher = blake3::Hasher::new();
        hasher.update(before.as_bytes()).update(text.as_bytes());
        before = hasher.finalize();
        let tokens = counting.map_or(text.len() as u64 / 4, |count| count(&value));
        blocks.push(CacheBlock { hash: before, tokens, is_marked });
    }
    blocks
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
