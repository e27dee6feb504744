//! Ranks passages for a question: by their words, their neighbours, their session, speaker and date.

use std::collections::{BTreeMap, HashMap};

use contexture_core::search::Found;
use contexture_text::search::for_each_term;
use foldhash::fast::FixedState;

use super::passage::Passage;
use super::question::Question;
use super::thesaurus::{is_stop_term, related};

/// BM25 over the candidates. What people tell each other at length often matters, so length weighs less there than in
/// the work of an agent.
const K1: f64 = 1.2;
const B: f64 = 0.4;
const B_OF_WORK: f64 = 0.75;
/// A longer passage is not split again; the index's own score stands for it.
const MAX_SPLIT_BYTES: usize = 4 * 1024;
/// What a passage gets of the scores of those next to it, and next but one.
const NEIGHBOURS: [f64; 2] = [0.25, 0.15];
/// What it gets of the mean of the best three of its session.
const SESSION: f64 = 0.2;
/// How much more counts what the person said whom the question names.
const SPEAKER: f64 = 0.5;
/// The longest name of a speaker that is looked for in a text.
const MAX_NAME_BYTES: usize = 24;
/// How much more counts what was said in the days that the question names, or soon after.
const PERIOD: f64 = 0.6;
const DAY_MS: u64 = 86_400_000;
/// People tell of a day for about two weeks.
const TOLD_AFTER_MS: u64 = 14 * DAY_MS;
/// How much more counts a passage that tells a time, if the question asks for one.
const TIME: f64 = 0.15;
/// How much more counts a passage that says something, rather than `Wow!`.
const SUBSTANCE: f64 = 1.0;
const SUBSTANTIAL_BYTES: usize = 120;
/// What a passage that only asks loses; what an agent is asked is what is to be done.
const ASKING: f64 = 0.4;
/// What counts of the score of what a tool returned.
const OF_TOOL: f64 = 0.5;

/// How much of a word a passage covers that has a related one.
const RELATED_CREDIT: f64 = 0.7;

/// A passage with its score.
#[derive(Clone, Debug)]
pub(crate) struct RankedPassage {
    pub(crate) passage: Passage,
    pub(crate) score: f64,
    /// The numbers of the terms that it is about, in order, each with how rare it is among the candidates.
    pub(crate) terms: Vec<(usize, f64)>,
    /// The share of what the question is about that it has words for.
    pub(crate) covers: f64,
}

/// What is known of the index's terms.
pub(crate) struct Rarity<'a> {
    documents: f64,
    frequencies: &'a BTreeMap<String, u64>,
}

impl<'a> Rarity<'a> {
    pub(crate) fn new(found: &'a Found) -> Self {
        Self { documents: found.documents as f64, frequencies: &found.frequencies }
    }

    fn is_known(&self, term: &str) -> bool {
        self.frequencies.contains_key(term)
    }

    fn of(&self, term: &str) -> f64 {
        let having = self.frequencies.get(term).copied().unwrap_or(0) as f64;
        ((self.documents - having + 0.5) / (having + 0.5)).ln_1p()
    }
}

/// Ranks passages, best first. `similar` says how similar passages are to the question by their meaning, if that is known.
pub(crate) fn rank(
    question: &Question,
    found: &Found,
    passages: Vec<(Passage, f64)>,
    similar: &HashMap<String, f64>,
) -> Vec<RankedPassage> {
    let rarity = Rarity::new(found);
    let mut ranked = by_words(question, &rarity, passages);
    add_similarity(&mut ranked, similar);
    for ranked in &mut ranked {
        ranked.score *= of_speaker_and_time(question, &ranked.passage);
    }
    add_surroundings(&mut ranked);
    for ranked in &mut ranked {
        let text = ranked.passage.text.trim_end();
        let substance = text.len().min(SUBSTANTIAL_BYTES) as f64 / SUBSTANTIAL_BYTES as f64;
        ranked.score *= 1.0 + SUBSTANCE * substance;
        if ranked.passage.is_of_tool() {
            ranked.score *= OF_TOOL;
        }
        if text.ends_with(['?', '？']) && !ranked.passage.is_of_work() {
            ranked.score *= 1.0 - ASKING;
        }
    }
    ranked.sort_by(|one, other| {
        let by_age =
            || (&other.passage.thread, other.passage.position).cmp(&(&one.passage.thread, one.passage.position));
        other.score.total_cmp(&one.score).then_with(by_age)
    });
    ranked
}

/// Scores by the words that passages share with the question.
fn by_words(question: &Question, rarity: &Rarity<'_>, passages: Vec<(Passage, f64)>) -> Vec<RankedPassage> {
    let mut vocabulary = TermNumbers::default();
    // The question's terms come first, so that its tables are short.
    let weights: Vec<f64> = question
        .terms
        .iter()
        .map(|(term, weight)| {
            vocabulary.number(term);
            weight * rarity.of(term)
        })
        .collect();
    // What no passage has weighs half: it cannot be found in these words.
    let worth = |term: &str| if rarity.is_known(term) { rarity.of(term) } else { rarity.of(term) / 2.0 };
    let content: Vec<(f64, usize, Vec<usize>)> = question
        .content
        .iter()
        .map(|term| {
            let related = related(term).iter().map(|other| vocabulary.number(other)).collect();
            (worth(term), vocabulary.number(term), related)
        })
        .collect();
    let asked: f64 = content.iter().map(|(worth, ..)| worth).sum();
    let split: Vec<_> = passages.iter().map(|(passage, _)| Split::new(passage, &mut vocabulary)).collect();
    let lengths = split.iter().flatten().map(|split| split.length as f64);
    let average = (lengths.sum::<f64>() / split.iter().flatten().count().max(1) as f64).max(1.0);
    // The last passage, counted from 1, that has a term.
    let mut last_with = vec![0; vocabulary.len()];
    let scored = passages.into_iter().zip(&split).zip(1..).map(|(((passage, found_score), split), number)| {
        let Some(split) = split else {
            return RankedPassage { passage, score: found_score, terms: Vec::new(), covers: 0.5 };
        };
        let b = if passage.is_of_work() { B_OF_WORK } else { B };
        let held_back = K1 * (1.0 - b + b * split.length as f64 / average);
        let mut score = 0.0;
        for (term, count) in &split.counts {
            last_with[*term] = number;
            let weight = weights.get(*term).copied().unwrap_or_default();
            score += weight * count * (K1 + 1.0) / (count + held_back);
        }
        let has = |term: usize| last_with[term] == number;
        let credit = |term: usize, related: &[usize]| match has(term) {
            true => 1.0,
            false if related.iter().any(|other| has(*other)) => RELATED_CREDIT,
            false => 0.0,
        };
        let has: f64 = content.iter().map(|(worth, term, related)| worth * credit(*term, related)).sum();
        RankedPassage { passage, score, terms: Vec::new(), covers: if asked > 0.0 { has / asked } else { 0.0 } }
    });
    let mut ranked: Vec<RankedPassage> = scored.collect();
    add_terms(&mut ranked, split, &vocabulary);
    ranked
}

/// Numbers for terms, so that passages are compared by numbers.
#[derive(Default)]
struct TermNumbers {
    numbers: HashMap<String, usize, FixedState>,
    is_stop: Vec<bool>,
}

impl TermNumbers {
    fn number(&mut self, term: &str) -> usize {
        if let Some(number) = self.numbers.get(term) {
            return *number;
        }
        let number = self.is_stop.len();
        self.numbers.insert(term.to_owned(), number);
        self.is_stop.push(is_stop_term(term));
        number
    }

    fn len(&self) -> usize {
        self.is_stop.len()
    }
}

/// The terms of a passage.
struct Split {
    /// With its speaker and month, and how often each occurs; in order.
    counts: Vec<(usize, f64)>,
    /// How many there are.
    length: usize,
    /// What it is about: those of its text without function words, in order.
    about: Vec<usize>,
}

impl Split {
    /// `None` for a long passage.
    fn new(passage: &Passage, vocabulary: &mut TermNumbers) -> Option<Self> {
        if passage.text.len() > MAX_SPLIT_BYTES {
            return None;
        }
        let mut all = Vec::new();
        for_each_term(&passage.heading(), |term| all.push(vocabulary.number(term)));
        let heading = all.len();
        for_each_term(&passage.text, |term| all.push(vocabulary.number(term)));
        let mut about: Vec<usize> = all[heading..].iter().copied().filter(|term| !vocabulary.is_stop[*term]).collect();
        about.sort_unstable();
        about.dedup();
        all.sort_unstable();
        let counts = all.chunk_by(|one, other| one == other).map(|same| (same[0], same.len() as f64)).collect();
        Some(Self { counts, length: all.len(), about })
    }
}

/// Adds what passages are about.
fn add_terms(ranked: &mut [RankedPassage], split: Vec<Option<Split>>, vocabulary: &TermNumbers) {
    let mut having = vec![0_u32; vocabulary.len()];
    for term in split.iter().flatten().flat_map(|split| &split.about) {
        having[*term] += 1;
    }
    let all = ranked.len() as f64;
    for (ranked, split) in ranked.iter_mut().zip(split) {
        let about = split.map(|split| split.about).unwrap_or_default();
        ranked.terms = about.into_iter().map(|term| (term, (all / f64::from(having[term])).ln_1p())).collect();
    }
}

/// Adds how similar passages are by their meaning, at the scale of the best score by words.
///
/// The two are added as scores and not by rank: the best of a list counts for as much as it fits, so that a list in which
/// nothing fits adds little, and what covers too little of a question can still be told from what answers it.
fn add_similarity(ranked: &mut [RankedPassage], similar: &HashMap<String, f64>) {
    if similar.is_empty() {
        return;
    }
    let best = ranked.iter().map(|ranked| ranked.score).fold(1.0, f64::max);
    for ranked in ranked {
        let similarity = similar.get(&ranked.passage.key()).copied().unwrap_or(0.0).max(0.0);
        ranked.score += best * similarity;
        ranked.covers = ranked.covers.max(similarity);
    }
}

/// How much more a passage counts for who said it, and when.
fn of_speaker_and_time(question: &Question, passage: &Passage) -> f64 {
    let mut factor = 1.0;
    // Some recordings have the name of the speaker in the text.
    let in_text = passage.text.split_once(": ").map(|(name, _)| name).filter(|name| name.len() <= MAX_NAME_BYTES);
    let named = [passage.speaker.as_str(), in_text.unwrap_or_default()].join(" ").to_lowercase();
    if named.split_whitespace().any(|name| question.words.iter().any(|word| word == name)) {
        factor += SPEAKER;
    }
    if let (Some((from, to)), Some(at)) = (question.period, passage.at_ms)
        && (from..to + TOLD_AFTER_MS).contains(&at)
    {
        factor += PERIOD;
    }
    if question.wants_time && tells_time(&passage.text) {
        factor += TIME;
    }
    factor
}

const TIME_WORDS: &[&str] = &[
    "yesterday",
    "today",
    "tomorrow",
    "tonight",
    "last",
    "next",
    "ago",
    "week",
    "weekend",
    "month",
    "year",
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "january",
    "february",
    "april",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];

fn tells_time(text: &str) -> bool {
    contexture_text::words::words(text).any(|word| TIME_WORDS.iter().any(|time| time.eq_ignore_ascii_case(word)))
}

/// Passages get a part of the scores of those around them, and of their session: an answer often has none of the words of
/// the question before it.
fn add_surroundings(ranked: &mut [RankedPassage]) {
    let session = |passage: &Passage| passage.at_ms.map(|at| at / DAY_MS);
    let mut at: HashMap<(&str, u64), (f64, Option<u64>), FixedState> = HashMap::default();
    let mut sessions: HashMap<(&str, Option<u64>), Vec<f64>, FixedState> = HashMap::default();
    for RankedPassage { passage, score, .. } in ranked.iter() {
        at.insert((&passage.thread, passage.position), (*score, session(passage)));
        sessions.entry((&passage.thread, session(passage))).or_default().push(*score);
    }
    for scores in sessions.values_mut() {
        scores.sort_by(|one, other| other.total_cmp(one));
    }
    let more = ranked.iter().map(|RankedPassage { passage, .. }| {
        let beside = |position: Option<u64>| {
            let found = position.and_then(|position| at.get(&(passage.thread.as_str(), position)));
            found.filter(|(_, other)| *other == session(passage)).map_or(0.0, |(score, _)| *score)
        };
        let mut more = 0.0;
        for (distance, share) in (1..).zip(NEIGHBOURS) {
            more += share
                * (beside(passage.position.checked_sub(distance)) + beside(passage.position.checked_add(distance)));
        }
        let best: f64 = sessions.get(&(passage.thread.as_str(), session(passage))).into_iter().flatten().take(3).sum();
        more + SESSION * best / 3.0
    });
    let more: Vec<f64> = more.collect();
    for (ranked, more) in ranked.iter_mut().zip(more) {
        ranked.score += more;
    }
}

/// Whether `newer` says something else about what `older` is about: the same speaker has most of its words again.
pub(crate) fn is_update(older: &RankedPassage, newer: &RankedPassage) -> bool {
    if older.passage.speaker != newer.passage.speaker || !is_before(&older.passage, &newer.passage) {
        return false;
    }
    let whole: f64 = older.terms.iter().map(|(_, rare)| rare).sum();
    let (mut shared, mut count) = (0.0, 0);
    let mut others = newer.terms.iter().peekable();
    for (term, rare) in &older.terms {
        while others.peek().is_some_and(|(other, _)| other < term) {
            others.next();
        }
        if others.peek().is_some_and(|(other, _)| other == term) {
            (shared, count) = (shared + rare, count + 1);
        }
    }
    count >= 2 && shared >= whole * UPDATE_SHARE
}

/// The share of the words of a statement that its update has again.
const UPDATE_SHARE: f64 = 0.5;

fn is_before(one: &Passage, other: &Passage) -> bool {
    match one.thread == other.thread {
        true => one.position < other.position,
        false => one.at_ms < other.at_ms,
    }
}
