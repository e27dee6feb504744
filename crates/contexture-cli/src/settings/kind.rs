//! What kind of value a key has: what is accepted, and how to say what is wanted.

use serde_json::{Value, json};
use toml::de::DeValue;

/// Takes the place of a secret.
const NOT_SHOWN: &str = "(not shown)";

/// What kind of value a key has.
#[derive(Clone, Copy, Debug)]
pub enum ValueKind {
    /// Any text.
    Text,
    /// A text that is not blank.
    Name,
    /// A text that is not blank, and is never shown.
    Secret,
    /// `true` or `false`.
    Switch,
    /// A whole number.
    Whole {
        /// The least that is accepted.
        min: i64,
        /// The most that is accepted.
        max: i64,
        /// What is counted, as in `tokens`; may be empty.
        unit: &'static str,
    },
    /// A number, with or without a fraction.
    Number {
        /// The least that is accepted.
        min: f64,
        /// The most that is accepted.
        max: f64,
    },
    /// One of a few words.
    Choice(&'static [Choice]),
    /// A list of texts.
    Texts,
    /// A list of texts like `NAME=value`, of which the values are never shown.
    Variables,
    /// Tables in a list, `[[key]]`, that are told apart by their field `name`.
    Entries(&'static [Field]),
}

/// A word that can be chosen.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// The word.
    pub name: &'static str,
    /// What it means, in a few words.
    pub says: &'static str,
}

/// One field of a table in a list.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// What kind of value it has; not [`ValueKind::Entries`].
    pub kind: ValueKind,
    /// Whether an entry must have it.
    pub is_required: bool,
    /// What it is for, in one sentence.
    pub says: &'static str,
}

impl ValueKind {
    /// Whether one word or text is the whole value, so that a variable or a flag can hold it.
    pub fn is_scalar(&self) -> bool {
        !matches!(self, ValueKind::Texts | ValueKind::Variables | ValueKind::Entries(_))
    }

    /// What is accepted, to be read after "must be".
    pub fn wanted(&self) -> String {
        match self {
            ValueKind::Text => "a text in quotes".to_owned(),
            ValueKind::Name | ValueKind::Secret => "a text in quotes that is not blank".to_owned(),
            ValueKind::Switch => "`true` or `false`".to_owned(),
            ValueKind::Whole { min, max, unit: "" } => format!("a whole number from {min} to {max}"),
            ValueKind::Whole { min, max, unit } => format!("a whole number of {unit} from {min} to {max}"),
            ValueKind::Number { min, max } => format!("a number from {min} to {max}"),
            ValueKind::Choice(choices) => one_of(choices),
            ValueKind::Texts => "a list of texts, as in `[\"a\", \"b\"]`".to_owned(),
            ValueKind::Variables => "a list of texts, as in `[\"NAME=value\"]`".to_owned(),
            ValueKind::Entries(_) => "a list of tables".to_owned(),
        }
    }

    /// Whether values of this kind, or parts of them, are never shown.
    pub fn is_secret(&self) -> bool {
        matches!(self, ValueKind::Secret | ValueKind::Variables)
    }

    /// A value as it may be shown.
    pub(super) fn shown(&self, value: &Value) -> Value {
        match (self, value) {
            (_, Value::Null) => Value::Null,
            (ValueKind::Secret, _) => json!(NOT_SHOWN),
            (ValueKind::Variables, Value::Array(texts)) => texts.iter().map(without_value).collect(),
            (ValueKind::Variables, _) => json!(NOT_SHOWN),
            (ValueKind::Entries(fields), Value::Object(entry)) => {
                let kind = |name: &str| fields.iter().find(|field| field.name == name).map(|field| field.kind);
                let shown = entry.iter().map(|(name, value)| {
                    (name.clone(), kind(name).map_or_else(|| value.clone(), |kind| kind.shown(value)))
                });
                Value::Object(shown.collect())
            }
            _ => value.clone(),
        }
    }

    /// The words that can be chosen; empty for other kinds.
    pub fn choices(&self) -> &'static [Choice] {
        if let ValueKind::Choice(choices) = self { choices } else { &[] }
    }

    /// The value that a variable or a flag holds, if it is one of this kind.
    pub(super) fn read_text(&self, text: &str) -> Option<Value> {
        match self {
            ValueKind::Text => Some(json!(text)),
            ValueKind::Name | ValueKind::Secret => (!text.trim().is_empty()).then(|| json!(text)),
            ValueKind::Switch => text.parse::<bool>().ok().map(|switch| json!(switch)),
            ValueKind::Whole { min, max, .. } => {
                let number = text.replace('_', "").parse().ok()?;
                (*min..=*max).contains(&number).then(|| json!(number))
            }
            ValueKind::Number { .. } => self.number(text.replace('_', "").parse().ok()?),
            ValueKind::Choice(choices) => {
                choices.iter().find(|choice| choice.name == text).map(|choice| json!(choice.name))
            }
            ValueKind::Texts | ValueKind::Variables | ValueKind::Entries(_) => None,
        }
    }

    /// The value that a file holds, if it is one of this kind. Lists of tables are read entry by entry instead.
    pub(super) fn read_toml(&self, value: &DeValue<'_>) -> Option<Value> {
        match (self, value) {
            (ValueKind::Text | ValueKind::Name | ValueKind::Secret | ValueKind::Choice(_), DeValue::String(text)) => {
                self.read_text(text)
            }
            (ValueKind::Switch, DeValue::Boolean(switch)) => Some(json!(switch)),
            (ValueKind::Whole { min, max, .. }, DeValue::Integer(integer)) => {
                let number = i64::from_str_radix(integer.as_str(), integer.radix()).ok()?;
                (*min..=*max).contains(&number).then(|| json!(number))
            }
            (ValueKind::Number { .. }, DeValue::Float(float)) => self.read_text(float.as_str()),
            (ValueKind::Number { .. }, DeValue::Integer(integer)) => {
                self.number(i64::from_str_radix(integer.as_str(), integer.radix()).ok()? as f64)
            }
            (ValueKind::Texts | ValueKind::Variables, DeValue::Array(array)) => {
                let texts: Option<Vec<&str>> = array.iter().map(|value| value.get_ref().as_str()).collect();
                texts.map(|texts| json!(texts))
            }
            _ => None,
        }
    }

    /// A number that is accepted.
    fn number(&self, number: f64) -> Option<Value> {
        let ValueKind::Number { min, max } = self else { return None };
        (*min..=*max).contains(&number).then(|| json!(number))
    }
}

/// A variable without its value.
fn without_value(text: &Value) -> Value {
    let name = text.as_str().and_then(|text| text.split_once('=')).map_or("", |(name, _)| name);
    json!(format!("{name}={NOT_SHOWN}"))
}

fn one_of(choices: &[Choice]) -> String {
    let names: Vec<String> = choices.iter().map(|choice| format!("`{}`", choice.name)).collect();
    match names.as_slice() {
        [] => "a word".to_owned(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}
