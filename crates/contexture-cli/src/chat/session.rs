//! An open thread: the engine, the files and the tools that a conversation needs.

use std::collections::HashSet;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::settings::keys::McpEntry;
use crate::settings::{Config, ConversationLayers, Remembering};
use contexture::engine::{AbortHandle, EngineBuilder};
use contexture::host::ProgramEnvironment;
use contexture::layers::{FileReference, FileReferenceOptions, Steering, built_in};
use contexture::personal::{MemoryOwner, PersonalMemory, is_remembered};
use contexture::prelude::*;
use contexture::store::{PairedStore, SqliteIndex, SqliteStore, StorageAdapter};
use contexture::tool::{Tool, wire_name};
use contexture::tools::{
    EditFile, ExecuteBash, ListFiles, McpAddress, McpServer, ReadFile, SearchFiles, Workspace, WriteFile,
};
use contexture_inspect::InspectServer;
use contexture_terminal::markdown::cut;
use tokio::sync::mpsc;

use super::editor_files::EditorFiles;
use super::form::ServerHost;
use super::gate::{COMMAND_TOOL, Permission, ToolGate};
use super::happening::{Happening, Tail, observer};
use super::parts::{PartTokens, SentItems};
use super::secrets::{FilesWithoutKeys, Secrets};
use super::threads::Threads;
use super::told::{Guarded, Teller};
use super::undo::UndoLog;
use super::unreachable::{short_addresses, unreachable_model};
use crate::endpoint::Endpoint;
use crate::environment::{variable, variables};
use crate::failure::Failure;
use crate::memory::embedder::embedder_of;
use crate::memory::learning::{extraction, memory_model};
use crate::memory::own::{memory_path, open_memory, project_at};

/// Whose memory it is: one person uses the store.
const USER: &str = "user";

/// The longest name of a tool that every provider accepts.
const MAX_WIRE_NAME: usize = 64;
/// The tool that looks through files.
const SEARCH_TOOL: &str = "search_files";

/// The layers of a conversation.
pub(super) type SessionLayers = ConversationLayers;

/// What a session is made of.
pub(super) struct SessionParts {
    pub(super) store: Arc<SqliteStore>,
    /// Where the store is.
    pub(super) path: PathBuf,
    pub(super) directory: PathBuf,
    pub(super) config: Config,
    pub(super) endpoint: Endpoint,
    pub(super) permission: Permission,
    /// MCP servers besides those of the configuration.
    pub(super) servers: Vec<McpEntry>,
    /// Files as an editor has them.
    pub(super) files: Option<EditorFiles>,
}

/// What a session is opened for.
pub(super) struct SessionRequest {
    pub(super) directory: PathBuf,
    pub(super) thread: ThreadChoice,
    /// The model, if it is another than the flags and the configuration say.
    pub(super) model: Option<String>,
    /// Servers that an editor brings.
    pub(super) servers: Vec<McpEntry>,
    /// Files as the editor has them.
    pub(super) files: Option<EditorFiles>,
}

/// Opens the session of a thread.
pub(super) trait SessionOpener {
    fn open(&self, wanted: SessionRequest) -> impl Future<Output = Result<ChatSession, Failure>>;
}

/// Which thread is opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ThreadChoice {
    New,
    /// The one that was used last.
    Newest,
    /// The one whose id begins so.
    Named(String),
}

impl ThreadChoice {
    /// The id of the thread that is meant.
    async fn id(&self, threads: &Threads) -> Result<String, Failure> {
        match self {
            ThreadChoice::New => Ok(Threads::fresh_id()),
            ThreadChoice::Newest => threads.newest().await,
            ThreadChoice::Named(begin) => threads.named(begin).await,
        }
    }
}

/// An open thread.
pub(super) struct ChatSession {
    engine: Engine<SessionLayers>,
    /// Whether the thread did not exist before.
    is_new: bool,
    pub(super) execution: Execution<SessionLayers>,
    pub(super) happenings: mpsc::UnboundedReceiver<Happening>,
    pub(super) store: Arc<dyn StorageAdapter>,
    pub(super) store_path: PathBuf,
    /// What is remembered beyond the thread.
    pub(super) memory: PersonalMemory,
    /// Whose it is.
    pub(super) project: MemoryOwner,
    pub(super) threads: Threads,
    pub(super) workspace: Workspace,
    pub(super) references: FileReference,
    pub(super) undo: UndoLog,
    pub(super) config: Config,
    pub(super) model: String,
    /// Where the key for it came from.
    key: Option<String>,
    /// What was sent last.
    sent: SentItems,
    /// Keys that no message says.
    secrets: Secrets,
    /// The page that shows the thread, once somebody asked for it.
    pub(super) inspector: Option<InspectServer>,
}

impl ChatSession {
    /// Opens a thread with everything that was kept of it.
    pub(super) async fn open(opening: SessionParts, thread: ThreadChoice) -> Result<Self, Failure> {
        let SessionParts { store, path, directory, config, endpoint, permission, servers, files } = opening;
        let Endpoint { client, mut key_variables, key } = endpoint;
        key_variables.extend(more_key_variables(&config));
        let threads = Threads::new(store.clone(), &directory);
        let id = thread.id(&threads).await?;
        let (sender, happenings) = mpsc::unbounded_channel();
        let undo = UndoLog::of(store.clone(), &id).await?;
        let steering = steering(&config, permission);
        let workspace = Workspace::open(&directory).map_err(|error| Failure::usage(error.to_string()))?;
        let gate = ToolGate::new(
            permission,
            sender.clone(),
            undo.clone(),
            steering.clone(),
            Arc::new(workspace.files().clone()),
        );
        let environment = ProgramEnvironment::select(variables(), &config.chat_environment());
        let environment = environment.without(&key_variables);
        let workspace = limited(workspace, &gate, &environment, &steering, files);
        let teller = Teller { happenings: sender, secrets: Secrets::known(&config, &key_variables) };
        let references = references(&config, &directory)?;
        let model = client.model().to_owned();
        let project = project_at(&directory);
        let (embedder, learner) = (embedder_of(&config)?, memory_model(&config)?);
        let remembering = Remembering { embedder, extraction: learner.as_ref().map(|_| extraction(&config)) };
        let own = builder(&config, &references, &workspace, &teller, &steering, &remembering)
            .build()
            .map_err(|error| failure_of(&error))?;
        let taken = taken_names(&own);
        let sent = SentItems::default();
        let client = sent.watching(client.on_retry(teller.retried()));
        let builder = builder(&config, &references, &workspace, &teller, &steering, &remembering).model(client);
        let builder = learner.into_iter().fold(builder, EngineBuilder::layer_model);
        let is_remembering = config.memory_enabled();
        let kept =
            if is_remembering { storage_with_memory(store)? } else { SessionStorage { store, index: path.clone() } };
        let index = Arc::new(SqliteIndex::new(&kept.index));
        let builder = builder.store(kept.store.clone()).search(index.clone());
        let servers = Servers {
            config: &config,
            more: servers,
            directory: &directory,
            environment,
            gate: &gate,
            teller: &teller,
            taken,
        };
        let builder = servers.add(builder).await?;
        let engine = builder.build().map_err(|error| failure_of(&error))?;
        let execution = started(&engine, &id, &project, is_remembering).await?;
        Ok(Self {
            is_new: thread == ThreadChoice::New,
            engine,
            execution,
            happenings,
            memory: PersonalMemory::new(kept.store.clone(), index),
            store: kept.store,
            store_path: path,
            project: MemoryOwner::Project(project),
            threads,
            workspace,
            references,
            undo,
            config,
            model,
            key,
            sent,
            secrets: teller.secrets,
            inspector: None,
        })
    }

    /// The thread's id.
    pub(super) fn thread(&self) -> String {
        self.execution.thread_id().as_str().to_owned()
    }

    /// What the model was sent last, by what it is; `None` before the first request.
    pub(super) fn parts(&self) -> Option<Vec<PartTokens>> {
        Some(self.sent.parts(self.execution.usage()?))
    }

    /// An error of a turn for people: a model that cannot be talked to is told with what to change.
    pub(super) fn failure_of(&self, error: &Error) -> Failure {
        unreachable_model(error, &self.model, self.key.as_deref()).unwrap_or_else(|| failure_of(error))
    }

    /// Whether a turn failed before anything of its thread happened, because the window has no room.
    pub(super) fn has_no_beginning(&self, error: &Error) -> bool {
        let is_first = self.is_new && self.execution.log().user_messages() <= 1;
        is_first && matches!(error, Error::NoRoom { .. })
    }

    /// Ends a session whose thread has no beginning, and leaves no thread.
    pub(super) async fn discard(self, error: &Error) -> Failure {
        let thread = self.thread();
        // If something of it cannot be removed, the thread is still listed, and nothing worse.
        let _ = self.execution.abort().await;
        let _ = self.engine.delete_thread(thread.as_str()).await;
        let _ = self.threads.remove(&thread).await;
        failure_of(error)
    }

    /// Whether the last message of the person is among these items.
    pub(super) fn has_shortened_message(&self, items: &[usize]) -> bool {
        let is_said = |item: &&contexture::item::Item| item.is_message_of(contexture::item::Role::User);
        let log = self.execution.log();
        let last = log.iter().enumerate().filter(|(_, item)| is_said(item)).map(|(at, _)| at).last();
        last.is_some_and(|last| items.contains(&last))
    }

    /// Makes ready for a turn, before anything of it happens: the text is left without keys, the thread is listed, and
    /// changes are kept for it. Without a text the unfinished turn goes on.
    pub(super) async fn begin(&mut self, text: Option<&mut String>) -> Result<AbortHandle, Failure> {
        let text = text.map(|text| {
            *text = self.secrets.hidden_in(mem::take(text));
            text.as_str()
        });
        let asked = self.execution.log().user_messages();
        self.undo.begin(if text.is_some() { asked + 1 } else { asked });
        self.threads.note(&self.thread(), text.unwrap_or_default()).await?;
        Ok(self.execution.abort_handle())
    }
}

/// The files and programs of a session, as far as its gate lets the model use them.
fn limited(
    workspace: Workspace,
    gate: &ToolGate,
    environment: &ProgramEnvironment,
    steering: &Steering,
    files: Option<EditorFiles>,
) -> Workspace {
    let workspace = workspace.with_approval(gate.clone()).with_environment(environment.clone());
    let workspace = workspace.hiding(steering.denied_paths(SEARCH_TOOL).map(str::to_owned));
    match files {
        Some(files) => workspace.with_open_files(Arc::new(files)),
        None => workspace,
    }
}

/// The variables that keys of MCP servers and of the memory's endpoints are taken from.
fn more_key_variables(config: &Config) -> Vec<String> {
    let of_servers = config.mcp().into_iter().filter_map(|entry| entry.token_env);
    let of_memory = [config.memory_embedder_key_env(), config.memory_model_key_env()];
    of_servers.chain(of_memory.into_iter().flatten()).collect()
}

/// Where a conversation and what is remembered of it are kept.
struct SessionStorage {
    store: Arc<dyn StorageAdapter>,
    /// The file whose passages are searched.
    index: PathBuf,
}

/// What is remembered is in the person's own memory, which other commands and agents share.
fn storage_with_memory(store: Arc<SqliteStore>) -> Result<SessionStorage, Failure> {
    let index = memory_path()?;
    let without = "`memory.enabled = false` in your configuration does without it";
    let shared = open_memory(&index).map_err(|failure| failure.hint(without))?.store;
    Ok(SessionStorage { store: Arc::new(PairedStore::new(store, shared, is_remembered)), index })
}

/// The rules of the configuration. Where a person is asked, calls that are not understood are left to them.
fn steering(config: &Config, permission: Permission) -> Steering {
    let steering = config.steering().unwrap_or_default().with_dialects(config.dialects());
    if permission != Permission::Ask {
        return steering;
    }
    let servers: Vec<String> = config.mcp().into_iter().map(|entry| format!("{}/", entry.name)).collect();
    steering.asking_about(move |tool| {
        tool == COMMAND_TOOL || servers.iter().any(|server| tool.starts_with(server.as_str()))
    })
}

/// The files that messages name. They are read as all layers of the engine read files: without keys.
fn references(config: &Config, directory: &Path) -> Result<FileReference, Failure> {
    let options = FileReferenceOptions { base_dir: None, ..config.file_reference(directory.to_owned()) };
    FileReference::new(options).map_err(|error| {
        Failure::usage(error.to_string()).hint("check the section [file-reference] of the configuration")
    })
}

/// The engine without a model and a store: layers, tools and limits.
fn builder(
    config: &Config,
    references: &FileReference,
    workspace: &Workspace,
    teller: &Teller,
    steering: &Steering,
    remembering: &Remembering,
) -> EngineBuilder<SessionLayers> {
    let layers = config.conversation(references.clone(), config.file_history(), steering.clone(), remembering);
    contexture::in_memory(layers)
        .fs(Arc::new(FilesWithoutKeys { files: workspace.files().clone(), secrets: teller.secrets.clone() }))
        .policy(ProjectionPolicy::new(config.budget()))
        .instructions(config.told())
        .observer(observer(teller.happenings.clone()))
        .tool(teller.told(ReadFile::new(workspace.clone())))
        .tool(teller.told(WriteFile::new(workspace.clone())))
        .tool(teller.told(EditFile::new(workspace.clone())))
        .tool(teller.told(SearchFiles::new(workspace.clone())))
        .tool(teller.told(ListFiles::new(workspace.clone())))
        .tool(teller.told(ExecuteBash::new(workspace.clone()).watched(teller.printed())))
}

/// The names that tools of a session have for the model. The functions of a layer can be called by their own names too.
fn taken_names(engine: &Engine<SessionLayers>) -> HashSet<String> {
    let functions = built_in().into_iter().flat_map(|layer| layer.tools).map(|name| wire_name(&name));
    engine.tool_schemas().iter().map(|schema| schema.name.clone()).chain(functions).collect()
}

/// Starts the execution of a thread. What was told for all projects belongs to the person.
async fn started(
    engine: &Engine<SessionLayers>,
    id: &str,
    project: &str,
    is_remembering: bool,
) -> Result<Execution<SessionLayers>, Failure> {
    let execution = engine.clone().execution(id).resource_of("project", project);
    let execution = if is_remembering { execution.resource(USER) } else { execution };
    execution.start().await.map_err(|error| failure_of(&error))
}

/// The MCP servers of the configuration.
struct Servers<'a> {
    config: &'a Config,
    /// Those that are not in the configuration.
    more: Vec<McpEntry>,
    directory: &'a Path,
    environment: ProgramEnvironment,
    gate: &'a ToolGate,
    teller: &'a Teller,
    /// The names that tools have for the model.
    taken: HashSet<String>,
}

impl Servers<'_> {
    /// Starts them, and adds their tools.
    async fn add(mut self, mut builder: EngineBuilder<SessionLayers>) -> Result<EngineBuilder<SessionLayers>, Failure> {
        for entry in self.config.mcp().into_iter().chain(std::mem::take(&mut self.more)) {
            let variables = entry.env.iter().filter_map(|text| text.split_once('='));
            let environment = variables.fold(self.environment.clone(), |all, (name, value)| all.with(name, value));
            let name = &entry.name;
            let host = ServerHost {
                happenings: self.teller.happenings.clone(),
                can_ask: self.gate.can_ask(),
                progress: Tail::default(),
            };
            let host = Arc::new(host);
            let server = match address_of(&entry)? {
                Some(address) => McpServer::connect(name, &address, host).await,
                None => {
                    let (command, directory) = (&entry.command, self.directory);
                    McpServer::start_for(name, command, &entry.args, &environment, directory, host).await
                }
            };
            let server = server.map_err(|error| {
                Failure::work(chain(&error))
                    .hint(format!("check [[mcp]] `{name}` in the configuration, or pass --no-config"))
            })?;
            for repeated in server.repeated() {
                self.refuse(&format!("{name}/{repeated}"), "the server has two tools of this name");
            }
            for tool in server.tools() {
                let wire = wire_name(tool.name());
                if wire.len() > MAX_WIRE_NAME {
                    self.refuse(tool.name(), "its name is too long for models");
                } else if !self.taken.insert(wire) {
                    self.refuse(tool.name(), "another tool has this name");
                } else {
                    builder = builder.tool(self.teller.told(Guarded::new(tool, self.gate)));
                }
            }
        }
        Ok(builder)
    }

    /// Says that a tool is left out; the conversation goes on without it.
    fn refuse(&self, tool: &str, reason: &str) {
        let line = format!("the tool `{}` is left out: {reason}", cut(tool, MAX_WIRE_NAME));
        // If nobody looks any more, the session is about to be dropped.
        let _ = self.teller.happenings.send(Happening::Fault(line));
    }
}

/// Where a server over HTTP is, with the token for it.
fn address_of(entry: &McpEntry) -> Result<Option<McpAddress>, Failure> {
    let Some(url) = entry.url.clone() else { return Ok(None) };
    let mut headers = entry.headers.clone();
    if let Some(name) = &entry.token_env {
        let token = variable(name).ok_or_else(|| {
            Failure::usage(format!("the variable `{name}` is not set"))
                .hint(format!("[[mcp]] `{}` takes its token from it", entry.name))
        })?;
        headers.push(("authorization".to_owned(), format!("Bearer {}", token.trim())));
    }
    Ok(Some(McpAddress { url, headers }))
}

/// An error of the engine for people.
pub(super) fn failure_of(error: &Error) -> Failure {
    let text = short_addresses(&chain(error));
    match (error, text.split_once("\nhint: ")) {
        (Error::Held(_), Some((sentence, _))) => {
            Failure::usage(sentence).hint("end the other program, or begin another thread")
        }
        (Error::NoRoom { .. }, None) => {
            Failure::usage(text).hint("`--budget TOKENS` makes the window larger; 112 000 is usual")
        }
        (_, Some((sentence, hint))) => Failure::work(sentence).hint(hint.lines().next().unwrap_or_default()),
        (Error::Model(_), None) => Failure::work(text).hint("`contexture chat --continue` tries again"),
        (_, None) => Failure::work(text),
    }
}

/// An error with what caused it, on one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text.push_str(&format!(": {error}"));
        source = error.source();
    }
    text
}
