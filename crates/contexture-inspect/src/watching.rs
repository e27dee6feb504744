//! Hears of the requests of a gateway.

use std::path::Path;
use std::sync::PoisonError;

use contexture::client::response_items;
use contexture::store::Place;
use contexture_gateway::account::record::RequestRecord;
use contexture_gateway::watch::{StartedGateway, WatchedAnswer, WatchedRequest};
use contexture_gateway::{StartError, StoreError, Watcher, open_store};

use super::archive::{ASIDE, Archive, ArchivedRequest, open_or_begin};
use super::server::{InspectServer, Inspector};
use super::view::About;

/// The file name of the archive, which is in the directory of the store.
pub const ARCHIVE_NAME: &str = "inspector.db";

/// Where the inspector of a gateway listens: on this machine only, wherever the gateway does.
const ADDRESS: &str = "127.0.0.1:0";

/// Starts an inspector for a gateway with this store. It is a watcher of the gateway, and serves until it is dropped.
///
/// # Errors
/// The archive cannot be opened, or there is no port to listen on.
pub async fn inspector_of_gateway(store: Option<&Path>) -> Result<InspectServer, StartError> {
    let (archive, note) = match store.map(Place::new) {
        Some(Place::File(store)) => {
            let archive = store.with_file_name(ARCHIVE_NAME);
            // Makes the directory; and beside a file that is no store, nothing is written.
            match open_store(&store) {
                Err(error @ StoreError::Foreign(_)) => return Err(error.into()),
                // The gateway itself puts a damaged store aside, or goes on without one.
                Ok(_) | Err(_) => open_or_begin(&archive)?,
            }
        }
        // Texts of requests stay on this machine.
        Some(Place::Postgres(_)) | None => (Archive::temporary()?, None),
    };
    let about = About {
        version: env!("CARGO_PKG_VERSION"),
        name: "gateway".to_owned(),
        kind: "gateway",
        is_live: true,
        can_act: true,
        can_forget: true,
        note: note.map(Into::into),
    };
    let server = InspectServer::start(ADDRESS, archive, about).await?;
    Ok(match store.map(Place::new) {
        Some(Place::File(store)) => server.beside(&store),
        Some(Place::Postgres(_)) | None => server,
    })
}

impl Watcher for Inspector {
    fn secret(&self) -> Option<&str> {
        Some(self.token())
    }

    fn started(&self, gateway: &StartedGateway) {
        self.name(format!("gateway at {}", gateway.address));
        self.control(gateway.controls.clone());
    }

    fn sending(&self, request: &WatchedRequest<'_>) {
        // A body that is not UTF-8 is not shown.
        let Some(came) = request.came() else { return };
        let (record, sent) = (request.record.clone(), request.sent());
        let conversation = record.conversation.clone().unwrap_or_else(|| ASIDE.to_owned());
        let archived = ArchivedRequest {
            conversation: &conversation,
            parent: request.parent,
            format: request.format,
            came: &came,
            sent: sent.as_deref(),
            record,
        };
        if let Some(ticket) = self.note_sent(archived) {
            self.tickets.lock().unwrap_or_else(PoisonError::into_inner).insert(request.number, ticket);
        }
    }

    fn wants_answers(&self) -> bool {
        true
    }

    fn answered(&self, number: u64, answer: &WatchedAnswer<'_>) {
        let ticket = self.tickets.lock().unwrap_or_else(PoisonError::into_inner).get(&number).cloned();
        let (Some(ticket), Some(body)) = (ticket, answer.body()) else { return };
        // What cannot be read is known once the agent sends it back.
        if let Ok(items) = response_items(answer.format, answer.is_stream, body.as_bytes()) {
            // The same holds for what cannot be written.
            let _ = self.archive().note_arrived(&ticket, &items);
        }
    }

    fn finished(&self, number: u64, record: &RequestRecord) {
        let ticket = self.tickets.lock().unwrap_or_else(PoisonError::into_inner).remove(&number);
        if let Some(ticket) = ticket {
            self.note_over(&ticket, record);
        }
    }
}
