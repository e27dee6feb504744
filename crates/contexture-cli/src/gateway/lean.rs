//! What `run --lean-tools` has to know of an agent: the tools that it needs, and the files that name others.

use std::fs;
use std::path::Path;

use contexture_agents::{DirectoryReach, agents};
use contexture_gateway::LeanTools;

use super::agents::Agent;
use super::configured::{Surroundings, paths_of};
use crate::failure::Failure;

/// Larger files are no instructions.
const MOST_BYTES: u64 = 1 << 20;

/// Most files, and the deepest, that are looked at.
const MOST_FILES: usize = 2_000;
const MOST_DEPTH: usize = 8;

/// What of an agent's tools stays.
///
/// # Errors
/// Nobody knows which tools the agent needs.
pub(super) fn lean_tools(agent: &Agent, around: &Surroundings<'_>) -> Result<LeanTools, Failure> {
    let Some(needs) = agent.file().and_then(|file| file.needs()) else {
        let failure = Failure::usage(format!("which tools `{}` needs to work is not known", agent.name));
        let known =
            agents().iter().filter(|agent| agent.needs().is_some()).filter_map(|agent| Some(agent.run()?.name()));
        return Err(
            failure.hint(format!("leave out --lean-tools, which works with {}", known.collect::<Vec<_>>().join(", ")))
        );
    };
    let mut named = Named { text: String::new(), left: MOST_FILES };
    for place in needs.named_in() {
        for path in paths_of(place, DirectoryReach::Repository, around) {
            named.add(&path, MOST_DEPTH);
        }
    }
    let of_servers = (needs.server_start(), needs.server_end());
    Ok(LeanTools { needed: needs.tools(), of_servers, named_in: named.text.into() })
}

/// Texts in which tools are named.
struct Named {
    text: String,
    /// How many more files are looked at.
    left: usize,
}

impl Named {
    /// Adds a file, or those in a directory and beneath it. What cannot be read names nothing.
    fn add(&mut self, path: &Path, depth: usize) {
        let Ok(found) = fs::metadata(path) else { return };
        if found.is_file() && found.len() <= MOST_BYTES && self.left > 0 {
            self.left -= 1;
            self.text.push_str(&fs::read_to_string(path).unwrap_or_default());
            self.text.push('\n');
        }
        if found.is_dir() && depth > 0 && self.left > 0 {
            let entries = fs::read_dir(path).into_iter().flatten().flatten();
            entries.for_each(|entry| self.add(&entry.path(), depth - 1));
        }
    }
}
