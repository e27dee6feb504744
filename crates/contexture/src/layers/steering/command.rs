//! Patterns over command lines.
//!
//! A line is read as a list of simple commands. Programs that only run another one are taken off, options before a
//! subcommand are skipped, and lines within lines (`bash -c`, `eval`, here-documents for a shell) are read too. What a
//! pattern to deny cannot be compared with, because the program, its subcommand or the text that a shell runs comes from
//! elsewhere, is [unclear](Likeness::Unclear). Arguments of programs that only print or search are only text. Files are
//! not looked into: a program that is given one is what its name says, and a shell may do anything.

mod code;
mod git;
mod programs;
mod shape;

pub(super) use self::shape::NamedProgram;
use crate::files::commands::table::{ArgumentUse, Prefix, Trait};
use crate::files::shell::{Redirect, Script, Simple, Word, parse, parse_all};
use contexture_text::pattern::name_matches;

/// How deep lines within lines are followed.
const MAX_DEPTH: usize = 8;

/// Whether a command line does what a pattern names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Likeness {
    /// It does not.
    No,
    /// It is a shell that runs what a file says, so it may.
    UnclearFile,
    /// It is not understood as a whole, so it may.
    Unclear,
    /// It does.
    Yes,
}

impl Likeness {
    /// A finding in a place that is only presumed to be run.
    fn at_most_unclear(self) -> Self {
        self.min(Likeness::Unclear)
    }
}

/// The greatest likeness of several.
fn greatest(all: impl IntoIterator<Item = Likeness>) -> Likeness {
    all.into_iter().max().unwrap_or(Likeness::No)
}

/// Whether a line has a command that a pattern names.
pub(super) fn line_likeness(pattern: &str, line: &str) -> Likeness {
    let wanted = NamedProgram::new(pattern);
    // A pattern over the line itself, as in `curl * | sh`.
    if pattern.contains(['|', ';', '&', '<', '>']) && name_matches(pattern, line.trim()) {
        return Likeness::Yes;
    }
    Looking { wanted: &wanted, depth: 0 }.line(line)
}

/// Whether a program with arguments, as in `["git", "push"]`, is a command that a pattern names.
pub(super) fn words_likeness(pattern: &str, words: &[&str]) -> Likeness {
    let wanted = NamedProgram::new(pattern);
    let words =
        words.iter().map(|word| Word { text: (*word).to_owned(), is_quoted: true, ..Word::default() }).collect();
    let command = Simple { words, ..Simple::default() };
    Looking { wanted: &wanted, depth: 0 }.command(&command, &LineScope::default())
}

/// A search for what a pattern names.
#[derive(Clone, Copy)]
struct Looking<'a> {
    wanted: &'a NamedProgram<'a>,
    depth: usize,
}

/// What a whole line makes of the words in it.
#[derive(Default)]
struct LineScope {
    /// The variables that it sets.
    assigns: Vec<String>,
    /// The names of the files that it writes.
    written: Vec<String>,
}

impl LineScope {
    fn of(script: &Script) -> Self {
        let mut scope = LineScope::default();
        for command in script.commands() {
            scope.assigns.extend(command.assigns.iter().cloned());
            let targets = command.redirects.iter().filter_map(|redirect| match redirect {
                Redirect::Write(word) | Redirect::Append(word) | Redirect::Both(word) => Some(word),
                _ => None,
            });
            let makes = matches!(command.program(), Some("tee" | "cp" | "mv" | "ln" | "install"));
            let tees = command.arguments().iter().filter(|_| makes);
            scope.written.extend(targets.chain(tees).map(|word| base_name(&word.text).to_owned()));
        }
        scope
    }

    /// Whether the line itself writes a file of this name.
    fn writes(&self, path: &str) -> bool {
        self.written.iter().any(|written| written == base_name(path))
    }

    /// Whether the shell may make several words of one.
    fn may_split(&self, word: &Word) -> bool {
        let is_set_here = || self.assigns.iter().any(|name| word.text.contains(name.as_str()));
        word.plain().is_none()
            && !word.is_quoted
            && (word.text.contains("$()") || word.text.contains("``") || is_set_here())
    }
}

impl Looking<'_> {
    fn deeper(self) -> Self {
        Self { depth: self.depth + 1, ..self }
    }

    /// A command line.
    fn line(self, line: &str) -> Likeness {
        if self.depth > MAX_DEPTH {
            return Likeness::Unclear;
        }
        let Some(script) = parse_all(line) else { return Likeness::Unclear };
        let scope = LineScope::of(&script);
        greatest(script.commands().map(|command| self.command(command, &scope)))
    }

    /// A command line in a word; one that the shell changes is not known.
    fn line_in(self, word: &Word) -> Likeness {
        match word.plain() {
            Some(line) => self.deeper().line(line),
            None => Likeness::Unclear,
        }
    }

    /// Words that are joined to a command line.
    fn joined(self, words: &[Word]) -> Likeness {
        match words.iter().map(Word::plain).collect::<Option<Vec<&str>>>() {
            Some(words) => self.deeper().line(&words.join(" ")),
            None => Likeness::Unclear,
        }
    }

    fn command(self, command: &Simple, scope: &LineScope) -> Likeness {
        let assigned = command.assigned.iter().map(|word| self.assignment(word));
        greatest(assigned).max(self.words(&command.words, command, scope))
    }

    /// A variable that some program runs as a command.
    fn assignment(self, word: &Word) -> Likeness {
        let Some((name, value)) = word.text.split_once('=') else { return Likeness::No };
        match programs::variable(name) {
            programs::Variable::Line if word.plain().is_none() => Likeness::Unclear,
            programs::Variable::Line => self.deeper().line(value),
            programs::Variable::Options
                if word.plain().is_some() && value.split_whitespace().all(|word| code::loaded(word).is_none()) =>
            {
                Likeness::No
            }
            programs::Variable::Elsewhere | programs::Variable::Options => Likeness::Unclear,
            programs::Variable::Git if self.wanted.may_be("git") => Likeness::Unclear,
            programs::Variable::Git | programs::Variable::Plain => Likeness::No,
        }
    }

    /// A program and its arguments.
    fn words(self, words: &[Word], command: &Simple, scope: &LineScope) -> Likeness {
        if self.depth > MAX_DEPTH {
            return Likeness::Unclear;
        }
        let Some((first, arguments)) = words.split_first() else { return Likeness::No };
        // A program that only the shell knows may be any.
        let Some(name) = programs::name_of(first) else { return Likeness::Unclear };
        if name.contains(char::is_whitespace) {
            return self.deeper().line(&first.text).max(Likeness::Unclear);
        }
        let is_subscript = |word: &Word| word.has_subscript_command();
        if programs::known(&name).has(Trait::Evaluates) && arguments.iter().any(is_subscript) {
            return Likeness::Unclear;
        }
        // A script that the line itself writes.
        if first.text.contains('/') && scope.writes(&name) {
            return Likeness::Unclear;
        }
        if let Some(subcommand) = name.strip_prefix("git-").filter(|name| git::is_subcommand(name)) {
            let plain = |text: &str| Word { text: text.to_owned(), ..Word::default() };
            let words: Vec<Word> =
                [plain("git"), plain(subcommand)].into_iter().chain(arguments.iter().cloned()).collect();
            return self.deeper().words(&words, command, scope);
        }
        let own = shape::likeness(self.wanted, &name, arguments, scope);
        own.max(self.inner(&name, words, command, scope))
    }

    /// What a program runs besides itself.
    fn inner(self, name: &str, words: &[Word], command: &Simple, scope: &LineScope) -> Likeness {
        let arguments = &words[1..];
        match programs::known(name).takes {
            ArgumentUse::Text(_) if name == "gh" && arguments.first().is_some_and(|word| word.text == "alias") => {
                self.other(words, command, scope)
            }
            ArgumentUse::Text(options) => {
                let lines = git::values(arguments, options);
                greatest(lines.iter().map(|line| self.line_in(line).at_most_unclear()))
            }
            ArgumentUse::Callbacks if arguments.iter().any(programs::is_callback) => Likeness::Unclear,
            ArgumentUse::Callbacks => Likeness::No,
            ArgumentUse::Command(prefix) => self.prefixed(prefix, arguments, command, scope),
            ArgumentUse::Shell => self.shell(arguments, command, scope),
            ArgumentUse::Line => self.joined(arguments),
            ArgumentUse::Elsewhere => match arguments.first() {
                Some(script) if name != "fc" => shell_script(script, scope),
                _ => Likeness::Unclear,
            },
            ArgumentUse::Variables => greatest(arguments.iter().map(|word| self.assignment(word))),
            ArgumentUse::Aliases => greatest(arguments.iter().map(|word| self.alias(word))),
            ArgumentUse::Files => greatest(arguments.iter().map(|word| self.copied(word))),
            ArgumentUse::Between => self.found(arguments, command, scope),
            ArgumentUse::Fed(prefix) if name == "parallel" && programs::starts(prefix, arguments).is_empty() => {
                Likeness::Unclear
            }
            ArgumentUse::Fed(prefix) => self.fed(prefix, arguments, command, scope),
            ArgumentUse::Code => self.interpreter(name, arguments, command, scope),
            ArgumentUse::Git => self.git(arguments, command, scope),
            ArgumentUse::Later => self.input(command, scope),
            ArgumentUse::Unknown if name == "ssh" => self.remote(words, command, scope),
            ArgumentUse::Unknown => self.other(words, command, scope),
        }
    }

    fn prefixed(self, prefix: &Prefix, arguments: &[Word], command: &Simple, scope: &LineScope) -> Likeness {
        if programs::only_looks(prefix, arguments) {
            return Likeness::No;
        }
        let lines = programs::lines(prefix, arguments).map(|word| self.line_in(&word));
        let starts = programs::starts(prefix, arguments);
        let is_shell = |word: &Word| matches!(word.text.as_str(), "-s" | "-i" | "--shell" | "--login");
        if starts.is_empty() && prefix.starts_shells && arguments.iter().any(is_shell) {
            return self.input(command, scope);
        }
        let assigned = arguments.iter().filter(|word| prefix.has_assignments && word.text.contains('='));
        greatest(lines)
            .max(greatest(assigned.map(|word| self.assignment(word))))
            .max(greatest(starts.into_iter().map(|start| self.deeper().words(&arguments[start..], command, scope))))
    }

    /// A shell with a line, a script, or what it reads.
    fn shell(self, arguments: &[Word], command: &Simple, scope: &LineScope) -> Likeness {
        let mut rest = arguments.iter();
        let mut only_checks = false;
        while let Some(word) = rest.next() {
            let Some(text) = word.plain() else { return Likeness::Unclear };
            let is_cluster = text.starts_with('-') && !text.starts_with("--");
            if matches!(text, "--version" | "--help") {
                return Likeness::No;
            }
            // It only checks the syntax, unless that is taken back.
            only_checks |= is_cluster && text.contains('n') && !text.contains('c');
            only_checks &= !text.starts_with('+');
            if (is_cluster && text.contains('c')) || text == "--command" {
                return rest.next().map_or(Likeness::Unclear, |line| self.line_in(line));
            }
            if matches!(text, "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file") {
                rest.next();
            } else if !text.starts_with(['-', '+']) {
                return if only_checks { Likeness::No } else { shell_script(word, scope) };
            }
        }
        self.input(command, scope)
    }

    /// A shell that runs what it reads.
    fn input(self, command: &Simple, scope: &LineScope) -> Likeness {
        let documents = command.redirects.iter().filter_map(|redirect| match redirect {
            Redirect::Document { text, is_plain } => Some((text, *is_plain)),
            _ => None,
        });
        let found =
            documents.map(|(text, is_plain)| if is_plain { self.deeper().line(text) } else { Likeness::Unclear });
        let read = command.redirects.iter().filter_map(|redirect| match redirect {
            Redirect::Read(word) => Some(shell_script(word, scope)),
            _ => None,
        });
        found.chain(read).max().unwrap_or(Likeness::Unclear)
    }

    fn alias(self, word: &Word) -> Likeness {
        let Some((_, value)) = word.text.split_once('=') else { return Likeness::No };
        if word.plain().is_none() {
            return Likeness::Unclear;
        }
        let is_program = value.split_whitespace().next().is_some_and(|first| self.wanted.may_be(base_name(first)));
        let presumed = if is_program { Likeness::Unclear } else { Likeness::No };
        presumed.max(self.deeper().line(value))
    }

    /// A program that gets another name.
    fn copied(self, word: &Word) -> Likeness {
        let is_program = word.text.contains("bin/") && self.wanted.is_exactly(base_name(&word.text));
        if is_program { Likeness::Unclear } else { Likeness::No }
    }

    /// The commands of `find`.
    fn found(self, arguments: &[Word], command: &Simple, scope: &LineScope) -> Likeness {
        const RUNS: [&str; 8] = ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];
        let starts = arguments.iter().enumerate();
        let starts = starts.filter(|(_, word)| RUNS.contains(&word.text.as_str()));
        greatest(starts.map(|(at, _)| {
            let rest = &arguments[at + 1..];
            let end = rest.iter().position(|word| matches!(word.text.as_str(), ";" | "+")).unwrap_or(rest.len());
            // What is found is run.
            if rest.first().is_some_and(|word| word.text.contains("{}")) {
                return Likeness::Unclear;
            }
            self.deeper().words(&rest[..end], command, scope)
        }))
    }

    /// A command that gets more arguments from what is read.
    fn fed(self, prefix: &Prefix, arguments: &[Word], command: &Simple, scope: &LineScope) -> Likeness {
        let replaced = programs::replaced(arguments);
        let unknown = || Word {
            text: "$1".to_owned(),
            expands: crate::files::shell::Expands::ToAnything,
            is_quoted: true,
            ..Word::default()
        };
        greatest(programs::starts(prefix, arguments).into_iter().map(|start| {
            let words = arguments[start..].iter().take_while(|word| word.text != ":::");
            let is_replaced = |word: &&Word| replaced.iter().any(|text| word.text.contains(text.as_str()));
            let mut words: Vec<Word> =
                words.map(|word| if is_replaced(&word) { unknown() } else { word.clone() }).collect();
            if let [line] = &words[..]
                && line.text.contains(char::is_whitespace)
            {
                return self.line_in(line);
            }
            words.push(unknown());
            self.deeper().words(&words, command, scope)
        }))
    }

    /// A program in another language: it is only looked at whether it can run others. One in a file is what its name says.
    fn interpreter(self, name: &str, arguments: &[Word], command: &Simple, scope: &LineScope) -> Likeness {
        let is_written = |word: &Word| scope.writes(&word.text);
        if code::loads_unknown(name, arguments) || arguments.iter().any(is_written) {
            return Likeness::Unclear;
        }
        let texts = match code::code(name, arguments) {
            code::Code::File => return Likeness::No,
            code::Code::Texts(words) => words,
            code::Code::Input => {
                let documents = command.redirects.iter().filter_map(|redirect| match redirect {
                    Redirect::Document { text, .. } => Some(Word { text: text.clone(), ..Word::default() }),
                    _ => None,
                });
                documents.collect()
            }
        };
        let is_clear = |word: &Word| word.plain().is_some_and(|code| !code::can_run(name, code));
        if !texts.is_empty() && texts.iter().all(is_clear) { Likeness::No } else { Likeness::Unclear }
    }

    /// A command on another machine; without one it is what is read.
    fn remote(self, words: &[Word], command: &Simple, scope: &LineScope) -> Likeness {
        let names = words[1..].iter().filter(|word| !word.text.starts_with('-')).count();
        let read = if names == 1 { self.input(command, scope) } else { Likeness::No };
        read.max(self.other(words, command, scope))
    }

    /// A program that is not known. Its arguments may be a command, or lines for a shell.
    fn other(self, words: &[Word], command: &Simple, scope: &LineScope) -> Likeness {
        let mut likeness = Likeness::No;
        for (at, word) in words.iter().enumerate().skip(1) {
            let text = word.text.as_str();
            let next_is_option =
                || words.get(at + 1).is_some_and(|next| next.text.starts_with('-') && next.text.contains('c'));
            let is_shell = programs::is_shell(base_name(text)) && next_is_option();
            if word.plain().is_some() && (self.wanted.is_exactly(base_name(text)) || is_shell) {
                likeness = likeness.max(self.deeper().words(&words[at..], command, scope).at_most_unclear());
            }
            let is_value = |name: &str| text.starts_with('-') && !name.contains(char::is_whitespace);
            let ends = text.match_indices('=').filter(|(at, _)| is_value(&text[..*at])).map(|(at, _)| at + 1);
            for value in ends.chain([0]).map(|start| &text[start..]) {
                if value.contains(char::is_whitespace) {
                    likeness = likeness.max(self.quoted(value.trim_start_matches(['!', ':', '@', '+', ' '])));
                }
            }
        }
        let documents = command.redirects.iter().filter_map(|redirect| match redirect {
            Redirect::Document { text, is_plain: false } if self.wanted.is_within(text) => Some(Likeness::Unclear),
            Redirect::Document { text, .. } => Some(self.quoted(text.trim_start_matches(['!', ':']))),
            _ => None,
        });
        likeness.max(greatest(documents))
    }

    /// A text that some program may run.
    fn quoted(self, text: &str) -> Likeness {
        match self.deeper().line(text) {
            Likeness::UnclearFile | Likeness::Unclear if !self.wanted.is_named_in(text) => Likeness::No,
            likeness => likeness.at_most_unclear(),
        }
    }
}

/// A file that a shell runs: one that is named may be allowed by that name, but not one that the line itself writes.
fn shell_script(word: &Word, scope: &LineScope) -> Likeness {
    match word.plain() {
        Some(path) if !scope.writes(path) => Likeness::UnclearFile,
        _ => Likeness::Unclear,
    }
}

/// Whether a pattern matches every command of a line, and the line consists only of commands.
pub(super) fn is_all(pattern: &str, line: &str) -> bool {
    let Some(script) = parse(line).filter(|script| script.is_straight) else { return false };
    let mut commands = script.commands().peekable();
    commands.peek().is_some() && commands.all(|command| command_is(pattern, command))
}

/// Whether a pattern matches a program with its arguments.
pub(super) fn is_words(pattern: &str, words: &[&str]) -> bool {
    let text = words.join(" ");
    !words.is_empty() && (name_matches(pattern, &text) || name_matches(pattern, &format!("{text} ")))
}

fn command_is(pattern: &str, command: &Simple) -> bool {
    let words: Option<Vec<&str>> = command.words.iter().map(Word::plain).collect();
    let only_reads = command.redirects.iter().all(|redirect| {
        matches!(redirect, Redirect::Read(_) | Redirect::Document { .. } | Redirect::ErrorsToOutput | Redirect::Copy)
    });
    let words = words.filter(|_| only_reads && command.assigns.is_empty());
    words.is_some_and(|words| is_words(pattern, &words))
}

fn base_name(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

#[cfg(test)]
mod tests;
