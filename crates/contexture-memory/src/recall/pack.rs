//! As many passages as fit into a number of tokens, best first.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};

use contexture_core::LayerId;
use contexture_core::item::Item;
use contexture_core::search::TermWeights;
use contexture_core::tokens::{TokenCounter, count_item};

use super::excerpt::excerpt;
use super::passage::Passage;
use contexture_text::block::{QUOTED, fits, flat, quoted};

const HEADING: &str = "From past conversations, what fits best first. What was said then may have changed since:";

/// How many updates of updates are followed.
const MAX_CHAIN: usize = 8;

/// No line has fewer tokens.
const LEAST_LINE: u64 = 4;

/// So many passages in a row may be too long for the room that is left, before no shorter one is looked for.
const MAX_TOO_LONG: usize = 12;

/// A passage as it is shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// The passage, with its whole text.
    pub passage: Passage,
    /// The part of its text that is shown, on one line.
    pub excerpt: String,
    /// The tokens of its line.
    pub tokens: u64,
    /// How well it matches; comparable only with others of the same query.
    pub score: f64,
}

/// What is shown.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recollection {
    /// The text; empty if nothing was found.
    pub text: String,
    /// Its passages: the best of each conversation first, then the others.
    pub shown: Vec<Shown>,
    /// The tokens of the text as the block of a layer.
    pub tokens: u64,
    /// The share of what the question is about that the passage which covers most of it has words for.
    pub covers: f64,
}

impl Recollection {
    /// Keeps the passages that match best, at most so many.
    pub fn best(mut self, count: usize, counter: &dyn TokenCounter) -> Self {
        if self.shown.len() <= count {
            return self;
        }
        let mut scores: Vec<f64> = self.shown.iter().map(|shown| shown.score).collect();
        scores.sort_by(|one, other| other.total_cmp(one));
        let least = count.checked_sub(1).map_or(f64::INFINITY, |last| scores[last]);
        let mut room = count;
        self.shown.retain(|shown| {
            let is_kept = shown.score >= least && room > 0;
            room -= usize::from(is_kept);
            is_kept
        });
        self.text = render(&self.shown.iter().collect::<Vec<_>>());
        self.tokens = counter.count(&self.text);
        self
    }
}

/// A passage that could be shown. Its excerpt is made when there is room for it.
pub(crate) struct PassageCandidate<'a> {
    passage: Passage,
    score: f64,
    wanted: &'a TermWeights,
    line: OnceCell<(String, u64)>,
}

/// Takes the first `count` candidates in their order, best first, as long as there is room.
///
/// Where `update_of` names a candidate that says something newer, that one is shown too, or neither.
pub(crate) fn pack(
    candidates: Vec<PassageCandidate<'_>>,
    count: usize,
    update_of: impl Fn(usize) -> Option<usize>,
    counter: &dyn TokenCounter,
    layer: &LayerId,
    budget: u64,
) -> Recollection {
    let around =
        count_item(counter, &Item::developer(format!("<memory layer=\"{layer}\">\n{HEADING}\n{QUOTED}\n</memory>")));
    let mut room = budget.saturating_sub(around);
    let mut days: HashSet<(String, Option<String>)> = HashSet::new();
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut is_taken = vec![false; candidates.len()];
    let mut too_long = 0;
    for first in 0..candidates.len().min(count) {
        if room < LEAST_LINE || too_long == MAX_TOO_LONG {
            break;
        }
        if is_taken[first] {
            continue;
        }
        if candidates[first].tokens(counter) > room {
            too_long += 1;
            continue;
        }
        let chain = std::iter::successors(Some(first), |older| update_of(*older));
        let group: Vec<usize> = chain.take(MAX_CHAIN).filter(|at| !is_taken[*at]).collect();
        let new_days: HashSet<_> =
            group.iter().map(|at| candidates[*at].day()).filter(|day| !days.contains(day)).collect();
        let source = |thread: &str| {
            let mut of_thread =
                group.iter().map(|at| &candidates[*at].passage).filter(|passage| passage.thread == thread);
            of_thread.find_map(|passage| passage.source.as_deref())
        };
        let heads: u64 = new_days
            .iter()
            .map(|(thread, day)| counter.count(&head(day.as_deref(), day.as_deref(), source(thread))))
            .sum();
        let lines: u64 = group.iter().map(|at| candidates[*at].tokens(counter)).sum();
        if heads + lines <= room {
            room -= heads + lines;
            days.extend(new_days);
            group.iter().for_each(|at| is_taken[*at] = true);
            groups.push(group);
            too_long = 0;
        } else {
            too_long += 1;
        }
    }
    let mut candidates: Vec<Option<PassageCandidate<'_>>> = candidates.into_iter().map(Some).collect();
    let mut show = |at: usize| {
        let candidate = candidates[at].take()?;
        let (excerpt, tokens) = candidate.line(counter).clone();
        Some(Shown { passage: candidate.passage, excerpt, tokens, score: candidate.score })
    };
    let mut taken: Vec<Vec<Shown>> =
        groups.into_iter().map(|group| group.into_iter().filter_map(&mut show).collect()).collect();
    // Counts of parts do not always add up to the count of the whole.
    loop {
        let shown = in_order(&taken);
        let text = render(&shown);
        if shown.is_empty() || fits(counter, layer, &text, budget) {
            let tokens = if shown.is_empty() { 0 } else { budget_used(counter, layer, &text) };
            let shown = shown.into_iter().cloned().collect();
            return Recollection { text, shown, tokens, covers: 0.0 };
        }
        taken.pop();
    }
}

impl<'a> PassageCandidate<'a> {
    /// A passage with its score, for a question with these terms.
    pub(crate) fn new(passage: Passage, score: f64, wanted: &'a TermWeights) -> Self {
        Self { passage, score, wanted, line: OnceCell::new() }
    }

    fn day(&self) -> (String, Option<String>) {
        (self.passage.thread.clone(), self.passage.day())
    }

    /// Its excerpt, and the tokens of its line.
    fn line(&self, counter: &dyn TokenCounter) -> &(String, u64) {
        self.line.get_or_init(|| {
            let excerpt = excerpt(&self.passage.text, self.wanted);
            let tokens = counter.count(&line(&self.passage, &excerpt));
            (excerpt, tokens)
        })
    }

    fn tokens(&self, counter: &dyn TokenCounter) -> u64 {
        self.line(counter).1
    }
}

fn budget_used(counter: &dyn TokenCounter, layer: &LayerId, text: &str) -> u64 {
    let block = format!("<memory layer=\"{layer}\">\n{}\n</memory>", contexture_core::window::escape_tags(text));
    count_item(counter, &Item::developer(block))
}

/// What is shown, of groups whose best come first: the first group of each conversation, then the others, those of a day
/// of a conversation together and as they were said.
fn in_order(taken: &[Vec<Shown>]) -> Vec<&Shown> {
    let mut met: HashSet<&str> = HashSet::new();
    let (mut first, mut others): (Vec<&Shown>, Vec<&Shown>) = (Vec::new(), Vec::new());
    for group in taken {
        let is_first = group.iter().filter(|shown| met.insert(&shown.passage.thread)).count() > 0;
        let list = if is_first { &mut first } else { &mut others };
        list.extend(group);
    }
    let mut days: HashMap<(&str, Option<String>), usize> = HashMap::new();
    for shown in &others {
        let next = days.len();
        days.entry((&shown.passage.thread, shown.passage.day())).or_insert(next);
    }
    others.sort_by_key(|shown| (days[&(shown.passage.thread.as_str(), shown.passage.day())], shown.passage.position));
    first.into_iter().chain(others).collect()
}

/// The text of passages in their order.
fn render(sorted: &[&Shown]) -> String {
    if sorted.is_empty() {
        return String::new();
    }
    let mut text = HEADING.to_owned();
    if sorted.iter().any(|shown| shown.passage.tool().is_some()) {
        text.push_str(&format!("\n{QUOTED}"));
    }
    let mut before: Option<(&str, Option<String>)> = None;
    for shown in sorted {
        let group = (shown.passage.thread.as_str(), shown.passage.day());
        if before.as_ref() != Some(&group) {
            let day_before = before.as_ref().and_then(|(_, day)| day.as_deref());
            text.push_str(&head(group.1.as_deref(), day_before, shown.passage.source.as_deref()));
            before = Some(group);
        }
        text.push_str(&line(&shown.passage, &shown.excerpt));
    }
    text
}

/// The line before the passages of a day; the year is written where it is another than before.
fn head(day: Option<&str>, before: Option<&str>, source: Option<&str>) -> String {
    let day = day.unwrap_or("no date");
    let day = match (day.split_once('-'), before.and_then(|before| before.split_once('-'))) {
        (Some((year, rest)), Some((same, _))) if year == same => rest,
        _ => day,
    };
    match source {
        Some(source) => format!("\n[{day}, {}]", flat(source)),
        None => format!("\n[{day}]"),
    }
}

/// A passage as one line. What a tool returned is in quotes, so that it cannot be taken for what somebody says now.
fn line(passage: &Passage, excerpt: &str) -> String {
    match passage.tool() {
        Some(tool) => format!("\n{tool}: {}", quoted(excerpt)),
        None => format!("\n{}: {excerpt}", flat(&passage.speaker)),
    }
}
