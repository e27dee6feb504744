//! A stored folder: a small number of bytes from which, with the log, the folder is restored.

use std::fmt;
use std::sync::Arc;

use contexture_core::item::Item;
use thiserror::Error;

use super::billing::Billing;
use super::conversation::{ConversationItems, ItemSpeaker};
use super::fingerprint::Fingerprint;
use super::folder::Folder;
use super::shown::WindowContents;
use super::state::State;
use super::tuning::RECENT_MESSAGES;
use contexture_text::packed::{Damaged, Packer, Unpacker};

/// What the bytes begin with.
const MAGIC: [u8; 4] = *b"cxr\n";

/// The version in which folders are written. It changes whenever anything that is written does.
const VERSION: u8 = 8;

/// Bytes of the checksum over the others.
const CHECK_BYTES: usize = 16;

/// Bytes before the folder's own.
const HEAD_BYTES: usize = MAGIC.len() + 1 + CHECK_BYTES;

/// A folder at rest: a small snapshot from which the folder is restored, together with its log.
///
/// [`Folder::rest`] makes one, and [`Folder::wake`] restores a folder that continues as the original would have. It
/// holds what the folder knows and shows, and refers to the log for texts. So it is small, and useless without the log.
/// The bytes can be stored. If they are damaged, written by another version or about other items, they are refused and
/// the conversation is replayed instead.
///
/// ```
/// use std::sync::Arc;
/// use contexture_core::Item;
/// use contexture_fold::{Folder, Meter, Policy, Rest};
/// use contexture_core::tokens::Estimate;
///
/// let new_folder = || Folder::new(Policy::new(8_000), Meter::new(Arc::new(Estimate)));
/// let mut log = vec![(Arc::new(Item::user("hello")), 6)];
/// let mut folder = new_folder();
/// folder.push(log.clone());
/// folder.request();
/// let stored: Vec<u8> = folder.rest(&log)?.as_bytes().to_vec();
/// drop(folder);
///
/// // Later, the log has grown.
/// log.push((Arc::new(Item::assistant("Hello. What is to be done?")), 12));
/// let rest = Rest::from_bytes(stored)?;
/// let mut folder = new_folder().wake(&rest, &log)?;
/// folder.push(log[rest.len()..].iter().cloned());
/// assert_eq!(folder.request().len(), 2);
/// # Ok::<(), contexture_fold::RestError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Rest {
    bytes: Box<[u8]>,
    fingerprint: [u8; 32],
    len: usize,
}

/// Why a folder cannot be put to rest or restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum RestError {
    /// Another version of the program wrote it.
    #[error(
        "the folder at rest has version {0}, and this program reads version {VERSION}\n\
         hint: replay the conversation from its log and decisions"
    )]
    OtherVersion(u8),
    /// The bytes are not a folder at rest, or they were changed.
    #[error("the folder at rest is damaged\nhint: replay the conversation from its log and decisions")]
    Damaged,
    /// The items or their tokens differ from those that the folder took in.
    #[error("the folder took in other items than those of this log\nhint: replay the conversation from this log")]
    OtherItems,
}

impl From<Damaged> for RestError {
    fn from(Damaged: Damaged) -> Self {
        RestError::Damaged
    }
}

impl Rest {
    /// Reads a folder at rest that was stored.
    ///
    /// # Errors
    /// The bytes are damaged, or another version wrote them.
    pub fn from_bytes(bytes: impl Into<Box<[u8]>>) -> Result<Self, RestError> {
        let bytes = bytes.into();
        let version = *bytes.strip_prefix(&MAGIC).and_then(<[u8]>::first).ok_or(RestError::Damaged)?;
        if version != VERSION {
            return Err(RestError::OtherVersion(version));
        }
        let body = bytes.get(HEAD_BYTES..).ok_or(RestError::Damaged)?;
        if bytes[MAGIC.len() + 1..HEAD_BYTES] != check(body) {
            return Err(RestError::Damaged);
        }
        let mut unpacker = Unpacker::new(body, &[]);
        let (fingerprint, len) = (unpacker.raw()?, unpacker.number()?);
        Ok(Self { bytes, fingerprint, len })
    }

    /// The bytes, to be stored.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many items the folder took in.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it took in none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl fmt::Debug for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rest").field("bytes", &self.bytes.len()).field("len", &self.len).finish_non_exhaustive()
    }
}

fn check(body: &[u8]) -> [u8; CHECK_BYTES] {
    *blake3::hash(body).as_bytes().first_chunk().expect("a hash has 32 bytes")
}

impl Folder {
    /// Puts the folder to rest.
    ///
    /// `log` is the items that it took in with their tokens, in order; it may be longer. Decisions that were not yet
    /// [taken](Self::take_decisions) are not included.
    ///
    /// # Errors
    /// The folder took in other items.
    pub fn rest(&self, log: &[(Arc<Item>, u64)]) -> Result<Rest, RestError> {
        let State { conversation, knowledge, ledger, shown, billing } = &self.state;
        let (len, fingerprint) = (conversation.len(), conversation.fingerprint());
        let log = log.get(..len).filter(|log| fingerprint_of(log) == fingerprint).ok_or(RestError::OtherItems)?;
        let mut packer = Packer::new(log);
        let of_lines = knowledge.model().moments().into_iter().flat_map(|moment| conversation.positions_of(moment));
        for position in of_lines.chain(shown.shortened_positions()) {
            packer.quote_from(position);
        }
        packer.raw(&MAGIC);
        packer.raw(&[VERSION]);
        packer.raw(&[0; CHECK_BYTES]);
        packer.raw(&fingerprint);
        packer.number(len);
        conversation.rest(&mut packer);
        knowledge.rest(&mut packer);
        ledger.rest(&mut packer);
        shown.rest(&mut packer);
        billing.rest(&mut packer);
        let mut bytes = packer.into_bytes();
        let check = check(&bytes[HEAD_BYTES..]);
        bytes[MAGIC.len() + 1..HEAD_BYTES].copy_from_slice(&check);
        Ok(Rest { bytes: bytes.into(), fingerprint, len })
    }

    /// Restores a folder at rest into this one, which must be empty. From now on it does what that one would have done,
    /// under its own policy, with its own meter, dialects and tool.
    ///
    /// `log` is the items that the other one took in with their tokens, in order. If there are more, push those [after
    /// them](Rest::len) afterwards.
    ///
    /// # Errors
    /// The folder at rest is about other items, or it is damaged. With the log and the decisions, the conversation can
    /// be [replayed](super::Replay).
    pub fn wake(mut self, rest: &Rest, log: &[(Arc<Item>, u64)]) -> Result<Self, RestError> {
        let log = log.get(..rest.len).ok_or(RestError::OtherItems)?;
        let mut unpacker = Unpacker::new(&rest.bytes[HEAD_BYTES..], log);
        if unpacker.raw()? != rest.fingerprint || unpacker.number::<usize>()? != rest.len {
            return Err(RestError::Damaged);
        }
        let conversation = ConversationItems::wake(&mut unpacker, |tokens| self.settings.meter.text_in_item(tokens))?;
        if conversation.fingerprint() != rest.fingerprint {
            return Err(RestError::OtherItems);
        }
        self.state.conversation = conversation;
        self.state.knowledge.wake(&mut unpacker)?;
        self.state.ledger.wake(&mut unpacker)?;
        self.state.shown = WindowContents::wake(&mut unpacker)?;
        self.state.billing = Billing::wake(&mut unpacker)?;
        unpacker.finish()?;
        hear_again(&mut self.state, log);
        Ok(self)
    }
}

fn fingerprint_of(log: &[(Arc<Item>, u64)]) -> [u8; 32] {
    let mut fingerprint = Fingerprint::default();
    for (item, tokens) in log {
        fingerprint.add(item, *tokens);
    }
    fingerprint.to_bytes()
}

/// Restores when people spoke and what recent talk was about, from the log.
fn hear_again(state: &mut State, log: &[(Arc<Item>, u64)]) {
    let State { conversation, knowledge, .. } = state;
    let moment_of = |at: usize| conversation.messages_before(at) + 1;
    for at in (0..log.len()).filter(|at| conversation.speaker(*at).is_person()) {
        knowledge.hear_again(moment_of(at));
    }
    let now = conversation.now();
    let first = now.saturating_sub(RECENT_MESSAGES as u32) + 1;
    let mut recent = (0..log.len()).skip_while(|at| moment_of(*at) < first).peekable();
    for moment in first..=now {
        knowledge.begin_message();
        while let Some(at) = recent.next_if(|at| moment_of(*at) == moment) {
            if conversation.speaker(at) != ItemSpeaker::Program {
                knowledge.talk_again(&log[at].0);
            }
        }
    }
}

#[cfg(test)]
mod tests;
