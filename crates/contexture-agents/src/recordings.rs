//! Where an agent keeps the recordings of its sessions.

use serde::Deserialize;

use crate::data::{Text, data};

/// The format of a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecordedAs {
    /// That of Claude Code.
    ClaudeCode,
    /// That of Codex.
    Codex,
    /// That of OpenCode.
    Opencode,
    /// That of Copilot CLI.
    CopilotCli,
    /// That of Gemini CLI.
    GeminiCli,
    /// That of pi.
    Pi,
    /// That of goose.
    Goose,
}

/// A directory of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Home {
    /// A variable, and what is beneath the directory that it names.
    Variable(Text, Text),
    /// Beneath the user's home.
    OfUser(Text),
    /// Beneath the user's directory for data.
    Data(Text),
}

/// What a file has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionFile {
    /// One session in a file that is named like it.
    Session,
    /// One session in a directory that is named like it.
    InDirectory,
    /// One session, whose project is named by a file two directories above.
    GeminiSession,
    /// What is known of a session of OpenCode, whose messages are elsewhere.
    OpencodeSession,
    /// All sessions of OpenCode.
    OpencodeDatabase,
    /// All sessions of goose.
    GooseDatabase,
}

data! {
    /// Files of an agent.
    RecordingFiles {
        /// A pattern, with one name for each part of the path.
        pattern: Text,
        /// What each of them has.
        has: SessionFile,
    } and {}

    /// The recordings of an agent.
    Recordings {
        /// Its name in the names of threads.
        id: Text,
        /// The format, by which those in named files are told.
        format: RecordedAs,
        /// Its directories, of which those that exist are searched.
        homes: Vec<Home>,
        /// The files in them. Databases come before files of older versions, whose sessions they may have too.
        files: Vec<RecordingFiles>,
    } and {}
}
