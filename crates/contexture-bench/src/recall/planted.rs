//! Conversations with planted facts, made from a seed.
//!
//! Every fact is about a person of its own. Some facts are updated later, some are withdrawn by function, and all are
//! asked for at the end, in words that are mostly not those of the fact. Between them people are mentioned in passing, so
//! that a name alone finds nothing.

use std::collections::HashSet;
use std::sync::Arc;

use contexture::bpe::Bpe;
use contexture::recall::{Extent, Passage, PastIndex, PastQuery};
use contexture::search::{MemoryIndex, SearchError};

use contexture_measure::random::Rng;

/// Made turns are so far apart.
const BETWEEN_MS: u64 = 7 * 60_000;
const START_MS: u64 = 1_735_689_600_000;
const THREAD: &str = "talk";

/// What is said of a person, what later takes its place, and how it is asked for. `{n}` is the name, `{v}` the value.
struct PlantedKind {
    said: &'static str,
    updated: &'static str,
    question: &'static str,
    values: &'static [&'static str],
}

const KINDS: &[PlantedKind] = &[
    PlantedKind {
        said: "{n} works as a {v} these days.",
        updated: "{n} has given that up and works as a {v} now.",
        question: "What is {n}'s profession?",
        values: &["plumber", "pilot", "notary", "florist", "welder", "librarian"],
    },
    PlantedKind {
        said: "{n} lives in {v} with two flatmates.",
        updated: "{n} moved away and lives in {v} now.",
        question: "Which city is {n}'s home?",
        values: &["Oslo", "Porto", "Graz", "Leeds", "Lyon", "Turku"],
    },
    PlantedKind {
        said: "{n} has a {v} that sleeps on the sofa.",
        updated: "{n} has a {v} now, the other one went to an aunt.",
        question: "What pet does {n} keep?",
        values: &["parrot", "beagle", "tortoise", "ferret", "kitten", "hamster"],
    },
    PlantedKind {
        said: "Don't give {n} any {v}, it's an allergy.",
        updated: "The test was wrong: {n} has an allergy to {v}, that's all.",
        question: "Which food makes {n} ill?",
        values: &["walnuts", "shellfish", "celery", "sesame", "mustard", "lupin"],
    },
    PlantedKind {
        said: "{n} drives a {v} to the office.",
        updated: "{n} drives a {v} now, the old one broke down.",
        question: "What car does {n} own?",
        values: &["green Volvo", "silver Fiat", "rusty Jeep", "white Skoda", "red Mazda", "blue Opel"],
    },
    PlantedKind {
        said: "{n} practises the {v} every evening.",
        updated: "{n} changed over and practises the {v} every evening.",
        question: "Which instrument does {n} play?",
        values: &["cello", "oboe", "banjo", "harp", "tuba", "accordion"],
    },
    PlantedKind {
        said: "We meet {n} at the {v} on Thursdays.",
        updated: "From now on we meet {n} at the {v} instead.",
        question: "Where do we have our appointment with {n}?",
        values: &["station cafe", "old mill", "swimming pool", "town hall", "chess club", "bike shed"],
    },
    PlantedKind {
        said: "{n} may spend {v} euros on the new kitchen.",
        updated: "{n} may spend {v} euros on it now, we talked it over.",
        question: "How much money has {n} got for the kitchen?",
        values: &["4200", "5100", "6300", "7700", "8800", "9150"],
    },
    PlantedKind {
        said: "The nightly build of project {n} runs on the machine {v}.",
        updated: "The nightly build of project {n} runs on the machine {v} since the move.",
        question: "On which machine is project {n} compiled at night?",
        values: &["kestrel", "osprey", "merlin", "harrier", "goshawk", "buzzard"],
    },
    PlantedKind {
        said: "{n} wants to learn {v} before the summer.",
        updated: "{n} wants to learn {v} instead, the course was full.",
        question: "Which language does {n} plan to study?",
        values: &["Italian", "Polish", "Japanese", "Spanish", "German", "Portuguese"],
    },
];

const FIRST: &[&str] =
    &["Al", "Bren", "Cor", "Dar", "Ev", "Fen", "Gar", "Hol", "Ir", "Jor", "Kel", "Lor", "Mar", "Nor"];
const LAST: &[&str] = &["ana", "bert", "dina", "evan", "isa", "mund", "rick", "tilde", "vin", "wyn"];

const TALK: &[&str] = &[
    "I saw {n} on the way here.",
    "{n} says hello.",
    "Have you heard from {n} lately?",
    "{n} was late again, as always.",
    "The weather is awful, isn't it?",
    "I slept badly and need more coffee.",
    "Can you make a list for the shop?",
    "That was a long day, I'm glad it is over.",
    "What should we do about the broken lamp?",
    "Let's talk about the trip another time.",
    "The neighbours are loud tonight.",
    "I read half of the report and fell asleep.",
];
const REPLIES: &[&str] = &[
    "Noted.",
    "That sounds good, let me know if I can help.",
    "All right, I'll keep that in mind.",
    "I understand. Shall we go on?",
    "Of course, here is a short list to begin with.",
    "Good idea. We can look at it tomorrow.",
];

/// How a measure is made.
#[derive(Clone, Debug)]
pub struct PlantedOptions {
    /// The seed.
    pub seed: u64,
    /// How many turns a conversation has.
    pub turns: usize,
    /// How many facts are planted.
    pub facts: usize,
    /// The most tokens of a result.
    pub budget: u64,
    /// How much of it is used.
    pub extent: Extent,
}

/// The result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlantedResult {
    /// Questions about facts that were not withdrawn.
    pub asked: usize,
    /// Those whose present fact was shown.
    pub found: usize,
    /// Passages that were shown for them.
    pub shown: usize,
    /// Those that are about what was asked for.
    pub fitting: usize,
    /// Questions about withdrawn facts.
    pub withdrawn: usize,
    /// Those for which the withdrawn fact was shown.
    pub withdrawn_shown: usize,
    /// Questions whose former fact was shown without its update.
    pub outdated_alone: usize,
    /// The tokens of all results.
    pub tokens: u64,
}

struct PlantedFact {
    question: String,
    said_at: u64,
    updated_at: Option<u64>,
    is_withdrawn: bool,
}

/// Makes a conversation, asks for its facts and measures what is shown.
///
/// # Errors
/// The index failed.
pub async fn measure(options: &PlantedOptions) -> Result<PlantedResult, SearchError> {
    let (passages, facts) = conversation(options);
    let past = PastIndex::new(Arc::new(MemoryIndex::new()), "resource:someone");
    for batch in passages.chunks(256) {
        past.add(batch.to_vec()).await?;
    }
    let withdrawn: Vec<u64> = facts.iter().filter(|fact| fact.is_withdrawn).map(|fact| fact.said_at).collect();
    past.forget(THREAD, &withdrawn).await?;
    let now_ms = START_MS + passages.len() as u64 * BETWEEN_MS;
    let counter = Bpe::o200k();
    let mut measure = PlantedResult::default();
    for fact in &facts {
        let query = PastQuery {
            text: &fact.question,
            now_ms,
            budget: options.budget,
            counter: &counter,
            extent: options.extent,
            visible: None,
        };
        let found = past.search(query).await?;
        let shown: HashSet<u64> = found.shown.iter().map(|shown| shown.passage.position).collect();
        measure.take(fact, &shown, found.tokens);
    }
    Ok(measure)
}

impl PlantedResult {
    fn take(&mut self, fact: &PlantedFact, shown: &HashSet<u64>, tokens: u64) {
        self.tokens += tokens;
        if fact.is_withdrawn {
            self.withdrawn += 1;
            self.withdrawn_shown += usize::from(shown.contains(&fact.said_at));
            return;
        }
        let present = fact.updated_at.unwrap_or(fact.said_at);
        self.asked += 1;
        self.found += usize::from(shown.contains(&present));
        self.shown += shown.len();
        self.fitting += [Some(fact.said_at), fact.updated_at].iter().flatten().filter(|at| shown.contains(at)).count();
        self.outdated_alone +=
            usize::from(fact.updated_at.is_some() && shown.contains(&fact.said_at) && !shown.contains(&present));
    }

    /// The share of facts that were found.
    pub fn recall(&self) -> f64 {
        self.found as f64 / self.asked.max(1) as f64
    }

    /// The share of what was shown that was asked for.
    pub fn precision(&self) -> f64 {
        self.fitting as f64 / self.shown.max(1) as f64
    }
}

/// The passages of a conversation, and its facts.
fn conversation(options: &PlantedOptions) -> (Vec<Passage>, Vec<PlantedFact>) {
    let mut dice = Rng::new(options.seed);
    let names: Vec<String> =
        FIRST.iter().flat_map(|first| LAST.iter().map(move |last| format!("{first}{last}"))).collect();
    let mut texts: Vec<String> = (0..options.turns)
        .map(|turn| match turn % 2 {
            0 => dice.pick(TALK).replace("{n}", &names[dice.below(names.len())]),
            _ => dice.pick(REPLIES).to_owned(),
        })
        .collect();
    // Facts are said in the first half and updated in the third quarter.
    let mut free: Vec<usize> = (0..options.turns / 2).filter(|turn| turn % 2 == 0).collect();
    let mut later: Vec<usize> = (options.turns / 2..options.turns * 3 / 4).filter(|turn| turn % 2 == 0).collect();
    let mut facts = Vec::new();
    for (number, name) in names.iter().take(options.facts).enumerate() {
        if free.is_empty() || later.is_empty() {
            break;
        }
        let kind = &KINDS[number % KINDS.len()];
        let first = dice.below(kind.values.len());
        let second = (first + 1 + dice.below(kind.values.len() - 1)) % kind.values.len();
        let written = |text: &str, value: &str| text.replace("{n}", name).replace("{v}", value);
        let said_at = free.swap_remove(dice.below(free.len()));
        texts[said_at] = written(kind.said, kind.values[first]);
        let fate = dice.below(6);
        let updated_at = (fate == 0).then(|| {
            let at = later.swap_remove(dice.below(later.len()));
            texts[at] = written(kind.updated, kind.values[second]);
            at as u64
        });
        let question = written(kind.question, "");
        facts.push(PlantedFact { question, said_at: said_at as u64, updated_at, is_withdrawn: fate == 1 });
    }
    let passages = texts.into_iter().enumerate().map(|(turn, text)| Passage {
        source: None,
        thread: THREAD.to_owned(),
        position: turn as u64,
        id: None,
        speaker: if turn % 2 == 0 { "user" } else { "assistant" }.to_owned(),
        at_ms: Some(START_MS + turn as u64 * BETWEEN_MS),
        text,
    });
    (passages.collect(), facts)
}

impl PlantedResult {
    /// Adds another measure.
    pub fn add(&mut self, other: &PlantedResult) {
        self.asked += other.asked;
        self.found += other.found;
        self.shown += other.shown;
        self.fitting += other.fitting;
        self.withdrawn += other.withdrawn;
        self.withdrawn_shown += other.withdrawn_shown;
        self.outdated_alone += other.outdated_alone;
        self.tokens += other.tokens;
    }
}
