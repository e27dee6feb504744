//! Judges the content of a store: what is damaged, record by record.

use std::collections::{BTreeMap, BTreeSet};

use contexture_core::decision::Decision;
use contexture_core::item::Item;
use contexture_text::search::count_terms;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The format of the records of threads and of states.
const FORMAT: u64 = 1;

/// Most findings that are kept; the others are counted.
const MAX_FINDINGS: usize = 1_000;

/// Something that is wrong in a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// What it concerns: a key, a thread, a document of the search index, or the file.
    pub subject: String,
    /// What is wrong with it.
    pub problem: String,
}

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Checked {
    /// Records.
    pub records: u64,
    /// Bytes of their keys and values.
    pub bytes: u64,
    /// Threads.
    pub threads: u64,
    /// Documents of the search index.
    pub documents: u64,
    /// What is wrong: the first 1 000.
    pub findings: Vec<Finding>,
    /// How many more there are.
    pub more: u64,
}

/// What is known of a thread while its records are read.
#[derive(Default)]
struct ThreadCheck {
    head: Option<Size>,
    /// Why the head cannot be read; it is reported already.
    is_unreadable: bool,
    items: u64,
    log: BTreeSet<u64>,
    decisions: BTreeSet<u64>,
}

/// The size of a thread by its head.
#[derive(Deserialize)]
struct Size {
    items: u64,
    records: u64,
    decisions: u64,
}

/// A document of a search index, as it is stored.
pub(super) struct StoredDocument {
    pub(super) scope: String,
    pub(super) id: Vec<u8>,
    pub(super) text: Vec<u8>,
    pub(super) metadata: Vec<u8>,
    pub(super) length: i64,
    /// Its terms with their counts.
    pub(super) postings: BTreeMap<Vec<u8>, i64>,
}

/// Collects what is wrong.
#[derive(Default)]
pub(super) struct StoreJudge {
    checked: Checked,
    threads: BTreeMap<String, ThreadCheck>,
    /// Documents and terms of each scope, by its name.
    scopes: BTreeMap<String, (i64, i64)>,
}

impl StoreJudge {
    /// Notes that something is wrong.
    pub(super) fn found(&mut self, subject: impl Into<String>, problem: impl Into<String>) {
        if self.checked.findings.len() < MAX_FINDINGS {
            self.checked.findings.push(Finding { subject: subject.into(), problem: problem.into() });
        } else {
            self.checked.more += 1;
        }
    }

    /// How many records were judged so far.
    pub(super) fn records(&self) -> u64 {
        self.checked.records
    }

    /// Judges a record.
    pub(super) fn record(&mut self, key: &[u8], value: &[u8]) {
        self.checked.records += 1;
        self.checked.bytes += (key.len() + value.len()) as u64;
        let Ok(key) = std::str::from_utf8(key) else {
            return self.found(String::from_utf8_lossy(key), "its key is not text");
        };
        let parts: Vec<&str> = key.split('/').collect();
        match parts.as_slice() {
            ["threads", thread, part @ ..] => self.thread_record(key, thread, part, value),
            ["layers", .., "state"] => {
                self.formatted(key, value);
            }
            ["copy", "unfinished"] => self.found(key, "this store is a copy that was not finished"),
            // Everything else belongs to layers and gateways, who know what it means.
            _ => {}
        }
    }

    fn thread_record(&mut self, key: &str, thread: &str, part: &[&str], value: &[u8]) {
        let record = self.formatted(key, value);
        let known = self.threads.entry(thread.to_owned()).or_default();
        let problem = match (part, record) {
            (["head"], Some(record)) => match Size::deserialize(&record["last"]) {
                Ok(size) => {
                    known.head = Some(size);
                    None
                }
                Err(error) => {
                    known.is_unreadable = true;
                    Some(format!("the size of the thread cannot be read: {error}"))
                }
            },
            (["head"], None) => {
                known.is_unreadable = true;
                None
            }
            (["log", number], record) => match (number.parse(), record) {
                (Err(_), _) => Some("its key has no number".to_owned()),
                (Ok(number), record) => {
                    known.log.insert(number);
                    record.and_then(|record| match Vec::<Item>::deserialize(&record["items"]) {
                        Ok(items) => {
                            known.items += items.len() as u64;
                            None
                        }
                        Err(error) => Some(format!("its items cannot be read: {error}")),
                    })
                }
            },
            (["decisions", number], record) => match (number.parse(), record) {
                (Err(_), _) => Some("its key has no number".to_owned()),
                (Ok(number), record) => {
                    known.decisions.insert(number);
                    let read = record.map(|record| Decision::deserialize(&record["decision"]));
                    read.and_then(Result::err).map(|error| format!("it is not a decision: {error}"))
                }
            },
            (["epoch"] | ["turns", _], _) => None,
            _ => Some("no record of a thread has such a key".to_owned()),
        };
        if let Some(problem) = problem {
            self.found(key, problem);
        }
    }

    /// The record as JSON, if it has a known format.
    fn formatted(&mut self, key: &str, value: &[u8]) -> Option<Value> {
        let read: Result<Value, _> = serde_json::from_slice(value);
        match read {
            Err(error) => self.found(key, format!("its value is not JSON: {error}")),
            Ok(record) => match record["format"].as_u64() {
                Some(FORMAT) => return Some(record),
                Some(newer) if newer > FORMAT => self.found(key, format!("it has format {newer}, which is newer")),
                _ => self.found(key, "its value has no format"),
            },
        }
        None
    }

    /// Judges a document of the search index. `splits_alike` says whether its terms were made by this version.
    pub(super) fn document(&mut self, document: &StoredDocument, splits_alike: bool) {
        self.checked.documents += 1;
        let StoredDocument { scope, id, text, metadata, length, postings } = document;
        let subject = format!("document `{}` of `{scope}` in the search index", String::from_utf8_lossy(id));
        let total = self.scopes.entry(scope.clone()).or_default();
        *total = (total.0 + 1, total.1 + length);
        let Ok(text) = std::str::from_utf8(text) else { return self.found(subject, "its text is not UTF-8") };
        if std::str::from_utf8(id).is_err() {
            self.found(&subject, "its id is not UTF-8");
        }
        if serde_json::from_slice::<Value>(metadata).is_err() {
            self.found(&subject, "its metadata is not JSON");
        }
        if !splits_alike {
            return;
        }
        let (counts, expected) = count_terms(text);
        let is_same = counts.len() == postings.len()
            && counts.iter().all(|(term, count)| postings.get(term.as_bytes()) == Some(&i64::from(*count)));
        if !is_same || i64::from(expected) != *length {
            self.found(subject, "its terms are not those of its text");
        }
    }

    /// Judges the totals of a scope, after all its documents.
    pub(super) fn scope(&mut self, name: &[u8], documents: i64, length: i64, splits_alike: bool) {
        let Ok(name) = std::str::from_utf8(name) else {
            return self.found(String::from_utf8_lossy(name), "a scope of the search index is not text");
        };
        let (found, found_length) = self.scopes.remove(name).unwrap_or_default();
        let subject = format!("scope `{name}` of the search index");
        if found != documents {
            self.found(subject, format!("it has {found} documents and says {documents}"));
        } else if splits_alike && found_length != length {
            self.found(subject, format!("its documents have {found_length} terms and it says {length}"));
        }
    }

    /// What was found.
    pub(super) fn finish(mut self) -> Checked {
        let threads = std::mem::take(&mut self.threads);
        self.checked.threads = threads.len() as u64;
        for (name, thread) in threads {
            let subject = format!("threads/{name}/");
            let Some(head) = thread.head else {
                if !thread.is_unreadable {
                    self.found(subject, "the thread has records and no head");
                }
                continue;
            };
            let is_whole = |found: &BTreeSet<u64>, count: u64| {
                found.len() as u64 == count && found.last().is_none_or(|last| *last + 1 == count)
            };
            let missing = |found: &BTreeSet<u64>, count: u64| (0..count).find(|number| !found.contains(number));
            let parts = [("log", &thread.log, head.records), ("decisions", &thread.decisions, head.decisions)];
            for (part, found, count) in parts {
                if let Some(number) = missing(found, count) {
                    self.found(format!("{subject}{part}/{number:020}"), "the record is missing");
                } else if !is_whole(found, count) {
                    self.found(
                        format!("{subject}{part}/"),
                        format!("there are records beyond the {count} of the head"),
                    );
                }
            }
            if is_whole(&thread.log, head.records) && thread.items != head.items {
                let (found, said) = (thread.items, head.items);
                self.found(format!("{subject}log/"), format!("the log has {found} items and the head says {said}"));
            }
        }
        for (scope, _) in std::mem::take(&mut self.scopes) {
            self.found(format!("scope `{scope}` of the search index"), "it has documents and no totals");
        }
        self.checked
    }
}
