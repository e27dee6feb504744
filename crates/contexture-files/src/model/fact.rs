//! What is said of lines: that they are on the disk, that they are as they were seen or written, or that the file changed
//! since.

use super::{Line, Now};
use contexture_text::packed::{Damaged, Packer, Unpacker};

/// What is said of lines. Greater is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fact {
    /// They are from before a change that could not be followed.
    Changed,
    /// They are as the agent saw or wrote them.
    #[default]
    Seen,
    /// They were compared with the file on the disk.
    Verified,
}

/// What is known of a line. Greater is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Known {
    /// It is from before a change that could not be followed.
    Changed,
    /// It was seen or written, and its place in the file is not certain any more.
    Loose,
    /// It was seen or written.
    #[default]
    Placed,
    /// It was compared with the file on the disk.
    Verified,
}

impl Known {
    /// What is said of a line that was last certain at a number of observations, if something could write its file after
    /// others.
    fn fact(self, certain_at: u64, written_at: u64) -> Fact {
        match self {
            Known::Changed => Fact::Changed,
            Known::Verified if certain_at >= written_at => Fact::Verified,
            Known::Loose | Known::Placed | Known::Verified => Fact::Seen,
        }
    }
}

/// A change that could not be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// When it was made.
    pub at: u32,
    /// What made it, in short: a command, or a phrase.
    pub by: String,
    /// The number of observations at that time.
    pub(super) count: u64,
}

impl Cause {
    /// Writes it.
    pub(super) fn rest(&self, packer: &mut Packer<'_>) {
        let Self { at, by, count } = self;
        packer.number(*at);
        packer.text(by);
        packer.number(*count);
    }

    /// Reads it again.
    pub(super) fn wake(unpacker: &mut Unpacker<'_>) -> Result<Self, Damaged> {
        Ok(Self { at: unpacker.number()?, by: unpacker.text()?.as_ref().to_owned(), count: unpacker.number()? })
    }
}

/// What can be claimed about some lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The lowest fact among them.
    pub fact: Fact,
    /// The moment at which the line was seen or written that was so longest ago.
    pub since: u32,
    /// The moment at which the line was seen or written that was so last.
    pub until: u32,
    /// The first change that they are from before, if there is one.
    pub by: Option<Cause>,
    /// The number of the first line, if numbers are certain.
    pub first: Option<usize>,
}

/// Most changes of a file that are remembered. The oldest is kept, since lines are from before it.
const MAX_CHANGES: usize = 8;

/// What is said of a line of a file that something could write last at a number of observations.
pub(super) fn of_line(line: &Line, written_at: u64) -> Fact {
    line.known.fact(line.certain_at, written_at)
}

/// Returns what can be claimed about lines of one file.
pub(super) fn claim(lines: &[Line], first: Option<usize>, changes: &[Cause], written_at: u64) -> Claim {
    let moments = || lines.iter().map(|line| line.seen);
    let fact = lines.iter().map(|line| of_line(line, written_at)).min().unwrap_or_default();
    let changed = lines.iter().filter(|line| line.known == Known::Changed).map(|line| line.certain_at).min();
    let by = changed.and_then(|certain_at| changes.iter().find(|cause| cause.count > certain_at).cloned());
    let (since, until) = (moments().min().unwrap_or_default(), moments().max().unwrap_or_default());
    Claim { fact, since, until, by, first }
}

/// Adds a change to those of a file.
pub(super) fn note_change(changes: &mut Vec<Cause>, now: Now, by: &str) {
    if changes.len() == MAX_CHANGES {
        changes.remove(1);
    }
    changes.push(Cause { at: now.at, by: by.to_owned(), count: now.count });
}
