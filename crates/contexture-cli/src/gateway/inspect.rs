//! `contexture inspect`: what models see, on a page in the browser.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use contexture::item::Role;
use contexture::store::SqliteStore;
use contexture::transcript::Format;
use contexture_gateway::simulate::played::Played;
use contexture_gateway::{is_store, open_store, open_store_to_read};
use contexture_inspect::view::About;
use contexture_inspect::{ARCHIVE_NAME, AnnouncedRecording, Archive, InspectServer, Inspector, library, playing};
use contexture_text::spoken::title_of;

use super::place::store_path;
use super::start::{cannot_start, warn_of_others};
use crate::failure::Failure;
use crate::replay::example;
use crate::source::{self, RecordingSource};

/// Bytes at the start of a recording that are read to list it.
const START_BYTES: u64 = 96 << 10;

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
    /// The most tokens of a request, for recordings, or `window` for all that the model takes [default: DEFAULT]
    #[arg(long, value_name = "TOKENS", value_parser = super::flags::budget)]
    budget: Option<u64>,
    /// Where to listen
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    listen: String,
}

/// What is looked at.
enum InspectSource {
    /// Recordings.
    Recordings(Vec<RecordingSource>),
    /// The recording that is part of the program: nothing else is there yet.
    Example,
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
    let subject = InspectSource::of(&command.files)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(inspect(command, subject))?;
    runtime.shutdown_background();
    Ok(())
}

async fn inspect(command: &Inspect, subject: InspectSource) -> Result<(), Failure> {
    let about = About {
        version: env!("CARGO_PKG_VERSION"),
        name: subject.name(&command.files),
        kind: subject.kind(),
        is_live: matches!(subject, InspectSource::Recordings(_) | InspectSource::Example),
        can_act: false,
        can_forget: matches!(subject, InspectSource::Gateway(_)),
        note: matches!(subject, InspectSource::Library(_)).then_some(library::NOT_KEPT.into()),
    };
    let archive = match &subject {
        InspectSource::Gateway(path) => open_archive(path)?,
        InspectSource::Recordings(_) | InspectSource::Example | InspectSource::Library(_) => {
            Archive::temporary().map_err(unreadable)?
        }
    };
    let server = InspectServer::start(&command.listen, archive, about).await.map_err(cannot_start)?;
    let inspector = server.inspector().clone();
    warn_of_others(inspector.address());
    if matches!(subject, InspectSource::Example) {
        eprintln!("contexture: nothing passed through a gateway yet, so this is the session of `contexture demo`");
    }
    let told = format!("the inspector is at {}\n", inspector.url());
    io::stdout().write_all(told.as_bytes())?;
    io::stdout().flush()?;
    match subject {
        InspectSource::Gateway(path) => {
            inspector.on_forget(move |id| {
                // What cannot be opened holds nothing of it.
                let _ = open_store(&path).and_then(|store| store.forget(Some(id)));
            });
        }
        InspectSource::Library(path) => {
            let store = SqliteStore::open(&path).map_err(|error| Failure::work(error.to_string()))?;
            library::read(&store, &inspector).await.map_err(|error| Failure::work(error.to_string()))?;
        }
        InspectSource::Example => {
            let budget = command.budget;
            tokio::task::spawn_blocking(move || play_example(budget, &inspector));
        }
        InspectSource::Recordings(sources) => {
            let budget = command.budget;
            tokio::task::spawn_blocking(move || list(sources, budget, &inspector));
        }
    }
    tokio::select! {
        ended = server.wait() => Ok(ended?),
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

/// Lists recordings, and reads each when somebody opens it.
fn list(sources: Vec<RecordingSource>, budget: Option<u64>, inspector: &Arc<Inspector>) {
    let mut listed = HashMap::new();
    for (number, source) in sources.into_iter().enumerate() {
        let id = format!("r{}", number + 1);
        if let Some(start) = RecordingStart::read(&source) {
            let name = source.short.display().to_string();
            let recording = AnnouncedRecording { id: &id, name: &name, ..start.announced() };
            // What cannot be listed is not shown.
            if inspector.archive().announce(&recording).is_ok() {
                listed.insert(id, source);
            }
        }
    }
    let count = listed.len();
    let only = (count == 1).then(|| listed.keys().next().cloned()).flatten();
    let (open, opened) = std::sync::mpsc::channel::<String>();
    let reader = inspector.clone();
    // Ends with the process: the inspector holds the other end.
    std::thread::spawn(move || {
        // What somebody opens comes first; the others are read meanwhile.
        let next = || opened.try_recv().ok().or_else(|| reader.next_unread()).or_else(|| opened.recv().ok());
        while let Some(id) = next() {
            if let Some(source) = listed.get(&id) {
                play(source, &id, budget, &reader);
            }
        }
    });
    inspector.on_open(move |id| {
        // The reader is there as long as the process is.
        let _ = open.send(id.to_owned());
    });
    // One that was named is meant to be seen.
    if let Some(only) = only {
        inspector.open_recording(&only);
    }
    inspector.is_complete();
}

/// Plays the recording that is part of the program.
fn play_example(budget: Option<u64>, inspector: &Inspector) {
    let id = "r1";
    let (transcript, _) = example::transcript();
    let recording = AnnouncedRecording { id, name: example::NAME, agent: example::AGENT, ..Default::default() };
    let played = example::played(Played::new(budget));
    let shown = inspector.archive().announce(&recording);
    if let Err(error) = shown.and_then(|()| playing::play(inspector, &played, id, &transcript.records)) {
        source::say(&format!("{}: not read to its end: {error}", example::NAME));
    }
    inspector.is_read(id);
    inspector.is_complete();
}

/// Reads a recording, and plays it.
fn play(source: &RecordingSource, id: &str, budget: Option<u64>, inspector: &Inspector) {
    match source.transcript() {
        Ok((transcript, report)) => {
            source.tell(&report);
            let played = Played::new(budget).with_model(report.model).with_agent(&report.format.to_string());
            if let Err(error) = playing::play(inspector, &played, id, &transcript.records) {
                source::say(&format!("{source}: not read to its end: {error}"));
            }
        }
        Err(unread) => {
            source.tell_unread(&unread);
            // What is not listed any more cannot be opened either.
            let _ = inspector.archive().unlist(id);
        }
    }
    inspector.is_read(id);
}

/// What the start of a recording says of it.
#[derive(Default)]
struct RecordingStart {
    title: String,
    agent: String,
    project: String,
    time_ms: Option<u64>,
    modified_ms: u64,
}

impl RecordingStart {
    /// Reads the start of a file; `None` if it is no recording.
    fn read(source: &RecordingSource) -> Option<Self> {
        let modified = std::fs::metadata(&source.path).and_then(|metadata| metadata.modified()).ok();
        let modified_ms = modified.and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        let mut start = Self { modified_ms: modified_ms.map_or(0, |time| time.as_millis() as u64), ..Self::default() };
        let Some(read) = source.start(START_BYTES) else { return Some(start) };
        let (records, report, is_whole) = read.inspect_err(|unread| source.tell_unread(unread)).ok()?;
        if records.is_empty() && is_whole {
            return None;
        }
        let said = records.iter().filter(|record| record.role() == Some(Role::User) && !record.is_response());
        start.title = said.map(|record| record.text()).find_map(|text| title_of(&text)).unwrap_or_default();
        let agent = report.map(|report| report.format).filter(|format| *format != Format::Plain);
        start.agent = agent.map(|format| format.to_string()).unwrap_or_default();
        start.time_ms = records.iter().find_map(|record| record.time_ms());
        let directory =
            records.iter().flat_map(|record| record.items()).find_map(|item| item.meta()?.directory.clone());
        let project = directory.as_deref().and_then(|path| path.rsplit(['/', '\\']).find(|part| !part.is_empty()));
        // Collections name their recordings so.
        let named =
            source.short.file_name().and_then(|name| name.to_str()?.split_once("__")).map(|(project, _)| project);
        start.project = project.or(named).unwrap_or_default().to_owned();
        Some(start)
    }

    fn announced(&self) -> AnnouncedRecording<'_> {
        AnnouncedRecording {
            id: "",
            name: "",
            title: &self.title,
            agent: &self.agent,
            project: &self.project,
            time_ms: self.time_ms,
            modified_ms: self.modified_ms,
        }
    }
}

impl InspectSource {
    fn of(files: &[PathBuf]) -> Result<Self, Failure> {
        match files {
            [] => Ok(match store_path() {
                Ok(store) if store.exists() || store.with_file_name(ARCHIVE_NAME).exists() => {
                    InspectSource::Gateway(store)
                }
                // Without a home there is no place for a store either.
                Ok(_) | Err(_) => InspectSource::Example,
            }),
            [file] if is_sqlite(file) => match is_store(file) {
                true => Ok(InspectSource::Gateway(file.clone())),
                false => Ok(InspectSource::Library(file.clone())),
            },
            files => Ok(InspectSource::Recordings(recordings(files)?)),
        }
    }

    fn name(&self, files: &[PathBuf]) -> String {
        match (self, files) {
            (InspectSource::Example, _) => example::NAME.to_owned(),
            (_, []) => "the gateway’s store".to_owned(),
            (_, [file]) => file.display().to_string(),
            (_, files) => format!("{} files", files.len()),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            InspectSource::Recordings(_) | InspectSource::Example => "recordings",
            InspectSource::Gateway(_) | InspectSource::Library(_) => "store",
        }
    }
}

/// The recordings that were named.
///
/// # Errors
/// None of the files is one: who is told an address looks there for what went wrong.
fn recordings(files: &[PathBuf]) -> Result<Vec<RecordingSource>, Failure> {
    let sources = source::find(files)?;
    if sources.iter().any(|source| source.start(START_BYTES).is_none_or(|start| start.is_ok())) {
        return Ok(sources);
    }
    for source in &sources {
        if let Some(Err(unread)) = source.start(START_BYTES) {
            source.tell_unread(&unread);
        }
    }
    Err(source::none_read())
}

fn is_sqlite(path: &Path) -> bool {
    let mut start = [0; SQLITE.len()];
    File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == SQLITE
}

/// The archive beside a store; if there is none, one with what the receipts say.
fn open_archive(store: &Path) -> Result<Archive, Failure> {
    let path = store.with_file_name(ARCHIVE_NAME);
    if path.exists() {
        return Archive::open(&path).map_err(unreadable);
    }
    let archive = Archive::temporary().map_err(unreadable)?;
    let records = open_store_to_read(store).and_then(|store| store.requests(None)).map_err(unreadable)?;
    for record in &records {
        archive.note_record(record).map_err(unreadable)?;
    }
    Ok(archive)
}

fn unreadable(error: contexture_gateway::StoreError) -> Failure {
    Failure::work(error.to_string())
}
