//! What is known of files that are touched or named again, put at the window's end.

use std::sync::Arc;

use super::{Folder, Line, Recall, shown_lines};
use crate::fold::view::{self, Chunk};
use crate::fold::window::Slot;

/// What stands over known lines that a touch brings back.
const RECALL_TITLE: &str = "# What you know of this file besides\n";

impl Folder {
    /// What is known of the files that were just touched or named, and is not in the window. Of files of which only a
    /// line was named, that is what stands around it.
    pub(super) fn recall_touched(&mut self) -> Option<Recall> {
        let (touched, pointed_at) = (std::mem::take(&mut self.touched), std::mem::take(&mut self.pointed_at));
        let touched = self.hiding(touched);
        let files = self.hiding(touched.iter().copied().chain(pointed_at).collect());
        if files.is_empty() {
            return None;
        }
        let room = self.policy.budget.saturating_sub(self.window.total()).min(self.policy.touch_tokens);
        let now = self.messages.len();
        let chunks = self.weighed_chunks(&files);
        let is_wanted = |chunk: &Chunk| {
            let lines = chunk.lines(&self.model);
            let hidden = lines.iter().filter(|line| !self.is_visible(line)).count();
            let is_asked_for = touched.contains(&chunk.file) || chunk.signs.is_pointed_at;
            is_asked_for && hidden * 2 > lines.len() && !chunk.signs.is_hit
        };
        let shown: Vec<bool> = chunks.iter().map(|chunk| !is_wanted(chunk)).collect();
        let (text, chosen) = self.render_within(&chunks, &shown, room)?;
        Some(Recall { at: now, text, shown: shown_lines(&chunks, &chosen) })
    }

    /// Those of some files of which more is known than the window shows, each once. All of them are cut now: that
    /// leaves a fold with less to do at once.
    fn hiding(&mut self, mut files: Vec<usize>) -> Vec<usize> {
        files.sort_unstable();
        files.dedup();
        self.cuts.refresh(&self.model, &mut self.vocabulary, &files);
        files.retain(|file| self.start > 0 && self.hides_lines(*file));
        files
    }

    /// Whether lines are known of a file that do not stand in the window. Mere hits of searches do not count.
    fn hides_lines(&self, file: usize) -> bool {
        let segments = self.model.files()[file].segments.iter().filter(|segment| !segment.is_hit);
        segments.flat_map(|segment| &segment.lines).any(|line| !self.is_visible(line))
    }

    /// Whether a line stands in the window: in the messages from `start` on, or in a view.
    fn is_visible(&self, line: &Line) -> bool {
        // A line that was computed stands in no message.
        (line.seen as usize > self.start && !line.is_computed) || (line.shown > 0 && self.visible.contains(&line.shown))
    }

    /// Chooses chunks and renders them, within a number of tokens.
    fn render_within(&self, chunks: &[Chunk], shown: &[bool], tokens: u64) -> Option<(Arc<str>, Vec<usize>)> {
        let fitting = self.fit(tokens, self.view_bytes_in(tokens), |bytes| {
            let chosen = view::choose(chunks, shown, f64::NEG_INFINITY, bytes.saturating_sub(RECALL_TITLE.len()));
            let listed = view::with_neighbours(chunks, shown, &chosen);
            let listed: Vec<&Chunk> = listed.iter().map(|index| &chunks[*index]).collect();
            let text: Arc<str> = format!("{RECALL_TITLE}{}", view::render(&self.model, &listed)).into();
            let count = self.counts.of(&text);
            let taken = view::bytes(chunks, &chosen);
            ((text, chosen), taken, count)
        });
        fitting.filter(|(_, chosen)| !chosen.is_empty())
    }

    /// Puts it there, as it was decided.
    pub(super) fn apply_recall(&mut self, recall: &Recall) {
        self.mark(&recall.shown);
        self.visible.push(self.marks);
        let slot = Slot::Made(recall.text.clone());
        let tokens = self.slot_tokens(&slot);
        self.window.push(slot, tokens);
    }
}
