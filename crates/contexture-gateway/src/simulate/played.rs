//! Replays recorded sessions as if they had passed through the gateway.
//!
//! The requests of a recording repeat each other, so their bodies are not written out: a message is read once, and a
//! request costs time for what is new in it.

use std::sync::Arc;
use std::time::Instant;

use contexture::files::disk::Gate;
use contexture::fold::{FoldDecision, ShownItem};
use contexture::item::Item;
use contexture::transcript::Record;
use contexture::wire::prefix_cache::CacheKind;
use contexture::wire::{Format, Usage};
use serde_json::value::RawValue;

use super::growing_cache::GrowingCache;
use super::recorded::RecordedSession;
use crate::account::bill::Account;
use crate::account::growth::BodyBytes;
use crate::account::record::{DecidedNote, RequestRecord};
use crate::account::sent_request::SentRequest;
use crate::conversation::folder::{ConversationFolder, FolderSettings};
use crate::decide::notes::note_of;
use crate::decide::policy::{limit_with, most_within, policy_within};
use crate::decide::prepared::RequestedModel;
use crate::models::{Caching, Source};
use crate::options::Options;

/// Time between two requests if the recording has no times, in milliseconds.
const USUAL_PAUSE_MS: u64 = 20_000;

/// How long the provider caches an unused prefix, in milliseconds.
const LIFE_MS: u64 = 300_000;

/// Tokens of an agent's own prompt, with the tools that it declares, where a recording has less. A recording has the
/// instructions at most.
pub const PROMPT_TOKENS: u64 = 12_000;

/// Approximate bytes of output per token.
const BYTES_PER_TOKEN: u64 = 4;

/// The model whose window and prices are assumed for a recording that names none.
pub const ASSUMED_MODEL: &str = "claude-sonnet-4-5";

/// The session of what is played.
const SESSION: &str = "recorded";

/// Replays recordings through the gateway's decisions, against a simulated provider cache.
pub struct Played {
    budget: Option<u64>,
    model: Option<String>,
    leaves: u64,
    prompt: u64,
    options: Options,
}

/// One request of a recording.
pub struct PlayedRequest<'a> {
    /// What became of it. Without a time in the recording, its time is 0.
    pub record: RequestRecord,
    /// The instructions.
    pub instructions: &'a str,
    /// Tokens of the agent's own prompt, by our own count: more than the instructions have where a recording lacks some.
    pub prompt: u64,
    /// All items that came, each with its tokens.
    pub came: &'a [(Arc<Item>, u64)],
    /// The items that are sent.
    pub window: &'a [ShownItem],
    /// How many of these are, from the start, as they were in the request before.
    pub kept: usize,
    /// What the model answered.
    pub answer: Vec<Item>,
}

impl Played {
    /// Sets a budget in tokens, as [`Options::budget`] has it.
    pub fn new(budget: Option<u64>) -> Self {
        Self { budget, model: None, leaves: 0, prompt: PROMPT_TOKENS, options: Options::default() }
    }

    /// Sets the name of the agent whose recording it is, which says when it would have summarised its conversation.
    pub fn with_agent(mut self, name: &str) -> Self {
        let agent = contexture_agents::agents().iter().find(|agent| agent.name() == name);
        self.leaves = agent.and_then(|agent| agent.compaction().leaves()).copied().unwrap_or(0);
        self
    }

    /// Sets how many tokens the agent's own prompt has at least; the default is [`PROMPT_TOKENS`].
    pub fn with_prompt(mut self, tokens: u64) -> Self {
        self.prompt = tokens;
        self
    }

    /// Sets what tools do, what is pinned, and how tokens are counted.
    pub fn with_options(mut self, options: Options) -> Self {
        self.options = options;
        self
    }

    /// Sets the model that answered; `None` assumes [`ASSUMED_MODEL`].
    pub fn with_model(mut self, model: Option<String>) -> Self {
        self.model = model;
        self
    }

    /// Replays a recording as a conversation of its own, and tells of each request. Returns the number of requests.
    pub fn play(&self, conversation: &str, records: &[Record], tell: &mut dyn FnMut(PlayedRequest<'_>)) -> usize {
        let recorded = RecordedSession::new(Format::Messages, records).as_recorded();
        let messages = recorded.raw_messages();
        let messages: Vec<&RawValue> = messages.iter().map(|message| &**message).collect();
        let mut player = RecordingPlayer::new(self, &recorded);
        for number in 0..recorded.len() {
            let Some(record) = player.next(number, &recorded, &messages) else { return number };
            let record = RequestRecord { conversation: Some(conversation.to_owned()), ..record };
            tell(PlayedRequest {
                record,
                instructions: recorded.instructions(),
                prompt: player.head,
                came: player.folder.log(),
                window: player.folder.window(),
                kept: player.kept,
                answer: recorded.response_to(number),
            });
        }
        recorded.len()
    }
}

/// A recording that is being played.
struct RecordingPlayer {
    asked_budget: Option<u64>,
    requested: RequestedModel,
    folder: ConversationFolder,
    account: Account,
    cache: GrowingCache,
    /// The time of the recording, or one that is made up where it has none.
    now_ms: u64,
    /// Tokens of the instructions.
    head: u64,
    came_bytes: u64,
    taken: usize,
    kept: usize,
}

impl RecordingPlayer {
    fn new(played: &Played, recorded: &RecordedSession) -> Self {
        let name = played.model.clone().unwrap_or_else(|| format!("{ASSUMED_MODEL} (assumed)"));
        let mut known = played.options.models.find(played.model.as_deref().unwrap_or(ASSUMED_MODEL));
        if let (None, Source::Table(day)) = (&played.model, &known.price) {
            known.price = Source::Guess(ASSUMED_MODEL.to_owned(), day.clone());
        }
        let kind = if known.model.write > 1.0 { CacheKind::Marked } else { CacheKind::Automatic };
        let settings = FolderSettings {
            dialects: played.options.dialects.clone(),
            can_show: false,
            counter: played.options.counter.clone(),
            gate: Gate::default(),
        };
        let requested = RequestedModel::new(known, name, Caching::Minutes, played.leaves);
        let account = Account::default();
        let head = (recorded.instructions().len() as u64 / BYTES_PER_TOKEN).max(played.prompt);
        let policy = policy_within(played.budget, limit_with(None, &requested), &requested, &account, head);
        Self {
            asked_budget: played.budget,
            folder: ConversationFolder::new(Format::Messages, 0, policy, &settings, None, Default::default()),
            cache: GrowingCache::new(kind, LIFE_MS, recorded.instructions(), head),
            requested,
            account,
            now_ms: recorded.time_ms_of_first().unwrap_or(1),
            came_bytes: head * BYTES_PER_TOKEN,
            head,
            taken: 0,
            kept: 0,
        }
    }

    /// Decides about the next request, and bills it. `None` if its messages cannot be read.
    fn next(&mut self, number: usize, recorded: &RecordedSession, messages: &[&RawValue]) -> Option<RequestRecord> {
        let began = Instant::now();
        // A time that goes backwards is an error of the recording.
        self.now_ms = recorded.time_ms(number).unwrap_or(self.now_ms + USUAL_PAUSE_MS).max(self.now_ms);
        let count = recorded.messages_of(number);
        self.came_bytes += messages[self.taken..count].iter().map(|message| message.get().len() as u64).sum::<u64>();
        self.taken = count;
        self.folder.catch_up(&messages[..count]).ok()?;
        let limit = limit_with(None, &self.requested);
        let policy = policy_within(self.asked_budget, limit, &self.requested, &self.account, self.head);
        let is_cold = self.account.is_cold(&self.requested.prices, self.now_ms);
        let decisions = self.folder.decide(policy, is_cold, None);
        let record = self.billed(recorded.answer_bytes(number), &decisions);
        Some(RequestRecord {
            time_ms: recorded.time_ms(number).unwrap_or(0),
            budget: Some(most_within(self.asked_budget, limit, &self.requested)),
            own_us: began.elapsed().as_micros() as u64,
            ..record
        })
    }

    /// Bills what is sent as the simulated provider would.
    fn billed(&mut self, answer_bytes: u64, decisions: &[FoldDecision]) -> RequestRecord {
        let (took, kept) = self.cache.serve(self.folder.window(), self.folder.standing(), self.now_ms);
        self.kept = kept;
        let format = Format::Messages;
        let mut usage = Usage::default();
        usage.take(&serde_json::json!({"usage": took.usage(format, answer_bytes / BYTES_PER_TOKEN)}));
        let (sent, came) = self.folder.tokens();
        let decided: Vec<DecidedNote> = decisions.iter().map(note_of).collect();
        let is_changed = self.folder.window().iter().any(|shown| !shown.is_logged)
            || self.folder.window().len() != self.folder.log().len();
        let request = SentRequest {
            has_apart: false,
            rewritten: None,
            most: self.requested.most,
            sent_tokens: sent + self.head,
            came_tokens: came + self.head,
            is_counted: true,
            came_bytes: BodyBytes { text: self.came_bytes, ..BodyBytes::default() },
            sent_bytes: BodyBytes { text: took.total() * BYTES_PER_TOKEN, ..BodyBytes::default() },
            is_changed,
            has_moved: decided.iter().any(DecidedNote::is_fold),
            folded: DecidedNote::folded(&decided),
            time_ms: self.now_ms,
        };
        let RequestedModel { known, name, prices, .. } = &self.requested;
        let bill = self.account.note(&known.model, prices, request, &usage, self.now_ms);
        let [dollars, dollars_through] = [bill.sent, bill.passed()].map(|tokens| known.model.dollars(tokens));
        let mut record = RequestRecord {
            session: SESSION.to_owned(),
            format: Some(format),
            model: name.clone(),
            status: 200,
            is_changed,
            decided,
            usage: Some(usage),
            is_simulated: true,
            bill: Some(bill),
            dollars,
            dollars_through,
            price_from: Some(known.price.clone()),
            context: Some(known.model.context),
            context_from: Some(known.window.clone()),
            ..RequestRecord::default()
        };
        record.note_fold_bill();
        record
    }
}
