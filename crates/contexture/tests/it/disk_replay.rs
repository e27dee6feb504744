//! A folder that looks at the disk before it decides: its windows come out again without the disk.

use std::collections::BTreeMap;

use contexture::files::disk::OnDisk;
use contexture::fold::{Asking, FoldDecision, Folder, Replay};
use contexture::item::Role;
use contexture::tokens::Estimate;
use contexture::transcript::Record;
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
    /// Someone replaces a line of a file.
    Change(usize, usize),
    /// Someone deletes a file, or makes it again.
    Toggle(usize),
}

const FILES: usize = 4;

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = prop_oneof![
        3 => (0..FILES).prop_map(|file| Deed::Read(file, None)),
        2 => (0..FILES, 0..25_usize, 3..12_usize).prop_map(|(file, at, count)| Deed::Read(file, Some((at, count)))),
        1 => Just(Deed::Run),
        4 => Just(Deed::Talk),
        3 => (0..FILES, 0..30_usize).prop_map(|(file, line)| Deed::Change(file, line)),
        1 => (0..FILES).prop_map(Deed::Toggle),
    ];
    proptest::collection::vec(deed, 10..60)
}

/// A disk that is a table.
struct Disk {
    files: BTreeMap<String, Vec<String>>,
    changes: usize,
}

fn path_of(file: usize) -> String {
    format!("src/{file}.rs")
}

fn first_lines(file: usize) -> Vec<String> {
    (0..30).map(|line| format!("let value_{file}_{line} = {line};")).collect()
}

impl Disk {
    fn new() -> Self {
        Self { files: (0..FILES).map(|file| (path_of(file), first_lines(file))).collect(), changes: 0 }
    }

    fn change(&mut self, file: usize, line: usize) {
        self.changes += 1;
        if let Some(lines) = self.files.get_mut(&path_of(file)) {
            lines[line] = format!("let changed_{} = {line};", self.changes);
        }
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
            let look = |path: &String| match self.files.get(path) {
                Some(lines) => OnDisk::Text(lines.join("\n") + "\n"),
                None => OnDisk::Gone,
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
            Deed::Change(file, line) => {
                self.change(*file, *line);
                Vec::new()
            }
            Deed::Toggle(file) => {
                self.toggle(*file);
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

#[test]
fn what_is_played_looks_at_the_disk() {
    let read = |file| Deed::Read(file, None);
    let mut deeds = vec![read(0), read(1), Deed::Change(0, 3), Deed::Toggle(1)];
    deeds.extend((0..30).map(|_| Deed::Talk));
    let (_, windows, decisions) = play(&deeds);
    let looked = decisions.iter().filter(|decision| matches!(decision, FoldDecision::Disk(_))).count();
    assert!(looked > 0, "nothing was looked at");
    let shown: String = windows.iter().flatten().map(|(_, _, item)| crate::records::text(item) + "\n").collect();
    assert!(shown.contains("let changed_1 = 3;"), "{shown}");
    assert!(shown.contains("`src/1.rs` is gone from the disk"), "{shown}");
}
