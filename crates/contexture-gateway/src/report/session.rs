//! The requests of one run of a gateway.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::account::record::RequestRecord;
use crate::report::receipt::{Missing, Receipt, Totals};
use crate::write::{KeptVersion, PendingWrite, RecordPlace, Store, StoreError};

/// Most records kept in memory. The figures of the receipt are of all requests.
const MAX_RECORDS: usize = 20_000;

/// Most records that are tried again with one request, if the store could not be written.
const MAX_TRIED: usize = 64;

/// One run of a gateway.
pub(crate) struct Session {
    id: String,
    store: Option<Arc<dyn Store>>,
    records: Mutex<SessionRecords>,
    /// Requests that have finished but are not recorded yet.
    pending: watch::Sender<usize>,
}

/// The record of a request that is sent.
pub(crate) struct BegunRecord {
    place: Arc<RecordPlace>,
    /// In a lock only because it is waited for in one place, and passed on between threads.
    written: Mutex<Option<PendingWrite>>,
}

impl BegunRecord {
    /// The place of the record.
    pub fn place(&self) -> Arc<RecordPlace> {
        self.place.clone()
    }

    /// Waits until it is written, for a limited time: no response is passed on before. Providers take longer than that.
    pub async fn wait(&self, time: Duration) {
        let Some(written) = self.written.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        let now = Instant::now();
        if let Err(StoreError::NotInTime) = written.wait(now) {
            // What cannot be written in time is on the receipt of this run at least.
            let _ = tokio::task::spawn_blocking(move || written.wait(now + time)).await;
        }
    }
}

#[derive(Default)]
struct SessionRecords {
    totals: Totals,
    /// The newest ones, oldest first.
    newest: VecDeque<Arc<RequestRecord>>,
    /// How many there were in all.
    count: u64,
    /// Those that are not in the store yet as they are to be, oldest first.
    unwritten: VecDeque<Unwritten>,
    /// Whether the run has ended: what is not in the store now never will be.
    has_ended: bool,
}

/// A record that is not in the store yet, or that says there that something else of its request is not.
struct Unwritten {
    /// Its number among the records.
    number: u64,
    place: Arc<RecordPlace>,
    record: Arc<RequestRecord>,
    state: WriteState,
}

impl Unwritten {
    /// Whether it is written, and what it says is missing is not on its way either.
    fn is_lost(&self) -> bool {
        matches!(self.state, WriteState::Marked) && !self.place.is_kept()
    }
}

/// How far a record is written.
enum WriteState {
    /// It is begun.
    Begun(PendingWrite),
    /// It failed, and is tried again.
    Failed,
    /// It is in the store, and says that the decisions with which its request was sent are not.
    Marked,
}

impl Session {
    /// Starts a run.
    pub fn new(id: String, store: Option<Arc<dyn Store>>) -> Self {
        Self { id, store, records: Mutex::default(), pending: watch::Sender::new(0) }
    }

    /// Its name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Begins to write that a request is sent, with decisions that are kept, so that it is known even if this program is
    /// killed before its response has ended.
    pub fn begin(&self, record: RequestRecord, kept: Option<KeptVersion>) -> BegunRecord {
        let place = RecordPlace::new(kept);
        // Its record is written in the same place later.
        let open = Arc::new(RequestRecord { is_open: true, ..record });
        let written = self.store.as_ref().map(|store| store.save_request(&place, open));
        BegunRecord { place, written: Mutex::new(written) }
    }

    /// Announces that a finished request is about to be recorded.
    pub fn expect(&self) {
        self.pending.send_modify(|pending| *pending += 1);
    }

    /// Waits until all finished requests are recorded, for a limited time.
    pub async fn complete(&self, time: Duration) {
        let mut pending = self.pending.subscribe();
        // Those that are not recorded by then are not on the receipt.
        let _ = tokio::time::timeout(time, pending.wait_for(|pending| *pending == 0)).await;
    }

    /// Records a request that was announced with `expect`, and begins to write its record.
    pub fn note(&self, place: Arc<RecordPlace>, record: RequestRecord) {
        let mut records = self.lock();
        let record = Arc::new(record);
        records.totals.add(&record);
        let number = records.count;
        records.count += 1;
        if records.newest.len() == MAX_RECORDS {
            records.newest.pop_front();
        }
        if let Some(store) = &self.store {
            records.settle(&**store);
            let state = WriteState::Begun(store.save_request(&place, record.clone()));
            if records.unwritten.len() == MAX_RECORDS {
                // There is no room to keep it until the store works again.
                records.unwritten.pop_front();
                records.totals.note_lost();
            }
            records.unwritten.push_back(Unwritten { number, place, record: record.clone(), state });
        }
        records.newest.push_back(record);
        drop(records);
        self.pending.send_modify(|pending| *pending -= 1);
    }

    /// Writes all records that are not in the store yet, as far as it can be written within a time. What is not in the
    /// store then is lost.
    pub fn end(&self, time: Duration) {
        self.write(time);
        self.lock().has_ended = true;
    }

    fn write(&self, time: Duration) {
        let Some(store) = &self.store else { return };
        let until = Instant::now() + time;
        loop {
            store.flush(until.saturating_duration_since(Instant::now()));
            let mut records = self.lock();
            records.settle(&**store);
            if records.unwritten.iter().all(Unwritten::is_lost) || Instant::now() >= until {
                return;
            }
            drop(records);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The records of its newest requests, oldest first.
    pub fn records(&self) -> Vec<RequestRecord> {
        let mut records = self.lock();
        if let Some(store) = &self.store {
            records.settle(&**store);
        }
        let first = records.count - records.newest.len() as u64;
        let mut all: Vec<RequestRecord> = records.newest.iter().map(|record| (**record).clone()).collect();
        let missing = records.unwritten.iter().filter_map(|unwritten| unwritten.number.checked_sub(first));
        for at in missing {
            all[at as usize].is_unsaved = true;
        }
        all
    }

    /// The receipt of all its requests.
    pub fn receipt(&self) -> Receipt {
        let mut records = self.lock();
        if let Some(store) = &self.store {
            records.settle(&**store);
        }
        let missing = if records.has_ended { Missing::Lost } else { Missing::Late };
        let receipt = records.totals.receipt(missing, records.unwritten.iter().map(|unwritten| &*unwritten.record));
        Receipt { notes: self.store.iter().filter_map(|store| store.damage()).collect(), ..receipt }
    }

    fn lock(&self) -> MutexGuard<'_, SessionRecords> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionRecords {
    /// Forgets what is written by now, and tries again what could not be written.
    fn settle(&mut self, store: &dyn Store) {
        let now = Instant::now();
        self.unwritten.retain_mut(|unwritten| {
            if let WriteState::Begun(written) = &unwritten.state {
                match written.wait(now) {
                    Ok(()) if !unwritten.place.is_marked() => return false,
                    Ok(()) => unwritten.state = WriteState::Marked,
                    Err(StoreError::NotInTime) => {}
                    Err(_) => unwritten.state = WriteState::Failed,
                }
            }
            true
        });
        let is_due = |unwritten: &&mut Unwritten| match unwritten.state {
            WriteState::Begun(_) => false,
            WriteState::Failed => true,
            WriteState::Marked => unwritten.place.is_kept(),
        };
        for unwritten in self.unwritten.iter_mut().filter(is_due).take(MAX_TRIED) {
            unwritten.state = WriteState::Begun(store.save_request(&unwritten.place, unwritten.record.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use contexture::wire::{Digest, Format};

    use super::*;
    use crate::conversation::Beginning;
    use crate::conversation::state::ConversationState;
    use crate::write::{Saving, open_store};

    const WAIT: Duration = Duration::from_secs(60);

    /// Records a request that is sent with the newest decisions of a conversation.
    fn send(session: &Session, state: &ConversationState) {
        let place = session.begin(RequestRecord::default(), Some(KeptVersion::of(state))).place();
        session.expect();
        session.note(place, RequestRecord::default());
    }

    #[test]
    fn what_is_not_in_the_store_is_late_while_a_gateway_runs_and_lost_when_it_has_ended() {
        let directory = tempfile::tempdir().unwrap();
        let store = open_store(&directory.path().join("gateway.db")).unwrap();
        let session = Session::new("run".to_owned(), Some(store.clone()));
        let mut state = ConversationState::default();
        state.note_point(1);
        send(&session, &state);
        let told = || {
            store.flush(WAIT);
            let receipt = session.receipt();
            (receipt.late, receipt.unsaved)
        };
        assert_eq!(told(), (1, 0));
        let (id, key) = ("c".into(), Digest([1; 16]));
        let beginning =
            Beginning { id, key, scope: key, parent: None, format: Format::Chat, lead: 0, is_held_out: false };
        let saving = Saving::new(&beginning, &state, Vec::new(), 1).unwrap();
        store.save(saving).wait(Instant::now() + WAIT).unwrap();
        // Its record is written once more, and says nothing of it any longer.
        told();
        assert_eq!(told(), (0, 0));
        assert!(!store.requests(None).unwrap()[0].is_unsaved);
        state.note_point(3);
        send(&session, &state);
        assert_eq!(told(), (1, 0));
        session.end(WAIT);
        assert_eq!(told(), (0, 1));
        assert!(store.requests(None).unwrap()[1].is_unsaved, "so it is known after a restart");
    }
}
