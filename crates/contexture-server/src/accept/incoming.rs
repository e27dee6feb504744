//! A request while the gateway decides about it: what was received, the progress, and what is sent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use contexture::fold::Prices;
use contexture::wire::Format;

use crate::account::models::{Asks, Known};
use crate::account::record::DecidedNote;
use crate::conversation::Conversation;
use crate::find::index::{FoundConversation, RequestScope};

/// A request as received.
#[derive(Clone)]
pub struct IncomingRequest {
    /// The body.
    pub body: Bytes,
    /// Its format.
    pub format: Format,
    /// Whose it is.
    pub scope: RequestScope,
    /// Whether it only asks for a token count.
    pub is_count: bool,
    /// Whether its headers say that the client is summarising the conversation.
    pub is_compaction: bool,
    /// What its headers say about the model's window.
    pub asks: Asks,
}

/// What is sent, and what is needed to bill it.
pub struct Ready {
    /// The body to send; `None` sends the received one.
    pub body: Option<Bytes>,
    /// The conversation.
    pub conversation: Option<Arc<Conversation>>,
    /// How many messages it has.
    pub messages: usize,
    /// The requested model.
    pub known: Known,
    /// The model's name as the client wrote it.
    pub model_name: String,
    /// The provider's prices for it.
    pub prices: Prices,
    /// Tokens sent, by our own count.
    pub sent_tokens: u64,
    /// Tokens received, by our own count.
    pub came_tokens: u64,
    /// Tokens that would have been sent, in observe mode.
    pub would_send: Option<u64>,
    /// Whether the provider refused the changed request, so that it was sent again unchanged.
    pub has_given_up: bool,
    /// Whether the decisions could not be written to the store.
    pub is_unsaved: bool,
    /// Why it is sent unchanged, or without new decisions.
    pub passed: Option<String>,
    /// The decisions that were made.
    pub decided: Vec<DecidedNote>,
}

/// The progress of a decision, shared with the task that waits for it.
#[derive(Default)]
pub struct Progress {
    found: Mutex<Option<FoundConversation>>,
    is_over: AtomicBool,
    /// Whether the request is forwarded unchanged, so that there is no conversation to find.
    is_passed: AtomicBool,
}

impl Progress {
    /// The conversation found so far, used to send its earlier decisions.
    pub fn take_found(&self) -> Option<FoundConversation> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Ends the waiting or the deciding. Returns whether the caller was the first to do so.
    pub fn end(&self) -> bool {
        !self.is_over.swap(true, Ordering::SeqCst)
    }

    /// Marks the request as forwarded unchanged.
    pub fn pass(&self) {
        self.is_passed.store(true, Ordering::SeqCst);
    }

    /// Whether the request is forwarded unchanged, so that there is no conversation to find.
    pub fn is_passed(&self) -> bool {
        self.is_passed.load(Ordering::SeqCst)
    }

    /// Sets the conversation of the request.
    pub fn note(&self, found: &FoundConversation) {
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(found.clone());
    }
}
