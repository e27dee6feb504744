//! A folder that looks at the disk before it decides: its windows come out again without the disk, and show nothing that
//! the conversation did not have.

use std::collections::BTreeMap;

use contexture_core::Item;
use contexture_files::disk::{NotCompared, OnDisk};
use contexture_fold::{Asking, FoldDecision, Folder, Replay};

use contexture_core::item::Role;
use contexture_core::tokens::Estimate;
use contexture_wire::transcript::Record;
use proptest::prelude::*;
use serde_json::json;

use crate::records::{Counted, Sent, answers, asks, counted, folder, folds, said, sent, stored};

const BUDGET: u64 = 2_500;

/// What happens between two requests.
#[derive(Clone, Debug)]
enum Deed {
    /// The agent reads a file, or some lines of it.
    Read(usize, Option<(usize, usize)>),
    /// The agent runs something that may change everything.
    Run,
    /// The agent talks.
    Talk,
    /// The agent writes a file, replaces a line of one, or is refused when it wants to write one.
    Write(usize),
    Edit(usize, usize),
    Refused(usize),
    /// The agent reads a file, and the harness hides a line of it.
    Redacted(usize, usize),
    /// Someone replaces a line of a file, or puts one in.
    Change(usize, usize),
    Add(usize, usize),
    /// Someone deletes a file, or makes it again.
    Toggle(usize),
    /// From now on files cannot be compared, or can be again.
    Lose(Option<NotCompared>),
}

const FILES: usize = 4;

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = prop_oneof![
        3 => (0..FILES).prop_map(|file| Deed::Read(file, None)),
        2 => (0..FILES, 0..25_usize, 3..12_usize).prop_map(|(file, at, count)| Deed::Read(file, Some((at, count)))),
        1 => Just(Deed::Run),
        4 => Just(Deed::Talk),
        3 => (0..FILES, 0..30_usize).prop_map(|(file, line)| Deed::Change(file, line)),
        2 => (0..FILES, 0..30_usize).prop_map(|(file, line)| Deed::Add(file, line)),
        1 => (0..FILES).prop_map(Deed::Write),
        2 => (0..FILES, 0..30_usize).prop_map(|(file, line)| Deed::Edit(file, line)),
        1 => (0..FILES).prop_map(Deed::Refused),
        1 => (0..FILES, 0..30_usize).prop_map(|(file, line)| Deed::Redacted(file, line)),
        1 => (0..FILES).prop_map(Deed::Toggle),
        1 => prop_oneof![Just(None), proptest::sample::select(&NotCompared::ALL).prop_map(Some)].prop_map(Deed::Lose),
    ];
    proptest::collection::vec(deed, 10..60)
}

/// A disk that is a table.
struct Disk {
    files: BTreeMap<String, Vec<String>>,
    changes: usize,
    /// Why nothing is compared, if so.
    lost: Option<NotCompared>,
}

fn path_of(file: usize) -> String {
    format!("src/{file}.rs")
}

fn first_lines(file: usize) -> Vec<String> {
    (0..30).map(|line| format!("let value_{file}_{line} = {line};")).collect()
}

impl Disk {
    fn new() -> Self {
        Self { files: (0..FILES).map(|file| (path_of(file), first_lines(file))).collect(), changes: 0, lost: None }
    }

    /// A line that was nowhere before.
    fn new_line(&mut self, line: usize) -> String {
        self.changes += 1;
        format!("let changed_{} = {line};", self.changes)
    }

    fn change(&mut self, file: usize, line: usize) {
        let new = self.new_line(line);
        if let Some(lines) = self.files.get_mut(&path_of(file)) {
            lines[line] = new;
        }
    }

    fn add(&mut self, file: usize, line: usize) {
        let new = self.new_line(line);
        if let Some(lines) = self.files.get_mut(&path_of(file)) {
            lines.insert(line, new);
        }
    }

    /// The agent replaces a line, if the file is there.
    fn edit(&mut self, id: &str, file: usize, line: usize) -> Vec<Record> {
        let new = self.new_line(line);
        let Some(lines) = self.files.get_mut(&path_of(file)) else { return Vec::new() };
        let old = std::mem::replace(&mut lines[line], new.clone());
        let arguments = json!({ "file_path": path_of(file), "old_string": old, "new_string": new });
        vec![asks(id, "Edit", arguments), answers(id, format!("The file {} has been updated.", path_of(file)))]
    }

    /// The agent writes a file anew, or is refused.
    fn write(&mut self, id: &str, file: usize, is_refused: bool) -> Vec<Record> {
        let lines: Vec<String> = (0..31).map(|line| self.new_line(line)).collect();
        let arguments = json!({ "file_path": path_of(file), "content": lines.join("\n") + "\n" });
        if is_refused {
            let refusal = "File has not been read yet. Read it first before writing to it.";
            // Some agents mark failures, and others only say so.
            let output =
                if file.is_multiple_of(2) { Item::error_output(id, refusal) } else { Item::output(id, refusal) };
            return vec![asks(id, "Write", arguments), output.into()];
        }
        self.files.insert(path_of(file), lines);
        vec![asks(id, "Write", arguments), answers(id, format!("The file {} has been written.", path_of(file)))]
    }

    fn toggle(&mut self, file: usize) {
        if self.files.remove(&path_of(file)).is_none() {
            self.files.insert(path_of(file), first_lines(file));
        }
    }

    /// The window of a request, with everything looked at.
    fn request(&self, folder: &mut Folder) -> Vec<Sent> {
        let mut asking = Asking::new(folder);
        loop {
            let wanted = asking.wanted();
            if wanted.is_empty() {
                return sent(asking.window());
            }
            let look = |path: &String| match (self.lost, self.files.get(path)) {
                (Some(why), _) => OnDisk::NotCompared(why),
                (None, Some(lines)) => OnDisk::Text(lines.join("\n") + "\n"),
                (None, None) => OnDisk::Gone,
            };
            asking.found(wanted.iter().map(|wanted| (wanted.file, look(&wanted.path))).collect());
        }
    }

    /// What a deed puts into the conversation.
    fn records(&mut self, at: usize, deed: &Deed) -> Vec<Record> {
        let id = at.to_string();
        match deed {
            Deed::Read(file, part) => {
                let arguments = match part {
                    None => json!({ "file_path": path_of(*file) }),
                    Some((from, count)) => {
                        json!({ "file_path": path_of(*file), "offset": from + 1, "limit": count })
                    }
                };
                let (from, count) = part.unwrap_or((0, usize::MAX));
                let text = self.files.get(&path_of(*file)).map(|lines| {
                    let some = lines.iter().enumerate().skip(from).take(count);
                    some.map(|(at, line)| format!("{}\t{line}\n", at + 1)).collect::<String>()
                });
                vec![asks(&id, "Read", arguments), answers(&id, text.unwrap_or_else(|| "File does not exist.".into()))]
            }
            Deed::Run => vec![asks(&id, "Bash", json!({ "command": "./run.sh" })), answers(&id, "done")],
            Deed::Talk => vec![said(Role::Assistant, "so we went on and on ".repeat(30)), said(Role::User, "go on")],
            Deed::Write(file) => self.write(&id, *file, false),
            Deed::Refused(file) => self.write(&id, *file, true),
            Deed::Edit(file, line) => self.edit(&id, *file, *line),
            Deed::Redacted(file, hidden) => {
                let Some(lines) = self.files.get(&path_of(*file)) else { return Vec::new() };
                let shown = lines.iter().enumerate().map(|(at, line)| match at == *hidden {
                    true => format!("{}\t[REDACTED]\n", at + 1),
                    false => format!("{}\t{line}\n", at + 1),
                });
                let arguments = json!({ "file_path": path_of(*file) });
                vec![asks(&id, "Read", arguments), answers(&id, shown.collect::<String>())]
            }
            Deed::Change(file, line) => {
                self.change(*file, *line);
                Vec::new()
            }
            Deed::Add(file, line) => {
                self.add(*file, *line);
                Vec::new()
            }
            Deed::Toggle(file) => {
                self.toggle(*file);
                Vec::new()
            }
            Deed::Lose(why) => {
                self.lost = *why;
                Vec::new()
            }
        }
    }
}

/// Plays deeds; returns the messages, the windows before responses, and what was decided.
fn play(deeds: &[Deed]) -> (Vec<Counted>, Vec<Vec<Sent>>, Vec<FoldDecision>) {
    let (mut disk, mut folder) = (Disk::new(), folder(BUDGET));
    let (mut messages, mut windows) = (Vec::new(), Vec::new());
    for (at, deed) in deeds.iter().enumerate() {
        for record in disk.records(at, deed) {
            if record.is_response() {
                windows.push(disk.request(&mut folder));
            }
            let message = counted(&Estimate, &record);
            folder.push(message.clone());
            messages.push(message);
        }
    }
    (messages, windows, folder.take_decisions())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn windows_come_out_again_without_the_disk(mut deeds in deeds()) {
        deeds.extend((0..30).map(|_| Deed::Talk));
        let (messages, windows, decisions) = play(&deeds);
        prop_assert!(folds(&decisions) > 0, "nothing was folded");
        let mut replay = Replay::new(folder(BUDGET), stored(&decisions));
        let mut again = Vec::new();
        for message in messages {
            if message[0].0.is_of_model() {
                again.push(sent(replay.request()));
            }
            replay.push(message);
        }
        prop_assert_eq!(again, windows);
    }
}

/// The lines with numbers of their own in a text.
fn marked(text: &str) -> impl Iterator<Item = &str> {
    text.split(|char: char| !char.is_alphanumeric() && char != '_').filter(|word| word.contains('_'))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Somebody else changes the files all the time, and every line of these changes is new: what a window shows was
    /// in the conversation before.
    #[test]
    fn nothing_is_shown_that_the_conversation_did_not_have(mut deeds in deeds()) {
        deeds.extend((0..30).map(|_| Deed::Talk));
        let (messages, windows, decisions) = play(&deeds);
        prop_assert!(folds(&decisions) > 0, "nothing was folded");
        let mut had = std::collections::HashSet::new();
        let mut windows = windows.iter();
        for message in &messages {
            if message[0].0.is_of_model() {
                for (_, _, item) in windows.next().expect("a window for each response") {
                    let text = crate::records::text(item);
                    let unheard: Vec<&str> = marked(&text).filter(|word| !had.contains(*word)).collect();
                    prop_assert!(unheard.is_empty(), "{unheard:?} was never in the conversation:\n{text}");
                }
            }
            for (item, _) in message {
                had.extend(marked(&serde_json::to_string(item).unwrap()).map(str::to_owned));
            }
        }
        let stored: String = decisions.iter().map(|decision| decision.to_stored().to_string()).collect();
        let unheard: Vec<&str> = marked(&stored).filter(|word| word.contains("changed_") && !had.contains(*word)).collect();
        prop_assert!(unheard.is_empty(), "stored, but never in the conversation: {unheard:?}");
    }
}

#[test]
fn what_is_played_looks_at_the_disk() {
    let read = |file| Deed::Read(file, None);
    let mut deeds = vec![read(0), read(1), Deed::Change(0, 3), Deed::Toggle(1)];
    deeds.extend((0..30).map(|_| Deed::Talk));
    let (_, windows, decisions) = play(&deeds);
    let looked = decisions.iter().filter(|decision| matches!(decision, FoldDecision::Disk(_))).count();
    assert!(looked > 0, "nothing was looked at");
    let shown: String = windows.iter().flatten().map(|(_, _, item)| crate::records::text(item) + "\n").collect();
    assert!(!shown.contains("changed_1"), "what the agent has not seen is shown: {shown}");
    assert!(shown.contains("changed on disk since you read it, line 4 differs: read it again"), "{shown}");
    assert!(shown.contains("`src/1.rs` is gone from the disk"), "{shown}");
}

#[test]
fn what_is_not_compared_says_why_and_is_never_sure() {
    for why in NotCompared::ALL {
        let mut deeds = vec![Deed::Lose(Some(why)), Deed::Read(0, None), Deed::Edit(0, 3), Deed::Read(1, Some((2, 9)))];
        deeds.extend((0..30).map(|_| Deed::Talk));
        let (_, windows, decisions) = play(&deeds);
        let reasons = decisions.iter().filter_map(|decision| match decision {
            FoldDecision::Disk(checked) => Some(checked.not_compared()),
            _ => None,
        });
        assert_eq!(reasons.flatten().next(), Some((why, 2)), "{why:?}");
        let shown: String = windows.iter().flatten().map(|(_, _, item)| crate::records::text(item) + "\n").collect();
        let headings: Vec<&str> = shown.lines().filter(|line| line.starts_with("## `src/")).collect();
        assert!(!headings.is_empty(), "{shown}");
        for heading in headings {
            assert!(heading.contains(&format!("not compared ({}), as seen at message ", why.as_str())), "{heading}");
            assert!(!heading.contains("whole file") && !heading.contains(" sure"), "{heading}");
        }
    }
}
