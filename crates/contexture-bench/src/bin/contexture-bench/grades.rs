//! Counts the lines that folds of recordings show by what is said of them, and holds that against the next reads.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::io::{self, Write};
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use contexture::files::model::{Fact, FileModel};
use contexture::files::observation::Observation;
use contexture::files::observer::Observer;
use contexture::fold::{FoldDecision, Folder, Meter, Policy, ShownItem};
use contexture::item::{FunctionCall, Item};
use contexture::tokens::{Estimate, count_item};
use contexture::transcript::Record;
use contexture_cli::failure::Failure;
use contexture_cli::source::{self, RecordingSource};
use contexture_measure::work::in_parallel;

/// Count the lines of files that folds show, by what is said of them: verified, as seen, or changed since.
///
/// The causes are the changes that lines are from before. Every line that a later read of the same file shows is compared with what was
/// known of it just before.
#[derive(Args)]
pub struct GradesCommand {
    /// Directories with recordings, or recordings.
    #[arg(value_name = "DIR", required = true)]
    paths: Vec<PathBuf>,
    /// The budget of the window in tokens.
    #[arg(long, value_name = "N", default_value_t = 64_000, value_parser = clap::value_parser!(u64).range(1..))]
    budget: u64,
    /// How many causes to list.
    #[arg(long, value_name = "N", default_value_t = 25)]
    causes: usize,
    /// Print claims that a later read contradicts.
    #[arg(long)]
    wrong: bool,
    /// Print each call and message that changed a file in a way that could not be followed, with how many lines.
    #[arg(long)]
    changes: bool,
}

pub fn print(arguments: &GradesCommand) -> Result<(), Failure> {
    let sources = source::find(&arguments.paths)?;
    let counted = in_parallel(&sources, |source| play(source, arguments.budget));
    let mut sum = GradeCounts::default();
    for counts in counted.into_iter().flatten() {
        sum.add(counts);
    }
    Ok(io::stdout().write_all(sum.text(arguments).as_bytes())?)
}

/// What was counted in one recording, or in several.
#[derive(Default)]
struct GradeCounts {
    folds: usize,
    /// Shown lines by what is said of them.
    shown: BTreeMap<String, usize>,
    /// Shown lines by what is said of them and the first cause.
    causes: HashMap<String, usize>,
    /// Claimed lines that a later read showed again, by what was said of them: how many it confirmed and how many it contradicted.
    held: BTreeMap<&'static str, (usize, usize)>,
    /// The same by the first cause too.
    held_by: BTreeMap<String, (usize, usize)>,
    wrong: Vec<String>,
    /// What changed files in ways that could not be followed.
    changes: Vec<String>,
}

impl GradeCounts {
    fn add(&mut self, other: GradeCounts) {
        self.folds += other.folds;
        for (grade, lines) in other.shown {
            *self.shown.entry(grade).or_default() += lines;
        }
        for (cause, lines) in other.causes {
            *self.causes.entry(cause).or_default() += lines;
        }
        for (grade, (right, wrong)) in other.held {
            let sum = self.held.entry(grade).or_default();
            (sum.0, sum.1) = (sum.0 + right, sum.1 + wrong);
        }
        for (cause, (right, wrong)) in other.held_by {
            let sum = self.held_by.entry(cause).or_default();
            (sum.0, sum.1) = (sum.0 + right, sum.1 + wrong);
        }
        self.wrong.extend(other.wrong);
        self.changes.extend(other.changes);
    }

    fn text(&self, arguments: &GradesCommand) -> String {
        let all: usize = self.shown.values().sum();
        let share = |lines: usize| 100.0 * lines as f64 / all.max(1) as f64;
        let mut text = format!("{} folds, {all} lines shown\n", self.folds);
        // Writing to a string cannot fail.
        for (grade, lines) in &self.shown {
            let _ = writeln!(text, "{:6.2} %  {grade}", share(*lines));
        }
        for (grade, (right, wrong)) in &self.held {
            let _ = writeln!(text, "{grade}: a later read confirmed {right} lines and contradicted {wrong}");
        }
        let mut causes: Vec<(&String, &usize)> = self.causes.iter().collect();
        causes.sort_by_key(|(cause, lines)| (std::cmp::Reverse(**lines), *cause));
        for (cause, lines) in causes.into_iter().take(arguments.causes) {
            let _ = writeln!(text, "{:6.2} %  {cause}", share(*lines));
        }
        let mut held: Vec<(&String, &(usize, usize))> = self.held_by.iter().collect();
        held.sort_by_key(|(cause, (right, wrong))| (std::cmp::Reverse(right + wrong), *cause));
        for (cause, (right, wrong)) in held.into_iter().take(arguments.causes) {
            let _ = writeln!(text, "{right:7} confirmed {wrong:6} contradicted  {cause}");
        }
        for wrong in self.wrong.iter().filter(|_| arguments.wrong) {
            let _ = writeln!(text, "{wrong}");
        }
        for change in self.changes.iter().filter(|_| arguments.changes) {
            let _ = writeln!(text, "change\t{}", change.replace('\n', " "));
        }
        text
    }

    /// Counts the views of a window.
    fn view(&mut self, window: &[ShownItem]) {
        for shown in window.iter().filter(|shown| shown.position.is_none()) {
            let Some(message) = shown.item.as_message() else { continue };
            let text = message.text_cow();
            if text.contains("# Files as you know them at message ") {
                self.view_text(&text);
            }
        }
    }

    fn view_text(&mut self, text: &str) {
        let (mut heading, mut own, mut fence) = (String::new(), String::new(), None::<&str>);
        let (mut exceptions, mut at) = (Vec::new(), 0);
        for line in text.lines() {
            match fence {
                Some(end) if line == end => fence = None,
                Some(_) => {
                    at += 1;
                    let own_grade = grade_in(&own).map(|_| own.as_str());
                    let except = exceptions.iter().find(|(lines, _): &&(Range<usize>, String)| lines.contains(&at));
                    self.line(except.map(|(_, grade)| grade.as_str()).or(own_grade).unwrap_or(&heading));
                }
                None if line.starts_with("```") => {
                    fence = Some(line);
                    let first = own.strip_prefix("from line ").and_then(leading_number).unwrap_or(1);
                    (exceptions, at) = (exceptions_in(&own), first - 1);
                }
                None if line.starts_with("## `") => {
                    heading = line.split_once("`: ").map_or("", |(_, rest)| rest).to_owned();
                    own.clear();
                }
                None => line.clone_into(&mut own),
            }
        }
    }

    /// Counts a line of which a heading says something.
    fn line(&mut self, heading: &str) {
        let grade = grade_in(heading).unwrap_or("nothing");
        *self.shown.entry(grade.to_owned()).or_default() += 1;
        let cause = heading.split_once("since by ").map_or("", |(_, rest)| rest);
        let cause: String = cause.split("`, `").next().unwrap_or_default().chars().take(70).collect();
        *self.causes.entry(format!("{grade}: {cause}")).or_default() += 1;
    }

    /// Compares what a read shows with what was known of these lines.
    fn hold(&mut self, model: &FileModel, name: &str, observation: &Observation) {
        let Observation::Read { path, block, .. } = observation else { return };
        let (Some(first), Some(file)) = (block.first, model.place(path)) else { return };
        for (place, segment) in model.files()[file].segments.iter().enumerate() {
            // Lines without numbers are looked for where they were last.
            let Some(known) = segment.likely_first() else { continue };
            for (index, line) in segment.lines.iter().enumerate() {
                let shown = (known + index).checked_sub(first).and_then(|at| block.lines.get(at));
                let Some(shown) = shown else { continue };
                let claim = model.claim(file, place, index..index + 1);
                let grade = match claim.fact {
                    Fact::Verified => "verified",
                    Fact::Seen => "as seen",
                    Fact::Changed => "changed since",
                };
                let by = claim.by.map(|cause| cause.by).unwrap_or_default();
                let held = self.held.entry(grade).or_default();
                let held_by = self.held_by.entry(format!("{grade}: {by}")).or_default();
                if **shown == *line.text {
                    (held.0, held_by.0) = (held.0 + 1, held_by.0 + 1);
                } else {
                    (held.1, held_by.1) = (held.1 + 1, held_by.1 + 1);
                    let (was, is) = (&line.text, shown);
                    self.wrong.push(format!("{name} {grade} {path}:{} was {was:?} is {is:?} {by}", known + index));
                }
            }
        }
    }
}

/// What is said of single regions: `; lines 3–5 changed since by …`.
fn exceptions_in(said: &str) -> Vec<(Range<usize>, String)> {
    let one = |part: &str| {
        let part = part.strip_prefix('s').unwrap_or(part).trim_start();
        let (numbers, grade) = part.split_once(' ')?;
        let (from, to) = numbers.split_once('–').unwrap_or((numbers, numbers));
        let grade = grade.strip_prefix("of these ").unwrap_or(grade);
        Some((from.parse().ok()?..to.parse::<usize>().ok()? + 1, format!(", {grade}")))
    };
    said.split("; line").skip(1).filter_map(one).collect()
}

fn leading_number(text: &str) -> Option<usize> {
    text[..text.bytes().take_while(u8::is_ascii_digit).count()].parse().ok()
}

/// What a heading says first.
fn grade_in(heading: &str) -> Option<&'static str> {
    const GRADES: [&str; 3] = ["verified", "as you saw", "changed since"];
    let found = GRADES.iter().filter_map(|grade| Some((heading.find(&format!(", {grade}"))?, *grade)));
    found.min().map(|(_, grade)| grade)
}

fn play(source: &RecordingSource, budget: u64) -> Option<GradeCounts> {
    let transcript = match source.transcript() {
        Ok((transcript, _)) => transcript,
        Err(unread) => {
            source.tell_unread(&unread);
            return None;
        }
    };
    let name = source.short.display().to_string();
    let mut counts = GradeCounts::default();
    let mut folder = Folder::new(Policy::new(budget), Meter::new(Arc::new(Estimate)));
    let (mut observer, mut model) = (Observer::default(), FileModel::new());
    let mut calls: HashMap<String, FunctionCall> = HashMap::new();
    let mut at = 0;
    for record in &transcript.records {
        at += 1;
        if record.is_response() {
            let window = folder.request().to_vec();
            for made in folder.take_decisions() {
                if !matches!(made, FoldDecision::Fold(_)) {
                    continue;
                }
                counts.folds += 1;
                counts.view(&window);
            }
        }
        record.calls().for_each(|call| observer.expect(call));
        calls.extend(record.calls().map(|call| (call.call_id.to_string(), call.clone())));
        for observation in observed(&mut observer, &mut calls, record) {
            counts.hold(&model, &name, &observation);
            let before = changed_lines(&model);
            model.apply(at, &observation);
            let put = changed_lines(&model).saturating_sub(before);
            if put > 0 {
                let told: String = format!("{observation:?}").chars().take(MOST_TOLD).collect();
                counts.changes.push(format!("{put}\t{name}\t{at}\t{told}"));
            }
        }
        let counted = |item: &Item| (Arc::new(item.clone()), count_item(&Estimate, item));
        folder.push(record.items().iter().map(counted));
    }
    Some(counts)
}

/// Most characters of what is printed of an observation.
const MOST_TOLD: usize = 160;

/// How many known lines are from before a change that could not be followed.
fn changed_lines(model: &FileModel) -> usize {
    let lines = model.files().iter().flat_map(|file| &file.segments).flat_map(|segment| &segment.lines);
    lines.filter(|line| line.is_changed()).count()
}

/// What a record tells about files.
fn observed(observer: &mut Observer, calls: &mut HashMap<String, FunctionCall>, record: &Record) -> Vec<Observation> {
    let mut told = Vec::new();
    for item in record.items() {
        match item {
            Item::Message(message) => told.extend(observer.hear(message)),
            Item::FunctionCallOutput(output) => {
                if let Some(call) = calls.remove(&*output.call_id) {
                    told.extend(observer.observe(&call, output).observations);
                }
            }
            _ => {}
        }
    }
    told
}
