//! Tools of others, as programs that print windows.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use contexture::transcript::{self, Transcript};
use contexture_cli::failure::Failure;
use contexture_measure::policies::WindowChange;
use serde_json::Value;

use super::windows::parsed;

/// Where the budget is in a command.
const BUDGET: &str = "{budget}";

/// A tool that can be called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalTool {
    /// Its name in tables.
    pub name: String,
    /// The version that was installed.
    pub version: String,
    /// How it is called, in words.
    pub settings: String,
    /// A program that reads a recording in the plain form and prints windows; `{budget}` is the budget in tokens.
    pub command: Vec<String>,
}

/// A tool that is not compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingTool {
    /// Its name.
    pub name: String,
    /// Why.
    pub why: String,
}

/// The list that the install script writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExternalTools {
    /// Those that can be called.
    pub installed: Vec<ExternalTool>,
    /// Those that could not be installed.
    pub missing: Vec<MissingTool>,
}

impl ExternalTools {
    /// Reads a list: a JSON array of objects with `name` and either `version`, `settings` and `command`, or `missing`.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, or an entry has neither a command nor a reason.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let failed = |reason: String| {
            Failure::work(format!("read the list of tools `{}`: {reason}", path.display()))
                .hint("`crates/contexture-bench/judge/install DIR` writes DIR/tools.json")
        };
        let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        let list: Vec<Value> = serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?;
        let mut tools = Self::default();
        for entry in &list {
            let field = |name: &str| entry[name].as_str().map(str::to_owned);
            let name = field("name").ok_or_else(|| failed("an entry without a name".to_owned()))?;
            if let Some(why) = field("missing") {
                tools.missing.push(MissingTool { name, why });
                continue;
            }
            let words = entry["command"].as_array().map(Vec::as_slice).unwrap_or_default();
            let command: Vec<String> = words.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect();
            if command.is_empty() {
                return Err(failed(format!("`{name}` has no command")));
            }
            let [version, settings] = ["version", "settings"].map(|name| field(name).unwrap_or_default());
            tools.installed.push(ExternalTool { name, version, settings, command });
        }
        Ok(tools)
    }
}

impl ExternalTool {
    /// Plays a recording, and passes on each request.
    ///
    /// # Errors
    ///
    /// What went wrong, in words: with the program, with what it printed, or with what was made of that.
    pub fn play(
        &self,
        transcript: &Transcript,
        budget: u64,
        limit: Duration,
        take: &mut dyn FnMut(WindowChange) -> Result<(), String>,
    ) -> Result<(), String> {
        let words: Vec<String> = self.command.iter().map(|word| word.replace(BUDGET, &budget.to_string())).collect();
        let started = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let mut child = started.map_err(|error| format!("start `{}`: {error}", words[0]))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (mut input, output) = (input.ok_or("no input")?, BufReader::new(output.ok_or("no output")?));
        let watched = SupervisedProgram::new(child, limit);
        let printed = thread::scope(|scope| {
            scope.spawn(move || {
                for record in &transcript.records {
                    // A program that has ended early says why by its status.
                    if transcript::write(&mut input, record).is_err() {
                        return;
                    }
                }
                let _ = input.flush();
            });
            for line in output.lines() {
                take(parsed(&line.map_err(|error| error.to_string())?, transcript.records.len())?)?;
            }
            Ok(())
        });
        match watched.end() {
            ProgramEnd::Late => Err("took too long".to_owned()),
            // A program whose output is not read any more fails for that reason.
            ProgramEnd::By(status) => printed.and(status),
        }
    }
}

/// A program that is ended when it takes too long, or when nobody reads it any more.
struct SupervisedProgram {
    child: Arc<Mutex<Child>>,
    done: mpsc::Sender<()>,
    watch: thread::JoinHandle<bool>,
}

impl SupervisedProgram {
    fn new(child: Child, limit: Duration) -> Self {
        let child = Arc::new(Mutex::new(child));
        let (done, waiting) = mpsc::channel();
        let watched = Arc::clone(&child);
        let watch = thread::spawn(move || {
            let is_late = waiting.recv_timeout(limit) == Err(RecvTimeoutError::Timeout);
            if is_late {
                // It may have ended just now.
                let _ = watched.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).kill();
            }
            is_late
        });
        Self { child, done, watch }
    }

    fn end(self) -> ProgramEnd {
        // The watch may have ended.
        let _ = self.done.send(());
        if self.watch.join().unwrap_or(false) {
            return ProgramEnd::Late;
        }
        let mut child = self.child.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        ProgramEnd::By(match child.wait() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("ended with {status}")),
            Err(error) => Err(error.to_string()),
        })
    }
}

/// How a program ended.
enum ProgramEnd {
    /// It took too long and was ended.
    Late,
    /// By itself.
    By(Result<(), String>),
}
