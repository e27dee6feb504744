//! Decides about the requests of one conversation in the process that sends them, without a gateway.
//!
//! It uses the same `Decider` as the gateway, so what it returns is byte for byte what a gateway without a store
//! would send, provided that it is told the same usage.

mod detect;
mod options;
mod snapshot;

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use contexture::wire::{AnswerReader, Answered, Format, Usage, WireError};
use serde::Serialize;
use serde_json::{Value, json};

use crate::accept::incoming::{IncomingRequest, RequestScope};
use crate::account::bill::Bill;
use crate::account::record::DecidedNote;
use crate::conversation::health::StopReason;
use crate::conversation::state::AcceptedForm;
use crate::decide::decider::Decider;
use crate::decide::prepared::{PreparedRequest, SecondAnswer};
use crate::decide::progress::Progress;
use crate::decide::reason::PassReason;
use crate::options::Options;

pub use detect::detected_format;
pub use options::{OptionsError, Pinned, WireFolderOptions};
pub use snapshot::SnapshotError;

/// How long a decision may look for its conversation. There is no store that could be slow.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// Most requests whose usage can still be reported.
const MAX_WAITING: usize = 64;

/// Decides what is sent for the requests of one conversation. It can be used by several threads at once.
///
/// ```
/// use contexture_gateway::in_process::{WireFolder, WireFolderOptions};
///
/// let options = WireFolderOptions { budget: Some(64_000), ..WireFolderOptions::default() };
/// let folder = WireFolder::new(options).unwrap();
/// let body = r#"{"model":"gpt-5","messages":[{"role":"user","content":"hello"}]}"#;
/// let folded = folder.request(body.as_bytes()).unwrap();
/// assert_eq!(&folded.body[..], body.as_bytes());
/// assert!(!folded.report.is_changed);
/// ```
pub struct WireFolder {
    options: WireFolderOptions,
    decider: Decider,
    /// Whether files may be read, for which a runtime is needed.
    reads_files: bool,
    number: AtomicU64,
    waiting: Mutex<VecDeque<SentHere>>,
}

/// A request that was returned, until its usage is reported.
struct SentHere {
    number: u64,
    time_ms: u64,
    prepared: PreparedRequest,
}

/// What to send for a request.
#[derive(Clone, Debug)]
pub struct FoldedRequest {
    /// The body to send.
    pub body: Bytes,
    /// What was decided about it.
    pub report: FoldReport,
}

/// What was decided about a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FoldReport {
    /// The number by which its usage is reported.
    pub number: u64,
    /// The format that it is written in.
    pub format: Format,
    /// Whether the body differs from what was passed.
    pub is_changed: bool,
    /// Why nothing new was decided, if that is so.
    pub passed: Option<String>,
    /// The decisions that take effect with it.
    pub decisions: Vec<DecidedNote>,
    /// Tokens of the body to send, by our own count.
    pub sent_tokens: u64,
    /// Tokens of what was passed, by our own count.
    pub came_tokens: u64,
    /// The conversation that it continues. A request that differs inside begins a branch with a name of its own.
    pub conversation: Option<String>,
}

/// Why there is nothing to send for a request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The body is not UTF-8.
    #[error("the body is no text: a request is JSON in UTF-8")]
    NoText,
    /// The body is no request in any format, or not in the one that was named.
    #[error("the body is no request")]
    NotARequest(#[source] WireError),
    /// It cannot be seen in which of the formats it is written.
    #[error("the body has neither a list `messages` nor a list `input` nor a list `contents`")]
    UnknownFormat,
}

/// Why usage cannot be noted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum UsageError {
    /// No request was made, or its usage was reported already.
    #[error("there is no request whose usage is not yet reported")]
    NoRequest,
    /// Nothing in it is known as usage.
    #[error("this has no usage of a provider in it")]
    NoUsage,
}

impl WireFolder {
    /// Creates a folder for a conversation.
    ///
    /// # Errors
    /// The budget is too small, or the base directory cannot be read.
    pub fn new(options: WireFolderOptions) -> Result<Self, OptionsError> {
        let gateway: Options = options.gateway()?;
        let reads_files = gateway.directory.is_some();
        Ok(Self {
            options,
            decider: Decider::new(Arc::new(gateway), None),
            reads_files,
            number: AtomicU64::new(0),
            waiting: Mutex::default(),
        })
    }

    /// Returns what to send for a request. The same body gets the same bytes again.
    ///
    /// # Errors
    /// The body is no request in a known format. Nothing has changed then.
    pub fn request(&self, body: &[u8]) -> Result<FoldedRequest, RequestError> {
        let text = std::str::from_utf8(body).map_err(|_| RequestError::NoText)?;
        let format = match self.options.format {
            Some(format) => format,
            None => detected_format(text)?,
        };
        let incoming = IncomingRequest {
            model: None,
            body: Bytes::copy_from_slice(body),
            format,
            scope: RequestScope::default(),
            is_count: false,
            is_compaction: false,
            is_sub_agent: false,
            asks: Default::default(),
        };
        let mut prepared = self.decided(&incoming);
        if let Some(error) = unreadable(&prepared) {
            return Err(error);
        }
        prepared.take_adopted();
        if let Some(measure) = prepared.measuring(&incoming.body) {
            prepared.note_sizes(measure());
        }
        let body = prepared.body().cloned().unwrap_or(incoming.body);
        let record = prepared.record("", 0);
        let (sent_tokens, came_tokens) = prepared.own_tokens();
        let report = FoldReport {
            number: self.number.fetch_add(1, Ordering::Relaxed),
            format,
            is_changed: record.is_changed,
            passed: record.passed,
            decisions: record.decided,
            sent_tokens,
            came_tokens,
            conversation: record.conversation,
        };
        prepared.free_body();
        let sent = SentHere { number: report.number, time_ms: self.decider.now_ms(), prepared };
        let mut waiting = self.waiting();
        waiting.push_back(sent);
        if waiting.len() > MAX_WAITING {
            waiting.pop_front();
        }
        Ok(FoldedRequest { body, report })
    }

    /// Notes what a provider billed for a request: for the one with a number, else for the newest. It takes a provider's
    /// `usage`, a whole response that has it, or a stream of events.
    ///
    /// # Errors
    /// There is no such request, or it is no usage of a provider. Nothing has changed then.
    pub fn usage(&self, number: Option<u64>, reported: &[u8]) -> Result<Bill, UsageError> {
        let answered = answered(reported);
        let usage = answered.usage.ok_or(UsageError::NoUsage)?;
        let SentHere { time_ms, prepared, .. } = self.taken(number)?;
        let bill = prepared.bill(time_ms, &usage, &answered, self.decider.now_ms());
        Ok(bill)
    }

    /// Notes that the provider refused a request: what was decided about it is reverted. If it then accepted the
    /// request as it was before, only what is necessary is folded in this conversation, and nothing after a second time.
    ///
    /// # Errors
    /// There is no such request.
    pub fn refused(&self, number: Option<u64>, original_was_accepted: bool) -> Result<(), UsageError> {
        let SentHere { mut prepared, .. } = self.taken(number)?;
        if original_was_accepted {
            let accepted = AcceptedForm::Original { was_earlier_refused: false, unbound: None };
            prepared.give_up(SecondAnswer::Accepted, Vec::new(), accepted);
        } else {
            prepared.note_refused();
        }
        Ok(())
    }

    /// What was decided so far, as JSON, from which [`restore`](Self::restore) goes on with the same bytes.
    pub fn snapshot(&self) -> String {
        snapshot::write(&self.decider)
    }

    /// Goes on from a snapshot, with the same options.
    ///
    /// # Errors
    /// The options are wrong, or it is no snapshot of this or an earlier version.
    pub fn restore(options: WireFolderOptions, snapshot: &str) -> Result<Self, SnapshotError> {
        let folder = Self::new(options)?;
        snapshot::read(&folder.decider, snapshot)?;
        Ok(folder)
    }

    /// The options that it was made with.
    pub fn options(&self) -> &WireFolderOptions {
        &self.options
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<SentHere>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn taken(&self, number: Option<u64>) -> Result<SentHere, UsageError> {
        let mut waiting = self.waiting();
        let at = match number {
            Some(number) => waiting.iter().position(|sent| sent.number == number),
            None => waiting.len().checked_sub(1),
        };
        at.and_then(|at| waiting.remove(at)).ok_or(UsageError::NoRequest)
    }

    /// Decides, however long it takes. A fault inside leaves the earlier decisions in effect.
    fn decided(&self, incoming: &IncomingRequest) -> PreparedRequest {
        // Files are read on a runtime of this call: one that lives longer would have threads, which a fork loses.
        // Its one thread keeps the time that a slow disk may take.
        let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_time().build().ok();
        let runtime = if self.reads_files { runtime() } else { None };
        let entered = runtime.as_ref().map(tokio::runtime::Runtime::enter);
        let prepared = self.decided_inside(incoming);
        drop(entered);
        // A disk that hangs is not waited for.
        runtime.into_iter().for_each(tokio::runtime::Runtime::shutdown_background);
        prepared
    }

    fn decided_inside(&self, incoming: &IncomingRequest) -> PreparedRequest {
        let progress = Progress::new(Instant::now() + PATIENCE);
        let deciding = AssertUnwindSafe(|| self.decider.decide(incoming, &progress));
        catch_unwind(deciding).unwrap_or_else(|_| {
            let found = progress.found();
            if let Some(found) = &found {
                found.conversation.state().health_mut().stop(StopReason::WentWrong);
            }
            let settling = AssertUnwindSafe(|| self.decider.fallback(incoming, found, PassReason::WentWrong, false));
            catch_unwind(settling).unwrap_or_else(|_| self.decider.unread(incoming, PassReason::WentWrong))
        })
    }
}

impl std::fmt::Debug for WireFolder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("WireFolder").field("options", &self.options).finish_non_exhaustive()
    }
}

/// Why a request is none, for which a gateway would leave the verdict to the provider.
fn unreadable(prepared: &PreparedRequest) -> Option<RequestError> {
    let Some(PassReason::Misread(error)) = prepared.outgoing().why() else { return None };
    let error = match error {
        WireError::Json(error) => WireError::Json(serde::de::Error::custom(error)),
        WireError::Twice(field) => WireError::Twice(field),
        WireError::NoList(field) => WireError::NoList(field),
        _ => return None,
    };
    Some(RequestError::NotARequest(error))
}

/// What a response, or the usage of one, reports.
fn answered(reported: &[u8]) -> Answered {
    let is_stream = reported.trim_ascii_start().first().is_none_or(|first| !b"{[".contains(first));
    let mut reader = AnswerReader::new(is_stream);
    reader.push(reported);
    let answered = reader.finish();
    if answered.usage.is_some() {
        return answered;
    }
    let mut usage = Usage::default();
    let is_usage = |value: &Value| ["input_tokens", "prompt_tokens"].iter().any(|name| value[*name].is_u64());
    let plain = serde_json::from_slice::<Value>(reported).ok().filter(is_usage);
    let plain = plain.map(|plain| json!({ "usage": plain })).or_else(|| {
        let plain: Value = serde_json::from_slice(reported).ok()?;
        (plain.get("promptTokenCount").is_some() || plain.get("prompt_token_count").is_some())
            .then(|| json!({ "usageMetadata": plain }))
    });
    let usage = plain.filter(|plain| usage.take(plain)).map(|_| usage);
    Answered { usage, ..answered }
}
