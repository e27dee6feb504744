//! What a view claims about files, to be compared with what is known later.

use serde::{Deserialize, Serialize};

use contexture_files::model::{Claim, Fact, FileModel, FileState, Line};

/// A run of lines that a view shows of a file, and what its heading says about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinesClaim {
    /// The file's place in the model.
    pub file: usize,
    /// The number of the first line, if it is shown.
    pub first: Option<usize>,
    /// How many lines.
    pub count: usize,
    /// The hash of their text.
    pub hash: u64,
    /// The hash of the first of them.
    pub first_hash: u64,
    /// Whether the heading says that they are the whole file.
    pub is_whole: bool,
    /// Whether the heading says that the file changed since. Until version 4: that it may have.
    #[serde(alias = "is_in_doubt")]
    pub is_changed: bool,
}

impl LinesClaim {
    pub(super) fn new(file: usize, lines: &[Line], claim: &Claim, is_whole: bool) -> Self {
        Self {
            file,
            first: if is_whole { Some(1) } else { claim.first },
            count: lines.len(),
            hash: hash(lines),
            first_hash: hash(&lines[..1]),
            is_whole,
            is_changed: claim.fact == Fact::Changed,
        }
    }

    /// Whether the claim still holds: text, numbers and count are the same, and no change
    /// became known that the heading does not name.
    pub(super) fn holds(&self, model: &FileModel) -> bool {
        let Some(file) = model.files().get(self.file).filter(|file| !file.deleted) else { return false };
        if self.is_whole {
            let is_whole = model.claim_whole(self.file).is_some();
            return is_whole && file.segments[0].lines.len() == self.count && self.is_of(&file.segments[0].lines);
        }
        match self.first {
            Some(first) => self.at_number(file, first).is_some_and(|lines| self.is_of(lines)),
            None => file.segments.iter().any(|segment| {
                let mut runs = segment.lines.windows(self.count.max(1));
                runs.any(|lines| hash(&lines[..1]) == self.first_hash && self.is_of(lines))
            }),
        }
    }

    /// Returns the lines that now have its numbers.
    fn at_number<'a>(&self, file: &'a FileState, first: usize) -> Option<&'a [Line]> {
        file.segments.iter().find_map(|segment| {
            let start = first.checked_sub(segment.first?)?;
            segment.lines.get(start..start.checked_add(self.count)?)
        })
    }

    fn is_of(&self, lines: &[Line]) -> bool {
        (self.is_changed || !lines.iter().any(Line::is_changed)) && hash(lines) == self.hash
    }
}

/// Hashes the text of lines. The hash is the same on every machine, and in practice different texts have different
/// hashes.
fn hash(lines: &[Line]) -> u64 {
    let mut hasher = blake3::Hasher::new();
    for line in lines {
        hasher.update(line.text.as_bytes());
        hasher.update(b"\n");
    }
    u64::from_le_bytes(*hasher.finalize().as_bytes().first_chunk().expect("a hash has 32 bytes"))
}
