//! Hundreds of small stories in which what is said and what happened to a file differ, each with the truth at its end.
//!
//! A case has steps (calls with their outputs, several calls at once, words of people and harnesses, looks at the disk)
//! and the text of the file after them. Whatever the steps tell, no line that is verified may be missing from the file, a
//! file that is claimed to be whole must be, and what is claimed to be as it was seen or written was in the file once.

use std::collections::BTreeMap;

use contexture_core::item::{FunctionCall, FunctionCallOutput, Item, Meta, Origin, Outcome, Role};
use contexture_files::disk::NotCompared;
use contexture_files::model::{Fact, FileModel};
use contexture_files::observer::Observer;
use serde::Deserialize;
use serde_json::{Value, json};

/// The cases, one a line.
const CASES: &str = include_str!("attack/cases.jsonl");

const PATH: &str = "/p/a.txt";

#[derive(Deserialize)]
struct Case {
    /// What it is about: 1 words, 2 failures told in text, 3 forms of reads, 4 work that goes on, 5 people and
    /// harnesses, 6 unknown tools, 7 other effects, 8 outputs, batches and paths, 9 the disk.
    kind: u8,
    name: String,
    steps: Vec<Step>,
    /// The text of the file, or of each file, at the end; null if it is gone.
    after: Value,
    /// Whether nothing was read before.
    #[serde(default)]
    fresh: bool,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Step {
    Batch {
        batch: Vec<Call>,
    },
    Call(Call),
    Say {
        say: String,
        text: String,
    },
    Read {
        #[serde(rename = "read")]
        _read: bool,
    },
    Disk {
        disk: Option<String>,
    },
}

#[derive(Deserialize)]
struct Call {
    call: String,
    args: Value,
    out: String,
    #[serde(default)]
    outcome: String,
}

#[derive(Default)]
struct World {
    observer: Observer,
    model: FileModel,
    at: u32,
}

impl World {
    fn make(&mut self, calls: &[Call]) {
        let made = |(at, call): (usize, &Call)| {
            let arguments = call.args.as_str().map_or_else(|| call.args.to_string(), str::to_owned);
            FunctionCall::new(&at.to_string(), &call.call, arguments)
        };
        let made: Vec<FunctionCall> = calls.iter().enumerate().map(made).collect();
        made.iter().for_each(|call| self.observer.expect(call));
        for (made, call) in made.iter().zip(calls) {
            self.at += 1;
            let outcome = match call.outcome.as_str() {
                "done" => Outcome::Done,
                "failed" => Outcome::Failed,
                _ => Outcome::Unknown,
            };
            let output = FunctionCallOutput::new(&made.call_id, call.out.as_str(), outcome);
            for told in self.observer.observe(made, &output).observations {
                self.model.apply(self.at, &told);
            }
        }
    }

    fn read(&mut self) {
        let out = "     1→one\n     2→two\n     3→three\n".to_owned();
        let args = json!({"file_path": PATH});
        self.make(&[Call { call: "Read".to_owned(), args, out, outcome: "done".to_owned() }]);
    }

    fn say(&mut self, who: &str, text: &str) {
        self.at += 1;
        let (role, origin) = match who {
            "user" => (Role::User, Origin::Said),
            _ => (Role::User, Origin::Harness { kind: None, path: None }),
        };
        let item = Item::message(role, text).with_meta(Meta { origin, ..Meta::default() });
        for told in self.observer.hear(item.as_message().unwrap()) {
            self.model.apply(self.at, &told);
        }
    }

    fn look(&mut self, disk: Option<&str>) {
        self.at += 1;
        let Some(file) = self.model.place(PATH) else { return };
        let compared = match disk {
            Some("unreadable") => self.model.not_compared(file, NotCompared::Link),
            text => self.model.compare(file, text),
        };
        if let Some(compared) = compared {
            self.model.take_over(self.at, &compared);
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Batch { batch } => self.make(batch),
            Step::Call(call) => self.make(std::slice::from_ref(call)),
            Step::Say { say, text } => self.say(say, text),
            Step::Read { .. } => self.read(),
            Step::Disk { disk } => self.look(disk.as_deref()),
        }
    }
}

#[derive(Debug, Default)]
struct Counted {
    cases: usize,
    wrong: usize,
    verified: usize,
    seen: usize,
    changed: usize,
}

/// The lines of the file when the story begins.
const BEFORE: [&str; 3] = ["one", "two", "three"];

/// Holds what is known of a file against its text. Returns what is claimed wrongly.
fn hold(model: &FileModel, path: &str, after: Option<&str>, wrote: &[&str], counted: &mut Counted) -> Vec<String> {
    let mut wrong = Vec::new();
    let Some(file) = model.place(path) else { return wrong };
    let state = &model.files()[file];
    let real: Vec<&str> = after.unwrap_or_default().split('\n').collect();
    let real: Vec<&str> = real.iter().map(|line| line.strip_suffix('\r').unwrap_or(line)).collect();
    let count = real.len() - usize::from(real.last() == Some(&""));
    let is_whole = model.claim_whole(file).is_some();
    for (segment, known) in state.segments.iter().enumerate() {
        for (index, line) in known.lines.iter().enumerate() {
            let fact = model.claim(file, segment, index..index + 1).fact;
            let is_there = after.is_some()
                && match known.first {
                    Some(first) => real.get(first + index - 1) == Some(&&*line.text),
                    None => real.contains(&&*line.text),
                };
            let was_there = [&real[..], &BEFORE, wrote].into_iter().any(|lines| lines.contains(&&*line.text));
            let (is_right, count) = match fact {
                Fact::Changed => (true, &mut counted.changed),
                Fact::Seen => (is_there || (!is_whole && was_there), &mut counted.seen),
                Fact::Verified => (is_there, &mut counted.verified),
            };
            *count += 1;
            if !is_right {
                wrong.push(format!("{:?} {fact:?}", line.text));
            }
        }
    }
    if is_whole && state.segments[0].lines.len() != count {
        wrong.push("not whole".to_owned());
    }
    if after.is_some_and(|text| text.contains("\r\n")) {
        let is_said = state.has_carriage_returns() || !is_whole;
        wrong.extend((!is_said).then(|| "carriage returns are not told".to_owned()));
    }
    if state.deleted && after.is_some() && is_whole {
        wrong.push("deleted".to_owned());
    }
    wrong
}

#[test]
fn stories_do_not_end_in_wrong_claims() {
    let mut counts: BTreeMap<u8, Counted> = BTreeMap::new();
    let mut told = Vec::new();
    for line in CASES.lines() {
        let case: Case = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let counted = counts.entry(case.kind).or_default();
        let mut world = World::default();
        if !case.fresh {
            let cd = Call {
                call: "Bash".into(),
                args: json!({"command": "cd /p"}),
                out: String::new(),
                outcome: "done".into(),
            };
            world.make(&[cd]);
            world.read();
        }
        case.steps.iter().for_each(|step| world.step(step));
        // Somebody else changes what the agent wrote.
        let wrote = if matches!(case.kind, 6 | 9) { &["x", "TWO"][..] } else { &[] };
        let wrong = match &case.after {
            Value::Object(files) => {
                files.iter().flat_map(|(path, text)| hold(&world.model, path, text.as_str(), wrote, counted)).collect()
            }
            text => hold(&world.model, PATH, text.as_str(), wrote, counted),
        };
        counted.cases += 1;
        counted.wrong += usize::from(!wrong.is_empty());
        if !wrong.is_empty() {
            told.push(format!("{} {:?}: {}", case.kind, case.name, wrong.join(", ")));
        }
    }
    for (kind, counted) in &counts {
        println!("{kind}: {counted:?}");
        assert!(counted.cases >= 40, "{kind} has few cases");
    }
    assert!(told.is_empty(), "{} wrong:\n{}", told.len(), told.join("\n"));
}
