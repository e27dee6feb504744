//! Calls that a model makes at once, which a harness may run in any order or at the same time.

use contexture_agents::Tool;

use super::observation::{Observation, Seen};
use super::path::{is_beneath, normalize};
use contexture_text::packed::{Damaged, Packer, Unpacker};

/// Most calls of a batch that are followed. Of more, the first stay.
const MAX_CALLS: usize = 64;

/// Most files of a call that are followed; with more it counts as touching every file.
const MAX_TOUCHED: usize = 64;

/// The calls that were made together with the newest one.
#[derive(Clone, Debug, Default)]
pub(crate) struct CallBatch {
    /// The calls that have no output yet.
    open: Vec<String>,
    /// What those with an output did.
    done: Vec<CallEffects>,
}

/// What one call did to files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct CallEffects {
    /// What it is, in short.
    by: String,
    /// Whether nothing that is made together with it runs at another time than its place in the order says.
    is_in_order: bool,
    /// Files and directories that it changed, or may have; an empty name is every file.
    changes: Vec<String>,
    /// Those of them that it only edited, so that other edits of them can be made before or after.
    edits: Vec<String>,
    /// Files that it showed.
    reads: Vec<String>,
    /// Whether it is presumed to have changed nothing else.
    is_presumed: bool,
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

    /// Adds to what a call told what is uncertain because others were made together with it.
    pub(crate) fn beside(&mut self, call_id: &str, tool: &str, seen: &mut Seen) {
        let Some(at) = self.open.iter().position(|open| open == call_id) else { return };
        self.open.remove(at);
        let own = CallEffects::of(tool, seen);
        for other in self.done.iter().filter(|other| !(other.is_in_order && own.is_in_order)) {
            seen.observations.extend(own.beside(other));
        }
        self.done.push(own);
    }

    /// Writes it.
    pub(crate) fn rest(&self, packer: &mut Packer<'_>) {
        let Self { open, done } = self;
        packer.list(open, |packer, call_id| packer.text(call_id));
        packer.list(done, |packer, touched| {
            let CallEffects { by, is_in_order, changes, edits, reads, is_presumed } = touched;
            packer.text(by);
            packer.flag(*is_in_order);
            for paths in [changes, edits, reads] {
                packer.list(paths, |packer, path| packer.text(path));
            }
            packer.flag(*is_presumed);
        });
    }

    /// Reads it again.
    pub(crate) fn wake(unpacker: &mut Unpacker<'_>) -> Result<Self, Damaged> {
        let open = unpacker.list(owned)?;
        let done = unpacker.list(|unpacker| {
            Ok(CallEffects {
                by: owned(unpacker)?,
                is_in_order: unpacker.flag()?,
                changes: unpacker.list(owned)?,
                edits: unpacker.list(owned)?,
                reads: unpacker.list(owned)?,
                is_presumed: unpacker.flag()?,
            })
        })?;
        Ok(Self { open, done })
    }
}

fn owned(unpacker: &mut Unpacker<'_>) -> Result<String, Damaged> {
    Ok(unpacker.text()?.as_ref().to_owned())
}

impl CallEffects {
    fn of(tool: &str, seen: &Seen) -> Self {
        let mut touched = Self {
            by: format!("`{tool}`, called together with others"),
            is_in_order: contexture_agents::tool(tool).is_some_and(Tool::in_order),
            ..Self::default()
        };
        for observation in &seen.observations {
            let paths = || observation.paths().into_iter().map(normalize);
            match observation {
                Observation::Swept { under, .. } | Observation::Formatted { under, .. } => {
                    touched.changes.push(under.as_deref().map(normalize).unwrap_or_default());
                }
                Observation::Edit { all: false, .. } => touched.edits.extend(paths()),
                Observation::Presumed { .. } => touched.is_presumed = true,
                Observation::Mentioned { .. } => {}
                observation if observation.is_change() => touched.changes.extend(paths()),
                _ => touched.reads.extend(paths()),
            }
        }
        for paths in [&mut touched.changes, &mut touched.edits, &mut touched.reads] {
            paths.sort_unstable();
            paths.dedup();
            if paths.len() > MAX_TOUCHED {
                *paths = vec![String::new()];
            }
        }
        touched
    }

    /// What is uncertain after it because another call may have run before, after or while it did.
    fn beside(&self, other: &CallEffects) -> Vec<Observation> {
        let doubts = self.doubted_by(other).into_iter().chain(other.doubted_by(self));
        let told = doubts.map(|path| Observation::Swept {
            under: Some(path).filter(|path| !path.is_empty()),
            extensions: Vec::new(),
            by: self.by.clone(),
        });
        let has_shown = !self.reads.is_empty() || !self.changes.is_empty() || !self.edits.is_empty();
        let presumed = (other.is_presumed && has_shown).then(|| Observation::Presumed { by: other.by.clone() });
        told.chain(presumed).collect()
    }

    /// What this call changed of that which another one touched.
    fn doubted_by(&self, other: &CallEffects) -> Vec<String> {
        let meets = |one: &String, others: &[String]| {
            others.iter().any(|other| is_beneath(one, other) || is_beneath(other, one))
        };
        let is_hit =
            |path: &&String| meets(path, &other.changes) || meets(path, &other.edits) || meets(path, &other.reads);
        let is_edit_hit = |path: &&String| meets(path, &other.changes) || meets(path, &other.reads);
        self.changes.iter().filter(is_hit).chain(self.edits.iter().filter(is_edit_hit)).cloned().collect()
    }
}
