//! What the model claims is held against the disk: sessions of reads, edits, writes and commands in a real shell.
//!
//! Every session has a folder of its own with a repository in it. After every call each line that is not in doubt must
//! be in its file, at its number if that is claimed, next to its neighbours; a whole file must have the right lines;
//! a deleted file must be gone. `CONTEXTURE_RIG_SESSIONS` runs more sessions, `CONTEXTURE_RIG_SEED` others, and
//! `CONTEXTURE_RIG_FROM` leaves out the first commands of the list.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use contexture::files::dialect::Dialects;
use contexture::files::model::{FileModel, FileState, Line, Verified};
use contexture::files::observer::Observer;
use contexture::item::{FunctionCall, FunctionCallOutput, Meta, Outcome};
use serde_json::{Value, json};

/// Commands with places to be filled in, one a line; `⏎` is a line feed in one.
const COMMANDS: &str = include_str!("file_rig/commands.txt");

/// A small generator of numbers, so that every session can be run again.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % sides.max(1)
    }

    fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.roll(all.len())]
    }
}

/// How a harness hands over what commands print, and what it says about the directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Harness {
    /// As it is; the shell keeps its directory.
    Raw,
    /// Without blank lines at both ends; the shell keeps its directory.
    Trimmed,
    /// With a head before it; every command begins in the same directory.
    Headed,
    /// As it is, and every call says its directory.
    Stated,
}

const HARNESSES: [Harness; 4] = [Harness::Raw, Harness::Trimmed, Harness::Headed, Harness::Stated];

struct Rig {
    _folder: tempfile::TempDir,
    home: PathBuf,
    root: PathBuf,
    directory: PathBuf,
    harness: Harness,
    observer: Observer,
    model: FileModel,
    at: u32,
    dice: Dice,
    history: String,
    /// Known lines and those of them that were not in doubt, summed over all checks.
    counted: (usize, usize),
}

const WORDS: [&str; 12] =
    ["alpha", "beta", "gamma", "line", "value", "import", "return", "x", "the", "name", "foo", "data"];

fn initial_files() -> BTreeMap<&'static str, String> {
    let lines = |count: usize, make: &dyn Fn(usize) -> String| (1..=count).map(|n| make(n) + "\n").collect::<String>();
    BTreeMap::from([
        ("a.txt", lines(12, &|n| format!("alpha line {n}"))),
        ("b.txt", lines(7, &|n| format!("beta value {n}"))),
        ("notes.md", "---\ntitle: x\n---\n\n# Head\n\nthe text\n---\nmore text\n".to_owned()),
        ("readme.md", "# Name\n\nimport the data\n\n- foo\n- foo\n- foo\n".to_owned()),
        (
            "src/main.rs",
            lines(25, &|n| if n % 4 == 0 { String::new() } else { format!("    let value_{n} = foo({n});") }),
        ),
        ("src/lib.rs", "use a;\n\nfn name() {\n    return x;\n}\n\nfn other() {\n    return x;\n}\n".to_owned()),
        ("sub/dir/deep.txt", lines(5, &|n| format!("deep {n}"))),
        ("sub/a.txt", lines(6, &|n| format!("other alpha {n}"))),
        ("empty.txt", String::new()),
        ("blank.txt", "\n\n\n".to_owned()),
        ("lead.txt", "\n\nalpha after blanks\nbeta\n\n".to_owned()),
        ("nonl.txt", "one alpha\ntwo beta".to_owned()),
        ("crlf.txt", "one alpha\r\ntwo beta\r\nthree\r\n".to_owned()),
        ("num.txt", "     1\talpha\n     2\tbeta\n     7\tgamma\n".to_owned()),
        ("log.txt", "12:alpha\n3:beta\n3-gamma\n--\n7: x\n".to_owned()),
        ("remind.md", "the top\n<system-reminder>\nnot a reminder\n</system-reminder>\nthe end\n".to_owned()),
        ("cmd.txt", "Command: cat x\nExit code: 1\nWall time: 1\nOutput:\nalpha\n".to_owned()),
        ("dash.txt", "---\n===\n---\nalpha\n".to_owned()),
        ("same.txt", "foo\nbar\nfoo\nbar\nfoo\nbar\nend\n".to_owned()),
        ("trail.txt", "alpha  \nbeta\t\ngamma   \n".to_owned()),
        ("cut.txt", "alpha\n[... truncated ...]\nbeta\ncat: x: No such file or directory\n".to_owned()),
        ("with space.txt", "alpha with space\nbeta\n".to_owned()),
        ("Makefile", "all:\n\t@echo built\ntest:\n\t@echo tested\ntouchy:\n\t@echo made >> a.txt\n".to_owned()),
        ("script.sh", "#!/bin/bash\necho scripted >> a.txt\nsed -i 1d b.txt\n".to_owned()),
    ])
}

impl Rig {
    fn new(seed: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().canonicalize().unwrap();
        let root = home.join("p/q/r/work");
        for (name, text) in initial_files() {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        dice.roll(2);
        let harness = *dice.pick(&HARNESSES);
        let mut rig = Self {
            _folder: folder,
            directory: root.clone(),
            home,
            root,
            harness,
            observer: Observer::new(Dialects::builtin()),
            model: FileModel::new(),
            at: 0,
            dice,
            history: format!("seed {seed}, {harness:?}\n"),
            counted: (0, 0),
        };
        rig.shell("chmod +x script.sh; git init -q . && git add -A && git commit -qm first");
        rig
    }

    /// Runs a command line for real; returns what it printed and whether it succeeded.
    fn shell(&mut self, line: &str) -> (String, bool) {
        let place = self.home.join("where");
        let script = format!("trap 'pwd -P > {}' EXIT\n{line}\n", place.display());
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
        if self.harness != Harness::Headed && !place.trim().is_empty() {
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
        let name = if self.harness == Harness::Headed { "exec_command" } else { "Bash" };
        let (arguments, text) = match self.harness {
            Harness::Headed => {
                let head = format!(
                    "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code {}\nOutput:\n",
                    i32::from(!is_done)
                );
                (json!({"cmd": line}), head + &text)
            }
            Harness::Trimmed => {
                let bare = text.trim_end();
                let blank =
                    bare.lines().take_while(|line| line.trim().is_empty()).map(|line| line.len() + 1).sum::<usize>();
                (json!({"command": line}), bare.get(blank..).unwrap_or_default().to_owned())
            }
            Harness::Raw | Harness::Stated => (json!({"command": line}), text),
        };
        let outcome = if is_done { Outcome::Done } else { Outcome::Failed };
        let _ = writeln!(self.history, "$ {line}\n[{outcome:?}] {text:?}");
        self.call(name, arguments, &text, outcome, &before);
    }

    fn call(&mut self, name: &str, arguments: Value, text: &str, outcome: Outcome, before: &Path) {
        self.at += 1;
        let mut call = FunctionCall::new("1", name, arguments.to_string());
        if self.harness == Harness::Stated {
            let directory = Some(Arc::from(before.to_str().unwrap()));
            call.meta = Meta { directory, ..Meta::default() };
        }
        let seen = self.observer.observe(&call, &FunctionCallOutput::new("1", text, outcome));
        for observation in &seen.observations {
            self.model.apply(self.at, observation);
        }
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
                    found.push(path.strip_prefix(&self.root).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        found.sort();
        found
    }

    /// A command with its places filled in.
    fn filled(&mut self, template: &str) -> String {
        let names: Vec<String> = self.files().into_iter().filter(|name| !name.contains(' ')).collect();
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

    fn step(&mut self) {
        match self.dice.roll(10) {
            0 => self.read(),
            1 => self.edit(),
            2 => self.write(),
            3 => self.patch(),
            _ => {
                let commands: Vec<&str> = COMMANDS.lines().filter(|line| !line.is_empty()).collect();
                let from = number_of("CONTEXTURE_RIG_FROM", 0) as usize;
                let template = *self.dice.pick(&commands[from.min(commands.len() - 1)..]);
                let line = self.filled(template);
                self.run(&line);
            }
        }
    }

    /// A file of the project with its text.
    fn some_file(&mut self) -> Option<(String, String)> {
        let files = self.files();
        if files.is_empty() {
            return None;
        }
        let name = self.dice.pick(&files).clone();
        let text = fs::read_to_string(self.root.join(&name)).ok()?;
        Some((self.root.join(name).to_str().unwrap().to_owned(), text))
    }

    fn read(&mut self) {
        let Some((path, text)) = self.some_file() else { return };
        let lines: Vec<&str> = text.lines().collect();
        let (first, count) = match self.dice.roll(2) {
            0 => (0, lines.len()),
            _ => (self.dice.roll(lines.len().max(1)), 1 + self.dice.roll(8)),
        };
        let shown: String = lines
            .iter()
            .enumerate()
            .skip(first)
            .take(count)
            .map(|(index, line)| format!("{:6}→{line}\n", index + 1))
            .collect();
        let mut arguments = json!({"file_path": path});
        if count != lines.len() {
            arguments["offset"] = json!(first + 1);
            arguments["limit"] = json!(count);
        }
        self.tool("Read", arguments, &shown, Outcome::Done);
    }

    fn edit(&mut self) {
        let Some((path, text)) = self.some_file() else { return };
        let lines: Vec<&str> = text.split('\n').collect();
        let start = self.dice.roll(lines.len());
        let end = (start + 1 + self.dice.roll(3)).min(lines.len());
        let mut old = lines[start..end].join("\n");
        if self.dice.roll(3) == 0 && old.len() > 3 && old.is_ascii() {
            old = old[1..old.len() - 1].to_owned();
        }
        let new = match self.dice.roll(4) {
            0 => String::new(),
            1 => format!("edited {}\nand more", self.dice.roll(100)),
            _ => format!("edited {}", self.dice.roll(100)),
        };
        let count = text.matches(old.as_str()).count();
        if old.is_empty() || old.contains('\r') {
            return;
        }
        let all = self.dice.roll(5) == 0;
        let arguments = json!({"file_path": path, "old_string": old, "new_string": new, "replace_all": all});
        if (count != 1 && !all) || self.dice.roll(8) == 0 {
            return self.tool("Edit", arguments, "String to replace not found in file.", Outcome::Failed);
        }
        // Some take the line feed after what is removed, and some do not.
        let takes =
            new.is_empty() && !old.ends_with('\n') && self.dice.roll(2) == 0 && text.contains(&format!("{old}\n"));
        let taken = if takes { format!("{old}\n") } else { old };
        fs::write(&path, if all { text.replace(&taken, &new) } else { text.replacen(&taken, &new, 1) }).unwrap();
        self.tool("Edit", arguments, "The file has been updated.", Outcome::Done);
    }

    fn write(&mut self) {
        let name = match self.dice.roll(2) {
            0 => self.some_file().map(|(path, _)| path),
            _ => Some(self.root.join(format!("made{}.txt", self.dice.roll(5))).to_str().unwrap().to_owned()),
        };
        let Some(path) = name.filter(|path| !Path::new(path).is_dir()) else { return };
        let end = if self.dice.roll(4) == 0 { "" } else { "\n" };
        let text: String = (0..self.dice.roll(6)).map(|n| format!("written {n} {}\n", self.dice.roll(9))).collect();
        let text = text.trim_end().to_owned() + end;
        let arguments = json!({"file_path": path, "content": text});
        match self.dice.roll(6) {
            0 => self.tool("Write", arguments, "The user doesn't want to proceed with this tool use.", Outcome::Denied),
            _ => {
                fs::write(&path, &text).unwrap();
                self.tool("Write", arguments, "File created successfully.", Outcome::Done);
            }
        }
    }

    /// A patch that is applied at the first place where its lines are, as the tool does.
    fn patch(&mut self) {
        let Some((path, text)) = self.some_file() else { return };
        if !text.ends_with('\n') || text.contains('\r') || !text.is_ascii() {
            return;
        }
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        if lines.is_empty() {
            return;
        }
        let start = self.dice.roll(lines.len());
        let end = (start + 1 + self.dice.roll(3)).min(lines.len());
        let old = lines[start..end].to_vec();
        let new = vec![format!("patched {}", self.dice.roll(50)); self.dice.roll(3)];
        let place = lines.windows(old.len()).position(|window| window == old).unwrap();
        let body: String =
            old.iter().map(|line| format!("-{line}\n")).chain(new.iter().map(|line| format!("+{line}\n"))).collect();
        let patch = format!("*** Begin Patch\n*** Update File: {path}\n@@\n{body}*** End Patch");
        lines.splice(place..place + old.len(), new);
        let after: String = lines.into_iter().map(|line| line + "\n").collect();
        fs::write(&path, after).unwrap();
        self.tool("apply_patch", json!({"input": patch}), "Success. Updated the following files:", Outcome::Done);
    }

    /// Holds every claim against the disk.
    fn check(&mut self) -> Result<(), String> {
        for (index, file) in self.model.files().iter().enumerate() {
            let path = self.root.join(&file.path);
            let text = fs::read(&path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            let known = file.known_lines();
            let sure = file.segments.iter().flat_map(|segment| &segment.lines).filter(|line| line.is_sure()).count();
            self.counted = (self.counted.0 + known, self.counted.1 + sure);
            if file.deleted {
                if text.is_some() {
                    return Err(format!("{} is not gone", file.path));
                }
                continue;
            }
            check_file(file, text.as_deref()).map_err(|error| format!("{}: {error}", file.path))?;
            if let Some(claim) = self.model.claim_whole(index) {
                let lines = lines_of(text.as_deref().unwrap_or_default());
                let known: Vec<&str> = file.segments[0].lines.iter().map(|line| &*line.text).collect();
                if known != lines || text.is_none() {
                    return Err(format!("{} is not whole: {claim:?} {known:?} {lines:?}", file.path));
                }
            }
        }
        Ok(())
    }

    /// Compares everything with the disk, after which everything must be verified.
    fn verify(&mut self) {
        let paths: Vec<String> = self.model.files().iter().map(|file| file.path.clone()).collect();
        for path in paths {
            let text = fs::read(self.root.join(&path)).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            let verified = self.model.verify(self.at, &path, text.as_deref());
            // Lines that were printed of several files are an entry of their own, and no file's.
            let Some(file) = self.model.get(&path) else { continue };
            assert!(!file.is_unsure() || verified == Verified::Unknown, "{path} is verified\n{}", self.history);
        }
        let _ = writeln!(self.history, "(verified)");
    }
}

fn lines_of(text: &str) -> Vec<&str> {
    text.lines().collect()
}

fn check_file(file: &FileState, text: Option<&str>) -> Result<(), String> {
    let lines = lines_of(text.unwrap_or_default());
    for segment in &file.segments {
        let mut start = 0;
        for run in segment.lines.chunk_by(|one, next| one.is_sure() == next.is_sure()) {
            let place = start;
            start += run.len();
            if !run[0].is_sure() {
                continue;
            }
            let is_there = |at: usize| {
                lines
                    .get(at..at + run.len())
                    .is_some_and(|real| real.iter().zip(run).all(|(real, line)| **real == *line.text))
            };
            let is_right = match segment.first {
                Some(first) => is_there(first + place - 1),
                None => (0..lines.len()).any(is_there),
            };
            if !is_right {
                let run: Vec<&str> = run.iter().map(|line: &Line| &*line.text).collect();
                return Err(format!("{run:?} at {:?}+{place} is not in {lines:?}", segment.first));
            }
        }
    }
    Ok(())
}

fn number_of(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn claims_hold_on_the_disk() {
    let (sessions, seed) = (number_of("CONTEXTURE_RIG_SESSIONS", 40), number_of("CONTEXTURE_RIG_SEED", 1));
    let steps = number_of("CONTEXTURE_RIG_STEPS", 25);
    let mut counted = (0, 0);
    let mut failures = Vec::new();
    for session in seed..seed + sessions {
        let mut rig = Rig::new(session);
        for _ in 0..steps {
            rig.step();
            if let Err(error) = rig.check() {
                eprintln!("{}\n=> {error}\n", rig.history);
                failures.push(format!("{}\n=> {error}\n", rig.history));
                break;
            }
            if rig.dice.roll(12) == 0 {
                rig.verify();
                rig.check().unwrap();
            }
        }
        counted = (counted.0 + rig.counted.0, counted.1 + rig.counted.1);
        if (session - seed) % 100 == 99 {
            eprintln!("{} sessions", session - seed + 1);
        }
        if failures.len() >= 5 {
            break;
        }
    }
    println!("{} of {} known lines were not in doubt", counted.1, counted.0);
    assert!(failures.is_empty(), "{} sessions with wrong claims\n{}", failures.len(), failures.join("\n----\n"));
}
