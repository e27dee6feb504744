//! A JSON object whose fields are known by name and keep their bytes and order.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::error::WireError;

/// The fields of an object, in order, as they were written.
#[derive(Clone, Debug, Default)]
pub(super) struct Fields<'a>(Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Fields<'a> {
    /// Reads an object.
    pub(super) fn parse(json: &'a str) -> Result<Self, WireError> {
        Ok(serde_json::from_str(json)?)
    }

    /// A field.
    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| *value)
    }

    /// A field that is a text.
    pub(super) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        text_of(self.get(name)?)
    }

    /// Whether a field is there and true.
    pub(super) fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.get() == "true")
    }

    /// Whether a name is there more than once, so that readers may disagree about what it holds.
    pub(super) fn has_twice(&self, name: &str) -> bool {
        self.0.iter().filter(|(key, _)| key == name).count() > 1
    }

    /// All fields but some, as values.
    pub(super) fn others(&self, known: &[&str]) -> Result<contexture_core::item::Extra, WireError> {
        let mut extra = contexture_core::item::Extra::default();
        for (name, value) in self.0.iter().filter(|(name, _)| !known.contains(&&**name)) {
            extra.insert(name, serde_json::from_str::<Value>(value.get())?);
        }
        Ok(extra)
    }

    /// The object without a field.
    pub(super) fn without(&self, name: &str) -> String {
        let mut json = String::from("{");
        for (key, value) in self.0.iter().filter(|(key, _)| key != name) {
            push_field(&mut json, key, value.get());
        }
        json.push('}');
        json
    }

    /// The object with one field replaced; at the end, if it was not there.
    pub(super) fn with(&self, name: &str, value: &str) -> String {
        let mut json = String::from("{");
        let mut is_in = false;
        for (key, old) in &self.0 {
            let is_it = key == name;
            if is_it && is_in {
                continue;
            }
            is_in |= is_it;
            push_field(&mut json, key, if is_it { value } else { old.get() });
        }
        if !is_in {
            push_field(&mut json, name, value);
        }
        json.push('}');
        json
    }
}

fn push_field(json: &mut String, name: &str, value: &str) {
    if json.len() > 1 {
        json.push(',');
    }
    json.push_str(&quoted(name));
    json.push(':');
    json.push_str(value);
}

/// A text as JSON.
pub(super) fn quoted(text: &str) -> String {
    serde_json::to_string(text).expect("a text is always JSON")
}

/// The text of a JSON string.
pub(super) fn text_of(raw: &RawValue) -> Option<Cow<'_, str>> {
    serde_json::from_str::<Text<'_>>(raw.get()).ok().map(|text| text.0)
}

/// A text, borrowed where it has no escapes.
#[derive(serde::Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl<'de: 'a, 'a> Deserialize<'de> for Fields<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct FieldsVisitor;
        impl<'de> Visitor<'de> for FieldsVisitor {
            type Value = Fields<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut fields = Vec::new();
                while let Some((Text(name), value)) = map.next_entry::<Text<'de>, &'de RawValue>()? {
                    fields.push((name, value));
                }
                Ok(Fields(fields))
            }
        }
        deserializer.deserialize_map(FieldsVisitor)
    }
}
