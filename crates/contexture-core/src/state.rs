//! The states of all layers in all running executions, mirrored to the durable side.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::clock::Clock;
use crate::id::{ExecutionId, LayerId};
use crate::layer::{LayerRef, LayerState, StateValue};
use crate::store::{Batch, Record, ScopedStorage, StoreError, Version};

/// The key of a layer's state in its corner of the store.
const STATE_KEY: &str = "state";
/// The format of a state record, so that a later one can be told from it.
const STATE_FORMAT: u32 = 1;
/// How often a durable write is tried before it is given up until the next change or flush.
pub(crate) const WRITE_ATTEMPTS: u32 = 5;
/// How long to wait after the first failed try; twice as long after each further one.
const FIRST_BACKOFF: Duration = Duration::from_millis(20);

/// Told of errors that the agent does not see: layer, hook (`persist`, `restore`, `merge`), message.
pub type DiagnosticSink = Arc<dyn Fn(&ExecutionId, &LayerId, &'static str, &str) + Send + Sync>;

/// The states of layers in memory, each mirrored to its durable target.
///
/// `set` returns at once. Writes to the durable side are coalesced per key: the latest state wins, one write is
/// in flight, a failed one is tried again with growing pauses and reported as diagnostic `persist`. The agent
/// never fails for it. While a turn runs, its executions' states are held back and go out with the turn's own
/// commits, so that states and items cannot drift apart.
pub struct LayerStateStore {
    executions: Mutex<HashMap<ExecutionId, Execution>>,
    clock: Arc<dyn Clock>,
    sink: DiagnosticSink,
}

#[derive(Default)]
struct Execution {
    cells: HashMap<LayerId, Cell>,
    /// States wait for the commit of the running turn.
    held: bool,
    /// Taken by whoever writes states of this execution.
    writer: Arc<tokio::sync::Mutex<()>>,
    /// A background write is scheduled.
    scheduled: bool,
}

#[derive(Default)]
struct Cell {
    /// `None`: cleared, or never set.
    state: Option<StateValue>,
    /// Whether there is an entry at all, be it a cleared one.
    present: bool,
    disabled: bool,
    /// Counts the changes of `state`.
    generation: u64,
    durable: Option<Durable>,
}

struct Durable {
    target: ScopedStorage,
    /// Knows how to read and to unite states; without it ours always wins.
    layer: Option<LayerRef>,
    /// The version that a write expects to replace.
    version: Option<Version>,
    /// The newest generation that is durable.
    written: u64,
}

/// A state that is not durable yet, ready to be written.
pub(crate) struct DirtyState {
    pub(crate) layer: LayerId,
    pub(crate) key: String,
    pub(crate) expected: Option<Version>,
    /// `None`: the record is to be deleted.
    pub(crate) record: Option<Vec<u8>>,
    generation: u64,
}

/// A state that could not be made durable.
#[derive(Debug)]
pub struct NotDurable {
    /// The layer whose state it is.
    pub layer_id: LayerId,
    /// What stands in the way.
    pub error: StoreError,
}

impl NotDurable {
    fn without_json(layer_id: &LayerId, error: serde_json::Error) -> Self {
        let error = StoreError::Io { doing: "write the state as JSON".to_owned(), source: error.into() };
        Self { layer_id: layer_id.clone(), error }
    }
}

impl LayerStateStore {
    /// An empty store that reports to `sink`.
    pub fn new(clock: Arc<dyn Clock>, sink: DiagnosticSink) -> Self {
        Self { executions: Mutex::default(), clock, sink }
    }

    fn executions(&self) -> MutexGuard<'_, HashMap<ExecutionId, Execution>> {
        // Every change below is a single assignment, so a panic cannot leave it half made.
        self.executions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_cell<T>(&self, execution: &ExecutionId, layer: &LayerId, read: impl FnOnce(&Cell) -> T) -> Option<T> {
        self.executions().get(execution)?.cells.get(layer).map(read)
    }

    /// A layer's state in an execution; `None` if it has none, was cleared, or is of another type.
    pub fn get<T: LayerState>(&self, execution: &ExecutionId, layer: &LayerId) -> Option<Arc<T>> {
        self.get_erased(execution, layer)?.downcast()
    }

    pub(crate) fn get_erased(&self, execution: &ExecutionId, layer: &LayerId) -> Option<StateValue> {
        self.with_cell(execution, layer, |cell| cell.state.clone())?
    }

    /// Sets a layer's state; `None` clears it, and the durable record is deleted.
    pub fn set<T: LayerState>(self: &Arc<Self>, execution: &ExecutionId, layer: &LayerId, state: Option<T>) {
        self.set_erased(execution, layer, state.map(StateValue::new));
    }

    pub(crate) fn set_erased(self: &Arc<Self>, execution: &ExecutionId, layer: &LayerId, state: Option<StateValue>) {
        let schedule = {
            let mut executions = self.executions();
            let entry = executions.entry(execution.clone()).or_default();
            let cell = entry.cells.entry(layer.clone()).or_default();
            cell.state = state;
            cell.present = true;
            cell.generation += 1;
            let wanted = cell.durable.is_some() && !entry.held && !entry.scheduled;
            entry.scheduled |= wanted;
            wanted
        };
        if schedule {
            self.schedule(execution.clone());
        }
    }

    /// Sets the first state of an execution: what was just read from the durable side is not written again.
    pub(crate) fn set_restored(&self, execution: &ExecutionId, layer: &LayerId, state: Option<StateValue>) {
        let mut executions = self.executions();
        let cell = executions.entry(execution.clone()).or_default().cells.entry(layer.clone()).or_default();
        cell.state = state;
        cell.present = true;
        if let Some(durable) = &mut cell.durable {
            durable.written = cell.generation;
        }
    }

    /// Whether there is a state entry, be it a cleared one.
    pub fn has(&self, execution: &ExecutionId, layer: &LayerId) -> bool {
        self.with_cell(execution, layer, |cell| cell.present).unwrap_or(false)
    }

    /// Forgets everything about an execution. What is not durable by then is lost: `flush` first.
    pub fn cleanup(&self, execution: &ExecutionId) {
        self.executions().remove(execution);
    }

    /// Says where a layer's state is mirrored to from now on.
    pub fn register_durable(&self, execution: &ExecutionId, layer: &LayerId, target: ScopedStorage) {
        self.register(execution, layer, target, None, None);
    }

    pub(crate) fn register(
        &self,
        execution: &ExecutionId,
        layer: &LayerId,
        target: ScopedStorage,
        version: Option<Version>,
        layer_ref: Option<LayerRef>,
    ) {
        let mut executions = self.executions();
        let cell = executions.entry(execution.clone()).or_default().cells.entry(layer.clone()).or_default();
        // What was set, or cleared, before it had a target is not durable yet.
        let written = cell.generation.saturating_sub(1);
        cell.durable = Some(Durable { target, layer: layer_ref, version, written });
    }

    /// Marks a layer as left out of an execution.
    pub fn disable(&self, execution: &ExecutionId, layer: &LayerId) {
        self.executions().entry(execution.clone()).or_default().cells.entry(layer.clone()).or_default().disabled = true;
    }

    /// Whether a layer is left out of an execution.
    pub fn is_disabled(&self, execution: &ExecutionId, layer: &LayerId) -> bool {
        self.with_cell(execution, layer, |cell| cell.disabled).unwrap_or(false)
    }

    /// Reports an error that does not stop the agent.
    pub fn diagnostic(&self, execution: &ExecutionId, layer: &LayerId, hook: &'static str, message: &str) {
        (self.sink)(execution, layer, hook, message);
    }

    /// Waits until everything that was set is durable, and says what is not.
    pub async fn flush(&self, execution: &ExecutionId) -> Vec<NotDurable> {
        let Some(writer) = self.writer(execution) else { return Vec::new() };
        let _writing = writer.lock().await;
        let (dirty, mut failed) = self.encode_dirty(execution);
        for dirty in dirty {
            let layer_id = dirty.layer.clone();
            if let Err(error) = self.write(execution, dirty).await {
                failed.push(NotDurable { layer_id, error });
            }
        }
        failed
    }

    /// The layers of an execution whose states are mirrored.
    pub(crate) fn durable_layers(&self, execution: &ExecutionId) -> Vec<LayerId> {
        let executions = self.executions();
        let Some(entry) = executions.get(execution) else { return Vec::new() };
        entry.cells.iter().filter(|(_, cell)| cell.durable.is_some()).map(|(layer, _)| layer.clone()).collect()
    }

    /// Whoever holds this lock may write states of the execution.
    pub(crate) fn writer(&self, execution: &ExecutionId) -> Option<Arc<tokio::sync::Mutex<()>>> {
        Some(self.executions().get(execution)?.writer.clone())
    }

    /// From now on states wait for the turn's own commits.
    pub(crate) fn hold(&self, execution: &ExecutionId) {
        self.executions().entry(execution.clone()).or_default().held = true;
    }

    /// From now on states go out by themselves again.
    pub(crate) fn release(self: &Arc<Self>, execution: &ExecutionId) {
        let schedule = {
            let mut executions = self.executions();
            let Some(entry) = executions.get_mut(execution) else { return };
            entry.held = false;
            let wanted = !entry.scheduled && entry.cells.values().any(Cell::is_dirty);
            entry.scheduled |= wanted;
            wanted
        };
        if schedule {
            self.schedule(execution.clone());
        }
    }

    /// The states that are not durable yet, encoded. One that cannot be is reported.
    pub(crate) fn dirty(&self, execution: &ExecutionId) -> Vec<DirtyState> {
        self.encode_dirty(execution).0
    }

    /// The states that are not durable yet, encoded, and those that have no JSON form.
    fn encode_dirty(&self, execution: &ExecutionId) -> (Vec<DirtyState>, Vec<NotDurable>) {
        let (mut dirty, mut broken) = (Vec::new(), Vec::new());
        if let Some(entry) = self.executions().get(execution) {
            for (layer, cell) in entry.cells.iter().filter(|(_, cell)| cell.is_dirty()) {
                match cell.to_dirty(layer) {
                    Ok(state) => dirty.push(state),
                    Err(error) => broken.push(NotDurable::without_json(layer, error)),
                }
            }
        }
        for NotDurable { layer_id, error } in &broken {
            self.diagnostic(execution, layer_id, "persist", &describe(error));
        }
        dirty.sort_by(|a, b| a.layer.cmp(&b.layer));
        broken.sort_by(|a, b| a.layer_id.cmp(&b.layer_id));
        (dirty, broken)
    }

    /// Notes that a state is durable now, as this version.
    pub(crate) fn mark_written(&self, execution: &ExecutionId, dirty: &DirtyState, version: Version) {
        self.set_version(execution, &dirty.layer, dirty.record.is_some().then_some(version), dirty.generation);
    }

    fn set_version(&self, execution: &ExecutionId, layer: &LayerId, version: Option<Version>, written: u64) {
        let mut executions = self.executions();
        let cell = executions.get_mut(execution).and_then(|entry| entry.cells.get_mut(layer));
        if let Some(durable) = cell.and_then(|cell| cell.durable.as_mut()) {
            durable.version = version;
            durable.written = written;
        }
    }

    fn schedule(self: &Arc<Self>, execution: ExecutionId) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            // Without a runtime nothing can run in the background; `flush` or the next commit will write it.
            if let Some(entry) = self.executions().get_mut(&execution) {
                entry.scheduled = false;
            }
            return;
        };
        let states = self.clone();
        runtime.spawn(async move { states.write_scheduled(&execution).await });
    }

    async fn write_scheduled(&self, execution: &ExecutionId) {
        let Some(writer) = self.writer(execution) else { return };
        let _writing = writer.lock().await;
        if let Some(entry) = self.executions().get_mut(execution) {
            entry.scheduled = false;
            if entry.held {
                return;
            }
        }
        for dirty in self.dirty(execution) {
            // Reported as a diagnostic by `write`; the state stays dirty and is tried again with the next change.
            let _ = self.write(execution, dirty).await;
        }
    }

    /// Writes one state, again and again if need be; the caller holds the writer lock.
    async fn write(&self, execution: &ExecutionId, mut dirty: DirtyState) -> Result<(), StoreError> {
        let Some(target) = self.target(execution, &dirty.layer) else { return Ok(()) };
        let mut attempt = 0;
        loop {
            let batch = dirty.add_to(Batch::new());
            match target.adapter().apply(batch).await {
                Ok(version) => {
                    self.mark_written(execution, &dirty, version);
                    return Ok(());
                }
                Err(StoreError::Conflict { .. }) if attempt < WRITE_ATTEMPTS => {
                    self.reconcile(execution, &dirty.layer, None).await?;
                    let Some(again) = self.dirty_of(execution, &dirty.layer) else { return Ok(()) };
                    dirty = again;
                }
                Err(error) => {
                    self.diagnostic(execution, &dirty.layer, "persist", &describe(&error));
                    if attempt + 1 >= WRITE_ATTEMPTS {
                        return Err(error);
                    }
                    self.pause(attempt).await;
                }
            }
            attempt += 1;
        }
    }

    /// Takes in what someone else wrote: united with ours, or ours stays and a diagnostic says so.
    ///
    /// A record of the version `own` was written by this execution itself, in a batch whose answer was lost.
    pub(crate) async fn reconcile(
        &self,
        execution: &ExecutionId,
        layer: &LayerId,
        own: Option<Version>,
    ) -> Result<(), StoreError> {
        let Some(target) = self.target(execution, layer) else { return Ok(()) };
        let theirs = target.adapter().get(&target.key(STATE_KEY)).await?;
        let lost = {
            let mut executions = self.executions();
            let Some(cell) = executions.get_mut(execution).and_then(|entry| entry.cells.get_mut(layer)) else {
                return Ok(());
            };
            !cell.take_in(theirs, own)
        };
        if lost {
            let message = "someone else changed the state at the same time; the newer one, ours, was kept";
            self.diagnostic(execution, layer, "merge", message);
        }
        Ok(())
    }

    fn target(&self, execution: &ExecutionId, layer: &LayerId) -> Option<ScopedStorage> {
        self.with_cell(execution, layer, |cell| Some(cell.durable.as_ref()?.target.clone()))?
    }

    fn dirty_of(&self, execution: &ExecutionId, layer: &LayerId) -> Option<DirtyState> {
        self.with_cell(execution, layer, |cell| cell.is_dirty().then(|| cell.to_dirty(layer).ok()))??
    }

    /// Waits before the next try.
    pub(crate) async fn pause(&self, attempt: u32) {
        self.clock.sleep(FIRST_BACKOFF * 2_u32.pow(attempt.min(8))).await;
    }
}

impl Cell {
    fn is_dirty(&self) -> bool {
        self.durable.as_ref().is_some_and(|durable| durable.written != self.generation)
    }

    /// Takes in what someone else wrote. `false`: their state is lost, since ours is newer and they do not unite.
    fn take_in(&mut self, theirs: Option<Record>, own: Option<Version>) -> bool {
        let dirty = self.is_dirty();
        let encoded = self.state.as_ref().and_then(|state| encode_record(state).ok());
        let Some(durable) = &mut self.durable else { return true };
        let version = theirs.as_ref().map(|record| record.version);
        if durable.version == version {
            return true;
        }
        durable.version = version;
        if encoded == theirs.as_ref().map(|record| record.value.clone()) {
            durable.written = self.generation;
            return true;
        }
        if own.is_some() && version == own {
            return true;
        }
        let decode =
            |record: Record| durable.layer.as_ref()?.decode(decode_record(&record.value).ok()?.as_bytes()).ok();
        let theirs = theirs.and_then(decode);
        if !dirty {
            self.state = theirs;
            return true;
        }
        self.generation += 1;
        let (Some(ours), Some(theirs)) = (&self.state, theirs) else { return true };
        match durable.layer.as_ref().and_then(|layer| layer.merge(ours, &theirs)) {
            Some(united) => self.state = Some(united),
            None => return false,
        }
        true
    }

    fn to_dirty(&self, layer: &LayerId) -> Result<DirtyState, serde_json::Error> {
        let durable = self.durable.as_ref().expect("only cells with a durable target are dirty");
        Ok(DirtyState {
            layer: layer.clone(),
            key: durable.target.key(STATE_KEY),
            expected: durable.version,
            record: self.state.as_ref().map(encode_record).transpose()?,
            generation: self.generation,
        })
    }
}

impl DirtyState {
    /// Adds this write, and what it expects, to a batch.
    pub(crate) fn add_to(&self, batch: Batch) -> Batch {
        let batch = batch.expect(self.key.clone(), self.expected);
        match &self.record {
            Some(record) => batch.set(self.key.clone(), record.clone()),
            None => batch.delete(self.key.clone()),
        }
    }
}

fn encode_record(state: &StateValue) -> Result<Vec<u8>, serde_json::Error> {
    let mut record = format!("{{\"format\":{STATE_FORMAT},\"state\":").into_bytes();
    record.extend(state.encode()?);
    record.push(b'}');
    Ok(record)
}

/// The state's own JSON within a stored record.
///
/// # Errors
/// Says why the record is not one of ours.
pub(crate) fn decode_record(record: &[u8]) -> Result<&str, String> {
    #[derive(Deserialize)]
    struct Stored<'a> {
        format: u32,
        #[serde(borrow)]
        state: &'a RawValue,
    }
    let stored: Stored<'_> = serde_json::from_slice(record).map_err(|error| error.to_string())?;
    if stored.format != STATE_FORMAT {
        return Err(format!("it has format {}, and this program knows {STATE_FORMAT}", stored.format));
    }
    Ok(stored.state.get())
}

/// The full key of a layer's state in its corner.
pub(crate) fn state_key(storage: &ScopedStorage) -> String {
    storage.key(STATE_KEY)
}

/// An error with its causes, in one line.
pub(crate) fn describe(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
