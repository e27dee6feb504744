//! `contexture memory import` without arguments: takes in the sessions that agents have recorded, as far as they are new.

use contexture_text::numbers::counted;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use contexture::personal::MemoryOwner;
use contexture::recall::{Passage, PassageReader, SharedEmbedder};
use contexture::search::SearchError;
use contexture::store::{Batch, Key, SqliteIndex, SqliteStore, StorageAdapter};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::embedder::{configured_embedder, tell_trouble};
use super::own::{NO_PROJECT, OpenedMemory, memory_path, open_memory, project_at};
use super::sessions::{AgentSession, find_sessions, named_sessions, recorded};
use crate::failure::Failure;
use crate::settings::Command;
use crate::source;
use contexture_terminal::harmless::{on_one_line, written_out};
use contexture_terminal::progress::ProgressLine;
use contexture_terminal::screen::Screen;
use contexture_terminal::table::{Align, TextTable};

/// So many passages, or so many bytes of them, are written at once.
const MAX_WAITING: usize = 4_096;
const MAX_WAITING_BYTES: usize = 8 << 20;

/// The last passages of a session that may still change when it goes on: an output that had not come yet.
const UNSETTLED: usize = 16;

/// What is to be imported, and how.
pub(super) struct SessionImport<'a> {
    /// Files and directories; without any, those of all agents.
    pub(super) paths: &'a [PathBuf],
    /// The file of the memory; without one, the user's own.
    pub(super) store: Option<&'a Path>,
    pub(super) dry_run: bool,
    pub(super) json: bool,
}

/// What is kept of a session that was imported.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ImportedSession {
    path: String,
    stamp: String,
    project: String,
    passages: usize,
    /// The first passages, which did not change when the session went on, and their hash.
    settled: usize,
    hash: u64,
}

/// What becomes of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum SessionState {
    New,
    Changed,
    Known,
    Failed,
}

/// A session, with what is known of it.
struct PlannedSession {
    session: AgentSession,
    project: String,
    state: SessionState,
    known: Option<ImportedSession>,
    passages: usize,
    problem: Option<String>,
}

/// Runs the command.
pub(super) fn run(import: &SessionImport<'_>, screen: Screen) -> Result<(), Failure> {
    let path = import.store.map_or_else(memory_path, |path| Ok(path.to_owned()))?;
    let embedder = configured_embedder(Command::Memory)?;
    let sessions = found(import)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    // A dry run makes no file.
    let opened = match import.dry_run && !path.exists() {
        true => None,
        false => Some(open_memory(&path)?),
    };
    let mut planned = planned(sessions, opened.as_ref().map(|opened| &opened.store), &runtime)?;
    let mut vectors = None;
    if let Some(opened) = opened.filter(|_| !import.dry_run) {
        take_in(&mut planned, &opened, &runtime)?;
        vectors = embedder.as_ref().map(|embedder| add_vectors(&path, &opened, embedder, &runtime)).transpose()?;
    }
    let text = match import.json {
        true => format!("{:#}\n", as_json(&planned, &path, import.dry_run, vectors)),
        false => as_text(&planned, &path, import.dry_run, screen, vectors),
    };
    io::stdout().write_all(text.as_bytes())?;
    tell_trouble(embedder.as_ref());
    for planned in planned.iter().filter(|planned| planned.state == SessionState::Failed) {
        let problem = planned.problem.as_deref().unwrap_or_default();
        source::say(&format!("{}: skipped, {problem}", planned.session.path.display()));
    }
    Ok(())
}

/// Makes the vectors that passages of any project have not, as an import that was interrupted, an embedder that failed and
/// another model leave them. Returns how many there are now that were not before.
fn add_vectors(
    path: &Path,
    opened: &OpenedMemory,
    embedder: &SharedEmbedder,
    runtime: &tokio::runtime::Runtime,
) -> Result<usize, Failure> {
    let memory = opened.memory.clone().with_embedder(embedder.clone());
    let mut line = ProgressLine::new();
    let filled = async {
        let scopes = SqliteIndex::new(path).scopes().await?;
        let owners: Vec<MemoryOwner> = scopes.iter().filter_map(|scope| MemoryOwner::of_scope(scope)).collect();
        memory.fill_vectors(&owners, |done| line.show(&format!("making vectors of passages: {done}"))).await
    };
    runtime.block_on(filled).map_err(|error: SearchError| Failure::of(&error))
}

/// The sessions to look at.
fn found(import: &SessionImport<'_>) -> Result<Vec<AgentSession>, Failure> {
    if import.paths.is_empty() {
        let sessions = find_sessions();
        if sessions.is_empty() {
            let names: Vec<&str> = recorded().map(|(agent, _)| agent.name()).collect();
            let looked = format!("those of {} were looked for where they keep them", names.join(", "));
            return Err(Failure::work("no recorded sessions were found")
                .hint(format!("{looked}; name files or directories to import others")));
        }
        return Ok(sessions);
    }
    let (sessions, others) = named_sessions(&source::find(import.paths)?);
    others.iter().for_each(|(source, unread)| source.tell_unread(unread));
    if sessions.is_empty() { Err(source::none_read()) } else { Ok(sessions) }
}

/// Finds out of each session whether it is new, and where it was.
fn planned(
    sessions: Vec<AgentSession>,
    store: Option<&Arc<SqliteStore>>,
    runtime: &tokio::runtime::Runtime,
) -> Result<Vec<PlannedSession>, Failure> {
    let keys: Vec<String> = sessions.iter().map(key_of).collect();
    let known = match store {
        Some(store) => runtime.block_on(store.get_many(&keys)).map_err(|error| Failure::of(&error))?,
        None => vec![None; keys.len()],
    };
    // Most sessions of an agent were in one of few directories.
    let mut projects: BTreeMap<String, String> = BTreeMap::new();
    let mut line = ProgressLine::new();
    let count = sessions.len();
    let mut planned = Vec::with_capacity(count);
    for (at, (session, record)) in sessions.into_iter().zip(known).enumerate() {
        line.show(&format!("looking at sessions {at}/{count}"));
        let known: Option<ImportedSession> = record.and_then(|record| serde_json::from_slice(&record.value).ok());
        let (state, project) = match &known {
            Some(known) if known.stamp == session.stamp => (SessionState::Known, known.project.clone()),
            // What went on belongs where its beginning is.
            Some(known) => (SessionState::Changed, known.project.clone()),
            None => {
                let directory = session.found_directory();
                let project = directory.map(|directory| {
                    projects.entry(directory).or_insert_with_key(|directory| project_at(Path::new(directory))).clone()
                });
                (SessionState::New, project.unwrap_or_else(|| NO_PROJECT.to_owned()))
            }
        };
        let passages = known.as_ref().map_or(0, |known| known.passages);
        planned.push(PlannedSession { session, project, state, known, passages, problem: None });
    }
    Ok(planned)
}

fn key_of(session: &AgentSession) -> String {
    Key::new("imports").then(session.agent).then(&session.session).into_string()
}

/// What is written at once: passages of one project, and what is then known of their sessions.
#[derive(Default)]
struct PendingImport {
    passages: Vec<Passage>,
    bytes: usize,
    done: Vec<(String, ImportedSession)>,
}

/// Reads the new sessions, and writes them while the next are read.
fn take_in(
    planned: &mut [PlannedSession],
    opened: &OpenedMemory,
    runtime: &tokio::runtime::Runtime,
) -> Result<(), Failure> {
    let total: u64 = planned.iter().filter(|planned| planned.is_to_import()).map(|planned| planned.session.bytes).sum();
    let (sender, receiver) = std::sync::mpsc::sync_channel::<(MemoryOwner, PendingImport)>(1);
    let mut line = ProgressLine::new();
    let mut done = 0;
    std::thread::scope(|threads| {
        let writer = threads.spawn(|| -> Result<(), Failure> {
            for (owner, waiting) in receiver {
                runtime.block_on(write(opened, &owner, waiting))?;
            }
            Ok(())
        });
        let mut waiting: BTreeMap<String, PendingImport> = BTreeMap::new();
        // The writer has ended only if it failed, and then says why.
        let send = |project: &str, waiting: PendingImport| {
            sender.send((MemoryOwner::Project(project.to_owned()), waiting)).is_ok()
        };
        'sessions: for planned in planned.iter_mut().filter(|planned| planned.is_to_import()) {
            line.show(&format!("importing {} of {}", size(done), size(total)));
            let (project, mut is_writing) = (planned.project.clone(), true);
            let of_project = waiting.entry(project.clone()).or_default();
            read(planned, &mut |passage| {
                of_project.bytes += passage.text.len();
                of_project.passages.push(passage);
                if of_project.passages.len() >= MAX_WAITING || of_project.bytes >= MAX_WAITING_BYTES {
                    is_writing &= send(&project, std::mem::take(of_project));
                }
            });
            if let Some(known) = planned.known.clone().filter(|_| planned.state != SessionState::Failed) {
                of_project.done.push((key_of(&planned.session), known));
            }
            done += planned.session.bytes;
            if !is_writing {
                break 'sessions;
            }
        }
        waiting.iter_mut().all(|(project, waiting)| send(project, std::mem::take(waiting)));
        drop(sender);
        writer.join().unwrap_or_else(|_| Err(Failure::work("writing the memory went wrong")))
    })
}

impl PlannedSession {
    fn is_to_import(&self) -> bool {
        matches!(self.state, SessionState::New | SessionState::Changed)
    }
}

/// Passes on the passages of a session that are not in the memory yet, and notes what is known of it then.
fn read(planned: &mut PlannedSession, sink: &mut impl FnMut(Passage)) {
    let session = &planned.session;
    let mut reader = PassageReader::new(session.thread(), Some(session.source()), session.changed_ms);
    let settled = planned.known.as_ref().map(|known| (known.settled, known.hash));
    // Passages that are held back until it is known whether they are those of the last time.
    let mut held: Vec<Passage> = Vec::new();
    // The hash after each of the last passages.
    let (mut count, mut hash) = (0_usize, FNV_START);
    let mut hashes = std::collections::VecDeque::from([FNV_START]);
    let read = session.read(&mut |record| {
        for item in record.items() {
            let Some(passage) = reader.next(item) else { continue };
            count += 1;
            hash = hashed(hash, &passage);
            hashes.push_back(hash);
            if hashes.len() > UNSETTLED + 1 {
                hashes.pop_front();
            }
            match settled {
                Some((settled, _)) if count < settled => held.push(passage),
                Some((settled, expected)) if count == settled => {
                    held.push(passage);
                    let was_so = hash == expected;
                    held.drain(..).filter(|_| !was_so).for_each(&mut *sink);
                }
                _ => sink(passage),
            }
        }
    });
    held.into_iter().for_each(sink);
    match read {
        Ok(_) => {
            let settled = count.saturating_sub(UNSETTLED);
            let hash = hashes.front().copied().unwrap_or(FNV_START);
            planned.passages = count;
            planned.known = Some(ImportedSession {
                path: session.path.display().to_string(),
                stamp: session.stamp.clone(),
                project: planned.project.clone(),
                passages: count,
                settled,
                hash,
            });
        }
        Err(unread) => {
            planned.state = SessionState::Failed;
            planned.problem = Some(format!("{:#}", unread.into_error()));
        }
    }
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a, which stays the same for ever, since it is stored.
fn hashed(hash: u64, passage: &Passage) -> u64 {
    let position = passage.position.to_le_bytes();
    let bytes = position.iter().chain(passage.text.as_bytes());
    bytes.fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// Writes passages, and then that their sessions were imported: if it is interrupted between, they are written again.
async fn write(opened: &OpenedMemory, owner: &MemoryOwner, waiting: PendingImport) -> Result<(), Failure> {
    let added = opened.memory.past(owner).add(waiting.passages).await;
    added.map_err(|error| Failure::of(&error))?;
    if waiting.done.is_empty() {
        return Ok(());
    }
    let mut batch = Batch::new();
    for (key, known) in waiting.done {
        batch = batch.set(key, serde_json::to_vec(&known)?);
    }
    opened.store.apply(batch).await.map(drop).map_err(|error| Failure::of(&error))
}

fn size(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{} kB", bytes.div_ceil(1_000)),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

fn as_json(planned: &[PlannedSession], path: &Path, dry_run: bool, vectors: Option<usize>) -> serde_json::Value {
    let sessions: Vec<serde_json::Value> = planned
        .iter()
        .map(|planned| {
            let session = &planned.session;
            json!({
                "agent": session.agent,
                "session": session.session,
                "project": planned.project,
                "path": session.path,
                "bytes": session.bytes,
                "state": planned.state,
                "passages": planned.passages,
                "problem": planned.problem,
            })
        })
        .collect();
    let mut all = json!({ "store": path, "dry_run": dry_run, "sessions": sessions });
    if let Some(vectors) = vectors {
        all["vectors"] = vectors.into();
    }
    all
}

fn as_text(planned: &[PlannedSession], path: &Path, dry_run: bool, screen: Screen, vectors: Option<usize>) -> String {
    /// Sessions, new ones, bytes.
    type Sums = (usize, usize, u64);
    let mut rows: BTreeMap<(&str, &str), Sums> = BTreeMap::new();
    for planned in planned {
        let row = rows.entry((planned.session.agent_name, &planned.project)).or_default();
        let is_new = usize::from(planned.is_to_import());
        *row = (row.0 + 1, row.1 + is_new, row.2 + planned.session.bytes);
    }
    let mut table = TextTable::new([
        ("agent", Align::Left),
        ("project", Align::Name),
        ("sessions", Align::Right),
        ("new", Align::Right),
        ("size", Align::Right),
    ]);
    for ((agent, project), (sessions, new, bytes)) in rows {
        table.row([agent.to_owned(), on_one_line(project), sessions.to_string(), new.to_string(), size(bytes)]);
    }
    let new: Vec<&PlannedSession> = planned.iter().filter(|planned| planned.is_to_import()).collect();
    let passages: usize = new.iter().map(|planned| planned.passages).sum();
    let told = match (dry_run, new.len()) {
        (_, 0) => "nothing is new".to_owned(),
        (true, count) => format!("{} would be imported", counted(count, "session")),
        (false, count) => format!(
            "imported {} with {} into {}",
            counted(count, "session"),
            counted(passages, "passage"),
            path.display()
        ),
    };
    let next = match dry_run {
        true => screen.next("`contexture memory import` imports them"),
        false => screen.next("`contexture memory search \"how did we fix the flaky test\"` searches this project"),
    };
    let vectors = vectors.filter(|count| *count > 0);
    let vectors =
        vectors.map_or(String::new(), |count| format!("looked at {} for vectors\n", counted(count, "passage")));
    format!("{}\n{}\n{vectors}{next}", table.fit(screen), written_out(&told))
}
