//! What a pipeline does to files.

use super::super::dialect::observe_patch;
use super::super::mentions::looks_like_file;
use super::super::observation::{LineChange, Observation};
use super::super::shell::{Command, Redirect};
use super::formatters::formatter;
use super::prints::is_path;
use super::sed::line_changes;
use super::{git, join};

/// Where a pipeline runs.
pub(super) struct Scope<'a> {
    directory: Option<&'a str>,
}

impl Scope<'_> {
    fn place(&self, path: &str) -> String {
        join(self.directory, path)
    }

    /// A file that a command changed, nobody can say how.
    pub(super) fn changed(&self, command: &Command, path: &str) -> Observation {
        match is_path(&path) {
            true => Observation::Changed { path: self.place(path), by: told(command) },
            false => self.swept_under(command, path, &[]),
        }
    }

    /// Any file beneath the directory may have changed.
    pub(super) fn swept(&self, command: &Command) -> Observation {
        Observation::Swept { under: self.directory.map(str::to_owned), extensions: Vec::new(), by: told(command) }
    }

    /// Any file beneath a path, or that fits a pattern, may have changed.
    pub(super) fn swept_under(&self, command: &Command, path: &str, extensions: &[&str]) -> Observation {
        let open = path.find(['*', '?', '[', '{', '$', '`', '(']).unwrap_or(path.len());
        let fixed =
            if open < path.len() { path[..open].rsplit_once('/').map_or("", |(parent, _)| parent) } else { path };
        let fixed = fixed.strip_suffix("/...").unwrap_or(fixed).trim_end_matches('/');
        let own = path[open..].rsplit_once('.').map(|(_, extension)| extension);
        let own = own.filter(|own| !own.is_empty() && own.chars().all(|c| c.is_ascii_alphanumeric()));
        let extensions = own.map_or(extensions.to_vec(), |own| vec![own]);
        let under = match fixed {
            "" | "." | "./" => self.directory.map(str::to_owned),
            fixed => Some(self.place(fixed)),
        };
        Observation::Swept { under, extensions: extensions.into_iter().map(str::to_owned).collect(), by: told(command) }
    }
}

/// Most characters of a command that an observation tells.
const MAX_TOLD_CHARS: usize = 40;

/// A command in short.
fn told(command: &Command) -> String {
    let text = command.words.join(" ").replace(['\n', '`'], " ");
    match text.char_indices().nth(MAX_TOLD_CHARS) {
        Some((end, _)) => format!("`{}…`", &text[..end]),
        None => format!("`{text}`"),
    }
}

/// What a pipeline does to files, in order.
pub(super) fn of_pipeline(pipeline: &[Command], directory: Option<&str>, output: &str) -> Vec<Observation> {
    let scope = Scope { directory };
    let mut observations = Vec::new();
    for (index, command) in pipeline.iter().enumerate() {
        let fed = index.checked_sub(1).and_then(|before| printed_text(&pipeline[before]));
        for redirect in &command.writes {
            observations.push(redirected(command, fed.as_ref(), redirect, &scope));
        }
        observations.extend(of_command(command, fed, &scope, output));
    }
    observations
}

fn of_command(command: &Command, fed: Option<Text>, scope: &Scope<'_>, output: &str) -> Vec<Observation> {
    if let Some((formatter, arguments)) = formatter(&command.words) {
        return formatted(command, arguments, formatter.extensions, scope);
    }
    let arguments = command.arguments();
    let operands: Vec<&str> = arguments.iter().map(String::as_str).filter(|word| !word.starts_with('-')).collect();
    match command.program() {
        "sed" | "perl" if is_in_place(arguments) => edited_in_place(command, scope),
        "xargs" | "find" if arguments.iter().any(|word| word == "sed" || word == "perl") && is_in_place(arguments) => {
            let under = operands.first().filter(|_| command.program() == "find");
            vec![scope.swept_under(command, under.unwrap_or(&"."), &[])]
        }
        "tee" => {
            let append = arguments.iter().any(|word| word == "-a");
            let text = command.text_input().or(fed);
            operands.iter().map(|path| written(command, text.clone(), path, append, scope)).collect()
        }
        "cp" => copied(command, &operands, scope),
        "mv" => moved(&operands, scope),
        "rm" | "unlink" => removed(&operands, scope),
        "patch" => match command.input.as_deref() {
            Some(text) => observe_patch(text, operands.first().map(|path| scope.place(path))),
            None => vec![scope.swept(command)],
        },
        "apply_patch" => {
            let text = command.input.as_deref().or_else(|| operands.first().copied());
            text.map(|text| observe_patch(text, None)).unwrap_or_default()
        }
        "git" => git::changes(command, scope, output),
        "python" | "python3" | "node" | "ruby" | "perl" | "bun" | "deno" => scripted(command, scope),
        _ => Vec::new(),
    }
}

/// Text that a command prints, and whether the shell changes it on the way.
#[derive(Clone)]
struct Text {
    text: String,
    is_certain: bool,
}

impl Command {
    fn text_input(&self) -> Option<Text> {
        let text = self.input.clone()?;
        let is_certain = !(self.expands && text.contains(['$', '`', '\\']));
        Some(Text { text, is_certain })
    }
}

/// The text that a command prints, if the command line says it.
fn printed_text(command: &Command) -> Option<Text> {
    let arguments = command.arguments();
    let certain = |text: String| Some(Text { text, is_certain: true });
    let is_literal = |words: &[String]| !words.iter().any(|word| word.contains(['$', '`', '\\']));
    match (command.program(), arguments) {
        ("cat", []) | ("", _) if command.input.is_some() => command.text_input(),
        ("", _) | ("true" | ":", []) => certain(String::new()),
        ("echo", [flag, rest @ ..]) if flag == "-n" && is_literal(rest) => certain(rest.join(" ")),
        ("echo", [flag, rest @ ..]) if flag == "-e" && is_literal(rest) => certain(format!("{}\n", rest.join(" "))),
        ("echo", words) if is_literal(words) => certain(format!("{}\n", words.join(" "))),
        ("printf", [format]) if !format.contains(['%', '$', '`']) => certain(unescaped(format)?),
        ("printf", [format, text]) if is_literal(std::slice::from_ref(text)) => match format.as_str() {
            "%s" => certain(text.clone()),
            "%s\\n" => certain(format!("{text}\n")),
            _ => None,
        },
        _ => None,
    }
}

/// A format of `printf` with its escapes resolved, if all of them are plain.
fn unescaped(format: &str) -> Option<String> {
    let mut text = String::with_capacity(format.len());
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => text.push(match chars.next()? {
                'n' => '\n',
                't' => '\t',
                '\\' => '\\',
                '"' => '"',
                _ => return None,
            }),
            c => text.push(c),
        }
    }
    Some(text)
}

fn redirected(command: &Command, fed: Option<&Text>, redirect: &Redirect, scope: &Scope<'_>) -> Observation {
    let path = redirect.path.as_str();
    if redirect.of_errors {
        return scope.changed(command, path);
    }
    if let ("cat", [from], false) = (command.program(), command.arguments(), redirect.append)
        && command.writes.len() == 1
        && !from.starts_with('-')
    {
        return Observation::Copy { from: scope.place(from), to: scope.place(path) };
    }
    let fed = fed.filter(|_| command.program() == "cat" && command.arguments().is_empty()).cloned();
    written(command, printed_text(command).or(fed), path, redirect.append, scope)
}

/// What a file is after text was written to it. Text that the shell may have changed is no more than a guess.
fn written(command: &Command, text: Option<Text>, path: &str, append: bool, scope: &Scope<'_>) -> Observation {
    match text {
        _ if !is_path(&path) => scope.changed(command, path),
        Some(Text { text, is_certain: true }) if append => Observation::Append { path: scope.place(path), text },
        Some(Text { text, is_certain: true }) => Observation::Write { path: scope.place(path), text },
        Some(Text { text, .. }) if !append => Observation::Guess { path: scope.place(path), text, by: told(command) },
        _ => scope.changed(command, path),
    }
}

fn is_in_place(arguments: &[String]) -> bool {
    let is_short = |word: &String| word.starts_with('-') && !word.starts_with("--") && word.contains('i');
    arguments.iter().any(|word| word.starts_with("--in-place") || is_short(word))
}

/// What `sed -i` and `perl -pi` do: exactly, if the script is plain enough.
fn edited_in_place(command: &Command, scope: &Scope<'_>) -> Vec<Observation> {
    let mut scripts: Vec<&str> = Vec::new();
    let mut files: Vec<&str> = Vec::new();
    let mut words = command.arguments().iter().map(String::as_str);
    let is_perl = command.program() == "perl";
    let (mut extended, mut is_odd) = (is_perl, false);
    while let Some(word) = words.next() {
        match word {
            "-e" | "--expression" => scripts.extend(words.next()),
            "-f" | "--file" => {
                words.next();
                is_odd = true;
                scripts.push("");
            }
            "" => {}
            option if option.starts_with('-') => {
                extended |= option == "--regexp-extended" || (!option.starts_with("--") && option.contains(['E', 'r']));
                // Lines that are not ended by a line feed, or that are not printed back.
                is_odd |= if is_perl {
                    option.starts_with("-0")
                } else {
                    option.contains(['z', 'n']) && option != "--in-place"
                };
                // `perl -pie` and `-pi -e` alike take the script next.
                if option.ends_with('e') && !option.starts_with("--") {
                    scripts.extend(words.next());
                }
            }
            script if scripts.is_empty() => scripts.push(script),
            file => files.push(file),
        }
    }
    let changes: Option<Vec<Vec<LineChange>>> = scripts.iter().map(|script| line_changes(script, extended)).collect();
    let one = |path: &str| match &changes {
        Some(changes) if is_path(&path) && !is_odd => {
            Observation::Rewrite { path: scope.place(path), changes: changes.concat(), by: told(command) }
        }
        _ => scope.changed(command, path),
    };
    files.into_iter().map(one).collect()
}

fn formatted(command: &Command, arguments: &[String], extensions: &[&str], scope: &Scope<'_>) -> Vec<Observation> {
    let paths: Vec<&str> = arguments.iter().map(String::as_str).filter(|word| !word.starts_with('-')).collect();
    if paths.is_empty() || command.program() == "cargo" {
        return vec![scope.swept_under(command, ".", extensions)];
    }
    let one = |path: &str| match looks_like_file(path) && is_path(&path) {
        true => scope.changed(command, path),
        false => scope.swept_under(command, path, extensions),
    };
    paths.into_iter().map(one).collect()
}

/// What `cp` makes.
fn copied(command: &Command, operands: &[&str], scope: &Scope<'_>) -> Vec<Observation> {
    match operands {
        [from, to] if looks_like_file(from) && is_path(from) && is_path(to) => {
            vec![Observation::Copy { from: scope.place(from), to: scope.place(&destination(from, to)) }]
        }
        [.., to] => vec![scope.swept_under(command, to, &[])],
        [] => Vec::new(),
    }
}

/// What `mv` does; the last operand is where files go.
pub(super) fn moved(operands: &[&str], scope: &Scope<'_>) -> Vec<Observation> {
    let Some((to, from)) = operands.split_last() else { return Vec::new() };
    let into = if from.len() > 1 && !to.ends_with('/') { format!("{to}/") } else { (*to).to_owned() };
    let one = |from: &&str| Observation::Move { from: scope.place(from), to: scope.place(&destination(from, &into)) };
    from.iter().filter(|path| is_path(path)).map(one).collect()
}

pub(super) fn removed(operands: &[&str], scope: &Scope<'_>) -> Vec<Observation> {
    operands.iter().filter(|path| is_path(path)).map(|path| Observation::Delete { path: scope.place(path) }).collect()
}

/// Where a file goes: a directory keeps the file's name.
fn destination(from: &str, to: &str) -> String {
    let name = from.rsplit('/').next().unwrap_or(from);
    let is_directory =
        to.ends_with('/') || to == "." || to.ends_with("/.") || (looks_like_file(from) && !looks_like_file(to));
    if is_directory { format!("{}/{name}", to.trim_end_matches('/')) } else { to.to_owned() }
}

/// Files that a script names and may have written.
fn scripted(command: &Command, scope: &Scope<'_>) -> Vec<Observation> {
    let given = command.arguments().iter().skip_while(|word| !matches!(word.as_str(), "-c" | "-e")).nth(1);
    let Some(script) = command.input.as_ref().or(given).filter(|script| script.contains("write")) else {
        return Vec::new();
    };
    let mut paths: Vec<&str> = Vec::new();
    for word in script.split(['"', '\'']).filter(|word| word.len() < MAX_PATH_BYTES && looks_like_file(word)) {
        let is_plain = !word.contains(|c: char| c.is_whitespace() || "(){}<>,;=".contains(c));
        if is_plain && !paths.contains(&word) {
            paths.push(word);
        }
    }
    paths.into_iter().map(|path| scope.swept_under(command, path, &[])).collect()
}

/// Longest word of a script that is taken for a path.
const MAX_PATH_BYTES: usize = 200;

/// Whether a pipeline only does what seldom fails, so that it was done although the command line failed.
pub(super) fn hardly_fails(pipeline: &[Command]) -> bool {
    let seldom =
        ["cat", "echo", "printf", "tee", "mkdir", "export", "set", "touch", "sed", "cp", "mv", "rm", "", "true"];
    pipeline.iter().all(|command| seldom.contains(&command.program()))
}

/// What is left to say of a change that may not have been made.
pub(super) fn in_doubt(change: Observation, pipeline: &[Command]) -> Option<Observation> {
    // A patch that fails is not applied at all.
    if pipeline.iter().any(|command| matches!(command.program(), "apply_patch" | "patch" | "git"))
        && !matches!(change, Observation::Swept { .. })
    {
        return None;
    }
    let path = match &change {
        Observation::Swept { .. } => return Some(change),
        Observation::Move { to, .. } | Observation::Copy { to, .. } => to.clone(),
        other => other.paths().first().map(|path| (*path).to_owned())?,
    };
    Some(Observation::Swept { under: Some(path), extensions: Vec::new(), by: told(&pipeline[0]) })
}
