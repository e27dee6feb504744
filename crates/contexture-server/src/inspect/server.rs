//! The inspector: an archive, access control, and the pages that show it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Response, StatusCode, header};
use futures_util::stream;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::broadcast;

use super::archive::{Archive, Seen, Ticket};
use super::controls::Controls;
use super::pass::Pass;
use super::view::About;
use super::{answer, page, routes};
use crate::gateway::StartError;
use crate::guard;
use crate::record::RequestRecord;

/// How many events are buffered for a slow page.
const MAX_NEWS: usize = 256;

/// Interval of keep-alive events.
const QUIET: Duration = Duration::from_secs(15);

/// Largest body of a request.
const MOST_BYTES: usize = 64 << 10;

/// The routes of the API, so that similar paths of providers are not mistaken for them.
const PARTS: &[&str] = &["about", "conversations", "bill", "search", "events"];

/// An additional action when a conversation is deleted.
type Forget = Box<dyn Fn(&str) + Send + Sync>;

/// Shows the content of an archive.
pub struct Inspector {
    archive: Archive,
    about: Mutex<About>,
    address: SocketAddr,
    pass: Pass,
    news: broadcast::Sender<String>,
    controls: OnceLock<Controls>,
    /// An additional action when a conversation is deleted.
    forgetting: OnceLock<Forget>,
}

impl Inspector {
    /// Creates an inspector at an address, protected by a token.
    pub fn new(archive: Archive, about: About, address: SocketAddr, token: String) -> Self {
        let (news, _) = broadcast::channel(MAX_NEWS);
        let pass = Pass::new(token, address.port());
        Self {
            archive,
            about: Mutex::new(about),
            address,
            pass,
            news,
            controls: OnceLock::new(),
            forgetting: OnceLock::new(),
        }
    }

    /// Lets users change the conversations of a gateway.
    pub(crate) fn control(&self, controls: Controls) {
        // Set only once, when the gateway starts.
        let _ = self.controls.set(controls);
    }

    /// Sets an additional action for when a conversation is deleted.
    pub fn on_forget(&self, forget: impl Fn(&str) + Send + Sync + 'static) {
        // Set only once, when the inspector starts.
        let _ = self.forgetting.set(Box::new(forget));
    }

    /// Deletes a conversation everywhere it is stored.
    pub(super) fn forget(&self, conversation: &str) -> Result<(), crate::store::StoreError> {
        if let Some(controls) = self.controls() {
            controls.forget(conversation);
        }
        if let Some(forget) = self.forgetting.get() {
            forget(conversation);
        }
        self.archive.forget(Some(conversation))?;
        Ok(())
    }

    /// The controls, if conversations can be changed.
    pub(super) fn controls(&self) -> Option<&Controls> {
        self.controls.get()
    }

    /// The archive that is shown.
    pub fn archive(&self) -> &Archive {
        &self.archive
    }

    /// What is being inspected.
    pub(super) fn about(&self) -> About {
        self.about.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }

    /// Declares that no new requests will come.
    pub fn is_complete(&self) {
        self.about.lock().unwrap_or_else(std::sync::PoisonError::into_inner).is_live = false;
        self.tell("complete", json!({}));
    }

    /// Its URL with the token.
    pub fn url(&self) -> String {
        format!("http://{}/inspect/?token={}", self.address, self.pass.token())
    }

    /// Adds a request that is about to be sent, and notifies the pages. Returns `None` if it could not be written.
    pub fn note_sent(&self, seen: Seen<'_>) -> Option<Ticket> {
        let ticket = self.archive.note_sent(seen).ok()?;
        self.tell("request", json!({"conversation": ticket.conversation, "n": ticket.n}));
        Some(ticket)
    }

    /// Stores the outcome of a request, and notifies the pages.
    pub fn note_over(&self, ticket: &Ticket, record: &RequestRecord) {
        // A record that cannot be written is still in the receipt.
        let _ = self.archive.note_over(ticket, record);
        self.tell("request", json!({"conversation": ticket.conversation, "n": ticket.n}));
    }

    /// Notifies the pages of a change.
    pub fn tell(&self, event: &str, data: serde_json::Value) {
        // It fails if no page is open.
        let _ = self.news.send(format!("event: {event}\ndata: {data}\n\n"));
    }

    /// Whether a path belongs to the inspector.
    pub fn is_for(&self, path: &str) -> bool {
        let is_page = path == "/inspect" || path.starts_with("/inspect/");
        let part = path.strip_prefix("/api/v1/").and_then(|rest| rest.split('/').next());
        is_page || part.is_some_and(|part| PARTS.contains(&part))
    }

    /// Responds to a request from this machine.
    pub async fn respond(self: &Arc<Self>, parts: &Parts, body: Body) -> Response<Body> {
        if !self.pass.allows(&parts.method, &parts.uri, &parts.headers) {
            let why = "the inspector asks for its token: open the address that was printed when it started";
            return answer::refused(StatusCode::UNAUTHORIZED, why);
        }
        let Ok(body) = to_bytes(body, MOST_BYTES).await else {
            return answer::refused(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large");
        };
        let path = parts.uri.path().to_owned();
        match path.strip_prefix("/api/v1/") {
            Some("events") => self.events(),
            Some(route) => {
                let (method, query) = (parts.method.clone(), parts.uri.query().unwrap_or_default().to_owned());
                self.api(method, route.to_owned(), query, body).await
            }
            None => self.page(&path),
        }
    }

    async fn api(self: &Arc<Self>, method: Method, route: String, query: String, body: Bytes) -> Response<Body> {
        let inspector = self.clone();
        // Reading the archive blocks on the disk.
        let work = move || routes::respond(&inspector, &method, &route, &query, &body);
        let failed = |_| answer::refused(StatusCode::INTERNAL_SERVER_ERROR, "something went wrong in the inspector");
        tokio::task::spawn_blocking(work).await.unwrap_or_else(failed)
    }

    fn page(&self, path: &str) -> Response<Body> {
        match path {
            "/inspect" | "/inspect/" => {
                let mut response = answer::of("text/html; charset=utf-8", page::DOCUMENT);
                if let Ok(cookie) = HeaderValue::from_str(&self.pass.cookie()) {
                    response.headers_mut().insert(header::SET_COOKIE, cookie);
                }
                response
            }
            "/inspect/app.js" => answer::of("text/javascript; charset=utf-8", page::SCRIPT),
            "/inspect/icon.svg" => answer::of("image/svg+xml", page::ICON),
            "/inspect/app.css" => answer::of("text/css; charset=utf-8", page::STYLE),
            _ => answer::refused(StatusCode::NOT_FOUND, "there is no such page"),
        }
    }

    /// A stream of events.
    fn events(&self) -> Response<Body> {
        let news = self.news.subscribe();
        let start = stream::iter([Ok::<_, std::convert::Infallible>(Bytes::from_static(b"retry: 1000\n\n"))]);
        let later = stream::unfold(news, |mut news| async move {
            let text = match tokio::time::timeout(QUIET, news.recv()).await {
                Ok(Ok(text)) => text,
                // A page that missed an event reloads everything.
                Ok(Err(broadcast::error::RecvError::Lagged(_))) => "event: reload\ndata: {}\n\n".to_owned(),
                Ok(Err(broadcast::error::RecvError::Closed)) => return None,
                Err(_) => ": quiet\n\n".to_owned(),
            };
            Some((Ok(Bytes::from(text)), news))
        });
        let stream = futures_util::StreamExt::chain(start, later);
        answer::of("text/event-stream", Body::from_stream(stream))
    }
}

/// A stand-alone inspector with its own listener.
pub struct InspectServer {
    inspector: Arc<Inspector>,
    serving: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl InspectServer {
    /// Starts an inspector at an address.
    ///
    /// # Errors
    /// The address cannot be listened on.
    pub async fn start(listen: &str, archive: Archive, about: About) -> Result<Self, StartError> {
        let fail = |source| StartError::Listen { address: listen.to_owned(), source };
        let listener = TcpListener::bind(listen).await.map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        let seed = format!("{}{}", uuid::Uuid::now_v7(), uuid::Uuid::now_v7());
        let token = blake3::hash(seed.as_bytes()).to_hex()[..32].to_owned();
        let inspector = Arc::new(Inspector::new(archive, about, address, token));
        let app = axum::Router::new().fallback(handle).with_state(inspector.clone());
        let serving = tokio::spawn(async move { axum::serve(listener, app).await });
        Ok(Self { inspector, serving })
    }

    /// The inspector.
    pub fn inspector(&self) -> &Arc<Inspector> {
        &self.inspector
    }

    /// Waits until it ends on its own.
    ///
    /// # Errors
    /// Listening failed.
    pub async fn wait(self) -> std::io::Result<()> {
        self.serving.await.unwrap_or_else(|error| Err(std::io::Error::other(error)))
    }
}

async fn handle(State(inspector): State<Arc<Inspector>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    if !guard::is_local(&parts.headers, &parts.uri, &[inspector.address.ip().to_string()]) {
        let why = "requests for another host or from another origin are refused";
        return answer::refused(StatusCode::FORBIDDEN, why);
    }
    match inspector.is_for(parts.uri.path()) {
        true => inspector.respond(&parts, body).await,
        false => answer::refused(StatusCode::NOT_FOUND, "there is no such page"),
    }
}
