//! The state machine that says, before every request, what of the past is sent.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::price::{Account, Prices};
use super::view::{self, Chunk};
use super::ledger::Ledger;
use crate::files::dialect::Dialects;
use crate::files::model::FileModel;
use crate::files::observation::{Kind, Observation, Seen};
use crate::tokens::TokenCounter;
use crate::transcript::{Message, Role, ToolCall};

/// How a [`Folder`] folds. Shares are of the budget.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// The most tokens of a window.
    pub budget: u64,
    /// The provider's prices.
    pub prices: Prices,
    /// Most tokens of the view of files.
    pub view_tokens: u64,
    /// Most tokens of the recent tail that a fold keeps as it is.
    pub tail_tokens: u64,
    /// Most tokens of one user message behind a fold.
    pub user_tokens: u64,
    /// Most tokens of the ledger.
    pub ledger_tokens: u64,
    /// How much rent must have been paid, against the fold's price, before a fold that nothing forces.
    pub patience: f64,
    /// Most tokens of one output of a command, at its first sending.
    pub output_tokens: u64,
}

impl Policy {
    /// The policy for a budget.
    pub fn new(budget: u64) -> Self {
        Self {
            budget,
            prices: Prices::ANTHROPIC,
            view_tokens: (budget * 45 / 100).min(40_000),
            tail_tokens: (budget / 10).min(6_000),
            user_tokens: (budget / 16).min(2_500),
            ledger_tokens: (budget / 25).min(1_500),
            patience: 1.0,
            output_tokens: u64::MAX,
        }
    }
}

/// One message of a window.
#[derive(Clone, Debug, PartialEq)]
pub enum Slot {
    /// The message of the log at this position, as it is.
    Logged(usize),
    /// The message of the log at this position with another text.
    Shortened(usize, Arc<str>),
    /// A message that stands for others.
    Made(Arc<Message>),
}

/// Something that was done to the window, to be replayed as it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "decision", rename_all = "snake_case")]
pub enum FoldDecision {
    /// Everything before `start` is folded.
    Fold(Fold),
    /// A message is shown with another text from its first sending on.
    Shorten {
        /// Its position in the log.
        position: usize,
        /// The text.
        text: Arc<str>,
        /// Why.
        reason: String,
    },
}

/// A fold: what stands for the past from now on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fold {
    /// How many messages the log had.
    pub at: usize,
    /// The first message that is still shown after its turn.
    pub start: usize,
    /// What stands for those before: logged messages, shortened ones, and made ones.
    pub head: Vec<HeadPart>,
    /// Messages behind `start` that are shown shortened.
    pub shortened: Vec<(usize, Arc<str>)>,
    /// Why it was done now.
    pub reason: String,
    /// Tokens of the window before it.
    pub before_tokens: u64,
    /// Tokens of the window behind it.
    pub after_tokens: u64,
    /// What it was billed above leaving the window as it was.
    pub cost: f64,
    /// What every later request is spared.
    pub saves_per_request: f64,
}

/// One message of a fold's head.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HeadPart {
    /// A logged message.
    Logged(usize),
    /// A logged message with another text.
    Shortened(usize, Arc<str>),
    /// A made message's text; it speaks as the user.
    Made(Arc<str>),
}

/// What is remembered of a logged message.
#[derive(Clone, Debug)]
struct Note {
    tokens: u64,
    role: Role,
    /// Whether a window may begin here: no call before it is answered behind it.
    opens: bool,
    kind: Option<Kind>,
}

/// Folds a conversation as it grows.
///
/// Feed it every message in order with [`push`](Self::push) and ask for the window before every request with
/// [`request`](Self::request). It is pure: the same messages and requests give the same windows. Between two
/// folds the window only grows at its end.
pub struct Folder {
    policy: Policy,
    counter: Arc<dyn TokenCounter>,
    dialects: Dialects,
    model: FileModel,
    ledger: Ledger,
    messages: Vec<Arc<Message>>,
    notes: Vec<Note>,
    calls: HashMap<String, ToolCall>,
    window: Vec<Slot>,
    tokens: Vec<u64>,
    total: u64,
    sent: usize,
    account: Account,
    full_total: u64,
    full_sent: u64,
    /// Tokens of the window as the last request sent it, up to which it is cached.
    cached: Option<u64>,
    decisions: Vec<FoldDecision>,
    last_after: u64,
}

impl Folder {
    /// A folder for an empty conversation.
    pub fn new(policy: Policy, counter: Arc<dyn TokenCounter>) -> Self {
        Self {
            policy,
            counter,
            dialects: Dialects::builtin(),
            model: FileModel::new(),
            ledger: Ledger::default(),
            messages: Vec::new(),
            notes: Vec::new(),
            calls: HashMap::new(),
            window: Vec::new(),
            tokens: Vec::new(),
            total: 0,
            sent: 0,
            account: Account::default(),
            full_total: 0,
            full_sent: 0,
            cached: None,
            decisions: Vec::new(),
            last_after: 0,
        }
    }

    /// What was billed so far.
    pub fn account(&self) -> &Account {
        &self.account
    }

    /// What is known of files.
    pub fn model(&self) -> &FileModel {
        &self.model
    }

    /// What was decided so far, oldest first.
    pub fn decisions(&self) -> &[FoldDecision] {
        &self.decisions
    }

    /// The messages so far.
    pub fn messages(&self) -> &[Arc<Message>] {
        &self.messages
    }

    /// Takes in the next message.
    pub fn push(&mut self, message: Arc<Message>) {
        let at = self.messages.len();
        let tokens = self.count(&message);
        let mut kind = None;
        for call in &message.tool_calls {
            self.calls.insert(call.id.clone(), call.clone());
        }
        let call = message.tool_call_id.as_ref().filter(|_| message.role == Role::Tool).and_then(|id| self.calls.get(id));
        if let Some(call) = call {
            let seen = self.dialects.observe(call, &message.text);
            kind = Some(seen.kind);
            for observation in &seen.observations {
                self.model.apply(at as u32 + 1, observation);
            }
            self.ledger.note(at, call, &seen, &message.text);
        }
        let opens = message.role != Role::Tool;
        self.notes.push(Note { tokens, role: message.role, opens, kind });
        self.messages.push(message);
        self.full_total += tokens;
        self.window.push(Slot::Logged(at));
        self.tokens.push(tokens);
        self.total += tokens;
    }

    /// The window of the request that is made now.
    pub fn request(&mut self) -> &[Slot] {
        let estimate = self.estimate_after();
        self.account.rent += self.policy.prices.read * self.total.saturating_sub(estimate) as f64;
        let price = (self.policy.prices.write - self.policy.prices.read) * estimate as f64;
        let forced = self.total > self.policy.budget;
        let mut cached = self.cached.unwrap_or(0);
        if forced || (self.account.rent >= price * self.policy.patience && self.total > 2 * estimate) {
            cached = self.fold(forced);
        }
        let billed = self.policy.prices.bill(cached, self.total);
        let full = self.policy.prices.bill(self.full_sent, self.full_total);
        self.account.note(billed, full);
        self.full_sent = self.full_total;
        self.cached = Some(self.total);
        &self.window
    }

    /// What a window would have after a fold, roughly.
    fn estimate_after(&self) -> u64 {
        let known = self.model.files().iter().map(|file| file.bytes() as u64).sum::<u64>() / 4;
        known.min(self.policy.view_tokens) + self.policy.tail_tokens + self.policy.ledger_tokens
    }

    fn count(&self, message: &Message) -> u64 {
        let mut tokens = self.counter.count(&message.text);
        for call in &message.tool_calls {
            tokens += 1 + match &call.arguments {
                serde_json::Value::String(text) => self.counter.count(text),
                other => self.counter.count(&other.to_string()) + 4,
            };
        }
        tokens
    }

    /// Folds now; answers how many tokens at the start of the new window are cached.
    fn fold(&mut self, forced: bool) -> u64 {
        let start = self.tail_start();
        let mut head: Vec<Slot> = Vec::new();
        for (at, message) in self.messages[..start].iter().enumerate() {
            if message.role == Role::User || message.role == Role::System {
                head.push(self.cap_user(at));
            }
        }
        let mut tokens: Vec<u64> = head.iter().map(|slot| self.slot_tokens(slot)).collect();
        let ledger = self.ledger.render(start, self.policy.ledger_tokens as usize * 4);
        let tail: Vec<Slot> = (start..self.messages.len()).map(|at| self.tail_slot(at)).collect();
        let tail_tokens: u64 = tail.iter().map(|slot| self.slot_tokens(slot)).sum();
        let used = tokens.iter().sum::<u64>() + self.counter.count(&ledger) + tail_tokens + 100;
        let room = self.policy.budget.saturating_sub(used).min(self.policy.view_tokens);
        let view = self.render_view(room);
        let text = format!("{ledger}\n{view}");
        let made = Slot::Made(Arc::new(Message {
            role: Role::User,
            text,
            tool_calls: Vec::new(),
            tool_call_id: None,
            name: None,
        }));
        tokens.push(self.slot_tokens(&made));
        head.push(made);
        tokens.extend(tail.iter().map(|slot| self.slot_tokens(slot)));
        head.extend(tail);
        let same = self.window.iter().zip(&head).take_while(|(old, new)| old == new).count();
        let cached: u64 = self.tokens[..same].iter().sum();
        let _ = forced;
        self.window = head;
        self.total = tokens.iter().sum();
        self.tokens = tokens;
        self.account.rent = 0.0;
        self.last_after = self.total;
        cached
    }

    fn tail_slot(&self, at: usize) -> Slot {
        let found = self.window.iter().rev().find(|slot| matches!(slot, Slot::Shortened(position, _) if *position == at));
        found.cloned().unwrap_or(Slot::Logged(at))
    }

    fn slot_tokens(&self, slot: &Slot) -> u64 {
        match slot {
            Slot::Logged(at) => self.notes[*at].tokens,
            Slot::Shortened(at, text) => {
                self.counter.count(text) + self.notes[*at].tokens.saturating_sub(self.counter.count(&self.messages[*at].text))
            }
            Slot::Made(message) => self.count(message),
        }
    }

    /// The first message of the tail that a fold keeps.
    fn tail_start(&self) -> usize {
        let len = self.messages.len();
        let mut start = len;
        let mut tokens = 0;
        for at in (0..len).rev() {
            tokens += self.notes[at].tokens;
            if tokens > self.policy.tail_tokens && start < len {
                break;
            }
            if self.notes[at].opens {
                start = at;
            }
            if tokens > self.policy.tail_tokens && start < len {
                break;
            }
        }
        start
    }

    fn cap_user(&self, at: usize) -> Slot {
        let message = &self.messages[at];
        if self.notes[at].tokens <= self.policy.user_tokens {
            return Slot::Logged(at);
        }
        Slot::Shortened(at, shorten(&message.text, self.policy.user_tokens as usize * 4).into())
    }

    fn render_view(&self, tokens: u64) -> String {
        let now = self.messages.len() as u32;
        let chunks = view::chunks(&self.model, now);
        let chosen = view::choose(&chunks, &view::need, tokens as usize * 4);
        let mut by_file: Vec<(u32, usize, Vec<&Chunk>)> = Vec::new();
        for index in chosen {
            let chunk = &chunks[index];
            match by_file.last_mut() {
                Some((_, file, list)) if *file == chunk.file => list.push(chunk),
                _ => by_file.push((self.model.files()[chunk.file].touched, chunk.file, vec![chunk])),
            }
        }
        by_file.sort_by_key(|(touched, file, _)| (*touched, *file));
        let mut text = String::new();
        for (_, file, list) in by_file {
            view::render_file(&self.model.files()[file], &list, &mut text);
        }
        text
    }
}

/// The head and the tail of a text, with a marker between them.
pub fn shorten(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let keep = bytes.saturating_sub(60);
    let head = floor(text, keep * 2 / 3);
    let tail = ceil(text, text.len() - (keep - keep * 2 / 3));
    format!("{}\n[… {} bytes left out …]\n{}", &text[..head], tail - head, &text[tail..])
}

fn floor(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

fn ceil(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

#[allow(dead_code)]
fn unused(_: &Seen, _: &Observation) {}
