//! What a fold replaces the past with.

use super::frame::FoldFrame;
use super::losses;
use super::parts::{View, shown_lines};
use super::selection::Selection;
use crate::decision::{Fold, Piece, ShownLines, ViewPart};
use crate::outline;
use crate::policy::FoldWhen;
use crate::settings::FoldSettings;
use crate::shown::HeadItem;
use crate::state::State;
use crate::view::{self, Chunk};
use crate::written::OUTLINE_TITLE;
use contexture_text::fit::{Made, fit};

/// Why the past is folded now.
#[derive(Clone, Copy)]
pub(super) struct Occasion {
    pub(super) when: FoldWhen,
    pub(super) reason: &'static str,
}

/// Decides what replaces the past from now on. All files must have been cut.
pub(super) fn plan(settings: &FoldSettings, state: &State, frame: FoldFrame, occasion: Occasion) -> Fold {
    let mut chunks = state.knowledge.chunks(&state.knowledge.all_files(), state.conversation.now());
    pin(settings, state, &mut chunks);
    let view = View::choose(settings, state, &frame, &chunks);
    finish(settings, state, frame, view, &chunks, occasion)
}

/// Marks the chunks of pinned files.
fn pin(settings: &FoldSettings, state: &State, chunks: &mut [Chunk]) {
    let files = state.knowledge.model().files();
    let is_pinned: Vec<bool> = files.iter().map(|file| settings.policy.pins.has_path(&file.path)).collect();
    chunks.iter_mut().for_each(|chunk| chunk.signs.is_pinned = is_pinned[chunk.file]);
}

fn finish(
    settings: &FoldSettings,
    state: &State,
    frame: FoldFrame,
    view: View,
    chunks: &[Chunk],
    occasion: Occasion,
) -> Fold {
    // What is new of the selection since what stays, and then the views that are new or changed.
    let is_part = |head: Option<&HeadItem>| head == Some(&HeadItem::Part);
    let standing = (0..view.keep).filter(|index| !is_part(state.shown.head().get(*index))).count();
    let Selection { pieces, cut, .. } = frame.selection;
    let mut head: Vec<Piece> = pieces.into_iter().skip(standing).collect();
    let mut parts = state.shown.parts()[..view.kept].to_vec();
    let mut shown: Vec<Vec<ShownLines>> = Vec::new();
    let mut in_window = view.is_shown.clone();
    for part in view.added {
        part.chunks.iter().for_each(|index| in_window[*index] = true);
        let lines = shown_lines(chunks, &part.chunks);
        let mark = state.shown.next_mark() + shown.len() as u32;
        let count = lines.iter().map(|lines| lines.count).sum();
        let bytes = view::bytes(chunks, &part.chunks);
        parts.push(ViewPart { mark, lines: count, bytes, message: state.conversation.now(), claims: part.claims });
        head.push(Piece::Made(part.text));
        shown.push(lines);
    }
    let left_out = losses::left_out(state.knowledge.model(), chunks, &view.is_shown, &shown);
    let outline = outline(settings, state, chunks, &in_window, frame.outline_tokens);
    let digest = format!("{}{outline}{}", frame.digest, losses::tell(settings, &left_out));
    if !digest.is_empty() {
        head.push(Piece::Made(digest.into()));
    }
    let mut fold = Fold {
        at: state.conversation.len(),
        keep: view.keep,
        head,
        start: frame.start,
        parts,
        shown,
        when: occasion.when,
        reason: losses::reason(
            occasion.reason,
            frame.start < state.conversation.len(),
            frame.shortened.len(),
            &cut,
            &left_out,
        ),
        cut_said: cut.said,
        cut_told: cut.told,
        cut_records: Vec::new(),
        shortened: frame.shortened,
        left_out,
        before_tokens: state.shown.tokens(),
        after_tokens: 0,
        cost: 0.0,
        saves_per_request: 0.0,
    };
    price(settings, state, &mut fold);
    fold
}

/// The outlines of what is known but not in the window, within a number of tokens.
fn outline(settings: &FoldSettings, state: &State, chunks: &[Chunk], in_window: &[bool], tokens: u64) -> String {
    let model = state.knowledge.model();
    let fitting = fit(tokens, tokens as usize * 4, |bytes| {
        let body = outline::outline(model, chunks, |index| in_window[index], bytes.saturating_sub(OUTLINE_TITLE.len()));
        let text = if body.is_empty() { body } else { format!("{OUTLINE_TITLE}{body}") };
        let (bytes, tokens) = (text.len(), settings.meter.text(&text));
        Made { made: text, bytes, tokens }
    });
    fitting.unwrap_or_default()
}

/// Computes what a fold costs and saves.
fn price(settings: &FoldSettings, state: &State, fold: &mut Fold) {
    let kept: u64 = state.shown.items()[..fold.keep].iter().map(|item| item.tokens).sum();
    let head: u64 = fold.head.iter().map(|piece| state.piece_tokens(settings, piece)).sum();
    let cut = |at: usize| fold.shortened.iter().find(|(cut, _)| *cut == at).map(|(_, text)| text);
    let tokens = |at: usize| match cut(at) {
        Some(text) => settings.meter.made(text),
        None => state.shown.after_fold(at, &state.conversation).tokens,
    };
    let recent: u64 = (fold.start..state.conversation.len()).map(tokens).sum();
    let prices = settings.policy.prices;
    fold.after_tokens = kept + head + recent;
    let rewritten = if state.billing.is_cold() { 0 } else { head + recent };
    fold.cost = thousandths((prices.write - prices.read) * rewritten as f64);
    let spared = fold.before_tokens.saturating_sub(fold.after_tokens);
    fold.saves_per_request = thousandths(prices.read * spared as f64);
}

/// Rounds a price to thousandths, for display.
fn thousandths(price: f64) -> f64 {
    (price * 1_000.0).round() / 1_000.0
}
