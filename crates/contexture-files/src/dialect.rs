//! Which tool does what to which file: by the tables of known agents, and for others by a guess from the arguments.

use std::collections::HashMap;

pub use contexture_agents::Does;
use contexture_agents::{Tool, tool as known};
use contexture_core::item::{FunctionCall, FunctionCallOutput, Outcome};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::argument_names::names;
use super::completion::{self, Completion};
use super::framing::{Framed, framed};
use super::mentions::observe_mentions;
use super::observation::{Kind, Observation, Seen, Who};
use super::path::Directory;
use super::{powershell, run};

mod arguments;
mod guess;
mod reads;
mod scripts;

pub use super::completion::says_failed;
use arguments::CallArguments;
use guess::guess;

/// One tool of a dialect. Four lines in a configuration file:
///
/// ```toml
/// [[tool]]
/// name = "peek"
/// does = "read"
/// path = "where"
/// ```
///
/// Arguments that are not named are looked for under the names that agents commonly use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolEntry {
    /// The tool's name.
    pub name: String,
    /// What it does.
    pub does: Does,
    /// The argument that holds the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The argument that holds a file's text, or a patch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// The argument that holds the piece to be replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<String>,
    /// The argument that holds what replaces it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<String>,
    /// The argument that holds the command line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl ToolEntry {
    /// A tool whose arguments have common names.
    pub fn new(name: &str, does: Does) -> Self {
        Self { name: name.to_owned(), does, path: None, content: None, old: None, new: None, command: None }
    }

    /// A tool of a known agent.
    fn known(name: &str, tool: &Tool) -> Self {
        let owned = |argument: Option<&str>| argument.map(str::to_owned);
        Self {
            path: owned(tool.path()),
            content: owned(tool.content()),
            old: owned(tool.old()),
            new: owned(tool.replacement()),
            command: owned(tool.command()),
            ..Self::new(name, *tool.does())
        }
    }
}

/// The tools of all dialects that are understood.
#[derive(Clone, Debug)]
pub struct Dialects {
    tools: HashMap<String, ToolEntry>,
}

impl Default for Dialects {
    fn default() -> Self {
        Self::builtin()
    }
}

impl Dialects {
    /// The built-in table.
    pub fn builtin() -> Self {
        let entries = contexture_agents::tools().map(|(name, tool)| (name.to_owned(), ToolEntry::known(name, tool)));
        Self { tools: entries.collect() }
    }

    /// What a tool of exactly this name does by the built-in table.
    pub fn built_in(tool: &str) -> Option<Does> {
        known(tool).map(|tool| *tool.does())
    }

    /// The same with one more tool, which takes precedence over a built-in one of that name.
    pub fn with(mut self, entry: ToolEntry) -> Self {
        self.tools.insert(entry.name.clone(), entry);
        self
    }

    /// The arguments of a call of a tool under the names that agents commonly use, where the table names others.
    ///
    /// ```
    /// use contexture_files::dialect::{Dialects, Does, ToolEntry};
    /// let entry = ToolEntry { command: Some("line".to_owned()), ..ToolEntry::new("perform", Does::Run) };
    /// let dialects = Dialects::builtin().with(entry);
    /// let arguments = serde_json::json!({ "line": "ls", "why": "to see" });
    /// let common = dialects.common_arguments("perform", arguments);
    /// assert_eq!(common, serde_json::json!({ "command": "ls", "why": "to see" }));
    /// ```
    pub fn common_arguments(&self, tool: &str, mut arguments: Value) -> Value {
        let Some(entry) = self.entry(tool) else { return arguments };
        let Some(object) = arguments.as_object_mut() else { return arguments };
        let named = [
            (&entry.path, names().path()),
            (&entry.content, names().content()),
            (&entry.old, names().old()),
            (&entry.new, names().replacement()),
            (&entry.command, names().command()),
        ];
        for (own, common) in named {
            let Some(own) = own.as_deref().filter(|own| !common.contains(own)) else { continue };
            // A call may have an argument of a common name too, and keeps it.
            let free = common.iter().find(|name| !object.contains_key(**name)).copied();
            if let Some((free, value)) = free.and_then(|free| Some((free, object.remove(own)?))) {
                object.insert(free.to_owned(), value);
            }
        }
        arguments
    }

    /// Returns what a call does: by the table, or for an unknown tool by its arguments.
    pub fn does(&self, call: &FunctionCall) -> Does {
        self.does_with(&call.name, &call.parsed_arguments())
    }

    fn does_with(&self, name: &str, arguments: &Value) -> Does {
        let does = self.entry(name).map_or_else(|| guess(name, arguments), |entry| entry.does);
        match does {
            Does::Write => write_mode(arguments),
            // Others may have a tool of that name.
            Does::Wrap if !lists_calls(arguments) => guess(name, arguments),
            // Nothing is typed: it only waits for output.
            Does::Anything if known(own_name(name)).is_some_and(Tool::may_wait) && !types(arguments) => Does::Nothing,
            Does::Editor => match text_of(arguments, None, &["command"]) {
                Some("view") => Does::Read,
                Some("create") => Does::Write,
                Some("insert") => Does::Insert,
                _ => Does::Edit,
            },
            other => other,
        }
    }

    /// Finds a tool by name. Tools of a server have the server's name before their own.
    fn entry(&self, name: &str) -> Option<&ToolEntry> {
        let own_name = |mark: &str| self.tools.get(name.rsplit_once(mark)?.1);
        self.tools.get(name).or_else(|| SERVER_MARKS.iter().find_map(|mark| own_name(mark)))
    }

    /// The kind of a call.
    pub fn kind(&self, call: &FunctionCall) -> Kind {
        kind_of(self.does(call))
    }

    /// Examines one call and what the tool returned, by itself: relative paths stay relative unless the call says where
    /// it ran. [`Observer`](super::observer::Observer) follows the directory from call to call.
    pub fn observe(&self, call: &FunctionCall, output: &FunctionCallOutput) -> Seen {
        self.observe_in(call, output, &Standing { ends: FinalLineFeed::Kept, ..Standing::default() }).0
    }

    /// The same for a call made in a directory; also returns the directory after it.
    pub(crate) fn observe_in(
        &self,
        call: &FunctionCall,
        output: &FunctionCallOutput,
        standing: &Standing,
    ) -> (Seen, Directory) {
        let (value, result) = (call.parsed_arguments(), &*output.output);
        let arguments = CallArguments { value: &value, entry: self.entry(&call.name), tool: &call.name };
        let does = self.does_with(&call.name, &value);
        let stated = call.meta.directory.as_deref().map(|path| Directory::At(path.to_owned()));
        let before = stated.as_ref().unwrap_or(&standing.directory);
        if does == Does::Run {
            let command = arguments.command();
            return self.observe_run(&arguments, command, output, before, standing);
        }
        if matches!(does, Does::Anything | Does::Unclear | Does::Delegate) {
            return (arguments.observe_anything(does, output, before), before.clone());
        }
        if does == Does::Wrap {
            return self.observe_wrapped(call, &value, output, standing);
        }
        let completion = completed(does, &call.name, output);
        let is_rehearsal = value_of(&value, None, names().rehearsal()).and_then(Value::as_bool) == Some(true);
        let said = arguments.said_of_file(does, output);
        let observations = match completion {
            _ if does.spares_files() => observe_mentions(result, None),
            _ if said.is_some() => settled(said.into_iter().collect(), Completion::Done, before, &call.name),
            Completion::Undone => Vec::new(),
            _ if is_rehearsal => Vec::new(),
            completion => settled(arguments.observe(does, result), completion, before, &call.name),
        };
        let failed = completion == Completion::Undone || (completion == Completion::Failed && !does.spares_files());
        let place = |path: String| before.place_for_tool(&path).unwrap_or(path);
        let paths = arguments.paths(does).into_iter().map(place).collect();
        (examined_call(does, paths, None, observations, failed), before.clone())
    }

    fn observe_run(
        &self,
        arguments: &CallArguments<'_>,
        command: Option<String>,
        output: &FunctionCallOutput,
        before: &Directory,
        standing: &Standing,
    ) -> (Seen, Directory) {
        let mut framed = framed(own_name(arguments.tool), &output.output);
        // If blank lines are cut off, an empty output may have had some.
        framed.is_exact &= standing.ends == FinalLineFeed::Kept || !output.output.is_empty();
        let completion = completion::of_run(own_name(arguments.tool), output.outcome, &output.output, framed.exit);
        let failed = matches!(completion, Completion::Undone | Completion::Failed);
        let Some(line) = command else {
            let observations = match completion {
                Completion::Undone => Vec::new(),
                _ => vec![Observation::could_write(format!("`{}`", arguments.tool))],
            };
            return (examined_call(Does::Run, Vec::new(), None, observations, failed), before.clone());
        };
        let workdir = arguments.workdir();
        let start = match workdir {
            Some(workdir) => before.place_for_tool(workdir).map_or(Directory::Lost, Directory::At),
            None => before.clone(),
        };
        let framed = if arguments.is_in_background() { Framed { is_running: true, ..framed } } else { framed };
        let is_power_shell = known(own_name(arguments.tool)).is_some_and(Tool::is_power_shell);
        let ran = match is_power_shell {
            true => powershell::observe(&line, &framed, completion, start.clone()),
            false => run::observe(&line, &framed, completion, start.clone()),
        };
        let after = match (keeps_directory(arguments.tool), workdir) {
            (_, Some(_)) | (Some(false), _) => before.clone(),
            (Some(true), _) => ran.directory,
            (None, _) if ran.directory == start => before.clone(),
            (None, _) => Directory::Lost,
        };
        let told = framed.directory.map(Directory::At);
        // The command may have printed that line, unless it prints nothing.
        let may_reset = keeps_directory(arguments.tool) != Some(false);
        let reset = framed.reset.filter(|_| may_reset).map(|path| match ran.is_silent && !path.is_empty() {
            true => Directory::At(path),
            false => Directory::Lost,
        });
        let after = told.or(reset).unwrap_or(after);
        (examined_call(Does::Run, Vec::new(), Some(line), ran.observations, failed), after)
    }

    /// What a call does that makes others. The output of one is its own; that of several is not told apart, so only what
    /// they may have changed is taken from them, unless a script prints just what its calls return.
    fn observe_wrapped(
        &self,
        call: &FunctionCall,
        arguments: &Value,
        output: &FunctionCallOutput,
        standing: &Standing,
    ) -> (Seen, Directory) {
        let inner = wrapped_calls(call, arguments);
        let only = inner.as_deref().and_then(|calls| if let [only] = calls { Some(only) } else { None });
        // What an unknown tool says that seems to make a call is not what the called tool says.
        let says_for_it = self.entry(&call.name).is_some() && scripts::source(arguments).is_none();
        if let Some(only) = only.filter(|_| says_for_it) {
            return self.observe_in(only, output, standing);
        }
        let command = only.and_then(|only| {
            let (value, tool) = (only.parsed_arguments(), &only.name);
            let arguments = CallArguments { value: &value, entry: self.entry(tool), tool };
            arguments.command().filter(|_| self.does_with(tool, &value) == Does::Run)
        });
        let completion = completion::of_tool(own_name(&call.name), output.outcome, &output.output);
        let mut observations = Vec::new();
        match inner {
            _ if completion == Completion::Undone && output.outcome != Outcome::Unknown => {}
            Some(calls) => {
                // Each may have failed by itself, but only of one it is known what was said.
                let prints = scripts::source(arguments).and_then(scripts::Prints::of);
                let printed = prints.as_ref().and_then(|prints| prints.outputs(output, calls.len()));
                let unstated = if calls.len() == 1 { &*output.output } else { "done" };
                for (at, call) in calls.iter().enumerate().filter(|(_, call)| self.does(call) != Does::Wrap) {
                    let text = printed.as_ref().and_then(|printed| printed[at].as_deref());
                    let returned = FunctionCallOutput::new(&output.call_id, text.unwrap_or(unstated), Outcome::Unknown);
                    let seen = self.observe_in(call, &returned, standing).0;
                    let told = seen.observations.into_iter();
                    observations.extend(told.filter(|told| text.is_some() || told.is_change()));
                }
                // Which of them was first is not known.
                if prints.is_some_and(|prints| prints.are_at_once) && observations.iter().any(Observation::is_change) {
                    observations.retain(Observation::is_change);
                }
            }
            None => observations.push(Observation::could_write(format!("`{}`", call.name))),
        }
        let does = if command.is_some() { Does::Run } else { Does::Wrap };
        let seen = Seen { is_mixed: true, ..examined_call(does, Vec::new(), command, observations, false) };
        (seen, standing.directory.clone())
    }

    /// The file that a call is about, if it names one.
    pub fn path(&self, call: &FunctionCall) -> Option<String> {
        let value = call.parsed_arguments();
        let arguments = CallArguments { value: &value, entry: self.entry(&call.name), tool: &call.name };
        arguments.paths(self.does_with(&call.name, &value)).into_iter().next()
    }
}

/// The kind of a call that does something.
fn kind_of(does: Does) -> Kind {
    match does {
        Does::Read => Kind::Read,
        Does::Write => Kind::Write,
        Does::Edit | Does::Insert | Does::Patch | Does::Append | Does::Delete | Does::Move | Does::Rework => Kind::Edit,
        Does::Search => Kind::Search,
        Does::Run => Kind::Run,
        Does::Delegate | Does::Hear => Kind::Answer,
        Does::Nothing | Does::Anything | Does::Editor | Does::Unclear | Does::Wrap => Kind::Other,
    }
}

/// The outcome of a call of a tool that is no shell.
fn completed(does: Does, tool: &str, output: &FunctionCallOutput) -> Completion {
    if matches!(does, Does::Read | Does::Search | Does::Nothing | Does::Hear) {
        return completion::of_read(output.outcome, &output.output);
    }
    let framed = framed(own_name(tool), &output.output);
    match (framed.exit, completion::of_tool(own_name(tool), output.outcome, &framed.text)) {
        (Some(code), _) if code != 0 => Completion::Undone,
        // A patch of several files may have been applied in part.
        (_, Completion::Undone) if does == Does::Patch && output.outcome == Outcome::Failed => Completion::Failed,
        (_, completion) => completion,
    }
}

/// Whether something is typed.
fn types(arguments: &Value) -> bool {
    let typed = value_of(arguments, None, &["chars", "input", "text"]).filter(|typed| !typed.is_null());
    // Ending a program or its input is no input.
    let is_end = |text: &str| text.chars().all(|c| matches!(c, '\u{3}' | '\u{4}'));
    typed.is_some_and(|typed| !typed.as_str().is_some_and(is_end))
}

/// Whether a write replaces the file or adds to it; if neither is certain, it changed somehow.
fn write_mode(arguments: &Value) -> Does {
    let mode = value_of(arguments, None, &["mode"]).filter(|mode| !mode.is_null());
    let append = value_of(arguments, None, &["append"]).filter(|append| !append.is_null());
    match (mode.map(Value::as_str), append.map(Value::as_bool)) {
        (None | Some(Some("overwrite" | "rewrite" | "write" | "w" | "create")), None | Some(Some(false))) => {
            Does::Write
        }
        (Some(Some("append" | "a")), None | Some(Some(true))) | (None, Some(Some(true))) => Does::Append,
        _ => Does::Rework,
    }
}

/// Whether arguments list other calls, or name one.
fn lists_calls(arguments: &Value) -> bool {
    let names = ["tool_calls", "tool_uses", "calls", "invocations", "tool_name"];
    value_of(arguments, None, &names).is_some() || scripts::source(arguments).is_some()
}

/// Most calls that another one makes.
const MAX_WRAPPED: usize = 64;

/// The calls that a call makes; `None` if they are not understood.
fn wrapped_calls(call: &FunctionCall, arguments: &Value) -> Option<Vec<FunctionCall>> {
    let made = |name: &str, arguments: String| {
        let mut made = FunctionCall::new(&call.call_id, name, arguments);
        made.meta = call.meta.clone();
        made
    };
    if let Some(source) = scripts::source(arguments) {
        // A text is what tools without names for their arguments are given.
        let whole = |value: Value| if value.is_string() { json!({ "input": value }) } else { value };
        let calls = scripts::calls(source)?.into_iter();
        return Some(calls.map(|(name, value)| made(&name, whole(value).to_string())).collect());
    }
    let one = |value: &Value| {
        let name = text_of(value, None, &["tool", "recipient_name", "tool_name", "name"])?;
        let inner = value_of(value, None, &["parameters", "arguments", "args", "input"])?;
        Some(made(name, inner.as_str().map_or_else(|| inner.to_string(), str::to_owned)))
    };
    let listed = value_of(arguments, None, &["tool_calls", "tool_uses", "calls", "invocations"]);
    match listed {
        Some(Value::Array(list)) if list.len() <= MAX_WRAPPED => list.iter().map(one).collect(),
        Some(_) => None,
        None => Some(vec![one(arguments)?]),
    }
}

/// What separates a server's name from its tool's.
const SERVER_MARKS: &[&str] = &["__", ".", "/", ":"];

/// Builds the result for a call that was examined.
fn examined_call(
    does: Does,
    mut paths: Vec<String>,
    command: Option<String>,
    observations: Vec<Observation>,
    failed: bool,
) -> Seen {
    let is_about = |observation: &&Observation| !matches!(observation, Observation::Mentioned { .. });
    for path in observations.iter().filter(is_about).flat_map(Observation::paths) {
        if !path.is_empty() && !paths.iter().any(|known| known == path) {
            paths.push(path.to_owned());
        }
    }
    Seen { kind: kind_of(does), paths, command, observations, failed, is_mixed: false }
}

/// Adjusts a tool's observations to the outcome of its call, and resolves their paths from a directory.
fn settled(
    observations: Vec<Observation>,
    completion: Completion,
    directory: &Directory,
    tool: &str,
) -> Vec<Observation> {
    let mut settled = Vec::with_capacity(observations.len());
    for observation in observations {
        let is_change = observation.is_change();
        let Some(placed) = observation.placed(&|path| directory.place_for_tool(path)) else {
            // A path that cannot be resolved may name any file of that name.
            if is_change {
                settled.push(Observation::could_write(format!("`{tool}`")));
            }
            continue;
        };
        let by = || format!("`{tool}`");
        match completion {
            Completion::Done => settled.push(placed),
            Completion::Undone => {}
            Completion::Open => {
                settled.push(placed);
                settled.extend(is_change.then(|| Observation::could_write(by())));
            }
            Completion::Failed | Completion::Different if !is_change => {}
            Completion::Failed => settled.push(placed.unproven(&by())),
            Completion::Different => {
                let changed = |path: &str| Observation::Changed { path: path.to_owned(), by: by(), who: Who::Agent };
                let changes: Vec<Observation> = placed.paths().into_iter().map(changed).collect();
                settled.push(placed);
                settled.extend(changes);
            }
        }
    }
    settled
}

/// What earlier calls imply for the next one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    /// The directory that it runs in.
    pub(crate) directory: Directory,
    pub(crate) ends: FinalLineFeed,
}

/// Whether a harness is known to keep the last line feed of outputs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum FinalLineFeed {
    /// It does.
    Kept,
    /// Not known yet.
    #[default]
    Unknown,
}

/// Whether a shell tool is known to keep its directory from one call to the next, or not to.
fn keeps_directory(tool: &str) -> Option<bool> {
    known(own_name(tool))?.keeps_directory().copied()
}

/// The name of a tool without that of its server.
fn own_name(tool: &str) -> &str {
    if known(tool).is_some_and(Tool::is_whole_name) {
        return tool;
    }
    SERVER_MARKS.iter().find_map(|mark| Some(tool.rsplit_once(mark)?.1)).unwrap_or(tool)
}

fn value_of<'a>(arguments: &'a Value, named: Option<&str>, names: &[&str]) -> Option<&'a Value> {
    let object = arguments.as_object()?;
    match named {
        Some(name) => object.get(name),
        None => names.iter().find_map(|name| object.get(*name)),
    }
}

fn text_of<'a>(arguments: &'a Value, named: Option<&str>, names: &[&str]) -> Option<&'a str> {
    let object = arguments.as_object()?;
    match named {
        Some(name) => object.get(name)?.as_str(),
        None => names.iter().find_map(|name| object.get(*name)?.as_str()),
    }
}
