//! Where agents keep their sessions: one row for each agent.

use std::path::PathBuf;

use contexture::transcript::Format;

use crate::environment::variable_os;

/// An agent, and where it keeps its sessions.
pub(in crate::memory) struct RecordingAgent {
    /// Its name in the names of threads.
    pub(in crate::memory) id: &'static str,
    /// Its name for people.
    pub(in crate::memory) name: &'static str,
    /// The format of its recordings, by which those in named files are told.
    pub(super) format: Format,
    /// Its directories, of which those that exist are searched.
    pub(super) homes: &'static [Home],
    /// The files in them: patterns with one name for each part of the path.
    pub(super) files: &'static [(&'static str, SessionFile)],
}

/// A directory of an agent.
pub(super) enum Home {
    /// A variable, and what is beneath the directory that it names.
    Variable(&'static str, &'static str),
    /// Beneath the user's home.
    OfUser(&'static str),
    /// Beneath the user's directory for data.
    Data(&'static str),
}

/// What a file has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionFile {
    /// One session in a file that is named like it.
    Session,
    /// One session in a directory that is named like it.
    InDirectory,
    /// One session, whose project is named by a file two directories above.
    GeminiSession,
    /// What is known of a session of OpenCode, whose messages are elsewhere.
    OpenCodeSession,
    /// All sessions of OpenCode.
    OpenCodeDatabase,
    /// All sessions of goose.
    GooseDatabase,
}

/// Where agents keep their sessions. Databases come before files of older versions, whose sessions they may have too.
pub(in crate::memory) const AGENTS: &[RecordingAgent] = &[
    RecordingAgent {
        id: "claude-code",
        name: "Claude Code",
        format: Format::ClaudeCode,
        homes: &[Home::Variable("CLAUDE_CONFIG_DIR", ""), Home::OfUser(".claude"), Home::OfUser(".config/claude")],
        files: &[("projects/*/*.jsonl", SessionFile::Session)],
    },
    RecordingAgent {
        id: "codex",
        name: "Codex",
        format: Format::Codex,
        homes: &[Home::Variable("CODEX_HOME", ""), Home::OfUser(".codex")],
        files: &[
            ("sessions/*/*/*/rollout-*.jsonl", SessionFile::Session),
            ("archived_sessions/rollout-*.jsonl", SessionFile::Session),
        ],
    },
    RecordingAgent {
        id: "opencode",
        name: "OpenCode",
        format: Format::OpenCode,
        homes: &[Home::Data("opencode")],
        files: &[
            ("opencode*.db", SessionFile::OpenCodeDatabase),
            ("storage/session/*/ses_*.json", SessionFile::OpenCodeSession),
        ],
    },
    RecordingAgent {
        id: "copilot-cli",
        name: "Copilot CLI",
        format: Format::CopilotCli,
        homes: &[Home::Variable("COPILOT_HOME", ""), Home::OfUser(".copilot")],
        files: &[
            ("session-state/*/events.jsonl", SessionFile::InDirectory),
            ("session-state/*.jsonl", SessionFile::Session),
        ],
    },
    RecordingAgent {
        id: "gemini-cli",
        name: "Gemini CLI",
        format: Format::GeminiCli,
        homes: &[Home::Variable("GEMINI_CLI_HOME", ".gemini"), Home::OfUser(".gemini")],
        files: &[
            ("tmp/*/chats/session-*.jsonl", SessionFile::GeminiSession),
            ("tmp/*/chats/session-*.json", SessionFile::GeminiSession),
        ],
    },
    RecordingAgent {
        id: "pi",
        name: "pi",
        format: Format::Pi,
        homes: &[Home::Variable("PI_CODING_AGENT_DIR", ""), Home::OfUser(".pi/agent")],
        files: &[("sessions/*/*.jsonl", SessionFile::Session)],
    },
    RecordingAgent {
        id: "goose",
        name: "goose",
        format: Format::Goose,
        homes: &[Home::Variable("GOOSE_PATH_ROOT", "data"), Home::Data("goose")],
        files: &[("sessions/sessions.db", SessionFile::GooseDatabase), ("sessions/*.jsonl", SessionFile::Session)],
    },
];

impl Home {
    /// The directory, if it is known and exists.
    pub(super) fn directory(&self) -> Option<PathBuf> {
        let variable = |name: &str| variable_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let home = || variable("HOME").or_else(|| variable("USERPROFILE"));
        let directory = match self {
            Home::Variable(name, beneath) => variable(name)?.join(beneath),
            Home::OfUser(beneath) => home()?.join(beneath),
            Home::Data(beneath) => {
                variable("XDG_DATA_HOME").or_else(|| Some(home()?.join(".local/share")))?.join(beneath)
            }
        };
        directory.is_dir().then_some(directory)
    }
}
