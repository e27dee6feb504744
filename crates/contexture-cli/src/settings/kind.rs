//! What kind of value a key has: what is accepted, and how to say what is wanted.

use serde_json::{Value, json};
use toml::de::DeValue;

use super::nearest::did_you_mean;

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

    /// Which word was probably meant by one that cannot be chosen.
    pub(super) fn near_choice(&self, found: &str) -> Option<String> {
        did_you_mean(found.trim_matches(['`', '"', '\'']), self.choices().iter().map(|choice| choice.name))
    }

    /// The value that a variable or a flag holds, if it is one of this kind.
    pub(super) fn read_text(&self, text: &str) -> Option<Value> {
        let number = || text.replace('_', "");
        let value = match self {
            ValueKind::Text | ValueKind::Name | ValueKind::Secret | ValueKind::Choice(_) => json!(text),
            ValueKind::Switch => json!(text.parse::<bool>().ok()?),
            ValueKind::Whole { .. } => json!(number().parse::<i64>().ok()?),
            ValueKind::Number { .. } => json!(number().parse::<f64>().ok()?),
            ValueKind::Texts | ValueKind::Variables | ValueKind::Entries(_) => return None,
        };
        self.accepts(&value).then_some(value)
    }

    /// The value that a file holds, if it is one of this kind. Lists of tables are read entry by entry instead.
    pub(super) fn read_toml(&self, value: &DeValue<'_>) -> Option<Value> {
        let value = match value {
            DeValue::String(text) => json!(text),
            DeValue::Boolean(switch) => json!(switch),
            DeValue::Integer(integer) => {
                let whole = i64::from_str_radix(integer.as_str(), integer.radix()).ok()?;
                if matches!(self, ValueKind::Number { .. }) { json!(whole as f64) } else { json!(whole) }
            }
            DeValue::Float(float) if matches!(self, ValueKind::Number { .. }) => return self.read_text(float.as_str()),
            DeValue::Array(array) => {
                json!(array.iter().map(|value| value.get_ref().as_str()).collect::<Option<Vec<_>>>()?)
            }
            _ => return None,
        };
        self.accepts(&value).then_some(value)
    }

    /// Whether a value is one of this kind.
    fn accepts(&self, value: &Value) -> bool {
        match (self, value) {
            (ValueKind::Text, Value::String(_)) | (ValueKind::Switch, Value::Bool(_)) => true,
            (ValueKind::Name | ValueKind::Secret, Value::String(text)) => !text.trim().is_empty(),
            (ValueKind::Choice(choices), Value::String(text)) => choices.iter().any(|choice| choice.name == text),
            (ValueKind::Whole { min, max, .. }, value) => value.as_i64().is_some_and(|n| (*min..=*max).contains(&n)),
            (ValueKind::Number { min, max }, value) => value.as_f64().is_some_and(|n| (*min..=*max).contains(&n)),
            (ValueKind::Texts | ValueKind::Variables, Value::Array(_)) => true,
            _ => false,
        }
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
