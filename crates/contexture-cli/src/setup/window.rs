//! `contexture config window`: the window that would be sent to a model now.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::settings::{Command, Config, Remembering};
use clap::Args;
use contexture::engine::{Engine, EngineBuilder};
use contexture::fs::LocalFs;
use contexture::host::{FileStamp, FsAdapter, ReadLimits};
use contexture::layers::file_reference::{FileReport, ReportStatus};
use contexture::layers::{FileHistory, FileReference};
use contexture::personal::is_remembered;
use contexture::prelude::*;
use contexture::store::{MemoryStore, SqliteIndex, StorageAdapter, StoreError};
#[cfg(unix)]
use contexture::tools::{EditFile, ExecuteBash, ListFiles, ReadFile, SearchFiles, Workspace, WriteFile};
use contexture::usage::Band;
use contexture::window::Window;
use serde_json::{Value, json};

use crate::config::{ConfigFlags, OfWindow};
use crate::failure::Failure;
use crate::memory::own::{memory_path, open_memory, project_at};
use contexture_measure::plot::short_count;
use contexture_terminal::harmless::for_output;
use contexture_terminal::screen::{Screen, TextStyle};
use contexture_terminal::table::{Align, TextTable};

/// How often `--watch` checks the files.
const WATCH_INTERVAL: Duration = Duration::from_millis(250);
/// The largest width of a bar of a map.
const BAR_CELLS: u64 = 32;
/// Its smallest width.
const MIN_BAR_CELLS: u64 = 4;
/// The columns of a map that are not names or bars: two numbers with their titles, and the gaps.
const MAP_NUMBERS: usize = 19;
/// The id of the thread that the window belongs to; it is not stored.
const THREAD: &str = "window";
/// Whose memory it is: one person uses it.
const USER: &str = "user";

/// Show the window that would be sent to a model for a message
///
/// It is what `contexture chat` sends first, with the same layers and tools, except those of MCP servers. Files that the
/// message names, as in `Look at #src/main.rs`, are part of it. No model is called and nothing is written.
#[derive(Args, Debug)]
pub(super) struct WindowCommand {
    /// The message; `-` reads it from standard input
    #[arg(long, short)]
    message: Option<String>,
    /// The directory that references are relative to
    #[arg(long, default_value = ".")]
    base: PathBuf,
    #[command(flatten)]
    config: ConfigFlags<OfWindow>,
    /// Print a table of tokens instead of the text
    #[arg(long, conflicts_with = "json")]
    map: bool,
    /// Print everything as JSON
    #[arg(long)]
    json: bool,
    /// Print it again whenever a referenced file changes
    #[arg(long)]
    watch: bool,
}

/// Everything that is printed about one window.
struct WindowReport {
    window: Window,
    /// The names of the tools that the model is offered.
    tools: Vec<String>,
    references: Vec<FileReport>,
}

/// Runs the command.
///
/// # Errors
/// Invalid usage, or a window that cannot be built.
pub(super) fn run(command: &WindowCommand, screen: Screen) -> Result<(), Failure> {
    let config = command.config.load(Command::Window, &command.base)?;
    let message = message(command)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let report = assemble(command, &config, &message).await?;
        print(command, &report, screen)?;
        if command.watch { watch(command, &config, &message, report, screen).await } else { Ok(()) }
    })
}

fn message(command: &WindowCommand) -> Result<String, Failure> {
    match command.message.as_deref() {
        Some("-") => {
            let mut text = String::new();
            io::stdin()
                .read_to_string(&mut text)
                .map_err(|error| Failure::work(format!("read the message: {error}")))?;
            Ok(text)
        }
        Some(text) => Ok(text.to_owned()),
        None => Err(Failure::usage("`config window` needs a message")
            .hint("write it as `contexture config window --message \"Look at #README.md\"`")),
    }
}

/// Builds the window with a new engine, so that a second run reads the files again.
async fn assemble(command: &WindowCommand, config: &Config, message: &str) -> Result<WindowReport, Failure> {
    let files = FileReference::new(config.file_reference(command.base.clone())).map_err(|error| {
        Failure::usage(error.to_string()).hint("check `--base` and the section [file-reference] of the configuration")
    })?;
    let policy = ProjectionPolicy { response_reserve: 0, ..ProjectionPolicy::new(config.budget()) }
        .with_overflow(config.overflow());
    let steering = config.steering().unwrap_or_default().with_dialects(config.dialects());
    // There is no past yet that could be folded.
    let history = FileHistory::default();
    let memory = config.conversation(files.clone(), history, steering, &Remembering::default());
    let builder = contexture::in_memory(memory).policy(policy).instructions(config.told());
    let builder = with_tools(builder, &command.base)?;
    let project = project_at(&command.base);
    let builder = if config.memory_enabled() { with_memory(builder).await? } else { builder };
    let engine = builder.build().map_err(|error| Failure::usage(error.to_string()))?;
    let tools = engine.tool_schemas().iter().map(|schema| schema.name.to_string()).collect();
    let window = first_window(&engine, &project, message).await.map_err(|error| match error {
        Error::NoRoom { .. } => Failure::usage(error.to_string()).hint("`--budget TOKENS` makes the window larger"),
        error => Failure::work(error.to_string()),
    })?;
    Ok(WindowReport { window, tools, references: files.report(&THREAD.into()) })
}

/// The engine with the tools of `chat`.
#[cfg(unix)]
fn with_tools<Ls>(builder: EngineBuilder<Ls>, base: &Path) -> Result<EngineBuilder<Ls>, Failure> {
    let workspace = Workspace::open(base).map_err(|error| Failure::usage(error.to_string()))?;
    Ok(builder
        .fs(Arc::new(workspace.files().clone()))
        .tool(ReadFile::new(workspace.clone()))
        .tool(WriteFile::new(workspace.clone()))
        .tool(EditFile::new(workspace.clone()))
        .tool(SearchFiles::new(workspace.clone()))
        .tool(ListFiles::new(workspace.clone()))
        .tool(ExecuteBash::new(workspace)))
}

/// There is no `chat` here, and so there are no tools of its own.
#[cfg(not(unix))]
fn with_tools<Ls>(builder: EngineBuilder<Ls>, _base: &Path) -> Result<EngineBuilder<Ls>, Failure> {
    Ok(builder)
}

/// The engine with what is remembered, if there is something. It reads the memory, and changes a copy of what it reads.
async fn with_memory<Ls>(builder: EngineBuilder<Ls>) -> Result<EngineBuilder<Ls>, Failure> {
    let path = memory_path()?;
    if !path.is_file() {
        return Ok(builder);
    }
    let failed = |error: StoreError| Failure::of(&error);
    let (memory, copy) = (open_memory(&path)?.store, MemoryStore::new());
    for key in memory.list("layers/").await.map_err(failed)?.into_iter().filter(|key| is_remembered(key)) {
        if let Some(record) = memory.get(&key).await.map_err(failed)? {
            copy.set(&key, record.value).await.map_err(failed)?;
        }
    }
    Ok(builder.store(Arc::new(copy)).search(Arc::new(SqliteIndex::new(&path))))
}

async fn first_window<Ls>(engine: &Engine<Ls>, project: &str, message: &str) -> Result<Window, Error> {
    let execution = engine.execution(THREAD).resource_of("project", project).resource(USER);
    let mut execution = execution.start().await?;
    execution.window(message).await
}

/// Prints the window again whenever a referenced file changed, until the program is stopped.
async fn watch(
    command: &WindowCommand,
    config: &Config,
    message: &str,
    first: WindowReport,
    screen: Screen,
) -> Result<(), Failure> {
    let files = LocalFs::open(&command.base).map_err(|error| Failure::usage(error.to_string()))?;
    let paths: Vec<String> = first.references.iter().map(|reference| reference.path.clone()).collect();
    let mut printed = first;
    loop {
        // Stamps are taken before the files are read, so that a change in between is noticed the next time.
        let before = stamps(&files, &paths).await;
        let report = assemble(command, config, message).await?;
        if report.window.items != printed.window.items {
            print(command, &report, screen)?;
            printed = report;
        }
        while stamps(&files, &paths).await == before {
            tokio::time::sleep(WATCH_INTERVAL).await;
        }
    }
}

async fn stamps(files: &LocalFs, paths: &[String]) -> Vec<Option<FileStamp>> {
    let limits = ReadLimits { max_bytes: u64::MAX, follow_symlinks: true };
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    let stamps = files.stat_many(&paths, limits).await;
    // `settled` depends on the time, not on the file.
    stamps.into_iter().map(|stamp| stamp.ok().map(|stamp| FileStamp { settled: true, ..stamp })).collect()
}

fn print(command: &WindowCommand, report: &WindowReport, screen: Screen) -> Result<(), Failure> {
    let text = match (command.json, command.map) {
        (true, _) => format!("{}\n", as_json(report)),
        (_, true) => as_map(report, screen),
        _ => as_text(&report.window, screen),
    };
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    Ok(stdout.flush()?)
}

/// The window for people: every section below a line that names its source.
fn as_text(window: &Window, screen: Screen) -> String {
    let mut text = String::new();
    let mut items = window.items.iter();
    for section in &window.sections {
        let layer = section.layer.as_ref().map_or(String::new(), |layer| format!(" · {layer}"));
        let heading = format!("── {}{layer} · {} tokens", band_name(section.band), short_count(section.tokens));
        text.push_str(&screen.paint(TextStyle::Bold, &heading));
        text.push('\n');
        for item in items.by_ref().take(section.items) {
            text.push_str(&format!("[{}] {}\n\n", kind_of(item), for_output(text_of(item).trim_end())));
        }
    }
    text.push_str(&total(window));
    text
}

/// The window as a table by band and layer, with the state of each reference.
fn as_map(report: &WindowReport, screen: Screen) -> String {
    let usage = &report.window.usage;
    let mut table = TextTable::new([
        ("band", Align::Left),
        ("layer", Align::Left),
        ("items", Align::Right),
        ("tokens", Align::Right),
        ("", Align::Left),
    ]);
    let fixed = [("system", usage.system), ("tools", usage.tools)];
    let fixed = fixed.into_iter().filter(|(_, tokens)| *tokens > 0).map(|(name, tokens)| (name, "", 1, tokens));
    let sections = report.window.sections.iter().map(|section| {
        let layer = section.layer.as_ref().map_or("", |layer| layer.as_str());
        (band_name(section.band), layer, section.items, section.tokens)
    });
    let rows: Vec<_> = fixed.chain(sections).collect();
    let largest = rows.iter().map(|row| row.3).max().unwrap_or(1).max(1);
    let names = rows.iter().map(|row| row.0.len().max("history".len()) + row.1.len().max("layer".len())).max();
    let cells = screen.columns.saturating_sub(names.unwrap_or(0) + MAP_NUMBERS) as u64;
    // A bar of a few cells would be useless.
    let cells = if cells < MIN_BAR_CELLS { 0 } else { cells.min(BAR_CELLS) };
    for (band, layer, items, tokens) in rows {
        let bar = "█".repeat((tokens * cells).div_ceil(largest) as usize);
        table.row([band.to_owned(), layer.to_owned(), items.to_string(), short_count(tokens), bar]);
    }
    format!("{}{}{}", table.fit(screen), total(&report.window), reference_table(&report.references, screen))
}

fn total(window: &Window) -> String {
    let (total, budget) = (short_count(window.usage.total()), short_count(window.usage.budget));
    format!("{total} of {budget} tokens\n")
}

fn reference_table(references: &[FileReport], screen: Screen) -> String {
    if references.is_empty() {
        return String::new();
    }
    let mut table = TextTable::new([
        ("file", Align::Name),
        ("state", Align::Left),
        ("priority", Align::Right),
        ("lines", Align::Right),
        ("tokens", Align::Right),
    ]);
    for reference in references {
        let shown =
            reference.code.map_or_else(|| status_name(reference.status).to_owned(), |code| code.as_str().to_owned());
        table.row([
            reference.path.clone(),
            shown,
            reference.priority.to_string(),
            reference.lines.to_string(),
            short_count(reference.tokens),
        ]);
    }
    format!("\n{}", table.fit(screen))
}

fn as_json(report: &WindowReport) -> Value {
    let usage = &report.window.usage;
    json!({
        "items": report.window.items,
        "sections": report.window.sections,
        "usage": {
            "total": usage.total(),
            "budget": usage.budget,
            "bands": {
                "system": usage.system + usage.tools,
                "anchor": usage.anchor,
                "history": usage.history,
                "live": usage.live,
                "updates": usage.updates,
                "tail": usage.tail,
            },
            "layers": usage.layers,
        },
        "tools": report.tools,
        "references": report.references,
    })
}

fn band_name(band: Band) -> &'static str {
    match band {
        Band::System => "system",
        Band::Anchor => "anchor",
        Band::History => "history",
        Band::Live => "live",
        Band::Updates => "updates",
        Band::Tail => "tail",
    }
}

fn status_name(status: ReportStatus) -> &'static str {
    match status {
        ReportStatus::Shown => "shown",
        ReportStatus::Excerpt => "head and tail",
        ReportStatus::NoRoom => "no room",
        ReportStatus::Aged => "named only",
        ReportStatus::Deleted => "deleted",
        ReportStatus::Error => "error",
    }
}

fn kind_of(item: &Item) -> &'static str {
    match item {
        Item::Message(message) => message.role.as_str(),
        Item::FunctionCall(_) => "call",
        Item::FunctionCallOutput(_) => "output",
        Item::Reasoning(_) => "reasoning",
        Item::Opaque(_) => "other",
    }
}

fn text_of(item: &Item) -> String {
    match item {
        Item::Message(message) => message.text(),
        Item::FunctionCall(call) => format!("{} {}", call.name, call.arguments),
        Item::FunctionCallOutput(output) => output.output.clone(),
        Item::Reasoning(reasoning) => reasoning.text.clone(),
        Item::Opaque(value) => value.to_string(),
    }
}
