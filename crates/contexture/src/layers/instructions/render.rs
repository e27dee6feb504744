//! Instructions as the model reads them.

use std::sync::Arc;

use contexture_core::LayerId;
use contexture_core::item::Item;
use contexture_core::tokens::TokenCounter;
use contexture_core::window::fence_for;

use super::MAX_BYTES;
use contexture_text::block::{clipped, fit_parts};
use contexture_text::one_line::one_line;

/// The start of every block.
const INTRODUCTION: &str = "Instructions of this project and its user. The later ones are nearer to the work and win.";
/// How many omitted files are listed.
const MAX_NAMES: usize = 20;
/// The smallest part of a file that is worth showing.
const MIN_BYTES: usize = 64;
/// A sample text, to detect that the counter has changed.
const PROBE: &str = "fn probe(text: &str) -> usize { text.len() } // 0123456789";

/// The text of one file.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct InstructionSection {
    pub(super) name: String,
    /// The file that imports it.
    pub(super) by: Option<String>,
    pub(super) text: Arc<str>,
}

/// A hash of the inputs of a block.
pub(super) fn key(
    sections: &[InstructionSection],
    problems: &[String],
    budget: u64,
    counter: &dyn TokenCounter,
) -> [u8; 32] {
    let mut hash = blake3::Hasher::new();
    let mut add = |bytes: &[u8]| {
        hash.update(&(bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    for section in sections {
        add(section.name.as_bytes());
        add(section.text.as_bytes());
    }
    problems.iter().for_each(|problem| add(problem.as_bytes()));
    add(&budget.to_le_bytes());
    add(counter.name().as_bytes());
    add(&counter.count(PROBE).to_le_bytes());
    *hash.finalize().as_bytes()
}

/// The block within a number of tokens and within [`MAX_BYTES`]: the farthest files are dropped first.
pub(super) fn block(
    counter: &dyn TokenCounter,
    layer: &LayerId,
    sections: &[InstructionSection],
    problems: &[String],
    tokens: u64,
) -> Option<String> {
    let mut bytes = 0;
    let within = sections.iter().rev().take_while(|section| {
        bytes += section.text.len();
        bytes <= MAX_BYTES
    });
    let most = within.count();
    let fitting = fit_parts(counter, layer, tokens, most, |shown| text(sections, problems, shown, usize::MAX));
    // If not even the nearest file fits whole, a part of it is more useful than its name.
    let shows_none = |text: &String| !text.contains("\n## ");
    if sections.is_empty() || !fitting.as_ref().is_none_or(shows_none) {
        return fitting;
    }
    let mut limit = sections.last().map_or(0, |section| section.text.len()).min(MAX_BYTES);
    while limit >= MIN_BYTES {
        let part = text(sections, problems, 1, limit);
        if fit_parts(counter, layer, tokens, 0, |_| part.clone()).is_some_and(|fitting| fitting == part) {
            return Some(part);
        }
        limit = limit * 3 / 4;
    }
    fitting
}

/// The nearest `shown` sections, farthest first, each with a limit of bytes.
fn text(sections: &[InstructionSection], problems: &[String], shown: usize, limit: usize) -> String {
    let (left, shown) = sections.split_at(sections.len() - shown);
    let mut text = INTRODUCTION.to_owned();
    for section in shown {
        let by = section.by.as_ref().map(|by| format!(", imported by `{}`", one_line(by))).unwrap_or_default();
        let body = clipped(&section.text, limit);
        let fence = fence_for(&body);
        text.push_str(&format!("\n## `{}`{by}\n{fence}\n{body}\n{fence}", one_line(&section.name)));
    }
    if !left.is_empty() {
        let size =
            |section: &InstructionSection| format!("`{}` ({} bytes)", one_line(&section.name), section.text.len());
        let mut names: Vec<String> = left.iter().take(MAX_NAMES).map(size).collect();
        if left.len() > MAX_NAMES {
            names.push(format!("and {} more", left.len() - MAX_NAMES));
        }
        text.push_str(&format!("\nLeft out for lack of room, read them if you need them: {}.", names.join(", ")));
    }
    if !problems.is_empty() {
        let problems: Vec<String> = problems.iter().map(|problem| format!("`{}`", one_line(problem))).collect();
        text.push_str(&format!("\nNot read: {}.", problems.join(", ")));
    }
    text
}

/// The changed files, if that is shorter than all of them.
pub(super) fn delta(pinned: &[Arc<Item>], current: &[Arc<Item>]) -> Option<String> {
    let text =
        |items: &[Arc<Item>]| -> String { items.iter().filter_map(|item| Some(item.as_message()?.text())).collect() };
    let (old, new) = (text(pinned), text(current));
    let (old, new) = (parts(&old), parts(&new));
    let mut delta = String::new();
    for part in new.iter().filter(|part| !old.contains(part)) {
        delta.push_str(part);
        delta.push('\n');
    }
    let heading = |part: &str| part.lines().next().unwrap_or_default().to_owned();
    for gone in old.iter().map(|part| heading(part)).filter(|gone| !new.iter().any(|part| heading(part) == *gone)) {
        delta.push_str(&format!("{gone} does not hold any more.\n"));
    }
    let whole: usize = new.iter().map(|part| part.len()).sum();
    (!delta.is_empty() && delta.len() < whole * 2 / 3).then(|| delta.trim_end().to_owned())
}

/// Splits a block into its files, each with its heading.
fn parts(text: &str) -> Vec<&str> {
    let text = text.trim_end().trim_end_matches("</memory>").trim_end();
    let mut starts: Vec<usize> = text.match_indices("\n## `").map(|(at, _)| at + 1).collect();
    starts.push(text.len());
    starts.windows(2).map(|pair| text[pair[0]..pair[1]].trim_end()).collect()
}
