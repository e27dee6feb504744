//! The index of known conversations, by which the one is found to which a request belongs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contexture::wire::{Digest, Plan, Request, WireError, raw_digest};

use crate::accept::incoming::RequestScope;
use crate::conversation::state::ConversationState;
use crate::conversation::{Beginning, Conversation, ConversationKey};
use crate::find::hashes::{ArrivingMessages, Hashing, MessageHashes};
use crate::write::Store;

/// Most conversations in memory.
const MAX_CONVERSATIONS: usize = 512;

/// Most folders in memory.
const MAX_FOLDERS: usize = 64;

/// Most conversations with the same beginning that are compared with a request.
const MAX_ALIKE: usize = 16;

/// All known conversations.
pub struct ConversationIndex {
    inner: Mutex<Inner>,
    store: Option<Arc<dyn Store>>,
    holdout: f64,
    hashing: Hashing,
}

#[derive(Default)]
struct Inner {
    /// Newest last.
    by_key: HashMap<ConversationKey, Vec<Arc<Conversation>>>,
    /// Least recently used first.
    order: Vec<Arc<Conversation>>,
}

/// The conversation with which a request shares the most messages.
struct Best {
    conversation: Arc<Conversation>,
    shared: usize,
    /// The generation of the conversation when it was compared.
    generation: u64,
}

/// The conversation of a request.
#[derive(Clone)]
pub struct FoundConversation {
    /// The conversation.
    pub conversation: Arc<Conversation>,
    /// How many messages of the request belong to it.
    pub messages: usize,
}

impl ConversationIndex {
    /// Creates a table with the conversations of a store, if there is one.
    pub fn new(store: Option<Arc<dyn Store>>, holdout: f64) -> Self {
        Self { inner: Mutex::default(), store, holdout, hashing: Hashing::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the conversation that the first messages of a request continue, or a new one, and adds them to it.
    ///
    /// # Errors
    /// The request cannot be parsed.
    pub fn take(
        &self,
        request: &Request<'_>,
        messages: usize,
        scope: &RequestScope,
    ) -> Result<FoundConversation, WireError> {
        let mut arriving = ArrivingMessages::new(request, messages, &self.hashing);
        let (key, scope) = (key_of(request, &scope.owner, &mut arriving)?, raw_digest(scope.session.as_bytes()));
        let mut best = self.best(key, scope, &mut arriving)?;
        let known = arriving.known()?;
        let conversation = loop {
            let Some(Best { conversation, shared, generation }) = best else {
                break self.begin(key, scope, request, known);
            };
            let mut state = conversation.state();
            if state.seen().generation() != generation {
                // Another request came in between and may have made it longer.
                drop(state);
                best = self.best(key, scope, &mut ArrivingMessages::new(request, messages, &self.hashing))?;
                continue;
            }
            let is_same = conversation.beginning().scope == scope;
            if is_same && shared == messages && state.decisions().points().contains(&messages) {
                // The client repeats a request, maybe an old one: there is nothing new in it.
                drop(state);
                break conversation;
            }
            if is_same && shared == state.seen().hashes().len() {
                state.seen_mut().replace(known);
                drop(state);
                break conversation;
            }
            let begun = state.branch(shared, known);
            drop(state);
            break self.branch(&conversation, scope, begun);
        };
        self.touch(&conversation);
        Ok(FoundConversation { conversation, messages })
    }

    /// Returns a conversation by its id, if it exists.
    pub fn find(&self, id: &str) -> Option<Arc<Conversation>> {
        let held = self.lock().order.iter().find(|conversation| &**conversation.id() == id).cloned();
        held.or_else(|| {
            let key = self.store.as_ref()?.key_of(id).ok()??;
            self.alike(key).into_iter().find(|conversation| &**conversation.id() == id)
        })
    }

    /// Returns the conversation of a session whose newest response has an id, if it is in memory.
    pub fn answered(&self, response: &str, scope: &RequestScope) -> Option<Arc<Conversation>> {
        let session = raw_digest(scope.session.as_bytes());
        let is_it = |conversation: &Arc<Conversation>| {
            conversation.beginning().scope == session && conversation.state().billed().answer_id() == Some(response)
        };
        let known = self.lock().order.clone();
        known.into_iter().rev().find(is_it)
    }

    /// The conversations in memory, least recently used first.
    pub fn all(&self) -> Vec<Arc<Conversation>> {
        self.lock().order.clone()
    }

    /// Adds a conversation, as the one that was used last.
    pub fn insert(&self, conversation: Conversation) {
        self.lock().insert(Arc::new(conversation));
    }

    /// Removes a conversation from memory. Returns whether it was there.
    pub fn forget(&self, id: &str) -> bool {
        let mut inner = self.lock();
        let Some(at) = inner.order.iter().position(|conversation| &**conversation.id() == id) else { return false };
        let conversation = inner.order.remove(at);
        inner.remove(&conversation);
        true
    }

    /// The plan of the conversation that shares the most messages with a request. Changes nothing.
    ///
    /// # Errors
    /// The request cannot be parsed.
    pub fn look(&self, request: &Request<'_>, scope: &RequestScope) -> Result<Option<Arc<Plan>>, WireError> {
        let mut arriving = ArrivingMessages::new(request, request.messages().len(), &self.hashing);
        let (key, scope) = (key_of(request, &scope.owner, &mut arriving)?, raw_digest(scope.session.as_bytes()));
        let best = self.best(key, scope, &mut arriving)?;
        Ok(best.map(|best| best.conversation.state().decisions().plan_for(best.shared)))
    }

    /// The conversation that shares the most messages with a request.
    fn best(
        &self,
        key: ConversationKey,
        scope: Digest,
        arriving: &mut ArrivingMessages<'_, '_>,
    ) -> Result<Option<Best>, WireError> {
        let mut best: Option<Best> = None;
        for conversation in self.alike(key) {
            let (shared, generation, goes_on) = {
                let state = conversation.state();
                let shared = arriving.shared_with(state.seen().hashes())?;
                let goes_on = shared == state.seen().hashes().len() && conversation.beginning().scope == scope;
                (shared, state.seen().generation(), goes_on)
            };
            let is_better = match &best {
                Some(best) => shared > best.shared || (shared == best.shared && goes_on),
                None => shared > 0,
            };
            if is_better {
                best = Some(Best { conversation, shared, generation });
            }
        }
        Ok(best)
    }

    /// Conversations with the same beginning, newest first.
    fn alike(&self, key: ConversationKey) -> Vec<Arc<Conversation>> {
        let held: Vec<_> = self.lock().by_key.get(&key).into_iter().flatten().rev().take(MAX_ALIKE).cloned().collect();
        let Some(store) = &self.store else { return held };
        let written = store.versions(key, MAX_ALIKE).unwrap_or_default();
        let is_current = |(id, version): &(String, u64)| {
            held.iter().any(|held| &**held.id() == id && held.state().stored().saved() >= *version)
        };
        if written.iter().all(is_current) {
            return held;
        }
        self.reread(&**store, key, &held);
        self.lock().by_key.get(&key).into_iter().flatten().rev().take(MAX_ALIKE).cloned().collect()
    }

    /// Loads what the store has and memory does not: after a restart, or because another gateway wrote it.
    fn reread(&self, store: &dyn Store, key: ConversationKey, held: &[Arc<Conversation>]) {
        let read = store.conversations(key, MAX_ALIKE).unwrap_or_default();
        for (beginning, state) in read.into_iter().rev() {
            let old = held.iter().find(|held| *held.id() == beginning.id);
            if old.is_some_and(|old| old.state().stored().saved() >= state.stored().saved()) {
                continue;
            }
            let mut inner = self.lock();
            if let Some(old) = old {
                inner.remove(old);
                inner.order.retain(|other| !Arc::ptr_eq(other, old));
            }
            inner.insert(Arc::new(Conversation::new(beginning, state)));
        }
    }

    fn branch(&self, parent: &Conversation, scope: Digest, state: ConversationState) -> Arc<Conversation> {
        let beginning = Beginning {
            id: fresh_id(),
            key: parent.beginning().key,
            scope,
            parent: Some(parent.id().clone()),
            format: parent.beginning().format,
            lead: parent.beginning().lead,
            is_held_out: parent.beginning().is_held_out,
        };
        let conversation = Arc::new(Conversation::new(beginning, state));
        self.lock().insert(conversation.clone());
        conversation
    }

    fn begin(
        &self,
        key: ConversationKey,
        scope: Digest,
        request: &Request<'_>,
        known: Vec<MessageHashes>,
    ) -> Arc<Conversation> {
        let id = fresh_id();
        let beginning = Beginning {
            is_held_out: share_of(&id) < self.holdout,
            id,
            key,
            scope,
            parent: None,
            format: request.format(),
            lead: request.leading_instructions(),
        };
        let conversation = Arc::new(Conversation::new(beginning, ConversationState::new(known)));
        self.lock().insert(conversation.clone());
        conversation
    }

    /// Marks a conversation as used, and evicts the least recently used ones.
    fn touch(&self, conversation: &Arc<Conversation>) {
        let mut inner = self.lock();
        inner.order.retain(|other| !Arc::ptr_eq(other, conversation));
        inner.order.push(conversation.clone());
        let surplus = inner.order.len().saturating_sub(MAX_CONVERSATIONS);
        let gone: Vec<_> = inner.order.drain(..surplus).collect();
        for conversation in &gone {
            inner.remove(conversation);
        }
        let with_folder: Vec<_> =
            inner.order.iter().filter(|conversation| conversation.has_folder()).cloned().collect();
        drop(inner);
        for conversation in &with_folder[..with_folder.len().saturating_sub(MAX_FOLDERS)] {
            conversation.evict_folder();
        }
    }
}

impl Inner {
    fn insert(&mut self, conversation: Arc<Conversation>) {
        self.by_key.entry(conversation.beginning().key).or_default().push(conversation.clone());
        self.order.push(conversation);
    }

    fn remove(&mut self, conversation: &Arc<Conversation>) {
        if let Some(alike) = self.by_key.get_mut(&conversation.beginning().key) {
            alike.retain(|other| !Arc::ptr_eq(other, conversation));
            if alike.is_empty() {
                self.by_key.remove(&conversation.beginning().key);
            }
        }
    }
}

/// The key under which a request's conversation is looked up.
fn key_of(
    request: &Request<'_>,
    owner: &str,
    arriving: &mut ArrivingMessages<'_, '_>,
) -> Result<ConversationKey, WireError> {
    // Leading instructions are often the same in all conversations; the message after them is not.
    let first = request.leading_instructions().min(arriving.len().saturating_sub(1));
    let begins = if arriving.is_empty() { raw_digest(b"") } else { arriving.plain(first)? };
    let owner = if owner.is_empty() { String::new() } else { format!("\n{owner}") };
    Ok(raw_digest(format!("{:?}\n{begins}{owner}", request.format()).as_bytes()))
}

/// A unique id for a conversation.
fn fresh_id() -> Arc<str> {
    let mut id = uuid::Uuid::now_v7().simple().to_string();
    // The start is the time and the end is random: still unique together, and short enough to type.
    id.replace_range(12..24, "");
    id.into()
}

/// Maps an id to a number between 0 and 1.
fn share_of(id: &str) -> f64 {
    let digest = raw_digest(id.as_bytes());
    f64::from(u16::from_le_bytes([digest.0[0], digest.0[1]])) / f64::from(u16::MAX)
}
