//! What is known of each coding agent: one file of data for each, in the directory `agents`.
//!
//! A file says which tools an agent has, what they print and how they fail, what it writes on its own account, how it asks
//! for a summary, where it keeps recordings and settings, and how it is pointed at the gateway. A new agent is a new file;
//! what all agents have in common is in `common.toml`. The files come with the program, and are read when something of them
//! is needed for the first time.

mod agent;
mod arguments;
mod data;
mod output;
mod recordings;
mod run;
mod tool;

pub use agent::{Agent, agents, argument_names, every, tool, tools};
pub use arguments::ArgumentNames;
pub use data::Text;
pub use output::{
    Around, Compaction, HarnessNotes, HeaderMark, OutputMarks, Reminder, SessionHeaders, Tells, Trailer, Typed,
};
pub use recordings::{Home, RecordedAs, RecordingFiles, Recordings, SessionFile};
pub use run::{
    Address, Beaten, DirectoryReach, Install, PlacedFile, RouteChoice, Run, SettingPlace, Trial, TrialArguments,
    Upstream,
};
pub use tool::{Does, Frame, NeededTools, PrintedForm, Sample, Says, Style, Tool};
