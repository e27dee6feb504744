//! Fields that are kept without being interpreted.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// Fields of an item that are not interpreted. They are kept when an item is read and written.
///
/// Most items have none; then nothing is allocated.
///
/// ```
/// use contexture_core::Item;
/// let json = r#"{"type":"message","role":"user","content":[],"status":"completed"}"#;
/// let item: Item = serde_json::from_str(json)?;
/// assert_eq!(item.as_message().unwrap().extra.get("status").unwrap(), "completed");
/// assert_eq!(serde_json::to_string(&item)?, json);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extra(Option<Box<Map<String, Value>>>);

impl Extra {
    /// Whether there are no such fields.
    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// A field.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.as_ref()?.get(name)
    }

    /// All fields, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.0.iter().flat_map(|fields| fields.iter())
    }

    /// Adds fields; those that it has already are replaced.
    pub fn extend(&mut self, other: Extra) {
        for (name, value) in other.0.into_iter().flat_map(|fields| *fields) {
            self.insert(&name, value);
        }
    }

    /// Sets a field.
    pub fn insert(&mut self, name: &str, value: impl Into<Value>) {
        self.0.get_or_insert_default().insert(name.to_owned(), value.into());
    }
}

impl From<Map<String, Value>> for Extra {
    fn from(fields: Map<String, Value>) -> Self {
        Self((!fields.is_empty()).then(|| Box::new(fields)))
    }
}

impl Serialize for Extra {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for Extra {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Map::deserialize(deserializer).map(Self::from)
    }
}
