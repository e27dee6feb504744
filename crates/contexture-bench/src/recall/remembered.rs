//! How often what is recalled at the words of a person was used by the agent then, and what it costs.
//!
//! The recorded sessions of one project are played in the order of time; those before are the memory of the next. A word is
//! rare if at most five messages of the project had it so far, as in the measure `used` of recordings. Of the rare words in
//! the agent's messages until the person's next ones, those count that were known before, in this conversation or another.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use contexture::item::{Item, Role};
use contexture::personal::{MemoryOwner, PersonalMemory};
use contexture::recall::{Extent, Passage, PassageReader, PastQuery};
use contexture::search::MemoryIndex;
use contexture::store::MemoryStore;
use contexture::tokens::{Estimate, TokenCounter};
use contexture::transcript::Record;
use contexture_cli::failure::Failure;
use contexture_cli::source;
use contexture_measure::record_text::whole_text;

/// What is compared: the percentages of what a person's words are about.
const THRESHOLDS: [u8; 8] = [0, 35, 50, 60, 70, 80, 90, 100];
/// A word in more messages than this is not rare.
const MAX_RARE_MESSAGES: u32 = 5;
/// The smallest number of bytes of a word that counts.
const MIN_WORD_BYTES: usize = 6;
/// Messages of the agent after a person's words that are looked at.
const MAX_NEXT: usize = 12;
/// What is added at most.
const BUDGET: u64 = 1_000;
/// What the providers bill: writing a token to the cache, and reading one.
const PRICES: (f64, f64) = (1.25, 0.1);

/// What a threshold gives.
#[derive(Clone, Debug, Default)]
struct ThresholdSums {
    added: usize,
    tokens: u64,
    /// How often a rare word of what was added, which the conversation did not have, was used next.
    hits: usize,
    /// The same with what was recalled for other words of the project: chance.
    chance: usize,
    cost: f64,
    /// Rare words that were used where something was added, those that the conversation had, and those that it would have
    /// had.
    used: [usize; 3],
}

/// The measure.
#[derive(Clone, Debug, Default)]
pub struct RememberedResult {
    sessions: usize,
    /// How often a person said something.
    asked: usize,
    /// What the sessions cost without memory.
    cost: f64,
    sums: [ThresholdSums; THRESHOLDS.len()],
}

/// Measures recordings: those whose file names begin alike, up to `__`, are of one project.
///
/// # Errors
/// There are none, or the index failed.
pub async fn measure(paths: &[PathBuf], most_sessions: usize) -> Result<RememberedResult, Failure> {
    let mut projects: BTreeMap<String, Vec<(u64, Vec<Record>)>> = BTreeMap::new();
    for source in source::find(paths)? {
        let Ok((transcript, _)) = source.transcript() else { continue };
        let name = source.short.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let project = name.split("__").next().unwrap_or_default().to_owned();
        let sessions = projects.entry(project).or_default();
        let time = transcript.records.iter().find_map(Record::time_ms).unwrap_or(sessions.len() as u64);
        sessions.push((time, transcript.records));
    }
    let mut measure = RememberedResult::default();
    for mut sessions in projects.into_values() {
        sessions.sort_by_key(|(time, _)| *time);
        let mut project = Project::new();
        for (_, records) in sessions.into_iter().take(most_sessions) {
            project.play(&records, &mut measure).await.map_err(|error| Failure::work(error.to_string()))?;
        }
    }
    Ok(measure)
}

/// A project as it is after some sessions.
struct Project {
    memory: PersonalMemory,
    owner: MemoryOwner,
    /// How many messages had each word.
    messages_with: HashMap<String, u32>,
    sessions: usize,
    /// The words of what was recalled last in another session.
    other: HashSet<String>,
}

/// What was recalled at a person's words, until it is known what was used.
struct RecalledPassages {
    words: HashSet<String>,
    covers: u8,
    tokens: u64,
    /// The messages of the agent that were looked at.
    next: usize,
    /// What the conversation had when the person spoke.
    known: HashSet<String>,
    used: [usize; 3],
    is_hit: bool,
    is_chance: bool,
}

impl Project {
    fn new() -> Self {
        let memory = PersonalMemory::new(Arc::new(MemoryStore::new()), Arc::new(MemoryIndex::new()));
        let owner = MemoryOwner::Project("measured".to_owned());
        Self { memory, owner, messages_with: HashMap::new(), sessions: 0, other: HashSet::new() }
    }

    async fn play(
        &mut self,
        records: &[Record],
        measure: &mut RememberedResult,
    ) -> Result<(), contexture::error::BoxError> {
        let thread = format!("session-{}", self.sessions);
        self.sessions += 1;
        measure.sessions += 1;
        let mut reader = PassageReader::new(thread, Some("a recording".to_owned()), 0);
        let (mut passages, mut known) = (Vec::new(), HashSet::new());
        let mut recalled: Option<RecalledPassages> = None;
        let (mut sent, mut before, mut in_window) = (0.0, 0.0, [0_u64; THRESHOLDS.len()]);
        let mut newest = HashSet::new();
        for record in records {
            let text = whole_text(record);
            let words = words_of(&text);
            if record.is_response() {
                measure.cost += PRICES.0 * (sent - before) + PRICES.1 * before;
                before = sent;
                for (sums, tokens) in measure.sums.iter_mut().zip(in_window) {
                    sums.cost += PRICES.1 * tokens as f64;
                }
                if let Some(recalled) = recalled.as_mut().filter(|recalled| recalled.next < MAX_NEXT) {
                    self.look(&words, &known, recalled);
                }
            }
            let new: Vec<Passage> = record.items().iter().filter_map(|item| reader.next(item)).collect();
            if let Some(said) = new.iter().find(|_| record.items().iter().any(is_said)) {
                self.note(recalled.take(), measure);
                measure.asked += 1;
                let next = self.recall(&said.text, &known).await?;
                for (sums, (threshold, tokens)) in
                    measure.sums.iter_mut().zip(THRESHOLDS.iter().zip(in_window.iter_mut()))
                {
                    if next.tokens > 0 && next.covers >= *threshold {
                        sums.cost += PRICES.0 * next.tokens as f64;
                        *tokens += next.tokens;
                    }
                }
                newest.clone_from(&next.words);
                recalled = Some(next);
            }
            passages.extend(new);
            sent += Estimate.count(&text) as f64;
            for word in words {
                *self.messages_with.entry(word.clone()).or_default() += 1;
                known.insert(word);
            }
        }
        self.note(recalled, measure);
        if !newest.is_empty() {
            self.other = newest;
        }
        self.memory.past(&self.owner).add(passages).await?;
        Ok(())
    }

    /// Looks at what a message of the agent used.
    fn look(&self, words: &HashSet<String>, known: &HashSet<String>, recalled: &mut RecalledPassages) {
        recalled.next += 1;
        let is_rare =
            |word: &&String| self.messages_with.get(*word).is_some_and(|count| (1..=MAX_RARE_MESSAGES).contains(count));
        for word in words.iter().filter(is_rare) {
            let (had, has) = (known.contains(word), recalled.words.contains(word));
            let counts = [true, had, had || has];
            recalled.used.iter_mut().zip(counts).for_each(|(sum, counts)| *sum += usize::from(counts));
            let is_new = !recalled.known.contains(word);
            recalled.is_hit |= has && is_new;
            recalled.is_chance |= self.other.contains(word) && is_new;
        }
    }

    async fn recall(
        &self,
        text: &str,
        known: &HashSet<String>,
    ) -> Result<RecalledPassages, contexture::error::BoxError> {
        let query = PastQuery {
            text,
            now_ms: 0,
            budget: BUDGET,
            counter: &Estimate,
            extent: Extent::Covering(0),
            visible: None,
        };
        let answer = self.memory.search(std::slice::from_ref(&self.owner), query).await?;
        Ok(RecalledPassages {
            words: words_of(&answer.text),
            covers: (answer.found.covers * 100.0) as u8,
            tokens: answer.tokens,
            next: 0,
            known: known.clone(),
            used: [0; 3],
            is_hit: false,
            is_chance: false,
        })
    }

    fn note(&self, recalled: Option<RecalledPassages>, measure: &mut RememberedResult) {
        let Some(recalled) = recalled.filter(|recalled| recalled.tokens > 0) else { return };
        for (sums, threshold) in measure.sums.iter_mut().zip(THRESHOLDS) {
            if recalled.covers >= threshold {
                sums.added += 1;
                sums.tokens += recalled.tokens;
                sums.hits += usize::from(recalled.is_hit);
                sums.chance += usize::from(recalled.is_chance);
                sums.used.iter_mut().zip(recalled.used).for_each(|(sum, used)| *sum += used);
            }
        }
    }
}

fn is_said(item: &Item) -> bool {
    item.as_message().is_some_and(|message| message.role == Role::User && message.meta.origin.is_said())
}

/// The words of a text that may be rare: names, paths, numbers.
fn words_of(text: &str) -> HashSet<String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric() && !"_-./".contains(letter));
    let words = words.map(|word| word.trim_matches(['.', '-', '/'])).filter(|word| word.len() >= MIN_WORD_BYTES);
    words.map(str::to_lowercase).collect()
}

impl RememberedResult {
    /// The measure as a table.
    pub fn text(&self) -> String {
        let mut text = format!(
            "recalled where a person says something: {} times in {} sessions, at most {BUDGET} tokens\n\
             threshold  added  tokens  used next  by chance  rare words used: in the conversation, with memory   cost\n",
            self.asked, self.sessions
        );
        for (threshold, sums) in THRESHOLDS.iter().zip(&self.sums) {
            let share = |part: usize, of: usize| part as f64 / of.max(1) as f64;
            let _ = writeln!(
                text,
                "{threshold:>8}%  {:>5.2}  {:>6.0}  {:>9.2}  {:>9.2}  {:>37.3}, {:>11.3}  {:>+5.1}%",
                share(sums.added, self.asked),
                sums.tokens as f64 / sums.added.max(1) as f64,
                share(sums.hits, sums.added),
                share(sums.chance, sums.added),
                share(sums.used[1], sums.used[0]),
                share(sums.used[2], sums.used[0]),
                100.0 * sums.cost / self.cost.max(1.0)
            );
        }
        text
    }
}
