//! The commands of a conversation: `/help`, `/context`, `/files` and so on.

use std::sync::Arc;

use contexture::decision::{Action, Decision, EpochReason};
use contexture::error::{Error, FunctionError};
use contexture::facts::{Added, FactId, Place, day, speaker};
use contexture::files::model::Fact;
use contexture::fold::{Folder, Meter, Policy};
use contexture::item::Item;
use contexture::layers::plan::{Phase, Status};
use contexture::layers::working_memory::Notes;
use contexture::layers::{Plan, WorkingMemory};
use contexture::personal::MemoryOwner;
use contexture::store::Key;
use contexture::tokens::Estimate;
use contexture::usage::StepUsage;
use contexture_inspect::view::About;
use contexture_inspect::{Archive, InspectServer, library};
use serde::Deserialize;

use super::happening::one_line;
use super::session::{ChatSession, SessionLayers, chain, failure_of};
use super::spent;
use super::threads::store_failed;
use super::undo::Undone;
use crate::failure::Failure;
use crate::memory::now_ms;
use contexture_measure::plot::short_count;
use contexture_terminal::harmless::{on_one_line, written_out};
use contexture_terminal::screen::Screen;
use contexture_terminal::table::{Align, TextTable};

/// The cells of the widest bar.
const BAR_CELLS: u64 = 24;

/// The most characters of an item in `/why`.
const MAX_ITEM_CHARS: usize = 60;

/// The most characters of a line in `/plan`.
const MAX_PLAN_CHARS: usize = 200;

/// The most decisions that `/why` shows.
const MAX_DECISIONS: usize = 20;

/// What a command leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CommandOutcome {
    /// This is shown.
    Shown(String),
    /// The interrupted turn goes on.
    Continue,
    /// A new conversation begins.
    New,
    /// The conversation goes on with another model.
    Model(String),
    /// The conversation ends.
    Quit,
}

/// The commands, with what is written after each.
const COMMANDS: [(&str, &str, &str); 14] = [
    ("/help", "", "this list"),
    ("/context", "", "what the model was sent last, in seven parts, and what is free"),
    ("/files", "", "what is known of each file, and how well"),
    ("/model", "NAME", "which model it is; with a name, goes on with that one"),
    ("/new", "", "begins a new conversation"),
    ("/cost", "", "tokens and dollars of this conversation since it was opened"),
    (
        "/memory",
        "",
        "the notes that the model keeps, and what is remembered of this project; `/memory add TEXT` adds a fact, `/memory forget ID` forgets one",
    ),
    ("/plan", "", "the plan that the model works by, and how far it has come"),
    ("/why", "ITEM", "what was decided about the past; ITEM is a number of the log or a word of the reason"),
    ("/undo", "", "takes back the file changes of the last turn that made any"),
    ("/continue", "", "goes on with a turn that was interrupted; an empty line does the same"),
    ("/threads", "", "the threads of this directory"),
    ("/inspect", "", "opens a page that shows what the model was sent, and says where the thread is kept"),
    ("/quit", "", "ends; so do Ctrl-D and Ctrl-C twice"),
];

/// The commands that begin so, if a text may become one: with what each does.
pub(super) fn beginning(text: &str) -> Vec<(&'static str, &'static str)> {
    let is_begun = text.starts_with('/') && !text.contains(char::is_whitespace);
    let begin = |(name, _, says): &(&'static str, &'static str, &'static str)| {
        (is_begun && name.starts_with(text)).then_some((*name, *says))
    };
    COMMANDS.iter().filter_map(begin).collect()
}

/// Runs a command; `None` if the text is none.
pub(super) async fn run(
    session: &mut ChatSession,
    text: &str,
    screen: Screen,
) -> Result<Option<CommandOutcome>, Failure> {
    let Some(words) = text.trim().strip_prefix('/') else { return Ok(None) };
    let (name, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    let shown = match name {
        "help" => help(screen),
        "context" => context(session, screen),
        "files" => files(session, screen),
        "memory" => memory(session, rest.trim()).await,
        "plan" => plan(session),
        "why" => why(session, rest.trim()).await?,
        "undo" => undo(session).await?,
        "threads" => session.threads.table(screen).await?,
        "inspect" => inspect(session).await?,
        "cost" => cost(session),
        "model" if rest.trim().is_empty() => format!("{}\n", written_out(&session.model)),
        "model" => return Ok(Some(CommandOutcome::Model(rest.trim().to_owned()))),
        "new" => return Ok(Some(CommandOutcome::New)),
        "continue" => return Ok(Some(CommandOutcome::Continue)),
        "quit" | "exit" => return Ok(Some(CommandOutcome::Quit)),
        // A path begins so too.
        other if other.contains('/') => return Ok(None),
        other => format!("There is no command `/{}`; `/help` lists all.\n", written_out(other)),
    };
    Ok(Some(CommandOutcome::Shown(shown)))
}

fn help(screen: Screen) -> String {
    let mut table = TextTable::new([("command", Align::Left), ("what it does", Align::Prose)]);
    for (name, argument, says) in COMMANDS {
        table.row([format!("{name} {argument}").trim_end().to_owned(), says.to_owned()]);
    }
    table.row(["#".to_owned(), "completes files: letters in order, Tab or Enter takes one".to_owned()]);
    table.fit(screen)
}

/// What the conversation used since it was opened.
fn cost(session: &ChatSession) -> String {
    let request = session.execution.usage().map_or(0, StepUsage::total);
    let spent = spent::line(&session.model, Default::default(), session.execution.token_usage(), request, 0);
    spent.map_or("Nothing was used yet, or the provider does not say.\n".to_owned(), |line| format!("{line}\n"))
}

fn context(session: &ChatSession, screen: Screen) -> String {
    let (Some(usage), Some(parts)) = (session.execution.usage(), session.parts()) else {
        return "Nothing was sent yet in this session.\n".to_owned();
    };
    let free = usage.budget.saturating_sub(usage.total() + usage.response_reserve);
    let rest = [("free", "", free), ("kept", "free for the answer", usage.response_reserve)];
    let rows = parts.iter().map(|part| (part.part.label(), part.says, part.tokens)).chain(rest);
    let mut table = TextTable::new([
        ("part", Align::Left),
        ("tokens", Align::Right),
        ("", Align::Left),
        ("what it is", Align::Prose),
    ]);
    let cells = BAR_CELLS.min(screen.columns.saturating_sub(50) as u64);
    for (name, says, tokens) in rows {
        let bar = "█".repeat((tokens * cells).div_ceil(usage.budget.max(1)) as usize);
        table.row([name.to_owned(), short_count(tokens), bar, says.to_owned()]);
    }
    format!(
        "{}{} of {} tokens; {} of them were in the last request too, which a provider's cache serves\n",
        table.fit(screen),
        short_count(usage.total()),
        short_count(usage.budget),
        short_count(usage.kept_tokens),
    )
}

/// What the conversation shows of each file.
fn files(session: &ChatSession, screen: Screen) -> String {
    let mut folder = Folder::new(Policy::new(u64::MAX >> 24), Meter::new(Arc::new(Estimate)));
    folder = folder.with_dialects(session.config.dialects());
    for item in session.execution.log().iter() {
        folder.push([(Arc::new(item.clone()), 0)]);
    }
    let model = folder.model();
    let mut table = TextTable::new([
        ("file", Align::Name),
        ("lines", Align::Right),
        ("known", Align::Left),
        ("read", Align::Right),
        ("changed", Align::Right),
    ]);
    let mut count = 0;
    for (index, file) in model.files().iter().enumerate() {
        let claims = file.segments.iter().enumerate();
        let fact = claims.map(|(at, segment)| model.claim(index, at, 0..segment.lines.len()).fact).min();
        let known = match (file.deleted, fact) {
            (true, _) => "deleted",
            (false, None) => "by name",
            (false, Some(Fact::Changed)) => "changed since",
            (false, Some(Fact::Seen)) => "as seen",
            (false, Some(Fact::Verified)) => "verified",
        };
        let whole = if model.claim_whole(index).is_some() { " (all)" } else { "" };
        let lines = format!("{}{whole}", file.known_lines());
        table.row([file.path.clone(), lines, known.to_owned(), file.reads.to_string(), file.edits.to_string()]);
        count += 1;
    }
    for report in session.references.report(session.execution.thread_id()) {
        let lines = report.lines.to_string();
        table.row([format!("#{}", report.path), lines, "in the window".to_owned(), String::new(), String::new()]);
        count += 1;
    }
    if count == 0 { "No file was read, changed or named yet.\n".to_owned() } else { table.fit(screen) }
}

/// What is kept in mind and what is remembered, or forgets a fact.
async fn memory(session: &ChatSession, rest: &str) -> String {
    let (action, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let is_on = session.config.memory_enabled();
    let told = match (action, text.trim()) {
        ("add" | "forget", _) if !is_on => return NOT_REMEMBERING.to_owned(),
        ("add", "") => Err("write `/memory add` and a sentence".to_owned()),
        ("forget", "") => Err("write `/memory forget` and the id of a fact".to_owned()),
        ("add", text) => add(session, text).await,
        ("forget", id) => forget(session, id).await,
        _ => facts(session).await.map(|facts| format!("{}{facts}", notes(session))),
    };
    told.unwrap_or_else(|problem| format!("{}\n", written_out(&problem)))
}

const NOT_REMEMBERING: &str =
    "Nothing is remembered here; `memory.enabled = true` in the configuration changes that.\n";

/// Where facts are that a conversation shows: those of the project, and what the person told for all projects.
fn places(session: &ChatSession) -> [Place; 3] {
    let project = session.project.place();
    let observed = Place { layer: "observations-project".to_owned(), ..project.clone() };
    [project, observed, MemoryOwner::Person.place()]
}

/// Remembers what the person tells of this project. The running layer has it with the next turn, which unites what both
/// know.
async fn add(session: &ChatSession, text: &str) -> Result<String, String> {
    let added = session.memory.tell(&session.project, text, now_ms()).await;
    match added.map_err(|error| error.to_string())? {
        Added::New(id) => Ok(format!("Remembered as {id}.\n")),
        Added::Known(id) => Ok(format!("{id} says so already.\n")),
    }
}

/// Forgets a fact: in the running layer, which also removes what it came from, and in the store.
async fn forget(session: &ChatSession, id: &str) -> Result<String, String> {
    let mut problem = format!("there is no fact `{id}`");
    let mut is_done = false;
    let remembered = session.memory.remembered();
    for place in places(session) {
        let input = serde_json::json!({ "id": id });
        match session.execution.memory().call_json(&format!("{}/forget", place.layer), input).await {
            Ok(_) => is_done = true,
            Err(Error::Function(FunctionError::Unknown { .. })) => {}
            Err(error) => problem = chain(&error),
        }
        let id = FactId::from(id);
        is_done |= remembered.change(&place, |facts| facts.forget(&id, now_ms())).await.is_ok();
    }
    if is_done { Ok("Forgotten.\n".to_owned()) } else { Err(problem) }
}

/// The facts that are remembered, each on a line with its id, who said it and since when.
async fn facts(session: &ChatSession) -> Result<String, String> {
    let remembered = session.memory.remembered();
    let mut lines = String::new();
    for place in places(session) {
        let facts = remembered.load(&place).await.map_err(|error| error.to_string())?.unwrap_or_default();
        for fact in facts.current() {
            let line = format!("[{}] {} ({}, {})", fact.id, fact.text, speaker(fact), day(fact.valid_from_ms));
            lines.push_str(&format!("{}\n", on_one_line(&line)));
        }
    }
    Ok(lines)
}

fn notes(session: &ChatSession) -> String {
    let notes = match session.execution.memory().state::<WorkingMemory, _>() {
        Notes::Text(text) => text,
        Notes::Object(object) => serde_json::to_string_pretty(&object).unwrap_or_default(),
    };
    match notes.trim() {
        "" => "The model has kept no notes.\n".to_owned(),
        notes => format!("{}\n", written_out(notes)),
    }
}

fn plan(session: &ChatSession) -> String {
    let plan = session.execution.memory().state::<Plan, _>();
    if plan.steps().is_empty() {
        return "The model has made no plan.\n".to_owned();
    }
    let phase = match plan.phase() {
        Phase::Executing => "it is carried out",
        Phase::Finished => "every step is done or skipped",
        _ => "not approved yet: only tools that read may run",
    };
    let mut text = format!("{} ({phase})\n", one_line(plan.goal(), MAX_PLAN_CHARS));
    let next = plan.next().map(|step| step.id.as_str());
    for step in plan.steps() {
        let mark = match step.status {
            Status::Done => "✓",
            Status::Failed => "✗",
            Status::Skipped => "–",
            _ if next == Some(step.id.as_str()) => "▸",
            _ => "·",
        };
        let indent = "  ".repeat(step.id.matches('.').count());
        let note = if step.note.is_empty() { String::new() } else { format!(": {}", step.note) };
        let line = one_line(&format!("{} {}{note}", step.id, step.text), MAX_PLAN_CHARS);
        text.push_str(&format!("  {indent}{mark} {line}\n"));
    }
    text
}

/// The stored form of a decision.
#[derive(Deserialize)]
struct StoredDecision {
    decision: Decision,
}

async fn why(session: &ChatSession, about: &str) -> Result<String, Failure> {
    let thread = session.thread();
    let prefix = Key::new("threads").then(&thread).then("decisions").into_prefix();
    let keys = session.store.list(&prefix).await.map_err(store_failed)?;
    let records = session.store.get_many(&keys).await.map_err(store_failed)?;
    let read = |record: contexture::store::Record| serde_json::from_slice::<StoredDecision>(&record.value).ok();
    let decisions: Vec<Decision> =
        records.into_iter().flatten().filter_map(read).map(|stored| stored.decision).collect();
    let wanted = about.parse::<usize>().ok();
    let item = wanted.and_then(|at| session.execution.log().iter().nth(at));
    let mut text =
        item.map_or_else(String::new, |item| format!("item {about}: {}\n", one_line(&text_of(item), MAX_ITEM_CHARS)));
    let is_about = |decision: &&Decision| match wanted {
        Some(position) => concerns(decision, position),
        None => about.is_empty() || words_of(decision).contains(about),
    };
    let found: Vec<String> = decisions.iter().filter(is_about).map(words_of).collect();
    for line in found.iter().rev().take(MAX_DECISIONS) {
        text.push_str(&format!("{line}\n"));
    }
    if found.is_empty() {
        let items = session.execution.log().len();
        text.push_str(&format!("Nothing was decided about it; the log has items 0 to {}.\n", items.saturating_sub(1)));
    }
    Ok(text)
}

/// Whether a decision is about an item.
fn concerns(decision: &Decision, at: usize) -> bool {
    match &decision.action {
        Action::Shorten { position, .. } => *position == at,
        Action::Evict { start: end } | Action::Summarize { end, .. } => at < *end,
        // A layer decides about what there was at that time.
        Action::Layer(_) => at < decision.at,
        Action::Epoch { .. } => false,
    }
}

/// A decision on one line.
fn words_of(decision: &Decision) -> String {
    let what = match &decision.action {
        Action::Epoch { reason } => return format!("{:>4}  all was sent anew: {}", decision.at, anew(*reason)),
        Action::Shorten { position, .. } => format!("item {position} is shown shortened"),
        Action::Evict { start } => format!("items before {start} are no longer shown"),
        Action::Summarize { end, .. } => format!("a text replaces the items before {end}"),
        Action::Layer(what) => what["decision"].as_str().unwrap_or("decision").to_owned(),
    };
    let who = decision.layer.as_ref().map_or("window", |layer| layer.as_str());
    let price = decision.price.map(|price| {
        format!("; costs {:.0} tokens, saves {:.0} with every request", price.cost, price.saves_per_request)
    });
    let reason = one_line(&decision.reason, 200);
    format!("{:>4}  {who}: {what}: {reason}{}", decision.at, price.unwrap_or_default())
}

/// Why nothing of the request before could be sent again as it was.
fn anew(reason: EpochReason) -> &'static str {
    match reason {
        EpochReason::ColdStart => "nothing was sent before",
        EpochReason::SystemChanged => "the prompt or the tools changed",
        EpochReason::ProviderMiss => "the provider no longer had it in its cache",
        EpochReason::CacheExpired => "the provider's cache had expired",
        EpochReason::UpdatesOutgrew => "there were too many corrections to what was sent first",
        EpochReason::AnchorsOutgrew => "what was sent first had grown too large",
        EpochReason::HistoryFolded => "the past was folded or cut",
        EpochReason::LogMerged => "another program wrote to the thread",
    }
}

fn text_of(item: &Item) -> String {
    match item {
        Item::Message(message) => format!("{}: {}", message.role.as_str(), message.text()),
        Item::FunctionCall(call) => format!("call {} {}", call.name, call.arguments),
        Item::FunctionCallOutput(output) => format!("output: {}", output.output),
        Item::Reasoning(reasoning) => format!("reasoning: {}", reasoning.text),
        Item::Opaque(_) => "something of the provider's own".to_owned(),
    }
}

async fn undo(session: &mut ChatSession) -> Result<String, Failure> {
    let undone = session.undo.last_turn(&session.workspace).await?;
    if undone.is_empty() {
        return Ok("There is no change to take back.\n".to_owned());
    }
    let mut text = String::new();
    let mut changed = Vec::new();
    for (path, outcome) in &undone {
        let says = match outcome {
            Undone::Restored => "is as it was",
            Undone::Removed => "is gone again",
            Undone::Unchanged => "was not changed",
            Undone::Refused(reason) => reason,
        };
        let mark = if matches!(outcome, Undone::Refused(_)) { "left alone: " } else { "" };
        text.push_str(&format!("  {}: {mark}{}\n", written_out(path), written_out(says)));
        if matches!(outcome, Undone::Restored | Undone::Removed) {
            changed.push(path.as_str());
        }
    }
    if !changed.is_empty() {
        // The model must not believe that its changes are still there.
        let note = format!("The user took back your changes of: {}. Read these files again.", changed.join(", "));
        session.execution.import([Item::developer(note)]).await.map_err(|error| failure_of(&error))?;
    }
    Ok(text)
}

/// Opens a page that shows the thread as it is now.
async fn inspect(session: &mut ChatSession) -> Result<String, Failure> {
    let (thread, store) = (session.thread(), session.store_path.display().to_string());
    let about = About {
        version: env!("CARGO_PKG_VERSION"),
        name: format!("thread {thread}"),
        kind: "store",
        is_live: false,
        can_act: false,
        can_forget: false,
        note: Some(library::NOT_KEPT.into()),
    };
    let failed = |error: &dyn std::error::Error| Failure::work(format!("open the inspector: {error}"));
    let archive = Archive::temporary().map_err(|error| failed(&error))?;
    let server = InspectServer::start("127.0.0.1:0", archive, about).await.map_err(|error| failed(&error))?;
    library::read_thread(&*session.store, server.inspector(), &thread).await.map_err(store_failed)?;
    let url = server.inspector().url();
    // The page of before shows how it was then, and is closed.
    session.inspector = Some(server);
    Ok(format!(
        "page    {url}\nthread  {thread}, {} items\nmodel   {}\nstore   {store}\n\
         later   contexture inspect '{store}'\nresume  contexture chat --thread {thread}\n",
        session.execution.log().len(),
        session.model,
    ))
}

/// What was said in a thread, oldest first, to be called back.
pub(super) fn said(execution: &contexture::engine::Execution<SessionLayers>) -> Vec<String> {
    let messages = execution.log().iter().filter(|item| item.is_message_of(contexture::item::Role::User));
    messages.filter_map(|item| Some(item.as_message()?.text())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_and_letters_offer_commands() {
        let names = |text: &str| beginning(text).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        assert_eq!(names("/"), COMMANDS.map(|(name, ..)| name));
        assert_eq!(names("/c"), ["/context", "/cost", "/continue"]);
        assert_eq!(names("/model"), ["/model"]);
        for text in ["", "c", "/memory add", "/usr/bin", " /c"] {
            assert_eq!(names(text), Vec::<&str>::new(), "{text:?}");
        }
    }

    #[test]
    fn people_read_no_names_of_types() {
        use EpochReason as E;
        for reason in
            [E::ColdStart, E::SystemChanged, E::ProviderMiss, E::CacheExpired, E::UpdatesOutgrew, E::AnchorsOutgrew]
        {
            let told = anew(reason).to_lowercase();
            assert!(["anchor", "band", "epoch"].iter().all(|word| !told.contains(word)), "{told}");
        }
    }
}
