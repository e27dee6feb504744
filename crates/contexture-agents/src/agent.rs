//! An agent, as its file describes it.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use crate::arguments::ArgumentNames;
use crate::data::{Text, Texts, data};
use crate::output::{AsideQuestions, Compaction, HarnessNotes, OutputMarks, SessionHeaders, Typed};
use crate::recordings::Recordings;
use crate::run::Run;
use crate::tool::{NeededTools, Sample, Says, Tool};

data! {
    /// An agent.
    Agent {
        /// Its name for people.
        name: Text,
    } and {
        /// Its place among agents: those without one come last, by the names of their files. It counts where two of them
        /// say something about the same tool, and in lists for people.
        order: Option<u32>,
        /// Its tools, by name. Names that mean the same in all agents that use them are in `common.toml`.
        tools: BTreeMap<Text, Tool>,
        /// What its tools say after a change.
        says: Vec<Says>,
        /// What it writes into outputs.
        output: OutputMarks,
        /// What it writes on its own account.
        notes: HarnessNotes,
        /// Where a person types, if that can be told from what it writes in the user's role itself.
        typed: Option<Typed>,
        /// What cannot be left out of its tools.
        needs: Option<NeededTools>,
        /// How it asks for a summary.
        compaction: Compaction,
        /// What it asks beside the conversation, with messages out of it.
        aside: AsideQuestions,
        /// How it names its session.
        session: SessionHeaders,
        /// Names of models, as it writes them.
        models: Texts,
        /// Its recordings.
        recordings: Option<Recordings>,
        /// How it is run with the gateway.
        run: Option<Run>,
        /// Calls with their outputs, and how they must be understood.
        #[serde(rename = "sample")]
        samples: Vec<Sample>,
        /// The names of arguments, which only `common.toml` has.
        arguments: Option<ArgumentNames>,
    }
}

/// The files, by name.
const FILES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// What all of them say, read when it is needed for the first time.
static AGENTS: LazyLock<Vec<Agent>> = LazyLock::new(|| {
    let read = |(name, text): &(&str, &str)| -> Agent {
        toml::from_str(text).unwrap_or_else(|error| panic!("{name}.toml, which comes with the program: {error}"))
    };
    let mut agents: Vec<Agent> = FILES.iter().map(read).collect();
    agents.sort_by_key(|agent| agent.order.unwrap_or(u32::MAX));
    agents
});

static TOOLS: LazyLock<HashMap<&'static str, &'static Tool>> =
    LazyLock::new(|| AGENTS.iter().rev().flat_map(|agent| &agent.tools).map(|(name, tool)| (name.0, tool)).collect());

/// All agents, in order.
pub fn agents() -> &'static [Agent] {
    &AGENTS
}

/// The tool of a name.
pub fn tool(name: &str) -> Option<&'static Tool> {
    TOOLS.get(name).copied()
}

/// The tools of all agents, with their names.
pub fn tools() -> impl Iterator<Item = (&'static str, &'static Tool)> {
    TOOLS.iter().map(|(name, tool)| (*name, *tool))
}

/// What all agents say of something, in order.
///
/// ```
/// let asks = contexture_agents::every(|agent| agent.compaction().asks());
/// assert!(asks.count() > 10);
/// ```
pub fn every<T: 'static>(of: impl Fn(&'static Agent) -> &'static [T]) -> impl Iterator<Item = &'static T> {
    agents().iter().flat_map(of)
}

/// The names that agents commonly use for arguments.
///
/// # Panics
/// No file has them.
pub fn argument_names() -> &'static ArgumentNames {
    static NAMES: LazyLock<&'static ArgumentNames> =
        LazyLock::new(|| AGENTS.iter().find_map(|agent| agent.arguments.as_ref()).expect("`common.toml` has them"));
    *NAMES
}
