//! The state of a layer, while its type is known and while it is not.

use std::any::Any;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::panic::without_panic;
use crate::id::{ExecutionId, LayerId};

/// What a layer can keep as its state: any value with a JSON form.
///
/// `Default` is the state of a layer that has none yet, or whose state was cleared.
pub trait LayerState: Serialize + DeserializeOwned + Default + Clone + Send + Sync + 'static {}

impl<T: Serialize + DeserializeOwned + Default + Clone + Send + Sync + 'static> LayerState for T {}

/// A state whose type is not known.
pub(crate) type AnyState = dyn Any + Send + Sync;

/// A state of any layer, with the way to its JSON form.
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

    /// The state as JSON; an error also if the layer's own code panics over it.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, serde_json::Error> {
        let encoded = without_panic(|| (self.encode)(&*self.value));
        encoded.unwrap_or_else(|panic| Err(serde::ser::Error::custom(format!("panicked: {panic}"))))
    }

    /// Whether this is the very same state, not only an equal one.
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
    /// Reads a state; the error says why it is not one of this layer's.
    fn decode(&self, bytes: &[u8]) -> Result<StateValue, String>;

    /// One state of two that were written at the same time, if the layer can make one.
    fn merge(&self, ours: &StateValue, theirs: &StateValue) -> Option<StateValue>;
}

/// Knows the states of layers in running executions.
pub(crate) trait StateReader: Send + Sync {
    /// A layer's state in an execution; `None` if it has none or was cleared.
    fn read(&self, execution: &ExecutionId, layer: &LayerId) -> Option<StateValue>;
}
