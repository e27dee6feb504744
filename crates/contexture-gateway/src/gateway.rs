//! Starts, runs and stops the gateway.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::accept::access::{Access, AccessKey};
use crate::accept::handle::handle;
use crate::accept::serving::serve;
use crate::account::record::RequestRecord;
use crate::account::session::Session;
use crate::control::ConversationControls;
use crate::decide::decider::Decider;
use crate::options::Options;
use crate::send::prepare_tls;
use crate::send::tls::ExtraRoots;
use crate::shared::{Diagnosing, Shared};
use crate::start_error::StartError;
use crate::watch::StartedGateway;
use crate::write::{RunningGateway, open_limited_store};

/// How long an idle connection to a provider is kept: providers close them after about 15 s.
const IDLE: Duration = Duration::from_secs(10);

/// How long a gateway that stops waits for responses in progress, and again for their records.
const STOPPING: Duration = Duration::from_secs(2);

/// A running gateway.
pub struct Gateway {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<watch::Sender<()>>,
    serving: JoinHandle<io::Result<()>>,
}

impl Gateway {
    /// Starts a gateway on an address; port 0 selects a free one.
    ///
    /// # Errors
    /// The address is in use, the store cannot be opened, or the gateway would send requests to itself.
    pub async fn start(listen: &str, options: Options) -> Result<Self, StartError> {
        let open = |place: &Path| open_limited_store(place, options.store_bytes);
        let store = options.store.as_deref().map(open).transpose()?;
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
        let shared = Arc::new(Shared {
            decider: Arc::new(Decider::new(options.clone(), store.clone())),
            session: Session::new(id, store.clone()),
            client: client(&options.extra_roots)?,
            access,
            refused: AtomicU64::new(0),
            store,
            address,
            diagnosing: Diagnosing::new(options.diagnose),
            options,
        });
        let controls = Arc::new(ConversationControls::new(shared.decider.clone(), shared.store.clone()));
        let started = StartedGateway { address, controls };
        shared.options.watchers.iter().for_each(|watcher| watcher.started(&started));
        let app = axum::Router::new().fallback(handle).with_state(shared.clone());
        let (stop, stopped) = watch::channel(());
        let serving = tokio::spawn(serve(listener, app, shared.options.header_time, stopped));
        Ok(Self { address, shared, stop: Some(stop), serving })
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

    /// The requests so far.
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

    /// Stops it. Responses in progress are given a moment to finish.
    pub async fn stop(mut self) -> Vec<RequestRecord> {
        // Dropping it stops the listener.
        drop(self.stop.take());
        // Connections that clients keep open would prevent it from ending.
        let _ = tokio::time::timeout(STOPPING, &mut self.serving).await;
        self.serving.abort();
        self.shared.session.complete(STOPPING).await;
        let shared = self.shared.clone();
        let last = tokio::task::spawn_blocking(move || {
            shared.session.write();
            if let Some(store) = &shared.store {
                let _ = store.forget_gateway(shared.session.id());
            }
        });
        // If that fails, `status` still lists it, and the receipt counts what could not be written.
        let _ = last.await;
        self.shared.session.records()
    }
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

fn client(roots: &ExtraRoots) -> Result<reqwest::Client, reqwest::Error> {
    prepare_tls();
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .pool_idle_timeout(IDLE)
        .tcp_nodelay(true)
        .tls_certs_merge(roots.certificates())
        .build()
}
