//! A hash that is stored.

/// A hash of 52 bits that is stored in names and tombstones, and so must never change: FNV-1a, mixed once more.
pub(crate) fn stable_hash(parts: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in parts.iter().flat_map(|part| part.bytes().chain([0])) {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    hash ^= hash >> 33;
    hash = hash.wrapping_mul(0xff51_afd7_ed55_8ccd);
    (hash ^ (hash >> 33)) >> 12
}
