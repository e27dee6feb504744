//! Reports what a fold had no room for.

use contexture_core::window::shorten;

use super::selection::SelectionCuts;
use crate::decision::ShownLines;
use crate::settings::FoldSettings;
use crate::view::Chunk;
use crate::written::LEFT_OUT_START;
use contexture_files::model::FileModel;
use contexture_text::one_line::one_line;

/// Most files that are named as not fitting, to the model and in a decision's reason.
const MAX_NAMED_PATHS: usize = 4;

/// Most tokens of the sentence that tells the model what does not fit.
pub(super) const LEFT_OUT_TOKENS: u64 = 80;

/// Fewer tokens than this of the sentence say nothing.
const LEAST_SENTENCE_TOKENS: u64 = 16;

/// A sentence to the model takes at most one part in this many of the budget.
const SENTENCE_PART: u64 = 12;

/// Returns the pinned files, and those with changes by the agent, that the view has no room for, in the order of the
/// model.
pub(super) fn left_out(
    model: &FileModel,
    chunks: &[Chunk],
    is_shown: &[bool],
    shown: &[Vec<ShownLines>],
) -> Vec<String> {
    let is_in = |chunk: &Chunk| {
        let holds = |lines: &ShownLines| {
            (lines.file, lines.segment, lines.first) == (chunk.file, chunk.segment, chunk.lines.start)
        };
        shown.iter().flatten().any(holds)
    };
    let mut paths: Vec<String> = Vec::new();
    for (chunk, is_shown) in chunks.iter().zip(is_shown) {
        if (chunk.signs.edit_age.is_some() || chunk.signs.is_pinned) && !is_shown && !is_in(chunk) {
            let path = &model.files()[chunk.file].path;
            if !paths.contains(path) {
                paths.push(path.clone());
            }
        }
    }
    paths
}

/// Returns the sentence that tells the model; empty if there was room for everything.
pub(super) fn tell(settings: &FoldSettings, paths: &[String]) -> String {
    if paths.is_empty() {
        return String::new();
    }
    let or_pinned = if settings.policy.pins.is_empty() { "" } else { " or pinned files" };
    let text = format!("{LEFT_OUT_START}{or_pinned} do not fit here, in {}: {}\n", files(paths), named(paths));
    let tokens = LEFT_OUT_TOKENS.min(settings.policy.budget / SENTENCE_PART);
    if tokens < LEAST_SENTENCE_TOKENS { String::new() } else { shorten(settings.meter.counter(), &text, tokens) }
}

/// Describes why a fold was made, and what it could not keep.
pub(super) fn reason(
    why: &str,
    has_recent: bool,
    cut_items: usize,
    cut: &SelectionCuts,
    left_out: &[String],
) -> String {
    let mut reason = why.to_owned();
    if !has_recent {
        reason.push_str("; the newest step alone does not fit, so no message is shown in its own place");
    } else if cut_items > 0 {
        reason.push_str(&format!("; {cut_items} of the newest messages were cut to fit"));
    }
    match cut.said.len() {
        0 => {}
        1 => reason.push_str("; one message that was said or pinned does not fit whole"),
        count => reason.push_str(&format!("; {count} messages that were said or pinned do not fit whole")),
    }
    match cut.told.len() {
        0 => {}
        1 => reason.push_str("; one text of the agent does not fit whole"),
        count => reason.push_str(&format!("; {count} texts of the agent do not fit whole")),
    }
    if cut.has_lost_steps {
        reason.push_str("; the lines of the oldest steps do not fit");
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
    let named = &paths[paths.len().saturating_sub(MAX_NAMED_PATHS)..];
    named.iter().map(|path| one_line(path)).collect::<Vec<_>>().join(", ")
}
