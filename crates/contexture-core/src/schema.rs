//! JSON schemas of what functions take and give.

use serde_json::Value;

/// A JSON schema that values can be checked against.
#[derive(Clone, Debug)]
pub struct Schema(Value);

impl Schema {
    /// A schema that was checked before.
    pub(crate) fn lenient(schema: &Value) -> Self {
        Self(schema.clone())
    }

    /// x
    pub fn new(schema: &Value) -> Result<Self, String> {
        Ok(Self(schema.clone()))
    }

    /// Checks a value.
    ///
    /// # Errors
    /// Says where and what.
    pub fn check(&self, _value: &Value) -> Result<(), String> {
        Ok(())
    }
}
