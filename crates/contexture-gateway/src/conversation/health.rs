//! Whether decisions may be made about a conversation.

use std::fmt;

use contexture::wire::WireError;

/// How many requests in a row may fail to be written as decided before nothing more is folded.
const MOST_FAILURES: u32 = 3;

/// Why no more decisions are made about a conversation. It is stored, and shown, as its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StopReason {
    /// A user asked for it.
    AskedFor,
    /// Something went wrong inside the gateway.
    WentWrong,
    /// The provider refused a fold again. What was decided before stays.
    Refused,
    /// The provider refused a rewritten request again, or what it had accepted before.
    RefusedTwice,
    /// A request cannot be read, or not be written as decided.
    Misread(String),
    /// Something else, of which only the text is known: a decision of another version, or a text from a store.
    Other(String),
}

impl StopReason {
    /// Every reason that has a text of its own.
    const PLAIN: [Self; 4] = [Self::AskedFor, Self::WentWrong, Self::Refused, Self::RefusedTwice];

    /// Reads a reason from a store.
    pub fn from_text(text: String) -> Self {
        Self::PLAIN.into_iter().find(|reason| reason.to_string() == text).unwrap_or(Self::Other(text))
    }
}

impl fmt::Display for StopReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::AskedFor => "no new folds: asked for in the inspector",
            Self::WentWrong => "nothing more is folded: something went wrong inside the gateway",
            Self::Refused => "nothing more is folded: the provider refused a rewritten request",
            Self::RefusedTwice => "passed through from here on: the provider refused rewritten requests twice",
            Self::Misread(error) => return write!(formatter, "nothing more is folded: {error}"),
            Self::Other(text) => text,
        })
    }
}

/// Whether decisions may be made about a conversation, and what speaks against it so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Health {
    stopped: Option<StopReason>,
    /// Whether the provider has refused a rewritten request and then accepted it in another form.
    is_refused: bool,
    /// Whether the provider has refused a request in every form, and its being rewritten may be why.
    was_refused: bool,
    /// The kinds of blocks that were in a fold that was refused. They stay as they came.
    spared: Vec<Box<str>>,
    /// How many requests in a row could not be written as decided.
    failures: u32,
}

impl Health {
    /// The health of a conversation from a store.
    pub fn restored(stopped: Option<StopReason>) -> Self {
        Self { stopped, ..Self::default() }
    }

    /// The health of a branch.
    pub fn branch(&self) -> Self {
        Self { failures: 0, ..self.clone() }
    }

    /// Why no more decisions are made, if that is so.
    pub fn stopped(&self) -> Option<&StopReason> {
        self.stopped.as_ref()
    }

    /// Makes no more decisions.
    pub fn stop(&mut self, why: StopReason) {
        self.stopped = Some(why);
    }

    /// Makes no more decisions because a user asked for it, or makes them again. What stopped for another reason stays
    /// stopped.
    pub fn allow(&mut self, is_allowed: bool) {
        match (&self.stopped, is_allowed) {
            (None, false) => self.stopped = Some(StopReason::AskedFor),
            (Some(StopReason::AskedFor), true) => self.stopped = None,
            _ => {}
        }
    }

    /// Notes that a request could not be written as decided. Returns why no more decisions are made, if it was one too
    /// many.
    pub fn note_failure(&mut self, error: &WireError) -> Option<StopReason> {
        // What a provider refuses depends on where a fold cuts, and the next one cuts elsewhere.
        if matches!(error, WireError::Refused(_)) {
            return None;
        }
        self.failures += 1;
        if self.failures < MOST_FAILURES {
            return None;
        }
        self.stop(StopReason::Misread(error.to_string()));
        self.stopped.clone()
    }

    /// Notes that a request was written as decided.
    pub fn note_success(&mut self) {
        self.failures = 0;
    }

    /// Notes that the provider refused a request in every form, and that its being rewritten may be why.
    pub fn note_unclear_refusal(&mut self) {
        self.was_refused = true;
    }

    /// Whether the provider has refused something: then only what is necessary is folded.
    pub fn was_refused(&self) -> bool {
        self.was_refused || self.is_refused
    }

    /// Notes that the provider refused a fold in which blocks of these kinds were, and then accepted another form. Returns
    /// whether it is the first time.
    pub fn note_refusal(&mut self, kinds: Vec<Box<str>>) -> bool {
        self.spared.extend(kinds);
        !std::mem::replace(&mut self.is_refused, true)
    }

    /// The kinds of blocks that stay as they came.
    pub fn spared(&self) -> &[Box<str>] {
        &self.spared
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_comes_back_from_its_text() {
        for reason in StopReason::PLAIN {
            assert_eq!(StopReason::from_text(reason.to_string()), reason);
        }
        let other = StopReason::Misread("`x` is of a kind that is not known".to_owned());
        assert_eq!(StopReason::from_text(other.to_string()).to_string(), other.to_string());
    }

    #[test]
    fn what_a_user_stopped_only_a_user_starts_again() {
        let mut health = Health::default();
        health.allow(false);
        assert_eq!(health.stopped(), Some(&StopReason::AskedFor));
        health.allow(true);
        assert_eq!(health.stopped(), None);
        health.stop(StopReason::Refused);
        health.allow(false);
        health.allow(true);
        assert_eq!(health.stopped(), Some(&StopReason::Refused));
    }

    #[test]
    fn some_failures_in_a_row_are_one_too_many() {
        let mut health = Health::default();
        let fails = |health: &mut Health| health.note_failure(&WireError::OtherRequest).is_some();
        assert_eq!([fails(&mut health), fails(&mut health)], [false, false]);
        health.note_success();
        let mut refused = Health::default();
        for _ in 0..10 {
            assert_eq!(refused.note_failure(&WireError::Refused("something")), None);
        }
        assert_eq!([fails(&mut health), fails(&mut health), fails(&mut health)], [false, false, true]);
    }
}
