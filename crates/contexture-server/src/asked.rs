//! A request that is decided about: what came, how far that is, and what is sent.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use contexture::fold::Prices;
use contexture::wire::Format;

use crate::conversation::Conversation;
use crate::models::Model;
use crate::record::DecidedNote;
use crate::table::Found;

/// What came.
#[derive(Clone)]
pub struct Asked {
    /// The body as it came.
    pub body: Bytes,
    /// How it is written.
    pub format: Format,
    /// The client's session, as far as its headers tell.
    pub scope: String,
    /// Whether it only asks for a count of tokens.
    pub is_count: bool,
    /// Whether its headers say that the client sums up the conversation.
    pub is_compaction: bool,
}

/// What is sent, and what is needed to bill it.
pub struct Ready {
    /// The body that is sent; as it came, if `None`.
    pub body: Option<Bytes>,
    /// The conversation.
    pub conversation: Option<Arc<Conversation>>,
    /// How many messages it has.
    pub messages: usize,
    /// The model that is asked.
    pub model: Model,
    /// The model's name as the client wrote it.
    pub model_name: String,
    /// The provider's prices for it.
    pub prices: Prices,
    /// Tokens that are sent, by our own count.
    pub sent_tokens: u64,
    /// Tokens that came, by our own count.
    pub came_tokens: u64,
    /// Tokens that would have been sent, where everything is only watched.
    pub would_send: Option<u64>,
    /// Whether it was sent as it came after the provider refused what was made of it.
    pub has_given_up: bool,
    /// Whether what was decided could not be written.
    pub is_unsaved: bool,
    /// Why it is sent as it came.
    pub passed: Option<String>,
    /// What was decided.
    pub decided: Vec<DecidedNote>,
}

/// How far a decision is, for whoever waits for it.
#[derive(Default)]
pub struct Progress {
    found: Mutex<Option<Found>>,
    is_over: AtomicBool,
    /// Whether there is nothing to find.
    is_passed: AtomicBool,
}

impl Progress {
    /// What was found so far, for sending what was decided before.
    pub fn take_found(&self) -> Option<Found> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Ends waiting or deciding, whichever is first. Returns whether this was first.
    pub fn end(&self) -> bool {
        !self.is_over.swap(true, Ordering::SeqCst)
    }

    /// Says that the request passes.
    pub fn pass(&self) {
        self.is_passed.store(true, Ordering::SeqCst);
    }

    /// Whether the request passes, so that there is nothing to find.
    pub fn is_passed(&self) -> bool {
        self.is_passed.load(Ordering::SeqCst)
    }

    /// Notes the conversation of the request.
    pub fn note(&self, found: &Found) {
        let found = Found { conversation: found.conversation.clone(), plan: found.plan.clone() };
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
    }
}
