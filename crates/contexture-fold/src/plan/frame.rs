//! Everything that a fold shows besides the view of files.

use std::sync::Arc;

use super::losses::LEFT_OUT_TOKENS;
use super::outputs::shortened;
use super::said::level;
use super::selection::Selection;
use crate::brief::MARK_NOTE;
use crate::conversation::{ItemSpeaker, text_of};
use crate::digest::lost_on_disk;
use crate::settings::FoldSettings;
use crate::shown::ShownItem;
use crate::state::State;
use crate::tuning::{EXCHANGES_SHARE, FREE_SHARE, LEAST_EXCHANGES, MOST_SAID_SHARE};
use crate::written::LOST_TITLE;

/// A fold before its view is chosen.
pub(super) struct FoldFrame {
    /// The first item that is shown in its own place.
    pub(super) start: usize,
    /// What is shown of the items before it.
    pub(super) selection: Selection,
    /// What the mark of cuts means, and which files changed on the disk.
    pub(super) digest: String,
    /// Most tokens of the outlines of what is known but not shown.
    pub(super) outline_tokens: u64,
    /// Items from `start` on that are cut.
    pub(super) shortened: Vec<(usize, Arc<str>)>,
    /// Tokens of all of it.
    pub(super) tokens: u64,
}

/// How much a fold must leave out: more at each level, and the last one always fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reduction {
    /// Everything that normally has room.
    None,
    /// Only the newest step, its outputs cut.
    Step,
    /// The same, cut more.
    Hard,
    /// No item in its own place.
    All,
}

const REDUCTIONS: [Reduction; 4] = [Reduction::None, Reduction::Step, Reduction::Hard, Reduction::All];

impl FoldFrame {
    /// Returns the frame of a fold that nothing forces: nothing is left out. `None` if it leaves no room for a view.
    pub(super) fn unforced(settings: &FoldSettings, state: &State) -> Option<Self> {
        let frame = reduced(settings, state, Reduction::None, None);
        Some(frame).filter(|frame| frame.tokens <= most(settings))
    }

    /// Returns the least reduced frame that leaves room for a view.
    pub(super) fn forced(settings: &FoldSettings, state: &State) -> Self {
        let most = most(settings);
        let mut frames =
            REDUCTIONS.into_iter().map(|reduction| (reduction, reduced(settings, state, reduction, Some(most))));
        let fitting = frames.find(|(reduction, frame)| frame.tokens <= most || *reduction == Reduction::All);
        fitting.expect("the last reduction is always taken").1
    }
}

/// Most tokens of a window after a fold.
fn most(settings: &FoldSettings) -> u64 {
    (settings.policy.budget as f64 * (1.0 - FREE_SHARE)) as u64
}

/// Builds a frame; without a limit, the dialogue is whole.
fn reduced(settings: &FoldSettings, state: &State, reduction: Reduction, most: Option<u64>) -> FoldFrame {
    let budget = settings.policy.budget;
    let start = recent_start(settings, state, reduction);
    let limit = match reduction {
        Reduction::None => u64::MAX,
        Reduction::Step => budget / 4,
        Reduction::Hard | Reduction::All => budget / 12,
    };
    let limit = match reduction {
        // Many calls at once: each output is cut to what fits, before no message is shown in its own place.
        Reduction::Hard => limit.min(level(cuttable(state, start), budget / MOST_STEP_PART)),
        _ => limit,
    };
    let recent = RecentItems::new(settings, state, start, limit);
    let mut digest = digest(settings, state);
    if reduction >= Reduction::Hard && settings.meter.text(&digest) > budget / 8 {
        digest.clear();
    }
    let outline_tokens = if reduction == Reduction::None { settings.tuning.outline_tokens } else { 0 };
    let beside = LEFT_OUT_TOKENS + outline_tokens + settings.meter.text(&digest) + recent.tokens;
    let share = (budget as f64 * MOST_SAID_SHARE) as u64;
    let selection = match most.map(|most| most.saturating_sub(beside).min(share).max(budget / 8)) {
        Some(room) => Selection::within(settings, state, start, room),
        None => Selection::whole(settings, state, start),
    };
    let tokens = beside + selection.tokens;
    FoldFrame { start, selection, digest, outline_tokens, shortened: recent.shortened, tokens }
}

/// One part in this many of the budget is left to the outputs of a step that must be cut hard.
const MOST_STEP_PART: u64 = 3;

/// The tokens of the items from a position on whose texts may be cut.
fn cuttable(state: &State, start: usize) -> impl Iterator<Item = u64> {
    let items = (start..state.conversation.len()).filter(|at| !state.conversation.is_pinned(*at));
    items
        .map(|at| state.shown.after_fold(at, &state.conversation))
        .filter(|shown| text_of(&shown.item).is_some())
        .map(|shown| shown.tokens)
}

/// The items that are kept in their own place, none with a text longer than a number of tokens.
struct RecentItems {
    shortened: Vec<(usize, Arc<str>)>,
    tokens: u64,
}

impl RecentItems {
    fn new(settings: &FoldSettings, state: &State, start: usize, limit: u64) -> Self {
        let mut recent = Self { shortened: Vec::new(), tokens: 0 };
        for at in start..state.conversation.len() {
            let ShownItem { tokens, .. } = state.shown.after_fold(at, &state.conversation);
            // A thought is sent as it came.
            let can_cut = !state.conversation.is_pinned(at) && text_of(state.conversation.item(at)).is_some();
            let is_long = can_cut && tokens > limit && settings.meter.text(&state.conversation.text(at)) > limit;
            if !is_long {
                recent.tokens += tokens;
                continue;
            }
            let text = shortened(settings, state, at, limit);
            recent.tokens += settings.meter.made(&text);
            recent.shortened.push((at, text));
        }
        recent
    }
}

/// Returns the first item that is kept in its own place.
fn recent_start(settings: &FoldSettings, state: &State, reduction: Reduction) -> usize {
    let len = state.conversation.len();
    if reduction == Reduction::All {
        return len;
    }
    let (most, exchanges) = match reduction {
        Reduction::None => (settings.tuning.recent_tokens, LEAST_EXCHANGES),
        _ => (0, 1),
    };
    // A model that sees no call beside records would write records.
    let most_for_exchanges = (settings.policy.budget as f64 * EXCHANGES_SHARE) as u64;
    let mut start = len;
    let (mut tokens, mut seen) = (0, 0);
    for at in (state.shown.start()..len).rev() {
        tokens += state.shown.of_log(at, &state.conversation).tokens;
        let has_enough = tokens > most && (seen >= exchanges || tokens > most_for_exchanges);
        if has_enough && start < len {
            break;
        }
        seen += usize::from(state.conversation.speaker(at) == ItemSpeaker::Tool);
        if state.conversation.can_begin_at(at) {
            start = at;
        }
    }
    start
}

/// What the mark of cuts means, and which files changed on the disk.
fn digest(settings: &FoldSettings, state: &State) -> String {
    let shows = settings.output_tool.as_ref().map(|tool| format!("[{tool} shows what has a #]\n"));
    let lost = lost_on_disk(state.knowledge.model(), |_, _| true);
    let lost = if lost.is_empty() { lost } else { format!("{LOST_TITLE}\n{lost}\n") };
    format!("{MARK_NOTE}{}{lost}", shows.unwrap_or_default())
}
