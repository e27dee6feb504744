//! Everything that a fold shows besides the view of files.

use std::sync::Arc;

use super::losses::LEFT_OUT_TOKENS;
use super::outputs::{cut, shortened};
use crate::fold::conversation::Speaker;
use crate::fold::decision::Piece;
use crate::fold::digest::changed_files;
use crate::fold::settings::Settings;
use crate::fold::shown::ShownItem;
use crate::fold::state::State;
use crate::fold::tuning::FREE_SHARE;

/// A fold before its view is chosen.
pub(super) struct Frame {
    /// The first item that is shown in its own place.
    pub(super) start: usize,
    /// The messages with which the conversation opened.
    pub(super) opening: Vec<Piece>,
    /// What the user asked last, if it would not be shown otherwise.
    pub(super) ask: Option<Piece>,
    /// What happened, in short.
    pub(super) digest: String,
    /// Most tokens of the outlines of what is known but not shown.
    pub(super) outline_tokens: u64,
    /// Items from `start` on that are cut.
    pub(super) shortened: Vec<(usize, Arc<str>)>,
    /// Tokens of all of it.
    pub(super) tokens: u64,
}

/// How hard a fold has to try: each level leaves out more, and the last one always fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Squeeze {
    /// Everything there is room for as usual.
    None,
    /// Only the newest step, its outputs cut.
    Step,
    /// The same cut harder, without the opening.
    Hard,
    /// No item in its own place.
    All,
}

const SQUEEZES: [Squeeze; 4] = [Squeeze::None, Squeeze::Step, Squeeze::Hard, Squeeze::All];

impl Frame {
    /// The least squeezed frame that leaves room.
    pub(super) fn new(settings: &Settings, state: &State) -> Self {
        let most = (settings.policy.budget as f64 * (1.0 - FREE_SHARE)) as u64;
        let mut frames = SQUEEZES.into_iter().map(|squeeze| (squeeze, squeezed(settings, state, squeeze)));
        let fitting = frames.find(|(squeeze, frame)| frame.tokens <= most || *squeeze == Squeeze::All);
        fitting.expect("the last squeeze is always taken").1
    }
}

fn squeezed(settings: &Settings, state: &State, squeeze: Squeeze) -> Frame {
    let budget = settings.policy.budget;
    let start = recent_start(settings, state, squeeze);
    let opening = if squeeze >= Squeeze::Hard { Vec::new() } else { opening(settings, state, start) };
    let ask = newest_ask(state, opening.len(), start);
    let mut digest = digest(settings, state, start, ask);
    let ask = ask.map(|at| piece_within(settings, state, at, settings.tuning.users_tokens));
    if squeeze >= Squeeze::Hard {
        digest = cut(&settings.meter, &digest, budget / 4);
    }
    let limit = match squeeze {
        Squeeze::None => u64::MAX,
        Squeeze::Step => budget / 4,
        Squeeze::Hard | Squeeze::All => budget / 12,
    };
    let outline_tokens = if squeeze == Squeeze::None { settings.tuning.outline_tokens } else { 0 };
    let said: u64 = opening.iter().chain(&ask).map(|piece| state.piece_tokens(settings, piece)).sum();
    let recent = Recent::new(settings, state, start, limit);
    let tokens = LEFT_OUT_TOKENS + outline_tokens + settings.meter.text(&digest) + said + recent.tokens;
    Frame { start, opening, ask, digest, outline_tokens, shortened: recent.shortened, tokens }
}

/// The items that stay in their own place, none with a text of more than a number of tokens.
struct Recent {
    shortened: Vec<(usize, Arc<str>)>,
    tokens: u64,
}

impl Recent {
    fn new(settings: &Settings, state: &State, start: usize, limit: u64) -> Self {
        let mut recent = Self { shortened: Vec::new(), tokens: 0 };
        for at in start..state.conversation.len() {
            let ShownItem { tokens, .. } = state.shown.after_fold(at, &state.conversation);
            let is_long = tokens > limit && settings.meter.text(&state.conversation.text(at)) > limit;
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

/// The first item that stays in its own place.
fn recent_start(settings: &Settings, state: &State, squeeze: Squeeze) -> usize {
    let len = state.conversation.len();
    if squeeze == Squeeze::All {
        return len;
    }
    let most = if squeeze == Squeeze::None { settings.tuning.recent_tokens } else { 0 };
    let mut start = len;
    let mut tokens = 0;
    for at in (state.shown.start()..len).rev() {
        tokens += state.shown.of_log(at, &state.conversation).tokens;
        if tokens > most && start < len {
            break;
        }
        if state.conversation.can_begin_at(at) {
            start = at;
        }
    }
    start
}

/// The messages with which the conversation opened: short ones whole, long ones cut to equal shares of the rest.
fn opening(settings: &Settings, state: &State, start: usize) -> Vec<Piece> {
    let said = state.conversation.opening().min(start);
    let mut sizes: Vec<u64> = (0..said).map(|at| state.conversation.item_tokens(at)).collect();
    sizes.sort_unstable();
    let mut left = settings.tuning.opening_tokens;
    let mut share = 0;
    for (index, size) in sizes.iter().enumerate() {
        share = left / (said - index) as u64;
        left -= share.min(*size);
    }
    (0..said).map(|at| piece_within(settings, state, at, share)).collect()
}

/// An item as it is, or cut to a number of tokens.
fn piece_within(settings: &Settings, state: &State, at: usize, tokens: u64) -> Piece {
    if state.conversation.item_tokens(at) <= tokens {
        return Piece::Logged(at);
    }
    Piece::Shortened(at, shortened(settings, state, at, tokens))
}

/// The position of the newest thing that a person said, if it is neither in the opening nor shown in its own place.
///
/// It is what the agent works on, so it stays a message of its own until the next fold. An engine that always shows
/// it would otherwise put it back into the window, and take it out again with the next message.
fn newest_ask(state: &State, opening: usize, start: usize) -> Option<usize> {
    let newest = state.knowledge.newest_ask()?;
    let at = state.conversation.at_moment(newest)?;
    (opening..start).contains(&at).then_some(at)
}

/// What the user said since the opening, which files were changed, and what was done.
fn digest(settings: &Settings, state: &State, start: usize, ask: Option<usize>) -> String {
    let said = said(settings, state, ask.unwrap_or(start));
    let ledger_bytes = settings.tuning.ledger_tokens as usize;
    let changed = changed_files(state.knowledge.model(), ledger_bytes * 2);
    let done = state.ledger.render(start, ledger_bytes * 4);
    let mut text = String::new();
    for (title, body) in
        [("# What the user said", said), ("# What you changed", changed), ("# What you did last", done)]
    {
        if !body.is_empty() {
            text.push_str(title);
            text.push('\n');
            text.push_str(&body);
            text.push('\n');
        }
    }
    text
}

/// What people said between the opening and a position: the newest at length, older ones in short, while they fit.
fn said(settings: &Settings, state: &State, end: usize) -> String {
    let conversation = &state.conversation;
    let said = (conversation.opening()..end).rev().filter(|at| conversation.speaker(*at) == Speaker::Person);
    let users_tokens = settings.tuning.users_tokens;
    let mut left = users_tokens;
    let mut entries: Vec<String> = Vec::new();
    for (rank, at) in said.enumerate() {
        let share = if rank == 0 { users_tokens / 2 } else { users_tokens / 8 };
        let entry = format!("- {}\n", cut(&settings.meter, &conversation.text(at), share));
        let tokens = settings.meter.text(&entry);
        if tokens > left {
            break;
        }
        left -= tokens;
        entries.push(entry);
    }
    entries.reverse();
    entries.concat()
}
