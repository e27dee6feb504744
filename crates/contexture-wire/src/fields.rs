//! A JSON object whose fields are known by name and keep their bytes and order.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
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

    /// The number of fields.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// A field.
    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| *value)
    }

    /// The fields, in order, each with its JSON.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|(name, value)| (&**name, value.get()))
    }

    /// A field that is a text.
    pub(super) fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        text_of(self.get(name)?)
    }

    /// Whether it is a message of whoever runs the agent, not of the person or the model.
    pub(super) fn is_instruction(&self) -> bool {
        matches!(self.text("role").as_deref(), Some("system" | "developer"))
    }

    /// Whether a field is there and true.
    pub(super) fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|value| value.get() == "true")
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
        Ok(ListedIn("").deserialize(deserializer)?.fields)
    }
}

/// The fields of an object of which one is a list, read in one pass: requests are large.
pub(super) struct FieldsWithLists<'a> {
    /// All fields but the list.
    pub(super) fields: Fields<'a>,
    /// The elements of the list, for each time that the field is there; `None` where it is no list.
    pub(super) lists: Vec<Option<Vec<&'a RawValue>>>,
}

impl<'a> FieldsWithLists<'a> {
    /// Reads an object with a list under a name.
    pub(super) fn parse(json: &'a str, list: &'static str) -> Result<Self, WireError> {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let listed = ListedIn(list).deserialize(&mut deserializer)?;
        deserializer.end()?;
        Ok(listed)
    }
}

/// Reads an object with a list under this name.
struct ListedIn(&'static str);

impl<'de> DeserializeSeed<'de> for ListedIn {
    type Value = FieldsWithLists<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for ListedIn {
    type Value = FieldsWithLists<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut listed = FieldsWithLists { fields: Fields::default(), lists: Vec::new() };
        while let Some(Text(name)) = map.next_key::<Text<'de>>()? {
            match !self.0.is_empty() && name == self.0 {
                true => listed.lists.push(map.next_value::<MaybeList<'de>>()?.0),
                false => listed.fields.0.push((name, map.next_value()?)),
            }
        }
        Ok(listed)
    }
}

/// The elements of a list; nothing of any other value.
struct MaybeList<'a>(Option<Vec<&'a RawValue>>);

impl<'de: 'a, 'a> Deserialize<'de> for MaybeList<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor;
        impl<'de> Visitor<'de> for ListVisitor {
            type Value = MaybeList<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut elements = Vec::new();
                while let Some(element) = list.next_element::<&'de RawValue>()? {
                    elements.push(element);
                }
                Ok(MaybeList(Some(elements)))
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(MaybeList(None))
            }

            fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
                Ok(MaybeList(None))
            }

            fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
                Ok(MaybeList(None))
            }

            fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
                Ok(MaybeList(None))
            }

            fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
                Ok(MaybeList(None))
            }

            fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
                Ok(MaybeList(None))
            }

            fn visit_unit<E>(self) -> Result<Self::Value, E> {
                Ok(MaybeList(None))
            }
        }
        deserializer.deserialize_any(ListVisitor)
    }
}
