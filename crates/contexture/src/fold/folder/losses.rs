//! What a fold had no room for, said aloud.

use super::{FoldDecision, Folder, ShownLines, cut};
use crate::fold::view::Chunk;

/// Most files that are named as not fitting, to the model and in a reason.
const MAX_NAMED_PATHS: usize = 4;

/// Most tokens of the sentence that tells the model what does not fit.
pub(super) const LEFT_OUT_TOKENS: u64 = 80;

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
    /// Then it is tried again with every request. Remembering that it was tried would be one more thing to restore
    /// after a restart.
    pub(super) fn fold_if_harmless(&mut self, reason: &str) {
        let fold = self.build_fold(reason);
        if fold.left_out.is_empty() {
            self.apply_fold(&fold);
            self.decisions.push(FoldDecision::Fold(fold));
        }
    }

    /// The sentence that tells the model; nothing if there was room for all.
    pub(super) fn tell_left_out(&self, paths: &[String]) -> String {
        if paths.is_empty() {
            return String::new();
        }
        let text = format!("Some of your own changes do not fit here, in {} files: {}\n", paths.len(), named(paths));
        cut(&*self.counter, &text, LEFT_OUT_TOKENS)
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
        let files = if left_out.len() == 1 { "1 file".to_owned() } else { format!("{} files", left_out.len()) };
        reason.push_str(&format!("; the agent's own changes in {files} do not fit: {}", named(left_out)));
    }
    reason
}

/// The last few of some paths.
fn named(paths: &[String]) -> String {
    paths[paths.len().saturating_sub(MAX_NAMED_PATHS)..].join(", ")
}
