//! Where agents keep their sessions.

use std::path::PathBuf;

use contexture::transcript::Format;
use contexture_agents::{Agent, Home, RecordedAs, Recordings};

use crate::environment::variable_os;

/// The agents whose recordings are known, each with where it keeps them.
pub(in crate::memory) fn recorded() -> impl Iterator<Item = (&'static Agent, &'static Recordings)> {
    contexture_agents::agents().iter().filter_map(|agent| Some((agent, agent.recordings()?)))
}

/// The format of recordings.
pub(super) fn format_of(recordings: &Recordings) -> Format {
    match recordings.format() {
        RecordedAs::ClaudeCode => Format::ClaudeCode,
        RecordedAs::Codex => Format::Codex,
        RecordedAs::Opencode => Format::OpenCode,
        RecordedAs::CopilotCli => Format::CopilotCli,
        RecordedAs::GeminiCli => Format::GeminiCli,
        RecordedAs::Pi => Format::Pi,
        RecordedAs::Goose => Format::Goose,
    }
}

/// A directory of an agent, if it is known and exists.
pub(super) fn directory_of(home: &Home) -> Option<PathBuf> {
    let variable = |name: &str| variable_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let of_user = || variable("HOME").or_else(|| variable("USERPROFILE"));
    let directory = match home {
        Home::Variable(name, beneath) => variable(name.text())?.join(beneath.text()),
        Home::OfUser(beneath) => of_user()?.join(beneath.text()),
        Home::Data(beneath) => {
            variable("XDG_DATA_HOME").or_else(|| Some(of_user()?.join(".local/share")))?.join(beneath.text())
        }
    };
    directory.is_dir().then_some(directory)
}
