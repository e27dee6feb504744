//! Questions about recorded sessions of coding agents, each with the message that has the answer.
//!
//! `data/coding.tsv` has the name of a recording, the number of a message in it from 0 on, and a question. The recordings
//! are not here: they are read from a directory. Rows with odd numbers are never looked at one by one: what was tuned on
//! the others is judged by them.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use contexture::bpe::Bpe;
use contexture::recall::{Extent, PassageReader, PastIndex, PastQuery};
use contexture::search::{MemoryIndex, SearchError};
use contexture_cli::failure::Failure;
use contexture_cli::source;

const PAIRS: &str = include_str!("../../data/coding.tsv");
/// The most tokens of a result.
const BUDGET: u64 = 2_000;
/// How many passages are looked at first.
const FIRST: usize = 5;
/// Recordings without times are taken for one a day, in the order of their names.
const BETWEEN_MS: u64 = 86_400_000;
const START_MS: u64 = 1_735_689_600_000;

/// What was found of the questions of one half.
#[derive(Clone, Copy, Debug, Default)]
struct FoundPairs {
    asked: usize,
    first: usize,
    within: usize,
}

/// The measure.
#[derive(Clone, Debug, Default)]
pub struct CodingResult {
    passages: usize,
    /// The half for tuning, and the other one.
    halves: [FoundPairs; 2],
    /// Questions of the half for tuning that were not found.
    missed: Vec<String>,
}

/// Asks all questions whose recordings are there, in the memory of all recordings.
///
/// # Errors
/// There are none, or the index failed.
pub async fn measure(paths: &[PathBuf]) -> Result<CodingResult, Failure> {
    let failed = |error: SearchError| Failure::work(error.to_string());
    let past = PastIndex::new(Arc::new(MemoryIndex::new()), "resource:someone");
    let mut measure = CodingResult::default();
    let mut positions: HashMap<(String, usize), u64> = HashMap::new();
    let mut now_ms = START_MS;
    for source in source::find(paths)? {
        let name = source.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut reader = PassageReader::new(name.as_str(), None, now_ms);
        let (mut passages, mut number) = (Vec::new(), 0);
        let read = source.read(&mut |record| {
            for item in record.into_items() {
                let passage = reader.next(&item);
                if let Some(passage) = &passage {
                    positions.entry((name.clone(), number)).or_insert(passage.position);
                }
                passages.extend(passage);
            }
            number += 1;
        });
        if read.is_ok() {
            measure.passages += past.add(passages).await.map_err(failed)?;
            now_ms += BETWEEN_MS;
        }
    }
    let counter = Bpe::o200k();
    for (row, line) in PAIRS.lines().enumerate() {
        let mut fields = line.splitn(3, '\t');
        let (Some(name), Some(number), Some(text)) = (fields.next(), fields.next(), fields.next()) else { continue };
        let number = number.parse().unwrap_or(usize::MAX);
        let Some(position) = positions.get(&(name.to_owned(), number)) else { continue };
        let query = PastQuery { text, now_ms, budget: BUDGET, counter: &counter, extent: Extent::Full, visible: None };
        let found = past.search(query).await.map_err(failed)?;
        let is_it = |passage: &contexture::recall::Passage| passage.thread == name && passage.position == *position;
        let at = found.shown.iter().position(|shown| is_it(&shown.passage));
        let half = &mut measure.halves[row % 2];
        half.asked += 1;
        half.within += usize::from(at.is_some());
        half.first += usize::from(at.is_some_and(|at| at < FIRST));
        if at.is_none() && row % 2 == 0 {
            measure.missed.push(text.to_owned());
        }
    }
    Ok(measure)
}

impl CodingResult {
    /// The measure as lines.
    pub fn text(&self, with_missed: bool) -> String {
        let mut text = format!("questions about recorded sessions, {} passages\n", self.passages);
        for (name, half) in ["tuned on", "held back"].into_iter().zip(&self.halves) {
            let FoundPairs { asked, first, within } = half;
            let _ = writeln!(
                text,
                "  {name:<14} of {asked}: {first} among the first {FIRST}, {within} within {BUDGET} tokens"
            );
        }
        for question in self.missed.iter().filter(|_| with_missed) {
            let _ = writeln!(text, "    {question}");
        }
        text
    }
}
