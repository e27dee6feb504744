//! Finds the recorded sessions of the agents on this machine, and those in named files.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use contexture_agents::SessionFile;
use contexture_text::pattern::name_matches;
use serde_json::Value;

use super::agents::{directory_of, format_of, recorded};
use super::rows::{self, SessionRow};
use super::session::{AgentSession, START_BYTES, SessionContent};
use crate::source::{RecordingSource, TranscriptProblem};

/// All sessions of all agents, those of one agent together, oldest first.
pub(in crate::memory) fn find_sessions() -> Vec<AgentSession> {
    let mut sessions = Vec::new();
    for (agent, recordings) in recorded() {
        let mut found: Vec<AgentSession> = Vec::new();
        let mut known = HashSet::new();
        for home in recordings.homes().iter().filter_map(directory_of) {
            for files in recordings.files() {
                for path in matching(&home, files.pattern()) {
                    let of_file = session_of(recordings.id(), agent.name(), &path, *files.has())
                        .map_or(Vec::new(), |session| sessions_in(session, *files.has(), &home));
                    found.extend(of_file.into_iter().filter(|session| known.insert(session.thread())));
                }
            }
        }
        found.sort_by(|one, other| (one.changed_ms, &one.session).cmp(&(other.changed_ms, &other.session)));
        sessions.extend(found);
    }
    sessions
}

/// The sessions in named files and directories; what is no recording is left out and counted.
pub(in crate::memory) fn named_sessions(
    sources: &[RecordingSource],
) -> (Vec<AgentSession>, Vec<(RecordingSource, TranscriptProblem)>) {
    let (mut sessions, mut others) = (Vec::new(), Vec::new());
    for source in sources {
        match source.start(START_BYTES) {
            Some(Ok((_, Some(report), _))) => {
                let of_format = recorded().find(|(_, recordings)| format_of(recordings) == report.format);
                let (id, name) = of_format
                    .map_or(("recording", "a recording"), |(agent, recordings)| (recordings.id(), agent.name()));
                sessions.extend(session_of(id, name, &source.path, SessionFile::Session));
            }
            Some(Err(unread)) => others.push((source.clone(), unread)),
            _ => others.push((source.clone(), TranscriptProblem::Unknown)),
        }
    }
    (sessions, others)
}

/// The sessions that a file has, if it has one or is a database.
fn sessions_in(session: AgentSession, keeps: SessionFile, home: &Path) -> Vec<AgentSession> {
    match keeps {
        SessionFile::Session | SessionFile::InDirectory => vec![session],
        SessionFile::GeminiSession => {
            let directory = session.path.ancestors().nth(2).and_then(|project| {
                let root = fs::read_to_string(project.join(".project_root")).ok()?;
                Some(root.trim().to_owned()).filter(|root| !root.is_empty())
            });
            vec![AgentSession { directory, ..session }]
        }
        SessionFile::OpencodeSession => of_opencode_file(session, &home.join("storage")).into_iter().collect(),
        // A database that cannot be read, or is of another version, has no sessions for us.
        SessionFile::OpencodeDatabase => {
            of_rows(&session, rows::opencode_sessions(&session.path), &SessionContent::OpenCodeRows)
        }
        SessionFile::GooseDatabase => {
            of_rows(&session, rows::goose_sessions(&session.path), &SessionContent::GooseRows)
        }
    }
}

/// The session of a file.
fn session_of(agent: &'static str, agent_name: &'static str, path: &Path, keeps: SessionFile) -> Option<AgentSession> {
    let metadata = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    let named = if keeps == SessionFile::InDirectory { path.parent()? } else { path };
    let changed = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok()).unwrap_or_default();
    Some(AgentSession {
        agent,
        agent_name,
        session: named.file_stem()?.to_string_lossy().into_owned(),
        path: path.to_owned(),
        directory: None,
        stamp: format!("{}:{}", metadata.len(), changed.as_nanos()),
        bytes: metadata.len(),
        changed_ms: u64::try_from(changed.as_millis()).unwrap_or(u64::MAX),
        content: SessionContent::File,
    })
}

/// Completes what is known of a session from its file; `None` if it is a sub-agent's, or no session.
fn of_opencode_file(session: AgentSession, storage: &Path) -> Option<AgentSession> {
    let known: Value = serde_json::from_slice(&fs::read(&session.path).ok()?).ok()?;
    if known["parentID"].is_string() {
        return None;
    }
    let changed_ms = known["time"]["updated"].as_u64().unwrap_or(session.changed_ms);
    Some(AgentSession {
        session: known["id"].as_str()?.to_owned(),
        directory: known["directory"].as_str().map(str::to_owned),
        stamp: format!("{}:{changed_ms}", session.stamp),
        changed_ms,
        content: SessionContent::OpenCodeFiles(storage.to_owned()),
        ..session
    })
}

/// The sessions in a database. One that cannot be read, or is of another version, has none for us.
fn of_rows(
    database: &AgentSession,
    rows: anyhow::Result<Vec<SessionRow>>,
    content: &SessionContent,
) -> Vec<AgentSession> {
    let session = |row: SessionRow| AgentSession {
        session: row.session,
        directory: row.directory,
        stamp: format!("{}:{}", row.bytes, row.changed),
        bytes: row.bytes,
        changed_ms: row.changed_ms,
        content: content.clone(),
        ..database.clone()
    };
    rows.unwrap_or_default().into_iter().map(session).collect()
}

/// The files beneath a directory that match a pattern, in the order of their names. Links to directories are not followed.
fn matching(directory: &Path, pattern: &str) -> Vec<PathBuf> {
    let (name, rest) = match pattern.split_once('/') {
        Some((name, rest)) => (name, Some(rest)),
        None => (pattern, None),
    };
    let entries = |directory: &Path| -> io::Result<Vec<fs::DirEntry>> { fs::read_dir(directory)?.collect() };
    let mut found: Vec<PathBuf> = entries(directory)
        .unwrap_or_default()
        .into_iter()
        .filter(|entry| entry.file_name().to_str().is_some_and(|own| name_matches(name, own)))
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir() == rest.is_some()))
        .map(|entry| entry.path())
        .collect();
    found.sort();
    match rest {
        Some(rest) => found.iter().flat_map(|directory| matching(directory, rest)).collect(),
        None => found,
    }
}
