//! Which parts of the view are kept, and which are added.

use std::sync::Arc;

use super::frame::FoldFrame;
use crate::claims::LinesClaim;
use crate::decision::{ShownLines, ViewPart};
use crate::meter::bytes_in;
use crate::settings::FoldSettings;
use crate::shown::{HeadItem, ShownItem};
use crate::state::State;
use crate::tuning::{EXPECTED_REQUESTS, FREE_SHARE, IDLE_SHARE, LEAN_FREE_SHARE, LEAST_LEAN_TOKENS, LEAST_PART_BYTES};
use crate::view::{self, Chunk};
use crate::written::FILES_TITLE;
use contexture_files::model::Line;
use contexture_text::fit::{Made, fit};

/// The title of a part of the view. It names the message, since a part that is kept shows what was known at that time.
fn title(message: u32) -> String {
    format!("{FILES_TITLE}{message}\n")
}

/// The view of a fold.
pub(super) struct View {
    /// How many of the parts in the window are kept.
    pub(super) kept: usize,
    /// How many items at the start of the window stay.
    pub(super) keep: usize,
    /// For each chunk, whether it is in the window without the added parts.
    pub(super) is_shown: Vec<bool>,
    /// What is added after the kept parts.
    pub(super) added: Vec<AddedPart>,
}

/// A part that a fold adds to the view.
pub(super) struct AddedPart {
    pub(super) text: Arc<str>,
    pub(super) claims: Vec<LinesClaim>,
    pub(super) chunks: Vec<usize>,
}

impl View {
    /// Chooses which chunks are shown beside a frame.
    pub(super) fn choose(settings: &FoldSettings, state: &State, frame: &FoldFrame, chunks: &[Chunk]) -> Self {
        let room = view_room(settings, state, frame.tokens);
        let standing = standing(settings, state, frame);
        let kept = kept_parts(settings, state, frame, chunks, (room, standing));
        let marks: Vec<u32> = state.shown.parts()[..kept].iter().map(|part| part.mark).collect();
        let is_shown: Vec<bool> = chunks.iter().map(|chunk| is_shown(state, chunk, frame.start, &marks)).collect();
        let taken: u64 = state.shown.part_items().take(kept).map(|item| item.tokens).sum();
        let added = added_parts(settings, state, chunks, &is_shown, room.saturating_sub(taken));
        Self { kept, keep: change_at(state, kept, standing), is_shown, added }
    }
}

/// The tokens that the view may take beside everything else that a fold shows. It is lean too if each request brings so
/// much that the window would be full again with the next one: what is written anew each time is never read from the cache.
fn view_room(settings: &FoldSettings, state: &State, frame_tokens: u64) -> u64 {
    let beside = |free: f64| (settings.policy.budget as f64 * (1.0 - free)) as u64;
    let usual = beside(FREE_SHARE);
    let is_lean = settings.policy.lean || state.billing.fills_at_once(state.shown.tokens(), settings.policy.budget);
    let most = if is_lean { beside(LEAN_FREE_SHARE).max(LEAST_LEAN_TOKENS).min(usual) } else { usual };
    most.saturating_sub(frame_tokens).min(settings.tuning.view_tokens)
}

/// How many items at the start of the window can stay: as many as are parts of the view, or in the dialogue in the form
/// in which it will be shown.
fn standing(settings: &FoldSettings, state: &State, frame: &FoldFrame) -> usize {
    let mut pieces = frame.selection.pieces.iter();
    let mut is_same = |index: usize, shown: &ShownItem| match state.shown.head().get(index) {
        Some(HeadItem::Part) => true,
        Some(HeadItem::Note) => false,
        Some(HeadItem::Dialogue(piece)) => pieces.next() == Some(piece),
        None => pieces.next().is_some_and(|piece| {
            let new = state.item_of(settings, piece);
            shown.position.is_some() && shown.position == new.position && shown.item == new.item
        }),
    };
    state.shown.items().iter().enumerate().take_while(|(index, shown)| is_same(*index, shown)).count()
}

/// Where the window changes if a number of parts are kept: before the next part, or where it changes anyway.
fn change_at(state: &State, kept: usize, standing: usize) -> usize {
    state.shown.part_indices().nth(kept).map_or(standing, |next| next.min(standing))
}

/// How many parts of the view are kept: as many as cost less to keep than to write again, with the dialogue after them.
///
/// A part with a claim that no longer holds is dropped, and every part after it too.
fn kept_parts(
    settings: &FoldSettings,
    state: &State,
    frame: &FoldFrame,
    chunks: &[Chunk],
    (room_tokens, standing): (u64, usize),
) -> usize {
    if !state.shown.is_folded() || state.billing.is_cold() {
        return 0;
    }
    let parts = state.shown.parts();
    let reachable = state.shown.part_indices().take_while(|index| *index < standing).count();
    let valid = parts.iter().take(reachable).take_while(|part| part.holds(state.knowledge.model())).count();
    let shown: Vec<bool> = chunks.iter().map(|chunk| is_shown(state, chunk, frame.start, &[])).collect();
    let room = bytes_in(room_tokens, state.conversation.texts());
    let least = settings.tuning.least_need(state.conversation.now());
    let fresh = view::choose(chunks, &shown, least, room);
    let slack = room.saturating_sub(view::bytes(chunks, &fresh)) + (room as f64 * IDLE_SHARE) as usize;
    let wanted: Vec<usize> = parts[..valid].iter().map(|part| wanted_bytes(state, part, chunks, &fresh)).collect();
    let idle = |kept: usize| -> usize { (0..kept).map(|index| parts[index].bytes.saturating_sub(wanted[index])).sum() };
    let prices = settings.policy.prices;
    let requests = f64::from(state.billing.requests_since_fold()).max(EXPECTED_REQUESTS);
    let cost = |kept: usize| {
        let rewritten = wanted[kept..].iter().sum::<usize>() + dialogue_bytes(state, change_at(state, kept, standing));
        prices.read * requests * idle(kept) as f64 + (prices.write - prices.read) * rewritten as f64
    };
    let taken = |kept: usize| state.shown.part_items().take(kept).map(|item| item.tokens).sum::<u64>();
    let fitting = (0..=valid).filter(|kept| idle(*kept) <= slack && taken(*kept) <= room_tokens);
    fitting.min_by(|a, b| cost(*a).total_cmp(&cost(*b)).then(b.cmp(a))).unwrap_or(0)
}

/// Bytes of the dialogue from an item of the window on.
fn dialogue_bytes(state: &State, from: usize) -> usize {
    let head = state.shown.head();
    let is_dialogue = |index: &usize| matches!(head[*index], HeadItem::Dialogue(_));
    let tokens = (from.min(head.len())..head.len()).filter(is_dialogue).map(|index| state.shown.items()[index].tokens);
    bytes_in(tokens.sum(), state.conversation.texts())
}

/// Bytes of a part that a new view would show too.
fn wanted_bytes(state: &State, part: &ViewPart, chunks: &[Chunk], fresh: &[usize]) -> usize {
    let model = state.knowledge.model();
    let of_part = |chunk: &&Chunk| chunk.lines(model).iter().all(|line| line.shown == part.mark);
    fresh.iter().map(|index| &chunks[*index]).filter(of_part).map(|chunk| chunk.bytes).sum()
}

/// Whether a chunk is in the new window as one piece: in a kept part, or in one item in its own place.
fn is_shown(state: &State, chunk: &Chunk, start: usize, marks: &[u32]) -> bool {
    let lines = chunk.lines(state.knowledge.model());
    let first = &lines[0];
    if marks.contains(&first.shown) {
        return lines.iter().all(|line| line.shown == first.shown);
    }
    let is_in_place = first.seen > state.conversation.messages_before(start);
    let is_of_item = |line: &Line| line.seen == first.seen && line.edited < line.seen && !line.is_computed;
    is_in_place && lines.iter().all(is_of_item)
}

/// Chooses chunks and renders them as parts of the view, all of them within a number of tokens.
fn added_parts(
    settings: &FoldSettings,
    state: &State,
    chunks: &[Chunk],
    is_shown: &[bool],
    tokens: u64,
) -> Vec<AddedPart> {
    let render = |group: Vec<usize>| {
        let listed = view::with_neighbours(chunks, is_shown, &group);
        let listed: Vec<&Chunk> = listed.iter().map(|index| &chunks[*index]).collect();
        let rendered = view::render(state.knowledge.model(), &listed);
        let text = title(state.conversation.now()) + &rendered.text;
        AddedPart { text: text.into(), claims: rendered.claims, chunks: group }
    };
    let least = settings.tuning.least_need(state.conversation.now());
    let fitting = fit(tokens, view_bytes_in(state, tokens), |bytes| {
        let chosen = view::choose(chunks, is_shown, least, bytes);
        let bytes = view::bytes(chunks, &chosen);
        let parts: Vec<AddedPart> = steadiest_first(state, chunks, chosen).into_iter().map(render).collect();
        let tokens = parts.iter().map(|part| settings.meter.made(&part.text)).sum();
        Made { made: parts, bytes, tokens }
    });
    fitting.unwrap_or_default()
}

/// Groups the chosen chunks by whole files, those least likely to change first, so that at the next fold the groups
/// before the first changed one can be kept.
fn steadiest_first(state: &State, chunks: &[Chunk], chosen: Vec<usize>) -> Vec<Vec<usize>> {
    let mut files: Vec<Vec<usize>> = Vec::new();
    for index in chosen {
        match files.last_mut() {
            Some(list) if chunks[list[0]].file == chunks[index].file => list.push(index),
            _ => files.push(vec![index]),
        }
    }
    files.sort_by_key(|list| {
        let file = &state.knowledge.model().files()[chunks[list[0]].file];
        (file.edited, std::cmp::Reverse(file.touched))
    });
    let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
    for list in files {
        let bytes = view::bytes(chunks, &list);
        match groups.last_mut() {
            Some((size, group)) if *size < LEAST_PART_BYTES => {
                *size += bytes;
                group.extend(list);
            }
            _ => groups.push((bytes, list)),
        }
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// How many bytes of lines a view of a number of tokens can show, judging by the views in the window.
///
/// Views have headings, and their text is denser than talk. A good first guess saves counting twice.
pub(super) fn view_bytes_in(state: &State, tokens: u64) -> usize {
    let bytes: usize = state.shown.parts().iter().map(|part| part.bytes).sum();
    let counted: u64 = state.shown.part_items().map(|item| item.tokens).sum();
    match counted {
        0 => bytes_in(tokens, state.conversation.texts()),
        _ => bytes_in(tokens, (bytes as u64, counted)),
    }
}

/// The lines of chosen chunks.
pub(super) fn shown_lines(chunks: &[Chunk], chosen: &[usize]) -> Vec<ShownLines> {
    let lines = |chunk: &Chunk| ShownLines {
        file: chunk.file,
        segment: chunk.segment,
        first: chunk.lines.start,
        count: chunk.lines.len(),
    };
    chosen.iter().map(|index| lines(&chunks[*index])).collect()
}
