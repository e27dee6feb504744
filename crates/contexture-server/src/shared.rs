//! What all requests of a gateway share.

use std::net::SocketAddr;
use std::sync::Arc;

use crate::decide::Decider;
use crate::inspect::Inspector;
use crate::options::Options;
use crate::sessions::Session;
use crate::store::Store;

/// What all requests share.
pub(crate) struct Shared {
    pub(crate) options: Arc<Options>,
    pub(crate) decider: Decider,
    pub(crate) session: Session,
    /// What is asked for on the gateway's own routes.
    pub(crate) token: String,
    pub(crate) store: Option<Arc<Store>>,
    pub(crate) client: reqwest::Client,
    pub(crate) address: SocketAddr,
    /// Keeps and shows what is sent, if that is wanted.
    pub(crate) inspector: Option<Arc<Inspector>>,
}
