//! How well lines are known, and what lowered their grade.

use super::{Line, Now};
use contexture_text::packed::{Damaged, Packer, Unpacker};

/// How well a line is known. Greater is better.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Some call may have changed it, or its origin is uncertain.
    InDoubt,
    /// It was certain, but since then commands ran that are only presumed not to change sources.
    Presumed,
    /// It was seen or written, and every call since was understood completely and did not touch it.
    #[default]
    Sure,
    /// It was compared with the file on the disk.
    Verified,
}

/// A call that lowered the grade of lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cause {
    /// When it was made.
    pub at: u32,
    /// What it was, in short: a command, or a phrase.
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
    /// The lowest grade among them.
    pub grade: Grade,
    /// The moment since which all of them are known: that of the line that was seen, written or verified longest ago.
    pub since: u32,
    /// What lowered the grade, oldest first: the calls that may have changed lines, or the commands that are presumed
    /// not to have. Empty if the grade is sure or verified.
    pub by: Vec<Cause>,
    /// The number of the first line, if numbers are certain.
    pub first: Option<usize>,
}

/// Most causes that are remembered. The oldest are kept, since they show since when lines are in doubt.
const MAX_CAUSES: usize = 8;

/// Commands that are only presumed not to change sources, in order.
#[derive(Clone, Debug, Default)]
pub(super) struct Presumptions {
    /// The newest of them, at most [`MAX_PRESUMED`].
    newest: Vec<Cause>,
}

/// Most commands that are remembered.
const MAX_PRESUMED: usize = 64;

impl Presumptions {
    pub(super) fn note(&mut self, now: Now, by: &str) {
        if self.newest.len() == MAX_PRESUMED {
            // The oldest is kept, so that lines known before it remain presumed.
            self.newest.remove(1);
        }
        self.newest.push(Cause { at: now.at, by: by.to_owned(), count: now.count });
    }

    /// How well a line is known now.
    pub(super) fn grade_of(&self, line: &Line) -> Grade {
        let is_newer = self.newest.last().is_some_and(|cause| cause.count > line.certain_at);
        if is_newer { line.grade.min(Grade::Presumed) } else { line.grade }
    }

    /// Those that ran after a number of observations, each command once.
    fn since(&self, count: u64) -> Vec<Cause> {
        self.that(|cause| cause.count > count)
    }

    /// Those that ran after a moment, each command once.
    pub(super) fn after(&self, at: u32) -> Vec<Cause> {
        self.that(|cause| cause.at > at)
    }

    /// Writes the newest of them.
    pub(super) fn rest(&self, packer: &mut Packer<'_>) {
        let Self { newest } = self;
        packer.list(newest, |packer, cause| cause.rest(packer));
    }

    /// Reads them again.
    pub(super) fn wake(unpacker: &mut Unpacker<'_>) -> Result<Self, Damaged> {
        Ok(Self { newest: unpacker.list(Cause::wake)? })
    }

    fn that(&self, is_wanted: impl Fn(&Cause) -> bool) -> Vec<Cause> {
        let mut causes: Vec<Cause> = Vec::new();
        for cause in self.newest.iter().filter(|cause| is_wanted(cause)) {
            if causes.len() < MAX_CAUSES && !causes.iter().any(|known| known.by == cause.by) {
                causes.push(cause.clone());
            }
        }
        causes
    }
}

/// Returns what can be claimed about lines of one file.
pub(super) fn claim(lines: &[Line], first: Option<usize>, doubts: &[Cause], presumptions: &Presumptions) -> Claim {
    let since = lines.iter().map(|line| line.seen).min().unwrap_or_default();
    let certain_at = lines.iter().map(|line| line.certain_at).min().unwrap_or_default();
    let grade = lines.iter().map(|line| line.grade).min().unwrap_or_default();
    if grade == Grade::InDoubt {
        let doubtful =
            lines.iter().filter(|line| !line.is_sure()).map(|line| line.certain_at).min().unwrap_or_default();
        let by = doubts.iter().filter(|cause| cause.count > doubtful).cloned().collect();
        return Claim { grade, since, by, first: None };
    }
    let by = presumptions.since(certain_at);
    let grade = if by.is_empty() { grade } else { Grade::Presumed };
    Claim { grade, since, by, first }
}

/// Adds a cause of doubt to those of a file.
pub(super) fn note_doubt(doubts: &mut Vec<Cause>, now: Now, by: &str) {
    if doubts.len() == MAX_CAUSES {
        doubts.remove(1);
    }
    doubts.push(Cause { at: now.at, by: by.to_owned(), count: now.count });
}
