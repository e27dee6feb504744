//! Reports the gateway's requests to its inspector.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use contexture::store::Place;

use crate::accept::incoming::IncomingRequest;
use crate::account::record::RequestRecord;
use crate::decide::prepared::PreparedRequest;
use crate::inspect::view::About;
use crate::inspect::{ASIDE, Archive, InspectServer, Seen, Ticket};
use crate::options::Options;
use crate::shared::Shared;
use crate::start_error::StartError;

/// The file name of the archive, which is in the directory of the store.
pub const ARCHIVE_NAME: &str = "inspector.db";

/// Where the inspector of a gateway listens: on this machine only, wherever the gateway does.
const INSPECTOR: &str = "127.0.0.1:0";

/// Starts the inspector of the gateway at an address, if it is enabled.
pub(crate) async fn inspector(options: &Options, gateway: SocketAddr) -> Result<Option<InspectServer>, StartError> {
    if !options.inspect {
        return Ok(None);
    }
    let archive = match options.store.as_ref().map(Place::new) {
        Some(Place::File(store)) => Archive::open(&store.with_file_name(ARCHIVE_NAME))?,
        // Texts of requests stay on this machine.
        Some(Place::Postgres(_)) | None => Archive::temporary()?,
    };
    let about = About {
        version: env!("CARGO_PKG_VERSION"),
        name: format!("gateway at {gateway}"),
        kind: "gateway",
        is_live: true,
        can_act: true,
        can_forget: true,
        note: None,
    };
    Ok(Some(InspectServer::start(INSPECTOR, archive, about).await?))
}

/// A request that was reported to the inspector.
#[derive(Clone)]
pub(crate) struct Watched {
    /// Set when the archive has the request.
    ticket: Arc<Mutex<Option<Ticket>>>,
    noting: Arc<Mutex<Option<tokio::task::JoinHandle<()>>>>,
}

impl Watched {
    /// Reports a request that is about to be sent, if there is an inspector. Nothing waits for it.
    pub(crate) fn begin(shared: &Arc<Shared>, incoming: &IncomingRequest, prepared: &PreparedRequest) -> Option<Self> {
        let inspector = shared.inspector.clone()?;
        let ticket = Arc::new(Mutex::new(None));
        let record = RequestRecord {
            format: Some(incoming.format),
            ..prepared.record(shared.session.id(), shared.decider.now_ms())
        };
        let parent = prepared.conversation().and_then(|conversation| conversation.beginning().parent.clone());
        let (format, came, sent, noted) =
            (incoming.format, incoming.body.clone(), prepared.body().cloned(), ticket.clone());
        let hiding = shared.clone();
        let noting = tokio::task::spawn_blocking(move || {
            let conversation = record.conversation.clone().unwrap_or_else(|| ASIDE.to_owned());
            // A body that is not UTF-8 is not shown.
            let Ok(came) = std::str::from_utf8(&came) else { return };
            let sent = sent.as_deref().and_then(|sent| std::str::from_utf8(sent).ok());
            let came = hiding.access.without_secrets(came);
            let sent = sent.map(|sent| hiding.access.without_secrets(sent));
            let (came, sent, parent) = (&*came, sent.as_deref(), parent.as_deref());
            let seen = Seen { conversation: &conversation, parent, format, came, sent, record };
            *noted.lock().unwrap_or_else(PoisonError::into_inner) = inspector.note_sent(seen);
        });
        Some(Self { ticket, noting: Arc::new(Mutex::new(Some(noting))) })
    }

    /// Reports the outcome of the request, after the request itself has been reported.
    pub(crate) fn end(&self, shared: &Shared, record: &RequestRecord) {
        let noting = self.noting.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((noting, runtime)) = noting.zip(tokio::runtime::Handle::try_current().ok()) {
            // If that task panicked, there is nothing to complete.
            let _ = runtime.block_on(noting);
        }
        let ticket = self.ticket.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some((ticket, inspector)) = ticket.zip(shared.inspector.as_ref()) {
            inspector.note_over(&ticket, record);
        }
    }
}
