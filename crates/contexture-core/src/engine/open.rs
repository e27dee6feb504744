//! Opens a thread: its log, its window, its layers' states.

use super::execution::{Calibration, Run};
use super::hook_run::{HookRun, Manner};
use super::toolbox::Toolbox;
use crate::error::{BoxError, Error};
use crate::layer::*;
use crate::state::{decode_record, describe, state_key};
use crate::store::{Record, ScopedStorage, layer_prefix};
use crate::window::Projection;

/// The prefix of a layer's keys in the scope that this execution gives it.
///
/// A resource scope without a resource is the thread itself, under the thread's own name, so that a thread and a
/// resource of the same name do not meet.
pub(crate) fn scope_prefix(spec: &LayerSpec, context: &ContextData) -> String {
    let thread = context.thread_id.as_str();
    let (kind, id) = match (spec.scope, &context.resource_id) {
        (MemoryScope::Resource, Some(resource)) => (MemoryScope::Resource, resource.as_str()),
        (MemoryScope::Resource, None) | (MemoryScope::Thread, _) => (MemoryScope::Thread, thread),
        (MemoryScope::Global, _) => (MemoryScope::Global, "all"),
        (MemoryScope::Execution, _) => (MemoryScope::Execution, context.execution_id.as_str()),
    };
    layer_prefix(spec.id.as_str(), kind.as_str(), id)
}

impl Run {
    /// Reads the thread and initialises every layer, in order of registration.
    pub(crate) async fn open(&mut self) -> Result<(), Error> {
        let stored = self.read_thread().await.map_err(Error::Open)?;
        self.turn = stored.turn;
        if let Some(head) = stored.head {
            self.projection = Projection::restore(stored.epoch, head.churn);
            self.calibration = Calibration(head.calibration);
            (self.cache.last_sent, self.cache.ever_hit) = (head.last_sent, head.ever_hit);
        }
        self.query = self.newest_query();
        let layers: Vec<LayerRef> = self.shared.roster().by_registration().cloned().collect();
        let records = self.read_states(&layers).await?;
        for (layer, record) in layers.iter().zip(records) {
            self.init_layer(layer, record).await?;
        }
        Ok(())
    }

    /// The stored states of layers, read all at once.
    pub(crate) async fn read_states(&self, layers: &[LayerRef]) -> Result<Vec<Option<Record>>, Error> {
        let keys: Vec<String> = layers.iter().map(|layer| state_key(&self.storage(layer))).collect();
        self.core().store.get_many(&keys).await.map_err(Error::Open)
    }

    pub(crate) fn storage(&self, layer: &LayerRef) -> ScopedStorage {
        ScopedStorage::new(self.core().store.clone(), scope_prefix(layer.spec(), &self.shared.context_data()))
    }

    /// Adds a layer to this execution alone.
    pub(crate) async fn add_layer(&mut self, layer: LayerRef) -> Result<(), Error> {
        let roster = self.shared.roster().with(layer.clone())?;
        let toolbox = Toolbox::new(&roster, &self.core().tools, &*self.core().counter)?;
        let record = self.read_states(std::slice::from_ref(&layer)).await?.into_iter().next().flatten();
        // Only now: a layer that cannot be initialised leaves no trace, and may be added again.
        self.init_layer(&layer, record).await?;
        self.shared.set_layers(roster, toolbox);
        Ok(())
    }

    /// Restores a layer's state and runs its `init`.
    pub(crate) async fn init_layer(&mut self, layer: &LayerRef, record: Option<Record>) -> Result<(), Error> {
        let shared = self.shared.clone();
        let (spec, states) = (layer.spec(), &shared.core.states);
        let storage = self.storage(layer);
        let stored = self.restore(layer, &storage, record.as_ref()).await;
        if spec.scope != MemoryScope::Execution {
            let version = record.as_ref().map(|record| record.version);
            states.register(&shared.id, &spec.id, storage.clone(), version, Some(layer.clone()));
        }
        let scope_key = scope_prefix(spec, &shared.context_data());
        let given = stored.clone();
        let run = shared.run_always(
            layer,
            Hook::Init,
            Manner::Alone,
            |_| None,
            move |_, ctx| layer.init(storage, scope_key, ctx, given),
        );
        match run.await {
            HookRun::Done(state) => {
                let unchanged = stored.is_some_and(|stored| stored.encode().ok() == state.encode().ok());
                if unchanged {
                    states.set_restored(&shared.id, &spec.id, Some(state));
                }
            }
            HookRun::Absent | HookRun::Skipped => states.set_restored(&shared.id, &spec.id, stored),
            HookRun::Failed(error) => return self.init_failed(layer, error),
        }
        shared.refresh_later(layer);
        Ok(())
    }

    fn init_failed(&self, layer: &LayerRef, source: BoxError) -> Result<(), Error> {
        let spec = layer.spec();
        match spec.on_init_error {
            OnInitError::Throw => Err(Error::Init { layer: spec.id.clone(), source }),
            OnInitError::Disable => {
                self.core().states.disable(&self.shared.id, &spec.id);
                Ok(())
            }
        }
    }

    /// The stored state, if it can be read. What cannot is kept aside, and the layer starts fresh.
    async fn restore(&self, layer: &LayerRef, storage: &ScopedStorage, record: Option<&Record>) -> Option<StateValue> {
        if layer.spec().scope == MemoryScope::Execution {
            return None;
        }
        let record = record?;
        let problem = match decode_record(&record.value).and_then(|state| layer.decode(state.as_bytes())) {
            Ok(state) => return Some(state),
            Err(problem) => problem,
        };
        let backup = format!("{}.backup.{}", state_key(storage), record.version.0);
        let kept = match self.core().store.set(&backup, record.value.clone()).await {
            Ok(_) => format!("it is kept as `{backup}`"),
            Err(error) => format!("keeping it aside failed: {}", describe(&error)),
        };
        let message = format!("the stored state does not parse ({problem}); {kept}, and the layer starts fresh");
        self.shared.fault(Some(&layer.spec().id), "restore", message);
        None
    }
}
