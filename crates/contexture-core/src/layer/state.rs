//! The state of a layer, typed and type-erased.

use std::any::Any;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::panic::without_panic;
use crate::id::{ExecutionId, LayerId};

/// The state of a layer: any value that can be serialised to JSON.
///
/// `Default` is the initial state, and the state after it was cleared.
pub trait LayerState: Serialize + DeserializeOwned + Default + Clone + Send + Sync + 'static {}

impl<T: Serialize + DeserializeOwned + Default + Clone + Send + Sync + 'static> LayerState for T {}

/// A type-erased state.
pub(crate) type AnyState = dyn Any + Send + Sync;

/// A type-erased state that can be serialised.
#[derive(Clone)]
pub(crate) struct StateValue {
    value: Arc<AnyState>,
    encode: fn(&AnyState) -> Result<Vec<u8>, serde_json::Error>,
}

impl StateValue {
    pub(crate) fn new<S: LayerState>(state: S) -> Self {
        let encode = |value: &AnyState| {
            serde_json::to_vec(value.downcast_ref::<S>().expect("encoded by the type it was made of"))
        };
        Self { value: Arc::new(state), encode }
    }

    /// The state as JSON. Returns an error also if the layer's code panics.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        let encoded = without_panic(|| (self.encode)(&*self.value));
        encoded.unwrap_or_else(|panic| Err(serde::ser::Error::custom(format!("panicked: {panic}"))))
    }

    /// Whether this is the same state (pointer equality, not equal contents).
    pub(crate) fn is_same(&self, other: &StateValue) -> bool {
        Arc::ptr_eq(&self.value, &other.value)
    }

    pub(crate) fn value(&self) -> &Arc<AnyState> {
        &self.value
    }

    pub(crate) fn downcast<S: LayerState>(&self) -> Option<Arc<S>> {
        self.value.clone().downcast().ok()
    }
}

/// Reads and merges states of one layer.
pub(crate) trait StateCodec: Send + Sync {
    /// Reads a state; the error says why it is not valid for this layer.
    fn decode(&self, bytes: &[u8]) -> Result<StateValue, String>;

    /// Merges two states that were written at the same time, if the layer can; `base` is what ours was made of.
    fn merge(&self, base: Option<&StateValue>, ours: &StateValue, theirs: &StateValue) -> Option<StateValue>;
}

/// Access to the states of layers in running executions.
pub(crate) trait StateReader: Send + Sync {
    /// A layer's state in an execution; `None` if it has none or was cleared.
    fn read(&self, execution: &ExecutionId, layer: &LayerId) -> Option<StateValue>;
}
