//! The layers' data and functions, for the program around the agent.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::function::call_function;
use super::shared::Shared;
use super::toolbox::Target;
use crate::error::{Error, FunctionError};
use crate::layer::*;
use crate::memory::Has;

/// All declared data of all layers: layer id, then name.
pub type ContextMemory = BTreeMap<String, BTreeMap<String, Value>>;

/// The layers' data and functions in one execution. Cheap to clone, and usable while a turn runs.
///
/// Asking for a layer that the memory does not have does not compile.
pub struct MemoryAccess<Ls> {
    shared: Arc<Shared>,
    shape: PhantomData<fn() -> Ls>,
}

impl<Ls> Clone for MemoryAccess<Ls> {
    fn clone(&self) -> Self {
        Self::new(self.shared.clone())
    }
}

impl<Ls> MemoryAccess<Ls> {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, shape: PhantomData }
    }

    /// Reads data that the layer `L` declares.
    ///
    /// `None` if the layer declares no such data of this type.
    pub fn read<L: MemoryLayer, T: 'static, Index>(&self, data: LayerData<L, T>) -> Option<T>
    where
        Ls: Has<L, Index>,
    {
        let layer = self.layer_at::<L, Index>()?;
        let state = self.shared.state(&layer.spec().id);
        layer.read(data.name(), state.as_ref())?.downcast().ok().map(|value| *value)
    }

    /// Calls a function that the layer `L` declares.
    ///
    /// # Errors
    /// [`FunctionError`]: bad input, a layer that is not running, or the function's own failure.
    pub async fn call<L: MemoryLayer, I: Serialize, O: DeserializeOwned, Index>(
        &self,
        function: LayerFunction<L, I, O>,
        input: I,
    ) -> Result<O, Error>
    where
        Ls: Has<L, Index>,
    {
        let unknown = || FunctionError::Unknown { name: function.name().to_owned() };
        let id = self.layer_at::<L, Index>().ok_or_else(unknown)?.spec().id.clone();
        let name = format!("{id}/{}", function.name());
        let bad_input =
            |error: serde_json::Error| FunctionError::BadInput { name: name.clone(), problem: error.to_string() };
        let arguments = serde_json::to_value(input).map_err(bad_input)?;
        let answer = call_function(&self.shared, id.as_str(), function.name(), arguments).await?;
        let bad_output =
            |error: serde_json::Error| FunctionError::BadOutput { name: name.clone(), problem: error.to_string() };
        Ok(serde_json::from_value(answer).map_err(bad_output)?)
    }

    /// The state of the layer `L`; its default if it has none.
    pub fn state<L: MemoryLayer, Index>(&self) -> L::State
    where
        Ls: Has<L, Index>,
    {
        let state = self.layer_at::<L, Index>().and_then(|layer| self.shared.state(&layer.spec().id));
        let state = state.and_then(|state| state.downcast::<L::State>());
        state.map(|state| (*state).clone()).unwrap_or_default()
    }

    /// All declared data of all layers, as JSON.
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

    /// Calls a function by its public name, `layer/function`, with JSON.
    ///
    /// # Errors
    /// As [`call`](Self::call).
    pub async fn call_json(&self, public_name: &str, arguments: Value) -> Result<Value, Error> {
        let toolbox = self.shared.toolbox();
        let Some(Target::Function { layer, function }) = toolbox.get(public_name) else {
            return Err(FunctionError::Unknown { name: public_name.to_owned() }.into());
        };
        Ok(call_function(&self.shared, layer, function, arguments).await?)
    }

    /// The layer of the type `L` at this index of the memory.
    fn layer_at<L: MemoryLayer, Index>(&self) -> Option<LayerRef>
    where
        Ls: Has<L, Index>,
    {
        self.shared.roster().by_registration().nth(Ls::PLACE).filter(|layer| layer.is_made_by::<L>()).cloned()
    }
}
