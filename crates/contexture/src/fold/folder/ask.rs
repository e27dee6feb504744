//! What the user asked last, kept in its own place by a fold.

use super::Folder;
use crate::fold::window::Slot;
use crate::transcript::Role;

impl Folder {
    /// The newest message of the user, if it stands neither among the first `opening` messages nor from `start` on.
    ///
    /// It is what the agent works on, so it stays a message of its own until the next fold. An engine that always
    /// shows it would otherwise put it back into the window, and take it out again with the next message.
    pub(super) fn ask(&self, opening: usize, start: usize) -> Option<usize> {
        let newest = self.asks.last().map(|moment| *moment as usize - 1)?;
        (opening..start).contains(&newest).then_some(newest)
    }

    /// The message as a fold shows it: whole, or cut to what the user's other words may have.
    pub(super) fn ask_slot(&self, at: usize) -> Slot {
        let most = self.policy.users_tokens;
        debug_assert_eq!(self.notes[at].role, Role::User, "only users ask");
        if self.notes[at].tokens <= most {
            return Slot::Logged(at);
        }
        Slot::Shortened(at, self.shortened(at, most))
    }
}
