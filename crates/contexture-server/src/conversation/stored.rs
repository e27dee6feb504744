//! What of a conversation is in the store.

/// How many times a conversation was decided about, and how much of that is in the store.
#[derive(Clone, Debug, Default)]
pub struct StoredVersion {
    version: u64,
    saved: u64,
    /// How many plan changes are in the store.
    steps: usize,
    /// How many decisions are in the store.
    decisions: usize,
}

impl StoredVersion {
    /// A conversation as it is in the store.
    pub fn restored(version: u64, steps: usize, decisions: usize) -> Self {
        Self { version, saved: version, steps, decisions }
    }

    /// How many times it was decided about.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The version in the store.
    pub fn saved(&self) -> u64 {
        self.saved
    }

    /// How many plan changes and how many decisions are in the store.
    pub fn saved_counts(&self) -> (usize, usize) {
        (self.steps, self.decisions)
    }

    /// Whether something is not in the store yet.
    pub fn is_behind(&self) -> bool {
        self.saved < self.version
    }

    /// Notes that something was decided.
    pub fn note_change(&mut self) {
        self.version += 1;
    }

    /// Notes that all of it, with this many plan changes and decisions, is in the store.
    pub fn note_saved(&mut self, steps: usize, decisions: usize) {
        *self = Self::restored(self.version, steps, decisions);
    }

    /// Notes that no more than this many plan changes and decisions are left.
    pub fn cut(&mut self, steps: usize, decisions: usize) {
        (self.steps, self.decisions) = (self.steps.min(steps), self.decisions.min(decisions));
    }
}
