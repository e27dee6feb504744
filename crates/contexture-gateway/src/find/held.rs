//! The conversations in memory, and which of them are kept.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use crate::conversation::{Conversation, ConversationKey};

/// Most conversations in memory.
const MAX_CONVERSATIONS: usize = 12_000;

/// Most bytes of them, about: below what ten thousand may take at rest.
const MAX_BYTES: usize = 64 << 20;

/// Uses of conversations between two looks at their size.
const USES_PER_LOOK: u64 = 256;

/// The share of conversations that is evicted at once.
const EVICTED: usize = 8;

/// Most folders in memory: more than an agent with its helpers has streams. With fewer than there are streams, each
/// request would find that its folder was just evicted.
const MAX_FOLDERS: usize = 512;

/// Conversations that are kept, however many bytes they have.
const LEAST_KEPT: usize = 64;

/// Most bytes of the requests that folders in memory are of. A folder takes several times as much, and a hundred streams
/// of 120 kB each have half of this.
const MAX_FOLDER_BYTES: usize = 24 << 20;

/// The conversations in memory.
#[derive(Default)]
pub(super) struct HeldConversations {
    /// Newest last.
    by_key: HashMap<ConversationKey, Vec<Arc<Conversation>>>,
    by_id: HashMap<Arc<str>, UsedConversation>,
    /// Those whose folders may be in memory, each with the size of its request, least recently used first.
    folders: VecDeque<(Arc<Conversation>, usize)>,
    /// Those whose folders were in use when they were to be evicted.
    leaving: Vec<Arc<Conversation>>,
    uses: u64,
}

struct UsedConversation {
    conversation: Arc<Conversation>,
    /// When it was used last.
    at: u64,
}

impl HeldConversations {
    /// The conversations with the same beginning, newest last.
    pub(super) fn alike(&self, key: ConversationKey) -> Vec<Arc<Conversation>> {
        self.by_key.get(&key).cloned().unwrap_or_default()
    }

    /// A conversation by its id.
    pub(super) fn get(&self, id: &str) -> Option<Arc<Conversation>> {
        self.by_id.get(id).map(|used| used.conversation.clone())
    }

    /// All conversations, most recently used first.
    pub(super) fn newest_first(&self) -> Vec<Arc<Conversation>> {
        let mut all: Vec<&UsedConversation> = self.by_id.values().collect();
        all.sort_unstable_by_key(|used| std::cmp::Reverse(used.at));
        all.into_iter().map(|used| used.conversation.clone()).collect()
    }

    /// Adds a conversation.
    pub(super) fn insert(&mut self, conversation: Arc<Conversation>) {
        self.by_key.entry(conversation.beginning().key).or_default().push(conversation.clone());
        self.uses += 1;
        self.by_id.insert(conversation.id().clone(), UsedConversation { conversation, at: self.uses });
    }

    /// Removes a conversation.
    pub(super) fn remove(&mut self, id: &str) -> Option<Arc<Conversation>> {
        let UsedConversation { conversation, .. } = self.by_id.remove(id)?;
        self.remove_all(std::slice::from_ref(&conversation));
        Some(conversation)
    }

    fn remove_all(&mut self, gone: &[Arc<Conversation>]) {
        let ids: HashSet<&str> = gone.iter().map(|conversation| &**conversation.id()).collect();
        let keys: HashSet<ConversationKey> = gone.iter().map(|conversation| conversation.beginning().key).collect();
        for key in keys {
            let Some(alike) = self.by_key.get_mut(&key) else { continue };
            alike.retain(|other| !ids.contains(&**other.id()));
            if alike.is_empty() {
                self.by_key.remove(&key);
            }
        }
        self.folders.retain(|(other, _)| !ids.contains(&**other.id()));
    }

    /// Marks a conversation as used by a request of this size. Returns those whose folders are to be evicted.
    pub(super) fn touch(&mut self, conversation: &Arc<Conversation>, bytes: usize) -> Vec<Arc<Conversation>> {
        self.uses += 1;
        if let Some(used) = self.by_id.get_mut(conversation.id()) {
            used.at = self.uses;
        }
        self.folders.retain(|(other, _)| !Arc::ptr_eq(other, conversation));
        self.leaving.retain(|other| !Arc::ptr_eq(other, conversation));
        self.folders.push_back((conversation.clone(), bytes));
        let mut evicted = Vec::new();
        let mut total: usize = self.folders.iter().map(|(_, bytes)| bytes).sum();
        while self.folders.len() > 1 && (self.folders.len() > MAX_FOLDERS || total > MAX_FOLDER_BYTES) {
            let Some((conversation, bytes)) = self.folders.pop_front() else { break };
            total -= bytes;
            evicted.push(conversation);
        }
        if self.by_id.len() > MAX_CONVERSATIONS || self.uses.is_multiple_of(USES_PER_LOOK) {
            self.evict();
        }
        evicted
    }

    /// Notes that the folders of conversations are still in use.
    pub(super) fn keep_leaving(&mut self, conversations: Vec<Arc<Conversation>>) {
        self.leaving.extend(conversations);
    }

    /// Takes the conversations whose folders are to be evicted as soon as they are not in use.
    pub(super) fn take_leaving(&mut self) -> Vec<Arc<Conversation>> {
        std::mem::take(&mut self.leaving)
    }

    /// Removes the least recently used conversations if there are too many, or if they are too large.
    fn evict(&mut self) {
        let oldest_first: Vec<_> = self.newest_first().into_iter().rev().collect();
        let mut bytes: usize = oldest_first.iter().map(|conversation| conversation.bytes()).sum();
        let mut count = oldest_first.len();
        if count <= MAX_CONVERSATIONS && bytes <= MAX_BYTES {
            return;
        }
        let (most, most_bytes) = (MAX_CONVERSATIONS - MAX_CONVERSATIONS / EVICTED, MAX_BYTES - MAX_BYTES / EVICTED);
        let mut gone = Vec::new();
        for conversation in oldest_first {
            if count <= most && (bytes <= most_bytes || count <= LEAST_KEPT) {
                break;
            }
            (count, bytes) = (count - 1, bytes - conversation.bytes().min(bytes));
            self.by_id.remove(conversation.id());
            gone.push(conversation);
        }
        self.remove_all(&gone);
    }
}
