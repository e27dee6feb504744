//! Text, items, files and histories that look like the work of a coding agent.
//!
//! Everything is determined by a seed, byte for byte, on every machine.

use contexture_measure::random::Rng;
use std::collections::HashSet;

use contexture::Item;
use contexture::item::{FunctionCall, Role};
use contexture::transcript::{Record, Transcript};
use serde_json::json;

/// The size in bytes of a file that is read in a [`history`].
pub const READ_BYTES: usize = 8192;

/// How many files the agent of a [`history`] works on.
const HISTORY_FILES: usize = 200;

/// The size in bytes of an item of [`items`], including names.
const ITEM_BYTES: usize = 400;

const VERBS: [&str; 24] = [
    "weigh", "sort", "ship", "open", "seal", "mend", "count", "label", "stack", "trace", "fetch", "store", "check",
    "merge", "split", "route", "claim", "defer", "audit", "quote", "bind", "lift", "scan", "clear",
];

const NOUNS: [&str; 28] = [
    "parcel", "crate", "ledger", "harbour", "invoice", "pallet", "tariff", "carrier", "manifest", "berth", "cargo",
    "depot", "driver", "folio", "gauge", "hatch", "index", "journal", "keeper", "lantern", "margin", "notice", "order",
    "permit", "quota", "record", "signal", "voyage",
];

const ADJECTIVES: [&str; 16] = [
    "early", "late", "sealed", "open", "fragile", "heavy", "local", "foreign", "paid", "overdue", "empty", "full",
    "damp", "spare", "final", "rough",
];

const TYPES: [&str; 10] =
    ["u64", "String", "bool", "Vec<Parcel>", "Option<Ledger>", "&str", "Result<(), Error>", "usize", "Duration", "f64"];

const WORDS: [&str; 60] = [
    "the", "crane", "stops", "whenever", "a", "load", "is", "heavier", "than", "its", "permit", "allows", "so",
    "someone", "has", "to", "sign", "for", "it", "before", "noon", "and", "write", "down", "which", "ship", "was",
    "waiting", "because", "else", "nobody", "can", "say", "later", "why", "two", "of", "them", "left", "harbour", "in",
    "wrong", "order", "while", "third", "still", "had", "no", "papers", "at", "all", "we", "should", "also", "test",
    "what", "happens", "if", "both", "arrive",
];

/// English-like text of exactly `bytes` bytes, in ASCII.
pub fn prose(rng: &mut Rng, bytes: usize) -> String {
    let (mut text, mut begins) = (String::new(), true);
    while text.len() < bytes {
        let word = rng.pick(&WORDS);
        if begins {
            text.push_str(&capitalised(word));
        } else {
            text.push_str(word);
        }
        begins = rng.chance(8);
        text.push_str(if begins { ". " } else { " " });
    }
    text.truncate(bytes);
    text
}

/// Code-like text of exactly `bytes` bytes, in ASCII.
pub fn code(rng: &mut Rng, bytes: usize) -> String {
    let mut text = String::new();
    while text.len() < bytes {
        declaration(rng, &mut text);
    }
    text.truncate(bytes);
    text
}

/// Files of one size, each as a path and its text.
pub fn files(count: usize, bytes: usize, seed: u64) -> Vec<(String, String)> {
    (0..count)
        .map(|n| (format!("src/area{:02}/file_{n:04}.rs", n % 20), code(&mut Rng::new(seed + n as u64), bytes)))
        .collect()
}

/// Items of about 400 bytes each, in cycles of four: user, assistant, call, output.
pub fn items(count: usize, seed: u64) -> impl Iterator<Item = Item> {
    let mut rng = Rng::new(seed);
    (0..count).map(move |n| {
        let call_id = format!("call_{:08}", n / 4);
        match n % 4 {
            0 => Item::user(prose(&mut rng, ITEM_BYTES - 70)),
            1 => Item::assistant(prose(&mut rng, ITEM_BYTES - 75)),
            2 => Item::call(&call_id, "read_file", read_arguments(&mut rng, ITEM_BYTES - 140)),
            _ => Item::output(&call_id, code(&mut rng, ITEM_BYTES - 80)),
        }
    })
}

fn read_arguments(rng: &mut Rng, reason_bytes: usize) -> String {
    let path = path(rng, 0);
    json!({ "path": path, "reason": prose(rng, reason_bytes) }).to_string()
}

/// A recorded conversation of `count` messages, about half of them file reads of [`READ_BYTES`].
///
/// In every round the user asks for something, the agent reads eight files in three steps, searches or runs the tests,
/// edits one of the files, and reports. It returns to ten preferred files more often than to others, and finds its
/// edits when it does.
pub fn history(count: usize, seed: u64) -> Transcript {
    let mut rng = Rng::new(seed);
    let files = (0..HISTORY_FILES).map(|n| (path(&mut rng, n), code(&mut rng, READ_BYTES))).collect();
    let mut recorder = Recorder { rng, files, favourites: Vec::new(), calls: 0, records: Vec::new() };
    let system = format!("You are a careful programmer. {}", prose(&mut recorder.rng, 1500));
    recorder.say(Role::System, system);
    while recorder.records.len() < count {
        recorder.round();
    }
    recorder.records.truncate(count);
    Transcript { records: recorder.records }
}

/// The records that are outputs of file reads.
pub fn reads(records: &[Record]) -> impl Iterator<Item = &Record> {
    let calls = records.iter().flat_map(Record::calls).filter(|call| &*call.name == "read_file");
    let ids: HashSet<&str> = calls.map(|call| &*call.call_id).collect();
    records.iter().filter(move |record| record.output().is_some_and(|output| ids.contains(&*output.call_id)))
}

/// Writes a history, round by round.
struct Recorder {
    rng: Rng,
    files: Vec<(String, String)>,
    favourites: Vec<usize>,
    calls: usize,
    records: Vec<Record>,
}

impl Recorder {
    fn round(&mut self) {
        if self.favourites.is_empty() || self.rng.chance(10) {
            self.favourites = (0..10).map(|_| self.rng.below(self.files.len())).collect();
        }
        let chosen: Vec<usize> = (0..8).map(|_| self.choose()).collect();
        let bytes = 120 + self.rng.below(300);
        let request = format!("{} Begin with #{}.", prose(&mut self.rng, bytes), self.files[chosen[0]].0);
        self.say(Role::User, request);
        self.read(&chosen[..3]);
        self.read(&chosen[3..6]);
        self.read(&chosen[6..]);
        self.search_or_test(chosen[6]);
        let edited = self.rng.pick(&chosen);
        self.edit(edited);
        let bytes = 200 + self.rng.below(500);
        let report = prose(&mut self.rng, bytes);
        self.say(Role::Assistant, report);
    }

    fn choose(&mut self) -> usize {
        if self.rng.chance(60) { self.rng.pick(&self.favourites) } else { self.rng.below(self.files.len()) }
    }

    fn say(&mut self, role: Role, text: String) {
        self.records.push(Item::message(role, text).into());
    }

    /// One response with these calls, and their outputs.
    fn call(&mut self, calls: Vec<(&str, serde_json::Value, String)>) {
        let bytes = 60 + self.rng.below(120);
        let text = prose(&mut self.rng, bytes);
        let (mut made, mut outputs) = (Vec::new(), Vec::new());
        for (name, arguments, output) in calls {
            self.calls += 1;
            let id = format!("call_{:08}", self.calls);
            outputs.push(Record::from(Item::output(&id, output)));
            made.push(FunctionCall::new(&id, name, arguments.to_string()));
        }
        self.records.push(Record::response(text, made));
        self.records.extend(outputs);
    }

    fn read(&mut self, chosen: &[usize]) {
        let read = |n: &usize| ("read_file", json!({ "path": self.files[*n].0 }), self.files[*n].1.clone());
        let calls = chosen.iter().map(read).collect();
        self.call(calls);
    }

    fn search_or_test(&mut self, file: usize) {
        let rng = &mut self.rng;
        let call = if rng.chance(50) {
            let found = |_| {
                let (path, text) = &self.files[rng.below(self.files.len())];
                let number = rng.below(200);
                format!("{path}:{number}: {}\n", text.lines().nth(number).unwrap_or_default())
            };
            let answer = (0..20).map(found).collect();
            ("search_files", json!({ "query": self.rng.pick(&NOUNS) }), answer)
        } else {
            let mut answer: String = (0..30).map(|n| format!("test {n} ... ok: {}\n", prose(rng, 40))).collect();
            answer += if rng.chance(30) { "1 failed: the ledger does not add up\n" } else { "all passed\n" };
            ("execute_bash", json!({ "command": format!("cargo test {}", self.files[file].0) }), answer)
        };
        self.call(vec![call]);
    }

    fn edit(&mut self, file: usize) {
        let new = format!("    let {} = {}; // changed", identifier(&mut self.rng), self.rng.below(100_000));
        let (path, text) = &mut self.files[file];
        let number = self.rng.below(text.lines().count());
        let old = text.lines().nth(number).unwrap_or_default().to_owned();
        let lines: Vec<&str> =
            text.lines().enumerate().map(|(n, line)| if n == number { &new } else { line }).collect();
        *text = lines.join("\n");
        let answer = format!("Replaced 1 occurrence in {path} (line {}).", number + 1);
        let arguments = json!({ "path": path, "old_string": old, "new_string": new });
        self.call(vec![("edit_file", arguments, answer)]);
    }
}

fn path(rng: &mut Rng, number: usize) -> String {
    format!("src/{}/{}_{}_{number}.rs", rng.pick(&NOUNS), rng.pick(&ADJECTIVES), rng.pick(&NOUNS))
}

fn identifier(rng: &mut Rng) -> String {
    match rng.below(4) {
        0 => format!("{}_{}", rng.pick(&VERBS), rng.pick(&NOUNS)),
        1 => format!("{}_{}", rng.pick(&ADJECTIVES), rng.pick(&NOUNS)),
        2 => format!("{}_{}_{}", rng.pick(&VERBS), rng.pick(&ADJECTIVES), rng.pick(&NOUNS)),
        _ => rng.pick(&NOUNS).into(),
    }
}

fn type_name(rng: &mut Rng) -> String {
    capitalised(rng.pick(&ADJECTIVES)) + &capitalised(rng.pick(&NOUNS))
}

fn capitalised(word: &str) -> String {
    let (first, rest) = word.split_at(1);
    first.to_uppercase() + rest
}

/// Writes one declaration and an empty line.
fn declaration(rng: &mut Rng, out: &mut String) {
    match rng.below(5) {
        0 => line(out, 0, &format!("use crate::{}::{{{}, {}}};", rng.pick(&NOUNS), type_name(rng), identifier(rng))),
        1 => structure(rng, out),
        2 => {
            let name = identifier(rng).to_uppercase();
            line(out, 0, &format!("pub const {name}: u64 = {};", rng.below(10_000)));
        }
        _ => function(rng, out),
    }
    out.push('\n');
}

fn structure(rng: &mut Rng, out: &mut String) {
    comment(rng, out, 0, "///");
    line(out, 0, "#[derive(Clone, Debug, PartialEq)]");
    line(out, 0, &format!("pub struct {} {{", type_name(rng)));
    for _ in 0..2 + rng.below(5) {
        line(out, 1, &format!("pub {}: {},", identifier(rng), rng.pick(&TYPES)));
    }
    line(out, 0, "}");
}

fn function(rng: &mut Rng, out: &mut String) {
    comment(rng, out, 0, "///");
    let (name, argument) = (identifier(rng), rng.pick(&NOUNS));
    line(out, 0, &format!("pub fn {name}({argument}: {}, limit: u64) -> {} {{", rng.pick(&TYPES), rng.pick(&TYPES)));
    for _ in 0..3 + rng.below(9) {
        statement(rng, out);
    }
    line(out, 1, &identifier(rng));
    line(out, 0, "}");
}

fn statement(rng: &mut Rng, out: &mut String) {
    let (noun, name) = (rng.pick(&NOUNS), identifier(rng));
    match rng.below(5) {
        0 => line(out, 1, &format!("let {name} = self.{noun}.{}({noun}, {})?;", identifier(rng), rng.below(512))),
        1 => {
            line(out, 1, &format!("if {noun}.{name} == 0 || {noun}.len() > {} {{", rng.below(100)));
            line(out, 2, &format!("return Err(Error::new(\"cannot {} the {noun}\"));", rng.pick(&VERBS)));
            line(out, 1, "}");
        }
        2 => line(
            out,
            1,
            &format!("let {name}: Vec<_> = {noun}s.iter().map(|x| x.{noun} + {}).collect();", rng.below(64)),
        ),
        3 => {
            line(out, 1, &format!("for {noun} in {name}.values() {{"));
            line(out, 2, &format!("{noun}s.push({} {{ id: {}, {noun} }});", type_name(rng), rng.below(1000)));
            line(out, 1, "}");
        }
        _ => comment(rng, out, 1, "//"),
    }
}

fn comment(rng: &mut Rng, out: &mut String, indent: usize, mark: &str) {
    let bytes = 25 + rng.below(60);
    line(out, indent, &format!("{mark} {}", prose(rng, bytes).trim_end()));
}

fn line(out: &mut String, indent: usize, text: &str) {
    for _ in 0..indent {
        out.push_str("    ");
    }
    out.push_str(text);
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_bytes_each_time() {
        assert_eq!(code(&mut Rng::new(7), 5000), code(&mut Rng::new(7), 5000));
        assert_ne!(code(&mut Rng::new(7), 5000), code(&mut Rng::new(8), 5000));
        assert_eq!(history(100, 1), history(100, 1));
        assert_eq!(Rng::new(0).number(), 0xE220_A839_7B1D_CDAF);
    }

    #[test]
    fn texts_have_the_length_that_was_asked_for() {
        for bytes in [0, 1, 400, 100_000] {
            assert_eq!(prose(&mut Rng::new(1), bytes).len(), bytes);
            assert_eq!(code(&mut Rng::new(1), bytes).len(), bytes);
        }
    }

    #[test]
    fn items_are_about_400_bytes_and_every_output_has_its_call() {
        let items: Vec<Item> = items(1000, 3).collect();
        for (n, item) in items.iter().enumerate() {
            let bytes = serde_json::to_string(item).unwrap().len();
            assert!((360..=440).contains(&bytes), "item {n} has {bytes} bytes");
        }
        for cycle in items.chunks(4) {
            assert_eq!(cycle[2].as_call().unwrap().call_id, cycle[3].as_output().unwrap().call_id);
        }
    }

    #[test]
    fn half_of_a_history_is_reads() {
        let transcript = history(2000, 42);
        assert_eq!(transcript.records.len(), 2000);
        let reads: Vec<&Record> = reads(&transcript.records).collect();
        assert!((900..=1100).contains(&reads.len()), "{} reads", reads.len());
        assert!(reads.iter().all(|read| read.text().len().abs_diff(READ_BYTES) < 2000));
    }

    #[test]
    fn edits_of_a_history_apply_to_what_was_read() {
        let transcript = history(500, 9);
        let calls = transcript.records.iter().flat_map(Record::calls);
        for edit in calls.filter(|call| &*call.name == "edit_file") {
            let arguments = edit.parsed_arguments();
            let old = arguments["old_string"].as_str().unwrap();
            let mut before = transcript.records.iter().take_while(|record| !record.calls().any(|call| call == edit));
            assert!(before.any(|record| record.text().contains(old)));
        }
    }
}
