//! Facts as Markdown files, which people read and correct with their editor, and back.
//!
//! [`files`] makes an index and one file for each current fact; [`apply`] takes over what was changed in them. A file whose
//! text, entity, attribute or value differs is an edit, and a file without `id` is a new fact. If that is asked for, a fact
//! is forgotten whose file was deleted: one that the index lists, that is as it was when the index was written, and whose
//! file is not there. [`Exported`] is what the index says, by which edits are known that were not taken over yet.

use std::collections::BTreeMap;

use serde::Serialize;

use super::by_hand::Edit;
use super::fact::{Fact, FactId, Source};
use super::refusal::Refusal;
use super::render::{day, speaker};
use super::set::{Added, Facts};
use crate::stable::stable_hash;
use contexture_text::block::flat;
use contexture_text::front_matter::FrontMatter;

/// The name of the index.
pub const INDEX: &str = "index.md";

/// The largest file that is read, in bytes.
pub const MAX_FILE_BYTES: u64 = 64 * 1024;

/// The files of all current facts, by name.
pub fn files(title: &str, facts: &Facts) -> BTreeMap<String, String> {
    let mut files: BTreeMap<String, String> = facts.current().map(|fact| (file_name(&fact.id), file(fact))).collect();
    files.insert(INDEX.to_owned(), index(title, facts));
    files
}

/// What an index says: which files were written, and what was in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    marks: BTreeMap<String, u64>,
}

impl Exported {
    /// Reads an index; `None` if it is not one that [`files`] made.
    pub fn read(index: &str) -> Option<Self> {
        let rest = &index[index.rfind(MARK)? + MARK.len()..];
        let marks = rest[..rest.find("-->")?].split_whitespace().map(|mark| {
            let (name, hash) = mark.rsplit_once('=')?;
            Some((name.to_owned(), u64::from_str_radix(hash, 16).ok()?))
        });
        Some(Self { marks: marks.collect::<Option<_>>()? })
    }

    /// Whether a file is there as it was written.
    pub fn has(&self, name: &str, text: &str) -> bool {
        self.marks.get(name) == Some(&hash_of(text))
    }

    /// The names of the files that were written.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.marks.keys().map(String::as_str)
    }
}

/// What the last lines of an index begin with.
const MARK: &str = "<!-- contexture memory export";

/// A hash of a file. Editors change line ends, which changes nothing of a fact.
fn hash_of(text: &str) -> u64 {
    let lines: Vec<&str> = text.trim_start_matches('\u{feff}').lines().map(str::trim_end).collect();
    stable_hash(&[lines.join("\n").trim_end()])
}

fn file_name(id: &FactId) -> String {
    format!("{id}.md")
}

fn index(title: &str, facts: &Facts) -> String {
    let mut text = format!(
        "# {}\n\nEach fact has a file. Change its text, entity, attribute or value, or add a file without `id`, and import \
         the folder again. A fact whose file you delete is forgotten with `--forget-missing`.\n\n",
        flat(title)
    );
    for fact in facts.current() {
        let name = flat(&fact.text).replace(['[', ']'], "");
        text.push_str(&format!(
            "- [{name}]({}) ({}, {})\n",
            file_name(&fact.id),
            speaker(fact),
            day(fact.valid_from_ms)
        ));
    }
    text.push_str(&format!("\n{MARK}\n"));
    for fact in facts.current() {
        text.push_str(&format!("{}={:013x}\n", file_name(&fact.id), hash_of(&file(fact))));
    }
    text.push_str("-->\n");
    text
}

fn file(fact: &Fact) -> String {
    let mut text = "---\n".to_owned();
    let since = day(fact.valid_from_ms);
    let confirmed = if fact.confirmed { "yes" } else { "no" };
    for (key, value) in [
        ("id", fact.id.as_str()),
        ("entity", &fact.entity),
        ("attribute", &fact.attribute),
        ("value", &fact.value),
        ("said by", &speaker(fact)),
        ("since", &since),
        ("confirmed", confirmed),
    ] {
        text.push_str(&format!("{key}: '{}'\n", flat(value).replace('\'', "''")));
    }
    // A text that begins like a quote is escaped.
    let escape = if fact.text.starts_with(['>', '\\']) { "\\" } else { "" };
    text.push_str(&format!("---\n\n{escape}{}\n\n", flat(&fact.text)));
    text.push_str(&format!("> {}\n", flat(&fact.quote)));
    for source in &fact.sources {
        text.push_str(&match source {
            Source::Item { thread, item, .. } => format!("> — thread {}, item {item}\n", flat(thread.as_str())),
            Source::Hand => "> — by hand\n".to_owned(),
        });
    }
    text
}

/// What was taken over from files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Applied {
    /// New facts.
    pub added: Vec<FactId>,
    /// Facts that were changed, under their new names.
    pub changed: Vec<FactId>,
    /// Facts that were forgotten because their files are missing.
    pub forgotten: Vec<FactId>,
    /// Facts without a file that were kept.
    pub missing: Vec<FactId>,
    /// Facts without a file that are newer than the files, or were changed since, and were kept.
    pub newer: Vec<FactId>,
    /// Files that were not taken over, with the reason.
    pub refused: Vec<(String, String)>,
}

/// Takes over files, by name. Returns what was done, with the facts that were forgotten.
///
/// A fact that is new or was changed since the files were written is never forgotten, nor is one whose file is there but
/// cannot be read.
///
/// # Errors
/// Facts are to be forgotten, and there is no index that tells which files there were.
pub fn apply(
    facts: &mut Facts,
    files: &BTreeMap<String, String>,
    forget_missing: bool,
    at_ms: u64,
) -> Result<(Applied, Vec<Fact>), Refusal> {
    let exported = files.get(INDEX).and_then(|index| Exported::read(index));
    if forget_missing && exported.is_none() {
        return Err(Refusal::NoIndex);
    }
    let (mut applied, mut gone) = (Applied::default(), Vec::new());
    let mut seen: Vec<FactId> = Vec::new();
    // As they were before the files are taken over: only what was deleted is missing.
    let before: Vec<Fact> = facts.current().cloned().collect();
    for (name, text) in files.iter().filter(|(name, _)| name.as_str() != INDEX && name.ends_with(".md")) {
        let is_exported = exported.as_ref().is_some_and(|exported| exported.names().any(|other| other == name));
        match apply_file(facts, text, is_exported, &mut seen, at_ms) {
            Ok(Some((id, true))) => applied.added.push(id),
            Ok(Some((id, false))) => applied.changed.push(id),
            Ok(None) => {}
            Err(refusal) => applied.refused.push((name.clone(), refusal.to_string())),
        }
    }
    let is_missing = |fact: &&Fact| !seen.contains(&fact.id) && !files.contains_key(&file_name(&fact.id));
    for fact in before.iter().filter(is_missing) {
        let id = &fact.id;
        // An edit may have taken its place.
        if !facts.get(id).is_some_and(Fact::is_current) {
            continue;
        }
        let is_as_exported = exported.as_ref().is_some_and(|exported| exported.has(&file_name(id), &file(fact)));
        match forget_missing && is_as_exported {
            true => {
                gone.extend(facts.forget(id, at_ms).unwrap_or_default());
                applied.forgotten.push(id.clone());
            }
            false if exported.is_none() || is_as_exported => applied.missing.push(id.clone()),
            false => applied.newer.push(id.clone()),
        }
    }
    Ok((applied, gone))
}

/// Whether taking over a file would change nothing, so that it may be written anew.
pub fn is_taken_over(facts: &Facts, text: &str) -> bool {
    matches!(apply_file(&mut facts.clone(), text, true, &mut Vec::new(), 0), Ok(None))
}

/// Takes over one file; `true` for a new fact. A file that was exported has the fact that it is of.
fn apply_file(
    facts: &mut Facts,
    text: &str,
    is_exported: bool,
    seen: &mut Vec<FactId>,
    at_ms: u64,
) -> Result<Option<(FactId, bool)>, Refusal> {
    let matter = FrontMatter::read(text);
    // Else a broken file would become a fact whose text is its front matter.
    if is_broken(text, &matter) || (is_exported && matter.text("id").is_none()) {
        return Err(Refusal::BrokenFile);
    }
    let edit = Edit {
        text: Some(body(matter.body)),
        entity: Some(matter.text("entity").unwrap_or_default()),
        attribute: Some(matter.text("attribute").unwrap_or_default()),
        value: Some(matter.text("value").unwrap_or_default()),
    };
    let Some(id) = matter.text("id").map(|id| FactId::from(id.as_str())) else {
        return match facts.tell(edit, at_ms)? {
            Added::New(id) => Ok(Some((id, true))),
            Added::Known(_) => Ok(None),
        };
    };
    let fact = facts.get(&id).ok_or_else(|| Refusal::Unknown(id.clone()))?;
    if seen.contains(&id) {
        return Err(Refusal::Twice(id));
    }
    seen.push(id.clone());
    let is_same = |fact: &Fact| {
        [
            (&edit.text, &fact.text),
            (&edit.entity, &fact.entity),
            (&edit.attribute, &fact.attribute),
            (&edit.value, &fact.value),
        ]
        .into_iter()
        .all(|(written, kept)| written.as_deref() == Some(flat(kept).as_str()))
    };
    // It may have been taken over before, and then a newer fact has its text.
    let mut later = Some(fact);
    for _ in 0..facts.all().count() {
        match later {
            Some(fact) if is_same(fact) => return Ok(None),
            Some(fact) => later = fact.superseded_by.as_ref().and_then(|id| facts.get(id)),
            None => break,
        }
    }
    let new = facts.edit(&id, edit, at_ms)?;
    Ok(Some((new, false)))
}

/// Whether the lines above the text cannot be read: they do not begin or end as they should, or one has no key.
fn is_broken(text: &str, matter: &FrontMatter<'_>) -> bool {
    let text = text.trim_start_matches('\u{feff}');
    if !matter.is_there {
        return text.trim_start().starts_with("--") || text.lines().any(|line| line.trim_end() == "---");
    }
    let above = &text[..text.len() - matter.body.len()];
    let is_key = |line: &str| line.contains(':') || line.starts_with([' ', '\t', '#']) || line.trim().is_empty();
    above.lines().filter(|line| !matches!(line.trim_end(), "---" | "...")).any(|line| !is_key(line))
}

/// The text of a file: all lines before the quote, as one.
fn body(text: &str) -> String {
    let lines = text.lines().take_while(|line| !line.starts_with('>'));
    let text = flat(&lines.collect::<Vec<_>>().join("\n"));
    text.strip_prefix('\\').map(str::to_owned).unwrap_or(text)
}
