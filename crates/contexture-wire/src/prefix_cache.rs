//! How much of a request a provider reads from its prefix cache, as providers document it: Anthropic's cache marks, and
//! the automatic prefix of OpenAI and Google.

use std::collections::HashMap;
use std::hash::Hash;

use serde_json::{Value, json};

use super::format::Format;

/// How many blocks Anthropic looks at for a prefix that it has, from each mark backwards.
pub const LOOK_BACK: usize = 20;

/// The shortest prefix that is cached, in tokens.
const LEAST_TOKENS: u64 = 1_024;

/// Without marks, whole pieces of so many tokens are read.
const PIECE_TOKENS: u64 = 128;

/// How a provider caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheKind {
    /// Up to marks in the request, and writing has a price.
    Marked,
    /// Whatever prefix it finds.
    Automatic,
}

/// A prefix of a request.
#[derive(Clone, Copy, Debug)]
pub struct Prefix<K> {
    /// The same for the same prefix, and for no other.
    pub key: K,
    /// How many blocks it has.
    pub blocks: usize,
    /// Its size.
    pub size: u64,
}

/// The prefixes that a provider has, with the time of their last use.
#[derive(Clone, Debug)]
pub struct ProviderCache<K> {
    used_ms: HashMap<K, u64>,
    life_ms: u64,
    /// The size of a token.
    token: u64,
}

impl<K: Copy + Eq + Hash> ProviderCache<K> {
    /// An empty cache whose prefixes expire when they are not used for this many milliseconds, for sizes of which `token`
    /// are a token.
    pub fn new(life_ms: u64, token: u64) -> Self {
        Self { used_ms: HashMap::new(), life_ms, token }
    }

    /// Serves a request at the given time. `prefixes` are those of the request, each longer than the one before it and
    /// the last one the whole; `marks` are the places in this list at which the request has marks.
    pub fn serve(&mut self, kind: CacheKind, prefixes: &[Prefix<K>], marks: &[usize], now_ms: u64) -> Took {
        match kind {
            CacheKind::Marked => self.marked(prefixes, marks, now_ms),
            CacheKind::Automatic => self.automatic(prefixes, now_ms),
        }
    }

    /// Drops all prefixes.
    pub fn clear(&mut self) {
        self.used_ms.clear();
    }

    fn holds(&self, prefix: &Prefix<K>, now_ms: u64) -> bool {
        self.used_ms.get(&prefix.key).is_some_and(|used| now_ms.saturating_sub(*used) <= self.life_ms)
    }

    fn marked(&mut self, prefixes: &[Prefix<K>], marks: &[usize], now_ms: u64) -> Took {
        let total = prefixes.last().map_or(0, |whole| whole.size);
        let is_long = |mark: &usize| prefixes[*mark].size >= LEAST_TOKENS * self.token;
        let marks: Vec<usize> = marks.iter().copied().filter(is_long).collect();
        let Some(last) = marks.iter().max().copied() else { return Took { plain: total, ..Took::default() } };
        let is_near = |mark: usize, at: usize| prefixes[mark].blocks - prefixes[at].blocks < LOOK_BACK;
        let near = marks.iter().flat_map(|mark| (0..=*mark).rev().take_while(|at| is_near(*mark, *at)));
        let found = near.filter(|at| self.holds(&prefixes[*at], now_ms)).max();
        let read = found.map_or(0, |at| prefixes[at].size);
        self.used_ms.extend(marks.into_iter().chain(found).map(|at| (prefixes[at].key, now_ms)));
        let marked = prefixes[last].size;
        Took { read, written: marked.saturating_sub(read), plain: total - marked }
    }

    fn automatic(&mut self, prefixes: &[Prefix<K>], now_ms: u64) -> Took {
        let total = prefixes.last().map_or(0, |whole| whole.size);
        let shared = prefixes.iter().take_while(|prefix| self.holds(prefix, now_ms)).last().map_or(0, |held| held.size);
        let piece = PIECE_TOKENS * self.token;
        let read = if shared >= LEAST_TOKENS * self.token { shared / piece * piece } else { 0 };
        self.used_ms.extend(prefixes.iter().map(|prefix| (prefix.key, now_ms)));
        Took { read, written: 0, plain: total - read }
    }
}

/// The sizes of what a request took of its provider, in tokens if those of its prefixes are.
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
