//! The states of all layers in all running executions, and how they are written to the store.

mod cell;
mod record;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::Clock;
use crate::id::{ExecutionId, IdMap, LayerId};
use crate::layer::{LayerState, StateReader, StateValue};
use crate::store::{Batch, Record, ScopedStorage, StoreError, Version};

use cell::{Cell, Meeting};
pub(crate) use cell::{DirtyState, Durable, UnreadableRecord};
pub(crate) use record::{backup_key, decode_record, encode_record, state_key};

/// How often a write is tried before the next change or flush.
pub(crate) const WRITE_ATTEMPTS: u32 = 5;
/// How often a write is retried after a conflict with other writers.
pub(crate) const MAX_CONFLICTS: u32 = 100;
/// The pause after the first failure; it doubles with each further one.
const FIRST_BACKOFF: Duration = Duration::from_millis(20);

/// Receives errors that do not stop the agent: layer, hook (`persist`, `restore`, `merge`), message.
pub type DiagnosticSink = Arc<dyn Fn(&ExecutionId, &LayerId, &'static str, &str) + Send + Sync>;

/// The states of layers in memory, each with its record in the store.
///
/// `set` returns at once. Writes to the store are coalesced per key: the latest state wins, one write is in flight, and
/// a failed one is retried with growing pauses and reported as diagnostic `persist`. The agent never fails because of
/// it. While a turn runs, and while items of its log are not durable, the states of an execution are written only with
/// the turn's own commits, so that states and items always match.
pub struct LayerStateStore {
    executions: Mutex<IdMap<ExecutionId, ExecutionStates>>,
    clock: Arc<dyn Clock>,
    sink: DiagnosticSink,
}

/// The states of one execution.
#[derive(Default)]
struct ExecutionStates {
    cells: IdMap<LayerId, Cell>,
    /// How many have asked that states are written only by commits: a running turn, and children that return.
    holds: u32,
    /// The log has items that are not durable: states that were written now would be ahead of it.
    log_pending: bool,
    /// The execution has ended.
    left: bool,
    /// Held while states of this execution are written.
    writer: Arc<tokio::sync::Mutex<()>>,
    /// A background write is scheduled.
    scheduled: bool,
}

impl ExecutionStates {
    /// Whether states wait for the next commit of items.
    fn is_held(&self) -> bool {
        self.holds > 0 || self.log_pending
    }

    /// Whether a background write must be scheduled now; if so, marks it as scheduled.
    fn wants_writing(&mut self) -> bool {
        let wanted = !self.is_held() && !self.scheduled && self.cells.values().any(Cell::is_dirty);
        self.scheduled |= wanted;
        wanted
    }
}

/// Until it is dropped, the states of an execution are written only by the turn's commits.
pub(crate) struct StatesGuard {
    states: Arc<LayerStateStore>,
    execution: ExecutionId,
}

impl Drop for StatesGuard {
    fn drop(&mut self) {
        self.states.release(&self.execution);
    }
}

/// A state that could not be made durable.
#[derive(Debug)]
pub struct NotDurable {
    /// The layer.
    pub layer_id: LayerId,
    /// The error.
    pub error: StoreError,
}

/// Why a state is not written by itself.
#[derive(Debug, thiserror::Error)]
#[error("it is written together with the items of its turn, which are not durable yet")]
struct HeldBack;

fn held_back() -> StoreError {
    StoreError::Io { doing: "write the state".to_owned(), source: HeldBack.into() }
}

impl LayerStateStore {
    /// An empty store that reports to `sink`.
    pub fn new(clock: Arc<dyn Clock>, sink: DiagnosticSink) -> Self {
        Self { executions: Mutex::default(), clock, sink }
    }

    fn executions(&self) -> MutexGuard<'_, IdMap<ExecutionId, ExecutionStates>> {
        // No code of a layer runs while this lock is held, so a panic cannot leave anything half changed.
        self.executions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_cell<T>(&self, execution: &ExecutionId, layer: &LayerId, read: impl FnOnce(&Cell) -> T) -> Option<T> {
        self.executions().get(execution)?.cells.get(layer).map(read)
    }

    fn with_cell_mut<T>(
        &self,
        execution: &ExecutionId,
        layer: &LayerId,
        change: impl FnOnce(&mut Cell) -> T,
    ) -> Option<T> {
        self.executions().get_mut(execution)?.cells.get_mut(layer).map(change)
    }

    /// Returns a layer's state in an execution; `None` if it has none, was cleared, or has another type.
    pub fn get<T: LayerState>(&self, execution: &ExecutionId, layer: &LayerId) -> Option<Arc<T>> {
        self.get_erased(execution, layer)?.downcast()
    }

    pub(crate) fn get_erased(&self, execution: &ExecutionId, layer: &LayerId) -> Option<StateValue> {
        self.with_cell(execution, layer, |cell| cell.state.clone())?
    }

    /// Sets a layer's state; `None` clears it and deletes the stored record.
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
            entry.wants_writing()
        };
        if schedule {
            self.schedule(execution.clone());
        }
    }

    /// Sets the initial state of an execution; a state that was just read from the store is not written again.
    pub(crate) fn set_restored(&self, execution: &ExecutionId, layer: &LayerId, state: Option<StateValue>) {
        let mut executions = self.executions();
        let cell = executions.entry(execution.clone()).or_default().cells.entry(layer.clone()).or_default();
        cell.state = state;
        cell.present = true;
        if let Some(durable) = &mut cell.durable {
            durable.written = cell.generation;
            durable.set_base(cell.state.clone());
        }
    }

    /// A layer's state that is not durable yet.
    pub(crate) fn dirty_state(&self, execution: &ExecutionId, layer: &LayerId) -> Option<StateValue> {
        self.with_cell(execution, layer, |cell| cell.state.clone().filter(|_| cell.is_dirty()))?
    }

    /// Marks what `other` wrote to a shared record as known, if it is still there.
    pub(crate) async fn take_note(&self, execution: &ExecutionId, layer: &LayerId, other: &ExecutionId) {
        let Some(target) = self.target(execution, layer) else { return };
        let wrote = self.with_cell(other, layer, |cell| cell.durable.as_ref()?.known()).flatten();
        // If the store fails now, the next write will detect the change.
        let Ok(Some(record)) = target.adapter().get(&state_key(&target)).await else { return };
        if let Some((version, state)) = wrote.filter(|(version, _)| *version == record.version) {
            self.with_cell_mut(execution, layer, |cell| cell.has_seen(version, state));
        }
    }

    /// Whether there is a state entry, including a cleared one.
    pub fn has(&self, execution: &ExecutionId, layer: &LayerId) -> bool {
        self.with_cell(execution, layer, |cell| cell.present).unwrap_or(false)
    }

    /// Removes everything about an execution. States that are not durable are lost: call `flush` first.
    pub fn cleanup(&self, execution: &ExecutionId) {
        self.executions().remove(execution);
    }

    /// Sets the record that a layer's state is written to.
    pub fn register_durable(&self, execution: &ExecutionId, layer: &LayerId, target: ScopedStorage) {
        self.register(execution, layer, Durable::new(target));
    }

    pub(crate) fn register(&self, execution: &ExecutionId, layer: &LayerId, mut durable: Durable) {
        let mut executions = self.executions();
        let cell = executions.entry(execution.clone()).or_default().cells.entry(layer.clone()).or_default();
        // A state that was set or cleared before this call is not durable yet.
        durable.written = cell.generation.saturating_sub(1);
        cell.durable = Some(durable);
    }

    /// Disables a layer in an execution.
    pub fn disable(&self, execution: &ExecutionId, layer: &LayerId) {
        self.executions().entry(execution.clone()).or_default().cells.entry(layer.clone()).or_default().disabled = true;
    }

    /// Whether a layer is disabled in an execution.
    pub fn is_disabled(&self, execution: &ExecutionId, layer: &LayerId) -> bool {
        self.with_cell(execution, layer, |cell| cell.disabled).unwrap_or(false)
    }

    /// Whether a layer has a state entry, and whether it is disabled, with one lock.
    pub(crate) fn standing(&self, execution: &ExecutionId, layer: &LayerId) -> (bool, bool) {
        self.with_cell(execution, layer, |cell| (cell.present, cell.disabled)).unwrap_or_default()
    }

    /// Reports an error that does not stop the agent.
    pub fn diagnostic(&self, execution: &ExecutionId, layer: &LayerId, hook: &'static str, message: &str) {
        (self.sink)(execution, layer, hook, message);
    }

    /// Waits until all states are durable, and returns those that could not be written.
    ///
    /// While a turn of the execution runs, its states are written by the turn's own commit, and are returned as not durable.
    pub async fn flush(&self, execution: &ExecutionId) -> Vec<NotDurable> {
        let Some(writer) = self.writer(execution) else { return Vec::new() };
        let _writing = writer.lock().await;
        let (dirty, mut failed) = self.encode_dirty(execution);
        let held = self.is_held(execution);
        for dirty in dirty {
            let layer_id = dirty.layer.clone();
            let written = if held { Err(held_back()) } else { self.write(execution, dirty).await };
            if let Err(error) = written {
                failed.push(NotDurable { layer_id, error });
            }
        }
        failed
    }

    /// The layers of an execution whose states are stored.
    fn durable_layers(&self, execution: &ExecutionId) -> Vec<LayerId> {
        let executions = self.executions();
        let Some(entry) = executions.get(execution) else { return Vec::new() };
        entry.cells.iter().filter(|(_, cell)| cell.durable.is_some()).map(|(layer, _)| layer.clone()).collect()
    }

    /// The lock to hold while states of the execution are written.
    pub(crate) fn writer(&self, execution: &ExecutionId) -> Option<Arc<tokio::sync::Mutex<()>>> {
        Some(self.executions().get(execution)?.writer.clone())
    }

    /// Until the returned value is dropped, states are written only by the turn's own commits.
    pub(crate) fn hold(self: &Arc<Self>, execution: &ExecutionId) -> StatesGuard {
        self.executions().entry(execution.clone()).or_default().holds += 1;
        StatesGuard { states: self.clone(), execution: execution.clone() }
    }

    /// States are written in the background again, unless their items are not durable yet.
    fn release(self: &Arc<Self>, execution: &ExecutionId) {
        let schedule = {
            let mut executions = self.executions();
            let Some(entry) = executions.get_mut(execution) else { return };
            entry.holds = entry.holds.saturating_sub(1);
            entry.wants_writing()
        };
        if schedule {
            self.schedule(execution.clone());
        }
    }

    /// Sets whether the log of the execution has items that are not durable.
    pub(crate) fn set_log_pending(&self, execution: &ExecutionId, log_pending: bool) {
        if let Some(entry) = self.executions().get_mut(execution) {
            entry.log_pending = log_pending;
        }
    }

    /// Discards what is not durable: the next [`reconcile`](Self::reconcile) uses the stored states.
    pub(crate) fn discard(&self, execution: &ExecutionId) {
        if let Some(entry) = self.executions().get_mut(execution) {
            entry.cells.values_mut().for_each(Cell::discard);
        }
    }

    fn is_held(&self, execution: &ExecutionId) -> bool {
        self.executions().get(execution).is_some_and(ExecutionStates::is_held)
    }

    /// Marks the execution as ended, though its last hooks may still run.
    pub(crate) fn leave(&self, execution: &ExecutionId) {
        if let Some(entry) = self.executions().get_mut(execution) {
            entry.left = true;
        }
    }

    /// Whether the execution is running.
    pub(crate) fn is_live(&self, execution: &ExecutionId) -> bool {
        self.executions().get(execution).is_some_and(|entry| !entry.left)
    }

    /// The states that are not durable yet, encoded. Those that cannot be serialised are reported and left out.
    pub(crate) fn dirty(&self, execution: &ExecutionId) -> Vec<DirtyState> {
        let (dirty, broken) = self.encode_dirty(execution);
        for NotDurable { layer_id, error } in broken {
            self.diagnostic(execution, &layer_id, "persist", &describe(&error));
        }
        dirty
    }

    fn encode_dirty(&self, execution: &ExecutionId) -> (Vec<DirtyState>, Vec<NotDurable>) {
        let mut snapshots = {
            let executions = self.executions();
            let Some(entry) = executions.get(execution) else { return Default::default() };
            let cells = entry.cells.iter().filter(|(_, cell)| cell.is_dirty());
            cells.filter_map(|(layer, cell)| Some((layer.clone(), cell.snapshot()?))).collect::<Vec<_>>()
        };
        snapshots.sort_by(|(a, _), (b, _)| a.cmp(b));
        let (mut dirty, mut broken) = (Vec::new(), Vec::new());
        for (layer_id, snapshot) in snapshots {
            match snapshot.to_dirty(&layer_id) {
                Ok(state) => dirty.push(state),
                Err(problem) => {
                    let error = StoreError::Io { doing: "write the state as JSON".to_owned(), source: problem.into() };
                    broken.push(NotDurable { layer_id, error });
                }
            }
        }
        (dirty, broken)
    }

    /// Records that writes of these states begin, so that they are recognised later even if the result is lost.
    pub(crate) fn begin_write(&self, execution: &ExecutionId, states: &[DirtyState]) {
        let mut executions = self.executions();
        let Some(entry) = executions.get_mut(execution) else { return };
        for dirty in states {
            if let Some(cell) = entry.cells.get_mut(&dirty.layer) {
                cell.begin_write(dirty);
            }
        }
    }

    /// Records that states are durable, with this version.
    pub(crate) fn mark_written(&self, execution: &ExecutionId, states: &[DirtyState], version: Version) {
        let mut executions = self.executions();
        let Some(entry) = executions.get_mut(execution) else { return };
        for dirty in states {
            if let Some(cell) = entry.cells.get_mut(&dirty.layer) {
                cell.mark_written(dirty, version);
            }
        }
    }

    /// Records that a batch with an unknown outcome has succeeded, though others may have written since.
    pub(crate) fn mark_durable(&self, execution: &ExecutionId) {
        if let Some(entry) = self.executions().get_mut(execution) {
            entry.cells.values_mut().for_each(Cell::mark_durable);
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
            if entry.is_held() {
                return;
            }
        }
        for dirty in self.dirty(execution) {
            // `write` has reported it as a diagnostic; the state stays dirty and is retried with the next change.
            let _ = self.write(execution, dirty).await;
        }
    }

    /// Writes one state, with retries; the caller holds the writer lock.
    async fn write(&self, execution: &ExecutionId, mut dirty: DirtyState) -> Result<(), StoreError> {
        let Some(target) = self.target(execution, &dirty.layer) else { return Ok(()) };
        let (mut failures, mut conflicts) = (0, 0);
        loop {
            self.begin_write(execution, std::slice::from_ref(&dirty));
            let error = match target.adapter().apply(dirty.add_to(Batch::new())).await {
                Ok(version) => {
                    self.mark_written(execution, std::slice::from_ref(&dirty), version);
                    return Ok(());
                }
                Err(StoreError::Conflict { .. }) if conflicts < MAX_CONFLICTS => {
                    conflicts += 1;
                    match self.reconcile(execution, &dirty.layer).await {
                        Ok(_) if self.is_held(execution) => return Err(held_back()),
                        Ok(_) => match self.dirty_of(execution, &dirty.layer) {
                            Some(again) => {
                                dirty = again;
                                continue;
                            }
                            None => return Ok(()),
                        },
                        Err(error) => error,
                    }
                }
                Err(error) => error,
            };
            self.diagnostic(execution, &dirty.layer, "persist", &describe(&error));
            failures += 1;
            if failures >= WRITE_ATTEMPTS {
                return Err(error);
            }
            self.pause(failures - 1).await;
        }
    }

    /// Accepts what another writer stored: merged with ours, or ours is kept with a diagnostic.
    ///
    /// Returns `true` if the state in memory has changed.
    pub(crate) async fn reconcile(&self, execution: &ExecutionId, layer: &LayerId) -> Result<bool, StoreError> {
        let Some(target) = self.target(execution, layer) else { return Ok(false) };
        let theirs = target.adapter().get(&state_key(&target)).await?;
        Ok(self.settle(execution, layer, theirs.as_ref()))
    }

    /// As [`reconcile`](Self::reconcile), for all layers with one read. Returns those whose state in memory has changed.
    pub(crate) async fn reconcile_all(&self, execution: &ExecutionId) -> Result<Vec<LayerId>, StoreError> {
        let layers = self.durable_layers(execution);
        let targets = layers.into_iter().filter_map(|layer| Some((self.target(execution, &layer)?, layer)));
        let (targets, layers): (Vec<ScopedStorage>, Vec<LayerId>) = targets.unzip();
        let Some(store) = targets.first().map(ScopedStorage::adapter) else { return Ok(Vec::new()) };
        let keys: Vec<String> = targets.iter().map(state_key).collect();
        let records = store.get_many(&keys).await?;
        let changed = layers.into_iter().zip(records);
        Ok(changed
            .filter(|(layer, theirs)| self.settle(execution, layer, theirs.as_ref()))
            .map(|(layer, _)| layer)
            .collect())
    }

    /// Returns `true` if the state in memory has changed.
    fn settle(&self, execution: &ExecutionId, layer: &LayerId, theirs: Option<&Record>) -> bool {
        loop {
            let Some(seen) = self.with_cell(execution, layer, Cell::snapshot).flatten() else { return false };
            let meeting = seen.meet(theirs);
            let settled = self.with_cell_mut(execution, layer, |cell| cell.settle(&seen, theirs, &meeting));
            // The state changed while `merge` ran: merge again.
            let Some(Some(changed)) = settled else { continue };
            self.report(execution, layer, &meeting);
            return changed;
        }
    }

    fn report(&self, execution: &ExecutionId, layer: &LayerId, meeting: &Meeting) {
        match meeting {
            Meeting::Known | Meeting::Ours { .. } | Meeting::Theirs(_) | Meeting::United { .. } => {}
            Meeting::Kept { reason } => {
                let message = format!(
                    "another writer changed the state at the same time; ours, the newer one, is kept: {reason}"
                );
                self.diagnostic(execution, layer, "merge", &message);
            }
            Meeting::Apart { reason } => {
                let message = format!(
                    "the state started separate from the stored one; it stays in this execution, and the stored one is \
                     kept: {reason}"
                );
                self.diagnostic(execution, layer, "merge", &message);
            }
            Meeting::Unreadable { problem } => {
                let message = format!(
                    "another writer stored a state that does not parse ({problem}); ours is kept, and theirs is backed up \
                     with the next write"
                );
                self.diagnostic(execution, layer, "restore", &message);
            }
        }
    }

    fn target(&self, execution: &ExecutionId, layer: &LayerId) -> Option<ScopedStorage> {
        self.with_cell(execution, layer, |cell| Some(cell.durable.as_ref()?.target().clone()))?
    }

    fn dirty_of(&self, execution: &ExecutionId, layer: &LayerId) -> Option<DirtyState> {
        let snapshot = self.with_cell(execution, layer, Cell::snapshot)??;
        if snapshot.is_dirty() { snapshot.to_dirty(layer).ok() } else { None }
    }

    /// Waits before the next try.
    pub(crate) async fn pause(&self, attempt: u32) {
        self.clock.sleep(FIRST_BACKOFF * 2_u32.pow(attempt.min(8))).await;
    }
}

impl StateReader for LayerStateStore {
    fn read(&self, execution: &ExecutionId, layer: &LayerId) -> Option<StateValue> {
        self.get_erased(execution, layer)
    }
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
