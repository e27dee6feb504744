//! `contexture inspect`: what models see, on a page in the browser.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use contexture::store::SqliteStore;
use contexture_server::inspect::view::About;
use contexture_server::inspect::{Archive, InspectServer, Inspector, Played, library};
use contexture_server::{ARCHIVE_NAME, is_store, open_store};
use tokio::task::JoinHandle;

use super::place::store_path;
use super::serve::cannot_start;
use crate::failure::Failure;
use crate::source::{self, Source};

/// How every SQLite file begins.
const SQLITE: &[u8] = b"SQLite format 3\0";

/// Show what models see, request by request, on a page in the browser
///
/// Recordings are shown as if they had passed through the gateway, against a provider's cache that is simulated. A store
/// of the gateway or of the library is shown as it is; without a name, the gateway's own. Ctrl-C ends it.
#[derive(Args)]
pub struct Inspect {
    /// Recordings, directories to walk, - for standard input, or a store
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The most tokens of a request, for recordings; otherwise what the model takes
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(4_000..))]
    budget: Option<u64>,
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: String,
}

/// What is looked at.
enum Subject {
    /// Recordings.
    Recordings(Vec<Source>),
    /// What the gateway kept.
    Gateway(PathBuf),
    /// What a library kept.
    Library(PathBuf),
}

/// Carries out the command.
///
/// # Errors
/// There is nothing to show, or the address cannot be listened at.
pub fn run(command: &Inspect) -> Result<(), Failure> {
    let subject = Subject::of(&command.files)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(inspect(command, subject))?;
    runtime.shutdown_background();
    Ok(())
}

async fn inspect(command: &Inspect, subject: Subject) -> Result<(), Failure> {
    let about = About {
        version: env!("CARGO_PKG_VERSION"),
        name: name_of(&command.files),
        kind: subject.kind(),
        is_live: matches!(subject, Subject::Recordings(_)),
        can_act: false,
        can_forget: matches!(subject, Subject::Gateway(_)),
        note: matches!(subject, Subject::Library(_)).then_some(library::NOT_KEPT),
    };
    let archive = match &subject {
        Subject::Gateway(path) => kept(path)?,
        Subject::Recordings(_) | Subject::Library(_) => Archive::temporary().map_err(unreadable)?,
    };
    let server = InspectServer::start(&command.listen, archive, about).await.map_err(cannot_start)?;
    let inspector = server.inspector().clone();
    let told = format!("the inspector is at {}\n", inspector.url());
    io::stdout().write_all(told.as_bytes())?;
    io::stdout().flush()?;
    let mut playing = None;
    match subject {
        Subject::Gateway(path) => {
            inspector.on_forget(move |id| {
                // What cannot be opened holds nothing of it.
                let _ = open_store(&path).and_then(|store| store.forget(Some(id)));
            });
        }
        Subject::Library(path) => {
            let store = SqliteStore::open(&path).map_err(|error| Failure::work(error.to_string()))?;
            library::read(&store, &inspector).await.map_err(|error| Failure::work(error.to_string()))?;
        }
        Subject::Recordings(sources) => {
            let played = Played::new(command.budget);
            playing = Some(tokio::task::spawn_blocking(move || play(&sources, &played, &inspector)));
        }
    }
    tokio::select! {
        ended = server.wait() => Ok(ended?),
        _ = tokio::signal::ctrl_c() => Ok(()),
        failure = nothing_played(playing) => Err(failure),
    }
}

/// Returns only if there were recordings to play and none could be read.
async fn nothing_played(playing: Option<JoinHandle<usize>>) -> Failure {
    if let Some(playing) = playing
        && let Ok(0) = playing.await
    {
        return source::none_read();
    }
    std::future::pending().await
}

/// Plays recordings one after the other; the page fills meanwhile. Returns how many there were.
fn play(sources: &[Source], played: &Played, inspector: &Arc<Inspector>) -> usize {
    let mut count = 0;
    for (number, source) in sources.iter().enumerate() {
        let transcript = match source.transcript() {
            Ok((transcript, report)) => {
                source.tell(&report);
                transcript
            }
            Err(unread) => {
                source.tell_unread(&unread);
                continue;
            }
        };
        let (id, name) = (format!("r{}", number + 1), source.short.display().to_string());
        let time_ms = transcript.records.iter().find_map(|record| record.time_ms()).unwrap_or(0);
        // What cannot be announced is listed when its first request is there.
        let _ = inspector.archive().announce(&id, &name, time_ms);
        played.play(inspector, &id, &transcript.records);
        let _ = inspector.archive().is_read(&id);
        count += 1;
    }
    inspector.is_complete();
    count
}

impl Subject {
    fn of(files: &[PathBuf]) -> Result<Self, Failure> {
        match files {
            [] => Ok(Subject::Gateway(store_path()?)),
            [file] if is_sqlite(file) => match is_store(file) {
                true => Ok(Subject::Gateway(file.clone())),
                false => Ok(Subject::Library(file.clone())),
            },
            files => Ok(Subject::Recordings(source::find(files)?)),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Subject::Recordings(_) => "recordings",
            Subject::Gateway(_) | Subject::Library(_) => "store",
        }
    }
}

fn is_sqlite(path: &Path) -> bool {
    let mut start = [0; SQLITE.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == SQLITE
}

/// The archive beside a store; if there is none, one with what the receipts say.
fn kept(store: &Path) -> Result<Archive, Failure> {
    let path = store.with_file_name(ARCHIVE_NAME);
    if path.exists() {
        return Archive::open(&path).map_err(unreadable);
    }
    if !store.exists() {
        return Err(Failure::work("nothing passed through a gateway yet")
            .hint("start one with `contexture run --inspect AGENT`, or name a recording"));
    }
    let archive = Archive::temporary().map_err(unreadable)?;
    let records = open_store(store).and_then(|store| store.requests(None)).map_err(unreadable)?;
    for record in &records {
        archive.note_record(record).map_err(unreadable)?;
    }
    Ok(archive)
}

fn unreadable(error: contexture_server::StoreError) -> Failure {
    Failure::work(error.to_string())
}

fn name_of(files: &[PathBuf]) -> String {
    match files {
        [] => "the gateway’s store".to_owned(),
        [file] => file.display().to_string(),
        files => format!("{} files", files.len()),
    }
}
