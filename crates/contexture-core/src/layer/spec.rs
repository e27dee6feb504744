//! The description of a layer.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::hook::{Hook, for_each_hook};
use crate::error::SpecError;
use crate::id::{LayerId, ResourceKind};
use crate::slot::Slot;
use crate::tokens::{MAX_TOKENS, whole_tokens};

/// The description of a layer: id, slot, scope, budget and options.
///
/// ```
/// use contexture_core::{BudgetConfig, LayerSpec, MemoryScope, Slot};
/// let spec = LayerSpec::new("facts", Slot::ENTITY, MemoryScope::Resource).with_budget(BudgetConfig::range(200, 1000));
/// assert!(spec.validate().is_ok());
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct LayerSpec {
    /// Unique among the layers of one memory; not empty.
    pub id: LayerId,
    /// A name for people, in traces and reports.
    pub name: Option<String>,
    /// Its position among the layers.
    pub slot: Slot,
    /// Who shares its state.
    pub scope: MemoryScope,
    /// In the resource scope: the kind of resource that it belongs to.
    pub resource: ResourceKind,
    /// How many tokens its recall may use.
    pub budget: BudgetConfig,
    /// How long its hooks may take, where that differs from the defaults.
    pub timeouts: LayerTimeouts,
    /// What a failed `init` means.
    pub on_init_error: OnInitError,
    /// What a failure or timeout of `before_tool_call` means.
    pub on_gate_error: OnGateError,
    /// Whether `recall` may delay a model call.
    pub recall_mode: RecallMode,
    /// When a re-render happens if the request does not say.
    pub rerender_timing: RerenderTiming,
    /// Which band its blocks are in.
    pub placement: Placement,
    /// Schemas of items that this layer creates.
    pub item_schemas: Vec<ItemSchema>,
    /// Whether it may add items with the role of the user or the assistant. It may always change what a user wrote.
    pub speaks_for_others: bool,
    /// Whether only its `project_history` decides which part of the past is shown, within its budget.
    ///
    /// At most one layer of an engine may set this. Building an engine that also has a policy that cuts by the number of
    /// items fails, since that would remove what the layer kept.
    pub owns_history: bool,
    /// Why the layer cannot be used, if it was made with an option that is not valid: the option, and what is wrong.
    pub invalid: Option<(String, String)>,
}

impl LayerSpec {
    /// A layer with the defaults for everything else: auto budget, atomic recall, auto placement.
    pub fn new(id: impl Into<LayerId>, slot: Slot, scope: MemoryScope) -> Self {
        Self {
            id: id.into(),
            name: None,
            slot,
            scope,
            resource: ResourceKind::user(),
            budget: BudgetConfig::Auto,
            timeouts: LayerTimeouts::default(),
            on_init_error: OnInitError::Throw,
            on_gate_error: OnGateError::Deny,
            recall_mode: RecallMode::Atomic,
            rerender_timing: RerenderTiming::Batched,
            placement: Placement::Auto,
            item_schemas: Vec::new(),
            speaks_for_others: false,
            owns_history: false,
            invalid: None,
        }
    }

    /// Makes building a memory with this layer fail, because an option that it was made with is not valid.
    pub fn refused(mut self, option: impl Into<String>, problem: impl Into<String>) -> Self {
        self.invalid = Some((option.into(), problem.into()));
        self
    }

    /// Makes this the only layer that decides which part of the past is shown.
    pub fn owning_history(mut self) -> Self {
        self.owns_history = true;
        self
    }

    /// Sets the name for people.
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the budget.
    pub fn with_budget(mut self, budget: impl Into<BudgetConfig>) -> Self {
        self.budget = budget.into();
        self
    }

    /// Sets the kind of resource that the layer belongs to. Default: the user.
    pub fn with_resource(mut self, kind: impl Into<ResourceKind>) -> Self {
        self.resource = kind.into();
        self
    }

    /// Sets whether it may add items with the role of the user or the assistant.
    pub fn with_speaking_for_others(mut self, speaks_for_others: bool) -> Self {
        self.speaks_for_others = speaks_for_others;
        self
    }

    /// Sets the placement.
    pub fn with_placement(mut self, placement: Placement) -> Self {
        self.placement = placement;
        self
    }

    /// Sets the recall mode.
    pub fn with_recall_mode(mut self, recall_mode: RecallMode) -> Self {
        self.recall_mode = recall_mode;
        self
    }

    /// Sets the timeouts.
    pub fn with_timeouts(mut self, timeouts: LayerTimeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Sets what a failed `init` means.
    pub fn with_on_init_error(mut self, on_init_error: OnInitError) -> Self {
        self.on_init_error = on_init_error;
        self
    }

    /// Sets what a failure or timeout of `before_tool_call` means.
    pub fn with_on_gate_error(mut self, on_gate_error: OnGateError) -> Self {
        self.on_gate_error = on_gate_error;
        self
    }

    /// Sets the default timing of re-renders.
    pub fn with_rerender_timing(mut self, rerender_timing: RerenderTiming) -> Self {
        self.rerender_timing = rerender_timing;
        self
    }

    /// Adds an item schema.
    pub fn with_item_schema(mut self, item_type: impl Into<String>, schema: Value) -> Self {
        self.item_schemas.push(ItemSchema { item_type: item_type.into(), schema });
        self
    }

    /// Checks that the spec is consistent.
    ///
    /// # Errors
    /// Names the layer and the first invalid field.
    pub fn validate(&self) -> Result<(), SpecError> {
        let refuse = |field: &str, problem: String| Err(SpecError::layer(self.id.as_str(), field, problem));
        if self.id.as_str().trim().is_empty() {
            return refuse("id", "is empty".into());
        }
        if let Some((option, problem)) = &self.invalid {
            return refuse(option, problem.clone());
        }
        match self.budget {
            BudgetConfig::Range { min, max } if min > max => {
                return refuse("budget.min", format!("is above `budget.max` ({min} > {max})"));
            }
            BudgetConfig::Cap(max) | BudgetConfig::Range { max, .. } if max > MAX_TOKENS => {
                return refuse("budget.max", format!("is above {MAX_TOKENS} ({max})"));
            }
            _ => {}
        }
        if let Some(hook) = Hook::ALL.into_iter().find(|hook| self.timeouts.of(*hook).is_zero()) {
            return refuse(&format!("timeouts.{hook}"), "is zero".into());
        }
        for (index, schema) in self.item_schemas.iter().enumerate() {
            if self.item_schemas[..index].iter().any(|other| other.item_type == schema.item_type) {
                return refuse("item_schemas", format!("names `{}` twice", schema.item_type));
            }
        }
        Ok(())
    }
}

/// Who shares a layer's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryScope {
    /// One conversation.
    Thread,
    /// All threads of one user or other resource; the thread itself if the execution has no such resource.
    Resource,
    /// Everyone.
    Global,
    /// One execution; never stored.
    Execution,
}

impl MemoryScope {
    /// The scope's name in storage keys.
    pub fn as_str(self) -> &'static str {
        match self {
            MemoryScope::Thread => "thread",
            MemoryScope::Resource => "resource",
            MemoryScope::Global => "global",
            MemoryScope::Execution => "execution",
        }
    }
}

/// How many tokens a layer's recall may use.
///
/// In configuration files: a number, `{ "min": …, "max": … }` or `"auto"`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BudgetConfig {
    /// At most this many; nothing is guaranteed.
    Cap(u64),
    /// At least `min` while there is room, at most `max`.
    Range {
        /// Guaranteed while there is room.
        min: u64,
        /// Never exceeded.
        max: u64,
    },
    /// An even share of what layers with a maximum leave.
    #[default]
    Auto,
}

impl BudgetConfig {
    /// At least `min`, at most `max`.
    pub fn range(min: u64, max: u64) -> Self {
        BudgetConfig::Range { min, max }
    }

    /// The tokens that are guaranteed while there is room.
    pub fn min(self) -> u64 {
        match self {
            BudgetConfig::Range { min, .. } => min,
            BudgetConfig::Cap(_) | BudgetConfig::Auto => 0,
        }
    }

    /// The maximum; `None` for auto.
    pub fn max(self) -> Option<u64> {
        match self {
            BudgetConfig::Cap(max) | BudgetConfig::Range { max, .. } => Some(max),
            BudgetConfig::Auto => None,
        }
    }
}

impl From<u64> for BudgetConfig {
    fn from(cap: u64) -> Self {
        BudgetConfig::Cap(cap)
    }
}

impl Serialize for BudgetConfig {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Range {
            min: u64,
            max: u64,
        }
        match *self {
            BudgetConfig::Cap(cap) => cap.serialize(serializer),
            BudgetConfig::Range { min, max } => Range { min, max }.serialize(serializer),
            BudgetConfig::Auto => "auto".serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for BudgetConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum BudgetSpec {
            Number(f64),
            Range { min: f64, max: f64 },
            Word(String),
        }
        use serde::de::Error;
        let written = BudgetSpec::deserialize(deserializer)
            .map_err(|_| D::Error::custom("`budget` is neither a number, nor `{ min, max }`, nor \"auto\""))?;
        match written {
            BudgetSpec::Number(cap) => whole_tokens("budget", cap).map(BudgetConfig::Cap).map_err(D::Error::custom),
            BudgetSpec::Range { min, max } => {
                let min = whole_tokens("budget.min", min).map_err(D::Error::custom)?;
                let max = whole_tokens("budget.max", max).map_err(D::Error::custom)?;
                Ok(BudgetConfig::Range { min, max })
            }
            BudgetSpec::Word(word) if word == "auto" => Ok(BudgetConfig::Auto),
            BudgetSpec::Word(word) => {
                Err(D::Error::custom(format!("`budget` is `{word}`; the only word it takes is `auto`")))
            }
        }
    }
}

macro_rules! layer_timeouts {
    ($( $(#[$moment:meta])* $kind:ident: $hook:ident($params:ident) -> $result:ty, $timeout_s:literal s; )*) => {
        /// How long each hook of a layer may take; `None` is the default of that hook.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct LayerTimeouts {
            $(
                #[doc = concat!("Default ", $timeout_s, " s.")]
                pub $hook: Option<Duration>,
            )*
        }

        impl LayerTimeouts {
            /// How long that hook may take.
            pub fn of(&self, hook: Hook) -> Duration {
                let (own, default_s) = match hook {
                    $( Hook::$kind => (self.$hook, $timeout_s), )*
                };
                own.unwrap_or(Duration::from_secs(default_s))
            }
        }
    };
}

for_each_hook!(layer_timeouts);

/// What a failed `init` means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnInitError {
    /// The execution ends with that error.
    #[default]
    Throw,
    /// A diagnostic, and the layer is skipped for this execution.
    Disable,
}

/// What a failure or timeout of `before_tool_call` means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnGateError {
    /// The tool call is denied.
    #[default]
    Deny,
    /// The layer does not affect this call.
    Abstain,
}

/// Whether `recall` may delay a model call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecallMode {
    /// The model call waits for it.
    #[default]
    Atomic,
    /// The last result is used, and a new one is computed in the background when the state or the newest user message
    /// has changed; for a layer without a state, after every response.
    Eventual,
}

/// When the layers chosen by a [`Rerender`](super::Rerender) are recalled again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RerenderTiming {
    /// Before the next model call.
    Immediate,
    /// Once, at the next turn.
    #[default]
    Batched,
}

/// Which band a layer's blocks are in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// Before history, byte-identical during an epoch.
    Anchor,
    /// After history, new every turn.
    Live,
    /// Starts anchored; moves when an epoch begins, by how often its output changed in this thread.
    #[default]
    Auto,
}

/// The schema of one kind of item that a layer creates.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemSchema {
    /// The `type` of the items that it applies to.
    pub item_type: String,
    /// Their JSON schema. Items of this layer that do not match it are dropped, with a fault.
    pub schema: Value,
}
