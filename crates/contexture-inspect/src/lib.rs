//! The inspector of Contexture: records what the model sees in each request, compares it, and serves it to a web page.
//!
//! Recordings are played into it by [`playing`]. An [`Archive`] stores the windows of requests as lists of blocks, each text once. `window` determines the state of
//! each block, `timeline` what is known of files, and [`Inspector`] serves everything as JSON and as a page. It hears of
//! the requests of a gateway as its `Watcher`; a gateway knows nothing of it.

pub mod block;
mod text;
pub mod view;
mod made;
mod verdict;
mod window;
mod timeline;
mod archive;
mod bill;
mod exported;
mod export;
mod pass;
mod answer;
mod routes;
mod own_file;
mod page;
mod address_file;
mod server;
mod watching;
mod respond;
mod controls;
pub mod library;
pub mod playing;

pub use address_file::running_inspector;
pub use archive::{
    ASIDE, AnnouncedRecording, Archive, ArchivedRequest, Ticket, check_archive_file, copy_archive_file, is_archive,
};
pub use own_file::OwnFile;
pub use server::{InspectServer, Inspector};
pub use watching::{ARCHIVE_NAME, inspector_of_gateway};
