//! `instructions`: what a project and its user ask of every agent, from AGENTS.md and CLAUDE.md.
//!
//! | | |
//! | --- | --- |
//! | slot | 105 |
//! | scope | resource `project` |
//! | budget | auto |
//! | band | anchor, with a delta of the files that changed |
//! | data | `touched` |
//!
//! The files are those of the public conventions, read through the engine's `FsAdapter`, whose base is taken for the root
//! of the repository:
//!
//! - in each directory from the root to the working directory ([`with_directory`](Instructions::with_directory))
//!   `AGENTS.override.md`, or else `AGENTS.md`; then `CLAUDE.md`, `.claude/CLAUDE.md` and `CLAUDE.local.md`;
//! - `.claude/rules`, all Markdown files beneath it. A rule with `paths` in its front matter holds once a file that
//!   matches one of them was touched, the others always;
//! - in a directory beneath, the same files once a file beneath it was touched, which is when a tool call named it;
//! - before all of these, the user's own `.codex/AGENTS.md`, `.claude/CLAUDE.md` and `.claude/rules`, if the program gives
//!   files that it trusts ([`with_user_files`](Instructions::with_user_files));
//! - after all of these, texts that the program gives ([`with_text`](Instructions::with_text)).
//!
//! A CLAUDE.md may import other files, as in `@docs/style.md`: relative to the file that says so, at most 4 hops, and not
//! from code spans or fences. Each file is shown once, also if two names lead to it or two files say the same. Nothing
//! outside of the two bases is read, wherever a link or an import leads; what was asked for and not read is named.
//!
//! The files are looked at before every turn and read when they changed, so a change is noticed at the next turn; the
//! block stays where it is, and the end of the window says what is new. All together have at most 32 KiB. When there is
//! more, or the budget is smaller, the farthest from the working directory go first, each of them named.
//!
//! What was touched is kept for each thread, the newest [`MAX_THREADS`] of them. A child starts with what the project's
//! files say and touches files of its own. Two processes lose nothing: what either touched is kept. No model is needed.

mod find;
mod imports;
mod read;
mod render;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use contexture_core::error::SpecError;
use contexture_core::host::{FsAdapter, relative_path};
use contexture_core::item::Item;
use contexture_core::layer::*;
use contexture_core::{LayerId, Slot, ThreadId};
use serde::{Deserialize, Serialize};

use self::read::InstructionCache;
use self::render::InstructionSection;
use crate::arguments::{maybe_paths, normal_path};
use contexture_text::state_version::StateVersion;

/// The id of the layer.
pub const ID: &str = "instructions";
/// Most bytes of instructions that are shown.
pub const MAX_BYTES: usize = 32 * 1024;
/// The largest depth of imports.
pub const MAX_HOPS: usize = 4;
/// How many threads' touched files are remembered.
pub const MAX_THREADS: usize = 32;
/// How many touched files are remembered per thread.
pub const MAX_TOUCHED: usize = 64;

const SLOT: Slot = Slot(105);
/// How many items before an output are searched for its call.
const MAX_CALLS_BACK: usize = 2_048;
/// How many paths of one call are used.
const MAX_PATHS: usize = 32;
/// Longest path that is used.
const MAX_PATH_BYTES: usize = 512;

/// The layer `instructions`: see [the module](self).
#[derive(Clone, Default)]
pub struct Instructions {
    /// `None`: the layer's own.
    id: Option<LayerId>,
    directory: String,
    user_files: Option<Arc<dyn FsAdapter>>,
    texts: Vec<(String, String)>,
    shelf: Arc<Mutex<InstructionCache>>,
}

/// The layer's state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct InstructionsState {
    version: StateVersion<1>,
    /// The thread that touched a file last is last.
    threads: VecDeque<Touched>,
}

/// The files that a thread touched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Touched {
    /// The thread.
    pub thread: String,
    /// The paths, newest last.
    pub paths: VecDeque<String>,
}

impl Instructions {
    /// Returns the touched files by thread.
    pub const TOUCHED: LayerData<Instructions, Vec<Touched>> = LayerData::new("touched");

    /// Creates the layer for the base directory of the engine's files.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets another id, for two such layers in one memory.
    pub fn with_id(mut self, id: impl Into<LayerId>) -> Self {
        self.id = Some(id.into());
        self
    }

    fn id(&self) -> LayerId {
        self.id.clone().unwrap_or_else(|| ID.into())
    }

    /// Creates the layer for an agent that works in a directory below the base.
    ///
    /// # Errors
    /// The directory is not below the base.
    pub fn with_directory(mut self, directory: &str) -> Result<Self, SpecError> {
        self.directory = match directory {
            "" | "." => String::new(),
            directory => {
                let refused =
                    |error: contexture_core::host::FileError| SpecError::layer(ID, "directory", error.message);
                relative_path(directory).map_err(refused)?.into_owned()
            }
        };
        Ok(self)
    }

    /// Adds the user's own files, which the program trusts. Their base is the user's home directory.
    pub fn with_user_files(mut self, files: Arc<dyn FsAdapter>) -> Self {
        self.user_files = Some(files);
        self
    }

    /// Adds a text of the program, under a name.
    pub fn with_text(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.texts.push((name.into(), text.into()));
        self
    }

    /// All instructions that apply now, farthest first, and what was not read.
    async fn collect(&self, fs: &Arc<dyn FsAdapter>, touched: &[&str]) -> (Vec<InstructionSection>, Vec<String>) {
        let mut shelf = self.shelf.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut collection = find::Collection::new(&mut shelf, fs.clone(), self.user_files.clone());
        collection.add_user(touched).await;
        collection.add_project(&self.directory, touched).await;
        for (name, text) in &self.texts {
            collection.add_text(name, text);
        }
        let found = collection.finish();
        *self.shelf.lock().unwrap_or_else(PoisonError::into_inner) = shelf;
        found
    }
}

impl InstructionsState {
    fn touched(&self, thread: &ThreadId) -> Vec<&str> {
        let own = self.threads.iter().filter(|touched| touched.thread == thread.as_str());
        own.flat_map(|touched| touched.paths.iter().map(String::as_str)).collect()
    }

    /// The state with more touched paths; `None` if all are known.
    fn with_touched(&self, thread: &ThreadId, paths: &[String]) -> Option<Self> {
        let known = self.touched(thread);
        if paths.iter().all(|path| known.contains(&path.as_str())) {
            return None;
        }
        let mut state = self.clone();
        let at = state.threads.iter().position(|touched| touched.thread == thread.as_str());
        let mut own = at.and_then(|at| state.threads.remove(at)).unwrap_or_default();
        own.thread = thread.to_string();
        own.paths.retain(|path| !paths.contains(path));
        own.paths.extend(paths.iter().cloned());
        while own.paths.len() > MAX_TOUCHED {
            own.paths.pop_front();
        }
        state.threads.push_back(own);
        while state.threads.len() > MAX_THREADS {
            state.threads.pop_front();
        }
        Some(state)
    }
}

/// The paths below the base that were named by the calls of some outputs.
fn touched_by(params: &OnItemAppendParams<InstructionsState>) -> Vec<String> {
    let bases = params.ctx.fs.base_names();
    let mut paths: Vec<String> = Vec::new();
    for output in params.items.iter().filter_map(Item::as_output) {
        let mut calls = params.log.last(MAX_CALLS_BACK).rev().filter_map(Item::as_call);
        let Some(call) = calls.find(|call| call.call_id == output.call_id) else { continue };
        for path in maybe_paths(&call.parsed_arguments()) {
            let looks_like_a_path = path.len() <= MAX_PATH_BYTES && path.contains(['/', '.']) && !path.contains('\n');
            let path = if looks_like_a_path { normal_path(&path, &bases) } else { String::new() };
            let is_beneath = !path.is_empty() && relative_path(&path).is_ok();
            if is_beneath && !paths.contains(&path) && paths.len() < MAX_PATHS {
                paths.push(path);
            }
        }
    }
    paths
}

impl MemoryLayer for Instructions {
    type State = InstructionsState;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new(self.id(), SLOT, MemoryScope::Resource)
            .with_name("Instructions")
            .with_resource("project")
            .with_placement(Placement::Anchor)
            .with_rerender_timing(RerenderTiming::Immediate)
    }

    fn provides(&self) -> LayerProvides<InstructionsState> {
        let touched = layer_data(|state: &InstructionsState| Vec::from(state.threads.clone()));
        LayerProvides::new().data(Self::TOUCHED.name(), touched)
    }

    async fn on_item_append(
        &self,
        params: OnItemAppendParams<InstructionsState>,
    ) -> HookResult<OnItemAppendResult<InstructionsState>> {
        let paths = touched_by(&params);
        let state = if paths.is_empty() { None } else { params.state.with_touched(&params.ctx.thread_id, &paths) };
        let result = OnItemAppendResult::items(params.items);
        Ok(match state {
            Some(state) => result.with_state(state).with_rerender(Rerender::default()),
            None => result,
        })
    }

    async fn recall(&self, params: RecallParams<InstructionsState>) -> HookResult<RecallResult<InstructionsState>> {
        let touched = params.state.touched(&params.ctx.thread_id);
        let (sections, problems) = self.collect(&params.ctx.fs, &touched).await;
        if sections.is_empty() && problems.is_empty() {
            return Ok(RecallResult::nothing());
        }
        let key = render::key(&sections, &problems, params.budget, params.ctx.counter());
        let kept = self.shelf.lock().unwrap_or_else(PoisonError::into_inner).block(&key);
        let block = kept.unwrap_or_else(|| {
            let block = render::block(params.ctx.counter(), &self.id(), &sections, &problems, params.budget);
            self.shelf.lock().unwrap_or_else(PoisonError::into_inner).keep_block(key, block.clone());
            block
        });
        Ok(block.into())
    }

    fn render_delta(&self, pinned: &[Arc<Item>], current: &[Arc<Item>]) -> Option<String> {
        render::delta(pinned, current)
    }

    fn merge(&self, ours: &InstructionsState, theirs: &InstructionsState) -> Option<InstructionsState> {
        let mut merged = theirs.clone();
        for touched in &ours.threads {
            let paths: Vec<String> = touched.paths.iter().cloned().collect();
            merged = merged.with_touched(&touched.thread.as_str().into(), &paths).unwrap_or(merged);
        }
        Some(merged)
    }
}

#[cfg(test)]
mod tests;
