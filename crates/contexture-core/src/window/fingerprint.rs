//! Fingerprints of texts that, unlike the standard hasher's, are the same on every machine and in every version.

use std::sync::Arc;

use crate::item::Item;

/// The fingerprint of items: 64-bit FNV-1a of their JSON.
pub(super) fn fingerprint_items(items: &[Arc<Item>]) -> u64 {
    let mut hash = Fnv::default();
    for item in items {
        // Writing into a hash cannot fail, and items can always be serialised.
        let _ = serde_json::to_writer(&mut hash, &**item);
    }
    hash.0
}

/// The fingerprint of texts.
pub(crate) fn fingerprint_text<'a>(texts: impl IntoIterator<Item = &'a str>) -> u64 {
    let mut hash = Fnv::default();
    for text in texts {
        hash.add(text.as_bytes());
        // A byte that never occurs in UTF-8 separates the texts.
        hash.add(&[0xff]);
    }
    hash.0
}

struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

impl std::io::Write for Fnv {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.add(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
