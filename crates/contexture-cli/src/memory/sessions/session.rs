//! One recorded session, and how it is read.

use std::path::PathBuf;

use contexture::transcript::{ReadError, Record, Report, read};

use super::{opencode, rows};
use crate::source::{RecordingSource, TranscriptProblem};

/// How much of a session is read to find out where it was.
pub(super) const START_BYTES: u64 = 1 << 20;

/// One recorded session.
#[derive(Clone, Debug)]
pub(in crate::memory) struct AgentSession {
    /// The agent's id.
    pub(in crate::memory) agent: &'static str,
    /// The agent's name for people.
    pub(in crate::memory) agent_name: &'static str,
    /// The session's own name.
    pub(in crate::memory) session: String,
    /// The file that has it.
    pub(in crate::memory) path: PathBuf,
    /// Where the agent worked, if that is known without reading the session.
    pub(in crate::memory) directory: Option<String>,
    /// Changes whenever the session does.
    pub(in crate::memory) stamp: String,
    /// Its size, as far as that is known.
    pub(in crate::memory) bytes: u64,
    /// When it changed last, in milliseconds since the Unix epoch.
    pub(in crate::memory) changed_ms: u64,
    pub(super) content: SessionContent,
}

/// How the messages of a session are read.
#[derive(Clone, Debug)]
pub(super) enum SessionContent {
    /// From its file.
    File,
    /// From files of OpenCode beneath this directory.
    OpenCodeFiles(PathBuf),
    /// From rows of a database of OpenCode.
    OpenCodeRows,
    /// From rows of a database of goose.
    GooseRows,
}

impl AgentSession {
    /// The thread that it becomes.
    pub(in crate::memory) fn thread(&self) -> String {
        format!("{}/{}", self.agent, self.session)
    }

    /// What is told as the source of its passages.
    pub(in crate::memory) fn source(&self) -> String {
        let short: String = match self.session.len() > 20 {
            // Ids that begin with a time differ at their end.
            true => self.session.chars().rev().take(8).collect::<Vec<_>>().into_iter().rev().collect(),
            false => self.session.clone(),
        };
        format!("{} session {short}", self.agent_name)
    }

    /// Reads its records, oldest first.
    pub(in crate::memory) fn read(&self, sink: &mut impl FnMut(Record)) -> Result<Report, TranscriptProblem> {
        let lines = match &self.content {
            SessionContent::File => return self.as_source().read(sink),
            SessionContent::OpenCodeFiles(storage) => opencode::lines_of_files(storage, &self.session),
            SessionContent::OpenCodeRows => rows::opencode_lines(&self.path, &self.session),
            SessionContent::GooseRows => rows::goose_lines(&self.path, &self.session),
        };
        let lines = lines.map_err(TranscriptProblem::Failed)?;
        read(lines.as_bytes(), sink).map_err(|error| match error {
            ReadError::Empty => TranscriptProblem::Empty,
            ReadError::UnknownFormat => TranscriptProblem::Unknown,
            error => TranscriptProblem::Failed(error.into()),
        })
    }

    /// Where the agent worked: as its surroundings say, or as its first records do.
    pub(in crate::memory) fn found_directory(&self) -> Option<String> {
        if self.directory.is_some() {
            return self.directory.clone();
        }
        let SessionContent::File = self.content else { return None };
        let (records, ..) = self.as_source().start(START_BYTES)?.ok()?;
        records.iter().find_map(|record| record.items()[0].meta()?.directory.as_deref().map(str::to_owned))
    }

    fn as_source(&self) -> RecordingSource {
        RecordingSource { path: self.path.clone(), short: self.path.clone(), is_named: false }
    }
}
