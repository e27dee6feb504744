//! The state machine that says, before every request, what of the past is sent.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use contexture_core::item::{FunctionCallOutput, Outcome};
use serde_json::Value;

use super::counts::Counts;
use super::cuts::Cuts;
use super::decision::{Fold, FoldDecision, Part, Recall, ShownLines};
use super::digest::{Ledger, shorten};
use super::doors;
use super::policy::Policy;
use super::price::Account;
use super::view::Chunk;
use super::vocabulary::Vocabulary;
use super::window::{Slot, Window};
use super::words::{RECENT_MESSAGES, Spoken};
use crate::files::dialect::{Dialects, says_failed};
use crate::files::model::{FileModel, Line, Mention, Who};
use crate::files::observation::{Kind, Observation, Seen};
use crate::files::observer::Observer;
use crate::tokens::TokenCounter;
use crate::transcript::{Message, Role, ToolCall};

mod ask;
mod build;
mod cold;
mod losses;
mod names;
mod outputs;
mod recall;

/// What is remembered of a logged message.
#[derive(Clone, Copy, Debug)]
struct Note {
    tokens: u64,
    /// Of those, the tokens of its text.
    text_tokens: u64,
    role: Role,
    /// For an answer: where its call stands. A later call may take the same id.
    answers: Option<usize>,
    /// Whether a window may begin here: no call before it is answered at it or behind it.
    opens: bool,
}

/// A call that was made.
struct Call {
    /// The position of the message that made it.
    made: usize,
    /// Without its arguments once it was answered and folded away.
    call: ToolCall,
    is_answered: bool,
}

/// Folds a conversation as it grows.
///
/// It holds what is known of files and what may still be shown, not the whole log: what was folded away is let go.
/// Feed it every message in order with [`push`](Self::push) and ask for the window before every request with
/// [`request`](Self::request). It is pure: the same messages, requests and policy give the same windows. Between
/// two folds the window only grows at its end, so the provider's cache holds.
///
/// ```
/// use std::sync::Arc;
/// use contexture::fold::{Folder, Policy, Slot};
/// use contexture::tokens::Estimate;
/// use contexture::transcript::Message;
///
/// let mut folder = Folder::new(Policy::new(8_000), Arc::new(Estimate));
/// let message: Message = serde_json::from_str(r#"{"role": "user", "text": "hello"}"#).unwrap();
/// folder.push(Arc::new(message));
/// assert_eq!(folder.request(), [Slot::Logged(0)]);
/// ```
pub struct Folder {
    policy: Policy,
    counter: Arc<dyn TokenCounter>,
    /// Tokens of texts that stand for logged ones.
    counts: Counts,
    observer: Observer,
    /// The tool that shows a text of the log by its hash.
    output_tool: Option<Arc<str>>,
    model: FileModel,
    ledger: Ledger,
    /// All messages; of those that were folded away, only what the user and the system said.
    messages: Vec<Option<Arc<Message>>>,
    notes: Vec<Note>,
    /// What the newest messages said.
    spoken: VecDeque<Spoken>,
    vocabulary: Vocabulary,
    cuts: Cuts,
    /// Moments at which the user said something.
    asks: Vec<u32>,
    /// The newest call of each id.
    calls: HashMap<String, Call>,
    window: Window,
    /// The first message that is shown in its own place; 0 before the first fold.
    start: usize,
    parts: Vec<Part>,
    /// Marks of the views that are in the window.
    visible: Vec<u32>,
    marks: u32,
    /// Files touched or named since the last request.
    touched: Vec<usize>,
    /// Files of which a line was named since the last request.
    pointed_at: Vec<usize>,
    /// How many messages there were at the last request.
    last_request: u32,
    /// Texts that stand for logged ones.
    texts: HashMap<usize, Arc<str>>,
    /// Outputs shown as pointers to what stands in the window.
    pointers: BTreeSet<usize>,
    account: Account,
    /// Whether the provider's cache holds nothing of the request that comes next.
    is_cold: bool,
    /// Tokens of all messages, and of those that were there at the last request.
    full: (u64, u64),
    /// Bytes and tokens of the texts of all messages.
    text: (u64, u64),
    last_fold: Option<(u64, u64)>,
    requests_since_fold: u32,
    decisions: Vec<FoldDecision>,
    replayed: VecDeque<FoldDecision>,
    /// Up to this many messages decisions are only replayed.
    covered: usize,
}

impl Folder {
    /// A folder for an empty conversation.
    pub fn new(policy: Policy, counter: Arc<dyn TokenCounter>) -> Self {
        Self {
            policy,
            counts: Counts::new(counter.clone()),
            counter,
            observer: Observer::default(),
            output_tool: None,
            model: FileModel::new(),
            ledger: Ledger::default(),
            messages: Vec::new(),
            notes: Vec::new(),
            spoken: VecDeque::new(),
            vocabulary: Vocabulary::default(),
            cuts: Cuts::default(),
            asks: Vec::new(),
            calls: HashMap::new(),
            window: Window::default(),
            start: 0,
            parts: Vec::new(),
            visible: Vec::new(),
            marks: 0,
            touched: Vec::new(),
            pointed_at: Vec::new(),
            last_request: 0,
            texts: HashMap::new(),
            pointers: BTreeSet::new(),
            account: Account::default(),
            is_cold: false,
            full: (0, 0),
            text: (0, 0),
            last_fold: None,
            requests_since_fold: 0,
            decisions: Vec::new(),
            replayed: VecDeque::new(),
            covered: 0,
        }
    }

    /// The same with other dialects.
    pub fn with_dialects(mut self, dialects: Dialects) -> Self {
        self.observer = Observer::new(dialects);
        self
    }

    /// The same, replaying decisions that were made before: until [`go_on`](Self::go_on) nothing is decided anew.
    ///
    /// Push the messages and make the requests of that time again, and the windows are those that were sent, byte
    /// for byte.
    pub fn replaying(mut self, decisions: Vec<FoldDecision>) -> Self {
        self.covered = usize::MAX;
        self.replayed = decisions.into();
        self
    }

    /// Ends replaying: what is pushed and requested from here on is decided anew.
    pub fn go_on(&mut self) {
        self.covered = self.messages.len();
        self.replayed.clear();
    }

    /// The folder of a recorded conversation that was under way: its messages, and what was decided about them.
    ///
    /// A request is taken to have been made before every assistant message.
    pub fn resume(self, messages: impl IntoIterator<Item = Arc<Message>>, decisions: Vec<FoldDecision>) -> Self {
        let mut folder = self.replaying(decisions);
        for message in messages {
            if message.role == Role::Assistant {
                folder.request();
            }
            folder.push(message);
        }
        folder.go_on();
        folder
    }

    /// Sets another policy from now on, for instance because the budget changed. What is shown stays until the
    /// next fold.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
    }

    /// What was billed so far, against pass-through.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// What is known of files.
    pub fn model(&self) -> &FileModel {
        &self.model
    }

    /// What was decided since [`take_decisions`](Self::take_decisions), or so far, oldest first.
    pub fn decisions(&self) -> &[FoldDecision] {
        &self.decisions
    }

    /// What was decided since this was last asked for. Whoever keeps it can replay the conversation; the folder need
    /// not hold it.
    pub fn take_decisions(&mut self) -> Vec<FoldDecision> {
        std::mem::take(&mut self.decisions)
    }

    /// How many messages it took in.
    pub fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether it took in nothing yet.
    pub fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// A message that is shown, or may be.
    fn message(&self, at: usize) -> &Message {
        self.messages[at].as_ref().expect("what was folded away is not shown again")
    }

    /// The tokens of the window as it is now.
    pub fn tokens(&self) -> u64 {
        self.window.total()
    }

    /// The tokens of all messages so far, which pass-through would send.
    pub fn passed_through_tokens(&self) -> u64 {
        self.full.0
    }

    /// The messages of the window as they would be sent.
    ///
    /// # Panics
    /// If the slots are of an earlier window and what they show was folded away since; see [`Slot::render`].
    pub fn render<'a>(&'a self, slots: &'a [Slot]) -> impl Iterator<Item = Message> + 'a {
        slots.iter().map(|slot| self.render_slot(slot))
    }

    /// One message of the window as it would be sent.
    ///
    /// # Panics
    /// Like [`render`](Self::render).
    pub fn render_slot(&self, slot: &Slot) -> Message {
        slot.render(|at| self.message(at))
    }

    /// Takes in the next message.
    pub fn push(&mut self, message: Arc<Message>) {
        let at = self.messages.len();
        let text_tokens = self.counter.count(&message.text);
        let tokens = text_tokens + self.count_beside_text(&message);
        let mut spoken = Spoken::default();
        if matches!(message.role, Role::User | Role::Assistant) {
            spoken.talk(&message.text, &mut self.vocabulary);
            self.note_names(at, &message);
        }
        for call in &message.tool_calls {
            let made = Call { made: at, call: call.clone(), is_answered: false };
            self.calls.insert(call.id.clone(), made);
            if self.observer.dialects().kind(&call.into()) == Kind::Other {
                spoken.talk(&call.arguments.to_string(), &mut self.vocabulary);
                self.note_plan(at, call);
            }
        }
        if message.role == Role::User {
            self.asks.push(at as u32 + 1);
        }
        let slot = match message.role {
            Role::Tool => {
                let slot = self.take_answer(at, &message, &mut spoken);
                self.late_answer(&slot, &message).unwrap_or(slot)
            }
            _ => Slot::Logged(at),
        };
        let call = message.tool_call_id.as_ref().and_then(|id| self.calls.get(id));
        let answers = call.map(|call| call.made);
        self.notes.push(Note { tokens, text_tokens, answers, role: message.role, opens: message.role != Role::Tool });
        self.spoken.truncate(RECENT_MESSAGES - 1);
        self.spoken.push_front(spoken);
        self.text.0 += message.text.len() as u64;
        self.text.1 += text_tokens;
        self.messages.push(Some(message));
        self.full.0 += tokens;
        let tokens = self.slot_tokens(&slot);
        self.window.push(slot, tokens);
    }

    /// What stands for an answer whose call was folded away before it came: providers refuse one without its call.
    fn late_answer(&self, slot: &Slot, message: &Message) -> Option<Slot> {
        let Call { made, call, .. } = self.calls.get(message.tool_call_id.as_deref()?)?;
        let text = match slot {
            Slot::Shortened(_, text) | Slot::Made(text) => text,
            Slot::Logged(_) => message.text.as_str(),
        };
        (*made < self.start).then(|| Slot::Made(doors::late(&call.name, text).into()))
    }

    /// Looks into a tool's answer; answers how it is shown.
    fn take_answer(&mut self, at: usize, message: &Message, spoken: &mut Spoken) -> Slot {
        let id = message.tool_call_id.as_deref().unwrap_or_default();
        if let Some(call) = self.calls.get_mut(id) {
            call.is_answered = true;
        }
        let Some(Call { call, .. }) = self.calls.get(id) else { return Slot::Logged(at) };
        let outcome = if says_failed(&message.text) { Outcome::Failed } else { Outcome::Done };
        let seen = self.observer.observe(&call.into(), &FunctionCallOutput::new(id, &*message.text, outcome));
        let repeats = message.text.len() >= doors::LEAST_POINTED_BYTES && self.repeats(&seen);
        for observation in &seen.observations {
            spoken.change(observation, &mut self.vocabulary);
            self.model.apply(at as u32 + 1, observation);
        }
        self.touched.extend(seen.paths.iter().filter_map(|path| self.model.place(path)));
        let pointed_at = seen.observations.iter().filter_map(|observation| match observation {
            Observation::Mentioned { path, line: Some(_) } => self.model.place_like(path),
            _ => None,
        });
        self.pointed_at.extend(pointed_at);
        self.ledger.note(at, call, &seen, &message.text);
        if at < self.covered {
            return self.replay_shorten(at);
        }
        let (text, reason) = if repeats {
            self.pointers.insert(at);
            (doors::pointer(&seen, &message.text), "the same text stands above")
        } else {
            let Some(shorter) = self.shorter(&call.name, &seen, &message.text) else { return Slot::Logged(at) };
            shorter
        };
        let text: Arc<str> = text.into();
        self.texts.insert(at, text.clone());
        self.decisions.push(FoldDecision::Shorten { position: at, text: text.clone(), reason: reason.to_owned() });
        Slot::Shortened(at, text)
    }

    /// Whether an answer only shows lines that stand in the window already, each run of them in one piece.
    fn repeats(&self, seen: &Seen) -> bool {
        let repeated = |observation: &Observation| {
            let Observation::Read { path, block, .. } = observation else { return false };
            let Some(lines) = self.model.known(path, block) else { return false };
            let Some(first) = lines.first() else { return false };
            let in_view = first.shown > 0 && self.visible.contains(&first.shown);
            let in_view = in_view && lines.iter().all(|line| line.shown == first.shown);
            let in_message = first.seen as usize > self.start && !self.pointers.contains(&(first.seen as usize - 1));
            in_view || (in_message && lines.iter().all(|line| line.seen == first.seen && line.edited < line.seen))
        };
        !seen.observations.is_empty() && seen.observations.iter().all(repeated)
    }

    fn replay_shorten(&mut self, at: usize) -> Slot {
        match self.replayed.front() {
            Some(FoldDecision::Shorten { position, text, .. }) if *position == at => {
                let text = text.clone();
                if doors::is_pointer(&text) {
                    self.pointers.insert(at);
                }
                self.texts.insert(at, text.clone());
                self.decisions.extend(self.replayed.pop_front());
                Slot::Shortened(at, text)
            }
            _ => Slot::Logged(at),
        }
    }

    /// The window of the request that is made now.
    pub fn request(&mut self) -> &[Slot] {
        self.requests_since_fold += 1;
        if self.messages.len() < self.covered {
            self.is_cold = false;
            self.replay_request();
        } else {
            self.note_cold();
            self.decide();
        }
        self.touched.clear();
        self.pointed_at.clear();
        self.last_request = self.messages.len() as u32;
        let prices = self.policy.prices;
        let billed = prices.bill(self.window.cached(), self.window.total());
        self.account.note(billed, prices.bill(self.passed_through_cached(), self.full.0));
        self.is_cold = false;
        self.full.1 = self.full.0;
        self.window.mark_sent();
        self.window.slots()
    }

    fn replay_request(&mut self) {
        let now = self.messages.len();
        self.pay_rent();
        while let Some(decision) = self.replayed.front() {
            match decision {
                FoldDecision::Fold(fold) if fold.at == now => {
                    let fold = fold.clone();
                    self.apply_fold(&fold);
                }
                FoldDecision::Cold { at } if *at == now => self.begin_cold(),
                FoldDecision::Recall(recall) if recall.at == now => {
                    let recall = recall.clone();
                    self.apply_recall(&recall);
                }
                _ => return,
            }
            self.decisions.extend(self.replayed.pop_front());
        }
    }

    fn decide(&mut self) {
        let price = self.pay_rent();
        let (after, _) = self.last_fold.unwrap_or((self.estimate(), 0));
        let total = self.window.total();
        let is_deep = total > after + after / 5;
        if total > self.policy.budget {
            self.fold("the window is full");
        } else if self.is_cold {
            self.fold_while_cold();
        } else if is_deep && self.account.rent >= price * self.policy.patience && self.can_afford(price) {
            self.fold_if_harmless("the rent paid on what it removes has reached its price");
        }
        if let Some(recall) = self.recall_touched() {
            self.apply_recall(&recall);
            self.decisions.push(FoldDecision::Recall(recall));
        }
        if self.window.total() > self.policy.budget {
            self.fold("what a touched or named file brought back does not fit");
        }
    }

    /// Whether the bill stays within the excess that it may run up.
    fn can_afford(&self, price: f64) -> bool {
        self.account.saved() - price >= -self.policy.most_excess * self.account.passed_through
    }

    /// Adds this request's rent on what a fold would remove; answers the price of a fold.
    fn pay_rent(&mut self) -> f64 {
        let prices = self.policy.prices;
        let (after, rewritten) = self.last_fold.unwrap_or_else(|| {
            let estimate = self.estimate();
            (estimate, estimate)
        });
        self.account.rent += prices.read * self.window.total().saturating_sub(after) as f64;
        (prices.write - prices.read) * rewritten as f64
    }

    /// What the window would have after a first fold, roughly: early on a view shows nearly all that is known.
    fn estimate(&self) -> u64 {
        let known = self.model.bytes() as u64 / 4;
        let policy = &self.policy;
        known.min(policy.view_tokens) + policy.tail_tokens + policy.opening_tokens + policy.ledger_tokens
    }

    fn fold(&mut self, reason: &str) {
        let fold = self.build_fold(reason);
        self.apply_fold(&fold);
        self.decisions.push(FoldDecision::Fold(fold));
    }

    fn apply_fold(&mut self, fold: &Fold) {
        let before = self.window.total();
        let mut slots: Vec<Slot> = self.window.slots()[..fold.keep.min(self.window.slots().len())].to_vec();
        slots.extend(fold.head.iter().cloned());
        // What pointers point to may be folded away, so they become again what they stood for.
        for at in std::mem::take(&mut self.pointers) {
            self.texts.remove(&at);
        }
        self.texts.extend(fold.shortened.iter().cloned());
        slots.extend((fold.start..self.messages.len()).map(|at| self.slot_of(at)));
        let slots = slots.into_iter().map(|slot| (slot.clone(), self.slot_tokens(&slot))).collect();
        self.window.replace(slots);
        self.let_go(self.start..fold.start);
        self.counts.forget_unused();
        self.start = fold.start;
        self.parts = fold.parts.clone();
        self.visible = fold.parts.iter().map(|part| part.mark).collect();
        for lines in &fold.shown {
            self.mark(lines);
        }
        self.account.rent = 0.0;
        self.requests_since_fold = 0;
        let after = self.window.total();
        self.last_fold = Some((after.min(before), after - self.window.cached()));
    }

    /// Lets go of messages that were folded away. What the user and the system said may be told again.
    fn let_go(&mut self, folded: Range<usize>) {
        for at in folded.filter(|at| matches!(self.notes[*at].role, Role::Assistant | Role::Tool)) {
            self.texts.remove(&at);
            let Some(message) = self.messages[at].take() else { continue };
            for call in &message.tool_calls {
                // Of a call that is still to be answered everything is needed; of others their name, for late answers.
                let entry = self.calls.get_mut(&call.id).filter(|entry| entry.made == at && entry.is_answered);
                if let Some(entry) = entry {
                    entry.call.arguments = Value::Null;
                }
            }
        }
    }

    /// Gives lines a new mark.
    fn mark(&mut self, shown: &[ShownLines]) {
        self.marks += 1;
        for lines in shown {
            self.model.mark_shown(self.marks, lines.file, lines.segment, lines.first..lines.first + lines.count);
        }
    }

    fn slot_of(&self, at: usize) -> Slot {
        self.texts.get(&at).map_or(Slot::Logged(at), |text| Slot::Shortened(at, text.clone()))
    }

    /// Tokens of a message that are not its text's.
    fn count_beside_text(&self, message: &Message) -> u64 {
        let arguments = |call: &ToolCall| match &call.arguments {
            Value::String(text) => self.counter.count(text),
            other => self.counter.count(&other.to_string()) + ARGUMENTS_TOKENS,
        };
        self.policy.message_tokens + message.tool_calls.iter().map(|call| 1 + arguments(call)).sum::<u64>()
    }

    fn slot_tokens(&self, slot: &Slot) -> u64 {
        match slot {
            Slot::Logged(at) => self.notes[*at].tokens,
            Slot::Shortened(at, text) => {
                let note = &self.notes[*at];
                self.counts.of(text) + note.tokens - note.text_tokens
            }
            Slot::Made(text) => self.policy.message_tokens + self.counts.of(text),
        }
    }
}

/// Tokens that blanks and names add to arguments on the wire.
const ARGUMENTS_TOKENS: u64 = 4;

fn shown_lines(chunks: &[Chunk], chosen: &[usize]) -> Vec<ShownLines> {
    let lines = |chunk: &Chunk| ShownLines {
        file: chunk.file,
        segment: chunk.segment,
        first: chunk.lines.start,
        count: chunk.lines.len(),
    };
    chosen.iter().map(|index| lines(&chunks[*index])).collect()
}

/// Bytes of a text, cut in its middle to a number of tokens.
fn cut(counter: &dyn TokenCounter, text: &str, tokens: u64) -> String {
    let mut bytes = usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(4);
    loop {
        let short = shorten(text, bytes);
        if counter.count(&short) <= tokens || bytes == 0 {
            return short;
        }
        bytes = bytes * 3 / 4;
    }
}
