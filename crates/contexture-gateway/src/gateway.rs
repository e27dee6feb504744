//! Starts, runs and stops the gateway.

mod start_error;
mod control;
mod capped;
pub(crate) mod own;
mod handle;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use contexture_text::numbers::counted;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use control::ConversationControls;
use handle::handle;
pub use start_error::StartError;

use crate::accept::access::{Access, AccessKey};
use crate::accept::health::Readiness;
use crate::accept::serving::serve;
use crate::account::record::RequestRecord;
use crate::decide::decider::Decider;
use crate::lean::{LOOK_BACK_MS, Leaner};
use crate::options::Options;
use crate::provider::client::ProviderClient;
use crate::report::receipt::Receipt;
use crate::report::session::Session;
use crate::report::spending::Spending;
use crate::shared::{Diagnosing, SharedState};
use crate::watch::StartedGateway;
use crate::write::{RunningGateway, Store, StoreError, open_limited_store};

/// How long a gateway that stops waits for responses in progress, and again for their records.
const STOPPING: Duration = Duration::from_secs(2);

/// A running gateway.
pub struct Gateway {
    address: SocketAddr,
    shared: Arc<SharedState>,
    stop: Option<watch::Sender<()>>,
    serving: JoinHandle<io::Result<()>>,
    notes: Vec<String>,
}

impl Gateway {
    /// Starts a gateway on an address; port 0 selects a free one.
    ///
    /// Of a store that is damaged what is whole goes on, and if one cannot be written the gateway runs without any;
    /// [`notes`](Self::notes) says so.
    ///
    /// # Errors
    /// The address is in use, the store is something else or cannot be reached, or the gateway would send requests to
    /// itself.
    pub async fn start(listen: &str, options: Options) -> Result<Self, StartError> {
        let (store, notes) = opened(&options).await?;
        let fail = |source| StartError::Listen { address: listen.to_owned(), source };
        let listener = TcpListener::bind(listen).await.map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        for url in options.upstreams.all() {
            if leads_to(url, address).await {
                return Err(StartError::Loop(url.clone()));
            }
        }
        let mut options = options;
        if options.keys.len() > 1 {
            // Nobody reads the files of another.
            options.directory = None;
        }
        options.memory = options.memory.map(|memory| memory.watched_by(options.watchers.clone()));
        let options = Arc::new(options);
        let secrets: Vec<&str> = options.watchers.iter().filter_map(|watcher| watcher.secret()).collect();
        let access = Arc::new(Access::new(options.keys.clone(), &secrets));
        let id = uuid::Uuid::now_v7().simple().to_string();
        if let Some(store) = &store {
            let (address, token, pid) = (address.to_string(), access.token().to_owned(), std::process::id());
            // If this fails, only `status` does not find this gateway.
            let (id, host) = (id.clone(), contexture::host::machine());
            let _ = store.note_gateway(&RunningGateway { id, address, token, pid, host });
        }
        let shared = Arc::new(SharedState {
            leaner: leaner(&options, store.clone()).await,
            decider: Arc::new(Decider::new(options.clone(), store.clone())),
            spending: Arc::new(Spending::new(options.cap, id.clone(), store.clone())),
            session: Session::new(id, store.clone()),
            client: ProviderClient::new(&options.extra_roots)?,
            access,
            refused: AtomicU64::new(0),
            readiness: Readiness::default(),
            store,
            address,
            diagnosing: Diagnosing::new(options.diagnose),
            large: tokio::sync::Semaphore::new(1),
            options,
        });
        if let Some(memory) = shared.options.memory.clone() {
            let (counter, clock) = (shared.options.counter.clone(), shared.options.clock.clone());
            let running = Arc::downgrade(&shared);
            tokio::spawn(async move {
                memory.warm().await;
                memory.keep_learning(counter, clock, || running.strong_count() > 0).await;
            });
        }
        let controls = Arc::new(ConversationControls::new(shared.decider.clone(), shared.store.clone()));
        let started = StartedGateway { address, controls };
        shared.options.watchers.iter().for_each(|watcher| watcher.started(&started));
        let app = axum::Router::new().fallback(handle).with_state(shared.clone());
        let (stop, stopped) = watch::channel(());
        let serving = tokio::spawn(serve(listener, app, shared.options.header_time, stopped));
        Ok(Self { address, shared, stop: Some(stop), serving, notes })
    }

    /// What a user should know about its store.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL with its first key, to which the paths of providers are appended.
    pub fn url(&self) -> String {
        self.url_for(&self.shared.access.keys()[0])
    }

    /// Its URL with a key.
    pub fn url_for(&self, key: &AccessKey) -> String {
        format!("http://{}/{}", self.address, key.secret())
    }

    /// The token for its own routes.
    pub fn token(&self) -> &str {
        self.shared.access.token()
    }

    /// How many requests were refused so far because they came without a key.
    pub fn refused(&self) -> u64 {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// The receipt of all requests so far.
    pub fn receipt(&self) -> Receipt {
        self.noted(self.shared.receipt())
    }

    /// A receipt with what is to be said about the store.
    fn noted(&self, mut receipt: Receipt) -> Receipt {
        receipt
            .notes
            .extend(self.notes.iter().filter(|note| !receipt.notes.contains(note)).cloned().collect::<Vec<_>>());
        receipt
    }

    /// The newest requests: 20 000 of them at most.
    pub fn records(&self) -> Vec<RequestRecord> {
        self.shared.session.records()
    }

    /// Waits until it ends on its own.
    ///
    /// # Errors
    /// Listening failed.
    pub async fn wait(&mut self) -> io::Result<()> {
        (&mut self.serving).await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    /// Stops it. Responses in progress are given a moment to finish. Returns the newest requests: 20 000 of them at most.
    pub async fn stop(mut self) -> Vec<RequestRecord> {
        self.finish(tokio::time::sleep(STOPPING)).await;
        self.shared.session.records()
    }

    /// Stops it as [`stop`](Self::stop) does. Returns the receipt of all requests.
    pub async fn end(self) -> Receipt {
        self.end_after(tokio::time::sleep(STOPPING)).await
    }

    /// Stops it: nothing new is accepted from now on, and responses in progress may finish until `patience` is over.
    /// Returns the receipt of all requests.
    pub async fn end_after(mut self, patience: impl Future<Output = ()>) -> Receipt {
        self.finish(patience).await;
        self.receipt()
    }

    async fn finish(&mut self, patience: impl Future<Output = ()>) {
        // Dropping it stops the listener.
        drop(self.stop.take());
        tokio::select! {
            // All connections have ended.
            _ = &mut self.serving => {}
            // Connections that clients keep open would prevent it from ending.
            () = patience => {}
        }
        self.serving.abort();
        self.shared.session.complete(STOPPING).await;
        let shared = self.shared.clone();
        let last = tokio::task::spawn_blocking(move || {
            if let Some(store) = &shared.store {
                let _ = store.forget_gateway(shared.session.id());
            }
            // What did not have room before has it now.
            shared.decider.save_all();
            shared.session.end(STOPPING);
        });
        // If that fails, `status` still lists it, and the receipt counts what is lost.
        let _ = last.await;
    }
}

/// Opens the store, if there is to be one. Returns also what a user should know about it.
async fn opened(options: &Options) -> Result<(Option<Arc<dyn Store>>, Vec<String>), StartError> {
    let Some(place) = options.store.clone() else { return Ok((None, Vec::new())) };
    let bytes = options.store_bytes;
    // It may wait for others that use it.
    let opening = tokio::task::spawn_blocking({
        let place = place.clone();
        move || open_limited_store(&place, bytes)
    });
    match opening.await.unwrap_or(Err(StoreError::Closed)) {
        Ok(store) => {
            let notes = store.damage().into_iter().chain(kept(options, store.clone()).await).collect();
            Ok((Some(store), notes))
        }
        Err(error) if error.is_unwritable() => {
            let note = format!(
                "the store `{}` cannot be written ({}), so nothing is kept of this run",
                place.display(),
                error.cause()
            );
            tracing::warn!("{note}");
            Ok((None, vec![note]))
        }
        Err(error) => Err(error.into()),
    }
}

/// What a user should know of what is kept of conversations and for how long. What is older is deleted by now, if a start
/// before this one has said so.
async fn kept(options: &Options, store: Arc<dyn Store>) -> Vec<String> {
    let days = options.keep_days;
    let before = options.clock.now().saturating_sub(Duration::from_secs(days.saturating_mul(86_400)));
    let expiring = tokio::task::spawn_blocking(move || store.expire(before.as_millis() as u64)).await;
    let expiring = match expiring {
        // A store that cannot be read now expires with another start.
        Err(_) | Ok(Err(_) | Ok(0)) => None,
        Ok(Ok(count)) => Some(format!(
            "{} not used for {days} days: from the next start on only their receipts are kept (`gateway.keep_days`)",
            counted(count, "conversation")
        )),
    };
    let texts = "no texts are kept (`--no-texts`): after a restart conversations are folded anew".to_owned();
    expiring.into_iter().chain((!options.keeps_texts).then_some(texts)).collect()
}

/// What leaves tools out, if that is asked for. What cannot be read of the conversations so far is not known.
async fn leaner(options: &Options, store: Option<Arc<dyn Store>>) -> Option<Leaner> {
    let asked = options.lean_tools.clone().filter(|_| !options.observe)?;
    let (place, since) = (options.place()?, (options.clock.now().as_millis() as u64).saturating_sub(LOOK_BACK_MS));
    let reading = tokio::task::spawn_blocking(move || store?.requests_since(since).ok());
    Some(Leaner::new(asked, &place, &reading.await.ok().flatten().unwrap_or_default()))
}

/// Whether a URL leads to an address of this gateway, however it is written.
async fn leads_to(url: &str, address: SocketAddr) -> bool {
    let Ok(url) = reqwest::Url::parse(url) else { return false };
    let Some((host, port)) = url.host_str().zip(url.port_or_known_default()) else { return false };
    if port != address.port() {
        return false;
    }
    let host = host.trim_start_matches('[').trim_end_matches(']');
    // A name that cannot be resolved leads nowhere.
    let Ok(found) = tokio::net::lookup_host((host, port)).await else { return false };
    let is_own = |found: SocketAddr| match address.ip().is_unspecified() {
        true => found.ip().is_loopback() || found.ip().is_unspecified(),
        false => found.ip() == address.ip() || (found.ip().is_unspecified() && address.ip().is_loopback()),
    };
    found.into_iter().any(is_own)
}
