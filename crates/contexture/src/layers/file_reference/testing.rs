//! The layer in a conversation without an engine, for tests and benchmarks of the layer alone.

use std::sync::Arc;
use std::time::Duration;

use contexture_core::error::BoxError;
use contexture_core::host::FsAdapter;
use contexture_core::layer::{MemoryLayer, OnItemAppendResult};
use contexture_core::model::MemoryCallModelRequest;
use contexture_core::tokens::{Estimate, TokenCounter};
use contexture_core::{Item, ItemLog, SpecError, ThreadId};
use futures_util::future::BoxFuture;

use super::score::Scorer;
use super::tracker::{LayerHost, MessageRoom};
use super::{FileReference, FileReferenceOptions, FileReferences, FileReport, Untrack, untrack};

/// A model as a function from a prompt to a response.
pub type Answer = dyn Fn(&MemoryCallModelRequest) -> Result<String, BoxError> + Send + Sync;

/// A thread with only this layer.
pub struct Conversation {
    options: FileReferenceOptions,
    layer: FileReference,
    fs: Arc<dyn FsAdapter>,
    model: Option<Arc<Answer>>,
    /// The counter for budgets.
    pub counter: Arc<dyn TokenCounter>,
    /// The layer's token budget.
    pub budget: u64,
    log: ItemLog,
    state: Arc<FileReferences>,
    thread_id: ThreadId,
}

/// The result of appending items.
#[derive(Clone, Debug, PartialEq)]
pub struct Appended {
    /// The items as they were logged.
    pub items: Vec<Item>,
    /// Whether the state changed, so that it is written.
    pub state_changed: bool,
    /// Whether the layer wants to be recalled again.
    pub rerender: bool,
}

impl Conversation {
    /// Creates an empty thread over these files.
    ///
    /// # Errors
    /// The options are invalid.
    pub fn new(fs: Arc<dyn FsAdapter>, options: FileReferenceOptions) -> Result<Self, SpecError> {
        Ok(Self {
            layer: FileReference::new(options.clone())?,
            options,
            fs,
            model: None,
            counter: Arc::new(Estimate),
            budget: 10_000,
            log: ItemLog::new(),
            state: Arc::default(),
            thread_id: ThreadId::from("thread"),
        })
    }

    /// Adds a model that scores.
    pub fn with_model(
        mut self,
        model: impl Fn(&MemoryCallModelRequest) -> Result<String, BoxError> + Send + Sync + 'static,
    ) -> Self {
        self.model = Some(Arc::new(model));
        self
    }

    /// Sets another counter.
    pub fn with_counter(mut self, counter: Arc<dyn TokenCounter>) -> Self {
        self.counter = counter;
        self
    }

    /// The user says something.
    pub async fn say(&mut self, text: &str) -> Appended {
        self.append(vec![Item::user(text)]).await
    }

    /// The model calls a tool with these arguments, and the tool returns.
    pub async fn use_tool(&mut self, arguments: &str, output: &str) -> Appended {
        let call_id = self.log.len().to_string();
        self.log.append(Item::call(&call_id, "tool", arguments), 1);
        self.append(vec![Item::output(&call_id, output)]).await
    }

    /// Appends items.
    pub async fn append(&mut self, items: Vec<Item>) -> Appended {
        let model = self.model.clone().map(Asked);
        let host = host(&self.layer, &*self.fs, &model);
        let room = MessageRoom { budget: self.budget, counter: &*self.counter };
        let taken_in = self.layer.tracker.take_in(host, &self.thread_id, &self.state, items, &self.log, room).await;
        let OnItemAppendResult { items, state, rerender } = taken_in;
        let appended = Appended { items, state_changed: state.is_some(), rerender: rerender.is_some() };
        for item in &appended.items {
            self.log.append(item.clone(), 1);
        }
        self.state = state.map_or_else(|| self.state.clone(), Arc::new);
        appended
    }

    /// The layer's message.
    pub async fn recall(&mut self) -> Option<String> {
        let model = self.model.clone().map(Asked);
        let (host, turn) = (host(&self.layer, &*self.fs, &model), self.log.user_messages());
        let room = MessageRoom { budget: self.budget, counter: &*self.counter };
        let recalled = self.layer.tracker.recall(host, &self.thread_id, &self.state, turn, room).await;
        self.state = recalled.state.map_or_else(|| self.state.clone(), Arc::new);
        recalled.page.text().map(str::to_owned)
    }

    /// The user says something, and the message is rendered.
    pub async fn ask(&mut self, text: &str) -> String {
        self.say(text).await;
        self.recall().await.unwrap_or_default()
    }

    /// Removes a file.
    ///
    /// # Errors
    /// There is no such file.
    pub fn untrack(&mut self, path: &str) -> Result<(), BoxError> {
        let answer = untrack(&Untrack { path: path.to_owned() }, &self.state)?;
        self.state = answer.state.map_or_else(|| self.state.clone(), Arc::new);
        Ok(())
    }

    /// Restarts the program: only durable state is kept.
    ///
    /// # Errors
    /// The state could not be written or read.
    pub fn restart(&mut self) -> Result<(), BoxError> {
        self.layer = FileReference::new(self.options.clone())?;
        self.state = Arc::new(serde_json::from_slice(&serde_json::to_vec(&*self.state)?)?);
        Ok(())
    }

    /// Creates a child thread, as `on_spawn` does.
    pub fn spawn(&self) -> Conversation {
        Conversation {
            options: self.options.clone(),
            layer: self.layer.clone(),
            fs: self.fs.clone(),
            model: self.model.clone(),
            counter: self.counter.clone(),
            budget: self.budget,
            log: ItemLog::new(),
            state: Arc::new(self.state.for_child(self.layer.tracker.settings.ageing_turns)),
            thread_id: ThreadId::from("child"),
        }
    }

    /// Takes over the state of a child, as `on_return` does.
    pub fn take_back(&mut self, child: &Conversation) {
        if let Some(state) = self.state.with_files_of_child(&child.state) {
            self.state = Arc::new(state);
        }
    }

    /// The layer's state.
    pub fn state(&self) -> &FileReferences {
        &self.state
    }

    /// The layer's report on the last message.
    pub fn report(&self) -> Vec<FileReport> {
        self.layer.report(&self.thread_id)
    }

    /// The correction between two of the layer's messages.
    pub fn delta(&self, pinned: &str, current: &str) -> Option<String> {
        self.layer.render_delta(&[Item::developer(pinned).into()], &[Item::developer(current).into()])
    }
}

struct Asked(Arc<Answer>);

impl Scorer for Asked {
    fn ask(&self, request: MemoryCallModelRequest) -> BoxFuture<'_, Result<String, BoxError>> {
        Box::pin(async move { (self.0)(&request) })
    }
}

fn host<'a>(layer: &'a FileReference, fs: &'a dyn FsAdapter, model: &'a Option<Asked>) -> LayerHost<'a> {
    let fs = layer.files.as_deref().unwrap_or(fs);
    LayerHost { fs, scorer: model.as_ref().map(|asked| asked as &dyn Scorer), sleep: &never }
}

/// A clock on which nothing waits: models respond at once.
fn never(_: Duration) -> BoxFuture<'static, ()> {
    Box::pin(std::future::pending())
}
