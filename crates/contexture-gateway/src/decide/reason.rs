//! Why a request is sent as it came, or without new decisions.

use contexture::wire::WireError;
use thiserror::Error;

use crate::accept::coding::Unread;
use crate::conversation::health::StopReason;

/// Why a request is sent as it came, or without new decisions. Records and receipts have it as its text.
#[derive(Debug, Error)]
pub(crate) enum PassReason {
    /// Its body cannot be read.
    #[error(transparent)]
    Unread(Unread),
    /// Its body is not UTF-8.
    #[error("the request is no text")]
    NoText,
    /// It is not understood.
    #[error(transparent)]
    Misread(WireError),
    /// It only asks for a count.
    #[error("a count of tokens")]
    Count,
    /// Its conversation is passed through, so that others can be compared with it.
    #[error("held out for comparison")]
    HeldOut,
    /// Its history is with the provider.
    #[error("its history is with the provider (`previous_response_id`), so there is nothing to fold")]
    Elsewhere,
    /// A user paused the gateway.
    #[error("the gateway is paused")]
    Paused,
    /// The client summarises the conversation.
    #[error("the client sums up the conversation by itself")]
    SummedUp,
    /// The client asks the provider to edit the window.
    #[error("the client asks the provider to edit the window, so nothing is folded beside it")]
    TheirEdits,
    /// The provider has compacted the conversation.
    #[error("the provider has compacted the conversation, so nothing is folded beside it")]
    Compacted,
    /// Its signature covers its body.
    #[error("its signature (SigV4) covers its body, so it cannot be changed; with an API key of Bedrock it could be")]
    Signed,
    /// It was sent before.
    #[error("the client repeats it")]
    Repeated,
    /// A decision that took long came after that of the next request.
    #[error("a later request was decided before it")]
    LaterFirst,
    /// Nothing more is decided about its conversation.
    #[error("{0}")]
    Stopped(StopReason),
    /// The result of a decision cannot be written.
    #[error("what was decided cannot be written: {0}")]
    Unwritable(WireError),
    /// The earlier decisions do not fit it.
    #[error("{why}; {error}")]
    Unfit {
        /// Why nothing new was decided.
        why: Box<Self>,
        /// Why the earlier decisions do not fit.
        error: WireError,
    },
    /// Another gateway continued the conversation meanwhile.
    #[error("another gateway went on with the conversation meanwhile")]
    Overtaken,
    /// There was no time.
    #[error("deciding took too long")]
    TooLong,
    /// The gateway has a fault.
    #[error("something went wrong inside the gateway")]
    WentWrong,
    /// The provider refused it as rewritten, and accepted it as it came.
    #[error("the provider refused the rewritten request, so it was sent again as it came")]
    Refused,
    /// The provider refused it in both forms, for the same reason.
    #[error("the provider refused it, as it came for the same reason as rewritten")]
    RefusedAlike,
    /// The provider refused it as rewritten, and did not accept it as it came.
    #[error("the provider refused the rewritten request, and did not accept it as it came")]
    NotAccepted,
}
