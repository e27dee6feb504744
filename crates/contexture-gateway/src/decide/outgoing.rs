//! What is sent for a request, and why.

use bytes::Bytes;

use super::reason::PassReason;

/// What is sent for a request, and why.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// The request as it came.
    AsItCame(PassReason),
    /// What earlier decisions make of it; nothing new was decided.
    Replayed {
        /// The body.
        body: Bytes,
        /// Why nothing new was decided.
        why: PassReason,
    },
    /// What decisions make of it, old and new.
    Decided {
        /// The body; `None` if it is the one that came.
        body: Option<Bytes>,
    },
    /// The request as it came, because decisions are only observed.
    Observed {
        /// Tokens that would have been sent.
        would_send: u64,
    },
    /// The request as it came, after the provider had refused it as rewritten.
    GivenUp(PassReason),
}

impl Outgoing {
    /// The body to send; `None` sends the received one.
    pub fn body(&self) -> Option<&Bytes> {
        match self {
            Self::Replayed { body, .. } => Some(body),
            Self::Decided { body } => body.as_ref(),
            Self::AsItCame(_) | Self::Observed { .. } | Self::GivenUp(_) => None,
        }
    }

    /// Why it is sent as it came, or without new decisions.
    pub fn why(&self) -> Option<&PassReason> {
        match self {
            Self::AsItCame(why) | Self::Replayed { why, .. } | Self::GivenUp(why) => Some(why),
            Self::Decided { .. } | Self::Observed { .. } => None,
        }
    }

    /// Tokens that would have been sent, in observe mode.
    pub fn would_send(&self) -> Option<u64> {
        match self {
            Self::Observed { would_send } => Some(*would_send),
            _ => None,
        }
    }

    /// Whether the provider refused it as rewritten.
    pub fn has_given_up(&self) -> bool {
        matches!(self, Self::GivenUp(_))
    }

    /// Frees the body, which is not sent again.
    pub fn free(&mut self) {
        match self {
            Self::Replayed { body, .. } | Self::Decided { body: Some(body) } => *body = Bytes::new(),
            _ => {}
        }
    }
}
