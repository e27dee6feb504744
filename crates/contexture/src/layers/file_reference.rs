//! The layer `file-reference`: name a file, and the model sees it as it is now.
//!
//! A user writes `Look at #src/index.ts and #package.json`. Both files are read beneath a base directory, and the
//! model is shown them in one developer message, `# Referenced Files`. With every further message, and with every
//! answer of a tool, the layer looks whether they changed; if so, it is recalled again before the next model call.
//!
//! | | |
//! | --- | --- |
//! | slot | 350 (`Slot::RAG`) |
//! | scope | thread |
//! | budget | auto |
//! | re-render | immediate |
//! | timeouts | `on_item_append` 30 s, since it reads files and asks a model about them |
//!
//! **What is a reference** is told by [`crate::reference`]. In the message it becomes a link,
//! `[#src/index.ts](#src-index-ts)`, and no two files of a thread share an anchor.
//!
//! **What is read**: regular text files beneath the base, with an allowed extension or name, up to a size. Anything
//! else is tracked with an error and shown as a line that says why; the others are served all the same.
//!
//! **What is shown**, by priority from 0 to 100: a model rates each file that a message names against that message;
//! without a model, path, text, and how often and how lately the file was named decide. What fits is shown whole;
//! what is too large as head, marker and tail; what has no room is named. A file that was not named, read by a tool or
//! changed for 20 turns is only named. The message is never above its budget.
//!
//! **What is remembered**: paths, hashes, stamps and scores ([`FileReferences`]). Texts are held in memory only.
//!
//! **What others can do**: `file-reference/untrack` forgets a file, for the model as for the program;
//! [`FileReference::FILES`] lists what is tracked, [`FileReference::report`] what became of it in the last window.

#[cfg(doctest)]
#[doc = include_str!("../../../../docs/file-references.md")]
struct Guide;

mod block;
mod contents;
mod delta;
mod draft;
mod mentions;
mod tracker;
mod options;
mod render;
mod report;
mod score;
mod state;
#[cfg(feature = "testing")]
pub mod testing;
mod words;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use contexture_core::host::FsAdapter;
use contexture_core::layer::*;
use contexture_core::{Item, LayerId, SpecError, ThreadId};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use options::ValidOptions;
use score::Scorer;
use tracker::{LayerHost, MessageRoom, Tracker};

pub use options::{
    DEFAULT_AGEING_TURNS, DEFAULT_MAX_FILE_SIZE, DEFAULT_READ_CONCURRENCY, FileReferenceOptions, MAX_FILE_SIZE,
    MAX_READ_CONCURRENCY,
};
pub use report::{FileReport, ReportStatus};
pub use state::{ContentHash, FileReferences, FileStatus, MAX_TRACKED_FILES, TrackedFile};

/// The layer's id.
pub const ID: &str = "file-reference";

/// How long `on_item_append` may take: it reads files and asks a model about them.
const ON_ITEM_APPEND_TIMEOUT: Duration = Duration::from_secs(30);

/// The layer `file-reference`. A clone is the same layer: keep one to ask for a [`report`](Self::report).
#[derive(Clone)]
pub struct FileReference {
    /// `None`: the layer's own.
    id: Option<LayerId>,
    tracker: Arc<Tracker>,
    /// Its own files, if it was given a base directory; otherwise those of the engine.
    files: Option<Arc<dyn FsAdapter>>,
}

/// What `file-reference/untrack` is given.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Untrack {
    /// As referenced.
    pub path: String,
}

/// What `file-reference/untrack` returns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Untracked {
    /// The path of the file that is no longer shown.
    pub path: String,
}

impl fmt::Debug for FileReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileReference").field("settings", &self.tracker.settings).finish_non_exhaustive()
    }
}

impl FileReference {
    /// Returns all tracked files.
    pub const FILES: LayerData<FileReference, Vec<TrackedFile>> = LayerData::new("files");

    /// Removes a file: it is shown again only when it is named again.
    pub const UNTRACK: LayerFunction<FileReference, Untrack, Untracked> = LayerFunction::new("untrack");

    /// Creates the layer with these options.
    ///
    /// # Errors
    /// Names the first invalid option, including a base directory that can't be opened.
    pub fn new(options: FileReferenceOptions) -> Result<Self, SpecError> {
        let settings = ValidOptions::of(&options)?;
        let files = options.base_dir.map(open_base).transpose()?;
        Ok(Self { id: None, tracker: Arc::new(Tracker::new(settings)), files })
    }

    /// Sets another id, for two such layers in one memory.
    pub fn with_id(mut self, id: impl Into<LayerId>) -> Self {
        self.id = Some(id.into());
        self
    }

    fn id(&self) -> LayerId {
        self.id.clone().unwrap_or_else(|| ID.into())
    }

    /// How each file of a thread appeared in the last window, by priority. Empty before the first recall.
    pub fn report(&self, thread_id: &ThreadId) -> Vec<FileReport> {
        self.tracker.page(thread_id).map(|page| report::of(&page)).unwrap_or_default()
    }

    fn fs<'a>(&'a self, ctx: &'a ExecutionContext) -> &'a dyn FsAdapter {
        self.files.as_deref().unwrap_or(&*ctx.fs)
    }

    fn host<'a>(&'a self, ctx: &'a ExecutionContext) -> LayerHost<'a> {
        let scorer = ctx.call_model.as_ref().map(|caller| caller as &dyn Scorer);
        LayerHost { fs: self.fs(ctx), scorer, sleep: &sleep }
    }
}

impl MemoryLayer for FileReference {
    type State = FileReferences;

    fn spec(&self) -> LayerSpec {
        LayerSpec::new(self.id(), self.tracker.settings.slot, MemoryScope::Thread)
            .with_name("File references")
            .with_rerender_timing(RerenderTiming::Immediate)
            .with_timeouts(LayerTimeouts { on_item_append: Some(ON_ITEM_APPEND_TIMEOUT), ..LayerTimeouts::default() })
    }

    fn provides(&self) -> LayerProvides<FileReferences> {
        let files = layer_data(|state: &FileReferences| state.files().cloned().collect::<Vec<_>>());
        let untrack = layer_fn(
            "Stops showing a referenced file.",
            |input: Untrack, state: Arc<FileReferences>, _ctx| async move { untrack(&input, &state) },
        );
        LayerProvides::new().data(Self::FILES.name(), files).function(Self::UNTRACK.name(), untrack)
    }

    async fn init(&self, params: InitParams<FileReferences>) -> HookResult<InitResult<FileReferences>> {
        let stored = params.stored.unwrap_or_default();
        Ok(InitResult { state: stored.under(&self.tracker.settings.allow_list) })
    }

    async fn on_item_append(
        &self,
        params: OnItemAppendParams<FileReferences>,
    ) -> HookResult<OnItemAppendResult<FileReferences>> {
        let OnItemAppendParams { items, log, ctx, state, budget, .. } = params;
        let room = MessageRoom { budget, counter: ctx.counter() };
        let taken_in = self.tracker.take_in(self.host(&ctx), &ctx.thread_id, &state, items, &log, room).await;
        ctx.trace.set_attribute("files.tracked", taken_in.state.as_ref().unwrap_or(&state).files().len() as f64);
        ctx.trace.set_attribute("files.changed", taken_in.rerender.is_some());
        Ok(taken_in)
    }

    async fn recall(&self, params: RecallParams<FileReferences>) -> HookResult<RecallResult<FileReferences>> {
        let RecallParams { log, ctx, state, budget, .. } = params;
        let turn = log.user_messages();
        let room = MessageRoom { budget, counter: ctx.counter() };
        let recalled = self.tracker.recall(self.host(&ctx), &ctx.thread_id, &state, turn, room).await;
        let result = match recalled.page.text() {
            Some(text) => {
                tell_cuts(&ctx.trace, text);
                let items = RecallItems::Items(vec![Item::developer(text)]);
                RecallResult { items, token_count: Some(recalled.page.tokens()), ..RecallResult::nothing() }
            }
            None => RecallResult::nothing(),
        };
        Ok(RecallResult { state: recalled.state, ..result })
    }

    async fn on_spawn(&self, params: SpawnParams<FileReferences>) -> HookResult<SpawnResult<FileReferences>> {
        let child_state = params.parent_state.for_child(self.tracker.settings.ageing_turns);
        Ok(SpawnResult { child_state: Some(child_state), items: Vec::new() })
    }

    async fn on_return(&self, params: ReturnParams<FileReferences>) -> HookResult<ReturnResult<FileReferences>> {
        let parent_state = params.parent_state.with_files_of_child(&params.child_state);
        Ok(ReturnResult { parent_state, result: None })
    }

    fn render_delta(&self, pinned: &[Arc<Item>], current: &[Arc<Item>]) -> Option<String> {
        let ([pinned], [current]) = (pinned, current) else { return None };
        let (pinned, current) = (pinned.as_message()?, current.as_message()?);
        delta::delta(&pinned.text(), &current.text())
    }

    fn merge(&self, ours: &FileReferences, theirs: &FileReferences) -> Option<FileReferences> {
        Some(ours.united(theirs))
    }
}

/// Adds an event for every file of which only a part is shown: its path, and what is left out.
fn tell_cuts(trace: &contexture_core::layer::HookTrace, page: &str) {
    let mut path = "";
    for line in page.lines() {
        if let Some(heading) = line.strip_prefix("## `") {
            path = heading.split('`').next().unwrap_or_default();
        }
        let left_out = line.strip_prefix("[… ").and_then(|rest| rest.strip_suffix(" left out …]"));
        if let Some(left_out) = left_out {
            trace.add_event("cut", &[("path", path.into()), ("left_out", left_out.into())]);
        }
    }
}

fn untrack(input: &Untrack, state: &FileReferences) -> HookResult<FnResult<Untracked, FileReferences>> {
    let file = state.find(&input.path).ok_or_else(|| format!("no file `{}` is referenced", input.path))?;
    let path = file.path.clone();
    let index = state.position(&path).map_err(|_| "the file is not in its place")?;
    let mut state = state.clone();
    state.remove(index);
    Ok(FnResult::new(Untracked { path }).with_state(state))
}

fn sleep(duration: Duration) -> BoxFuture<'static, ()> {
    Box::pin(tokio::time::sleep(duration))
}

fn open_base(base: std::path::PathBuf) -> Result<Arc<dyn FsAdapter>, SpecError> {
    let opened = crate::fs::LocalFs::open(&base);
    let refuse = |error: contexture_core::host::FileError| {
        SpecError::layer(ID, "base_dir", format!("can't be opened: {}", error.message))
    };
    Ok(Arc::new(opened.map_err(refuse)?))
}
