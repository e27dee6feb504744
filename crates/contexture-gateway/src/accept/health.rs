//! Whether the gateway is alive and ready, for those who supervise it.
//!
//! Supervisors have no secrets, so these two routes ask for none. They say one word, and what they cost does not depend
//! on how often they are asked.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{HeaderValue, Method, Response, StatusCode, header};
use tokio::sync::Mutex;

use crate::write::Store;

/// The gateway responds.
const HEALTH: &str = "/contexture/health";

/// The gateway responds, and its store does.
const READY: &str = "/contexture/ready";

/// A conversation that no store has; asking for it shows that the store can be read.
const NO_CONVERSATION: &str = "00000000000000000000000000000000";

/// How long what is known of the store holds.
const FRESH: Duration = Duration::from_secs(1);

/// How long the store may take.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether a request asks for one of the two routes.
pub(crate) fn is_asked(method: &Method, path: &str) -> bool {
    matches!(*method, Method::GET | Method::HEAD) && matches!(path, HEALTH | READY)
}

/// What is known of the store.
#[derive(Debug, Default)]
pub(crate) struct Readiness {
    /// When it was asked, and whether it could be read.
    known: Mutex<Option<(Instant, bool)>>,
}

impl Readiness {
    /// Responds to a request for one of the two routes.
    pub(crate) async fn respond(&self, store: Option<&Arc<dyn Store>>, path: &str) -> Response<Body> {
        let (status, text) = match path == HEALTH || self.is_ready(store).await {
            true => (StatusCode::OK, "ok\n"),
            false => (StatusCode::SERVICE_UNAVAILABLE, "the store does not respond\n"),
        };
        let mut response = Response::new(Body::from(text));
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    /// Whether the store can be read. It is asked by one at a time, and at most once a second.
    async fn is_ready(&self, store: Option<&Arc<dyn Store>>) -> bool {
        let Some(store) = store.cloned() else { return true };
        let mut known = self.known.lock().await;
        if let Some((when, is_ready)) = *known
            && when.elapsed() < FRESH
        {
            return is_ready;
        }
        let reading = tokio::task::spawn_blocking(move || store.version(NO_CONVERSATION).is_ok());
        let is_ready = matches!(tokio::time::timeout(PATIENCE, reading).await, Ok(Ok(true)));
        *known = Some((Instant::now(), is_ready));
        is_ready
    }
}
