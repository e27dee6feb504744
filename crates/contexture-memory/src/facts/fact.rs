//! One fact, with where it comes from.

use std::fmt;
use std::hash::BuildHasher;
use std::sync::OnceLock;

use contexture_core::ThreadId;
use contexture_core::tokens::floor_boundary;
use contexture_text::search::terms;
use serde::{Deserialize, Serialize};

use crate::stable::stable_hash;

/// The longest text of a fact, in bytes.
pub const MAX_TEXT_BYTES: usize = 400;
/// The longest entity, attribute or value, in bytes.
pub const MAX_NAME_BYTES: usize = 160;
/// The longest quote that is kept, in bytes.
pub const MAX_QUOTE_BYTES: usize = 300;
/// How many sources of one fact are kept.
pub(super) const MAX_SOURCES: usize = 8;
/// A fact is found by the words of this many bytes.
const MAX_SEARCHED_BYTES: usize = 2 * 1024;

/// The name of a fact: a few letters and digits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct FactId(pub(super) String);

impl FactId {
    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for FactId {
    fn from(id: &str) -> Self {
        Self(id.trim().trim_matches(['[', ']']).to_owned())
    }
}

impl fmt::Display for FactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for FactId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// Who said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// The content of a file.
    File,
    /// A tool.
    Tool,
    /// The model.
    Assistant,
    /// The user.
    User,
}

impl Speaker {
    /// The speaker's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Speaker::User => "user",
            Speaker::Assistant => "assistant",
            Speaker::Tool => "tool",
            Speaker::File => "file",
        }
    }

    /// The speaker of that name.
    pub fn named(name: &str) -> Option<Self> {
        [Speaker::User, Speaker::Assistant, Speaker::Tool, Speaker::File].into_iter().find(|it| it.as_str() == name)
    }

    /// Whether what it says is content rather than somebody's statement: tools and files.
    pub fn is_content(self) -> bool {
        matches!(self, Speaker::Tool | Speaker::File)
    }
}

/// Where a fact comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum Source {
    /// An item of a conversation.
    Item {
        /// The conversation.
        thread: ThreadId,
        /// The position of the item in its log.
        item: usize,
        /// Where in the item's text the quote begins, in bytes.
        start: usize,
        /// Where it ends.
        end: usize,
        /// The tool, or the path of the file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    /// A person wrote it, with a command or an editor, or the program did on its own.
    Hand,
}

impl Source {
    /// Whether two sources are the same place, so far as their quotes overlap.
    pub(super) fn overlaps(&self, other: &Source) -> bool {
        match (self, other) {
            (
                Source::Item { thread, item, start, end, .. },
                Source::Item { thread: thread2, item: item2, start: start2, end: end2, .. },
            ) => thread == thread2 && item == item2 && start < end2 && start2 < end,
            _ => false,
        }
    }

    /// Whether two sources are the same item.
    pub(super) fn is_same_item(&self, other: &Source) -> bool {
        match (self, other) {
            (Source::Item { thread, item, .. }, Source::Item { thread: thread2, item: item2, .. }) => {
                thread == thread2 && item == item2
            }
            _ => false,
        }
    }
}

/// Something that is remembered.
///
/// Facts are made and changed by [`Facts`](super::Facts), which checks them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Fact {
    /// Its name.
    pub id: FactId,
    /// The fact as a sentence.
    pub text: String,
    /// What it is about: `user`, `project`, a person, a thing.
    pub entity: String,
    /// Which property of it: `lives in`. Empty where there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub attribute: String,
    /// The value of the property: `Paris`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// Whether the property has one value at a time, so that a newer one takes its place.
    #[serde(default)]
    pub single: bool,
    /// Who said it.
    pub said_by: Speaker,
    /// Where it comes from.
    pub sources: Vec<Source>,
    /// Words of the first source that say it.
    pub quote: String,
    /// Since when it is true, in milliseconds since the Unix epoch.
    pub valid_from_ms: u64,
    /// Since when it is no longer true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_to_ms: Option<u64>,
    /// The fact that took its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded_by: Option<FactId>,
    /// Whether a person said it again, or wrote or corrected it by hand.
    #[serde(default)]
    pub confirmed: bool,
    /// How often it was shown to a model that was asked about it.
    #[serde(default)]
    pub uses: u32,
    /// When that was last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_ms: Option<u64>,
    #[serde(skip)]
    derived: Derived,
}

impl Fact {
    /// Whether it is true now, as far as is known, and so may be shown.
    pub fn is_current(&self) -> bool {
        self.valid_to_ms.is_none() && self.superseded_by.is_none()
    }

    /// The property that the fact is about: a hash of entity and attribute, normalised.
    pub(super) fn key(&self) -> u64 {
        *self.derived.key.get_or_init(|| key(&self.entity, &self.attribute))
    }

    /// Whether another fact is about the same property. `C++` and `C#` have one key, but are two things.
    pub(super) fn has_property_of(&self, other: &Fact) -> bool {
        self.key() == other.key() && name(&self.entity) == name(&other.entity)
    }

    /// Whether a new fact says the same, in the same words.
    pub(super) fn says(&self, draft: &FactDraft) -> bool {
        self.said() == said(&draft.entity, &draft.attribute, &draft.value, &draft.text)
    }

    fn said(&self) -> u64 {
        *self.derived.said.get_or_init(|| said(&self.entity, &self.attribute, &self.value, &self.text))
    }

    /// A hash of the key with the value, or of the text where there is no attribute. It is kept in tombstones, and is the
    /// same for some facts that differ in signs: what [says](Self::says) the same is told by their words.
    pub(super) fn claim(&self) -> u64 {
        *self.derived.claim.get_or_init(|| claim(&self.entity, &self.attribute, &self.value, &self.text))
    }

    /// Hashes of its words, sorted.
    pub(super) fn terms(&self) -> &[u64] {
        self.derived.terms.get_or_init(|| {
            let text = format!("{} {} {} {}", self.entity, self.attribute, self.value, self.text);
            hashes(&text[..floor_boundary(&text, MAX_SEARCHED_BYTES)])
        })
    }
}

/// A fact that is about to be made.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FactDraft {
    pub(super) text: String,
    pub(super) entity: String,
    pub(super) attribute: String,
    pub(super) value: String,
    pub(super) single: bool,
    pub(super) said_by: Speaker,
    pub(super) source: Source,
    pub(super) quote: String,
    pub(super) at_ms: u64,
    /// Whether a person wrote it by hand.
    pub(super) confirmed: bool,
}

impl FactDraft {
    pub(super) fn into_fact(self, id: FactId) -> Fact {
        Fact {
            id,
            text: self.text,
            entity: self.entity,
            attribute: self.attribute,
            value: self.value,
            single: self.single,
            said_by: self.said_by,
            confirmed: self.confirmed,
            sources: vec![self.source],
            quote: self.quote,
            valid_from_ms: self.at_ms,
            valid_to_ms: None,
            superseded_by: None,
            uses: 0,
            last_used_ms: None,
            derived: Derived::default(),
        }
    }

    pub(super) fn key(&self) -> u64 {
        key(&self.entity, &self.attribute)
    }

    pub(super) fn claim(&self) -> u64 {
        claim(&self.entity, &self.attribute, &self.value, &self.text)
    }

    /// A name that depends on nothing but the fact, so that two writers who learn the same give it the same name.
    pub(super) fn id(&self, len: usize) -> FactId {
        let source = match &self.source {
            Source::Item { thread, item, .. } => format!("{thread}\0{item}"),
            Source::Hand => format!("hand\0{}", self.at_ms),
        };
        let claim = self.claim().to_string();
        let hash = stable_hash(&[&claim, &self.text, &source]);
        let more = stable_hash(&[&source, &self.text, &claim]);
        FactId(format!("{hash:013x}{more:013x}")[..len].to_owned())
    }
}

/// Hashes that are computed when they are needed. They are no part of a fact's value.
#[derive(Clone, Default)]
struct Derived {
    key: OnceLock<u64>,
    claim: OnceLock<u64>,
    said: OnceLock<u64>,
    terms: OnceLock<Box<[u64]>>,
}

impl PartialEq for Derived {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl fmt::Debug for Derived {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

/// Hashes of the words of a text, sorted, each once.
pub(super) fn hashes(text: &str) -> Box<[u64]> {
    let state = foldhash::fast::FixedState::with_seed(1);
    let mut hashes: Vec<u64> =
        terms(text).iter().filter(|term| !is_common(term)).map(|term| state.hash_one(term.as_str())).collect();
    hashes.sort_unstable();
    hashes.dedup();
    hashes.into()
}

/// Words that say nothing about what a text is about, stemmed as terms are.
const COMMON: &[&str] = &[
    "a", "an", "and", "ani", "are", "as", "at", "be", "but", "by", "can", "could", "did", "do", "doe", "for", "from",
    "had", "ha", "have", "he", "her", "hi", "how", "i", "if", "in", "is", "it", "its", "me", "my", "no", "not", "of",
    "on", "or", "our", "she", "so", "some", "that", "the", "their", "them", "they", "thi", "this", "to", "us", "wa",
    "was", "we", "were", "what", "when", "where", "which", "who", "will", "with", "would", "you", "your", "user",
];

fn is_common(term: &str) -> bool {
    COMMON.contains(&term)
}

/// The share of `part` that is in `whole`; both sorted.
pub(super) fn coverage(part: &[u64], whole: &[u64]) -> f64 {
    if part.is_empty() {
        return 0.0;
    }
    let shared = part.iter().filter(|term| whole.binary_search(term).is_ok()).count();
    shared as f64 / part.len() as f64
}

/// A name without case, punctuation and doubled spaces: `Lives_In` and `lives in` are one.
pub(super) fn normal(name: &str) -> String {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}

/// A name without case, dashes, quotes and doubled spaces, but with its signs: `C++` and `C#` are two.
pub(super) fn name(name: &str) -> String {
    let name: String = name.chars().filter(|c| !matches!(c, '"' | '\'' | '`')).collect();
    words(&name.replace(['_', '-'], " ")).join(" ")
}

/// The words of a sentence, in order, without case and what ends the sentence. Signs within and around words count:
/// `9:30` is not `30:9`, and a question is not a statement.
pub(super) fn words(text: &str) -> Vec<String> {
    let text =
        text.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '.' | '!' | ';' | ',' | '…' | '。' | '！'));
    text.split_whitespace().map(str::to_lowercase).collect()
}

/// Words that turn a sentence into its opposite.
const NEGATIONS: &[&str] = &[
    "not", "no", "never", "none", "nothing", "nobody", "neither", "nor", "without", "cannot", "cant", "dont", "doesnt",
    "didnt", "isnt", "arent", "wasnt", "werent", "wont", "wouldnt", "shouldnt", "couldnt", "hasnt", "havent", "hadnt",
    "nicht", "kein", "keine", "keinen", "nie", "niemals", "ohne", "pas", "jamais", "sans", "nunca", "sin", "non",
    "mai", "não", "не", "нет",
];

/// Characters that do so in scripts without spaces.
const NEGATING: &[char] = &['不', '没', '沒', '无', '無', '非', '未', '别', '否'];

/// How often a text negates something.
pub(super) fn negations(text: &str) -> usize {
    let plain = text.to_lowercase().replace(['\'', '’'], "");
    let words = plain.split(|c: char| !c.is_alphanumeric()).filter(|word| NEGATIONS.contains(word)).count();
    words + plain.chars().filter(|c| NEGATING.contains(c)).count() + plain.matches("ない").count()
}

fn key(entity: &str, attribute: &str) -> u64 {
    stable_hash(&[&normal(entity), &normal(attribute)])
}

/// A hash of all that a fact says.
fn said(entity: &str, attribute: &str, value: &str, text: &str) -> u64 {
    stable_hash(&[&name(entity), &name(attribute), &words(value).join(" "), &words(text).join(" ")])
}

fn claim(entity: &str, attribute: &str, value: &str, text: &str) -> u64 {
    let (attribute, value) = (normal(attribute), normal(value));
    match attribute.is_empty() || value.is_empty() {
        true => stable_hash(&[&normal(entity), &normal(text)]),
        false => stable_hash(&[&normal(entity), &attribute, &value]),
    }
}
