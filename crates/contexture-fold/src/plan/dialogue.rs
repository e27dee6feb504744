//! The dialogue: what people and the agent said, verbatim, in order and in their roles, and between them records of
//! what was done.
//!
//! What a fold has shown of it stays as it was sent, so that the provider's cache stays valid: a fold appends a chapter
//! for what it folds. Only a forced fold shortens the dialogue, in one batch: records first, once all of it takes more
//! than a third of the budget, then the agent's longest texts, then what people said, instructions last.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use super::said::{LEAST_REPEATED_BYTES, PinnedItems, cut_said, cut_text, level, limits, others_note, repeated};
use super::spoken::{DialoguePiece, DialogueVoice};
use crate::conversation::{ConversationItems, ItemSpeaker};
use crate::decision::{CutSaid, Piece, Records};
use crate::records::dullest;
use crate::settings::FoldSettings;
use crate::state::State;
use crate::tuning::{LEAST_TOLD_SHARE, LEAST_TOLD_TOKENS, RECORDS_AIM_SHARE, RECORDS_SHARE, TOLD_AIM_SHARE};

/// Is before a text of the agent that would otherwise be the first message: providers want the user to begin.
const BEGAN_EARLIER: &str = "[Contexture's note: the conversation began earlier]";

/// What is said before a position, and records of what was done.
#[derive(Default)]
pub(super) struct Dialogue {
    /// The pieces, in order: first those that the window shows already, as far as they are not cut.
    pub(super) pieces: Vec<Piece>,
    /// What had to be cut.
    pub(super) cut: DialogueCuts,
    /// Tokens of all pieces.
    pub(super) tokens: u64,
}

/// What had to be cut of a dialogue.
#[derive(Default)]
pub(super) struct DialogueCuts {
    /// What people said, and what is pinned.
    pub(super) said: Vec<CutSaid>,
    /// What the agent said.
    pub(super) told: Vec<CutSaid>,
    /// Records.
    pub(super) records: Vec<CutSaid>,
}

/// Whose words an item is; `None` if it is neither said nor pinned.
fn voice(conversation: &ConversationItems, pinned: &PinnedItems, at: usize) -> Option<DialogueVoice> {
    match conversation.speaker(at) {
        _ if pinned.kept.contains(&at) => Some(DialogueVoice::Pinned),
        ItemSpeaker::Instructor => Some(DialogueVoice::Instructor),
        ItemSpeaker::User => Some(DialogueVoice::User),
        ItemSpeaker::Model => conversation.is_told(at).then_some(DialogueVoice::Agent),
        ItemSpeaker::Tool | ItemSpeaker::Program => None,
    }
}

impl Dialogue {
    /// Returns the dialogue before a position, whole.
    pub(super) fn whole(settings: &FoldSettings, state: &State, end: usize) -> Self {
        let spoken = spoken(settings, state, end, &PinnedItems::new(state, end, u64::MAX));
        Self::of(settings, state, spoken, DialogueCuts::default())
    }

    /// Returns the dialogue before a position within a number of tokens.
    pub(super) fn within(settings: &FoldSettings, state: &State, end: usize, room: u64) -> Self {
        let pinned = PinnedItems::new(state, end, room);
        let mut cuts = DialogueCuts::default();
        // What was said is shown like anything else that was said.
        let left_out = pinned.left_out.iter().filter(|at| voice(&state.conversation, &pinned, **at).is_none());
        cuts.said.extend(left_out.map(|at| cut_said(state, *at, 0)));
        let mut spoken = spoken(settings, state, end, &pinned);
        cut_records(settings, state, &mut spoken, room, &mut cuts);
        cut_told(settings, state, &mut spoken, room, &mut cuts);
        cut_people(settings, state, &mut spoken, room, &mut cuts);
        cuts.said.sort_by_key(|cut| cut.position);
        Self::of(settings, state, spoken, cuts)
    }

    fn of(settings: &FoldSettings, state: &State, mut spoken: Vec<DialoguePiece>, cut: DialogueCuts) -> Self {
        let first = spoken.first().and_then(|first| first.piece.position());
        if first.is_some_and(|at| state.conversation.speaker(at) == ItemSpeaker::Model) {
            let records = Records { from: 0, to: 0, text: BEGAN_EARLIER.into() };
            let tokens = settings.meter.made(BEGAN_EARLIER);
            spoken.insert(0, DialoguePiece { piece: Piece::Records(records), tokens, voice: DialogueVoice::Records });
        }
        let tokens = total(&spoken);
        Self { pieces: spoken.into_iter().map(|spoken| spoken.piece).collect(), cut, tokens }
    }
}

fn total(spoken: &[DialoguePiece]) -> u64 {
    spoken.iter().map(|spoken| spoken.tokens).sum()
}

/// Returns what the window shows of the dialogue, and then what was said since, before a position.
fn spoken(settings: &FoldSettings, state: &State, end: usize, pinned: &PinnedItems) -> Vec<DialoguePiece> {
    let conversation = &state.conversation;
    let shown = state.shown.dialogue().filter_map(|(piece, tokens)| {
        let voice = match piece.position() {
            Some(at) => voice(conversation, pinned, at)?,
            None => DialogueVoice::Records,
        };
        Some(DialoguePiece { piece: piece.clone(), tokens, voice })
    });
    let mut spoken: Vec<DialoguePiece> = shown.collect();
    let before: BTreeSet<usize> = spoken.iter().filter_map(|shown| shown.piece.position()).collect();
    let chapter = Chapter { settings, state, pinned, from: state.shown.start(), end };
    // The output of a pinned call may have come after the call was folded.
    let was_not_said = |at: &usize| !conversation.speaker(*at).is_person() && !conversation.is_told(*at);
    let late = pinned.kept.range(..chapter.from).filter(|at| !before.contains(at) && was_not_said(at));
    let late = late.filter(|at| conversation.holds(**at));
    spoken.extend(late.map(|at| chapter.logged(*at, DialogueVoice::Pinned)));
    chapter.add(&mut spoken);
    spoken
}

/// What a fold adds to the dialogue.
struct Chapter<'a> {
    settings: &'a FoldSettings,
    state: &'a State,
    pinned: &'a PinnedItems,
    from: usize,
    end: usize,
}

impl Chapter<'_> {
    fn logged(&self, at: usize, voice: DialogueVoice) -> DialoguePiece {
        DialoguePiece { piece: Piece::Logged(at), tokens: self.state.conversation.item_tokens(at), voice }
    }

    fn add(&self, spoken: &mut Vec<DialoguePiece>) {
        let conversation = &self.state.conversation;
        let mut heard = LongTexts::before(conversation, self.from);
        let mut recorded = self.from;
        for at in self.from..self.end {
            let Some(voice) = voice(conversation, self.pinned, at) else { continue };
            self.add_records(spoken, recorded..at);
            recorded = at;
            if matches!(voice, DialogueVoice::Agent | DialogueVoice::Pinned) {
                heard.agent();
                spoken.push(self.logged(at, voice));
                continue;
            }
            match heard.person(conversation, at) {
                Repeated::No => spoken.push(self.logged(at, voice)),
                Repeated::Directly => {}
                Repeated::Later(note) => {
                    let tokens = self.settings.meter.made(&note);
                    spoken.push(DialoguePiece { piece: Piece::Shortened(at, note), tokens, voice });
                }
            }
        }
        self.add_records(spoken, recorded..self.end);
    }

    fn add_records(&self, spoken: &mut Vec<DialoguePiece>, range: Range<usize>) {
        let is_pinned = |at: usize| self.pinned.kept.contains(&at);
        let Some(text) = self.state.ledger.render(range.clone(), is_pinned) else { return };
        let tokens = self.settings.meter.made(&text);
        let piece = Piece::Records(Records { from: range.start, to: range.end, text });
        spoken.push(DialoguePiece { piece, tokens, voice: DialogueVoice::Records });
    }
}

/// The long texts that people said so far.
struct LongTexts<'a> {
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

impl<'a> LongTexts<'a> {
    /// What people said before a position.
    fn before(conversation: &'a ConversationItems, end: usize) -> Self {
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
    fn note(&mut self, conversation: &'a ConversationItems, at: usize) -> Option<usize> {
        self.count += 1;
        let text = conversation.text(at);
        let is_long = text.len() >= LEAST_REPEATED_BYTES && others_note(conversation.item(at)).is_none();
        if is_long { self.texts.insert(text, self.count) } else { None }
    }

    fn person(&mut self, conversation: &'a ConversationItems, at: usize) -> Repeated {
        match self.note(conversation, at) {
            None => Repeated::No,
            Some(before) if before + 1 == self.count => Repeated::Directly,
            Some(_) => Repeated::Later(repeated(conversation.speaker(at), &conversation.text(at)).into()),
        }
    }
}

/// Leaves out records if the dialogue takes more than its share of the budget or than there is room.
fn cut_records(
    settings: &FoldSettings,
    state: &State,
    spoken: &mut Vec<DialoguePiece>,
    room: u64,
    cuts: &mut DialogueCuts,
) {
    let budget = settings.policy.budget as f64;
    let all = total(spoken);
    if all <= ((budget * RECORDS_SHARE) as u64).min(room) {
        return;
    }
    let excess = all.saturating_sub(((budget * RECORDS_AIM_SHARE) as u64).min(room));
    let shown = spoken.iter().filter_map(|spoken| match &spoken.piece {
        Piece::Records(Records { from, to, .. }) => Some(state.ledger.within(*from..*to)),
        _ => None,
    });
    let dullest = dullest(shown.flatten().collect(), excess as usize * 4);
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

/// Cuts the middle of the agent's longest texts until everything fits, but leaves them a share of the room.
fn cut_told(
    settings: &FoldSettings,
    state: &State,
    spoken: &mut Vec<DialoguePiece>,
    room: u64,
    cuts: &mut DialogueCuts,
) {
    let all = total(spoken);
    if all <= room {
        return;
    }
    let told = || spoken.iter().filter(|spoken| spoken.voice == DialogueVoice::Agent).map(|spoken| spoken.tokens);
    let others = all - told().sum::<u64>();
    let left = room.saturating_sub(others).max((room as f64 * LEAST_TOLD_SHARE) as u64);
    let aim = (left as f64 * TOLD_AIM_SHARE) as u64;
    let limit = level(told(), aim);
    cut_to(
        settings,
        state,
        spoken,
        |spoken| if spoken.voice == DialogueVoice::Agent { limit } else { u64::MAX },
        &mut cuts.told,
    );
}

/// Cuts what people said until everything fits: instructions last.
fn cut_people(
    settings: &FoldSettings,
    state: &State,
    spoken: &mut Vec<DialoguePiece>,
    room: u64,
    cuts: &mut DialogueCuts,
) {
    let others = |spoken: &&DialoguePiece| !matches!(spoken.voice, DialogueVoice::User | DialogueVoice::Instructor);
    let others: u64 = spoken.iter().filter(others).map(|spoken| spoken.tokens).sum();
    if total(spoken) <= room {
        return;
    }
    let people: Vec<&DialoguePiece> = spoken
        .iter()
        .filter(|spoken| matches!(spoken.voice, DialogueVoice::User | DialogueVoice::Instructor))
        .collect();
    let limits: HashMap<usize, u64> =
        people.iter().map(|spoken| spoken.position()).zip(limits(&people, room.saturating_sub(others))).collect();
    let limit = |spoken: &DialoguePiece| match spoken.voice {
        DialogueVoice::User | DialogueVoice::Instructor => limits.get(&spoken.position()).copied().unwrap_or(0),
        _ => u64::MAX,
    };
    cut_to(settings, state, spoken, limit, &mut cuts.said);
}

/// Cuts each text to a number of tokens. What would hardly say anything is left out.
fn cut_to(
    settings: &FoldSettings,
    state: &State,
    spoken: &mut Vec<DialoguePiece>,
    limit: impl Fn(&DialoguePiece) -> u64,
    cuts: &mut Vec<CutSaid>,
) {
    spoken.retain_mut(|spoken| {
        let limit = limit(spoken);
        let Some(at) = spoken.piece.position().filter(|_| spoken.tokens > limit) else { return true };
        let is_worthwhile = limit > 0 && (spoken.voice != DialogueVoice::Agent || limit >= LEAST_TOLD_TOKENS);
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
