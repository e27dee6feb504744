//! The version of a layer's state, as a field of it.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The newest version that a layer writes. Versions from 1 to it are read, and newer ones refused: such a state is kept
/// aside, and the layer starts fresh.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateVersion<const NEWEST: u32>;

impl<const NEWEST: u32> Serialize for StateVersion<NEWEST> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        NEWEST.serialize(serializer)
    }
}

impl<'de, const NEWEST: u32> Deserialize<'de> for StateVersion<NEWEST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match u32::deserialize(deserializer)? {
            version if (1..=NEWEST).contains(&version) => Ok(Self),
            version => Err(D::Error::custom(format!("it has version {version}, and this program knows {NEWEST}"))),
        }
    }
}
