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
use crate::model::DynModel;
use crate::search::SearchIndex;
use crate::state::LayerStateStore;
use crate::store::StorageAdapter;
use crate::tokens::{ITEM_OVERHEAD_TOKENS, TokenCounter};
use crate::tool::DynTool;
use crate::window::{ProjectionPolicy, fingerprint_text};

/// The default limit of steps of a turn.
const DEFAULT_MAX_STEPS: u32 = 100;
/// The default limit of tool calls of one response.
const DEFAULT_MAX_CALLS: usize = 1_000;
/// The default time that a provider keeps a prompt in its cache.
const DEFAULT_CACHE_TTL: Duration = Duration::from_secs(300);
/// The default duration of the lease of a turn.
pub const DEFAULT_LEASE: Duration = Duration::from_secs(30);

/// What happens when the log of a thread cannot be made durable, after all retries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JournalPolicy {
    /// The turn ends with [`Error::Journal`](crate::error::Error::Journal). Nothing is lost: the next commit
    /// retries.
    #[default]
    Require,
    /// The turn continues and returns an answer that is marked as not durable; the next commit retries.
    BestEffort,
}

/// What a turn does when another execution holds the thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WhenHeld {
    /// It fails at once with [`Error::Held`](crate::error::Error::Held), which names the owner and the expiry.
    #[default]
    Fail,
    /// It waits up to this long, and then fails with [`Error::Held`](crate::error::Error::Held).
    Wait(Duration),
}

/// The options of leases.
#[derive(Clone)]
pub(crate) struct LeaseSettings {
    pub(crate) duration: Duration,
    pub(crate) when_held: WhenHeld,
    /// The owner that others see.
    pub(crate) owner: Arc<str>,
}

impl Default for LeaseSettings {
    fn default() -> Self {
        Self { duration: DEFAULT_LEASE, when_held: WhenHeld::Fail, owner: Arc::from("") }
    }
}

/// What all executions of an engine share. It never changes; a child may have a copy with other layers, tools or model.
#[derive(Clone)]
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
    pub(crate) instructions: SystemPrompt,
    pub(crate) settings: EngineSettings,
    pub(crate) observer: Option<Arc<dyn Observer>>,
    pub(crate) eventual: Arc<EventualCache>,
    pub(crate) endings: Arc<Endings>,
}

/// The capabilities of the host: time, names, files, commands and search.
#[derive(Clone)]
pub(crate) struct Host {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn IdSource>,
    pub(crate) fs: Arc<dyn FsAdapter>,
    pub(crate) shell: Arc<dyn ShellAdapter>,
    pub(crate) search: Arc<dyn SearchIndex>,
}

/// The system prompt, counted once.
#[derive(Clone)]
pub(crate) struct SystemPrompt {
    text: Arc<str>,
    tokens: u64,
    fingerprint: u64,
}

/// The options of the engine.
#[derive(Clone)]
pub(crate) struct EngineSettings {
    pub(crate) policy: ProjectionPolicy,
    pub(crate) journal: JournalPolicy,
    pub(crate) force_atomic_recall: bool,
    pub(crate) max_steps: u32,
    pub(crate) max_calls: usize,
    pub(crate) cache_ttl: Duration,
    pub(crate) lease: LeaseSettings,
}

impl Default for EngineSettings {
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

impl SystemPrompt {
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

    /// The fingerprint of the text.
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

    /// Reports an error after which the turn continues.
    pub(crate) fn fault(&self, execution: &ExecutionId, layer: Option<&LayerId>, place: &'static str, message: String) {
        emit_fault(self.observer.as_deref(), execution, layer, place, message);
    }

    /// The model for layers.
    pub(crate) fn model_for_layers(&self) -> Option<Arc<dyn DynModel>> {
        self.layer_model.clone().or_else(|| self.model.clone())
    }
}

/// Reports an error to `tracing` and the observer.
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
