//! Hashes by which the messages of a request are recognised.

use std::hash::{BuildHasher, Hasher};

use contexture::wire::{Digest, Request, WireError, digest};
use foldhash::quality::RandomState;

/// The hashes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHashes {
    /// The hash of its bytes as last received. `None` after a restart.
    pub raw: Option<RawHash>,
    /// The digest of its meaning, which does not depend on how it is written.
    pub plain: Digest,
}

/// A hash of bytes that is valid within one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawHash([u64; 2]);

/// Hashes bytes with random keys, so that collisions cannot be constructed. Every request is hashed whole, and most of
/// its messages are too short for a digest to be fast.
#[derive(Default)]
pub struct Hashing([RandomState; 2]);

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
pub struct ArrivingMessages<'r, 'a> {
    request: &'r Request<'a>,
    raw: Vec<RawHash>,
    plain: Vec<Option<Digest>>,
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
        if let Some(plain) = self.plain[at] {
            return Ok(plain);
        }
        let plain = digest(self.request.format(), self.request.messages()[at].get())?;
        self.plain[at] = Some(plain);
        Ok(plain)
    }

    /// Whether a message is the same as in another request.
    pub fn is_same(&mut self, at: usize, known: &MessageHashes) -> Result<bool, WireError> {
        if known.raw == Some(self.raw[at]) {
            self.plain[at] = Some(known.plain);
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

    /// The hashes of all messages.
    pub fn known(&mut self) -> Result<Vec<MessageHashes>, WireError> {
        let count = self.raw.len();
        (0..count).map(|at| Ok(MessageHashes { raw: Some(self.raw[at]), plain: self.plain(at)? })).collect()
    }
}
