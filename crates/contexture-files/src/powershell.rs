//! PowerShell command lines: what they show of files, and what they certainly change.

use super::commands::in_short;
use super::completion::Completion;
use super::framing::{Framed, is_cut_mark};
use super::mentions::observe_mentions;
use super::numbering::{Passage, split_lines};
use super::observation::{Observation, Who};
use super::path::{Directory, on_drive};
use super::run::CommandLineReport;

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verb {
    Show,
    Set,
    Remove,
    Go,
    Look,
}

/// Commands and their aliases; every other one could write any file.
const VERBS: [(Verb, &[&str]); 5] = [
    (Verb::Show, &["get-content", "gc", "cat", "type"]),
    (Verb::Set, &["set-content", "out-file", "sc", "add-content", "ac"]),
    (Verb::Remove, &["remove-item", "del", "rm", "ri"]),
    (Verb::Go, &["set-location", "cd", "chdir", "sl"]),
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
            "select-object",
            "measure-object",
            "echo",
        ],
    ),
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
    let report = |observations, directory| CommandLineReport { observations, directory, is_silent: false };
    if completion == Completion::Undone {
        return report(Vec::new(), directory);
    }
    let statements = statements(line).unwrap_or_default();
    let verbs: Option<Vec<Verb>> = statements.iter().flatten().map(|words| verb_of(words)).collect();
    let reads = |verb: &Verb| matches!(verb, Verb::Show | Verb::Look);
    if verbs.as_ref().is_some_and(|verbs| verbs.len() > 1 && verbs.iter().all(reads)) {
        return report(Vec::new(), directory);
    }
    let unknown = || {
        let mut observations = vec![Observation::could_write(in_short(line))];
        observations.extend(observe_mentions(&output.text, None));
        report(observations, Directory::Lost)
    };
    // Errors do not stop a script, so its outcome says little about single statements.
    let is_done = completion == Completion::Done && !output.is_running;
    let ([statement], Some([verb])) = (statements.as_slice(), verbs.as_deref()) else { return unknown() };
    let Some(arguments) = CmdletArguments::read(&statement[0][1..], *verb) else { return unknown() };
    let path = arguments.path.as_deref().and_then(|written| placed(written, &directory));
    // Commands that change something print nothing, and errors do not affect the outcome.
    let is_silent = output.text.trim().is_empty();
    match (verb, path) {
        (Verb::Look, _) => report(Vec::new(), directory),
        (Verb::Show, Some(path)) if is_done && !complains(&output.text) => {
            report(arguments.shown(path, output).into_iter().collect(), directory)
        }
        (Verb::Show, _) => report(Vec::new(), directory),
        (Verb::Go, Some(path)) if is_done && is_silent => report(Vec::new(), Directory::At(path)),
        (Verb::Go, _) => report(Vec::new(), Directory::Lost),
        (Verb::Set, Some(path)) if is_done && is_silent => {
            report(vec![Observation::Changed { path, by: in_short(line), who: Who::Agent }], directory)
        }
        (Verb::Remove, Some(path)) if is_done && is_silent => report(vec![Observation::Delete { path }], directory),
        (Verb::Set | Verb::Remove, Some(_)) => report(vec![Observation::could_write(in_short(line))], directory),
        (Verb::Set | Verb::Remove, None) => unknown(),
    }
}

/// What error messages contain.
const COMPLAINTS: [&str; 5] =
    ["Cannot find path", "CategoryInfo", "FullyQualifiedErrorId", "is denied", "Get-Content:"];

/// Whether a text may contain an error message.
fn complains(text: &str) -> bool {
    COMPLAINTS.iter().any(|part| text.contains(part)) || text.starts_with("Get-Content :")
}

fn verb_of(words: &[String]) -> Option<Verb> {
    let name = words.first()?.to_lowercase();
    VERBS.iter().find(|(_, names)| names.contains(&name.as_str())).map(|(verb, _)| *verb)
}

/// Resolves a path from a directory; `None` for what is not a file: variables, homes, and drives without a slash.
fn placed(written: &str, directory: &Directory) -> Option<String> {
    let is_odd = written.starts_with('~') || (written.contains(':') && on_drive(written).is_none());
    // On a drive both slashes mean the same, and this shell treats them the same elsewhere.
    directory.place_for_tool(&written.replace('\\', "/")).filter(|_| !is_odd)
}

/// The arguments of a command about one file.
#[derive(Default)]
struct CmdletArguments {
    path: Option<String>,
    /// Whether it is printed as one text, with an additional line feed.
    is_raw: bool,
    /// How many lines at most, from the start.
    first: Option<usize>,
    /// How many lines at most, from the end.
    last: Option<usize>,
}

impl CmdletArguments {
    fn read(words: &[String], verb: Verb) -> Option<Self> {
        let mut arguments = Self::default();
        if verb == Verb::Look {
            return Some(arguments);
        }
        let (mut named, mut operands) = (None, Vec::new());
        let mut words = words.iter();
        while let Some(word) = words.next() {
            match word.to_lowercase().as_str() {
                "-path" | "-literalpath" | "-filepath" if named.is_none() => named = Some(words.next()?),
                "-totalcount" | "-head" => arguments.first = Some(words.next()?.parse().ok()?),
                "-tail" | "-last" => arguments.last = Some(words.next()?.parse().ok()?),
                "-raw" => arguments.is_raw = true,
                "-force" | "-recurse" | "-nonewline" => {}
                "-value" if verb == Verb::Set => drop(words.next()?),
                option if option.starts_with('-') => return None,
                _ => operands.push(word),
            }
        }
        // An operand beside the path of a command that sets something is the value.
        let most = usize::from(verb == Verb::Set) + usize::from(named.is_none());
        let path = named.or(operands.first().copied())?;
        let is_plain = !path.contains(['*', '?', '[', ',', '$', '`']) && !path.is_empty();
        arguments.path = Some(path.clone()).filter(|_| is_plain && operands.len() <= most);
        arguments.path.is_some().then_some(arguments)
    }

    /// The lines that are shown of a file.
    fn shown(&self, path: String, output: &Framed<'_>) -> Option<Observation> {
        let mut lines: Vec<String> = split_lines(&output.text).map(str::to_owned).collect();
        let count = lines.len();
        let is_full = self.first == Some(count);
        if lines.iter().any(|line| is_cut_mark(line)) {
            return None;
        }
        while self.is_raw && lines.last().is_some_and(String::is_empty) {
            lines.pop();
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
        (!block.lines.is_empty()).then_some(Observation::Read { path, block, whole })
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
