//! What is claimed of files is held against the disk: sessions of reads, edits, writes and commands in a real shell.
//!
//! Every session has a folder of its own with a repository in it. After every call each line of the model that is verified
//! must be in its file, at its number; a whole file must have the right lines; a deleted file must be gone; and what is
//! claimed to be as it was seen or written was in a file once, or was shown. After every fold the same is asked of the
//! views in the window, read back from their text. `CONTEXTURE_RIG_SESSIONS` runs more sessions, `CONTEXTURE_RIG_SEED` others,
//! `CONTEXTURE_RIG_LIST` takes the commands from a file, and `CONTEXTURE_RIG_FROM` leaves out the first of them.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use contexture_core::Item;
use contexture_core::item::{FunctionCall, FunctionCallOutput, Meta, Outcome, Role};
use contexture_files::dialect::Dialects;
use contexture_files::model::{Fact, FileModel, Verified};
use contexture_files::observer::Observer;
use contexture_fold::{FoldDecision, Folder};
use contexture_wire::transcript::Record;
use serde_json::Value;

use crate::records::{folder, push, said, text};

mod dice;
mod harness;
mod project;
mod tools;
mod window;

use dice::Dice;
use harness::{HARNESSES, Harness};

/// Commands with places to be filled in, one a line; `⏎` is a line feed in one.
const COMMANDS: &str = include_str!("file_rig/commands.txt");

/// Others, as someone else would choose them.
const OTHERS: &str = include_str!("file_rig/others.txt");

/// Those of someone who wants to be told something wrong.
const STRANGERS: &str = include_str!("file_rig/strangers.txt");

struct Rig {
    _folder: tempfile::TempDir,
    home: PathBuf,
    root: PathBuf,
    directory: PathBuf,
    harness: Harness,
    observer: Observer,
    model: FileModel,
    folder: Folder,
    /// The text of each item that the folder was told of.
    logged: Vec<String>,
    /// Every line that a file of the project had after some step.
    had: BTreeSet<String>,
    at: u32,
    dice: Dice,
    history: String,
    counted: Counted,
}

/// What was held against the disk, summed over all checks.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    known: usize,
    whole: usize,
    folds: usize,
    shown: usize,
    shown_whole: usize,
}

impl std::ops::AddAssign for Counted {
    fn add_assign(&mut self, other: Self) {
        self.known += other.known;
        self.whole += other.whole;
        self.folds += other.folds;
        self.shown += other.shown;
        self.shown_whole += other.shown_whole;
    }
}

const WORDS: [&str; 12] =
    ["alpha", "beta", "gamma", "line", "value", "import", "return", "x", "the", "name", "foo", "data"];

impl Rig {
    fn new(seed: u64) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let home = directory.path().canonicalize().unwrap();
        let root = home.join("p/q/r/work");
        for (name, text) in project::initial_files() {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut dice = Dice::new(seed);
        let harness = *dice.pick(&HARNESSES);
        let budget = 1_500 + dice.roll(5_501) as u64;
        let mut rig = Self {
            _folder: directory,
            directory: root.clone(),
            home,
            root,
            harness,
            observer: Observer::new(Dialects::builtin()),
            model: FileModel::new(),
            folder: folder(budget),
            logged: Vec::new(),
            had: BTreeSet::new(),
            at: 0,
            dice,
            history: format!("seed {seed}, {harness:?}, {budget} tokens\n"),
            counted: Counted::default(),
        };
        rig.shell("chmod +x script.sh; git init -q . && git add -A && git commit -qm first");
        rig.push(&said(Role::User, "Please go on."));
        rig
    }

    fn push(&mut self, record: &Record) {
        self.logged.extend(record.items().iter().map(text));
        push(&mut self.folder, record);
    }

    /// Runs a command line for real; returns what it printed and whether it succeeded.
    fn shell(&mut self, line: &str) -> (String, bool) {
        let place = self.home.join("where");
        let script = format!("trap 'pwd -P > {}' EXIT\n{line}\n", place.display());
        // A command may keep the shell from saying where it ended.
        let _ = fs::remove_file(&place);
        let out = self.home.join("printed");
        let printed = fs::File::create(&out).unwrap();
        let status = Command::new("bash")
            .args(["-c", &script])
            .current_dir(&self.directory)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &self.home)
            .env("LC_ALL", "C")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CEILING_DIRECTORIES", &self.home)
            .envs([("GIT_AUTHOR_NAME", "a"), ("GIT_AUTHOR_EMAIL", "a@b"), ("GIT_COMMITTER_NAME", "a")])
            .envs([("GIT_COMMITTER_EMAIL", "a@b"), ("PAGER", "cat"), ("GIT_PAGER", "cat")])
            .stdin(Stdio::null())
            .stdout(printed.try_clone().unwrap())
            .stderr(printed)
            .status()
            .unwrap();
        let text = String::from_utf8_lossy(&fs::read(&out).unwrap()).into_owned();
        let place = fs::read_to_string(&place).unwrap_or_default();
        if self.harness.keeps_directory() && !place.trim().is_empty() {
            self.directory = PathBuf::from(place.trim_end_matches('\n'));
        }
        (text, status.success())
    }

    fn run(&mut self, line: &str) {
        let before = self.directory.clone();
        let (mut text, is_done) = self.shell(line);
        // A harness keeps the shell within the project.
        if !self.directory.starts_with(&self.home) || !self.directory.exists() {
            self.directory = self.root.clone();
            let _ = write!(text, "\nShell cwd was reset to {}", self.root.display());
        }
        let (name, arguments) = self.harness.call(line);
        let text = self.harness.framed(&text, is_done, self.directory.to_str().unwrap());
        // What was cut off may have done everything, or not: here it did.
        let outcome = match self.dice.roll(25) {
            0 => Outcome::Interrupted,
            _ if is_done => Outcome::Done,
            _ => Outcome::Failed,
        };
        let _ = writeln!(self.history, "$ {line}\n[{outcome:?}] {text:?}");
        self.call(name, arguments, &text, outcome, &before);
    }

    fn call(&mut self, name: &str, arguments: Value, text: &str, outcome: Outcome, before: &Path) {
        self.at += 1;
        let mut call = FunctionCall::new(&format!("call-{}", self.at), name, arguments.to_string());
        if self.harness == Harness::Stated {
            let directory = Some(Arc::from(before.to_str().unwrap()));
            call.meta = Meta { directory, ..Meta::default() };
        }
        let output = FunctionCallOutput::new(&call.call_id, text, outcome);
        let seen = self.observer.observe(&call, &output);
        for observation in &seen.observations {
            self.model.apply(self.at, observation);
        }
        self.push(&Record::response("Let me see.", [call]));
        self.push(&Item::FunctionCallOutput(output).into());
    }

    fn tool(&mut self, name: &str, arguments: Value, text: &str, outcome: Outcome) {
        let _ = writeln!(self.history, "{name} {arguments}\n[{outcome:?}] {text:?}");
        let before = self.directory.clone();
        self.call(name, arguments, text, outcome, &before);
    }

    /// The files of the project, relative to its root.
    fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![self.root.clone()];
        while let Some(folder) = folders.pop() {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                let (path, kind) = (entry.path(), entry.file_type().unwrap());
                if kind.is_dir() && entry.file_name() != ".git" {
                    folders.push(path);
                } else if kind.is_file() {
                    found.push(path.strip_prefix(&self.root).unwrap().to_string_lossy().into_owned());
                }
            }
        }
        found.sort();
        found
    }

    /// A command with its places filled in.
    fn filled(&mut self, template: &str) -> String {
        let is_plain = |name: &String| !name.contains([' ', '\n', '`', '\'', '[']) && !name.starts_with('-');
        let names: Vec<String> = self.files().into_iter().filter(is_plain).collect();
        let at_root: Vec<String> = names.iter().filter(|name| !name.contains('/')).cloned().collect();
        let pick = |dice: &mut Dice| {
            let from = if dice.roll(4) == 0 || at_root.is_empty() { &names } else { &at_root };
            if from.is_empty() { "a.txt".to_owned() } else { dice.pick(from).clone() }
        };
        let (one, other) = (pick(&mut self.dice), pick(&mut self.dice));
        let number = self.dice.roll(1_000).to_string();
        let word = self.dice.pick(&WORDS).to_string();
        let fresh = format!("new{}", self.dice.roll(20));
        let folder = self.dice.pick(&["src", "sub", "sub/dir"]).to_string();
        template
            .replace("{f}", &one)
            .replace("{g}", &other)
            .replace("{d}", &folder)
            .replace("{new}", &format!("made{}.txt", self.dice.roll(5)))
            .replace("{n}", &number)
            .replace("{w}", &word)
            .replace("{x}", &fresh)
            .replace("{root}", self.root.to_str().unwrap())
            .replace('⏎', "\n")
    }

    fn step(&mut self, commands: &[String]) {
        match self.dice.roll(10) {
            0 => self.read(),
            1 => self.edit(),
            2 => self.write(),
            3 => self.patch(),
            _ => {
                let template = self.dice.pick(commands).clone();
                let line = self.filled(&template);
                self.run(&line);
            }
        }
    }

    /// Whether a line was in a file once, or was shown or written.
    fn was_there(&self, line: &str) -> bool {
        // The ends of an edit may be parts of lines.
        let had = || self.had.iter().any(|had| had.contains(line));
        had() || self.history.contains(line) || self.logged.iter().any(|text| text.contains(line))
    }

    /// Holds every claim of the model against the disk.
    fn check(&mut self) -> Result<(), String> {
        for name in self.files() {
            let text = on_disk(&self.root.join(name)).unwrap_or_default();
            self.had.extend(text.lines().map(str::to_owned));
        }
        for (index, file) in self.model.files().iter().enumerate() {
            let text = on_disk(&self.root.join(&file.path));
            self.counted.known += file.known_lines();
            if self.model.is_gone(index) && text.is_some() {
                return Err(format!("{} is not gone", file.path));
            }
            let lines = lines_of(text.as_deref().unwrap_or_default());
            for (place, segment) in file.segments.iter().enumerate() {
                for (at, line) in segment.lines.iter().enumerate() {
                    let claim = self.model.claim(index, place, at..at + 1);
                    let is_right = match claim.fact {
                        Fact::Verified => claim.first.is_some_and(|first| lines.get(first - 1) == Some(&&*line.text)),
                        // What was computed from a line that was seen is shown nowhere, and what was printed of several
                        // files is no file's.
                        Fact::Seen => {
                            line.is_computed || file.path.ends_with("as printed") || self.was_there(&line.text)
                        }
                        Fact::Changed => true,
                    };
                    if !is_right {
                        return Err(format!("{}: {:?} {claim:?} is not in {lines:?}", file.path, line.text));
                    }
                }
            }
            if let Some(claim) = self.model.claim_whole(index) {
                self.counted.whole += 1;
                let known: Vec<&str> = file.segments[0].lines.iter().map(|line| &*line.text).collect();
                if known != lines || text.is_none() {
                    return Err(format!("{} is not whole: {claim:?} {known:?} {lines:?}", file.path));
                }
            }
        }
        Ok(())
    }

    /// Asks for a window and, if it was folded, holds what its views say against the disk.
    fn check_window(&mut self) -> Result<(), String> {
        if self.dice.roll(4) == 0 {
            self.folder.cache_is_cold();
        }
        let window = self.folder.request().to_vec();
        let is_folded = self.folder.take_decisions().iter().any(|decision| matches!(decision, FoldDecision::Fold(_)));
        if !is_folded {
            return Ok(());
        }
        self.counted.folds += 1;
        for shown in window::views(&window)? {
            self.counted.shown += shown.lines.len();
            let is_changed = shown.grade.starts_with("changed since");
            let is_seen = shown.grade.starts_with("as you saw or wrote it at message");
            let is_known = is_changed || is_seen || shown.grade.starts_with("verified");
            if !is_known || (is_changed && (shown.first.is_some() || shown.is_whole)) {
                return Err(format!("the window claims too much: {shown:?}"));
            }
            let mut named = self.folder.model().files().iter().filter(|file| escaped(&file.path) == shown.path);
            let is_computed = |text: &str| {
                let files = self.folder.model().files().iter().flat_map(|file| &file.segments);
                files.flat_map(|segment| &segment.lines).any(|line| line.is_computed && *line.text == *text)
            };
            let is_right = match is_seen && !shown.is_whole {
                true => {
                    let is_printed = shown.path.ends_with("as printed");
                    is_printed || shown.lines.iter().all(|line| self.was_there(line) || is_computed(line))
                }
                false => is_changed || named.any(|file| is_on_disk(&shown, &self.root.join(&file.path))),
            };
            self.counted.shown_whole += usize::from(shown.is_whole);
            if !is_right {
                return Err(format!("the window is wrong: {shown:?}"));
            }
        }
        for path in window::deleted(&window) {
            let is_gone = self.folder.model().place(&path).is_some_and(|file| self.folder.model().is_gone(file));
            if is_gone && on_disk(&self.root.join(&path)).is_some() {
                return Err(format!("the window says that {path} is deleted"));
            }
        }
        match window::lost_pointers(&window, &self.logged).first() {
            Some(lost) => Err(format!("nothing stands above: {lost}")),
            None => Ok(()),
        }
    }

    /// Compares everything with the disk, after which everything must be verified.
    fn verify(&mut self) {
        let paths: Vec<String> = self.model.files().iter().map(|file| file.path.clone()).collect();
        for path in paths {
            let text = on_disk(&self.root.join(&path));
            let verified = self.model.verify(self.at, &path, text.as_deref());
            // Lines that were printed of several files are an entry of their own, and no file's.
            let Some(file) = self.model.get(&path) else { continue };
            assert!(!file.is_changed() || verified == Verified::Unknown, "{path} is verified\n{}", self.history);
        }
        let _ = writeln!(self.history, "(verified)");
    }
}

/// The text of a file, if there is one.
fn on_disk(path: &Path) -> Option<String> {
    fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

fn lines_of(text: &str) -> Vec<&str> {
    text.lines().collect()
}

/// A path as headings write it.
fn escaped(path: &str) -> String {
    path.chars().map(|c| if c.is_control() || c == '`' { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Whether a file has what a view shows of it.
fn is_on_disk(shown: &window::Shown, path: &Path) -> bool {
    let Some(text) = on_disk(path) else { return false };
    let lines = lines_of(&text);
    let is_at = |at: usize| lines.get(at..at + shown.lines.len()).is_some_and(|real| real == shown.lines);
    match shown.first {
        _ if shown.is_whole => lines == shown.lines,
        Some(first) => first > 0 && is_at(first - 1),
        None => (0..lines.len()).any(is_at),
    }
}

fn number_of(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The commands of some lists, or of the file that the environment names instead.
fn commands_in(lists: &[&str]) -> Vec<String> {
    let named = std::env::var("CONTEXTURE_RIG_LIST").ok().map(|path| fs::read_to_string(path).unwrap());
    let lists = named.as_ref().map_or(lists.to_vec(), |text| vec![text.as_str()]);
    lists.iter().flat_map(|list| list.lines()).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// One session; returns what was counted, or what was wrong.
fn session(seed: u64, steps: u64, commands: &[String]) -> Result<Counted, String> {
    let mut rig = Rig::new(seed);
    let wrong = |rig: &Rig, error: String| format!("{}\n=> {error}\n", rig.history);
    for _ in 0..steps {
        rig.step(commands);
        rig.check().map_err(|error| wrong(&rig, error))?;
        rig.check_window().map_err(|error| wrong(&rig, error))?;
        if rig.dice.roll(12) == 0 {
            rig.verify();
            rig.check().map_err(|error| wrong(&rig, error))?;
        }
    }
    Ok(rig.counted)
}

/// What follows a command, each of which would show what was misunderstood of it.
const PROBES: [&str; 5] =
    ["cat a.txt", "echo probe >> link.txt", "cat a.txt b.txt", "echo probe >> {g}", "cat {f}; echo ---; cat mark.txt"];

/// One command after all files were read, and what shows what was misunderstood of it.
fn command_alone(seed: u64, template: &str) -> Result<(), String> {
    let mut rig = Rig::new(seed);
    let wrong = |rig: &Rig, error: String| format!("{}\n=> {error}\n", rig.history);
    if rig.dice.roll(3) == 0 {
        rig.run("ln -s a.txt link.txt");
    }
    rig.read_all();
    rig.history.clear();
    let _ = writeln!(rig.history, "seed {seed}, {:?}, {:?}", rig.harness, rig.directory);
    let line = rig.filled(template);
    rig.run(&line);
    rig.check().map_err(|error| wrong(&rig, error))?;
    rig.check_window().map_err(|error| wrong(&rig, error))?;
    if rig.dice.roll(2) == 0 {
        rig.read_all();
    }
    for probe in PROBES {
        let probe = rig.filled(probe);
        rig.run(&probe);
        rig.check().map_err(|error| wrong(&rig, error))?;
    }
    Ok(())
}

/// Every so many commands of all lists are held against the disk alone, unless more sessions are asked for.
#[test]
fn commands_alone_are_understood() {
    let rounds = number_of("CONTEXTURE_RIG_SESSIONS", 0);
    let every = if rounds == 0 { if crate::IS_LONG { 20 } else { 100 } } else { 1 };
    let mut failures = Vec::new();
    let from = number_of("CONTEXTURE_RIG_FROM", 0) as usize;
    for round in 0..rounds.div_ceil(100).max(1) {
        let seed = number_of("CONTEXTURE_RIG_SEED", 1) + 10_000 * round;
        let commands = commands_in(&[OTHERS, COMMANDS, STRANGERS]);
        for (index, command) in commands.iter().enumerate().skip(from).step_by(every) {
            if let Err(error) = command_alone(seed + index as u64, command) {
                eprintln!("{error}");
                failures.push(error);
            }
        }
    }
    assert!(failures.is_empty(), "{} commands are misunderstood\n{}", failures.len(), failures.join("\n----\n"));
}

fn hold_against_disk(list: &str) {
    let (sessions, seed) = (
        number_of("CONTEXTURE_RIG_SESSIONS", if crate::IS_LONG { 20 } else { 5 }),
        number_of("CONTEXTURE_RIG_SEED", 1),
    );
    let steps = number_of("CONTEXTURE_RIG_STEPS", 45);
    let commands = commands_in(&[list]);
    let from = (number_of("CONTEXTURE_RIG_FROM", 0) as usize).min(commands.len() - 1);
    let mut counted = Counted::default();
    let mut failures = Vec::new();
    for number in seed..seed + sessions {
        match session(number, steps, &commands[from..]) {
            Ok(more) => counted += more,
            Err(error) => {
                eprintln!("{error}");
                failures.push(error);
            }
        }
        if (number - seed) % 100 == 99 {
            eprintln!("{} sessions", number - seed + 1);
        }
        if failures.len() >= 12 {
            break;
        }
    }
    println!("{counted:?}");
    assert!(failures.is_empty(), "{} sessions with wrong claims\n{}", failures.len(), failures.join("\n----\n"));
    assert!(counted.folds > 0 && counted.whole > 0, "nothing was folded: {counted:?}");
}

#[test]
fn claims_hold_on_the_disk() {
    hold_against_disk(COMMANDS);
}

#[test]
fn claims_hold_on_the_disk_after_other_commands() {
    hold_against_disk(OTHERS);
}

#[test]
fn claims_hold_on_the_disk_after_strange_commands() {
    hold_against_disk(STRANGERS);
}

#[test]
fn the_lists_have_many_different_commands() {
    let mut known = BTreeSet::new();
    for (list, least) in [(COMMANDS, 850), (OTHERS, 900), (STRANGERS, 750)] {
        let own: BTreeSet<&str> = list.lines().filter(|line| !line.is_empty() && !known.contains(line)).collect();
        assert!(own.len() >= least, "{}", own.len());
        known.extend(own);
    }
}
