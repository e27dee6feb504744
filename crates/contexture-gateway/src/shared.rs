//! State that all requests of a gateway share: what its steps keep between them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::accept::access::Access;
use crate::accept::health::Readiness;
use crate::decide::decider::Decider;
use crate::lean::Leaner;
use crate::options::Options;
use crate::provider::client::ProviderClient;
use crate::report::receipt::Receipt;
use crate::report::session::Session;
use crate::report::spending::Spending;
use crate::write::Store;

/// State that all requests share.
pub(crate) struct SharedState {
    pub(crate) options: Arc<Options>,
    pub(crate) decider: Arc<Decider>,
    /// Leaves out tools that nobody calls, if that is asked for.
    pub(crate) leaner: Option<Leaner>,
    pub(crate) session: Session,
    /// What was spent, against the cap.
    pub(crate) spending: Arc<Spending>,
    /// Who may use the gateway.
    pub(crate) access: Arc<Access>,
    /// How many requests came without a key.
    pub(crate) refused: AtomicU64,
    /// Whether its store can be read.
    pub(crate) readiness: Readiness,
    pub(crate) store: Option<Arc<dyn Store>>,
    pub(crate) client: ProviderClient,
    pub(crate) address: SocketAddr,
    pub(crate) diagnosing: Diagnosing,
    /// Taken by requests with large bodies while they are looked at.
    pub(crate) large: tokio::sync::Semaphore,
}

impl SharedState {
    /// The receipt of all requests so far, with what is used of the cap.
    pub(crate) fn receipt(&self) -> Receipt {
        let mut receipt = self.session.receipt();
        receipt.cap = self.spending.used(self.decider.now_ms());
        receipt
    }
}

/// Whether providers are asked for diagnostics of their cache.
pub(crate) struct Diagnosing(AtomicBool);

impl Diagnosing {
    pub(crate) fn new(is_on: bool) -> Self {
        Self(AtomicBool::new(is_on))
    }

    pub(crate) fn is_on(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Stops asking, because the provider does not support it.
    pub(crate) fn stop(&self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
