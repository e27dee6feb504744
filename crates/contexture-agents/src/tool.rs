//! The tools of an agent: what they do, what they print, and what they say of failure.

use serde::{Deserialize, Serialize};

use crate::data::{Text, Texts, data};

/// What a tool does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Does {
    /// Shows a file.
    Read,
    /// Makes or replaces a file.
    Write,
    /// Adds text to a file's end.
    Append,
    /// Replaces pieces of text.
    Edit,
    /// Inserts lines after a line.
    Insert,
    /// Applies a patch in the `*** Begin Patch` form, a unified diff, or search-and-replace blocks.
    Patch,
    /// Does what its argument `command` says: `view`, `create`, `str_replace`, `insert`.
    Editor,
    /// Searches file contents or names.
    Search,
    /// Runs a command line.
    Run,
    /// Changes a file in a way that its arguments do not say.
    Rework,
    /// Removes a file.
    Delete,
    /// Renames a file.
    Move,
    /// Could write any file.
    Anything,
    /// The same: it is not known to change files, nor to leave them alone.
    Unclear,
    /// Lets another agent work, which could write any file.
    Delegate,
    /// Makes other calls that its arguments list.
    Wrap,
    /// Has nothing to do with files, and returns what a person or another agent said.
    Hear,
    /// Has nothing to do with files.
    Nothing,
}

/// How a tool writes a line's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Style {
    /// `   12→text`
    Arrow,
    /// `   12<TAB>text`
    Tab,
    /// `12: text`
    Colon,
    /// `12:text`, as searches print it
    Bare,
    /// `00012| text`, `12 | text`
    Bar,
    /// `12. text`
    Dot,
}

/// The form of what a read tool prints.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrintedForm {
    /// Every line carries its number in one of these styles.
    Numbered(Vec<Style>),
    /// Numbered in one of these styles between tags, by one agent; plain without them, by another.
    Wrapped(Vec<Style>),
    /// Numbered in one of these styles by some versions of the agent, and plain by others.
    Maybe(Vec<Style>),
    /// The whole text, or a part below a head that says which lines these are. Some agents number the lines.
    Headed,
}

/// What an agent puts around the output of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Frame {
    /// Codex: lines with the status before the output, or an object with both.
    Codex,
    /// Gemini CLI: a name before the output, and lines with the status after it.
    Gemini,
    /// mini-swe-agent: the status and the output between tags.
    Tags,
}

data! {
    /// What cannot be left out of an agent's tools, if it knows which tools leave.
    NeededTools {
        /// What is between the server and the tool in the names of tools of MCP servers.
        server_end: Text,
    } and {
        /// How these names begin.
        server_start: Text,
        /// Tools that it cannot do without, beside those that do something with files.
        tools: Texts,
        /// Files, and directories of files, in which tools are named, beside what it sends.
        named_in: Texts,
    }

    /// A tool.
    Tool {
        /// What it does.
        does: Does,
    } and {
        /// The argument that holds the path, if its name is not a common one.
        path: Option<Text>,
        /// The argument that holds a file's text, or a patch.
        content: Option<Text>,
        /// The argument that holds the piece to be replaced.
        old: Option<Text>,
        /// The argument that holds what replaces it.
        #[serde(rename = "new")]
        replacement: Option<Text>,
        /// The argument that holds the command line.
        command: Option<Text>,
        /// What a read prints. Without it, some agents number the lines and some do not.
        prints: Option<PrintedForm>,
        /// What is around its output.
        frame: Option<Frame>,
        /// Whether a shell keeps its directory from one call to the next; without it, agents that use the name differ.
        keeps_directory: Option<bool>,
        /// Whether every failure of it is marked, so that a call without a mark is done.
        marks_failures: bool,
        /// Whether calls of it that are made at once run one after the other, unless they only read.
        in_order: bool,
        /// Whether an edit that replaces a piece by nothing may also remove the line feed after it.
        takes_feed: bool,
        /// Whether it only waits for output if it is given nothing to type.
        may_wait: bool,
        /// Whether its command lines are PowerShell's.
        is_power_shell: bool,
        /// Whether the dot in its name does not separate the name of a server from its own.
        is_whole_name: bool,
    }

    /// What tools say after a change.
    ///
    /// In a form, `*` is any text (the path, a count), and `…` at the end stands for anything that follows: text of the
    /// file or of the call. Without it, what follows on the line must not speak of trouble.
    Says {
        /// The tools.
        tools: Texts,
    } and {
        /// How an output begins after a change that was made as asked.
        done: Texts,
        /// How one begins when nothing was changed.
        undone: Texts,
        /// What one contains near its beginning when something else was changed than what was asked for.
        differs: Texts,
        /// What one contains then after the new text, however long that is.
        differs_anywhere: Texts,
    }

    /// A call and its output, and how both must be understood.
    Sample {
        /// The tool.
        tool: Text,
        /// Its arguments, in JSON.
        arguments: Text,
        /// What it returned, with no other sign of its outcome.
        output: Text,
        /// The file that the call is about.
        file: Text,
    } and {
        /// The text of the file as it was known before the call.
        before: Option<Text>,
        /// The text that is known after it. Without it, nothing is known.
        after: Option<Text>,
        /// Whether the file changed then in a way that is not known.
        is_changed: bool,
    }
}

impl Does {
    /// Whether it has nothing to do with files.
    pub fn spares_files(self) -> bool {
        matches!(self, Self::Nothing | Self::Hear)
    }
}
