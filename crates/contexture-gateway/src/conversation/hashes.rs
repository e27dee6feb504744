//! Hashes by which the messages of a request are recognised.

use std::hash::{BuildHasher, Hasher};
use std::num::NonZeroU64;

use contexture::wire::{Digest, Request, WireError, digests, read};
use foldhash::quality::RandomState;

/// The hashes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MessageHashes {
    /// The hash of its bytes as last received. `None` after a restart.
    pub raw: Option<RawHash>,
    /// The digest of its meaning, which does not depend on how it is written.
    pub plain: Digest,
    /// What it is without the outputs in it. `None` after a restart.
    pub shape: Option<Shape>,
}

impl MessageHashes {
    /// The hashes of a message of which only the digest is known.
    pub fn of_digest(plain: Digest) -> Self {
        Self { raw: None, plain, shape: None }
    }
}

/// A hash of a message without the outputs in it. It stays the same if the client replaces an output by a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape(NonZeroU64);

impl Shape {
    fn of(digest: Digest) -> Option<Self> {
        let [bytes, _] = digest.0.as_chunks::<8>().0 else { return None };
        NonZeroU64::new(u64::from_le_bytes(*bytes)).map(Self)
    }
}

/// A hash of bytes that is valid within one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RawHash([u64; 2]);

/// Hashes bytes with random keys, so that collisions cannot be constructed. Every request is hashed whole, and most of
/// its messages are too short for a digest to be fast.
#[derive(Default)]
pub(crate) struct Hashing([RandomState; 2]);

impl Hashing {
    fn hash(&self, bytes: &[u8]) -> RawHash {
        RawHash(self.0.each_ref().map(|state| {
            let mut hasher = state.build_hasher();
            hasher.write(bytes);
            hasher.finish()
        }))
    }
}

/// The messages of a request. Digests are computed only when needed, because most messages have the same bytes as in
/// the previous request.
pub(crate) struct ArrivingMessages<'r, 'a> {
    request: &'r Request<'a>,
    raw: Vec<RawHash>,
    plain: Vec<Option<(Digest, Option<Shape>)>>,
}

impl<'r, 'a> ArrivingMessages<'r, 'a> {
    /// Hashes the bytes of a request's first messages.
    pub fn new(request: &'r Request<'a>, messages: usize, hashing: &Hashing) -> Self {
        let messages = request.messages().iter().take(messages);
        let raw: Vec<RawHash> = messages.map(|message| hashing.hash(message.get().as_bytes())).collect();
        Self { request, plain: vec![None; raw.len()], raw }
    }

    /// The number of messages.
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// Whether there are no messages.
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// The digest of a message.
    pub fn plain(&mut self, at: usize) -> Result<Digest, WireError> {
        Ok(self.digests(at)?.0)
    }

    fn digests(&mut self, at: usize) -> Result<(Digest, Option<Shape>), WireError> {
        if let Some(known) = self.plain[at] {
            return Ok(known);
        }
        let (plain, empty) = digests(self.request.format(), self.request.messages()[at].get())?;
        let known = (plain, Shape::of(empty));
        self.plain[at] = Some(known);
        Ok(known)
    }

    /// Whether a message is the same as in another request.
    pub fn is_same(&mut self, at: usize, known: &MessageHashes) -> Result<bool, WireError> {
        if known.raw == Some(self.raw[at]) {
            self.plain[at] = Some((known.plain, known.shape));
            return Ok(true);
        }
        Ok(self.plain(at)? == known.plain)
    }

    /// How many leading messages are the same as in another request.
    pub fn shared_with(&mut self, known: &[MessageHashes]) -> Result<usize, WireError> {
        for (at, known) in known.iter().enumerate().take(self.len()) {
            if !self.is_same(at, known)? {
                return Ok(at);
            }
        }
        Ok(known.len().min(self.len()))
    }

    /// How many messages are the same as in another request if this one goes on from it with other outputs in its past:
    /// clients replace old outputs by notes. `None` if it does not.
    pub fn same_but_for_outputs(&mut self, known: &[MessageHashes]) -> Result<Option<usize>, WireError> {
        // What was new in the other request is not old yet.
        let Some((newest, older)) = known.split_last().filter(|_| known.len() <= self.len()) else { return Ok(None) };
        if !self.is_same(older.len(), newest)? {
            return Ok(None);
        }
        let mut same = 1;
        for (at, known) in older.iter().enumerate() {
            if self.is_same(at, known)? {
                same += 1;
            } else if known.shape.is_none() || self.digests(at)?.1 != known.shape {
                return Ok(None);
            }
        }
        Ok(Some(same))
    }

    /// Whether the model has said anything in them.
    pub fn is_answered(&self) -> bool {
        let mut messages = self.request.messages().iter().take(self.len());
        messages.any(|message| {
            // What cannot be read is no beginning.
            let units = read(self.request.format(), message, None);
            units.map_or(true, |units| units.iter().any(|unit| unit.item.is_of_model()))
        })
    }

    /// The numbers of messages before each answer of the model, from one message on: requests of so many were answered.
    pub fn answered_after(&self, first: usize) -> Vec<usize> {
        let is_answer = |at: &usize| {
            let message = self.request.messages().get(*at).filter(|_| *at < self.len());
            let units = message.and_then(|message| read(self.request.format(), message, None).ok());
            units.is_some_and(|units| units.iter().any(|unit| unit.item.is_of_model()))
        };
        (first..self.len())
            .filter(|at| is_answer(at) && !at.checked_sub(1).is_some_and(|before| is_answer(&before)))
            .collect()
    }

    /// The hashes of all messages.
    pub fn known(&mut self) -> Result<Vec<MessageHashes>, WireError> {
        let count = self.raw.len();
        let hashes = |at| {
            let (plain, shape) = self.digests(at)?;
            Ok(MessageHashes { raw: Some(self.raw[at]), plain, shape })
        };
        (0..count).map(hashes).collect()
    }
}
