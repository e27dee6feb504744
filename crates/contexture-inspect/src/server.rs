//! The inspector: an archive, access control, and the pages that show it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, OnceLock};

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use contexture_gateway::accept::access::fresh_secret;
use contexture_gateway::accept::guard;
use contexture_gateway::accept::serving::{HEADER_TIME, serve};
use contexture_gateway::account::record::RequestRecord;
use contexture_gateway::watch::Controls;
use contexture_gateway::{StartError, StoreError};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{broadcast, watch};

use super::address_file::AddressFile;
use super::answer;
use super::archive::{Archive, ArchivedRequest, Ticket};
use super::pass::Pass;
use super::view::About;

/// How many events are buffered for a slow page.
const MAX_NEWS: usize = 256;

/// An additional action when a conversation is deleted.
type DeletionHook = Box<dyn Fn(&str) + Send + Sync>;

/// Reads a recording.
type RecordingReader = Box<dyn Fn(&str) + Send + Sync>;

/// Shows the content of an archive.
pub struct Inspector {
    archive: Archive,
    about: Mutex<About>,
    address: SocketAddr,
    pub(super) pass: Pass,
    pub(super) news: broadcast::Sender<String>,
    controls: OnceLock<Arc<dyn Controls>>,
    /// Requests of a gateway that are in progress, by the gateway's numbers.
    pub(super) tickets: Mutex<HashMap<u64, Ticket>>,
    /// An additional action when a conversation is deleted.
    forgetting: OnceLock<DeletionHook>,
    /// Reads a recording that was only listed so far.
    opening: OnceLock<RecordingReader>,
}

impl Inspector {
    /// Creates an inspector at an address, protected by a token.
    pub fn new(archive: Archive, about: About, address: SocketAddr, token: String) -> Self {
        let (news, _) = broadcast::channel(MAX_NEWS);
        let pass = Pass::new(token);
        Self {
            archive,
            about: Mutex::new(about),
            address,
            pass,
            news,
            controls: OnceLock::new(),
            tickets: Mutex::default(),
            forgetting: OnceLock::new(),
            opening: OnceLock::new(),
        }
    }

    /// Sets the name of what is inspected.
    pub(super) fn name(&self, name: String) {
        self.about.lock().unwrap_or_else(std::sync::PoisonError::into_inner).name = name;
    }

    /// Lets users change the conversations of a gateway.
    pub(super) fn control(&self, controls: Arc<dyn Controls>) {
        // Set only once, when the gateway starts.
        let _ = self.controls.set(controls);
    }

    /// Sets an additional action for when a conversation is deleted.
    pub fn on_forget(&self, forget: impl Fn(&str) + Send + Sync + 'static) {
        // Set only once, when the inspector starts.
        let _ = self.forgetting.set(Box::new(forget));
    }

    /// Sets what reads a recording that is listed when somebody opens it. It is called once for each, and must not block.
    pub fn on_open(&self, open: impl Fn(&str) + Send + Sync + 'static) {
        // Set only once, when the inspector starts.
        let _ = self.opening.set(Box::new(open));
    }

    /// Has a recording read that was only listed so far.
    pub fn open_recording(&self, conversation: &str) {
        if let Some(open) = self.opening.get() {
            // If it cannot be marked, it is asked for again.
            if let Ok(true) = self.archive.is_being_read(conversation) {
                open(conversation);
            }
        }
    }

    /// The newest recording that was not read yet, which is noted as being read. None if the archive is half full: what
    /// is read then is soon deleted again, so somebody must ask for it.
    pub fn next_unread(&self) -> Option<String> {
        let newest = || self.archive.unread_ids().ok()?.into_iter().next();
        let id = (!self.archive.is_half_full()).then(newest)??;
        self.archive.is_being_read(&id).ok()?.then_some(id)
    }

    /// Has all recordings read, newest first.
    pub(super) fn open_all(&self) {
        for id in self.archive.unread_ids().unwrap_or_default() {
            self.open_recording(&id);
        }
    }

    /// Notes that a recording is read, and notifies the pages.
    pub fn is_read(&self, conversation: &str) {
        // What cannot be marked stays listed as being read.
        let _ = self.archive.is_read(conversation);
        self.tell("conversation", json!({"conversation": conversation}));
    }

    /// Deletes a conversation everywhere it is stored.
    pub(super) fn forget(&self, conversation: &str) -> Result<(), StoreError> {
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
    pub(super) fn controls(&self) -> Option<&dyn Controls> {
        self.controls.get().map(|controls| &**controls)
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its URL with the token after the `#`, which browsers send to nobody.
    pub fn url(&self) -> String {
        format!("http://{}/inspect/#token={}", self.address, self.pass.token())
    }

    /// The token that its API asks for.
    pub(super) fn token(&self) -> &str {
        self.pass.token()
    }

    /// Adds a request that is about to be sent, and notifies the pages. Returns `None` if it could not be written.
    pub fn note_sent(&self, seen: ArchivedRequest<'_>) -> Option<Ticket> {
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
}

/// An inspector with its own listener, which is closed when it is dropped.
pub struct InspectServer {
    inspector: Arc<Inspector>,
    _stop: watch::Sender<()>,
    serving: tokio::task::JoinHandle<std::io::Result<()>>,
    /// Where others find its address.
    address: Option<AddressFile>,
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
        let inspector = Arc::new(Inspector::new(archive, about, address, fresh_secret()));
        let app = axum::Router::new().fallback(handle).with_state(inspector.clone());
        let (stop, stopped) = watch::channel(());
        let serving = tokio::spawn(serve(listener, app, HEADER_TIME, stopped));
        Ok(Self { inspector, _stop: stop, serving, address: None })
    }

    /// Writes its address beside a store, for as long as it serves.
    pub(super) fn beside(mut self, store: &std::path::Path) -> Self {
        self.address = AddressFile::write(store, self.inspector.url());
        self
    }

    /// The inspector.
    pub fn inspector(&self) -> &Arc<Inspector> {
        &self.inspector
    }

    /// Waits until it ends on its own.
    ///
    /// # Errors
    /// Listening failed.
    pub async fn wait(mut self) -> std::io::Result<()> {
        (&mut self.serving).await.unwrap_or_else(|error| Err(std::io::Error::other(error)))
    }
}

impl Drop for InspectServer {
    fn drop(&mut self) {
        drop(self.address.take());
        self.serving.abort();
    }
}

async fn handle(State(inspector): State<Arc<Inspector>>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    if !guard::is_local(&parts.headers, &parts.uri, inspector.address.ip()) {
        let why = "requests for another host or from another origin are refused";
        return answer::refused(StatusCode::FORBIDDEN, why);
    }
    inspector.respond(&parts, body).await
}
