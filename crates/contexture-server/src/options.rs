//! What a gateway is told when it starts.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use contexture::clock::Clock;
use contexture::files::dialect::Dialects;
use contexture::fold::Pins;
use contexture::host::SystemClock;
use contexture::tokens::{Estimate, TokenCounter};

use crate::models::Models;
use crate::record::RequestRecord;
use crate::upstream::Upstreams;

/// The gateway's own work on a request, beyond which nothing new is decided about it.
const OWN_WORK: Duration = Duration::from_millis(50);

/// Largest body that is looked into; larger ones pass as they are.
const READ_BYTES: usize = 64 << 20;

/// Largest store.
const STORE_BYTES: u64 = 1 << 30;

/// Is told of every request that is over.
pub trait Watcher: Send + Sync {
    /// A request is over. Answers pass meanwhile, so this must not take long.
    fn seen(&self, record: &RequestRecord);
}

/// What a gateway keeps to.
#[derive(Clone)]
pub struct Options {
    /// Where requests go.
    pub upstreams: Upstreams,
    /// The most tokens of a request; otherwise what the model takes.
    pub budget: Option<u64>,
    /// Whether everything is sent as it came, and what would have been done is only noted.
    pub observe: bool,
    /// The share of conversations that pass as they are, for comparison.
    pub holdout: f64,
    /// Whether providers are asked for their own view of their cache, in a field that is added to requests.
    pub diagnose: bool,
    /// Where the agent works, if that is known.
    pub directory: Option<Arc<str>>,
    /// Where conversations, decisions and receipts are kept; nowhere, if `None`.
    pub store: Option<PathBuf>,
    /// Whether what is sent is kept and shown in the inspector.
    pub inspect: bool,
    /// How large that may be; beyond it the conversations that were used longest ago go.
    pub store_bytes: u64,
    /// What is never folded.
    pub pins: Pins,
    /// The gateway's own work on a request, beyond which nothing new is decided about it.
    pub own_work: Duration,
    /// Largest body that is looked into.
    pub read_bytes: usize,
    /// What is known of models.
    pub models: Models,
    /// What tools do.
    pub dialects: Dialects,
    /// Counts tokens; what the provider reports corrects it.
    pub counter: Arc<dyn TokenCounter>,
    /// Who is told of every request that is over.
    pub watcher: Option<Arc<dyn Watcher>>,
    /// What time it is.
    pub clock: Arc<dyn Clock>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            upstreams: Upstreams::default(),
            budget: None,
            observe: false,
            holdout: 0.0,
            diagnose: false,
            directory: None,
            store: None,
            inspect: false,
            store_bytes: STORE_BYTES,
            pins: Pins::default(),
            own_work: OWN_WORK,
            read_bytes: READ_BYTES,
            models: Models::builtin(),
            dialects: Dialects::builtin(),
            counter: Arc::new(Estimate),
            watcher: None,
            clock: Arc::new(SystemClock::new()),
        }
    }
}
