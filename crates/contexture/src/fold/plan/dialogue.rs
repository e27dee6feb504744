//! The dialogue: what people and the agent said, verbatim, in order and in their roles, and between them records of
//! what was done.
//!
//! What a fold has shown of it stays as it was sent, so that the provider's cache stays valid: a fold appends a chapter
//! for what it folds. Only a forced fold shortens the dialogue, in one batch: records first, once all of it takes more
//! than a third of the budget, then the agent's longest texts, then what people said, instructions last.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::said::{LEAST_REPEATED_BYTES, Pinned, cut_said, cut_text, level, limits, others_note, repeated};
use crate::fold::conversation::{Conversation, Speaker};
use crate::fold::decision::{CutSaid, Piece, Records};
use crate::fold::settings::Settings;
use crate::fold::state::State;
use crate::fold::tuning::{LEAST_TOLD_TOKENS, RECORDS_AIM_SHARE, RECORDS_SHARE, RECORDS_TOGETHER_BYTES, TOLD_AIM_SHARE};

/// Stands before a text of the agent that would otherwise be the first message: providers want the user to begin.
const BEGAN_EARLIER: &str = "[Contexture's note: the conversation began earlier]";

/// What is said before a position, and records of what was done.
#[derive(Default)]
pub(super) struct Dialogue {
    /// The pieces, in order: first those that the window shows already, as far as they are not cut.
    pub(super) pieces: Vec<Piece>,
    /// What had to be cut.
    pub(super) cut: Cuts,
    /// Tokens of all pieces.
    pub(super) tokens: u64,
}

/// What had to be cut of a dialogue.
#[derive(Default)]
pub(super) struct Cuts {
    /// What people said, and what is pinned.
    pub(super) said: Vec<CutSaid>,
    /// What the agent said.
    pub(super) told: Vec<CutSaid>,
    /// Records.
    pub(super) records: Vec<CutSaid>,
}

/// Something in the dialogue.
pub(super) struct Spoken {
    pub(super) piece: Piece,
    pub(super) tokens: u64,
    pub(super) voice: Voice,
}

/// Whose words something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Voice {
    /// The system's, or a developer's.
    Instructor,
    /// The user's.
    User,
    /// The agent's.
    Agent,
    /// The program's.
    Records,
    /// Anything that is pinned and was not said.
    Pinned,
}

impl Voice {
    fn of(conversation: &Conversation, at: usize) -> Self {
        match conversation.speaker(at) {
            Speaker::Instructor => Voice::Instructor,
            Speaker::User => Voice::User,
            Speaker::Model if conversation.is_told(at) => Voice::Agent,
            Speaker::Model | Speaker::Tool | Speaker::Program => Voice::Pinned,
        }
    }
}

impl Spoken {
    /// The position of what was said; for records, of what they tell of first.
    fn position(&self) -> usize {
        match &self.piece {
            Piece::Logged(at) | Piece::Shortened(at, _) => *at,
            Piece::Records(records) => records.from,
            Piece::Made(_) => 0,
        }
    }
}

impl Dialogue {
    /// Returns the dialogue before a position, whole.
    pub(super) fn whole(settings: &Settings, state: &State, end: usize) -> Self {
        let spoken = spoken(settings, state, end, &Pinned::new(state, end, u64::MAX));
        Self::of(settings, spoken, Cuts::default())
    }

    /// Returns the dialogue before a position within a number of tokens.
    pub(super) fn within(settings: &Settings, state: &State, end: usize, room: u64) -> Self {
        let pinned = Pinned::new(state, end, room);
        let mut cuts = Cuts::default();
        let was_said = |at: &usize| state.conversation.speaker(*at).is_person();
        cuts.said.extend(pinned.left_out.iter().filter(|at| !was_said(at)).map(|at| cut_said(state, *at, 0)));
        let mut spoken = spoken(settings, state, end, &pinned);
        cut_records(settings, state, &mut spoken, room, &mut cuts);
        cut_told(settings, state, &mut spoken, room, &mut cuts);
        cut_people(settings, state, &mut spoken, room, &mut cuts);
        cuts.said.sort_by_key(|cut| cut.position);
        Self::of(settings, spoken, cuts)
    }

    fn of(settings: &Settings, mut spoken: Vec<Spoken>, cut: Cuts) -> Self {
        if spoken.first().is_some_and(|first| first.voice == Voice::Agent) {
            let records = Records { from: 0, to: 0, text: BEGAN_EARLIER.into() };
            let tokens = settings.meter.made(BEGAN_EARLIER);
            spoken.insert(0, Spoken { piece: Piece::Records(records), tokens, voice: Voice::Records });
        }
        let tokens = total(&spoken);
        Self { pieces: spoken.into_iter().map(|spoken| spoken.piece).collect(), cut, tokens }
    }
}

fn total(spoken: &[Spoken]) -> u64 {
    spoken.iter().map(|spoken| spoken.tokens).sum()
}

/// Returns what the window shows of the dialogue, and then what was said since, before a position.
fn spoken(settings: &Settings, state: &State, end: usize, pinned: &Pinned) -> Vec<Spoken> {
    let is_left_out = |at: &usize| pinned.left_out.contains(at) && !state.conversation.speaker(*at).is_person();
    let shown = state.shown.dialogue().map(|(piece, tokens)| {
        let voice = match piece.position() {
            Some(at) => Voice::of(&state.conversation, at),
            None => Voice::Records,
        };
        Spoken { piece: piece.clone(), tokens, voice }
    });
    let mut spoken: Vec<Spoken> =
        shown.filter(|shown| !shown.piece.position().is_some_and(|at| is_left_out(&at))).collect();
    let before: BTreeSet<usize> = spoken.iter().filter_map(|shown| shown.piece.position()).collect();
    let chapter = Chapter { settings, state, from: state.shown.start(), end };
    // A call may be pinned and shown before its output came.
    let late = pinned.kept.range(..chapter.from).filter(|at| !before.contains(at) && state.conversation.holds(**at));
    let late = late.filter(|at| Voice::of(&state.conversation, **at) == Voice::Pinned);
    spoken.extend(late.map(|at| chapter.logged(*at)));
    chapter.add(&mut spoken, pinned);
    spoken
}

/// What a fold adds to the dialogue.
struct Chapter<'a> {
    settings: &'a Settings,
    state: &'a State,
    from: usize,
    end: usize,
}

impl Chapter<'_> {
    fn logged(&self, at: usize) -> Spoken {
        let conversation = &self.state.conversation;
        let (tokens, voice) = (conversation.item_tokens(at), Voice::of(conversation, at));
        Spoken { piece: Piece::Logged(at), tokens, voice }
    }

    fn add(&self, spoken: &mut Vec<Spoken>, pinned: &Pinned) {
        let conversation = &self.state.conversation;
        let mut heard = Heard::before(conversation, self.from);
        let mut recorded = self.from;
        for at in self.from..self.end {
            let voice = Voice::of(conversation, at);
            let is_kept = pinned.kept.contains(&at);
            if voice == Voice::Pinned && !is_kept {
                continue;
            }
            // Records stand before the next words of a person. Before words of the agent they may wait, since each
            // block of them costs something.
            if voice != Voice::Agent || self.state.ledger.bytes_within(recorded..at) > RECORDS_TOGETHER_BYTES {
                self.add_records(spoken, pinned, recorded..at);
                recorded = at;
            }
            if is_kept || voice == Voice::Agent {
                heard.agent();
                spoken.push(self.logged(at));
                continue;
            }
            match heard.person(conversation, at) {
                Repeated::No => spoken.push(self.logged(at)),
                Repeated::Directly => {}
                Repeated::Later(note) => {
                    let tokens = self.settings.meter.made(&note);
                    spoken.push(Spoken { piece: Piece::Shortened(at, note), tokens, voice });
                }
            }
        }
        self.add_records(spoken, pinned, recorded..self.end);
    }

    fn add_records(&self, spoken: &mut Vec<Spoken>, pinned: &Pinned, range: std::ops::Range<usize>) {
        let Some(text) = self.state.ledger.render(range.clone(), |at| pinned.kept.contains(&at)) else { return };
        let tokens = self.settings.meter.made(&text);
        let piece = Piece::Records(Records { from: range.start, to: range.end, text });
        spoken.push(Spoken { piece, tokens, voice: Voice::Records });
    }
}

/// The long texts that people said so far.
struct Heard<'a> {
    texts: HashMap<Cow<'a, str>, usize>,
    count: usize,
}

/// Whether a text was said before.
enum Repeated {
    No,
    /// It was the last thing that was said.
    Directly,
    /// Something else was said since; a note is shown in its place, so that the last word stays the last.
    Later(Arc<str>),
}

impl<'a> Heard<'a> {
    /// What people said before a position.
    fn before(conversation: &'a Conversation, end: usize) -> Self {
        let mut heard = Self { texts: HashMap::new(), count: 0 };
        for at in 0..end {
            if conversation.is_told(at) {
                heard.agent();
            } else if conversation.speaker(at).is_person() && conversation.holds(at) {
                heard.note(conversation, at);
            }
        }
        heard
    }

    fn agent(&mut self) {
        self.count += 1;
    }

    /// Notes a text; returns when it was said before.
    fn note(&mut self, conversation: &'a Conversation, at: usize) -> Option<usize> {
        self.count += 1;
        let text = conversation.text(at);
        let is_long = text.len() >= LEAST_REPEATED_BYTES && others_note(conversation.item(at)).is_none();
        if is_long { self.texts.insert(text, self.count) } else { None }
    }

    fn person(&mut self, conversation: &'a Conversation, at: usize) -> Repeated {
        match self.note(conversation, at) {
            None => Repeated::No,
            Some(before) if before + 1 == self.count => Repeated::Directly,
            Some(_) => Repeated::Later(repeated(conversation.speaker(at), &conversation.text(at)).into()),
        }
    }
}

/// Leaves out records if the dialogue takes more than its share of the budget or than there is room.
fn cut_records(settings: &Settings, state: &State, spoken: &mut Vec<Spoken>, room: u64, cuts: &mut Cuts) {
    let budget = settings.policy.budget as f64;
    let all = total(spoken);
    if all <= ((budget * RECORDS_SHARE) as u64).min(room) {
        return;
    }
    let excess = all.saturating_sub(((budget * RECORDS_AIM_SHARE) as u64).min(room));
    let end = spoken.last().map_or(0, |last| match &last.piece {
        Piece::Records(records) => records.to,
        _ => last.position() + 1,
    });
    let dullest = state.ledger.dullest(0..end, excess as usize * 4);
    let is_left_out: BTreeSet<usize> = dullest.iter().map(|record| record.at).collect();
    let cut = |at: usize, hash: &str| CutSaid { position: at, hash: hash.to_owned(), tokens: 0 };
    cuts.records.extend(dullest.iter().map(|record| cut(record.at, &record.hash)));
    cuts.records.sort_by_key(|cut| cut.position);
    spoken.retain_mut(|spoken| {
        let Piece::Records(Records { from, to, text }) = &mut spoken.piece else { return true };
        let range = *from..*to;
        if state.ledger.within(range.clone()).all(|record| !is_left_out.contains(&record.at)) {
            // What the ledger does not know any more is older than everything that is left out.
            return range.is_empty() || state.ledger.within(range).next().is_some();
        }
        let Some(rest) = state.ledger.render(range, |at| is_left_out.contains(&at)) else { return false };
        spoken.tokens = settings.meter.made(&rest);
        *text = rest;
        true
    });
}

/// Cuts the middle of the agent's longest texts until everything fits, if that is possible.
fn cut_told(settings: &Settings, state: &State, spoken: &mut Vec<Spoken>, room: u64, cuts: &mut Cuts) {
    let all = total(spoken);
    if all <= room {
        return;
    }
    let told = || spoken.iter().filter(|spoken| spoken.voice == Voice::Agent).map(|spoken| spoken.tokens);
    let others = all - told().sum::<u64>();
    let aim = (room.saturating_sub(others) as f64 * TOLD_AIM_SHARE) as u64;
    let limit = level(told(), aim);
    cut_to(settings, state, spoken, |spoken| if spoken.voice == Voice::Agent { limit } else { u64::MAX }, &mut cuts.told);
}

/// Cuts what people said until everything fits: instructions last.
fn cut_people(settings: &Settings, state: &State, spoken: &mut Vec<Spoken>, room: u64, cuts: &mut Cuts) {
    let others = |spoken: &&Spoken| !matches!(spoken.voice, Voice::User | Voice::Instructor);
    let others: u64 = spoken.iter().filter(others).map(|spoken| spoken.tokens).sum();
    if total(spoken) <= room {
        return;
    }
    let people: Vec<&Spoken> =
        spoken.iter().filter(|spoken| matches!(spoken.voice, Voice::User | Voice::Instructor)).collect();
    let limits: HashMap<usize, u64> =
        people.iter().map(|spoken| spoken.position()).zip(limits(&people, room.saturating_sub(others))).collect();
    let limit = |spoken: &Spoken| match spoken.voice {
        Voice::User | Voice::Instructor => limits.get(&spoken.position()).copied().unwrap_or(0),
        _ => u64::MAX,
    };
    cut_to(settings, state, spoken, limit, &mut cuts.said);
}

/// Cuts each text to a number of tokens. What would hardly say anything is left out.
fn cut_to(
    settings: &Settings,
    state: &State,
    spoken: &mut Vec<Spoken>,
    limit: impl Fn(&Spoken) -> u64,
    cuts: &mut Vec<CutSaid>,
) {
    spoken.retain_mut(|spoken| {
        let limit = limit(spoken);
        let Some(at) = spoken.piece.position().filter(|_| spoken.tokens > limit) else { return true };
        let is_worthwhile = limit > 0 && (spoken.voice != Voice::Agent || limit >= LEAST_TOLD_TOKENS);
        let text = is_worthwhile.then(|| cut_text(settings, state, at, limit));
        let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
            cuts.push(cut_said(state, at, 0));
            return false;
        };
        spoken.piece = Piece::Shortened(at, text);
        spoken.tokens = state.piece_tokens(settings, &spoken.piece);
        cuts.push(cut_said(state, at, spoken.tokens));
        spoken.tokens <= limit
    });
}
