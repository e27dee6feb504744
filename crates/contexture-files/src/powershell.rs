//! PowerShell command lines: understood as a whole or not at all.

use super::commands::{everything, in_short};
use super::completion::Completion;
use super::framing::{Framed, is_cut_mark};
use super::mentions::observe_mentions;
use super::numbering::{Passage, split_lines};
use super::observation::Observation;
use super::path::{Directory, join, on_drive};
use super::run::CommandLineReport;

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Show,
    Set,
    Add,
    Copy,
    Move,
    Rename,
    Remove,
    Go,
    Look,
    Print,
}

/// Commands and their aliases.
pub(crate) const VERBS: &[(Verb, &[&str])] = &[
    (Verb::Show, &["get-content", "gc", "cat", "type"]),
    (Verb::Set, &["set-content", "out-file", "sc"]),
    (Verb::Add, &["add-content", "ac"]),
    (Verb::Copy, &["copy-item", "copy", "cp", "cpi"]),
    (Verb::Move, &["move-item", "move", "mv", "mi"]),
    (Verb::Rename, &["rename-item", "ren", "rni"]),
    (Verb::Remove, &["remove-item", "del", "erase", "rm", "ri", "rd", "rmdir"]),
    (Verb::Go, &["set-location", "cd", "chdir", "sl", "push-location", "pushd"]),
    (
        Verb::Look,
        &[
            "get-childitem",
            "dir",
            "gci",
            "ls",
            "select-string",
            "sls",
            "test-path",
            "get-item",
            "gi",
            "resolve-path",
            "get-location",
            "pwd",
            "gl",
            "measure-object",
            "select-object",
            "sort-object",
            "format-table",
            "format-list",
            "get-command",
            "get-filehash",
            "get-date",
            "out-string",
            "out-null",
            "get-process",
            "compare-object",
        ],
    ),
    (Verb::Print, &["write-output", "write-host", "echo"]),
];

/// A statement: commands joined by pipes, each with its words.
type Statement = Vec<Vec<String>>;

/// Examines a command line of PowerShell.
pub(crate) fn observe(
    line: &str,
    output: &Framed<'_>,
    completion: Completion,
    directory: Directory,
) -> CommandLineReport {
    if completion == Completion::Undone {
        return CommandLineReport { observations: Vec::new(), directory, is_silent: false };
    }
    let unknown = |directory| {
        let mut observations = vec![everything(in_short(line))];
        observations.extend(observe_mentions(&output.text, None));
        CommandLineReport { observations, directory, is_silent: false }
    };
    let Some(statements) = statements(line) else { return unknown(Directory::Lost) };
    let Some(effects) = statements.iter().map(|statement| effect(statement, &directory)).collect::<Option<Vec<_>>>()
    else {
        return unknown(Directory::Lost);
    };
    // Errors do not stop a script, so its outcome says little about single statements.
    let is_certain = completion == Completion::Done && statements.len() == 1 && !output.is_running;
    // Commands that change something print nothing, and errors do not affect the outcome.
    let is_done = is_certain && output.text.trim().is_empty();
    let mut observations = Vec::new();
    let mut after = directory.clone();
    for effect in effects {
        match effect {
            Effect::Nothing => {}
            Effect::Show(shown) if is_certain && !complains(&output.text) => observations.extend(shown.read(output)),
            Effect::Show(_) => {}
            Effect::Go(to) => after = if is_done { to } else { Directory::Lost },
            Effect::Change(change) if is_done => observations.push(change),
            Effect::Change(change) => {
                let doubt = |path: &str| Observation::Swept {
                    under: Some(path.to_owned()),
                    extensions: Vec::new(),
                    by: in_short(line),
                };
                observations.extend(change.paths().into_iter().map(doubt));
            }
        }
    }
    let is_moved = after != directory && statements.len() > 1;
    if is_moved && !observations.is_empty() {
        return unknown(after);
    }
    CommandLineReport { observations, directory: after, is_silent: false }
}

/// What error messages contain.
const COMPLAINTS: [&str; 6] =
    ["Cannot find path", "CategoryInfo", "FullyQualifiedErrorId", "ParserError", "is denied", "Get-Content:"];

/// Whether a text may contain an error message.
fn complains(text: &str) -> bool {
    COMPLAINTS.iter().any(|part| text.contains(part)) || text.starts_with("Get-Content :")
}

enum Effect {
    Nothing,
    Show(GetContentLines),
    Change(Observation),
    Go(Directory),
}

/// Lines that `Get-Content` shows.
struct GetContentLines {
    path: String,
    /// How many lines at most, from the start.
    first: Option<usize>,
    /// How many lines at most, from the end.
    last: Option<usize>,
    /// Whether it is printed as one text, with an additional line feed.
    is_raw: bool,
}

impl GetContentLines {
    fn read(self, output: &Framed<'_>) -> Option<Observation> {
        let mut lines: Vec<String> = split_lines(&output.text).map(str::to_owned).collect();
        let count = lines.len();
        let is_full = self.first == Some(count);
        if lines.iter().any(|line| is_cut_mark(line)) {
            return None;
        }
        if self.is_raw {
            while lines.last().is_some_and(String::is_empty) {
                lines.pop();
            }
        }
        if count == 0 || self.first.or(self.last).is_some_and(|most| count > most) {
            return None;
        }
        if !output.is_exact && !lines.is_empty() {
            lines.pop();
        }
        let is_placed = self.last.is_none() && (output.is_exact || is_full);
        let whole =
            !self.is_raw && self.last.is_none() && output.is_exact && self.first.is_none_or(|most| count < most);
        // A last line is printed the same with or without its line feed.
        let block = Passage { first: is_placed.then_some(1), lines };
        (!block.lines.is_empty()).then_some(Observation::Read { path: self.path, block, whole })
    }
}

/// Returns what a statement does; `None` if it is not understood.
fn effect(statement: &Statement, directory: &Directory) -> Option<Effect> {
    let verb_of = |words: &Vec<String>| {
        let name = words.first()?.to_lowercase();
        VERBS.iter().find(|(_, names)| names.contains(&name.as_str())).map(|(verb, _)| *verb)
    };
    let [words] = statement.as_slice() else {
        // A pipe of commands that change nothing.
        let harmless = |words: &Vec<String>| matches!(verb_of(words), Some(Verb::Show | Verb::Look | Verb::Print));
        return statement.iter().all(harmless).then_some(Effect::Nothing);
    };
    let verb = verb_of(words)?;
    let arguments = CmdletArguments::read(&words[1..], verb)?;
    let operands = &arguments.operands;
    let path = |written: &String| placed(written, directory);
    // With too many operands it is unknown what the command does.
    let only = || path(operands.first().filter(|_| operands.len() == 1 && arguments.target.is_none())?);
    let pair = || match (operands.as_slice(), &arguments.target) {
        ([from, to], None) => Some((from.clone(), to.clone())),
        ([from], Some(to)) => Some((from.clone(), to.clone())),
        _ => None,
    };
    match verb {
        Verb::Look | Verb::Print => Some(Effect::Nothing),
        Verb::Show => {
            let CmdletArguments { first, last, is_raw, .. } = arguments;
            Some(Effect::Show(GetContentLines { path: only()?, first, last, is_raw }))
        }
        Verb::Set | Verb::Add => {
            let (path, by) = (path(operands.first()?)?, in_short(&words.join(" ")));
            Some(Effect::Change(Observation::Changed { path, by }))
        }
        Verb::Copy => {
            let (from, to) = pair()?;
            Some(Effect::Change(Observation::Copy { from: path(&from)?, to: path(&to)?, into: true }))
        }
        Verb::Move => {
            let (from, to) = pair()?;
            Some(Effect::Change(Observation::Move { from: path(&from)?, to: path(&to)? }))
        }
        // The new name is relative to the directory of the file.
        Verb::Rename => {
            let (from, to) = pair()?;
            let from = path(&from)?;
            let parent = from.rsplit_once('/').map_or("", |(parent, _)| parent);
            if parent.is_empty() && from.starts_with('/') {
                return None;
            }
            let to = Some(to).filter(|to| !to.contains(['/', '\\']))?;
            Some(Effect::Change(Observation::Move { to: join(parent, &to), from }))
        }
        Verb::Remove => Some(Effect::Change(Observation::Delete { path: only()? })),
        Verb::Go => Some(Effect::Go(Directory::At(only()?))),
    }
}

/// Resolves a path from a directory; `None` for what is not a file: variables, homes, and drives without a slash.
fn placed(written: &str, directory: &Directory) -> Option<String> {
    let is_odd = written.starts_with('~') || (written.contains(':') && on_drive(written).is_none());
    // On a drive both slashes mean the same, and this shell treats them the same elsewhere.
    directory.place_for_tool(&written.replace('\\', "/")).filter(|_| !is_odd)
}

/// The arguments of a command.
#[derive(Default)]
struct CmdletArguments {
    operands: Vec<String>,
    /// The target of a copy or move, if given as a named argument.
    target: Option<String>,
    is_raw: bool,
    first: Option<usize>,
    last: Option<usize>,
}

impl CmdletArguments {
    fn read(words: &[String], verb: Verb) -> Option<Self> {
        let mut arguments = Self::default();
        if matches!(verb, Verb::Look | Verb::Print) {
            return Some(arguments);
        }
        let mut words = words.iter();
        let mut named = None;
        while let Some(word) = words.next() {
            match word.to_lowercase().as_str() {
                "-path" | "-literalpath" | "-filepath" if named.is_none() => named = Some(words.next()?.clone()),
                "-destination" | "-newname" => arguments.target = Some(words.next()?.clone()),
                "-totalcount" | "-head" | "-first" => arguments.first = Some(words.next()?.parse().ok()?),
                "-tail" | "-last" => arguments.last = Some(words.next()?.parse().ok()?),
                "-raw" => arguments.is_raw = true,
                "-force" | "-recurse" | "-nonewline" => {}
                // Bytes are printed as numbers.
                "-encoding" => drop(words.next().filter(|name| name.to_lowercase() != "byte")?),
                "-value" | "-inputobject" if matches!(verb, Verb::Set | Verb::Add) => drop(words.next()?),
                option if option.starts_with('-') => return None,
                _ => arguments.operands.push(word.clone()),
            }
        }
        // If the path is named, an operand is the value that is written, or the target.
        if let Some(path) = named {
            match (verb, arguments.operands.as_slice()) {
                (_, []) => {}
                (Verb::Set | Verb::Add, [_]) => arguments.operands.clear(),
                _ => return None,
            }
            arguments.operands.push(path);
        }
        // Patterns and lists may name more than one file.
        let is_plain = |path: &String| !path.contains(['*', '?', '[', ',', '$', '`']) && !path.is_empty();
        arguments.operands.iter().chain(&arguments.target).all(is_plain).then_some(arguments)
    }
}

/// The statements of a line; `None` if it has anything beyond words, quotes, pipes and semicolons.
fn statements(line: &str) -> Option<Vec<Statement>> {
    let mut statements: Vec<Statement> = Vec::new();
    let mut commands: Statement = Vec::new();
    let mut words: Vec<String> = Vec::new();
    let mut word: Option<String> = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' => {
                let text = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '\'' if chars.peek() == Some(&'\'') => text.push(chars.next()?),
                        '\'' => break,
                        other => text.push(other),
                    }
                }
            }
            '"' => {
                let text = word.get_or_insert_default();
                loop {
                    match chars.next()? {
                        '"' => break,
                        '$' | '`' => return None,
                        other => text.push(other),
                    }
                }
            }
            ' ' | '\t' => words.extend(word.take()),
            '|' | ';' | '\n' | '\r' => {
                if chars.peek() == Some(&'|') {
                    return None;
                }
                words.extend(word.take());
                commands.extend(Some(std::mem::take(&mut words)).filter(|words| !words.is_empty()));
                if c != '|' {
                    statements.extend(Some(std::mem::take(&mut commands)).filter(|commands| !commands.is_empty()));
                }
            }
            '$' | '`' | '(' | ')' | '{' | '}' | '&' | '<' | '>' | '@' | '#' | '%' => return None,
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    commands.extend(Some(words).filter(|words| !words.is_empty()));
    statements.extend(Some(commands).filter(|commands| !commands.is_empty()));
    Some(statements)
}
