//! Programs that read what they run from a file of the project: a script, a Makefile, the scripts of a package.
//!
//! The file is read where it is below the base directory. What it says is compared with the pattern as if it stood on
//! the command line; what it says in another language is only searched for the pattern's words. A file that cannot be
//! read, or that is not understood as a whole, is [doubted](Likeness::UnclearFile).

use serde_json::Value;

use super::super::sources::SourceFile;
use super::asked::{RecipeProgram, RecipeRequest};
use super::recipes::Recipes;
use super::{Likeness, LineScope, Looking, base_name, code, greatest, programs};
use crate::files::commands::table::ArgumentUse;
use crate::files::shell::{Simple, Word};

/// Options with which a program only says something of itself.
const ASKS: [&str; 6] = ["--version", "--help", "-h", "-v", "-V", "--list"];

impl Looking<'_> {
    /// What a program reads from files that it finds by itself, or is one itself.
    pub(super) fn read(self, name: &str, words: &[Word], command: &Simple, scope: &LineScope) -> Likeness {
        let (program, arguments) = (&words[0], &words[1..]);
        let own = if program.text.contains('/') { self.own_script(name, program, scope) } else { Likeness::No };
        if let [only] = arguments
            && ASKS.contains(&only.text.as_str())
        {
            return own;
        }
        own.max(match name {
            "make" | "gmake" => self.recipes(RecipeProgram::Make, arguments, &command.assigned, scope),
            "just" => self.recipes(RecipeProgram::Just, arguments, &command.assigned, scope),
            "npm" | "pnpm" | "yarn" | "bun" => self.package(name, arguments, scope),
            "deno" if arguments.first().is_none_or(|word| word.text != "task") => Likeness::No,
            name => match programs::known(name).tasks {
                [] => Likeness::No,
                files => self.tasks(files, scope),
            },
        })
    }

    /// A program that is named by its path.
    fn own_script(self, name: &str, program: &Word, scope: &LineScope) -> Likeness {
        let is_known = !matches!(programs::known(name).takes, ArgumentUse::Unknown) || self.wanted.may_be(name);
        let here = || ["$PWD/", "${PWD}/"].iter().find_map(|start| program.text.strip_prefix(*start));
        let Some(path) = program.plain().or_else(here) else {
            // Below the user's own directory, where programs are in folders of that name.
            let is_installed = program.text.rsplit('/').nth(1) == Some("bin");
            return if is_known || is_installed { Likeness::No } else { Likeness::UnclearFile };
        };
        let is_system = ["/bin/", "/sbin/", "/usr/", "/opt/", "/nix/", "/snap/"].iter().any(|at| path.starts_with(at));
        if is_system || path.starts_with('~') {
            return Likeness::No;
        }
        let is_wrapper = !programs::known(name).tasks.is_empty();
        let look = |looking: Self, text: &str| match is_wrapper {
            true => looking.mentioned(text),
            false => looking.script(text),
        };
        let found = self.sources.within(".", || self.files(path, scope, look));
        // What is installed elsewhere is known by its name: `/srv/bin/git`, `.venv/bin/python`.
        if found == Likeness::UnclearFile && is_known && !self.is_script(path) { Likeness::No } else { found }
    }

    /// Whether a path leads to a text of the project.
    fn is_script(self, path: &str) -> bool {
        let names = self.sources.names(path).unwrap_or_default();
        names.iter().any(|(_, name)| matches!(self.sources.file(name), SourceFile::Text(_)))
    }

    /// A script that a shell is given.
    pub(super) fn shell_script(self, word: &Word, scope: &LineScope) -> Likeness {
        match word.plain() {
            Some(path) => self.files(path, scope, Self::script),
            None => Likeness::Unclear,
        }
    }

    /// A program that an interpreter is given, or a module of the project.
    pub(super) fn code_file(self, name: &str, arguments: &[Word], scope: &LineScope) -> Likeness {
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            let Some(text) = word.plain() else { return Likeness::UnclearFile };
            match text {
                text if ASKS.contains(&text) => return Likeness::No,
                "-m" if !name.ends_with("awk") => {
                    let module = rest.next().and_then(Word::plain).unwrap_or_default().replace('.', "/");
                    let files = [format!("{module}.py"), format!("{module}/__main__.py")];
                    // One that the project does not have is installed.
                    return greatest(files.iter().map(|path| self.files_if_any(path, scope, Self::mentioned)));
                }
                "-f" | "--file" if name.ends_with("awk") || name.ends_with("sed") => {}
                "-W" | "-X" | "-I" | "-C" => {
                    rest.next();
                    continue;
                }
                // What is loaded before the program was looked at.
                text if code::loaded(text) == Some("") => {
                    rest.next();
                    continue;
                }
                text if text.starts_with('-') => continue,
                // A subcommand, or the name of a task.
                text if matches!(name, "deno" | "bun") && !text.contains('.') => continue,
                path => return self.files(path, scope, Self::mentioned),
            }
            if let Some(path) = rest.next().and_then(Word::plain) {
                return self.files(path, scope, |looking, text| looking.code_in(name, text));
            }
        }
        Likeness::No
    }

    /// Files that an interpreter loads before its code. Modules by their names are not followed.
    pub(super) fn loaded(self, name: &str, arguments: &[Word], scope: &LineScope) -> Likeness {
        if !code::is_loader(name) {
            return Likeness::No;
        }
        let files = arguments.iter().enumerate().filter_map(|(at, word)| {
            let own = code::loaded(&word.text)?;
            let next = arguments.get(at + 1).filter(|_| own.is_empty());
            Some(next.unwrap_or(word).plain().map(|text| if own.is_empty() { text } else { own }))
        });
        greatest(files.map(|file| {
            // An address may be code itself.
            let Some(file) = file.filter(|file| !file.contains(':')) else { return Likeness::UnclearFile };
            let names = ["", ".js", ".rb"].map(|end| format!("{file}{end}"));
            match greatest(names.iter().map(|path| self.files_if_any(path, scope, Self::mentioned))) {
                Likeness::No => Likeness::No,
                _ => Likeness::UnclearFile,
            }
        }))
    }

    fn code_in(self, name: &str, text: &str) -> Likeness {
        if code::can_run(name, text) { self.mentioned(text) } else { Likeness::No }
    }

    /// A script, by its first line.
    fn script(self, text: &str) -> Likeness {
        let first = text.lines().next().unwrap_or_default();
        let Some(interpreter) = first.strip_prefix("#!") else { return self.of_file(self.deeper().line(text)) };
        let words = interpreter.split_whitespace().filter(|word| !word.starts_with('-'));
        let mut names = words.map(base_name).skip_while(|name| *name == "env");
        match names.next() {
            Some(name) if programs::is_shell(name) => self.of_file(self.deeper().line(text)),
            _ => self.mentioned(text),
        }
    }

    /// A line of a file that a shell of its own runs.
    fn apart(self, line: &str) -> Likeness {
        self.of_file(self.sources.within(".", || self.deeper().line(line)))
    }

    /// A finding in the text of a file.
    fn of_file(self, found: Likeness) -> Likeness {
        if found == Likeness::Unclear { Likeness::UnclearFile } else { found }
    }

    /// Whether a text that is not read as commands has the words of the pattern.
    fn mentioned(self, text: &str) -> Likeness {
        if self.wanted.may_be_said_in(text) { Likeness::UnclearFile } else { Likeness::No }
    }

    /// A file by every name that it may have; one that is not there is doubted.
    fn files(self, path: &str, scope: &LineScope, look: impl Fn(Self, &str) -> Likeness) -> Likeness {
        self.first_of(&[path], "", scope, look).or_doubt()
    }

    /// The same, but a file need not be there.
    fn files_if_any(self, path: &str, scope: &LineScope, look: impl Fn(Self, &str) -> Likeness) -> Likeness {
        self.first_of(&[path], "", scope, look).likeness
    }

    /// The first of some files that is there, in each directory that the line may be in. Each part of a file is looked
    /// at once.
    fn first_of(
        self,
        paths: &[&str],
        part: &str,
        scope: &LineScope,
        look: impl Fn(Self, &str) -> Likeness,
    ) -> LookedAt {
        let doubted = LookedAt { likeness: Likeness::UnclearFile, is_there: true };
        if paths.iter().any(|path| scope.writes(path)) || self.sources.is_lost() || self.sources.is_tired() {
            return doubted;
        }
        let names: Option<Vec<Vec<(String, String)>>> = paths.iter().map(|path| self.sources.names(path)).collect();
        let Some(names) = names else { return doubted };
        let mut looked = LookedAt { likeness: Likeness::No, is_there: false };
        for at in 0..names.iter().map(Vec::len).min().unwrap_or(0) {
            let sources: Vec<&SourceFile> = names.iter().map(|names| self.sources.file(&names[at].1)).collect();
            let first = sources.iter().position(|source| **source != SourceFile::Absent);
            looked.is_there = first.is_some();
            let Some(first) = first else { continue };
            let (directory, name) = &names[first][at];
            let is_first = || self.sources.is_first(format!("{name}\n{part}"));
            looked.likeness = looked.likeness.max(match sources[first] {
                SourceFile::Text(text) if is_first() => self.sources.in_directory(directory, || look(self, text)),
                SourceFile::Text(_) | SourceFile::Binary | SourceFile::Absent => Likeness::No,
                SourceFile::Unreadable => Likeness::UnclearFile,
            });
        }
        looked
    }

    /// The text of a file by every name that it may have.
    fn texts(self, path: &str) -> String {
        let names = self.sources.names(path).unwrap_or_default();
        let texts = names.iter().filter_map(|(_, name)| match self.sources.file(name) {
            SourceFile::Text(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect::<Vec<&str>>().join("\n")
    }

    /// A program whose tasks are in one of these files, in a language that is not read.
    fn tasks(self, files: &[&str], scope: &LineScope) -> Likeness {
        self.first_of(files, "", scope, Self::mentioned).or_doubt()
    }

    /// `make` or `just`.
    fn recipes(self, writing: RecipeProgram, arguments: &[Word], assigned: &[Word], scope: &LineScope) -> Likeness {
        let Some(asked) = RecipeRequest::read(writing, arguments, assigned) else { return Likeness::UnclearFile };
        let files = asked.file.map_or_else(|| writing.files().to_vec(), |file| vec![file]);
        let look = |looking: Self, text: &str| {
            let own = Recipes::read(writing, text, &asked);
            let text = own.included().iter().fold(text.to_owned(), |text, path| text + "\n" + &looking.texts(path));
            let recipes = Recipes::read(writing, &text, &asked);
            // What these include in turn is only searched.
            let more = recipes.included().iter().filter(|path| !own.included().contains(path));
            let included = more.map(|path| looking.files_if_any(path, scope, Self::mentioned));
            let lines = recipes.lines(&asked);
            let run = greatest(lines.iter().map(|line| looking.apart(line)));
            let doubt = if recipes.is_clear() { Likeness::No } else { Likeness::UnclearFile };
            run.max(doubt).max(greatest(included))
        };
        let part = asked.part();
        let find = || self.first_of(&files, &part, scope, look);
        let looked = self.sources.within(asked.directory.unwrap_or("."), find);
        if asked.only_shows { looked.likeness } else { looked.or_doubt() }
    }

    /// A manager of packages, which runs the scripts of `package.json`.
    fn package(self, manager: &str, arguments: &[Word], scope: &LineScope) -> Likeness {
        let mut words: Vec<&Word> = Vec::new();
        let mut directory = Some(".");
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            match word.text.as_str() {
                "--" => words.extend(rest.by_ref()),
                "--prefix" | "-C" | "--dir" | "--cwd" => directory = rest.next().and_then(Word::plain),
                text if ["--prefix=", "--cwd=", "--dir="].iter().any(|option| text.starts_with(option)) => {
                    directory = word.plain().and_then(|text| text.split_once('=')).map(|(_, at)| at);
                }
                "-w" | "-ws" | "-r" | "-F" | "workspace" | "workspaces" | "--recursive" | "foreach" => {
                    return Likeness::UnclearFile;
                }
                text if text.starts_with("--workspace") || text.starts_with("--filter") => {
                    return Likeness::UnclearFile;
                }
                text if text.starts_with('-') && words.len() < 2 => {}
                _ => words.push(word),
            }
        }
        let Some(names) = scripts(manager, &mut words) else { return Likeness::No };
        let Some(directory) = directory else { return Likeness::UnclearFile };
        let Some(names) = names.iter().map(|name| name.as_deref()).collect::<Option<Vec<&str>>>() else {
            return Likeness::UnclearFile;
        };
        let more: Vec<String> = words.iter().map(|word| word.plain().map_or("\"$1\"".to_owned(), quoted)).collect();
        let look = |looking: Self, text: &str| {
            let Ok(package) = serde_json::from_str::<Value>(text) else { return Likeness::UnclearFile };
            let lines = names.iter().filter_map(|name| package["scripts"].get(*name)?.as_str());
            greatest(lines.map(|line| looking.apart(&format!("{line} {}", more.join(" ")))))
        };
        let part = format!("{} {}", names.join(" "), more.join(" "));
        self.sources.within(directory, || self.first_of(&["package.json"], &part, scope, look)).or_doubt()
    }
}

/// What was found in files.
struct LookedAt {
    likeness: Likeness,
    /// Whether the file is where it is looked for first.
    is_there: bool,
}

impl LookedAt {
    /// A file that is not there may be made before it is run.
    fn or_doubt(self) -> Likeness {
        if self.is_there { self.likeness } else { self.likeness.max(Likeness::UnclearFile) }
    }
}

/// A word as a shell would have to read it.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The scripts that a manager of packages runs, `None` for one whose name is not known. The words that are left are
/// passed on to them. `None`: it runs none.
fn scripts(manager: &str, words: &mut Vec<&Word>) -> Option<Vec<Option<String>>> {
    const SILENT: [&str; 30] = [
        "ls", "list", "view", "info", "outdated", "why", "explain", "audit", "config", "get", "help", "search",
        "whoami", "ping", "prefix", "root", "bin", "doctor", "fund", "docs", "bugs", "repo", "token", "login",
        "logout", "exec", "x", "dlx", "create", "init",
    ];
    if words.is_empty() {
        // `yarn` alone installs.
        return (manager == "yarn").then(|| around(&["install", "prepare"]));
    }
    let command = words.remove(0);
    let Some(text) = command.plain() else { return Some(vec![None]) };
    let name = match text {
        "run" | "run-script" | "rum" | "urn" if words.is_empty() => return None,
        "run" | "run-script" | "rum" | "urn" => match words.remove(0).plain() {
            Some(name) => name,
            None => return Some(vec![None]),
        },
        "t" | "tst" => "test",
        "i" | "in" | "ci" | "add" | "install" | "update" | "up" | "upgrade" | "link" | "rebuild" | "remove" | "rm" => {
            words.clear();
            return Some(around(&["install", "prepare", "prepublish"]));
        }
        "publish" | "pack" | "version" => {
            words.clear();
            return Some(around(&[text, "prepublish", "prepublishOnly", "prepare", "pack"]));
        }
        text if SILENT.contains(&text) => return None,
        text => text,
    };
    Some(around(&[name]))
}

/// Scripts, with those that run before and after them.
fn around(names: &[&str]) -> Vec<Option<String>> {
    let with = |name: &&str| [format!("pre{name}"), (*name).to_owned(), format!("post{name}")];
    names.iter().flat_map(with).map(Some).collect()
}
