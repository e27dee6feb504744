//! What a tool call's arguments name: texts, command lines and paths.

use contexture_core::host::relative_path;
use serde_json::Value;

use crate::files::argument_names::{holds_text, names};
use crate::files::shell::{Expands, Redirect, Simple, Word, parse, parse_all};

/// A command in arguments.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ArgumentCommand<'a> {
    /// A line for a shell.
    Line(&'a str),
    /// A program with its arguments.
    Words(Vec<&'a str>),
}

/// All commands in arguments: lines, and programs with their words, as in `["git", "push"]` or beside `args`.
pub(crate) fn commands(arguments: &Value) -> Vec<ArgumentCommand<'_>> {
    let mut commands = Vec::new();
    collect_commands(arguments, &mut commands);
    commands
}

fn collect_commands<'a>(value: &'a Value, commands: &mut Vec<ArgumentCommand<'a>>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| collect_commands(value, commands)),
        Value::Object(object) => {
            let words = names().word().iter().find_map(|name| strings(object.get(*name)?));
            for (name, value) in object {
                match value {
                    Value::String(line) if is_command(name) || names().command_list().contains(&name.as_str()) => {
                        let with = words.iter().flatten().copied();
                        commands.extend(
                            words
                                .as_ref()
                                .map(|_| ArgumentCommand::Words(std::iter::once(line.as_str()).chain(with).collect())),
                        );
                        commands.push(ArgumentCommand::Line(line));
                    }
                    Value::Array(_) if is_command(name) => match strings(value) {
                        // A list of lines, though it is named like one.
                        Some(lines) if lines.first().is_some_and(|line| line.contains(char::is_whitespace)) => {
                            commands.extend(lines.into_iter().map(ArgumentCommand::Line));
                        }
                        Some(words) => commands.push(ArgumentCommand::Words(words)),
                        None => collect_commands(value, commands),
                    },
                    Value::Array(_) if names().command_list().contains(&name.as_str()) => match strings(value) {
                        Some(lines) => commands.extend(lines.into_iter().map(ArgumentCommand::Line)),
                        None => collect_commands(value, commands),
                    },
                    value => collect_commands(value, commands),
                }
            }
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A list of texts, if it is one.
fn strings(value: &Value) -> Option<Vec<&str>> {
    value.as_array()?.iter().map(Value::as_str).collect()
}

/// Whether an argument of this name holds a command line.
pub(crate) fn is_command(name: &str) -> bool {
    names().command().contains(&name)
}

/// All texts in arguments, each with the name of the argument that holds it.
pub(crate) fn texts(arguments: &Value) -> Vec<(&str, &str)> {
    let mut texts = Vec::new();
    collect(arguments, "", &mut texts);
    texts
}

fn collect<'a>(value: &'a Value, name: &'a str, texts: &mut Vec<(&'a str, &'a str)>) {
    match value {
        Value::String(text) => texts.push((name, text)),
        Value::Array(values) => values.iter().for_each(|value| collect(value, name, texts)),
        Value::Object(object) => object.iter().for_each(|(name, value)| collect(value, name, texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// All texts in arguments that may be paths: words of command lines, and whatever is no text.
pub(crate) fn maybe_paths(arguments: &Value) -> Vec<String> {
    let mut paths = Vec::new();
    for (name, text) in texts(arguments) {
        paths.extend(patched_paths(text).map(str::to_owned));
        match name {
            name if is_command(name) => paths.extend(command_words(text)),
            name if holds_text(name) => {}
            _ => paths.push(text.to_owned()),
        }
    }
    paths
}

/// The files that a text changes if it is a patch.
fn patched_paths(text: &str) -> impl Iterator<Item = &str> {
    const HEADERS: [&str; 6] =
        ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: ", "+++ ", "--- "];
    let headers = text.lines().filter_map(|line| HEADERS.iter().find_map(|header| line.strip_prefix(header)));
    headers.map(|path| {
        let path = path.split('\t').next().unwrap_or_default().trim();
        path.strip_prefix("a/").or_else(|| path.strip_prefix("b/")).unwrap_or(path)
    })
}

/// The signs of patterns for names.
const SIGNS: [char; 4] = ['*', '?', '[', '{'];

/// The words of the commands in arguments that a shell replaces by the names of files: `cat .e*`.
pub(crate) fn name_patterns(arguments: &Value) -> Vec<String> {
    let lines = texts(arguments).into_iter().filter(|(name, _)| is_command(name));
    let mut patterns = Vec::new();
    for (_, line) in lines {
        // The words of a loop belong to no command: `for f in .e*`.
        let plain = line.split([' ', '\t', '\n', ';', '(', ')']).filter(|word| !word.contains(['"', '\'', '\\']));
        patterns.extend(plain.filter(|word| word.contains(SIGNS)).map(str::to_owned));
        let script = parse_all(line);
        for command in script.iter().flat_map(|script| script.commands()) {
            let words = command.words.iter().chain(command.redirects.iter().filter_map(target));
            let expands = words.filter(|word| word.expands != Expands::Never);
            patterns.extend(expands.filter(|word| word.text.contains(SIGNS)).map(|word| word.text.clone()));
        }
    }
    patterns
}

/// The words of a command line, also those that redirections lead to and those after an equals sign.
fn command_words(line: &str) -> Vec<String> {
    let written = || line.split_whitespace().map(|word| word.trim_matches(['"', '\'', ';']).to_owned());
    let Some(script) = parse(line) else { return written().collect() };
    // The words of a loop belong to no command.
    let has_loop = line.split_whitespace().any(|word| matches!(word, "for" | "select" | "case"));
    let mut words: Vec<String> = written().filter(|_| has_loop).collect();
    for command in script.commands() {
        if !only_prints(command, line) {
            words.extend(command.words.iter().map(|word| word.text.clone()));
        }
        words.extend(
            command.assigned.iter().chain(command.redirects.iter().filter_map(target)).map(|word| word.text.clone()),
        );
    }
    let code: Vec<String> = words.iter().filter(|word| is_code(word)).flat_map(|word| strings_in(word)).collect();
    words.extend(code);
    let values: Vec<String> = words.iter().filter_map(|word| Some(word.split_once('=')?.1.to_owned())).collect();
    words.extend(values);
    words
}

/// Whether the words of a command are only text, which no other program gets.
fn only_prints(command: &Simple, line: &str) -> bool {
    let is_plain = command.words.iter().all(|word| word.plain().is_some());
    matches!(command.program(), Some("echo" | "printf")) && is_plain && !line.contains(['|', '`', '$'])
}

/// Whether a word is a program in another language, as after `python3 -c`.
fn is_code(word: &str) -> bool {
    word.contains('(') && word.contains(['"', '\''])
}

/// What is between the quotes of such a program.
fn strings_in(code: &str) -> Vec<String> {
    code.split(['"', '\'', '`']).filter(|text| !text.is_empty()).map(str::to_owned).collect()
}

/// The file that a redirection leads to.
fn target(redirect: &Redirect) -> Option<&Word> {
    match redirect {
        Redirect::Write(word)
        | Redirect::Append(word)
        | Redirect::Errors(word)
        | Redirect::Both(word)
        | Redirect::Other(word)
        | Redirect::Read(word) => Some(word),
        Redirect::ErrorsToOutput | Redirect::Copy | Redirect::Document { .. } => None,
    }
}

/// A path as it is beneath the base directory, as far as that can be told: without `.`, `..` and the base before it.
/// `bases` are absolute names of the base directory.
pub(crate) fn normal_path(path: &str, bases: &[String]) -> String {
    let path = path.trim().replace('\\', "/");
    let path = path.strip_prefix("file://").unwrap_or(&path);
    let inside = bases.iter().find_map(|base| path.strip_prefix(base.as_str())?.strip_prefix('/'));
    let path = inside.unwrap_or(path);
    let plain = relative_path(path.trim_start_matches('/')).map_or_else(|_| path.to_owned(), |path| path.into_owned());
    if path.starts_with('/') && !plain.starts_with('/') { format!("/{plain}") } else { plain }
}
