//! The layers' data and functions, for the program.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::function::call_function;
use super::shared::SharedExecution;
use super::toolbox::CallTarget;
use crate::error::{Error, FunctionError};
use crate::id::LayerId;
use crate::layer::*;
use crate::memory::Has;

/// All declared data of all layers: layer id, then name.
pub type ContextMemory = BTreeMap<String, BTreeMap<String, Value>>;

/// The result of a function of a layer. It dereferences to the result itself.
///
/// `durable` says whether its change of state is stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Called<O> {
    /// The result.
    pub result: O,
    /// Whether the change of state is durable.
    ///
    /// If not, a turn is running, whose next commit writes it, or the store failed, which a fault reports; the write is
    /// retried with the next change, commit or flush.
    pub durable: bool,
}

impl<O> Deref for Called<O> {
    type Target = O;

    fn deref(&self) -> &O {
        &self.result
    }
}

impl<O: fmt::Display> fmt::Display for Called<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.result.fmt(f)
    }
}

/// Compares only the result.
impl<O: PartialEq> PartialEq<O> for Called<O> {
    fn eq(&self, result: &O) -> bool {
        self.result == *result
    }
}

/// The layers' data and functions in one execution. Cheap to clone, and usable while a turn runs.
///
/// Asking for a layer that the memory does not have does not compile. If it has two of one type, the compiler cannot infer
/// `WhichLayerOfThisType`: name it, `memory.state::<Notes, At<1>>()`.
pub struct MemoryAccess<Ls> {
    shared: Arc<SharedExecution>,
    shape: PhantomData<fn() -> Ls>,
}

impl<Ls> Clone for MemoryAccess<Ls> {
    fn clone(&self) -> Self {
        Self::new(self.shared.clone())
    }
}

impl<Ls> MemoryAccess<Ls> {
    pub(crate) fn new(shared: Arc<SharedExecution>) -> Self {
        Self { shared, shape: PhantomData }
    }

    /// Reads data that the layer `L` declares.
    ///
    /// `None` if the layer declares no such data of this type.
    pub fn read<L: MemoryLayer, T: 'static, WhichLayerOfThisType>(&self, data: LayerData<L, T>) -> Option<T>
    where
        Ls: Has<L, WhichLayerOfThisType>,
    {
        let layer = self.layer_at::<L, WhichLayerOfThisType>()?;
        let state = self.shared.state(&layer.spec().id);
        layer.read(data.name(), state.as_ref())?.downcast().ok().map(|value| *value)
    }

    /// Calls a function that the layer `L` declares, and waits until its change of state is durable, or returns that it
    /// is not.
    ///
    /// # Errors
    /// [`FunctionError`]: bad input, a layer that is not running, or the function's own failure.
    pub async fn call<L: MemoryLayer, I: Serialize, O: DeserializeOwned, WhichLayerOfThisType>(
        &self,
        function: LayerFunction<L, I, O>,
        input: I,
    ) -> Result<Called<O>, Error>
    where
        Ls: Has<L, WhichLayerOfThisType>,
    {
        let unknown = || FunctionError::Unknown { name: function.name().to_owned() };
        let id = self.layer_at::<L, WhichLayerOfThisType>().ok_or_else(unknown)?.spec().id.clone();
        let name = format!("{id}/{}", function.name());
        let bad_input =
            |error: serde_json::Error| FunctionError::BadInput { name: name.clone(), problem: error.to_string() };
        let arguments = serde_json::to_value(input).map_err(bad_input)?;
        let answer = call_function(&self.shared, id.as_str(), function.name(), arguments).await?;
        let bad_output =
            |error: serde_json::Error| FunctionError::BadOutput { name: name.clone(), problem: error.to_string() };
        let result = serde_json::from_value(answer).map_err(bad_output)?;
        Ok(Called { result, durable: self.is_durable(&id).await })
    }

    /// Returns the state of the layer `L`; its default if it has none.
    pub fn state<L: MemoryLayer, WhichLayerOfThisType>(&self) -> L::State
    where
        Ls: Has<L, WhichLayerOfThisType>,
    {
        let state = self.layer_at::<L, WhichLayerOfThisType>().and_then(|layer| self.shared.state(&layer.spec().id));
        let state = state.and_then(|state| state.downcast::<L::State>());
        state.map(|state| (*state).clone()).unwrap_or_default()
    }

    /// Returns all declared data of all layers, as JSON.
    pub fn context_memory(&self) -> ContextMemory {
        let roster = self.shared.roster();
        let layers = roster.by_slot().map(|layer| {
            let state = self.shared.state(&layer.spec().id);
            let data = layer
                .data_names()
                .into_iter()
                .filter_map(|name| Some((name.to_owned(), layer.read_json(name, state.as_ref())?)));
            (layer.spec().id.to_string(), data.collect())
        });
        layers.collect()
    }

    /// Like [`read`](Self::read), with the public name `layer/data` and as JSON.
    pub fn read_json(&self, public_name: &str) -> Option<Value> {
        let (layer, name) = public_name.split_once('/')?;
        let roster = self.shared.roster();
        let layer = roster.get(layer)?;
        layer.read_json(name, self.shared.state(&layer.spec().id).as_ref())
    }

    /// Like [`call`](Self::call), with the public name `layer/function` and JSON.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn call_json(&self, public_name: &str, arguments: Value) -> Result<Called<Value>, Error> {
        let toolbox = self.shared.toolbox();
        let Some(CallTarget::Function { layer, function }) = toolbox.get(public_name) else {
            return Err(FunctionError::Unknown { name: public_name.to_owned() }.into());
        };
        let result = call_function(&self.shared, layer, function, arguments).await?;
        Ok(Called { result, durable: self.is_durable(&layer.as_str().into()).await })
    }

    /// Waits until the state of a layer is durable, or cannot be made durable now.
    async fn is_durable(&self, layer: &LayerId) -> bool {
        let not_durable = self.shared.core().states.flush(self.shared.id()).await;
        !not_durable.iter().any(|not_durable| not_durable.layer_id == *layer)
    }

    /// The layer of the type `L` at this index of the memory.
    fn layer_at<L: MemoryLayer, WhichLayerOfThisType>(&self) -> Option<LayerRef>
    where
        Ls: Has<L, WhichLayerOfThisType>,
    {
        let roster = self.shared.roster();
        let mut layers = roster.by_registration();
        let layer = match Ls::PLACE {
            Some(place) => layers.nth(place).filter(|layer| layer.is_made_by::<L>()),
            None => layers.find(|layer| layer.is_made_by::<L>()),
        };
        layer.cloned()
    }
}
