//! The messages of a request, by what they are recognised.

use std::hash::{BuildHasher, Hasher};

use contexture::wire::{Digest, Request, WireError, digest};
use foldhash::quality::RandomState;

/// By what a message is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its bytes, as they were last sent. Unknown after a restart.
    pub raw: Option<RawHash>,
    /// What it comes to, however it is written.
    pub plain: Digest,
}

/// By what bytes are recognised for as long as the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawHash([u64; 2]);

/// Hashes bytes in a way that nobody outside can foresee. Every request is hashed whole, and most of its messages are
/// too short for a digest to be fast.
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

/// The messages of a request. What they come to is found out as far as it is needed: most bytes are those of the
/// request before.
pub struct Arriving<'r, 'a> {
    request: &'r Request<'a>,
    raw: Vec<RawHash>,
    plain: Vec<Option<Digest>>,
}

impl<'r, 'a> Arriving<'r, 'a> {
    /// Looks at the bytes of a request's messages.
    pub fn new(request: &'r Request<'a>, hashing: &Hashing) -> Self {
        let raw: Vec<RawHash> =
            request.messages().iter().map(|message| hashing.hash(message.get().as_bytes())).collect();
        Self { request, plain: vec![None; raw.len()], raw }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.raw.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.raw.is_empty()
    }

    /// What a message comes to.
    pub fn plain(&mut self, at: usize) -> Result<Digest, WireError> {
        if let Some(plain) = self.plain[at] {
            return Ok(plain);
        }
        let plain = digest(self.request.format(), self.request.messages()[at].get())?;
        self.plain[at] = Some(plain);
        Ok(plain)
    }

    /// How many messages at the start are those of another request.
    pub fn shared_with(&mut self, known: &[Known]) -> Result<usize, WireError> {
        for (at, known) in known.iter().enumerate().take(self.len()) {
            if known.raw == Some(self.raw[at]) {
                self.plain[at] = Some(known.plain);
            } else if self.plain(at)? != known.plain {
                return Ok(at);
            }
        }
        Ok(known.len().min(self.len()))
    }

    /// All messages.
    pub fn known(mut self) -> Result<Vec<Known>, WireError> {
        let raw = std::mem::take(&mut self.raw);
        raw.into_iter().enumerate().map(|(at, raw)| Ok(Known { raw: Some(raw), plain: self.plain(at)? })).collect()
    }
}
