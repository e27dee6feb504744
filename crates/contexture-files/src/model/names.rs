//! Names of files in what people and agents say.

use std::collections::HashMap;

use super::Who;
use crate::mentions::{Place, leading_number, looks_like_file};
use crate::path::last_part;
use contexture_text::packed::{Damaged, Packer, Unpacker};

/// Most names of unknown files that are remembered.
const MAX_NAMES: usize = 2_000;

/// Files that were named before anything was known of them.
#[derive(Clone, Debug, Default)]
pub(super) struct NamedFiles {
    /// By path, or by bare name as it was said.
    noted: HashMap<String, (u32, Who)>,
}

impl NamedFiles {
    pub(super) fn note(&mut self, normal: String, at: u32, who: Who) {
        // A name given by the user counts more than one given by the agent.
        let is_less = |known: &(u32, Who)| known.1 == Who::User && who != Who::User;
        if self.noted.get(&normal).is_some_and(is_less) {
            return;
        }
        if self.noted.len() < MAX_NAMES || self.noted.contains_key(&normal) {
            self.noted.insert(normal, (at, who));
        }
    }

    /// Returns who named a file that is seen for the first time, and when.
    pub(super) fn take(&mut self, normal: &str) -> Vec<(u32, Who)> {
        if self.noted.is_empty() {
            return Vec::new();
        }
        // A name may be any end of the path, from the whole path to its last part.
        let starts = normal.match_indices('/').map(|(at, _)| at + 1);
        [0].into_iter().chain(starts).filter_map(|start| self.noted.remove(&normal[start..])).collect()
    }

    /// Writes all names.
    pub(super) fn rest(&self, packer: &mut Packer<'_>) {
        let mut noted: Vec<(&String, &(u32, Who))> = self.noted.iter().collect();
        noted.sort_unstable_by_key(|(name, _)| *name);
        let mut before = "";
        packer.list(noted, |packer, (name, (at, who))| {
            packer.text_after(before, name);
            packer.number(*at);
            who.rest(packer);
            before = name;
        });
    }

    /// Reads them again.
    pub(super) fn wake(unpacker: &mut Unpacker<'_>) -> Result<Self, Damaged> {
        let mut before = String::new();
        let noted = unpacker.list(|unpacker| {
            let name = unpacker.text_after(&before)?;
            before.clone_from(&name);
            Ok((name, (unpacker.number()?, Who::wake(unpacker)?)))
        })?;
        Ok(Self { noted: noted.into_iter().collect() })
    }
}

/// Longest text that is searched for names; longer texts were pasted.
const MAX_TEXT_BYTES: usize = 20_000;

/// The words of a text that look like paths, with the lines that they name.
///
/// ```
/// use contexture_files::mentions::Place;
/// use contexture_files::model::named_places;
/// let places: Vec<_> = named_places("Fix `src/a.rs:12`, see @docs/b.md. It's 3.5x slower, e.g. on v1.2.").collect();
/// let expected = [Place { path: "src/a.rs", line: Some(12) }, Place { path: "docs/b.md", line: None }];
/// assert_eq!(places, expected);
/// ```
pub fn named_places(text: &str) -> impl Iterator<Item = Place<'_>> {
    let text = if text.len() <= MAX_TEXT_BYTES { text } else { "" };
    let is_break = |c: char| c.is_whitespace() || "()[]{}<>\"'`,;|=*!?#".contains(c);
    text.split(is_break).filter_map(|word| {
        let word = word.trim_start_matches('@');
        let (path, behind) = word.split_once(':').unwrap_or((word, ""));
        let path = path.trim_end_matches('.');
        let (stem, extension) = last_part(path).rsplit_once('.')?;
        // `e.g` and the like have one letter on each side.
        let is_short = stem.len() + extension.len() < 3;
        let is_named = looks_like_file(path) && extension.starts_with(|c: char| c.is_ascii_alphabetic()) && !is_short;
        is_named.then(|| Place { path, line: leading_number(behind) })
    })
}
