//! What all executions of an engine share.

use std::sync::Arc;
use std::time::Duration;

use super::endings::Endings;
use super::eventual::EventualCache;
use super::roster::Roster;
use super::toolbox::Toolbox;
use crate::clock::Clock;
use crate::event::{Event, Fault, Observer};
use crate::host::{FsAdapter, ShellAdapter};
use crate::id::{ExecutionId, IdSource, LayerId};
use crate::layer::ModelCaller;
use crate::model::DynModel;
use crate::search::SearchIndex;
use crate::state::LayerStateStore;
use crate::store::StorageAdapter;
use crate::tokens::{ITEM_OVERHEAD_TOKENS, TokenCounter};
use crate::tool::DynTool;
use crate::window::{ProjectionPolicy, fingerprint_text};

/// Steps that a turn may have, unless the builder says otherwise.
pub const DEFAULT_MAX_STEPS: u32 = 100;
/// Tool calls of one response that are run, unless the builder says otherwise.
pub const DEFAULT_MAX_CALLS: usize = 1_000;
/// How long a provider keeps a prompt in its cache, unless the builder says otherwise.
pub const DEFAULT_CACHE_TTL: Duration = Duration::from_secs(300);
/// How long the lease of a turn lasts unless it is renewed, unless the builder says otherwise.
pub const DEFAULT_LEASE: Duration = Duration::from_secs(30);

/// What happens when the log of a thread cannot be made durable, after all retries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JournalPolicy {
    /// The turn ends with [`Error::Journal`](crate::error::Error::Journal). Nothing is lost: it is tried again with
    /// the next commit.
    #[default]
    Require,
    /// The turn goes on and returns an answer that is marked as not durable; it is tried again with the next commit.
    BestEffort,
}

/// What a turn does when another execution holds the thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenHeld {
    /// It fails at once with [`Error::Held`](crate::error::Error::Held), which says who holds it and until when.
    #[default]
    Fail,
    /// It waits for the thread, and fails with [`Error::Held`](crate::error::Error::Held) if it does not get it in this time.
    Wait(Duration),
}

/// What the author of the agent chose about leases.
#[derive(Clone)]
pub(crate) struct LeaseSettings {
    pub(crate) duration: Duration,
    pub(crate) when_held: WhenHeld,
    /// Who runs turns here, as others are told.
    pub(crate) owner: Arc<str>,
}

impl Default for LeaseSettings {
    fn default() -> Self {
        Self { duration: DEFAULT_LEASE, when_held: WhenHeld::Fail, owner: Arc::from("") }
    }
}

/// What all executions of an engine share. It never changes.
pub(crate) struct Core {
    pub(crate) roster: Arc<Roster>,
    pub(crate) toolbox: Arc<Toolbox>,
    pub(crate) tools: Vec<Arc<dyn DynTool>>,
    pub(crate) model: Option<Arc<dyn DynModel>>,
    /// The model that layers call; `None`: the same.
    pub(crate) layer_model: Option<Arc<dyn DynModel>>,
    pub(crate) store: Arc<dyn StorageAdapter>,
    pub(crate) states: Arc<LayerStateStore>,
    pub(crate) counter: Arc<dyn TokenCounter>,
    pub(crate) host: Host,
    pub(crate) instructions: Instructions,
    pub(crate) settings: Settings,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) eventual: Arc<EventualCache>,
    pub(crate) endings: Endings,
}

/// What the machine gives: time, names, files, commands and searching.
pub(crate) struct Host {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) fs: Arc<dyn FsAdapter>,
    pub(crate) shell: Arc<dyn ShellAdapter>,
    pub(crate) search: Arc<dyn SearchIndex>,
}

/// The system prompt, counted once.
pub(crate) struct Instructions {
    text: Arc<str>,
    tokens: u64,
    fingerprint: u64,
}

/// What the author of the agent chose.
pub(crate) struct Settings {
    pub(crate) policy: ProjectionPolicy,
    pub(crate) journal: JournalPolicy,
    pub(crate) force_atomic_recall: bool,
    pub(crate) max_steps: u32,
    pub(crate) max_calls: usize,
    pub(crate) cache_ttl: Duration,
    pub(crate) lease: LeaseSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policy: ProjectionPolicy::default(),
            journal: JournalPolicy::default(),
            force_atomic_recall: false,
            max_steps: DEFAULT_MAX_STEPS,
            max_calls: DEFAULT_MAX_CALLS,
            cache_ttl: DEFAULT_CACHE_TTL,
            lease: LeaseSettings::default(),
        }
    }
}

impl Instructions {
    pub(crate) fn new(text: Arc<str>, counter: &dyn TokenCounter) -> Self {
        let tokens = if text.is_empty() { 0 } else { counter.count(&text) + ITEM_OVERHEAD_TOKENS };
        Self { tokens, fingerprint: fingerprint_text([&*text]), text }
    }

    pub(crate) fn text(&self) -> &Arc<str> {
        &self.text
    }

    pub(crate) fn tokens(&self) -> u64 {
        self.tokens
    }

    /// A number that differs whenever the text differs.
    pub(crate) fn fingerprint(&self) -> u64 {
        self.fingerprint
    }
}

impl Core {
    pub(crate) fn emit(&self, event: Event<'_>) {
        if let Some(observer) = &self.observer {
            observer.event(event);
        }
    }

    /// Reports something that went wrong while the turn goes on.
    pub(crate) fn fault(&self, execution: &ExecutionId, layer: Option<&LayerId>, place: &'static str, message: String) {
        emit_fault(self.observer.as_deref(), execution, layer, place, message);
    }

    /// The model as layers may call it.
    pub(crate) fn model_caller(&self) -> Option<ModelCaller> {
        self.layer_model.clone().or_else(|| self.model.clone()).map(ModelCaller)
    }
}

/// Tells the log and the observer about something that went wrong.
pub(crate) fn emit_fault(
    observer: Option<&dyn Observer>,
    execution: &ExecutionId,
    layer: Option<&LayerId>,
    place: &'static str,
    message: String,
) {
    let layer_name = layer.map_or("", |layer| layer.as_str());
    tracing::warn!(execution_id = execution.as_str(), layer_id = layer_name, place, "{message}");
    if let Some(observer) = observer {
        let fault = Fault { execution_id: execution.clone(), layer_id: layer.cloned(), place, message };
        observer.event(Event::Fault(&fault));
    }
}
