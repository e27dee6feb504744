//! What the fuzz targets share: recordings made of damaged records, and what must hold of them once they are read.

use std::collections::HashSet;
use std::io::BufReader;

use arbitrary::Arbitrary;
use contexture::transcript::{self, Format, Transcript, write};

/// The most records of a recording.
const MAX_RECORDS: usize = 64;

/// Ids that records share, so that calls and answers meet, repeat and cross.
const IDS: [&str; 6] = ["a", "b", "c", "a~2", "", "é"];

/// One record of a recording.
#[derive(Arbitrary, Debug)]
pub enum Record {
    /// A template of the format, with its gaps filled.
    Filled {
        /// Which template.
        template: u8,
        /// Which ids stand for `$I`, one after the other.
        ids: Vec<u8>,
        /// What stands for `$T`, as text.
        text: String,
        /// What stands for `$V`, as it is.
        raw: String,
        /// Where the record is cut, if it is.
        cut: Option<u16>,
    },
    /// Anything.
    Bytes(Vec<u8>),
}

impl Record {
    fn push_to(&self, templates: &[&str], out: &mut Vec<u8>) {
        match self {
            Record::Bytes(bytes) => out.extend(bytes),
            Record::Filled { template, ids, text, raw, cut } => {
                let text = serde_json::to_string(text).expect("text is JSON");
                let mut record = templates[usize::from(*template) % templates.len()].replace("$T", &text);
                for id in ids.iter().chain(&[0, 1, 2, 3]).take(4) {
                    record = record.replacen("$I", IDS[usize::from(*id) % IDS.len()], 1);
                }
                let record = record.replace("$V", raw);
                let end = cut.map_or(record.len(), |cut| usize::from(cut) % (record.len() + 1));
                out.extend(&record.as_bytes()[..end]);
            }
        }
    }
}

/// How records are laid out.
#[derive(Clone, Copy, Debug)]
pub enum Layout {
    /// One a line.
    Lines,
    /// As a list behind this start.
    List(&'static str),
}

/// A recording of one format: a record that names the format, then any.
pub fn recording(first: &str, templates: &[&str], records: &[Record], layout: Layout) -> Vec<u8> {
    let (start, between, end) = match layout {
        Layout::Lines => ("", "\n", "\n"),
        Layout::List(start) => (start, ",", "]}"),
    };
    let mut out = format!("{start}{first}").into_bytes();
    for record in records.iter().take(MAX_RECORDS) {
        out.extend(between.as_bytes());
        record.push_to(templates, &mut out);
    }
    out.extend(end.as_bytes());
    out
}

/// Reads a recording and checks what must hold: it is known for what it is, calls and answers pair up, how it comes in
/// pieces does not matter, and written in the plain form it reads the same.
pub fn check(recording: &[u8], format: Format) {
    let (transcript, report) = Transcript::read(recording).expect("the first record names the format");
    assert_eq!(report.format, format);
    assert_eq!(report.messages, transcript.records.len() as u64);
    if format != Format::Plain {
        check_pairs(&transcript.records);
    }
    let pieces = Transcript::read(BufReader::with_capacity(7, recording)).expect("the same recording");
    assert_eq!(pieces, (transcript.clone(), report));
    if transcript.records.is_empty() {
        return;
    }
    let mut plain = Vec::new();
    transcript.records.iter().for_each(|record| write(&mut plain, record).expect("memory takes all"));
    let (again, report) = Transcript::read(&plain[..]).expect("the plain form");
    assert_eq!((report.format, report.broken_records), (Format::Plain, 0));
    assert_eq!(again, transcript);
}

/// Every call has an id of its own and exactly one later answer, and every answer a call.
pub fn check_pairs(records: &[transcript::Record]) {
    let (mut seen, mut open) = (HashSet::new(), HashSet::new());
    for record in records {
        for call in record.calls() {
            assert!(seen.insert(&call.call_id), "`{}` is used twice", call.call_id);
            open.insert(&call.call_id);
        }
        if let Some(output) = record.output() {
            let id = &output.call_id;
            assert!(open.remove(id), "`{id}` was not called before, or was answered twice");
        }
    }
    assert!(open.is_empty(), "{open:?} have no answer");
}
