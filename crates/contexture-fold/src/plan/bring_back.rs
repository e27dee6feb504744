//! Brings back what is known of files and names that are touched or named again, at the window's end.

use std::sync::Arc;

use super::echoes::echoes;
use super::parts::{shown_lines, view_bytes_in};
use crate::decision::{BringBack, FoldDecision};
use crate::digest::lost_on_disk;
use crate::knowledge::TouchedFiles;
use crate::settings::FoldSettings;
use crate::state::State;
use crate::view::{self, Chunk};
use crate::written::BROUGHT_BACK_TITLE;
use contexture_files::model::FileState;
use contexture_text::fit::{Made, fit};

/// One part in this many of what may be brought back is for lines of outputs.
const ECHOES_PART: u64 = 4;

/// Brings back what is known of the files that were just touched or named and is not in the window. If only a line of a
/// file was named, that is what surrounds the line.
pub(super) fn bring_back(settings: &FoldSettings, state: &mut State) -> Option<FoldDecision> {
    let TouchedFiles { files, pointed_at } = state.knowledge.touched();
    let news = news(state, &[files.as_slice(), pointed_at.as_slice()].concat());
    let touched = hiding(state, files);
    let files = hiding(state, touched.iter().copied().chain(pointed_at).collect());
    let state = &*state;
    let left = settings.policy.budget.saturating_sub(state.shown.tokens());
    let room = left.min(settings.tuning.touch_tokens);
    let echoes = echoes(settings, state, room / ECHOES_PART);
    if files.is_empty() && news.is_empty() && echoes.is_empty() {
        return None;
    }
    let chunks = state.knowledge.chunks(&files, state.conversation.now());
    let is_wanted = |chunk: &Chunk| {
        let lines = chunk.lines(state.knowledge.model());
        let hidden = lines.iter().filter(|line| !state.shown.shows(line)).count();
        let is_asked_for = touched.contains(&chunk.file) || chunk.signs.is_pointed_at;
        is_asked_for && hidden * 2 > lines.len() && !chunk.signs.is_hit
    };
    let is_out: Vec<bool> = chunks.iter().map(|chunk| !is_wanted(chunk)).collect();
    let view = match files.is_empty() && news.is_empty() {
        true => None,
        false => render_within(settings, state, &chunks, &is_out, (&news, room - settings.meter.text(&echoes))),
    };
    let (text, shown) = match view {
        Some((text, chosen)) => (format!("{text}{echoes}").into(), shown_lines(&chunks, &chosen)),
        None if echoes.is_empty() => return None,
        None => (echoes.into(), Vec::new()),
    };
    Some(FoldDecision::BringBack(BringBack { at: state.conversation.len(), text, shown }))
}

/// Lists what a comparison just found missing from the disk, for some files.
fn news(state: &State, files: &[usize]) -> String {
    let model = state.knowledge.model();
    let is_new = |file: &FileState, at: u32| {
        at == state.conversation.now() && model.place(&file.path).is_some_and(|place| files.contains(&place))
    };
    lost_on_disk(model, |file, change| is_new(file, change.at))
}

/// Returns the files of which more is known than the window shows, each once. All of them are cut now, which leaves
/// less work for the next fold.
fn hiding(state: &mut State, mut files: Vec<usize>) -> Vec<usize> {
    files.sort_unstable();
    files.dedup();
    state.knowledge.cut(&files);
    files.retain(|file| state.shown.is_folded() && hides_lines(state, *file));
    files
}

/// Whether lines of a file are known that are not in the window. Lines that only a search showed do not count.
fn hides_lines(state: &State, file: usize) -> bool {
    let segments = state.knowledge.model().files()[file].segments.iter().filter(|segment| !segment.is_hit);
    segments.flat_map(|segment| &segment.lines).any(|line| !state.shown.shows(line))
}

/// Chooses chunks and renders them, within a number of tokens.
fn render_within(
    settings: &FoldSettings,
    state: &State,
    chunks: &[Chunk],
    is_out: &[bool],
    (news, tokens): (&str, u64),
) -> Option<(Arc<str>, Vec<usize>)> {
    let fitting = fit(tokens, view_bytes_in(state, tokens), |bytes| {
        let chosen = view::choose(chunks, is_out, f64::NEG_INFINITY, bytes.saturating_sub(BROUGHT_BACK_TITLE.len()));
        let listed = view::with_neighbours(chunks, is_out, &chosen);
        let listed: Vec<&Chunk> = listed.iter().map(|index| &chunks[*index]).collect();
        let text: Arc<str> =
            format!("{BROUGHT_BACK_TITLE}{news}{}", view::render(state.knowledge.model(), &listed).text).into();
        let (bytes, tokens) = (view::bytes(chunks, &chosen), settings.meter.made(&text));
        Made { made: (text, chosen), bytes, tokens }
    });
    fitting.filter(|(_, chosen)| !chosen.is_empty() || !news.is_empty())
}
