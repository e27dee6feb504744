//! Texts of files in memory, each kept once however many references there are.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::state::ContentHash;
use super::words::TextSketch;
use crate::redact::redact;

/// How many bytes of text are kept in memory. The rest is read again when needed.
const MAX_CACHED_BYTES: usize = 64 * 1024 * 1024;

/// Larger texts are hashed on a blocking thread.
const INLINE_BYTES: usize = 256 * 1024;

/// A text with its derived data.
pub(super) struct SketchedText {
    pub(super) hash: ContentHash,
    pub(super) text: Arc<str>,
    pub(super) line_count: u32,
    pub(super) words: Arc<TextSketch>,
}

impl SketchedText {
    /// Takes the secrets out of the text of a file, and derives its data.
    pub(super) async fn of(text: String) -> SketchedText {
        let text: Arc<str> = text.into();
        if text.len() > INLINE_BYTES
            && let Ok(threads) = tokio::runtime::Handle::try_current()
        {
            let shared = text.clone();
            let looked_through = threads.spawn_blocking(move || SketchedText::new(shared)).await;
            return looked_through.unwrap_or_else(|_| SketchedText::new(text));
        }
        SketchedText::new(text)
    }

    fn new(read: Arc<str>) -> SketchedText {
        let text = match redact(&read) {
            Cow::Borrowed(_) => read.clone(),
            Cow::Owned(redacted) => redacted.into(),
        };
        SketchedText {
            hash: ContentHash(*blake3::hash(text.as_bytes()).as_bytes()),
            line_count: count_lines(&text),
            words: Arc::new(TextSketch::of(&text)),
            text,
        }
    }
}

/// The number of lines; the last one needs no line end.
fn count_lines(text: &str) -> u32 {
    let ends = text.bytes().filter(|byte| *byte == b'\n').count();
    let lines = ends + usize::from(!text.is_empty() && !text.ends_with('\n'));
    u32::try_from(lines).unwrap_or(u32::MAX)
}

/// The texts in memory.
#[derive(Default)]
pub(super) struct Contents {
    kept: Mutex<TextCache>,
}

#[derive(Default)]
struct TextCache {
    texts: HashMap<ContentHash, (Arc<SketchedText>, u64)>,
    bytes: usize,
    /// Counts uses, to find the least recently used text.
    uses: u64,
}

impl Contents {
    /// Returns the text with this hash, if it is in memory.
    pub(super) fn get(&self, hash: &ContentHash) -> Option<Arc<SketchedText>> {
        let mut kept = self.lock();
        kept.uses += 1;
        let uses = kept.uses;
        let (content, used) = kept.texts.get_mut(hash)?;
        *used = uses;
        Some(content.clone())
    }

    /// Adds a text, and evicts the least recently used ones if there is not enough space.
    pub(super) fn keep(&self, content: SketchedText) -> Arc<SketchedText> {
        let mut kept = self.lock();
        kept.uses += 1;
        let uses = kept.uses;
        if let Some((known, used)) = kept.texts.get_mut(&content.hash) {
            *used = uses;
            return known.clone();
        }
        let content = Arc::new(content);
        kept.bytes += content.text.len();
        kept.texts.insert(content.hash, (content.clone(), uses));
        if kept.bytes > MAX_CACHED_BYTES {
            kept.forget_oldest();
        }
        content
    }

    fn lock(&self) -> MutexGuard<'_, TextCache> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TextCache {
    /// Frees a quarter of the space at once, so that it is not done for every text.
    fn forget_oldest(&mut self) {
        let mut by_age: Vec<(u64, ContentHash)> = self.texts.iter().map(|(hash, (_, used))| (*used, *hash)).collect();
        by_age.sort_unstable_by_key(|(used, _)| *used);
        for (_, hash) in by_age {
            if self.bytes <= MAX_CACHED_BYTES / 4 * 3 {
                break;
            }
            if let Some((content, _)) = self.texts.remove(&hash) {
                self.bytes -= content.text.len();
            }
        }
    }
}
