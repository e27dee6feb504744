//! The parameters and results of the hooks, one file for each occasion.

mod life;
mod append;
mod recall;
mod history;
mod steering;
mod children;

pub use append::{OnItemAppendParams, OnItemAppendResult};
pub use children::{ReturnParams, ReturnResult, SpawnParams, SpawnResult};
pub use history::{CacheState, NewDecision, ProjectHistoryParams, ProjectHistoryResult};
pub use life::{
    CompleteParams, CompleteResult, DisposeParams, ExecutionOutcome, InitParams, InitResult, StateChange, StateResult,
    StoreParams, StoreResult,
};
pub use recall::{RecallItems, RecallParams, RecallResult, Rerender, RerenderScope};
pub use steering::{
    AfterModelCallParams, AfterModelCallResult, BeforeToolCallParams, BeforeToolCallResult, SteeringDecision,
    SteeringResult,
};
