//! What a fold selects of the past: the task, the account of the earlier conversation, and the agent's own messages.
//!
//! The past has three zones by age. The newest messages stay as they are (see [`frame`](super::frame)). Before them are
//! steps in the agent's own form: its calls, with the middle of long strings cut, and outputs of one line. The oldest
//! steps leave when there is no room for them, and the account has their place. What was selected once keeps its form, so
//! that the provider's cache stays valid, until the steps take more than their share of the budget.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use contexture_core::item::Item;

use super::account::{chapter, chapter_within, is_cut};
use super::said::{LEAST_REPEATED_BYTES, PinnedItems, cut_said, cut_text, others_note, repeated};
use crate::brief;
use crate::cap::{cap, short_hash};
use crate::conversation::ItemSpeaker;
use crate::decision::{CutSaid, Piece, Records};
use crate::settings::FoldSettings;
use crate::state::State;
use crate::tuning::{FAILED_TOKENS, LEAD_SHARE, MOST_STEPS_BUDGET, REBUILT_SHARE, STEPS_AIM_SHARE, STEPS_SHARE};

/// What is selected of the items before a position.
#[derive(Default)]
pub(super) struct Selection {
    /// The pieces, in order: first those that the window shows already, as far as they are not changed.
    pub(super) pieces: Vec<Piece>,
    /// What had to be cut.
    pub(super) cut: SelectionCuts,
    /// Tokens of all pieces.
    pub(super) tokens: u64,
}

/// What had to be cut.
#[derive(Default)]
pub(super) struct SelectionCuts {
    /// What people said, and what is pinned.
    pub(super) said: Vec<CutSaid>,
    /// What the agent said.
    pub(super) told: Vec<CutSaid>,
    /// Whether lines for steps had to be left out of the account.
    pub(super) has_lost_steps: bool,
}

/// Fields of a call that sign it, or say that its form is not known.
const AS_IT_CAME: [&str; 3] = ["thoughtSignature", "thought_signature", "as_it_came"];

/// A piece with its tokens.
type Sized = (Piece, u64);

impl Selection {
    /// Selects from the items before a position, whole: nothing that was said is cut.
    pub(super) fn whole(settings: &FoldSettings, state: &State, end: usize) -> Self {
        let past = Past::new(settings, state, end, u64::MAX);
        let account_end = past.account_end();
        past.select(account_end)
    }

    /// The same within a number of tokens.
    pub(super) fn within(settings: &FoldSettings, state: &State, end: usize, room: u64) -> Self {
        let past = Past::new(settings, state, end, room);
        let usual = past.account_end();
        let selection = past.select(usual);
        if selection.tokens <= room {
            return selection;
        }
        // What is written anew leaves room for what is added next.
        let aim = (room as f64 * REBUILT_SHARE) as u64;
        let within = |part: u64| past.end_for(usual, |tokens, _| tokens <= aim / part);
        let account_ends = [within(2), within(4), within(8)];
        for room in [aim, room] {
            for account_end in account_ends {
                let selection = past.select_within(account_end, room);
                if selection.tokens <= room && selection.cut.said.is_empty() && selection.cut.told.is_empty() {
                    return selection;
                }
            }
        }
        let selection = past.select_within(account_ends[0], room);
        if selection.tokens <= room { selection } else { past.without_newest().select_within(end, room) }
    }
}

/// The items before a fold, with what can be said of all of them.
struct Past<'a> {
    settings: &'a FoldSettings,
    state: &'a State,
    end: usize,
    pinned: PinnedItems,
    /// Where the first message of the model is.
    lead: usize,
    /// Where the account ends that the window shows, and the chapters that it has.
    shown_account: (usize, Vec<Sized>),
    /// What the window shows of items before the newest messages, by position.
    shown: HashMap<usize, Sized>,
    /// The newest call of each tool, and the newest note of each kind.
    newest: HashSet<usize>,
    /// What is in force: of everything that can be set, what sets it last.
    in_force: HashSet<usize>,
    /// What stays although the account has the place of its step: what is pinned, and the steps of the newest calls.
    kept: BTreeSet<usize>,
    /// For each item, the form in which it is shown if its step stays; from where the account ends at least.
    forms: BTreeMap<usize, Sized>,
}

impl<'a> Past<'a> {
    fn new(settings: &'a FoldSettings, state: &'a State, end: usize, room: u64) -> Self {
        let conversation = &state.conversation;
        let lead = (0..end).find(|at| conversation.speaker(*at) == ItemSpeaker::Model).unwrap_or(end);
        let dialogue = || state.shown.dialogue();
        let (mut chapters, mut told): (Vec<Sized>, usize) = (Vec::new(), lead);
        for (piece, tokens) in dialogue() {
            if let Piece::Records(records) = piece
                && records.is_account()
            {
                told = told.max(records.to);
                chapters.push((piece.clone(), tokens));
            }
        }
        // Steps that an earlier version folded are not held any more.
        let is_lost = |at: &usize| conversation.speaker(*at) == ItemSpeaker::Model && !conversation.holds(*at);
        let lost = (told..state.shown.start().min(end)).rev().find(is_lost).map_or(told, |at| at + 1);
        let is_cut = chapters.iter().any(|(piece, _)| piece.made().is_some_and(is_cut));
        let chapters = if is_cut { Vec::new() } else { chapters };
        let shown_account = if lost > told { (lost.max(lead), Vec::new()) } else { (told.max(lead), chapters) };
        let shown =
            dialogue().filter_map(|(piece, tokens)| Some((piece.position()?, (piece.clone(), tokens)))).collect();
        let mut past = Self {
            settings,
            state,
            end,
            pinned: PinnedItems::new(state, end, room),
            lead,
            shown_account,
            shown,
            newest: newest(state),
            in_force: in_force(settings, state),
            kept: BTreeSet::new(),
            forms: BTreeMap::new(),
        };
        past.kept = past.kept_steps();
        past.forms = past.all_forms();
        past
    }

    /// The forms of all items that may stand in their own place.
    fn all_forms(&self) -> BTreeMap<usize, Sized> {
        let conversation = &self.state.conversation;
        let mut said: HashSet<Arc<str>> = HashSet::new();
        let mut forms = BTreeMap::new();
        for at in 0..self.end {
            if !conversation.holds(at) {
                continue;
            }
            // What was said in the account can be repeated after it.
            let long = conversation.speaker(at).is_person() && others_note(conversation.item(at)).is_none();
            let text: Option<Arc<str>> = long
                .then(|| conversation.text(at))
                .filter(|text| text.len() >= LEAST_REPEATED_BYTES)
                .map(|text| text.into());
            let is_repeated = text.clone().is_some_and(|text| !said.insert(text));
            let is_of_zone = at < self.lead || at >= self.shown_account.0;
            if !is_of_zone && !self.kept.contains(&at) && !self.shown.contains_key(&at) {
                continue;
            }
            let form = match (self.shown.get(&at), text.filter(|_| is_repeated)) {
                (Some(shown), _) if !self.stays_as_it_came(at) => Some(shown.clone()),
                (_, Some(text)) => {
                    Some(self.sized(Piece::Shortened(at, repeated(conversation.speaker(at), &text).into())))
                }
                _ => self.form(at).map(|piece| self.sized(piece)),
            };
            forms.extend(form.map(|form| (at, form)));
        }
        forms
    }

    /// Whether an item is pinned, in force, or the newest of its kind.
    fn stays_as_it_came(&self, at: usize) -> bool {
        self.pinned.kept.contains(&at) || self.in_force.contains(&at) || self.newest.contains(&at)
    }

    /// The form in which an item stands in its own place; `None` if it is left out.
    fn form(&self, at: usize) -> Option<Piece> {
        let conversation = &self.state.conversation;
        let is_kept = self.stays_as_it_came(at);
        match &**conversation.item(at) {
            _ if self.pinned.kept.contains(&at) || self.in_force.contains(&at) => Some(Piece::Logged(at)),
            Item::Message(_) if conversation.speaker(at) == ItemSpeaker::Program => {
                is_kept.then_some(Piece::Logged(at))
            }
            // What is signed or not understood is sent as it came.
            Item::FunctionCall(call) if !is_kept && !AS_IT_CAME.iter().any(|name| call.extra.get(name).is_some()) => {
                let limit = self.settings.tuning.argument_bytes;
                let brief = brief::arguments(&call.arguments, limit);
                Some(brief.map_or(Piece::Logged(at), |brief| Piece::Shortened(at, brief.into())))
            }
            Item::FunctionCallOutput(output) if output.extra.get("content").is_none() => {
                Some(self.brief_output(at, &output.output))
            }
            _ => Some(Piece::Logged(at)),
        }
    }

    /// An output in its short form. What went wrong is kept longer: without it the same is tried again.
    fn brief_output(&self, at: usize, text: &str) -> Piece {
        let Self { settings, state, .. } = self;
        let record = state.ledger.within(at..at + 1).next();
        let brief = match record {
            Some(record) if record.is_answer() => return Piece::Logged(at),
            Some(record) if record.has_failed => {
                let is_long = settings.meter.text(text) > FAILED_TOKENS;
                is_long.then(|| cap(settings.meter.counter(), text, FAILED_TOKENS, settings.output_tool.as_deref()))
            }
            _ => {
                let is_named = record.is_some_and(|record| record.is_named());
                let name = is_named.then(|| short_hash(text));
                brief::output(text, name.as_deref())
            }
        };
        brief.map_or(Piece::Logged(at), |brief| Piece::Shortened(at, brief.into()))
    }

    fn sized(&self, piece: Piece) -> Sized {
        let tokens = self.state.piece_tokens(self.settings, &piece);
        (piece, tokens)
    }

    /// Where the account should end: where it ends now, or later if the steps behind it take more than their share.
    fn account_end(&self) -> usize {
        let budget = self.settings.policy.budget.min(MOST_STEPS_BUDGET) as f64;
        let now = self.shown_account.0;
        let [most, aim] = [STEPS_SHARE, STEPS_AIM_SHARE].map(|share| (budget * share) as u64);
        let first = self.end_for(now, |_, steps| steps <= most);
        if first == now { now } else { self.end_for(now, |_, steps| steps <= aim) }
    }

    /// The first place from a position on at which the account may end so that what follows is as wanted: its tokens, and
    /// those of its steps.
    fn end_for(&self, from: usize, is_wanted: impl Fn(u64, u64) -> bool) -> usize {
        let conversation = &self.state.conversation;
        let (mut tokens, mut steps, mut end) = (0, 0, self.end);
        let is_step = |at: usize| !conversation.speaker(at).is_person() && !conversation.is_told(at);
        for at in (from..self.end).rev() {
            if let Some((_, own)) = self.forms.get(&at) {
                tokens += own;
                steps += if is_step(at) { *own } else { 0 };
            }
            if !is_wanted(tokens, steps) {
                break;
            }
            if at == from || conversation.can_begin_at(at) {
                end = at;
            }
        }
        end
    }

    /// What stands in its own place if the account ends at a position: before it, and after it.
    fn in_place(&self, account_end: usize) -> [Vec<Sized>; 2] {
        let kept = self.kept_before(account_end);
        let is_before = |at: &usize| *at < self.lead || kept.contains(at);
        let of = |is_wanted: &dyn Fn(&usize) -> bool| -> Vec<Sized> {
            self.forms.iter().filter(|(at, _)| is_wanted(at)).map(|(_, form)| form.clone()).collect()
        };
        [of(&is_before), of(&|at| *at >= account_end.max(self.lead))]
    }

    /// What is pinned, and the steps of the newest calls: everything of their messages, and their outputs.
    fn kept_steps(&self) -> BTreeSet<usize> {
        let conversation = &self.state.conversation;
        let mut kept = self.pinned.kept.clone();
        for at in self.newest.union(&self.in_force).copied().filter(|at| *at < self.end) {
            let made = conversation.call_at(at).unwrap_or(at);
            match conversation.speaker(made) {
                ItemSpeaker::Model => kept.extend(conversation.step_of(made, self.end)),
                _ => kept.extend([at]),
            }
        }
        kept
    }

    /// What stays before the end of an account: while the account stays, everything that is shown there.
    fn kept_before(&self, account_end: usize) -> BTreeSet<usize> {
        let (shown_end, chapters) = &self.shown_account;
        let stays = account_end == *shown_end && !chapters.is_empty();
        let shown = self.shown.keys().copied().filter(|at| stays && *at >= self.lead);
        self.kept.iter().copied().chain(shown).filter(|at| *at < account_end).collect()
    }

    /// The same past without the newest calls, for which there is no room.
    fn without_newest(mut self) -> Self {
        self.newest.clear();
        self.kept = self.kept_steps();
        self.forms = self.all_forms();
        self
    }

    /// The selection with the account up to a position, whole.
    fn select(&self, account_end: usize) -> Selection {
        let [before, after] = self.in_place(account_end);
        let (shown, mut chapters) = self.shown_account.clone();
        if account_end > shown || (chapters.is_empty() && account_end > self.lead) {
            let from = if chapters.is_empty() { self.lead } else { shown };
            let new = chapter(self.state, from..account_end, &self.pinned.kept);
            let records = Records { from, to: account_end, text: new.text };
            chapters.push(self.sized(Piece::Records(records)));
        }
        self.arranged(before, chapters, after, SelectionCuts::default())
    }

    /// The selection with the account up to a position, within a number of tokens.
    fn select_within(&self, account_end: usize, room: u64) -> Selection {
        let [mut before, after] = self.in_place(account_end);
        let mut cut = SelectionCuts::default();
        cut.said.extend(self.pinned.left_out.iter().map(|at| cut_said(self.state, *at, 0)));
        self.cut_lead(&mut before, (room as f64 * LEAD_SHARE) as u64, &mut cut);
        let sum = |pieces: &[Sized]| pieces.iter().map(|(_, tokens)| tokens).sum::<u64>();
        let left = room.saturating_sub(sum(&before) + sum(&after));
        let range = self.lead..account_end;
        let new = chapter_within(self.settings, self.state, range.clone(), &self.pinned.kept, left);
        cut.said.extend(new.cut_said);
        cut.told.extend(new.cut_told);
        cut.has_lost_steps = new.left_out_bytes > 0;
        cut.said.sort_by_key(|cut| cut.position);
        let records = Records { from: range.start, to: range.end, text: new.text };
        let chapters = if records.text.is_empty() { Vec::new() } else { vec![self.sized(Piece::Records(records))] };
        self.arranged(before, chapters, after, cut)
    }

    /// Shortens the longest messages before the first one of the model until they fit.
    fn cut_lead(&self, before: &mut Vec<Sized>, room: u64, cut: &mut SelectionCuts) {
        let is_lead =
            |piece: &Piece| piece.position().is_some_and(|at| at < self.lead && !self.pinned.kept.contains(&at));
        let limit =
            super::said::level(before.iter().filter(|(piece, _)| is_lead(piece)).map(|(_, tokens)| *tokens), room);
        before.retain_mut(|(piece, tokens)| {
            let Some(at) = piece.position().filter(|_| is_lead(piece) && *tokens > limit) else { return true };
            let text = cut_text(self.settings, self.state, at, limit);
            if text.trim().is_empty() {
                cut.said.push(cut_said(self.state, at, 0));
                return false;
            }
            (*piece, *tokens) = self.sized(Piece::Shortened(at, text));
            cut.said.push(cut_said(self.state, at, *tokens));
            *tokens <= limit
        });
    }

    fn arranged(&self, before: Vec<Sized>, chapters: Vec<Sized>, after: Vec<Sized>, cut: SelectionCuts) -> Selection {
        let (lead, kept): (Vec<Sized>, Vec<Sized>) =
            before.into_iter().partition(|(piece, _)| piece.position().is_some_and(|at| at < self.lead));
        let all = lead.into_iter().chain(chapters).chain(kept).chain(after);
        let mut selection = Selection { cut, ..Selection::default() };
        for (piece, tokens) in all {
            selection.tokens += tokens;
            selection.pieces.push(piece);
        }
        selection
    }
}

/// The newest call of each tool, which shows the model how it is called, and the newest note of each kind that a harness
/// wrote.
fn newest(state: &State) -> HashSet<usize> {
    let conversation = &state.conversation;
    let mut newest: HashMap<&str, usize> = HashMap::new();
    for at in (0..conversation.len()).filter(|at| conversation.holds(*at)) {
        let name = match &**conversation.item(at) {
            Item::FunctionCall(call) => Some(&*call.name),
            _ => conversation.note_kind(at),
        };
        newest.extend(name.map(|name| (name, at)));
    }
    newest.into_values().collect()
}

/// Of each name of what items set, the newest item.
fn in_force(settings: &FoldSettings, state: &State) -> HashSet<usize> {
    let conversation = &state.conversation;
    let held = (0..conversation.len()).filter(|at| conversation.holds(*at));
    let set = held.flat_map(|at| (settings.sets)(conversation.item(at)).into_iter().map(move |name| (name, at)));
    set.collect::<HashMap<_, _>>().into_values().collect()
}
