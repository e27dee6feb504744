//! The contract of a memory layer.
//!
//! Read [`MemoryLayer`] first; [`LayerSpec`] describes a layer, the `…Params` are the parameters of its hooks, and the
//! `…Result`s their results.

mod hook;
pub(crate) mod trace;
mod spec;
mod context;
mod hooks;
mod contract;
mod provides;
mod builder;
mod state;
mod untyped;
mod erased;
mod tools;
mod panic;

pub use builder::{ClosureLayer, LayerBuilder, layer};
pub use context::{ContextData, ExecutionContext, ModelCaller, Resources, TokenUsage};
pub(crate) use contract::AbsentHook;
pub use contract::MemoryLayer;
pub(crate) use erased::{ErasedFunction, LayerRef, erase};
pub use hook::{Hook, HookResult, HookSet};
pub use hooks::*;
pub(crate) use panic::panic_text;
pub(crate) use provides::FnFailure;
pub use provides::{
    FnResult, LayerData, LayerDataDecl, LayerDecl, LayerFunction, LayerFunctionDecl, LayerProvides, layer_data,
    layer_fn, layer_fn_with_schema,
};
pub use spec::{
    BudgetConfig, ItemSchema, LayerSpec, LayerTimeouts, MemoryScope, OnGateError, OnInitError, Placement, RecallMode,
    RerenderTiming,
};
pub use state::LayerState;
pub(crate) use state::{StateCodec, StateReader, StateValue};
pub use tools::tools_of;
pub(crate) use tools::{ACTION, offered_tools};
pub use trace::HookTrace;
pub(crate) use untyped::ErasedResult;
