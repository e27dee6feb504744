//! Opens a thread: its log, its window, its layers' states.

use std::sync::Arc;

use super::commit::worth_another_try;
use super::hook_run::{HookRun, Manner};
use super::shared::SharedExecution;
use super::thread::{StoredThread, Thread};
use super::toolbox::Toolbox;
use crate::error::{BoxError, Error};
use crate::layer::*;
use crate::state::{Durable, UnreadableRecord, backup_key, decode_record, describe, state_key};
use crate::store::{Record, ScopedStorage, StoreError};

/// Reads a thread and the stored states of its layers. Layers are initialised with [`init_layer`].
pub(crate) async fn open(
    thread: &mut Thread,
    shared: &SharedExecution,
    layers: &[LayerRef],
) -> Result<Vec<Option<Record>>, Error> {
    let stored = read_all(thread, shared, layers).await.map_err(|error| not_opened(shared, error))?;
    Ok(thread.restore(shared, stored))
}

/// The thread and the stored states of layers, from one moment. A failing store is retried.
async fn read_all(thread: &Thread, shared: &SharedExecution, layers: &[LayerRef]) -> Result<StoredThread, StoreError> {
    let mut failures = 0;
    loop {
        let error = match thread.read(shared, state_keys(shared, layers)).await {
            Err(error @ StoreError::Io { .. }) => error,
            answer => return answer,
        };
        if !worth_another_try(shared, &error, &mut failures).await {
            return Err(error);
        }
    }
}

/// The stored states of layers, read at once. A failing store is retried.
pub(crate) async fn read_states(shared: &SharedExecution, layers: &[LayerRef]) -> Result<Vec<Option<Record>>, Error> {
    let keys = state_keys(shared, layers);
    let mut failures = 0;
    loop {
        let error = match shared.core().store.get_many(&keys).await {
            Err(error @ StoreError::Io { .. }) => error,
            answer => return answer.map_err(|error| not_opened(shared, error)),
        };
        if !worth_another_try(shared, &error, &mut failures).await {
            return Err(not_opened(shared, error));
        }
    }
}

fn not_opened(shared: &SharedExecution, source: StoreError) -> Error {
    Error::Open { thread: shared.context_data().thread_id.clone(), source }
}

fn state_keys(shared: &SharedExecution, layers: &[LayerRef]) -> Vec<String> {
    layers.iter().map(|layer| state_key(&shared.storage_of(layer))).collect()
}

/// Adds a layer to this execution.
pub(crate) async fn add_layer(shared: &Arc<SharedExecution>, layer: LayerRef) -> Result<(), Error> {
    let core = shared.core();
    let roster = shared.roster().with(layer.clone())?;
    roster.check_policy(&shared.core().settings.policy)?;
    let toolbox = Toolbox::new(&roster, &core.tools, &*core.counter)?;
    let record = read_states(shared, std::slice::from_ref(&layer)).await?.into_iter().next().flatten();
    // Only now, so that a layer whose `init` failed can be added again.
    init_layer(shared, &layer, record).await?;
    shared.set_layers(roster, toolbox);
    Ok(())
}

/// Restores a layer's state and runs its `init`.
pub(crate) async fn init_layer(
    shared: &Arc<SharedExecution>,
    layer: &LayerRef,
    record: Option<Record>,
) -> Result<(), Error> {
    let (spec, states) = (layer.spec(), &shared.core().states);
    let storage = shared.storage_of(layer);
    let (stored, unread) = match record.as_ref().filter(|_| spec.scope != MemoryScope::Execution) {
        Some(record) => restore(shared, layer, &storage, record).await,
        None => (None, None),
    };
    if spec.scope != MemoryScope::Execution {
        let version = record.as_ref().map(|record| record.version);
        let durable = Durable::new(storage.clone()).of_layer(layer.clone()).at(version).with_base(stored.clone());
        let durable = durable.with_unread(unread);
        states.register(shared.id(), &spec.id, durable);
    }
    let scope_key = shared.scope_of(spec).to_string();
    let given = stored.clone();
    let call = move |_, ctx| layer.init(InitParams { storage, scope_key, ctx, stored: given });
    match shared.run_always(layer, Hook::Init, Manner::Alone, |_| None, call).await {
        HookRun::Done(InitResult { state }) => {
            let unchanged = stored.is_some_and(|stored| stored.encode().ok() == state.encode().ok());
            if unchanged {
                states.set_restored(shared.id(), &spec.id, Some(state));
            }
        }
        HookRun::Absent | HookRun::Skipped => states.set_restored(shared.id(), &spec.id, stored),
        HookRun::Failed(error) => return init_failed(shared, layer, error),
    }
    shared.refresh_later(layer);
    Ok(())
}

fn init_failed(shared: &SharedExecution, layer: &LayerRef, source: BoxError) -> Result<(), Error> {
    let spec = layer.spec();
    match spec.on_init_error {
        OnInitError::Throw => Err(Error::Init { layer: spec.id.clone(), source }),
        OnInitError::Disable => {
            shared.core().states.disable(shared.id(), &spec.id);
            Ok(())
        }
    }
}

/// The stored state. If it cannot be read, it is backed up, and the layer starts with the default.
///
/// If the backup fails, the record is returned, to be backed up by the write that would overwrite it.
async fn restore(
    shared: &SharedExecution,
    layer: &LayerRef,
    storage: &ScopedStorage,
    record: &Record,
) -> (Option<StateValue>, Option<UnreadableRecord>) {
    let problem = match decode_record(&**layer, &record.value) {
        Ok(state) => return (Some(state), None),
        Err(problem) => problem,
    };
    let backup_key = backup_key(storage, record.version);
    let kept = shared.core().store.set(&backup_key, record.value.clone()).await;
    let when = match &kept {
        Ok(_) => String::new(),
        Err(error) => format!(" with the next write, since now it failed ({})", describe(error)),
    };
    let message = format!(
        "the stored state does not parse ({problem}); it is kept as `{backup_key}`{when}, and the layer starts with its default"
    );
    shared.fault(Some(&layer.spec().id), "restore", message);
    let unread = kept.is_err().then(|| UnreadableRecord { backup_key, value: record.value.as_slice().into() });
    (None, unread)
}
