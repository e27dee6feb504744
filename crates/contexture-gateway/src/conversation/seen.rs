//! What was seen of a conversation: the messages of its newest request.

use contexture::wire::Digest;

use crate::conversation::hashes::MessageHashes;

/// The messages of a conversation's newest request, as their hashes.
#[derive(Clone, Debug, Default)]
pub(crate) struct SeenMessages {
    hashes: Vec<MessageHashes>,
    /// How often the messages changed.
    generation: u64,
    /// How often the client changed messages that it had sent before.
    rewrites: u64,
}

impl SeenMessages {
    /// The messages of a first request.
    pub fn new(hashes: Vec<MessageHashes>) -> Self {
        Self { hashes, ..Self::default() }
    }

    /// Reads what [`to_bytes`](Self::to_bytes) returned.
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let digests = bytes.as_chunks::<16>().0.iter();
        Self::new(digests.map(|plain| MessageHashes::of_digest(Digest(*plain))).collect())
    }

    /// The digests of the messages, 16 bytes each.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.hashes.iter().flat_map(|hashes| hashes.plain.0).collect()
    }

    /// The hashes, by message.
    pub fn hashes(&self) -> &[MessageHashes] {
        &self.hashes
    }

    /// A number that changes whenever the messages do.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// How often the client changed messages that it had sent before. What was made of the messages before is outdated.
    pub fn rewrites(&self) -> u64 {
        self.rewrites
    }

    /// Replaces the messages by those of a newer request.
    pub fn replace(&mut self, hashes: Vec<MessageHashes>) {
        self.hashes = hashes;
        self.generation += 1;
    }

    /// Replaces the messages by those of a newer request in which some of them are changed.
    pub fn rewrite(&mut self, hashes: Vec<MessageHashes>) {
        self.replace(hashes);
        self.rewrites += 1;
    }
}
