//! Recorded work of agents, as items.
//!
//! Agents write down what they do, each in its own format. [`read`] recognises the format by its content and returns
//! one [`Record`] after the other, so that a recording of any length can be replayed; [`Transcript::read`] collects
//! them.
//!
//! ```
//! use contexture_wire::transcript::{Format, Transcript};
//! let recording = r#"{"role": "user", "content": "list the files"}
//! {"role": "assistant", "content": null, "tool_calls": [
//! {"role": "assistant", "content": "There are none."}"#;
//! let (transcript, report) = Transcript::read(recording.as_bytes())?;
//! assert_eq!(report.format, Format::OpenAiChat);
//! assert_eq!(transcript.records.len(), 2);
//! assert!(transcript.records[1].is_response());
//! assert_eq!(report.broken[0].line, 2);
//! # Ok::<(), contexture_wire::transcript::ReadError>(())
//! ```

mod assemble;
mod blocks;
mod chat;
mod claude_code;
mod codex;
mod copilot_cli;
mod document;
mod format;
mod gemini_cli;
mod goose;
mod layout;
mod opencode;
mod pi;
mod plain;
mod read;
mod reading;
mod record;
mod repair;
mod time;

pub use format::Format;
pub use plain::{plain_form, write};
pub use read::read;
pub use reading::{Broken, MAX_BROKEN_NOTES, MAX_LINE_BYTES, ReadError, Report};
pub use record::Record;

/// A recorded conversation, oldest record first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript {
    /// The records, in order.
    pub records: Vec<Record>,
}

impl Transcript {
    /// Reads a whole recording in any known format, with a report of what could not be used.
    ///
    /// # Errors
    ///
    /// When the reader fails, or when nothing in it belongs to a known format.
    pub fn read(reader: impl std::io::BufRead) -> Result<(Self, Report), ReadError> {
        let mut transcript = Self::default();
        let report = read(reader, &mut |record| transcript.records.push(record))?;
        Ok((transcript, report))
    }
}
