//! The part of a conversation that changes.

use contexture::wire::Plan;

use super::billed::Billed;
use super::decisions::Decisions;
use super::health::{Health, StopReason};
use super::seen::SeenMessages;
use super::stored::StoredVersion;
use crate::conversation::hashes::MessageHashes;

/// What a conversation takes in memory at least.
const LEAST_BYTES: usize = 1_500;

/// What was seen, decided, billed and stored of a conversation, and whether it is healthy.
#[derive(Clone, Default)]
pub struct ConversationState {
    seen: SeenMessages,
    decisions: Decisions,
    billed: Billed,
    health: Health,
    stored: StoredVersion,
}

impl ConversationState {
    /// The state after a first request.
    pub(crate) fn new(hashes: Vec<MessageHashes>) -> Self {
        Self { seen: SeenMessages::new(hashes), ..Self::default() }
    }

    /// The state in a store, with its version there.
    pub(crate) fn restored(
        seen: SeenMessages,
        decisions: Decisions,
        billed: Billed,
        stopped: Option<StopReason>,
        version: u64,
    ) -> Self {
        let stored = StoredVersion::restored(version, decisions.steps().len(), decisions.entries().len());
        Self { seen, decisions, billed, health: Health::restored(stopped), stored }
    }

    /// The state of a branch that continues after the first messages: the decisions before it.
    pub(crate) fn branch(&self, messages: usize, hashes: Vec<MessageHashes>) -> Self {
        Self {
            seen: SeenMessages::new(hashes),
            decisions: self.decisions.until(messages),
            billed: self.billed.branch(),
            health: self.health.branch(),
            stored: StoredVersion::default(),
        }
    }

    /// Handles that the client has replaced outputs in messages that it had sent before. What was decided stays: where the
    /// outputs were folded away, the same is sent as before.
    pub(crate) fn rewrite(&mut self, hashes: Vec<MessageHashes>) {
        self.seen.rewrite(hashes);
        self.decisions.drop_snapshot();
    }

    /// About how many bytes of memory it takes.
    pub(crate) fn bytes(&self) -> usize {
        LEAST_BYTES + std::mem::size_of_val(self.seen.hashes()) + self.decisions.bytes()
    }

    /// The messages of the newest request.
    pub(crate) fn seen(&self) -> &SeenMessages {
        &self.seen
    }

    /// The messages of the newest request, to be replaced.
    pub(crate) fn seen_mut(&mut self) -> &mut SeenMessages {
        &mut self.seen
    }

    /// What was decided.
    pub(crate) fn decisions(&self) -> &Decisions {
        &self.decisions
    }

    /// What was decided, to be changed.
    pub(crate) fn decisions_mut(&mut self) -> &mut Decisions {
        &mut self.decisions
    }

    /// What was billed.
    pub(crate) fn billed(&self) -> &Billed {
        &self.billed
    }

    /// What was billed, to be added to.
    pub(crate) fn billed_mut(&mut self) -> &mut Billed {
        &mut self.billed
    }

    /// Whether decisions may be made.
    pub(crate) fn health(&self) -> &Health {
        &self.health
    }

    /// Whether decisions may be made, to be changed.
    pub(crate) fn health_mut(&mut self) -> &mut Health {
        &mut self.health
    }

    /// What is in the store.
    pub(crate) fn stored(&self) -> &StoredVersion {
        &self.stored
    }

    /// What is in the store, to be changed.
    pub(crate) fn stored_mut(&mut self) -> &mut StoredVersion {
        &mut self.stored
    }

    /// Notes that a request with this many messages is sent. Returns whether that is new.
    pub(crate) fn note_point(&mut self, messages: usize) -> bool {
        let is_new = self.decisions.note_point(messages);
        if is_new {
            self.stored.note_change();
        }
        is_new
    }

    /// Notes that a request with this many messages is sent by a plan that is no decision. What comes after it goes on
    /// from that.
    pub(crate) fn note_plan(&mut self, messages: usize, plan: Plan) {
        self.decisions.set_plan(messages, plan);
        self.stored.note_change();
    }

    /// Handles that a request with this many messages was decided about and not sent: if it comes again it is new.
    pub(crate) fn note_unsent(&mut self, messages: usize) {
        self.decisions.take_back(messages);
        self.decisions.forget_points(messages);
        self.stored.cut(self.decisions.steps().len(), self.decisions.entries().len());
        self.stored.note_change();
    }

    /// Handles that the provider refused a request with this many messages, and that nothing else was sent for it: what
    /// was decided about it is reverted, and if it comes again it is new. Its being rewritten may be why.
    pub(crate) fn note_unclear_refusal(&mut self, messages: usize) {
        self.note_unsent(messages);
        self.health.note_unclear_refusal();
    }

    /// Handles that the provider refused a request with this many messages as it was rewritten, and accepted it in
    /// another form: the last decisions were at fault. They are reverted; blocks of these kinds, which were in them, stay
    /// as they came, and folding goes on. A second refusal ends it: what was accepted before stays if it is now, and
    /// everything is reverted otherwise. So it is if the request was accepted without its reasoning, which stays away
    /// then: what the model says next is bound to what was sent now.
    pub(crate) fn note_refusal(&mut self, messages: usize, kinds: Vec<Box<str>>, accepted: AcceptedForm) {
        let is_first = self.health.note_refusal(kinds);
        let (from, why, unbound) = match accepted {
            AcceptedForm::Earlier => (messages, (!is_first).then_some(StopReason::Refused), None),
            AcceptedForm::Original { was_earlier_refused, unbound } => {
                let is_last = !is_first || was_earlier_refused;
                let from = if is_last || unbound.is_some() { 0 } else { messages };
                (from, is_last.then_some(StopReason::RefusedTwice), unbound)
            }
        };
        self.decisions.take_back(from);
        if let Some(why) = why {
            self.health.stop(why);
        }
        self.stored.cut(self.decisions.steps().len(), self.decisions.entries().len());
        if let Some(plan) = unbound {
            self.decisions.set_plan(messages, plan);
        }
        self.stored.note_change();
    }
}

/// The form of a request that the provider accepted after it had refused another one.
pub(crate) enum AcceptedForm {
    /// What it had accepted before, with the new messages.
    Earlier,
    /// The request as it came.
    Original {
        /// Whether it was tried before with what the provider had accepted.
        was_earlier_refused: bool,
        /// What was sent of it, if that was without its reasoning.
        unbound: Option<Plan>,
    },
}
