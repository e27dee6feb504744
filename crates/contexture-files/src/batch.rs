//! Calls that a model makes at once, which a harness may run in any order or at the same time.

use contexture_agents::Tool;

use super::observation::{Observation, Seen};
use contexture_text::packed::{Damaged, Packer, Unpacker};

/// Most calls of a batch that are followed. Of more, the first stay.
const MAX_CALLS: usize = 64;

/// The calls that were made together with the newest one.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallBatch {
    /// The calls that have no output yet.
    open: Vec<String>,
    /// Those that have one.
    done: Vec<CallEffects>,
}

/// What one call did to files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct CallEffects {
    /// Whether nothing that is made together with it runs at another time than its place in the order says.
    is_in_order: bool,
    /// Whether it changed a file, or could write one.
    is_change: bool,
}

impl CallBatch {
    /// Notes that a call was made.
    pub(crate) fn made(&mut self, call_id: &str) {
        // After the first output comes another response.
        if !self.done.is_empty() {
            self.open.clear();
            self.done.clear();
        }
        if self.open.len() < MAX_CALLS {
            self.open.push(call_id.to_owned());
        }
    }

    /// Adds to what a call told that others that were made together with it could write before, after or while it ran.
    pub(crate) fn beside(&mut self, call_id: &str, tool: &str, seen: &mut Seen) {
        let Some(at) = self.open.iter().position(|open| open == call_id) else { return };
        self.open.remove(at);
        let own = CallEffects {
            is_in_order: contexture_agents::tool(tool).is_some_and(Tool::in_order),
            is_change: seen.observations.iter().any(Observation::is_change),
        };
        let meets = |other: &CallEffects| !(other.is_in_order && own.is_in_order) && (other.is_change || own.is_change);
        if self.done.iter().any(meets) {
            seen.observations.push(Observation::could_write(format!("`{tool}`, called together with others")));
        }
        self.done.push(own);
    }

    /// Writes it.
    pub(crate) fn rest(&self, packer: &mut Packer<'_>) {
        let Self { open, done } = self;
        packer.list(open, |packer, call_id| packer.text(call_id));
        packer.list(done, |packer, CallEffects { is_in_order, is_change }| {
            packer.flag(*is_in_order);
            packer.flag(*is_change);
        });
    }

    /// Reads it again.
    pub(crate) fn wake(unpacker: &mut Unpacker<'_>) -> Result<Self, Damaged> {
        let open = unpacker.list(|unpacker| Ok(unpacker.text()?.as_ref().to_owned()))?;
        let done =
            unpacker.list(|unpacker| Ok(CallEffects { is_in_order: unpacker.flag()?, is_change: unpacker.flag()? }))?;
        Ok(Self { open, done })
    }
}
