//! What is said of a file after something.

use contexture_files::model::{Fact, FileModel};

/// What is said of a file. Greater is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Told {
    /// Lines of it are from before a change that could not be followed.
    Changed,
    /// Its lines are as they were seen, and there may be others.
    Seen,
    /// These are all its lines.
    Whole,
}

/// What is said of a file of which lines are known.
pub fn told(model: &FileModel, path: &str) -> Told {
    let file = model.place(path).unwrap_or_else(|| panic!("nothing is known of {path}"));
    let segments = model.files()[file].segments.iter().enumerate();
    let facts = segments.map(|(at, segment)| model.claim(file, at, 0..segment.lines.len()).fact);
    match (facts.min(), model.claim_whole(file)) {
        (Some(Fact::Changed), _) => Told::Changed,
        (_, Some(_)) => Told::Whole,
        _ => Told::Seen,
    }
}
