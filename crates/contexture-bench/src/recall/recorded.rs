//! Files of recorded sessions that a later message of the user names again by words of their paths.

use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::sync::Arc;

use contexture::ItemLog;
use contexture::bpe::Bpe;
use contexture::files::dialect::Dialects;
use contexture::item::{Item, Role};
use contexture::recall::{Extent, PastIndex, PastQuery};
use contexture::search::{MemoryIndex, terms};
use contexture_cli::failure::Failure;
use contexture_cli::source;

/// What a message is given for past conversations.
const BUDGET: u64 = 4_000;
/// A file counts only if it was touched at least so many items before the message.
const MIN_DISTANCE: usize = 20;

/// How many files were named again, and found.
#[derive(Clone, Debug, Default)]
pub struct RecordedResult {
    /// Sessions.
    pub sessions: usize,
    /// Messages that name a file again.
    pub messages: usize,
    /// Files that they name.
    pub named: usize,
    /// Those that what fits well brought up.
    pub fitting: usize,
    /// Those that as much as there is room for brought up.
    pub full: usize,
}

/// Measures recordings.
///
/// # Errors
/// There are none, or the index failed.
pub async fn measure(paths: &[PathBuf]) -> Result<RecordedResult, Failure> {
    let mut measure = RecordedResult::default();
    for source in source::find(paths)? {
        let mut items: Vec<Item> = Vec::new();
        if source.read(&mut |record| items.extend(record.into_items())).is_err() {
            continue;
        }
        measure.sessions += 1;
        session(items, &mut measure).await.map_err(|error| Failure::work(error.to_string()))?;
    }
    Ok(measure)
}

async fn session(items: Vec<Item>, measure: &mut RecordedResult) -> Result<(), contexture::search::SearchError> {
    let past = PastIndex::new(Arc::new(MemoryIndex::new()), "thread:session");
    let (counter, dialects) = (Bpe::o200k(), Dialects::default());
    let mut log = ItemLog::new();
    // Each file with the position of its first touch.
    let mut files: Vec<(String, usize)> = Vec::new();
    let mut added = 0;
    for item in items {
        let position = log.len();
        if let Some(message) =
            item.as_message().filter(|message| message.role == Role::User && message.meta.origin.is_said())
        {
            let text = message.text();
            let old: Vec<&str> = files
                .iter()
                .filter(|(path, at)| at + MIN_DISTANCE < position && names(&text, path))
                .map(|(path, _)| path.as_str())
                .collect();
            if !old.is_empty() {
                added += past.add_log("session", &log, added, 0).await.map(|_| log.len() - added)?;
                let newest = position.saturating_sub(MIN_DISTANCE)..usize::MAX;
                measure.messages += 1;
                measure.named += old.len();
                for (extent, found) in [(Extent::Fitting, &mut measure.fitting), (Extent::Full, &mut measure.full)] {
                    let visible = [newest.clone()];
                    let visible = Some(("session", &visible[..]));
                    let query =
                        PastQuery { text: &text, now_ms: 0, budget: BUDGET, counter: &counter, extent, visible };
                    let shown = past.search(query).await?.text;
                    *found += old.iter().filter(|path| shown.contains(name_of(path))).count();
                }
            }
        }
        if let Some(call) = item.as_call() {
            let path = dialects.path(call).filter(|path| !files.iter().any(|(known, _)| known == path));
            files.extend(path.map(|path| (path, position)));
        }
        log.append(item, 1);
    }
    Ok(())
}

fn name_of(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or(path)
}

/// Whether a text has all words of a file's name, without its ending.
fn names(text: &str, path: &str) -> bool {
    let name = name_of(path);
    let stem = name.split('.').find(|part| !part.is_empty()).unwrap_or(name);
    let words: BTreeSet<String> = terms(stem).into_iter().filter(|term| !term.contains('_')).collect();
    let has: HashSet<String> = terms(text).into_iter().collect();
    words.iter().any(|word| word.len() > 3)
        && words.iter().all(|word| has.contains(word) || *word == stem.to_lowercase())
}

impl RecordedResult {
    /// The result in words.
    pub fn text(&self) -> String {
        let share = |found: usize| found as f64 / self.named.max(1) as f64;
        format!(
            "recorded sessions: {} with {} messages that name {} files again; brought up by what fits {:.3}, by all of {BUDGET} tokens {:.3}\n",
            self.sessions,
            self.messages,
            self.named,
            share(self.fitting),
            share(self.full)
        )
    }
}
