//! Facts as Markdown files, which people read and correct with their editor, and back.
//!
//! [`files`] makes an index and one file for each current fact; [`apply`] takes over what was changed in them. A file whose
//! text, entity, attribute or value differs is an edit, a file without `id` is a new fact, and a fact whose file is missing
//! is forgotten if that is asked for.

use std::collections::BTreeMap;

use serde::Serialize;

use super::by_hand::Edit;
use super::fact::{Fact, FactId, Source};
use super::refusal::Refusal;
use super::render::{day, speaker};
use super::set::{Added, Facts};
use crate::front_matter::FrontMatter;
use crate::text::block::flat;

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

fn file_name(id: &FactId) -> String {
    format!("{id}.md")
}

fn index(title: &str, facts: &Facts) -> String {
    let mut text = format!(
        "# {}\n\nEach fact has a file. Change its text, entity, attribute or value, or add a file without `id`, and import \
         the folder again. A deleted file is forgotten with `--forget-missing`.\n\n",
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
    /// Files that were not taken over, with the reason.
    pub refused: Vec<(String, String)>,
}

/// Takes over files, by name. Returns what was done, with the facts that were forgotten.
pub fn apply(
    facts: &mut Facts,
    files: &BTreeMap<String, String>,
    forget_missing: bool,
    at_ms: u64,
) -> (Applied, Vec<Fact>) {
    let (mut applied, mut gone) = (Applied::default(), Vec::new());
    let mut seen: Vec<FactId> = Vec::new();
    let before: Vec<FactId> = facts.current().map(|fact| fact.id.clone()).collect();
    for (name, text) in files.iter().filter(|(name, _)| name.as_str() != INDEX && name.ends_with(".md")) {
        match apply_file(facts, text, &mut seen, at_ms) {
            Ok(Some((id, true))) => applied.added.push(id),
            Ok(Some((id, false))) => applied.changed.push(id),
            Ok(None) => {}
            Err(refusal) => applied.refused.push((name.clone(), refusal.to_string())),
        }
    }
    for id in before.iter().filter(|id| !seen.contains(id)) {
        // An edit may have taken its place.
        if !facts.get(id).is_some_and(Fact::is_current) {
            continue;
        }
        match forget_missing {
            true => {
                gone.extend(facts.forget(id, at_ms).unwrap_or_default());
                applied.forgotten.push(id.clone());
            }
            false => applied.missing.push(id.clone()),
        }
    }
    (applied, gone)
}

/// Takes over one file; `true` for a new fact.
fn apply_file(
    facts: &mut Facts,
    text: &str,
    seen: &mut Vec<FactId>,
    at_ms: u64,
) -> Result<Option<(FactId, bool)>, Refusal> {
    let matter = FrontMatter::read(text);
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
    seen.push(id.clone());
    let is_same = [
        (&edit.text, &fact.text),
        (&edit.entity, &fact.entity),
        (&edit.attribute, &fact.attribute),
        (&edit.value, &fact.value),
    ]
    .into_iter()
    .all(|(written, kept)| written.as_deref() == Some(flat(kept).as_str()));
    if is_same {
        return Ok(None);
    }
    let new = facts.edit(&id, edit, at_ms)?;
    Ok(Some((new, false)))
}

/// The text of a file: all lines before the quote, as one.
fn body(text: &str) -> String {
    let lines = text.lines().take_while(|line| !line.starts_with('>'));
    let text = flat(&lines.collect::<Vec<_>>().join("\n"));
    text.strip_prefix('\\').map(str::to_owned).unwrap_or(text)
}
