//! The state of a conversation: what was said, what is known, what is shown and what was billed.

use std::collections::HashSet;
use std::sync::Arc;

use contexture_core::item::Item;

use super::billing::{Billing, FoldSize};
use super::conversation::{ConversationItems, ItemSpeaker, text_of, with_text};
use super::decision::{BringBack, Fold, FoldDecision, Piece, Records, ShownLines};
use super::knowledge::Knowledge;
use super::records::Ledger;
use super::settings::FoldSettings;
use super::shown::{LinePlace, ShownFold, ShownItem, WindowContents, logged};
use super::stubs;
use super::tuning::ROOM_FOR_NAMED_SHARE;
use contexture_files::model::Who;
use contexture_files::observation::{Observation, Seen};

/// Everything that changes during a conversation. It decides nothing: decisions are applied to it.
#[derive(Default)]
pub(super) struct State {
    pub(super) conversation: ConversationItems,
    pub(super) knowledge: Knowledge,
    pub(super) ledger: Ledger,
    pub(super) shown: WindowContents,
    pub(super) billing: Billing,
}

/// Replaces an item that a decision shows but that is no longer pinned and was dropped.
const NO_LONGER_HELD: &str = "[A message that is no longer pinned was here.]";

/// An item that was taken in and is not shown yet.
pub(super) struct ArrivedItem {
    /// Its position in the log.
    pub(super) at: usize,
    moment: u32,
    /// For an output whose call is known: what it tells.
    pub(super) output: Option<ArrivedOutput>,
}

/// What an output tells.
pub(super) struct ArrivedOutput {
    /// The tool that was called.
    pub(super) tool: Box<str>,
    /// What the call and its output tell about files.
    pub(super) seen: Seen,
    /// Whether it only shows lines that are in the window already.
    pub(super) repeats: bool,
}

impl State {
    /// Begins the next message.
    pub(super) fn begin_message(&mut self) {
        self.conversation.begin_message();
        self.knowledge.begin_message();
    }

    /// Takes in an item of the message that was begun last.
    pub(super) fn take_in(&mut self, settings: &FoldSettings, item: Arc<Item>, tokens: u64) -> ArrivedItem {
        let text_tokens = settings.meter.text_in_item(tokens);
        let at = self.conversation.push(item.clone(), tokens, text_tokens, settings.policy.pins.has_item(&item));
        let moment = self.conversation.now();
        let mut output = None;
        match &*item {
            Item::Message(message) => {
                self.knowledge.take_attachments(moment, message);
                self.hear(settings, at, moment);
            }
            Item::FunctionCall(call) => self.knowledge.plan(moment, call),
            Item::FunctionCallOutput(_) => output = self.look(at, moment),
            Item::Reasoning(_) | Item::Opaque(_) => {}
        }
        ArrivedItem { at, moment, output }
    }

    fn hear(&mut self, settings: &FoldSettings, at: usize, moment: u32) {
        let who = match self.conversation.speaker(at) {
            ItemSpeaker::User | ItemSpeaker::Instructor => Who::User,
            ItemSpeaker::Model => Who::Agent,
            ItemSpeaker::Program | ItemSpeaker::Tool => return,
        };
        let has_room = self.shown.tokens() as f64 <= settings.policy.budget as f64 * ROOM_FOR_NAMED_SHARE;
        self.knowledge.hear(moment, who, &self.conversation.text(at), has_room);
    }

    /// Examines an output and learns from it.
    fn look(&mut self, at: usize, moment: u32) -> Option<ArrivedOutput> {
        let item = self.conversation.item(at);
        let made = self.conversation.call_of(item)?;
        let (call, output) = (made.call()?, item.as_output()?);
        let seen = self.knowledge.look(call, output);
        let is_long = output.output.len() >= stubs::LEAST_POINTED_BYTES;
        let repeats = is_long && self.repeats(&seen);
        self.knowledge.learn(moment, &seen);
        self.ledger.note(at, call, &seen, &output.output);
        Some(ArrivedOutput { tool: made.name.clone(), seen, repeats })
    }

    /// Whether an output only shows lines that are in the window already, each run of them in one piece.
    fn repeats(&self, seen: &Seen) -> bool {
        let is_repeated = |observation: &Observation| {
            let Observation::Read { path, block, .. } = observation else { return false };
            let known = self.knowledge.model().known(path, block);
            match known.and_then(|lines| self.shown.place_of(lines)) {
                // Lines between them may have been removed since they were shown, so the marks are not enough.
                Some(LinePlace::View) => self.shown.has_in_view(&format!("\n{}\n", block.lines.join("\n"))),
                Some(LinePlace::Item(moment)) => self.showed(moment, &block.lines),
                None => false,
            }
        };
        !seen.observations.is_empty() && seen.observations.iter().all(is_repeated)
    }

    /// Whether the output of a moment shows lines in one piece.
    fn showed(&self, moment: u32, lines: &[String]) -> bool {
        let Some(item) = self.conversation.output_at(moment) else { return false };
        let call = self.conversation.call_of(item).and_then(|made| made.call());
        let Some((call, output)) = call.zip(item.as_output()) else { return false };
        let seen = self.knowledge.look_back(call, output);
        let shows = |observation: &Observation| match observation {
            Observation::Read { block, .. } => block.lines.windows(lines.len()).any(|run| run == lines),
            _ => false,
        };
        seen.observations.iter().any(shows)
    }

    /// Shows an item that was taken in, with another text if that was decided.
    pub(super) fn show(&mut self, settings: &FoldSettings, arrived: ArrivedItem, text: Option<&Arc<str>>) {
        let ArrivedItem { at, moment, .. } = arrived;
        let shown = match text {
            Some(text) => {
                if stubs::is_pointer(text) {
                    self.shown.note_pointer(moment, at);
                }
                self.item_of(settings, &Piece::Shortened(at, text.clone()))
            }
            None => logged(at, &self.conversation),
        };
        let late = self.late_output(settings, at, &shown);
        self.shown.push(late.unwrap_or(shown));
    }

    /// Returns what replaces an output whose call was folded away before it arrived: providers refuse an output without
    /// its call.
    fn late_output(&self, settings: &FoldSettings, at: usize, shown: &ShownItem) -> Option<ShownItem> {
        let made = self.conversation.call_of(self.conversation.item(at))?;
        if made.at >= self.shown.start() {
            return None;
        }
        let text = stubs::late(&made.name, &text_of(&shown.item)?);
        Some(self.item_of(settings, &Piece::Made(text.into())))
    }

    /// The tokens of a piece.
    pub(super) fn piece_tokens(&self, settings: &FoldSettings, piece: &Piece) -> u64 {
        match piece {
            Piece::Logged(at) => self.conversation.item_tokens(*at),
            Piece::Shortened(at, text) => self.shortened_tokens(settings, *at, text),
            Piece::Made(text) | Piece::Records(Records { text, .. }) => settings.meter.made(text),
        }
    }

    /// The tokens of an item with another text; a call has its name besides.
    fn shortened_tokens(&self, settings: &FoldSettings, at: usize, text: &str) -> u64 {
        let name = self.conversation.item(at).as_call().map_or(0, |call| settings.meter.text(&call.name));
        settings.meter.made(text) + name
    }

    /// A piece as it is shown.
    pub(super) fn item_of(&self, settings: &FoldSettings, piece: &Piece) -> ShownItem {
        match piece {
            Piece::Logged(at) if !self.conversation.holds(*at) => {
                // The decision was made when it was pinned.
                self.item_of(settings, &Piece::Made(NO_LONGER_HELD.into()))
            }
            Piece::Logged(at) => logged(*at, &self.conversation),
            Piece::Shortened(at, text) => ShownItem {
                position: Some(*at),
                is_logged: false,
                item: Arc::new(with_text(self.conversation.item(*at), text)),
                tokens: self.shortened_tokens(settings, *at, text),
            },
            Piece::Made(text) | Piece::Records(Records { text, .. }) => ShownItem {
                position: None,
                is_logged: false,
                item: Arc::new(Item::developer(&**text)),
                tokens: settings.meter.made(text),
            },
        }
    }

    /// Applies what was decided before a request.
    pub(super) fn apply(&mut self, settings: &FoldSettings, decision: &FoldDecision) {
        match decision {
            FoldDecision::Fold(fold) => self.apply_fold(settings, fold),
            FoldDecision::BringBack(brought) => self.bring_back(settings, brought),
            FoldDecision::Cold { .. } => {
                self.billing.set_cold();
                self.shown.forget_sent();
            }
            FoldDecision::Disk(checked) => self.knowledge.take_over(self.conversation.now(), &checked.files),
            // Shortened outputs are shown as such when they arrive.
            FoldDecision::Shorten { .. } => {}
        }
    }

    fn apply_fold(&mut self, settings: &FoldSettings, fold: &Fold) {
        let before = self.shown.tokens();
        let cut = fold.shortened.iter().map(|(at, text)| Piece::Shortened(*at, text.clone()));
        let folded_items = ShownFold {
            keep: fold.keep,
            head: fold.head.iter().map(|piece| self.item_of(settings, piece)).collect(),
            pieces: fold.head.clone(),
            start: fold.start,
            cut: cut.map(|piece| self.item_of(settings, &piece)).collect(),
            parts: fold.parts.clone(),
        };
        self.shown.fold(&self.conversation, folded_items);
        let shown: HashSet<usize> = self.shown.items().iter().filter_map(|shown| shown.position).collect();
        self.conversation.forget(0..fold.start, |at| shown.contains(&at) || self.ledger.is_printed(at));
        for lines in &fold.shown {
            self.mark(lines);
        }
        let after = self.shown.tokens();
        let rewritten = after - self.shown.cached_tokens();
        let dialogue = self.dialogue_tokens();
        self.billing.note_fold(FoldSize { after: after.min(before), rewritten, dialogue });
    }

    fn bring_back(&mut self, settings: &FoldSettings, brought: &BringBack) {
        self.mark(&brought.shown);
        self.shown.note_brought_back();
        let item = self.item_of(settings, &Piece::Made(brought.text.clone()));
        self.shown.push(item);
    }

    /// Gives lines a new mark.
    fn mark(&mut self, shown: &[ShownLines]) {
        let mark = self.shown.take_mark();
        let model = self.knowledge.model_mut();
        for lines in shown {
            model.mark_shown(mark, lines.file, lines.segment, lines.first..lines.first + lines.count);
        }
    }

    /// Ends a request: what is shown is billed.
    pub(super) fn end_request(&mut self, settings: &FoldSettings) {
        self.knowledge.end_request(self.conversation.now());
        let (cached, tokens) = (self.shown.cached_tokens(), self.shown.tokens());
        self.billing.end_request(&settings.policy.prices, cached, tokens, self.conversation.tokens());
        self.shown.mark_sent();
    }

    /// Roughly estimates the size of the next fold. It is that of the last one, and what was said and done since. The
    /// view of a first one shows nearly everything that is known.
    pub(super) fn fold_size(&self, settings: &FoldSettings) -> FoldSize {
        let known = self.knowledge.model().bytes() as u64 / 4;
        let tuning = &settings.tuning;
        let first = known.min(tuning.view_tokens) + tuning.recent_tokens;
        self.billing.fold_size(first, self.dialogue_tokens())
    }

    /// Tokens of everything that was said, and roughly those of records.
    fn dialogue_tokens(&self) -> u64 {
        self.conversation.dialogue_tokens() + self.ledger.bytes() as u64 / 4
    }
}
