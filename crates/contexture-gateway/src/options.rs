//! The options of a gateway.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use contexture::clock::Clock;
use contexture::files::dialect::Dialects;
use contexture::fold::Pins;
use contexture::host::SystemClock;
use contexture::tokens::{Estimate, TokenCounter};
use serde::{Deserialize, Serialize};

use crate::accept::access::AccessKey;
use crate::accept::serving::HEADER_TIME;
use crate::account::cap::Cap;
use crate::lean::LeanTools;
use crate::models::Models;
use crate::provider::tls::ExtraRoots;
use crate::provider::upstream::Upstreams;
use crate::remember::GatewayMemory;
use crate::watch::Watcher;

/// How long the gateway may work on a request before it makes no new decisions about it.
const OWN_WORK: Duration = Duration::from_millis(50);

/// The most tokens of a request if nothing else is said: of the budgets that were tried on recorded work the smallest with
/// which no session cost more than unchanged.
pub const DEFAULT_BUDGET: u64 = 112_000;

/// The smallest budget.
pub const LEAST_BUDGET: u64 = 4_000;

/// The budget that stands for all of a model's window.
pub const WHOLE_WINDOW: u64 = u64::MAX;

/// Largest body that is parsed; larger ones are forwarded unchanged.
const READ_BYTES: usize = 64 << 20;

/// Largest store.
const STORE_BYTES: u64 = 1 << 30;

/// For how many days conversations are kept.
const KEEP_DAYS: u64 = 30;

/// Who edits the window of a client that asks its provider to, in the field `context_management`. Both never do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowEditor {
    /// The provider: nothing new is folded while a request asks for it.
    #[default]
    Theirs,
    /// The gateway: what the request asks for is taken out of it before it is sent.
    Ours,
}

/// In which text of the user's role `#path` names a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum References {
    /// In none: what a person types is not known of the agent.
    #[default]
    Unknown,
    /// In the one block of a message that does not begin with one of these, as the agent's file says.
    Beside(&'static [&'static str]),
    /// In the one block of a message that no known agent puts there: the user says that the agent has a person's text only.
    Typed,
}

/// The options of a gateway.
#[derive(Clone)]
pub struct Options {
    /// Where requests are sent.
    pub upstreams: Upstreams,
    /// Certificates that are trusted besides those of the system, when requests are sent.
    pub extra_roots: ExtraRoots,
    /// Who may use the gateway; without any, a fresh key is made. With several, what is kept is kept by key, and no file
    /// of this machine is read.
    pub keys: Vec<AccessKey>,
    /// Whether it says, also to those who have no key, that it is alive and ready: for those who supervise a service.
    pub is_supervised: bool,
    /// How long a client may take to send the headers of a request.
    pub header_time: Duration,
    /// The most tokens of a request, or [`WHOLE_WINDOW`]; `None` is [`DEFAULT_BUDGET`].
    pub budget: Option<u64>,
    /// How many tokens of a model's window are free when the agent summarises its conversation by itself. From there on
    /// nothing counts as saved.
    pub leaves: u64,
    /// Whether everything is sent unchanged and decisions are only recorded.
    pub observe: bool,
    /// The share of conversations that are forwarded unchanged, for comparison.
    pub holdout: f64,
    /// The most that may be spent.
    pub cap: Cap,
    /// Who edits the window of a client that asks its provider to.
    pub editor: WindowEditor,
    /// Whether to ask providers for diagnostics of their cache, in a field that is added to requests.
    pub diagnose: bool,
    /// The working directory of the agent, if known.
    pub directory: Option<Arc<str>>,
    /// In which text of the user's role `#path` names a file beneath the directory.
    pub references: References,
    /// Which tools leave; without it none do. What conversations called is known from the store.
    pub lean_tools: Option<LeanTools>,
    /// Where conversations, decisions and receipts are stored: a file, or a database as `postgres://user@host/database`.
    /// `None` stores nothing.
    pub store: Option<PathBuf>,
    /// Largest store; beyond it the least recently used conversations are deleted.
    pub store_bytes: u64,
    /// For how many days after it was used last what is needed to send the same bytes of a conversation again is kept.
    pub keep_days: u64,
    /// Whether texts of conversations are stored. Without them a restart folds anew.
    pub keeps_texts: bool,
    /// What agents remember; without it, nothing is added and nothing is kept beyond conversations.
    pub memory: Option<GatewayMemory>,
    /// What is never folded.
    pub pins: Pins,
    /// How long the gateway may work on a request before it makes no new decisions about it.
    pub own_work: Duration,
    /// Largest body that is parsed.
    pub read_bytes: usize,
    /// The known models.
    pub models: Models,
    /// What tools do.
    pub dialects: Dialects,
    /// Counts tokens. The provider's reported usage corrects the counts.
    pub counter: Arc<dyn TokenCounter>,
    /// Those who hear of every request that calls a model.
    pub watchers: Vec<Arc<dyn Watcher>>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

impl Options {
    /// Where the agents work: their directory, or whose memory is theirs.
    pub(crate) fn place(&self) -> Option<Arc<str>> {
        self.directory.clone().or_else(|| self.memory.as_ref()?.own_place())
    }

    /// How long the gateway may work on a request: what it may wait for its memory is added, so that folds have their own
    /// time whatever that takes. None if it is to decide nothing.
    pub(crate) fn working_time(&self) -> Duration {
        if self.own_work.is_zero() {
            return Duration::ZERO;
        }
        self.own_work + self.memory.as_ref().map_or(Duration::ZERO, GatewayMemory::waiting)
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            upstreams: Upstreams::default(),
            extra_roots: ExtraRoots::default(),
            keys: Vec::new(),
            is_supervised: false,
            header_time: HEADER_TIME,
            budget: None,
            leaves: 0,
            observe: false,
            holdout: 0.0,
            cap: Cap::default(),
            editor: WindowEditor::default(),
            diagnose: false,
            directory: None,
            references: References::default(),
            lean_tools: None,
            store: None,
            store_bytes: STORE_BYTES,
            keep_days: KEEP_DAYS,
            keeps_texts: true,
            memory: None,
            pins: Pins::default(),
            own_work: OWN_WORK,
            read_bytes: READ_BYTES,
            models: Models::builtin(),
            dialects: Dialects::builtin(),
            counter: Arc::new(Estimate),
            watchers: Vec::new(),
            clock: Arc::new(SystemClock::new()),
        }
    }
}
