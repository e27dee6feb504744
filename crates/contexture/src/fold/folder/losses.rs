//! What a fold had no room for, said aloud.

use super::{FoldDecision, Folder, ShownLines, cut};
use crate::fold::view::Chunk;

/// Most files that are named as not fitting, to the model and in a reason.
const MAX_NAMED_PATHS: usize = 4;

/// Most tokens of the sentence that tells the model what does not fit.
pub(super) const LEFT_OUT_TOKENS: u64 = 80;

/// A fold that nothing forces is tried once in so many requests.
const TRY_EVERY_REQUESTS: u32 = 3;

/// A sentence to the model takes at most one part in this many of the budget.
const SENTENCE_PART: u64 = 12;

impl Folder {
    /// The files with changes of the agent's own that the view has no room for, in the order of the model.
    pub(super) fn left_out(&self, chunks: &[Chunk], is_shown: &[bool], shown: &[Vec<ShownLines>]) -> Vec<String> {
        let is_in = |chunk: &Chunk| {
            let holds = |lines: &ShownLines| {
                (lines.file, lines.segment, lines.first) == (chunk.file, chunk.segment, chunk.lines.start)
            };
            shown.iter().flatten().any(holds)
        };
        let mut paths: Vec<String> = Vec::new();
        for (chunk, is_shown) in chunks.iter().zip(is_shown) {
            if chunk.signs.edit_age.is_some() && !is_shown && !is_in(chunk) {
                let path = &self.model.files()[chunk.file].path;
                if !paths.contains(path) {
                    paths.push(path.clone());
                }
            }
        }
        paths
    }

    /// Folds, unless that would leave out what the agent wrote: nothing but the budget may do so.
    ///
    /// It is tried with every few requests only, since trying takes time. Remembering that it was tried would be one
    /// more thing to restore after a restart.
    pub(super) fn fold_if_harmless(&mut self, reason: &str) {
        if !self.requests_since_fold.is_multiple_of(TRY_EVERY_REQUESTS) {
            return;
        }
        let fold = self.build_fold(reason);
        if fold.left_out.is_empty() && self.can_afford(fold.cost) {
            self.apply_fold(&fold);
            self.decisions.push(FoldDecision::Fold(fold));
        }
    }

    /// The sentence that tells the model; nothing if there was room for all.
    pub(super) fn tell_left_out(&self, paths: &[String]) -> String {
        if paths.is_empty() {
            return String::new();
        }
        let text = format!("Some of your own changes do not fit here, in {}: {}\n", files(paths), named(paths));
        cut(&*self.counter, &text, LEFT_OUT_TOKENS.min(self.policy.budget / SENTENCE_PART))
    }
}

/// Why a fold was made, and what it could not keep.
pub(super) fn reason(why: &str, has_tail: bool, cut_messages: usize, left_out: &[String]) -> String {
    let mut reason = why.to_owned();
    if !has_tail {
        reason.push_str("; the newest step alone does not fit, so nothing stands in its own place");
    } else if cut_messages > 0 {
        reason.push_str(&format!("; {cut_messages} of the newest messages were cut to fit"));
    }
    if !left_out.is_empty() {
        reason.push_str(&format!("; the agent's own changes in {} do not fit: {}", files(left_out), named(left_out)));
    }
    reason
}

fn files(paths: &[String]) -> String {
    if paths.len() == 1 { "1 file".to_owned() } else { format!("{} files", paths.len()) }
}

/// The last few of some paths.
fn named(paths: &[String]) -> String {
    paths[paths.len().saturating_sub(MAX_NAMED_PATHS)..].join(", ")
}
