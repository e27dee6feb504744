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
    #[error("its history is with the provider (`previous_response_id` or `conversation`), so there is nothing to fold")]
    Elsewhere,
    /// Its history is with the provider, in a thread.
    #[error(
        "its history is with the provider (`thread`), so there is nothing to save; the agent sends it whole where message \
         threads are switched off"
    )]
    Thread,
    /// A user paused the gateway.
    #[error("the gateway is paused")]
    Paused,
    /// It is no conversation.
    #[error("the client asks something about a conversation, beside it")]
    Aside,
    /// The client summarises the conversation.
    #[error("the client sums up the conversation by itself")]
    SummedUp,
    /// The client summarises the conversation, of which the whole does not fit.
    #[error(
        "the client sums up the conversation by itself; as a whole it does not fit the model's window, so the summary is \
         of what was folded before"
    )]
    SummedUpFolded,
    /// The client asks the provider to edit the window.
    #[error("the client asks the provider to edit the window, so nothing is folded beside it")]
    TheirEdits,
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
    /// So much waits to be written that a decision could be lost.
    #[error("the store cannot be written as fast as requests come, so nothing new was decided")]
    StoreFull,
    /// There was no time.
    #[error("deciding took too long")]
    TooLong,
    /// There was no time, and it is above its budget.
    #[error("deciding took too long, so it is above its budget; the next one is folded")]
    TooLongAbove,
    /// There was no time, and it was far above its budget.
    #[error(
        "deciding took too long, and it was far above its budget, so only the newest of it and what people said was sent"
    )]
    Plain,
    /// The gateway has a fault.
    #[error("something went wrong inside the gateway")]
    WentWrong,
    /// The provider refused the newest fold, and accepted what it had accepted before.
    #[error("the provider refused the newest fold, so what it had accepted before was sent with the new messages")]
    FoldRefused,
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

impl PassReason {
    /// Whether the client summarises the conversation.
    pub fn is_summing_up(&self) -> bool {
        matches!(self, Self::SummedUp | Self::SummedUpFolded)
    }
}
