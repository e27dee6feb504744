//! Why the program could not do what it was asked: one sentence, a hint and an exit code.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::ErrorKind;

/// The exit code of work that failed.
const FAILED_WORK: u8 = 1;

/// The exit code of a command that was not understood.
const BAD_USAGE: u8 = 2;

/// The end of the program, with what to tell the person.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    sentence: String,
    hint: Option<String>,
}

#[derive(Debug)]
enum Kind {
    Usage,
    Work,
    /// Not a failure: the text was asked for.
    Asked,
    /// Whoever reads our output has seen enough.
    Unread,
}

impl Failure {
    /// The command cannot be carried out as it was written.
    pub fn usage(sentence: impl Into<String>) -> Self {
        Self { kind: Kind::Usage, sentence: sentence.into(), hint: None }
    }

    /// The work was begun and failed.
    pub fn work(sentence: impl Into<String>) -> Self {
        Self { kind: Kind::Work, sentence: sentence.into(), hint: None }
    }

    /// The same with something that the person can do.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// Tells the person and gives the exit code.
    pub fn report(self) -> ExitCode {
        match self.kind {
            Kind::Unread => return ExitCode::SUCCESS,
            Kind::Asked => {
                // If nobody reads the help there is nobody to tell.
                let _ = io::stdout().write_all(self.sentence.as_bytes());
                return ExitCode::SUCCESS;
            }
            Kind::Usage | Kind::Work => {}
        }
        eprintln!("error: {}", self.sentence);
        if let Some(hint) = &self.hint {
            eprintln!("hint: {hint}");
        }
        ExitCode::from(if matches!(self.kind, Kind::Usage) { BAD_USAGE } else { FAILED_WORK })
    }
}

impl From<clap::Error> for Failure {
    fn from(error: clap::Error) -> Self {
        let text = error.render().to_string();
        if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
            return Self { kind: Kind::Asked, sentence: text, hint: None };
        }
        let mut paragraphs = text.split("\n\n");
        let first = paragraphs.next().unwrap_or_default();
        let sentence = first.strip_prefix("error: ").unwrap_or(first);
        let sentence = sentence.split_whitespace().collect::<Vec<_>>().join(" ");
        let usage = paragraphs.find_map(|paragraph| paragraph.trim_start().strip_prefix("Usage: "));
        let failure = Self::usage(sentence);
        match usage {
            Some(usage) => failure.hint(format!("write it as `{}`", usage.trim())),
            None if matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue) => {
                failure.hint("`contexture COMMAND --help` says what can be asked for")
            }
            None => failure.hint("`contexture --help` lists all commands"),
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self { kind: Kind::Unread, sentence: String::new(), hint: None },
            _ => Self::work(format!("write the output: {error}")),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::from(io::Error::from(error))
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::work(format!("{error:#}"))
    }
}
