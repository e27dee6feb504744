//! Who hears of the requests of a gateway: an inspector, or an exporter of spans.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use contexture::fold::Pins;
use contexture::wire::Format;

use crate::accept::access::Access;
use crate::account::record::RequestRecord;

/// The longest response that is kept for watchers.
const MOST_ANSWER_BYTES: usize = 8 << 20;

/// The number of the next request that watchers hear of.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Hears of the requests of a gateway.
///
/// For each request that calls a model, `sending` is called when it is about to be sent, and `finished` when its
/// response has ended, with the same number. Both are called on threads that may block, and no request waits for them.
/// All methods but `finished` do nothing unless they are implemented.
pub trait Watcher: Send + Sync {
    /// A secret of its own, if it has one: the gateway refuses to forward it, and hides it in what it keeps. Called
    /// once, before the gateway starts.
    fn secret(&self) -> Option<&str> {
        None
    }

    /// Called once, when the gateway listens, before its first request.
    fn started(&self, gateway: &StartedGateway) {
        let _ = gateway;
    }

    /// Called with a request that is about to be sent.
    fn sending(&self, request: &WatchedRequest<'_>) {
        let _ = request;
    }

    /// Whether `answered` is to be called, for which the bytes of responses are kept. Called once for each request.
    fn wants_answers(&self) -> bool {
        false
    }

    /// Called with a response that has arrived whole, after `sending` and before `finished` for the same request. Not
    /// called for responses with an error status, and for those that are too long to be kept.
    fn answered(&self, number: u64, answer: &WatchedAnswer<'_>) {
        let _ = (number, answer);
    }

    /// Called when the response to a request has ended, after `sending` has returned for it.
    fn finished(&self, number: u64, record: &RequestRecord);

    /// Called after an operation on the memory, for a request that has not ended or has just ended.
    fn remembered(&self, operation: &MemoryOperation<'_>) {
        let _ = operation;
    }
}

/// Something that was done with the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryOperation<'a> {
    /// What was done.
    pub act: MemoryAct,
    /// The conversation for which it was done.
    pub conversation: &'a str,
    /// When it began, in milliseconds since the Unix epoch.
    pub time_ms: u64,
    /// How long it took.
    pub took: Duration,
    /// How many passages and facts were found, or were to be written.
    pub records: usize,
    /// How it failed, if it did, in a word.
    pub failure: Option<&'static str>,
}

/// What is done with a memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryAct {
    /// It is searched.
    Search,
    /// Passages are added to it.
    Create,
    /// Facts are added, which may supersede others.
    Upsert,
}

/// A gateway that has started.
#[derive(Clone)]
pub struct StartedGateway {
    /// The address it listens on.
    pub address: SocketAddr,
    /// What can be changed about its conversations.
    pub controls: Arc<dyn Controls>,
}

/// What a user can do to the conversations of a running gateway. Methods may block.
pub trait Controls: Send + Sync {
    /// Stops folding in a conversation, or allows it again. Returns the reason why folding is now stopped, if it is;
    /// the outer `None` means that the conversation is unknown.
    fn set_folding(&self, conversation: &str, is_allowed: bool) -> Option<Option<String>>;

    /// Changes what is pinned in a conversation. Returns whether the conversation is known.
    fn change_pins(&self, conversation: &str, change: &dyn Fn(Pins) -> Pins) -> bool;

    /// Deletes a conversation. Returns whether the gateway knew it.
    fn forget(&self, conversation: &str) -> bool;
}

/// A request that is about to be sent.
pub struct WatchedRequest<'a> {
    /// Its number, which no other request of this process has.
    pub number: u64,
    /// The conversation from which its own branched off.
    pub parent: Option<&'a str>,
    /// Its format.
    pub format: Format,
    /// Its record so far.
    pub record: &'a RequestRecord,
    bodies: &'a WatchedBodies,
    access: Option<&'a Access>,
}

/// The bodies of a request that is watched.
pub(crate) struct WatchedBodies {
    /// As received.
    pub(crate) came: Bytes,
    /// As sent, if it differs.
    pub(crate) sent: Option<Bytes>,
}

impl<'a> WatchedRequest<'a> {
    /// The body as received, without secrets of the gateway. `None` if it is not UTF-8.
    pub fn came(&self) -> Option<Cow<'a, str>> {
        self.shown(&self.bodies.came)
    }

    /// The body that is sent, if it differs, without secrets of the gateway.
    pub fn sent(&self) -> Option<Cow<'a, str>> {
        self.bodies.sent.as_ref().and_then(|sent| self.shown(sent))
    }

    fn shown(&self, body: &'a [u8]) -> Option<Cow<'a, str>> {
        let text = std::str::from_utf8(body).ok()?;
        Some(self.access.map_or(Cow::Borrowed(text), |access| access.without_secrets(text)))
    }
}

/// A response that has arrived.
pub struct WatchedAnswer<'a> {
    /// Its format.
    pub format: Format,
    /// Whether it is a stream of events.
    pub is_stream: bool,
    bytes: &'a [u8],
    access: &'a Access,
}

impl<'a> WatchedAnswer<'a> {
    /// Its body, without secrets of the gateway. `None` if it is not UTF-8.
    pub fn body(&self) -> Option<Cow<'a, str>> {
        Some(self.access.without_secrets(std::str::from_utf8(self.bytes).ok()?))
    }
}

/// The bytes of a response, as far as somebody wants them.
#[derive(Default)]
pub(crate) struct AnswerCopy {
    bytes: Vec<u8>,
    is_stream: bool,
    is_too_long: bool,
}

impl AnswerCopy {
    /// An empty copy of a response.
    pub(crate) fn new(is_stream: bool) -> Self {
        Self { is_stream, ..Self::default() }
    }

    /// Adds the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.is_too_long |= self.bytes.len() + bytes.len() > MOST_ANSWER_BYTES;
        if self.is_too_long {
            self.bytes = Vec::new();
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }
}

/// A request that watchers have heard of, and hear of again when it ends.
#[derive(Clone)]
pub(crate) struct RequestWatch {
    number: u64,
    format: Format,
    access: Arc<Access>,
    watchers: Vec<Arc<dyn Watcher>>,
    telling: Arc<Mutex<Option<tokio::task::JoinHandle<()>>>>,
}

impl RequestWatch {
    /// Tells watchers of a request that is about to be sent, if there are any. Nothing waits for it.
    pub(crate) fn begin(
        watchers: &[Arc<dyn Watcher>],
        access: &Arc<Access>,
        (format, parent): (Format, Option<Arc<str>>),
        record: RequestRecord,
        bodies: WatchedBodies,
    ) -> Option<Self> {
        if watchers.is_empty() {
            return None;
        }
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (told, hidden) = (watchers.to_vec(), access.clone());
        let telling = tokio::task::spawn_blocking(move || {
            let (parent, access) = (parent.as_deref(), Some(&*hidden));
            let request = WatchedRequest { number, parent, format, record: &record, bodies: &bodies, access };
            told.iter().for_each(|watcher| watcher.sending(&request));
        });
        let (watchers, telling) = (watchers.to_vec(), Arc::new(Mutex::new(Some(telling))));
        Some(Self { number, format, access: access.clone(), watchers, telling })
    }

    /// An empty copy of its response, if anybody wants one.
    pub(crate) fn copy(&self, is_stream: bool) -> Option<AnswerCopy> {
        self.watchers.iter().any(|watcher| watcher.wants_answers()).then(|| AnswerCopy::new(is_stream))
    }

    /// Tells them the outcome of the request, after the request itself has been told. Blocks.
    pub(crate) fn end(&self, record: &RequestRecord, answer: Option<AnswerCopy>) {
        let telling = self.telling.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((telling, runtime)) = telling.zip(tokio::runtime::Handle::try_current().ok()) {
            // If that task panicked, there is nothing to complete.
            let _ = runtime.block_on(telling);
        }
        if let Some(AnswerCopy { bytes, is_stream, .. }) = answer.filter(|answer| !answer.bytes.is_empty()) {
            let answer = WatchedAnswer { format: self.format, is_stream, bytes: &bytes, access: &self.access };
            self.watchers.iter().for_each(|watcher| watcher.answered(self.number, &answer));
        }
        self.watchers.iter().for_each(|watcher| watcher.finished(self.number, record));
    }
}
