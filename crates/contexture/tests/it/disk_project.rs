//! A real directory with an agent in an engine that works on it, for tests of what is held against the disk.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use contexture::decision::{Action, Decision};
use contexture::fold::Written;
use contexture::fs::LocalFs;
use contexture::host::{Base, FileError, FileStamp, FileText, FsAdapter, ReadLimits, SystemClock};
use contexture::layers::FileHistory;
use contexture::prelude::*;
use contexture::store::{MemoryStore, StorageAdapter};
use contexture::testing::{Recorder, ScriptedModel, engine};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

/// The files of a directory, and which of them were looked at and opened.
pub struct Watched {
    files: LocalFs,
    pub looked_at: Mutex<Vec<String>>,
    pub opened: Mutex<Vec<String>>,
}

impl Watched {
    fn new(base: &Path) -> Arc<Self> {
        let files = LocalFs::open(base).unwrap();
        Arc::new(Self { files, looked_at: Mutex::default(), opened: Mutex::default() })
    }

    pub fn counts(&self) -> (usize, usize) {
        (self.looked_at.lock().unwrap().len(), self.opened.lock().unwrap().len())
    }
}

impl FsAdapter for Watched {
    fn stat<'a>(&'a self, path: &'a str, limits: ReadLimits) -> BoxFuture<'a, Result<FileStamp, FileError>> {
        self.looked_at.lock().unwrap().push(path.to_owned());
        self.files.stat(path, limits)
    }

    fn read<'a>(&'a self, path: &'a str, limits: ReadLimits) -> BoxFuture<'a, Result<FileText, FileError>> {
        self.opened.lock().unwrap().push(path.to_owned());
        self.files.read(path, limits)
    }

    fn base_names(&self) -> Vec<String> {
        self.files.base_names()
    }

    fn base(&self) -> BoxFuture<'_, Base> {
        self.files.base()
    }
}

/// Reads lines of a real file, numbered; or those from the first to the last that do not begin with `hidden`.
struct Read {
    base: PathBuf,
    is_open: bool,
}

impl Tool for Read {
    fn name(&self) -> &str {
        if self.is_open { "ReadOpen" } else { "Read" }
    }

    fn description(&self) -> &str {
        "Reads a file."
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object", "required": ["file_path"] })
    }

    async fn call(&self, arguments: Value, _: ToolContext<'_>) -> Result<String, BoxError> {
        let text = fs::read_to_string(self.base.join(arguments["file_path"].as_str().unwrap_or_default()))?;
        let mut first = arguments["offset"].as_u64().unwrap_or(1) as usize;
        let mut most = arguments["limit"].as_u64().unwrap_or(u64::MAX) as usize;
        if self.is_open {
            let is_open = |line: &&str| !line.starts_with("hidden");
            first = text.lines().position(|line| is_open(&line)).unwrap_or(0) + 1;
            most = text.lines().filter(is_open).count();
        }
        let lines = text.lines().enumerate().skip(first - 1).take(most);
        Ok(lines.map(|(at, line)| format!("{}\t{line}\n", at + 1)).collect())
    }
}

/// Runs something that nobody understands.
struct Bash(PathBuf);

impl Tool for Bash {
    fn name(&self) -> &str {
        "Bash"
    }

    fn description(&self) -> &str {
        "Runs a command."
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object", "required": ["command"] })
    }

    async fn call(&self, arguments: Value, _: ToolContext<'_>) -> Result<String, BoxError> {
        let command = arguments["command"].as_str().unwrap_or_default();
        let output = std::process::Command::new("sh").arg("-c").arg(command).current_dir(&self.0).output()?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// Tells something at length that is no file's.
struct Lookup;

impl Tool for Lookup {
    fn name(&self) -> &str {
        "Lookup"
    }

    fn description(&self) -> &str {
        "Looks something up."
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object", "required": ["query"] })
    }

    async fn call(&self, arguments: Value, _: ToolContext<'_>) -> Result<String, BoxError> {
        let query = arguments["query"].as_u64().unwrap_or_default();
        Ok((0..30).map(|n| format!("Entry {query}.{n} of the encyclopedia tells of nothing new. ")).collect())
    }
}

/// A directory, and an agent that works in it.
pub struct Project {
    _folder: tempfile::TempDir,
    pub base: PathBuf,
    pub watched: Arc<Watched>,
    pub recorder: Recorder,
    pub budget: u64,
    store: Arc<dyn StorageAdapter>,
    model: ScriptedModel,
    layer: fn() -> FileHistory,
    execution: Option<Execution<(FileHistory,)>>,
}

impl Project {
    pub fn new(budget: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap().join("app");
        fs::create_dir(&base).unwrap();
        let watched = Watched::new(&base);
        let store: Arc<dyn StorageAdapter> = Arc::new(MemoryStore::new());
        let (recorder, model) = (Recorder::new(), ScriptedModel::new());
        let layer = FileHistory::default;
        Self { _folder: folder, base, watched, recorder, budget, store, model, layer, execution: None }
    }

    pub fn with_layer(mut self, layer: fn() -> FileHistory) -> Self {
        self.layer = layer;
        self
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.base.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// Another process takes over: all it has is the store.
    pub fn restart(&mut self) {
        (self.execution, self.model) = (None, ScriptedModel::new());
    }

    /// One turn, in which the agent makes these calls.
    pub async fn turn(&mut self, said: &str, calls: &[(&str, Value)]) {
        if self.execution.is_none() {
            let built = engine(memory(((self.layer)(),)))
                .store(self.store.clone())
                .model(self.model.clone())
                .fs(self.watched.clone())
                // Reading may take a moment, and the tests' own clock lets none pass.
                .clock(Arc::new(SystemClock::new()))
                .tool(Read { base: self.base.clone(), is_open: false })
                .tool(Read { base: self.base.clone(), is_open: true })
                .tool(Bash(self.base.clone()))
                .tool(Lookup)
                .observer(self.recorder.clone())
                .max_steps(200)
                .policy(ProjectionPolicy { response_reserve: 0, ..ProjectionPolicy::new(self.budget) })
                .build();
            self.execution = Some(built.unwrap().execution("t").start().await.unwrap());
        }
        for (tool, arguments) in calls {
            self.model.clone().calls(tool, arguments.to_string());
        }
        self.model.clone().says("Done.");
        self.execution.as_mut().unwrap().turn(said).await.unwrap();
    }

    /// The same with files that are read whole.
    pub async fn read(&mut self, paths: &[&str]) {
        let calls: Vec<(&str, Value)> = paths.iter().map(|path| ("Read", json!({ "file_path": path }))).collect();
        self.turn("Look.", &calls).await;
    }

    /// Looks things up until the past is folded again.
    pub async fn fill(&mut self) {
        let before = self.folds();
        for query in 0..60 {
            self.turn("And?", &[("Lookup", json!({ "query": query }))]).await;
            if self.folds() > before {
                return;
            }
        }
        panic!("nothing was folded");
    }

    pub fn decisions(&self, kind: &str) -> Vec<Decision> {
        let is_kind = |decision: &Decision| match &decision.action {
            Action::Layer(what) => what["decision"] == kind,
            _ => false,
        };
        self.recorder.decisions().into_iter().filter(is_kind).collect()
    }

    pub fn folds(&self) -> usize {
        self.decisions("fold").len()
    }

    /// The windows that were sent since the last restart.
    pub fn windows(&self) -> Vec<Vec<Arc<Item>>> {
        self.model.requests().into_iter().map(|request| request.items).collect()
    }

    /// What the last request shows that was made by the layer.
    pub fn made(&self) -> String {
        made_in(self.windows().last().unwrap())
    }
}

/// What a window shows that was made by the layer.
pub fn made_in(window: &[Arc<Item>]) -> String {
    let messages = window.iter().filter_map(|item| item.as_message());
    let made = messages.filter(|message| message.role == Role::Developer).map(|message| message.text());
    // The account of the earlier conversation shows nothing of files.
    let made = made.filter(|text| Written::of(text) != Written::Records);
    made.collect::<Vec<_>>().join("\n")
}

/// A file as a view shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Viewed {
    pub path: String,
    /// What the heading says behind the path, and what single runs say.
    pub told: String,
    pub lines: Vec<String>,
}

/// The files that a text shows.
pub fn views_in(text: &str) -> Vec<Viewed> {
    let mut views: Vec<Viewed> = Vec::new();
    let mut fence: Option<String> = None;
    for line in text.lines() {
        match (&fence, views.last_mut()) {
            (Some(open), _) if line == open => fence = None,
            (Some(_), Some(view)) => view.lines.push(line.to_owned()),
            (None, _) if line.starts_with("## `") => {
                let (path, told) = line[4..].split_once("`: ").unwrap();
                views.push(Viewed { path: path.to_owned(), told: told.to_owned(), lines: Vec::new() });
            }
            (None, Some(_)) if line.starts_with("```") => fence = Some(line.to_owned()),
            (None, Some(view)) if line.starts_with("from line ") || line.starts_with("lines of uncertain") => {
                view.told.push_str(line);
            }
            _ => {}
        }
    }
    views
}
