//! A value and where it came from.

use std::fmt;

use serde_json::Value;

use super::origin::SettingOrigin;
use super::row::SettingRow;

/// A value and where it came from. Its `Debug` does not show the value, which may be a key.
#[derive(Clone, PartialEq)]
pub struct Setting {
    /// The value.
    pub value: Value,
    /// Where it came from.
    pub origin: SettingOrigin,
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setting").field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// What one source says about a key. For a list of tables there is one for each entry.
#[derive(Clone, Debug)]
pub(super) struct SettingOfSource {
    pub(super) row: &'static SettingRow,
    pub(super) setting: Setting,
}
