//! What is spent by a gateway, and by others with the same store, and whether that reaches the cap.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::account::cap::{Cap, CapScope, CapUse, ReachedCap, Spent, day_begins_ms, day_of};
use crate::account::record::RequestRecord;
use crate::write::Store;

/// How long what other gateways have spent is taken for what it was.
const FRESH: Duration = Duration::from_secs(5);

/// How long a request waits for the store, if nothing is known yet of the day.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long a request waits for others that may reach the cap, before it is refused.
const WAIT: Duration = Duration::from_secs(600);

/// What is spent, against the cap.
pub(crate) struct Spending {
    cap: Cap,
    /// The run of the gateway whose own requests are counted as they end.
    session: String,
    store: Option<Arc<dyn Store>>,
    sums: Mutex<SpendingSums>,
    /// What was sent, and what it is expected to take, until that is known.
    under_way: Mutex<UnderWay>,
    /// Notified when something of it has ended.
    ended: tokio::sync::Notify,
    /// Taken by who reads the store.
    reading: tokio::sync::Mutex<()>,
    refused: AtomicU64,
}

#[derive(Default)]
struct SpendingSums {
    /// What this run spent, with its day.
    own: (u64, Spent),
    /// What was spent by others and before, with its day and when it was read.
    others: Option<(u64, Spent, Instant)>,
    /// Whether the store could not be read.
    is_incomplete: bool,
    /// The conversation that spent the most of its cap.
    dearest: Spent,
}

/// The requests that were sent and have not ended.
#[derive(Default)]
struct UnderWay {
    last: u64,
    requests: HashMap<u64, ExpectedRequest>,
}

struct ExpectedRequest {
    conversation: Option<String>,
    expected: Spent,
}

impl UnderWay {
    /// What they are expected to take, of one conversation or of all; `None` if there is none.
    fn expected(&self, conversation: Option<&str>) -> Option<Spent> {
        let is_of =
            |request: &&ExpectedRequest| conversation.is_none() || request.conversation.as_deref() == conversation;
        self.requests.values().filter(is_of).map(|request| request.expected).reduce(Spent::and)
    }
}

/// A request that may be sent. What it is expected to take counts until this is dropped.
pub(crate) struct Admission {
    spending: Arc<Spending>,
    number: u64,
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.spending.under_way().requests.remove(&self.number);
        self.spending.ended.notify_waiters();
    }
}

/// A conversation whose cap counts too.
pub(crate) struct CappedConversation<'a> {
    pub(crate) id: &'a str,
    /// What was spent in it by now.
    pub(crate) spent: &'a (dyn Fn() -> Spent + Sync),
}

impl Spending {
    /// Nothing is spent yet by this run.
    pub(crate) fn new(cap: Cap, session: String, store: Option<Arc<dyn Store>>) -> Self {
        Self {
            cap,
            session,
            store,
            sums: Mutex::default(),
            under_way: Mutex::default(),
            ended: tokio::sync::Notify::new(),
            reading: tokio::sync::Mutex::default(),
            refused: AtomicU64::new(0),
        }
    }

    fn under_way(&self) -> MutexGuard<'_, UnderWay> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a request may be sent: what is spent, and what the requests that are on their way are expected to
    /// take, is below the cap, or nothing is on its way.
    ///
    /// # Errors
    /// The cap that is reached.
    pub(crate) async fn admit(
        self: &Arc<Self>,
        day: u64,
        conversation: Option<CappedConversation<'_>>,
        expected: Spent,
    ) -> Result<Option<Admission>, ReachedCap> {
        if self.cap.is_none() {
            return Ok(None);
        }
        let until = tokio::time::Instant::now() + WAIT;
        loop {
            // Before it is looked, so that nothing that ends meanwhile is missed.
            let mut ended = std::pin::pin!(self.ended.notified());
            ended.as_mut().enable();
            let doubtful = match self.try_admit(day, conversation.as_ref(), expected)? {
                Ok(admission) => return Ok(Some(admission)),
                Err(doubtful) => doubtful,
            };
            if tokio::time::timeout_at(until, ended).await.is_err() {
                return Err(doubtful);
            }
        }
    }

    /// Notes a request that may be sent. The inner error is the cap that may be reached by what is on its way.
    fn try_admit(
        self: &Arc<Self>,
        day: u64,
        conversation: Option<&CappedConversation<'_>>,
        expected: Spent,
    ) -> Result<Result<Admission, ReachedCap>, ReachedCap> {
        let mut under_way = self.under_way();
        let scopes = [
            Some((CapScope::Day, self.cap.day, self.of_day(day), under_way.expected(None))),
            conversation.map(|one| {
                (CapScope::Conversation, self.cap.conversation, (one.spent)(), under_way.expected(Some(one.id)))
            }),
        ];
        let mut doubtful = None;
        for (scope, cap, spent, coming) in scopes.into_iter().flatten() {
            if let Some(reached) = cap.reached(scope, spent) {
                return Err(reached);
            }
            doubtful = doubtful.or(coming.and_then(|coming| cap.reached(scope, spent.and(coming))));
        }
        if let Some(doubtful) = doubtful {
            return Ok(Err(doubtful));
        }
        under_way.last += 1;
        let number = under_way.last;
        let conversation = conversation.map(|one| one.id.to_owned());
        under_way.requests.insert(number, ExpectedRequest { conversation, expected });
        Ok(Ok(Admission { spending: self.clone(), number }))
    }

    fn sums(&self) -> MutexGuard<'_, SpendingSums> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request that has ended, with what its conversation has spent by now.
    pub(crate) fn add(&self, record: &RequestRecord, conversation: Option<Spent>) {
        if self.cap.is_none() {
            return;
        }
        let day = day_of(record.time_ms);
        let mut sums = self.sums();
        if day > sums.own.0 {
            sums.own = (day, Spent::default());
        }
        if day == sums.own.0 {
            sums.own.1 = sums.own.1.and(Spent::of(record));
        }
        let share = |spent: &Spent| self.cap.conversation.share(spent);
        if let Some(spent) = conversation.filter(|spent| share(spent) > share(&sums.dearest)) {
            sums.dearest = spent;
        }
    }

    /// The cap for a day, if it is reached.
    pub(crate) async fn day_reached(self: &Arc<Self>, now_ms: u64) -> Option<ReachedCap> {
        if self.cap.day.is_none() {
            return None;
        }
        self.refresh(day_of(now_ms)).await;
        self.cap.day.reached(CapScope::Day, self.of_day(day_of(now_ms)))
    }

    /// Notes that a request was refused.
    pub(crate) fn note_refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// How much of the cap is used; `None` if there is none.
    pub(crate) fn used(&self, now_ms: u64) -> Option<CapUse> {
        if self.cap.is_none() {
            return None;
        }
        let day_spent = self.of_day(day_of(now_ms));
        let sums = self.sums();
        Some(CapUse {
            day: self.cap.day,
            day_spent,
            is_day_incomplete: sums.is_incomplete,
            conversation: self.cap.conversation,
            conversation_spent: sums.dearest,
            refused: self.refused.load(Ordering::Relaxed),
        })
    }

    fn of_day(&self, day: u64) -> Spent {
        let sums = self.sums();
        let own = Some(sums.own).filter(|(of, _)| *of == day).map(|(_, spent)| spent);
        let others = sums.others.filter(|(of, _, _)| *of == day).map(|(_, spent, _)| spent);
        own.unwrap_or_default().and(others.unwrap_or_default())
    }

    /// Reads what others have spent. It is waited for only if nothing is known of the day yet.
    async fn refresh(self: &Arc<Self>, day: u64) {
        let known = self.sums().others.filter(|(of, _, _)| *of == day);
        match known {
            Some((_, _, when)) if when.elapsed() < FRESH => {}
            Some(_) => {
                let this = self.clone();
                tokio::spawn(async move { this.read(day).await });
            }
            None => self.read(day).await,
        }
    }

    async fn read(&self, day: u64) {
        let Some(store) = self.store.clone() else { return };
        let _reading = self.reading.lock().await;
        let known = self.sums().others;
        if known.is_some_and(|(of, _, when)| of == day && when.elapsed() < FRESH) {
            // Another request has read it meanwhile.
            return;
        }
        let session = self.session.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let records = store.requests_since(day_begins_ms(day)).ok()?;
            let others = records.iter().filter(|record| record.session != session && day_of(record.time_ms) == day);
            Some(others.map(Spent::of).fold(Spent::default(), Spent::and))
        });
        let spent = tokio::time::timeout(PATIENCE, reading).await.ok().and_then(Result::ok).flatten();
        let mut sums = self.sums();
        sums.is_incomplete = spent.is_none();
        // A store that cannot be read is not asked with every request: what was known goes on to count.
        let before = known.filter(|(of, _, _)| *of == day).map(|(_, spent, _)| spent);
        sums.others = Some((day, spent.or(before).unwrap_or_default(), Instant::now()));
    }
}
