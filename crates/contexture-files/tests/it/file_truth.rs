//! What the model claims is so: it is compared with real files after every step of random work on them.

use std::collections::BTreeSet;

use contexture_core::item::{FunctionCall, FunctionCallOutput, Outcome};
use contexture_files::dialect::Dialects;
use contexture_files::model::FileModel;
use proptest::prelude::*;
use serde_json::{Value, json};

/// The names of the files that are worked on.
const NAMES: [&str; 2] = ["src/a.rs", "src/b.rs"];

/// Files as they really are, and what a model makes of the calls that worked on them.
struct World {
    files: [Option<Vec<String>>; 2],
    model: FileModel,
    dialects: Dialects,
    at: u32,
    /// Every line that each file ever had.
    had: [BTreeSet<String>; 2],
    /// Whether something ran that could write any file.
    is_open: bool,
}

impl World {
    fn new(files: [Vec<String>; 2]) -> Self {
        let had = [&files[0], &files[1]].map(|lines| lines.iter().cloned().collect());
        let (model, dialects) = (FileModel::new(), Dialects::builtin());
        Self { files: files.map(Some), model, dialects, at: 0, had, is_open: false }
    }

    fn call(&mut self, name: &str, arguments: Value, result: &str) {
        self.at += 1;
        let call = FunctionCall::new("1", name, arguments.to_string());
        for observation in
            self.dialects.observe(&call, &FunctionCallOutput::new("1", result, Outcome::Done)).observations
        {
            self.model.apply(self.at, &observation);
        }
    }

    fn shell(&mut self, command: &str, result: &str) {
        self.call("Bash", json!({"command": command}), result);
    }

    /// The file that a step is about, unless it is gone or empty.
    fn lines(&self, file: usize) -> Option<Vec<String>> {
        self.files[file].clone().filter(|lines| !lines.is_empty())
    }

    fn check(&mut self) -> Result<(), TestCaseError> {
        for (had, real) in self.had.iter_mut().zip(&self.files) {
            had.extend(real.iter().flatten().cloned());
        }
        // A file may be copied over another one.
        let had: BTreeSet<&String> = self.had.iter().flatten().collect();
        for (name, real) in NAMES.iter().zip(&self.files) {
            let Some(index) = self.model.place(name) else { continue };
            let known = &self.model.files()[index];
            let is_whole = self.model.claim_whole(index).is_some();
            let Some(real) = real else {
                prop_assert!(!is_whole, "{name} is gone");
                continue;
            };
            prop_assert!(!self.model.is_gone(index), "{name} is not gone");
            for (place, segment) in known.segments.iter().enumerate() {
                for (at, line) in segment.lines.iter().enumerate().filter(|(_, line)| !line.is_changed()) {
                    let first = self.model.claim(index, place, at..at + 1).first.filter(|_| !self.is_open);
                    if let Some(number) = first {
                        prop_assert_eq!(real.get(number - 1).map(String::as_str), Some(&*line.text));
                    }
                    // The ends of an edit may be parts of lines.
                    let was_there = had.iter().any(|had| had.contains(&*line.text));
                    prop_assert!(was_there, "{:?} was nowhere", line.text);
                }
            }
            if is_whole {
                prop_assert_eq!(&known.text(), &real.join("\n"), "{} is known whole", name);
            }
            let is_changed = known.segments.iter().flat_map(|segment| &segment.lines).any(|line| line.is_changed());
            prop_assert_eq!(is_changed, known.is_changed());
        }
        Ok(())
    }
}

/// How a tool prints lines.
#[derive(Clone, Copy, Debug)]
enum Style {
    Plain,
    Arrow,
    Tab,
    Colon,
    Bar,
    Dot,
}

fn printed(lines: &[String], first: usize, style: Style) -> String {
    let line = |(index, text): (usize, &String)| {
        let number = first + index;
        match style {
            Style::Plain => format!("{text}\n"),
            Style::Arrow => format!("{number:6}→{text}\n"),
            Style::Tab => format!("{number:6}\t{text}\n"),
            Style::Colon => format!("{number}: {text}\n"),
            Style::Bar => format!("{number} | {text}\n"),
            Style::Dot => format!("{number}. {text}\n"),
        }
    };
    lines.iter().enumerate().map(line).collect()
}

#[derive(Clone, Debug)]
enum Step {
    ReadWhole(Style),
    ReadRange { first: usize, count: usize, style: Style },
    Sed { first: usize, count: usize },
    Numbered { first: usize, count: usize },
    Cat,
    Grep { line: usize },
    Edit { first: usize, count: usize, new: Vec<String>, inside: bool },
    EditAll { line: usize, new: Vec<String> },
    Patch { first: usize, count: usize, context: usize, new: Vec<String> },
    Write(Vec<String>),
    Append(Vec<String>),
    Insert { after: usize, new: Vec<String> },
    Substitute { line: usize, new: String },
    DeleteLines { first: usize, count: usize },
    Format { line: usize, new: Vec<String> },
    Delete,
    Move,
    Copy,
}

fn line() -> impl Strategy<Value = String> {
    prop_oneof![
        14 => "[a-z]{3} [a-z0-9]{8}",
        3 => Just("}".to_owned()),
        2 => Just(String::new()),
        1 => Just("    return None;".to_owned()),
    ]
}

fn lines(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(line(), count)
}

fn style() -> impl Strategy<Value = Style> {
    use Style::*;
    prop::sample::select(vec![Plain, Arrow, Tab, Colon, Bar, Dot])
}

fn step() -> impl Strategy<Value = Step> {
    let place = || 0..60_usize;
    prop_oneof![
        2 => style().prop_map(Step::ReadWhole),
        6 => (place(), 1..25_usize, style()).prop_map(|(first, count, style)| Step::ReadRange { first, count, style }),
        3 => (place(), 1..25_usize).prop_map(|(first, count)| Step::Sed { first, count }),
        2 => (place(), 1..25_usize).prop_map(|(first, count)| Step::Numbered { first, count }),
        1 => Just(Step::Cat),
        2 => place().prop_map(|line| Step::Grep { line }),
        6 => (place(), 1..6_usize, lines(0..5), any::<bool>())
            .prop_map(|(first, count, new, inside)| Step::Edit { first, count, new, inside }),
        1 => (place(), lines(1..3)).prop_map(|(line, new)| Step::EditAll { line, new }),
        4 => (place(), 0..4_usize, 1..4_usize, lines(0..4))
            .prop_map(|(first, count, context, new)| Step::Patch { first, count, context, new }),
        1 => lines(1..40).prop_map(Step::Write),
        2 => lines(1..4).prop_map(Step::Append),
        2 => (place(), lines(1..4)).prop_map(|(after, new)| Step::Insert { after, new }),
        2 => (place(), "[a-z]{4}").prop_map(|(line, new)| Step::Substitute { line, new }),
        1 => (place(), 1..4_usize).prop_map(|(first, count)| Step::DeleteLines { first, count }),
        1 => (place(), lines(0..4)).prop_map(|(line, new)| Step::Format { line, new }),
        1 => Just(Step::Delete),
        1 => Just(Step::Move),
        1 => Just(Step::Copy),
    ]
}

/// Whether a piece of text stands in a file exactly once, as tools ask of what they replace.
fn is_unique(lines: &[String], piece: &str) -> bool {
    let text = format!("{}\n", lines.join("\n"));
    let mut found = (0..text.len()).filter(|at| text.is_char_boundary(*at) && text[*at..].starts_with(piece));
    found.next().is_some() && found.next().is_none()
}

/// A range of at least one line within a number of lines.
fn clamp(first: usize, count: usize, len: usize) -> std::ops::Range<usize> {
    let start = first % len;
    start..(start + count.max(1)).min(len)
}

impl World {
    /// Takes a step on a file, as the tools that agents have would.
    fn take(&mut self, file: usize, step: Step) {
        match step {
            Step::Write(_) | Step::Append(_) | Step::Move | Step::Copy | Step::Delete => self.take_whole(file, step),
            Step::Edit { .. } | Step::EditAll { .. } | Step::Patch { .. } | Step::Insert { .. } => {
                self.take_edit(file, step)
            }
            Step::Substitute { .. } | Step::DeleteLines { .. } | Step::Format { .. } => self.take_command(file, step),
            _ => self.take_read(file, step),
        }
    }

    fn take_read(&mut self, file: usize, step: Step) {
        let (name, Some(real)) = (NAMES[file], self.lines(file)) else { return };
        match step {
            Step::ReadWhole(style) => {
                self.call("read_file", json!({"path": name}), &printed(&real, 1, style));
            }
            Step::ReadRange { first, count, style } => {
                let range = clamp(first, count, real.len());
                let arguments = json!({"path": name, "offset": range.start + 1, "limit": range.len()});
                self.call("read_file", arguments, &printed(&real[range.clone()], range.start + 1, style));
            }
            Step::Sed { first, count } => {
                let range = clamp(first, count, real.len());
                let command = format!("sed -n '{},{}p' {name}", range.start + 1, range.end);
                self.shell(&command, &printed(&real[range], 1, Style::Plain));
            }
            Step::Numbered { first, count } => {
                let range = clamp(first, count, real.len());
                let command = format!("nl -ba {name} | sed -n '{},{}p'", range.start + 1, range.end);
                self.shell(&command, &printed(&real[range.clone()], range.start + 1, Style::Tab));
            }
            Step::Cat => self.shell(&format!("cat {name}"), &printed(&real, 1, Style::Plain)),
            Step::Grep { line } => {
                let line = line % real.len();
                let output = format!("{name}:{}:{}\n", line + 1, real[line]);
                self.shell(&format!("grep -rn something {name} other.rs"), &output);
            }
            _ => unreachable!("not a read"),
        }
    }

    fn take_edit(&mut self, file: usize, step: Step) {
        let (name, Some(real)) = (NAMES[file], self.lines(file)) else { return };
        match step {
            Step::Edit { first, count, new, inside } => {
                let range = clamp(first, count, real.len());
                let (mut old, mut new) = (real[range].join("\n"), new.join("\n"));
                if inside && old.len() > 4 && old.is_ascii() {
                    old = old[2..old.len() - 1].to_owned();
                    new = format!("in {new} side");
                }
                if old.is_empty() || !is_unique(&real, &old) {
                    return;
                }
                let text = real.join("\n") + "\n";
                // Some tools take the line feed behind a piece that is replaced by nothing.
                let line = format!("{old}\n");
                let (tool, taken) = if count % 2 == 0 { ("Edit", &line) } else { ("replace", &old) };
                let is_taken = new.is_empty() && !old.ends_with('\n') && text.contains(taken.as_str());
                let taken = if is_taken { taken } else { &old };
                self.replace(file, &text.replacen(taken.as_str(), &new, 1));
                let arguments = json!({"file_path": name, "old_string": old, "new_string": new});
                self.call(tool, arguments, "done");
            }
            Step::EditAll { line, new } => {
                let old = real[line % real.len()].clone();
                let new = new.join("\n");
                if old.trim().is_empty() || new.is_empty() || new.contains(&old) {
                    return;
                }
                self.replace(file, &(real.join("\n").replace(&old, &new) + "\n"));
                let arguments = json!({"file_path": name, "old_string": old, "new_string": new, "replace_all": true});
                self.call("Edit", arguments, "done");
            }
            Step::Patch { first, count, context, new } => self.take_patch(file, &real, (first, count, context), &new),
            Step::Insert { after, new } => {
                let after = after % (real.len() + 1);
                let mut lines = real;
                lines.splice(after..after, new.iter().cloned());
                self.files[file] = Some(lines);
                let arguments =
                    json!({"command": "insert", "path": name, "insert_line": after, "new_str": new.join("\n") + "\n"});
                self.call("str_replace_editor", arguments, "done");
            }
            _ => unreachable!("not an edit"),
        }
    }

    fn take_patch(&mut self, file: usize, real: &[String], place: (usize, usize, usize), new: &[String]) {
        let (first, count, context) = place;
        let start = first % real.len();
        let end = (start + count).min(real.len());
        let around = start.saturating_sub(context)..(end + context).min(real.len());
        let old = &real[around.clone()];
        let is_once = real.windows(old.len()).filter(|window| *window == old).count() == 1;
        if !is_once || (new.is_empty() && count == 0) {
            return;
        }
        let mark =
            |mark: char, lines: &[String]| -> String { lines.iter().map(|line| format!("{mark}{line}\n")).collect() };
        let body = [
            mark(' ', &real[around.start..start]),
            mark('-', &real[start..end]),
            mark('+', new),
            mark(' ', &real[end..around.end]),
        ];
        let name = NAMES[file];
        let patch = format!("*** Begin Patch\n*** Update File: {name}\n@@\n{}*** End Patch", body.concat());
        let mut lines = real.to_vec();
        lines.splice(start..end, new.iter().cloned());
        self.files[file] = Some(lines);
        self.call("apply_patch", json!({"input": patch}), "Success");
    }

    /// Gives a file a text.
    fn replace(&mut self, file: usize, text: &str) {
        self.files[file] = Some(text.lines().map(str::to_owned).collect());
    }

    fn take_whole(&mut self, file: usize, step: Step) {
        let (name, other) = (NAMES[file], NAMES[1 - file]);
        match step {
            Step::Write(lines) => {
                let text = lines.join("\n") + "\n";
                self.files[file] = Some(lines);
                self.call("Write", json!({"file_path": name, "content": text}), "done");
            }
            Step::Append(new) => {
                let text = new.join("\n") + "\n";
                self.files[file].get_or_insert_default().extend(new);
                self.shell(&format!("cat >> {name} <<'END'\n{text}END"), "");
            }
            Step::Delete => {
                self.files[file] = None;
                self.shell(&format!("rm -f {name}"), "");
            }
            Step::Move | Step::Copy if self.files[file].is_none() => {}
            Step::Move => {
                self.files[1 - file] = self.files[file].take();
                self.shell(&format!("mv {name} {other}"), "");
            }
            Step::Copy => {
                self.files[1 - file] = self.files[file].clone();
                self.shell(&format!("cp {name} {other}"), "");
            }
            _ => unreachable!("not about the whole file"),
        }
    }

    fn take_command(&mut self, file: usize, step: Step) {
        let (name, Some(mut real)) = (NAMES[file], self.lines(file)) else { return };
        match step {
            Step::Substitute { line, new } => {
                let old: String = real[line % real.len()].chars().take(3).collect();
                if old.trim().is_empty() || !old.chars().all(|c| c.is_ascii_alphanumeric()) {
                    return;
                }
                real.iter_mut().for_each(|line| *line = line.replace(&old, &new));
                self.files[file] = Some(real);
                self.shell(&format!("sed -i 's/{old}/{new}/g' {name}"), "");
            }
            Step::DeleteLines { first, count } => {
                let range = clamp(first, count, real.len());
                let command = format!("sed -i '{},{}d' {name}", range.start + 1, range.end);
                real.drain(range);
                self.files[file] = Some(real);
                self.shell(&command, "");
            }
            Step::Format { line, new } => {
                let line = line % real.len();
                real.splice(line..=line, new);
                self.files[file] = Some(real);
                self.is_open = true;
                self.shell("make format", "");
            }
            _ => unreachable!("not a command"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn what_is_claimed_is_so(
        first in lines(10..50),
        second in lines(1..30),
        steps in prop::collection::vec((0..2_usize, step()), 1..30),
    ) {
        let mut world = World::new([first, second]);
        let mut taken = Vec::new();
        for (file, step) in steps {
            taken.push(format!("{file}: {step:?}"));
            // Of what is not known it is not known where it goes.
            world.is_open |= matches!(step, Step::Copy | Step::Move);
            world.take(file, step);
            if let Err(error) = world.check() {
                return Err(TestCaseError::fail(format!("{error}\nafter {}", taken.join("\n"))));
            }
        }
    }
}
