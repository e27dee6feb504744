//! The index of known conversations, by which the one is found to which a request belongs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contexture::wire::{Digest, Plan, Request, WireError, raw_digest};

use super::held::HeldConversations;
use crate::accept::incoming::RequestScope;
use crate::conversation::hashes::{ArrivingMessages, Hashing, MessageHashes};
use crate::conversation::state::ConversationState;
use crate::conversation::{Beginning, Conversation, ConversationKey};
use crate::write::Store;

/// How many of the conversations that were used last are read from the store if a request continues none: it may begin a
/// branch of one of them.
const NEWEST: usize = 16;

/// How often a conversation is read again because others went on with it meanwhile.
const MOST_READS: usize = 4;

/// All known conversations.
pub(crate) struct ConversationIndex {
    held: Mutex<HeldConversations>,
    store: Option<Arc<dyn Store>>,
    holdout: f64,
    /// Where the agents work.
    place: Option<Arc<str>>,
    hashing: Hashing,
}

/// The conversation with which a request shares the most messages.
struct Best {
    conversation: Arc<Conversation>,
    shared: usize,
    /// The generation of the conversation when it was compared.
    generation: u64,
    /// Whether the request is of the same session.
    is_same: bool,
    /// Whether the request has all its messages too.
    goes_on: bool,
    /// What the request is to it.
    relation: Relation,
}

/// What a request is to a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Relation {
    /// It continues it, and is of the same session.
    GoesOn,
    /// It was sent before.
    Repeats,
    /// It continues it, and the client has replaced outputs in its past.
    Rewrites,
    /// It begins with some of its messages.
    BranchesOff,
}

/// The conversation of a request.
#[derive(Clone)]
pub(crate) struct FoundConversation {
    /// The conversation.
    pub conversation: Arc<Conversation>,
    /// How many messages of the request belong to it.
    pub messages: usize,
    /// The messages that the client changed since the request before, in order. Of one that branches off, the first.
    pub rewritten: Vec<usize>,
    /// How often the client has changed its past by now.
    pub rewrites: u64,
}

impl ConversationIndex {
    /// Creates a table with the conversations of a store, if there is one.
    ///
    /// `place` is where the agents work, if it is known: what was added to a conversation of one place, such as its files
    /// and its memory, is for no other, even if a conversation there begins alike.
    pub fn new(store: Option<Arc<dyn Store>>, holdout: f64, place: Option<Arc<str>>) -> Self {
        Self { held: Mutex::default(), store, holdout, place, hashing: Hashing::default() }
    }

    fn lock(&self) -> MutexGuard<'_, HeldConversations> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
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
        let session = scope.session.clone();
        let (key, scope) = (self.key_of(request, &scope.owner, &mut arriving)?, raw_digest(scope.session.as_bytes()));
        let (mut best, is_searched) = self.best_of_all(key, scope, &mut arriving)?;
        let known = arriving.known()?;
        let (conversation, rewritten, rewrites) = loop {
            let Some(Best { conversation, shared, generation, relation, .. }) = best else {
                let begun = self.begin(key, (scope, &session), request, known);
                begun.state().stored().mark().note_searched(is_searched);
                break (begun, Vec::new(), 0);
            };
            let mut state = conversation.state();
            if state.seen().generation() != generation {
                // Another request came in between and may have made it longer.
                drop(state);
                best = self.best(key, scope, &mut arriving)?;
                continue;
            }
            let rewritten = match relation {
                // There is nothing new in it, even if it is an old one.
                Relation::Repeats => Vec::new(),
                Relation::GoesOn => {
                    if state.stored_mut().go_on() && !conversation.beginning().is_held_out {
                        let answered = arriving.answered_after(state.seen().hashes().len());
                        let points = state.decisions().points();
                        let unknown = answered.iter().filter(|messages| !points.contains(messages)).count();
                        state.stored_mut().note_unknown(unknown);
                    }
                    state.seen_mut().replace(known);
                    Vec::new()
                }
                Relation::Rewrites => {
                    let rewritten = changed(state.seen().hashes(), &known);
                    state.rewrite(known);
                    rewritten
                }
                Relation::BranchesOff => {
                    let begun = state.branch(shared, known);
                    begun.stored().mark().note_searched(is_searched);
                    drop(state);
                    break (self.branch(&conversation, scope, begun), vec![shared], 0);
                }
            };
            let rewrites = state.seen().rewrites();
            drop(state);
            break (conversation, rewritten, rewrites);
        };
        self.touch(&conversation, request.body().len());
        Ok(FoundConversation { conversation, messages, rewritten, rewrites })
    }

    /// The key under which conversations are that begin as a request does, with the same owner at the same place.
    fn key_of(
        &self,
        request: &Request<'_>,
        owner: &str,
        arriving: &mut ArrivingMessages<'_, '_>,
    ) -> Result<ConversationKey, WireError> {
        // Leading instructions are often the same in all conversations; the message after them is not.
        let first = request.leading_instructions().min(arriving.len().saturating_sub(1));
        let begins = if arriving.is_empty() { raw_digest(b"") } else { arriving.plain(first)? };
        let owner = if owner.is_empty() { String::new() } else { format!("\n{owner}") };
        let place = self.place.as_ref().map_or(String::new(), |place| format!("\0{place}"));
        Ok(raw_digest(format!("{:?}\n{begins}{owner}{place}", request.format()).as_bytes()))
    }

    /// Returns a conversation by its id, if it exists.
    pub fn find(&self, id: &str) -> Option<Arc<Conversation>> {
        let held = self.lock().get(id);
        held.or_else(|| {
            self.reread(&**self.store.as_ref()?, id);
            self.lock().get(id)
        })
    }

    /// Returns the conversation of a session whose newest response has an id, if it is in memory.
    pub fn answered(&self, response: &str, scope: &RequestScope) -> Option<Arc<Conversation>> {
        let session = raw_digest(scope.session.as_bytes());
        let is_it = |conversation: &Arc<Conversation>| {
            conversation.beginning().scope == session && conversation.state().billed().answer_id() == Some(response)
        };
        let newest_first = self.lock().newest_first();
        newest_first.into_iter().find(is_it)
    }

    /// The conversations in memory, least recently used first.
    pub fn all(&self) -> Vec<Arc<Conversation>> {
        let mut all = self.lock().newest_first();
        all.reverse();
        all
    }

    /// Adds a conversation, as the one that was used last.
    pub fn insert(&self, conversation: Conversation) {
        self.lock().insert(Arc::new(conversation));
    }

    /// Removes a conversation from memory. Returns whether it was there.
    pub fn forget(&self, id: &str) -> bool {
        self.lock().remove(id).is_some()
    }

    /// The plan of the conversation that shares the most messages with a request. Changes nothing.
    ///
    /// # Errors
    /// The request cannot be parsed.
    pub fn look(&self, request: &Request<'_>, scope: &RequestScope) -> Result<Option<Arc<Plan>>, WireError> {
        let mut arriving = ArrivingMessages::new(request, request.messages().len(), &self.hashing);
        let (key, scope) = (self.key_of(request, &scope.owner, &mut arriving)?, raw_digest(scope.session.as_bytes()));
        let (best, _) = self.best_of_all(key, scope, &mut arriving)?;
        Ok(best.map(|best| {
            let messages = if best.relation == Relation::Rewrites { arriving.len() } else { best.shared };
            best.conversation.state().decisions().plan_for(messages)
        }))
    }

    /// The conversation that shares the most messages with a request, in memory or in the store, and whether the store
    /// could be searched if that was necessary.
    fn best_of_all(
        &self,
        key: ConversationKey,
        scope: Digest,
        arriving: &mut ArrivingMessages<'_, '_>,
    ) -> Result<(Option<Best>, bool), WireError> {
        let Some(store) = &self.store else { return Ok((self.best(key, scope, arriving)?, true)) };
        let mut searched = None;
        for _ in 0..MOST_READS {
            let best = self.best(key, scope, arriving)?.filter(|best| best.relation != Relation::BranchesOff);
            let is_unsearched = best.as_ref().is_some_and(|best| is_unsearched(&best.conversation));
            match best {
                Some(best) if is_unsearched && searched == Some(true) => {
                    self.reconcile(&best.conversation, key, scope, arriving)?;
                }
                // If another gateway went on with it, it is longer there, or has branches.
                Some(best) if !(is_unsearched && searched.is_none()) => {
                    match is_current(&**store, &best.conversation) {
                        true => return Ok((Some(best), true)),
                        // What cannot be read is used as it is.
                        false => _ = self.reread(&**store, best.conversation.id()),
                    }
                }
                None if searched.is_some() => break,
                _ => {
                    let ends: Vec<Digest> = arriving.known()?.iter().map(|known| known.plain).collect();
                    searched = Some(self.read_candidates(&**store, key, &ends));
                }
            }
        }
        Ok((self.best(key, scope, arriving)?, searched != Some(false)))
    }

    /// Decides about a conversation that was begun while the store could not be read, now that it was: if the store has
    /// one that the request continues, that one goes on, as it does at other gateways.
    fn reconcile(
        &self,
        begun: &Arc<Conversation>,
        key: ConversationKey,
        scope: Digest,
        arriving: &mut ArrivingMessages<'_, '_>,
    ) -> Result<(), WireError> {
        self.forget(begun.id());
        let other = self.best(key, scope, arriving)?.filter(|other| other.relation != Relation::BranchesOff);
        if other.is_none_or(|other| is_unsearched(&other.conversation)) {
            begun.state().stored().mark().note_searched(true);
            self.lock().insert(begun.clone());
        }
        Ok(())
    }

    /// The conversation in memory that shares the most messages with a request.
    fn best(
        &self,
        key: ConversationKey,
        scope: Digest,
        arriving: &mut ArrivingMessages<'_, '_>,
    ) -> Result<Option<Best>, WireError> {
        let mut alike = self.lock().alike(key);
        let is_same = |conversation: &Arc<Conversation>| conversation.beginning().scope == scope;
        if !alike.iter().all(is_same) && !arriving.is_answered() {
            // A session that begins with the words of another one is no branch of it: it has its own files and memories.
            alike.retain(is_same);
        }
        let mut best: Option<Best> = None;
        for conversation in alike.into_iter().rev() {
            let is_same = is_same(&conversation);
            let state = conversation.state();
            let hashes = state.seen().hashes();
            if let Some(best) = &best
                && !may_be_better(best, hashes, is_same, arriving)?
            {
                continue;
            }
            let shared = arriving.shared_with(hashes)?;
            let goes_on = is_same && shared == hashes.len();
            if best.as_ref().map_or(shared > 0, |best| is_better(best, shared, is_same, goes_on)) {
                let is_repeated =
                    is_same && shared == arriving.len() && state.decisions().points().contains(&arriving.len());
                let relation = match () {
                    () if is_repeated => Relation::Repeats,
                    () if goes_on => Relation::GoesOn,
                    () => Relation::BranchesOff,
                };
                let generation = state.seen().generation();
                drop(state);
                best = Some(Best { conversation, shared, generation, is_same, goes_on, relation });
            }
        }
        match best {
            Some(best) if best.relation == Relation::BranchesOff => {
                let rewritten = self.rewritten(key, scope, arriving)?;
                Ok(Some(rewritten.unwrap_or(best)))
            }
            best => Ok(best),
        }
    }

    /// The conversation in memory that a request continues although the client has replaced outputs in its past. Of
    /// several, the one with the most messages that are as they were.
    fn rewritten(
        &self,
        key: ConversationKey,
        scope: Digest,
        arriving: &mut ArrivingMessages<'_, '_>,
    ) -> Result<Option<Best>, WireError> {
        let alike = self.lock().alike(key);
        let mut best: Option<(usize, Best)> = None;
        for conversation in alike.into_iter().rev().filter(|conversation| conversation.beginning().scope == scope) {
            let state = conversation.state();
            let hashes = state.seen().hashes();
            let Some(same) = arriving.same_but_for_outputs(hashes)? else { continue };
            if best.as_ref().is_none_or(|(most, _)| same > *most) {
                let (shared, generation) = (arriving.shared_with(hashes)?, state.seen().generation());
                drop(state);
                let relation = Relation::Rewrites;
                best = Some((same, Best { conversation, shared, generation, is_same: true, goes_on: true, relation }));
            }
        }
        Ok(best.map(|(_, best)| best))
    }

    /// Reads what the store has and memory does not: after a restart, or because another gateway wrote it. Returns
    /// whether all of it could be read.
    fn read_candidates(&self, store: &dyn Store, key: ConversationKey, ends: &[Digest]) -> bool {
        let Ok(candidates) = store.candidates(key, ends, NEWEST) else { return false };
        let mut is_read = true;
        for (id, version) in candidates {
            let held = self.lock().get(&id);
            if held.is_none_or(|held| is_outdated(&held, version)) {
                is_read &= self.reread(store, &id);
            }
        }
        is_read
    }

    /// Replaces a conversation in memory by what the store has. Returns whether the store could be read.
    fn reread(&self, store: &dyn Store, id: &str) -> bool {
        let found = store.conversation(id);
        let is_read = found.is_ok();
        if let Ok(Some((beginning, state))) = found {
            let mut held = self.lock();
            held.remove(id);
            held.insert(Arc::new(Conversation::new(beginning, state)));
        }
        is_read
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
        (scope, session): (Digest, &str),
        request: &Request<'_>,
        known: Vec<MessageHashes>,
    ) -> Arc<Conversation> {
        let id = fresh_id();
        let beginning = Beginning {
            is_held_out: share_of(session, &id) < self.holdout,
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

    /// Marks a conversation as used, and evicts the least recently used ones. `bytes` is the size of its request.
    fn touch(&self, conversation: &Arc<Conversation>, bytes: usize) {
        let evicted = self.lock().touch(conversation, bytes);
        self.evict_folders(evicted);
    }

    /// Evicts folders that were in use when their turn came. Called when a decision has been made, which may have taken
    /// longer than its request.
    pub fn settle(&self) {
        let leaving = self.lock().take_leaving();
        self.evict_folders(leaving);
    }

    fn evict_folders(&self, conversations: Vec<Arc<Conversation>>) {
        let in_use: Vec<_> = conversations.into_iter().filter(|conversation| !conversation.evict_folder()).collect();
        if !in_use.is_empty() {
            self.lock().keep_leaving(in_use);
        }
    }
}

/// Whether a conversation with these messages may share more than the best one so far, or be continued where that one is
/// not. Most conversations that begin alike differ in the message after what they share.
fn may_be_better(
    best: &Best,
    hashes: &[MessageHashes],
    is_same: bool,
    arriving: &mut ArrivingMessages<'_, '_>,
) -> Result<bool, WireError> {
    let shared = best.shared;
    match hashes.get(shared) {
        Some(_) if best.goes_on && !is_same => Ok(false),
        Some(next) => Ok(shared < arriving.len() && arriving.is_same(shared, next)?),
        None => Ok(is_same && !best.goes_on && (hashes.len() == shared || !best.is_same)),
    }
}

/// Whether a conversation that shares so much is better than the best one so far. The one that the session goes on with
/// is better than any of another session, even if the model has given the same answers there.
fn is_better(best: &Best, shared: usize, is_same: bool, goes_on: bool) -> bool {
    match goes_on && !best.goes_on {
        true => shared >= best.shared || !best.is_same,
        false => shared > best.shared && (is_same || !best.goes_on),
    }
}

/// The messages that are not what they were, in order.
fn changed(before: &[MessageHashes], now: &[MessageHashes]) -> Vec<usize> {
    let differs = |(_, (before, now)): &(usize, (&MessageHashes, &MessageHashes))| before.plain != now.plain;
    before.iter().zip(now).enumerate().filter(differs).map(|(at, _)| at).collect()
}

/// Whether what is in memory of a conversation is as new as what is in the store.
fn is_current(store: &dyn Store, conversation: &Conversation) -> bool {
    let (saved, is_overtaken) = {
        let state = conversation.state();
        (state.stored().saved(), state.stored().mark().is_overtaken())
    };
    let written = store.version(conversation.id()).ok().flatten();
    !is_overtaken && written.is_none_or(|version| version >= saved && !is_outdated(conversation, version))
}

/// Whether a conversation was begun while the store could not be read.
fn is_unsearched(conversation: &Conversation) -> bool {
    conversation.state().stored().mark().is_unsearched()
}

/// Whether the version of a conversation in the store was written by another gateway. What this gateway itself is
/// writing may be there already, but not yet known to be.
fn is_outdated(conversation: &Conversation, version: u64) -> bool {
    version > conversation.state().stored().version()
}

/// A unique id for a conversation.
fn fresh_id() -> Arc<str> {
    let mut id = uuid::Uuid::now_v7().simple().to_string();
    // The start is the time and the end is random: still unique together, and short enough to type.
    id.replace_range(12..24, "");
    id.into()
}

/// Maps a conversation to a number between 0 and 1: by a keyed hash of the client's session where it names one, so that an
/// agent and its helpers are in one group and stay there, otherwise by that of its id, which is random.
fn share_of(session: &str, id: &str) -> f64 {
    // What follows the slash tells the parts of a session apart.
    let session = session.split('/').next().unwrap_or_default();
    let key = blake3::derive_key("contexture-gateway 2026 conversations held out for comparison", b"");
    let hash = blake3::keyed_hash(&key, if session.is_empty() { id } else { session }.as_bytes());
    let bytes = hash.as_bytes();
    f64::from(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])) / (f64::from(u32::MAX) + 1.0)
}

#[cfg(test)]
mod tests {
    use super::share_of;

    #[test]
    fn a_session_is_in_one_group_with_its_helpers_and_shares_come_out_as_asked() {
        assert_eq!(share_of("s-1/agent-7", "a"), share_of("s-1/", "b"));
        assert_ne!(share_of("", "a"), share_of("", "b"));
        let held = (0..10_000).filter(|n| share_of(&format!("session {n}"), "x") < 0.1).count();
        assert!((850..1_150).contains(&held), "{held}");
    }
}
