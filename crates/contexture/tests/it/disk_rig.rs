//! Sessions in an engine while another program changes the same files at random.
//!
//! Whenever something of a file is shown anew, every line that is verified was in that file at some moment during
//! the request; nothing is shown of what the agent has not read; at least 95 of 100 lines are verified,
//! although a script that nobody knows runs now and then.
//! `CONTEXTURE_RIG_SESSIONS` runs more sessions, `CONTEXTURE_RIG_SEED` others.

use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;

use crate::disk_project::{Project, views_in};

/// A small generator of numbers, so that every session can be run again.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Self {
        let mut dice = Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        dice.roll(2);
        dice
    }

    fn roll(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % sides.max(1)
    }
}

/// Every state that each file has had, in order. A state is noted before the file has it.
#[derive(Default)]
struct Past {
    files: HashMap<String, Vec<Vec<String>>>,
}

impl Past {
    fn note(&mut self, path: &str, lines: &[String]) {
        self.files.entry(path.to_owned()).or_default().push(lines.to_vec());
    }

    fn counts(&self) -> HashMap<String, usize> {
        self.files.iter().map(|(path, states)| (path.clone(), states.len())).collect()
    }

    /// Whether a line was in a file in one of its states since there were so many.
    fn had(&self, path: &str, line: &str, since: &HashMap<String, usize>) -> bool {
        let states = &self.files[path];
        // The newest state may have been noted and not written, so the one before it may have been on the disk.
        let first = since.get(path).copied().unwrap_or(1).saturating_sub(2);
        states[first..].iter().any(|lines| lines.iter().any(|it| it == line))
    }
}

const FILES: usize = 6;

/// The first half of the files is read whole, of the others the lines without `hidden`.
fn is_partly_read(file: usize) -> bool {
    file * 2 >= FILES
}

fn first_lines(file: usize) -> Vec<String> {
    let hidden = |part: &str| (0..12).map(|line| format!("hidden {part} {file} {line}")).collect::<Vec<_>>();
    let open: Vec<String> = (0..40)
        .map(|line| if line % 6 == 5 { "}".to_owned() } else { format!("let value_{file}_{line} = {line};") })
        .collect();
    if is_partly_read(file) { [hidden("above"), open, hidden("below")].concat() } else { open }
}

/// Another program: changes files until it is told to stop.
struct Stranger {
    base: PathBuf,
    past: Arc<Mutex<Past>>,
    dice: Dice,
    lines: Vec<Vec<String>>,
    made: usize,
}

impl Stranger {
    fn run(mut self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            let file = self.dice.roll(FILES);
            self.change(file);
            let path = format!("src/{file}.rs");
            self.past.lock().unwrap().note(&path, &self.lines[file]);
            let text = self.lines[file].join("\n") + "\n";
            match self.dice.roll(3) {
                // In place: for a moment the file is empty.
                0 => fs::write(self.base.join(&path), text).unwrap(),
                _ => {
                    fs::write(self.base.join("src/next"), text).unwrap();
                    fs::rename(self.base.join("src/next"), self.base.join(&path)).unwrap();
                }
            }
            std::thread::sleep(Duration::from_micros(200 + self.dice.roll(3_000) as u64));
        }
    }

    /// Puts in, takes out or replaces lines, those that may be read only between two of these.
    fn change(&mut self, file: usize) {
        let lines = &mut self.lines[file];
        for _ in 0..1 + self.dice.roll(3) {
            self.made += 1;
            let at = self.dice.roll(lines.len());
            let is_open = |line: Option<&String>| line.is_some_and(|line| !line.starts_with("hidden"));
            let is_within = is_open(lines.get(at))
                && is_open(lines.get(at + 1))
                && is_open(at.checked_sub(1).and_then(|at| lines.get(at)));
            let is_hidden = !is_open(lines.get(at));
            let new = format!("{} {} in {file}", if is_hidden { "hidden new" } else { "fresh" }, self.made);
            match self.dice.roll(3) {
                _ if !is_within && !is_hidden => {}
                0 => lines[at] = new,
                1 if is_hidden && lines.len() > 20 => drop(lines.remove(at)),
                1 if lines.len() > 50 => drop(lines.remove(at)),
                _ if lines.len() < 110 => lines.insert(at, new),
                _ => {}
            }
        }
    }
}

#[derive(Default)]
struct Tally {
    shown: usize,
    /// Those of views that say of all lines that they are verified.
    known: usize,
}

async fn session(seed: u64, turns: usize) -> Tally {
    let mut project = Project::new(7_000);
    let past: Arc<Mutex<Past>> = Arc::default();
    let lines: Vec<Vec<String>> = (0..FILES).map(first_lines).collect();
    for (file, lines) in lines.iter().enumerate() {
        let path = format!("src/{file}.rs");
        past.lock().unwrap().note(&path, lines);
        project.write(&path, &(lines.join("\n") + "\n"));
    }
    let stop = Arc::new(AtomicBool::new(false));
    let stranger =
        Stranger { base: project.base.clone(), past: past.clone(), dice: Dice::new(seed ^ 77), lines, made: 0 };
    let (stopping, mut dice) = (stop.clone(), Dice::new(seed));
    let thread = std::thread::spawn(move || stranger.run(&stopping));
    let mut tally = Tally::default();
    for _ in 0..turns {
        let file = dice.roll(FILES);
        let calls = match dice.roll(5) {
            0 => vec![("Bash", json!({ "command": "./nobody_knows.sh || true" }))],
            1 | 2 => vec![("Lookup", json!({ "query": dice.roll(1_000) }))],
            _ if is_partly_read(file) => vec![("ReadOpen", json!({ "file_path": format!("src/{file}.rs") }))],
            _ => vec![("Read", json!({ "file_path": format!("src/{file}.rs") }))],
        };
        turn(&mut project, &past, &calls, &mut tally).await;
    }
    stop.store(true, Ordering::Relaxed);
    thread.join().unwrap();
    assert_eq!(project.recorder.faults(), [], "seed {seed}");
    assert!(project.folds() > 2, "seed {seed}: {} folds", project.folds());
    tally
}

/// One turn, after which what was shown anew is held against what the files were meanwhile.
async fn turn(project: &mut Project, past: &Mutex<Past>, calls: &[(&str, serde_json::Value)], tally: &mut Tally) {
    let since = past.lock().unwrap().counts();
    let (sent, folds) = (project.windows().len(), project.folds());
    project.turn("Go on, and mind src/0.rs and src/4.rs.", calls).await;
    let windows = project.windows();
    let past = past.lock().unwrap();
    for (index, window) in windows.iter().enumerate().skip(sent) {
        let before = index.checked_sub(1).map(|before| &windows[before][..]).unwrap_or_default();
        // With a fold, what stays of the view is held against the disk as well.
        let is_folded = project.folds() > folds && !window.starts_with(before);
        let is_new = |item: &&Arc<contexture::Item>| is_folded || !before.contains(item);
        let new: Vec<_> = window.iter().filter(is_new).cloned().collect();
        let made = crate::disk_project::made_in(&new);
        assert!(!made.contains("hidden"), "what was never read is shown:\n{made}");
        for view in views_in(&made) {
            tally.shown += view.lines.len();
            if view.told.contains("as you saw") || view.told.contains("changed since") {
                continue;
            }
            tally.known += view.lines.len();
            for line in &view.lines {
                assert!(past.had(&view.path, line, &since), "`{line}` was not in {}:\n{made}", view.path);
            }
        }
    }
}

fn number_of(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[tokio::test]
#[cfg_attr(not(feature = "long-tests"), ignore = "long: --features long-tests")]
async fn what_is_shown_is_on_the_disk_while_another_program_changes_it() {
    let sessions = number_of("CONTEXTURE_RIG_SESSIONS", 3);
    let seed = number_of("CONTEXTURE_RIG_SEED", 1);
    let mut all = Tally::default();
    for session_seed in seed..seed + sessions {
        let tally = session(session_seed, 80).await;
        (all.shown, all.known) = (all.shown + tally.shown, all.known + tally.known);
    }
    let Tally { shown, known } = all;
    println!("{known} of {shown} shown lines are verified");
    assert!(shown > 1_000 && known * 100 >= shown * 95, "{known} of {shown} shown lines are verified");
}
