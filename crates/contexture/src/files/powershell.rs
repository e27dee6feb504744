//! PowerShell command lines: understood as a whole or not at all.

use super::commands::{everything, in_short};
use super::fate::Fate;
use super::framing::Framed;
use super::mentions::observe_mentions;
use super::numbering::{Passage, split_lines};
use super::observation::Observation;
use super::path::Directory;
use super::run::Ran;

/// What a command does, by its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Show,
    Set,
    Add,
    Copy,
    Move,
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
    (Verb::Move, &["move-item", "move", "mv", "mi", "rename-item", "ren", "rni"]),
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

/// Looks into a command line of PowerShell.
pub(crate) fn observe(line: &str, output: &Framed<'_>, fate: Fate, directory: Directory) -> Ran {
    if fate == Fate::Undone {
        return Ran { observations: Vec::new(), directory };
    }
    let unknown = |directory| {
        let mut observations = vec![everything(in_short(line))];
        observations.extend(observe_mentions(&output.text, None));
        Ran { observations, directory }
    };
    let Some(statements) = statements(line) else { return unknown(Directory::Lost) };
    let Some(effects) = statements.iter().map(|statement| effect(statement, &directory)).collect::<Option<Vec<_>>>()
    else {
        return unknown(Directory::Lost);
    };
    // Errors do not stop a script, and its outcome says little of single statements.
    let is_certain = fate == Fate::Done && statements.len() == 1 && !output.is_running;
    let mut observations = Vec::new();
    let mut after = directory.clone();
    for effect in effects {
        match effect {
            Effect::Nothing => {}
            Effect::Show(shown) if is_certain => observations.extend(shown.read(output)),
            Effect::Show(_) => {}
            Effect::Go(to) => after = if is_certain { to } else { Directory::Lost },
            Effect::Change(change) if is_certain => observations.push(change),
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
    Ran { observations, directory: after }
}

enum Effect {
    Nothing,
    Show(Shown),
    Change(Observation),
    Go(Directory),
}

/// Lines that `Get-Content` shows.
struct Shown {
    path: String,
    /// How many lines at most, from the start.
    first: Option<usize>,
    /// How many lines at most, from the end.
    last: Option<usize>,
}

impl Shown {
    fn read(self, output: &Framed<'_>) -> Option<Observation> {
        let mut lines: Vec<String> = split_lines(&output.text).map(str::to_owned).collect();
        let count = lines.len();
        let is_full = self.first == Some(count);
        if count == 0 || self.first.or(self.last).is_some_and(|most| count > most) {
            return None;
        }
        if !output.is_exact {
            lines.pop();
        }
        let is_placed = self.last.is_none() && (output.is_exact || is_full);
        let whole = self.last.is_none() && output.is_exact && self.first.is_none_or(|most| count < most);
        // The last line of a file with or without its end is printed alike.
        let block = Passage { first: is_placed.then_some(1), lines };
        (!block.lines.is_empty()).then_some(Observation::Read { path: self.path, block, whole })
    }
}

/// What a statement does; `None` if it is not understood.
fn effect(statement: &Statement, directory: &Directory) -> Option<Effect> {
    let verb_of = |words: &Vec<String>| {
        let name = words.first()?.to_lowercase();
        VERBS.iter().find(|(_, names)| names.contains(&name.as_str())).map(|(verb, _)| *verb)
    };
    let [words] = statement.as_slice() else {
        // A pipe of commands that only look at things.
        let harmless = |words: &Vec<String>| matches!(verb_of(words), Some(Verb::Show | Verb::Look | Verb::Print));
        return statement.iter().all(harmless).then_some(Effect::Nothing);
    };
    let verb = verb_of(words)?;
    let arguments = Arguments::read(&words[1..], verb)?;
    let place = |index: usize| directory.place(arguments.operands.get(index)?);
    match verb {
        Verb::Look | Verb::Print => Some(Effect::Nothing),
        Verb::Show => Some(Effect::Show(Shown { path: place(0)?, first: arguments.first, last: arguments.last })),
        Verb::Set | Verb::Add => {
            let (path, by) = (place(0)?, in_short(&words.join(" ")));
            Some(Effect::Change(Observation::Changed { path, by }))
        }
        Verb::Copy => Some(Effect::Change(Observation::Copy { from: place(0)?, to: place(1)?, into: true })),
        Verb::Move => Some(Effect::Change(Observation::Move { from: place(0)?, to: place(1)? })),
        Verb::Remove => Some(Effect::Change(Observation::Delete { path: place(0)? })),
        Verb::Go => Some(Effect::Go(Directory::At(place(0)?))),
    }
}

/// The arguments of a command.
#[derive(Default)]
struct Arguments {
    operands: Vec<String>,
    first: Option<usize>,
    last: Option<usize>,
}

impl Arguments {
    fn read(words: &[String], verb: Verb) -> Option<Self> {
        let mut arguments = Self::default();
        if matches!(verb, Verb::Look | Verb::Print) {
            return Some(arguments);
        }
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.to_lowercase().as_str() {
                "-path" | "-literalpath" | "-filepath" | "-destination" | "-newname" => {
                    arguments.operands.push(words.next()?.clone());
                }
                "-totalcount" | "-head" | "-first" => arguments.first = Some(words.next()?.parse().ok()?),
                "-tail" | "-last" => arguments.last = Some(words.next()?.parse().ok()?),
                "-raw" | "-force" | "-recurse" | "-nonewline" => {}
                "-encoding" | "-value" | "-inputobject" => drop(words.next()?),
                option if option.starts_with('-') => return None,
                _ => arguments.operands.push(word.clone()),
            }
        }
        // Patterns and lists lead to more than one file.
        let is_plain = |path: &String| !path.contains(['*', '?', '[', ',', '$', '`']) && !path.is_empty();
        arguments.operands.iter().all(is_plain).then_some(arguments)
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
