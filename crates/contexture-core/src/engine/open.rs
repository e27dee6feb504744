//! Opens a thread: its log, its window, its layers' states.

use super::execution::{Calibration, Run};
use super::hook_run::{HookRun, Manner};
use super::journal::Stored;
use super::toolbox::Toolbox;
use crate::error::{BoxError, Error};
use crate::layer::*;
use crate::state::{Durable, Unread, backup_key, decode_record, describe, state_key};
use crate::store::{Record, ScopedStorage, StoreError, layer_prefix};
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
        let layers: Vec<LayerRef> = self.shared.roster().by_registration().cloned().collect();
        let mut stored = self.read_all(&layers).await.map_err(Error::Open)?;
        self.restore_journal(&mut stored);
        if let Some((head, _)) = stored.head {
            self.projection = Projection::restore(stored.epoch, head.churn);
            self.calibration = Calibration(head.calibration);
            (self.cache.last_sent, self.cache.ever_hit) = (head.last_sent, head.ever_hit);
        }
        self.query = self.newest_query();
        self.shared.log().set(self.log.clone());
        for (layer, record) in layers.iter().zip(stored.more) {
            self.init_layer(layer, record).await?;
        }
        Ok(())
    }

    /// The thread and the stored states of layers, as of one moment. A failing store is tried again.
    async fn read_all(&self, layers: &[LayerRef]) -> Result<Stored, StoreError> {
        let mut failures = 0;
        loop {
            let error = match self.read_thread(self.state_keys(layers)).await {
                Err(error @ StoreError::Io { .. }) => error,
                answer => return answer,
            };
            if !self.worth_another_try(&error, &mut failures).await {
                return Err(error);
            }
        }
    }

    /// The stored states of layers, read all at once. A failing store is tried again.
    pub(crate) async fn read_states(&self, layers: &[LayerRef]) -> Result<Vec<Option<Record>>, Error> {
        let keys = self.state_keys(layers);
        let mut failures = 0;
        loop {
            let error = match self.core().store.get_many(&keys).await {
                Err(error @ StoreError::Io { .. }) => error,
                answer => return answer.map_err(Error::Open),
            };
            if !self.worth_another_try(&error, &mut failures).await {
                return Err(Error::Open(error));
            }
        }
    }

    fn state_keys(&self, layers: &[LayerRef]) -> Vec<String> {
        layers.iter().map(|layer| state_key(&self.storage(layer))).collect()
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
        let (stored, unread) = match record.as_ref().filter(|_| spec.scope != MemoryScope::Execution) {
            Some(record) => self.restore(layer, &storage, record).await,
            None => (None, None),
        };
        if spec.scope != MemoryScope::Execution {
            let version = record.as_ref().map(|record| record.version);
            let durable = Durable::new(storage.clone()).of_layer(layer.clone()).at(version).with_unread(unread);
            states.register(&shared.id, &spec.id, durable);
        }
        let scope_key = scope_prefix(spec, &shared.context_data());
        let given = stored.clone();
        let run = shared.run_always(
            layer,
            Hook::Init,
            Manner::Alone,
            |_| None,
            move |_, ctx| layer.init(InitParams { storage, scope_key, ctx, stored: given }),
        );
        match run.await {
            HookRun::Done(InitResult { state }) => {
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
    ///
    /// Where keeping it aside fails, it is given back, to be done by the write that would destroy it.
    async fn restore(
        &self,
        layer: &LayerRef,
        storage: &ScopedStorage,
        record: &Record,
    ) -> (Option<StateValue>, Option<Unread>) {
        let problem = match decode_record(&**layer, &record.value) {
            Ok(state) => return (Some(state), None),
            Err(problem) => problem,
        };
        let backup_key = backup_key(storage, record.version);
        let kept = self.core().store.set(&backup_key, record.value.clone()).await;
        let when = match &kept {
            Ok(_) => String::new(),
            Err(error) => format!(" with the next write, since now it failed ({})", describe(error)),
        };
        let message = format!(
            "the stored state does not parse ({problem}); it is kept as `{backup_key}`{when}, and the layer starts fresh"
        );
        self.shared.fault(Some(&layer.spec().id), "restore", message);
        let unread = kept.is_err().then(|| Unread { backup_key, value: record.value.as_slice().into() });
        (None, unread)
    }
}
