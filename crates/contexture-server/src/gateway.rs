//! The gateway: it starts, listens and ends.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::serve::ListenerExt;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::decide::Decider;
use crate::handle::handle;
use crate::inspect::controls::Controls;
use crate::options::Options;
use crate::record::RequestRecord;
use crate::sessions::Session;
use crate::shared::{Diagnosing, Shared};
use crate::store::{RunningGateway, Store, StoreError};
use crate::tls::prepare_tls;
use crate::watching;

/// How long a connection to a provider is held when nothing passes: providers close them after about 15 s.
const IDLE: Duration = Duration::from_secs(10);

/// A gateway that runs.
pub struct Gateway {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<io::Result<()>>,
}

/// Why a gateway cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("listen on `{address}`")]
    Listen {
        /// The address.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Requests cannot be made.
    #[error("set up requests to providers")]
    Client(#[from] reqwest::Error),
    /// It would send requests to itself.
    #[error("the upstream `{0}` is this gateway itself")]
    Loop(String),
}

impl Gateway {
    /// Starts a gateway on an address; port 0 is any that is free.
    ///
    /// # Errors
    /// The address is taken, the store cannot be used, or it would send requests to itself.
    pub async fn start(listen: &str, options: Options) -> Result<Self, StartError> {
        let store = options.store.as_deref().map(Store::open).transpose()?;
        let store = store.map(|store| Arc::new(store.with_most_bytes(options.store_bytes)));
        let fail = |source| StartError::Listen { address: listen.to_owned(), source };
        let listener = TcpListener::bind(listen).await.map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        for url in options.upstreams.all() {
            if url.contains(&format!("//{address}")) || url.contains(&format!("//localhost:{}", address.port())) {
                return Err(StartError::Loop(url.clone()));
            }
        }
        let options = Arc::new(options);
        let id = uuid::Uuid::now_v7().simple().to_string();
        let token = blake3::hash(format!("{id}{}", uuid::Uuid::now_v7()).as_bytes()).to_hex()[..32].to_owned();
        let inspector = watching::inspector(&options, address, &token)?;
        if let Some(store) = &store {
            let (address, token, pid) = (address.to_string(), token.clone(), std::process::id());
            // Without it only `status` does not find this gateway.
            let _ = store.note_gateway(&RunningGateway { id: id.clone(), address, token, pid });
        }
        let shared = Arc::new(Shared {
            decider: Decider::new(options.clone(), store.clone()),
            session: Session::new(id, store.clone()),
            client: client()?,
            token,
            store,
            address,
            inspector: inspector.clone(),
            diagnosing: Diagnosing::new(options.diagnose),
            options,
        });
        if let Some(inspector) = inspector {
            inspector.control(Controls::new(&shared));
        }
        let app = axum::Router::new().fallback(handle).with_state(shared.clone());
        let (stop, stopped) = oneshot::channel::<()>();
        // A chunk that waits for the next one is felt as a pause.
        let listener = listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        let server = axum::serve(listener, app).with_graceful_shutdown(async {
            // An error means that the gateway was dropped.
            let _ = stopped.await;
        });
        let serving = tokio::spawn(async move { server.await });
        Ok(Self { address, shared, stop: Some(stop), serving })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its address as clients write it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where its inspector is, with what opens it; nothing if nothing is inspected.
    pub fn inspect_url(&self) -> Option<String> {
        self.shared.inspector.as_ref().map(|inspector| inspector.url())
    }

    /// What is asked for on its own routes.
    pub fn token(&self) -> &str {
        &self.shared.token
    }

    /// What passed through it so far.
    pub fn records(&self) -> Vec<RequestRecord> {
        self.shared.session.records()
    }

    /// Waits until it ends by itself.
    ///
    /// # Errors
    /// Listening failed.
    pub async fn wait(&mut self) -> io::Result<()> {
        (&mut self.serving).await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    /// Ends it. Answers that are still coming are given a moment.
    pub async fn stop(mut self) -> Vec<RequestRecord> {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        // Connections that the client keeps open would hold it for ever.
        let _ = tokio::time::timeout(Duration::from_secs(2), &mut self.serving).await;
        self.serving.abort();
        let until = Instant::now() + Duration::from_secs(2);
        while !self.shared.session.is_complete() && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if let Some(store) = &self.shared.store {
            let _ = store.forget_gateway(self.shared.session.id());
        }
        self.shared.session.records()
    }
}

fn client() -> Result<reqwest::Client, reqwest::Error> {
    prepare_tls();
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .pool_idle_timeout(IDLE)
        .tcp_nodelay(true)
        .build()
}
