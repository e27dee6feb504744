//! The hooks of a layer: one table from which every list of them is made.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::BoxError;

/// What a hook returns.
pub type HookResult<T> = Result<T, BoxError>;

/// Passes the table of hooks to the macro `$list`.
///
/// A row is: when the hook is called; its name as a variant of [`Hook`] and as a method; what it is given, without
/// the parameter for the state; what it returns, for a state `S`; how long it may take unless the spec says otherwise.
///
/// To add a hook, add a row here, its types to `hooks` with their conversions in `untyped`, and its method to
/// [`MemoryLayer`](super::MemoryLayer). The names, sets, timeouts, the builder for closures and the erased layer follow.
macro_rules! for_each_hook {
    ($list:ident) => {
        $list! {
            /// First use in an execution.
            Init: init(InitParams) -> InitResult<S>, 10 s;
            /// A user message or tool output is about to be logged.
            OnItemAppend: on_item_append(OnItemAppendParams) -> OnItemAppendResult<S>, 5 s;
            /// The window needs what the layer knows.
            Recall: recall(RecallParams) -> RecallResult<S>, 5 s;
            /// The past is about to be shown.
            ProjectHistory: project_history(ProjectHistoryParams) -> ProjectHistoryResult, 5 s;
            /// A tool is about to run.
            BeforeToolCall: before_tool_call(BeforeToolCallParams) -> BeforeToolCallResult<S>, 5 s;
            /// The model has answered.
            AfterModelCall: after_model_call(AfterModelCallParams) -> AfterModelCallResult<S>, 10 s;
            /// The answer is logged, and about to be made durable together with what layers learn from it.
            Store: store(StoreParams) -> StoreResult<S>, 30 s;
            /// A child execution begins.
            OnSpawn: on_spawn(SpawnParams) -> SpawnResult<S>, 10 s;
            /// A child execution has ended.
            OnReturn: on_return(ReturnParams) -> ReturnResult<S>, 10 s;
            /// The execution has ended.
            OnComplete: on_complete(CompleteParams) -> CompleteResult<S>, 30 s;
            /// Nothing follows.
            Dispose: dispose(DisposeParams) -> (), 5 s;
        }
    };
}
pub(super) use for_each_hook;

macro_rules! hook_names {
    ($( $(#[$moment:meta])* $kind:ident: $hook:ident($params:ident) -> $result:ty, $timeout_s:literal s; )*) => {
        /// One of the moments at which a layer is called.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Hook {
            $( $(#[$moment])* $kind, )*
        }

        impl Hook {
            /// All hooks, in the order of a life.
            pub const ALL: [Hook; [$( Hook::$kind ),*].len()] = [$( Hook::$kind ),*];

            /// The hook's name as it is written in code: `on_item_append`.
            pub fn as_str(self) -> &'static str {
                match self {
                    $( Hook::$kind => stringify!($hook), )*
                }
            }
        }
    };
}

for_each_hook!(hook_names);

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of hooks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HookSet(u16);

impl HookSet {
    /// All hooks.
    pub const ALL: HookSet = HookSet((1 << Hook::ALL.len()) - 1);
    /// No hooks.
    pub const NONE: HookSet = HookSet(0);

    /// The set with one more.
    pub const fn with(self, hook: Hook) -> Self {
        HookSet(self.0 | 1 << hook as u16)
    }

    /// Whether the hook is in it.
    pub const fn has(self, hook: Hook) -> bool {
        self.0 & (1 << hook as u16) != 0
    }

    /// The hooks that are not in it, as bits.
    pub(crate) const fn missing_bits(self) -> u16 {
        !self.0 & HookSet::ALL.0
    }
}
