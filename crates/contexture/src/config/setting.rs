//! A value and where it came from.

use serde_json::Value;

use super::origin::Origin;
use super::row::Row;

/// A value and where it came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The value.
    pub value: Value,
    /// Where it came from.
    pub origin: Origin,
}

/// What one source says about a key. For a list of tables there is one for each entry.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) row: &'static Row,
    pub(super) setting: Setting,
}
