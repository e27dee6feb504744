//! Puts the bands of a window in order, and compares it with the previous request.

use std::sync::Arc;

use super::bands::Bands;
use super::input::WindowInput;
use super::output::{Section, Window};
use super::shown::ProjectedItem;
use crate::item::Item;
use crate::usage::{Band, StepUsage};

/// The previous window.
#[derive(Clone, Debug, Default)]
pub(super) struct Last {
    items: Vec<Arc<Item>>,
    /// How many of the items were anchors and history.
    history_end: usize,
    /// The fingerprint of the system prompt and the tools before them.
    system: Option<u64>,
}

impl Last {
    /// Builds the window and keeps it for the next comparison.
    pub(super) fn lay_out(
        &mut self,
        input: &WindowInput<'_>,
        bands: &Bands,
        shown: Vec<ProjectedItem>,
        available: u64,
    ) -> Window {
        let all = bands.anchors().chain(shown.iter().map(|shown| &shown.item)).chain(bands.after_history(input.blocks));
        let kept = all.zip(&self.items).take_while(|(new, old)| Arc::ptr_eq(new, old) || new == old).count();
        let anchor_end = bands.anchors().count();
        let mut usage = usage(input, bands, &shown, available);
        usage.kept_items = kept;
        if self.system == Some(input.system_fingerprint) {
            usage.kept_tokens = usage.system + usage.tools;
            if let Some(history) = kept.checked_sub(anchor_end) {
                let history = shown.iter().take(history).map(|shown| shown.tokens);
                usage.kept_tokens += usage.anchor + history.sum::<u64>();
            }
        }
        let history = Section { band: Band::History, layer: None, items: shown.len(), tokens: usage.history };
        let sections = bands.sections(input.blocks, history);
        let mut items = Vec::with_capacity(anchor_end + shown.len() + 2 * input.blocks.len() + 2);
        items.extend(bands.anchors().cloned());
        items.extend(shown.into_iter().map(|shown| shown.item));
        let history_end = items.len();
        items.extend(bands.after_history(input.blocks).cloned());
        let breakpoints = self.breakpoints(anchor_end, kept, history_end);
        self.items.truncate(kept);
        self.items.extend_from_slice(&items[kept..]);
        (self.history_end, self.system) = (history_end, Some(input.system_fingerprint));
        Window { items, breakpoints, usage, sections, decisions: Vec::new() }
    }

    /// After the system prompt, after the anchors, where history ended last time, and where it ends now.
    fn breakpoints(&self, anchor_end: usize, kept: usize, history_end: usize) -> Vec<usize> {
        let mut breakpoints = vec![0, anchor_end];
        breakpoints.extend(Some(self.history_end).filter(|end| (anchor_end..=kept.min(history_end)).contains(end)));
        breakpoints.push(history_end);
        breakpoints.dedup();
        breakpoints
    }
}

fn usage(input: &WindowInput<'_>, bands: &Bands, shown: &[ProjectedItem], available: u64) -> StepUsage {
    StepUsage {
        budget: input.policy.token_budget,
        response_reserve: input.policy.response_reserve,
        system: input.system_tokens,
        tools: input.tools_tokens,
        anchor: bands.anchor_tokens,
        history: shown.iter().map(|shown| shown.tokens).sum(),
        history_allocated: available - bands.tokens(),
        live: bands.live_tokens,
        updates: bands.updates_tokens(),
        tail: bands.tail_tokens(),
        layers: bands.layer_usages(input.blocks),
        ..StepUsage::default()
    }
}
