//! Values from a configuration file, each with the line that it is on.

use std::fmt;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::error::{ConfigError, clip};
use super::kind::{Field, ValueKind};
use super::nearest::nearest;
use super::origin::{ConfigOwner, SettingOrigin};
use super::row::{SetBy, SettingRow};
use super::setting::{Setting, SettingOfSource};

/// The name of a project's configuration file.
pub const PROJECT_FILE: &str = "contexture.toml";

/// What helps when nothing better is known.
// A broken file must not keep the list from being printed.
const LIST_HINT: &str = "`contexture config --no-config` lists all keys";

/// A configuration file that was read. Its `Debug` does not show the text, which may have keys in it.
#[derive(Clone, PartialEq, Eq)]
pub struct ConfigFile {
    /// The file's name, as it is shown to people.
    pub name: String,
    /// The text in it, as TOML.
    pub text: String,
}

impl ConfigFile {
    /// A file of this name with this text.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Self {
        Self { name: name.into(), text: text.into() }
    }
}

impl fmt::Debug for ConfigFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigFile").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Reads a file.
pub(super) fn read(
    rows: &[&'static SettingRow],
    file: &ConfigFile,
    owner: ConfigOwner,
) -> Result<Vec<SettingOfSource>, ConfigError> {
    let reader = SettingsReader { rows, file, owner };
    let document = DeTable::parse(&file.text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let problem = error.message().trim().replace('\n', " ");
        ConfigError::new(&reader.origin(at), &problem, "a configuration file is TOML: see https://toml.io")
    })?;
    let mut given = Vec::new();
    reader.table("", document.get_ref(), &mut given)?;
    Ok(given)
}

/// One key of a table and its value, with their places in the text.
type Pair<'a, 'text> = (&'a Spanned<DeString<'text>>, &'a Spanned<DeValue<'text>>);

struct SettingsReader<'a> {
    rows: &'a [&'static SettingRow],
    file: &'a ConfigFile,
    owner: ConfigOwner,
}

impl SettingsReader<'_> {
    /// Reads what is in a table; `prefix` is its name with a dot after it, or empty.
    fn table(&self, prefix: &str, table: &DeTable<'_>, given: &mut Vec<SettingOfSource>) -> Result<(), ConfigError> {
        for (key, value) in in_order(table) {
            let name = format!("{prefix}{}", key.get_ref());
            let beneath = format!("{name}.");
            if let Some(row) = self.rows.iter().find(|row| row.name == name) {
                self.value(row, key, value, given)?;
            } else if !self.rows.iter().any(|row| row.name.starts_with(&beneath)) {
                return Err(self.unknown_key(prefix, key));
            } else if let DeValue::Table(inner) = value.get_ref() {
                self.table(&beneath, inner, given)?;
            } else {
                let secret = self.rows.iter().find(|row| row.name.starts_with(&beneath) && row.kind.is_secret());
                let found = self.found(secret.map_or(ValueKind::Text, |row| row.kind), value);
                let problem = format!("`{name}` is {found}, but must be a table");
                return Err(self.refuse(key.span().start, &problem, format!("begin it with `[{name}]`")));
            }
        }
        Ok(())
    }

    /// Reads the value of a known key.
    fn value(
        &self,
        row: &'static SettingRow,
        key: &Spanned<DeString<'_>>,
        value: &Spanned<DeValue<'_>>,
        given: &mut Vec<SettingOfSource>,
    ) -> Result<(), ConfigError> {
        let at = key.span().start;
        if self.owner == ConfigOwner::Project && row.set_by == SetBy::UserOnly {
            return Err(self.not_allowed(row, at));
        }
        if let ValueKind::Entries(fields) = row.kind {
            return self.entries(row, fields, value, given);
        }
        let Some(read) = row.kind.read_toml(value.get_ref()) else {
            let found = self.found(row.kind, value);
            let problem = format!("`{}` is {found}, but must be {}", row.name, row.kind.wanted());
            return Err(self.refuse(value.span().start, &problem, row.hint(found.trim_matches('`'))));
        };
        let value =
            row.accept(read).map_err(|problem| self.refuse(at, &format!("`{}` {problem}", row.name), row.hint("")))?;
        given.push(SettingOfSource { row, setting: Setting { value, origin: self.origin(at) } });
        Ok(())
    }

    /// Reads a list of tables. No two entries of one file have the same name.
    fn entries(
        &self,
        row: &'static SettingRow,
        fields: &[Field],
        value: &Spanned<DeValue<'_>>,
        given: &mut Vec<SettingOfSource>,
    ) -> Result<(), ConfigError> {
        let start = given.len();
        let list = value.get_ref().as_array().map(|list| list.iter().collect::<Vec<_>>());
        for entry in list.unwrap_or_else(|| vec![value]) {
            let at = entry.span().start;
            let table = match entry.get_ref() {
                DeValue::Table(table) if value.get_ref().is_array() => table,
                _ => {
                    let problem = format!("`{0}` must be a list of tables, each under a line `[[{0}]]`", row.name);
                    return Err(self.refuse(at, &problem, format!("write two brackets: `[[{}]]`", row.name)));
                }
            };
            let read = Value::Object(self.entry(row, fields, at, table)?);
            let value = row.accept(read).map_err(|problem| self.refuse(at, &problem, LIST_HINT))?;
            let twin = given[start..].iter().find(|other| other.setting.value["name"] == value["name"]);
            if let Some(SettingOfSource { setting: Setting { origin: SettingOrigin::File { line, .. }, .. }, .. }) =
                twin
            {
                let problem = format!("[[{}]] describes {} twice", row.name, value["name"]);
                return Err(self.refuse(at, &problem, format!("the other one is on line {line}; remove one of them")));
            }
            given.push(SettingOfSource { row, setting: Setting { value, origin: self.origin(at) } });
        }
        Ok(())
    }

    /// Reads one table of a list.
    fn entry(
        &self,
        row: &SettingRow,
        fields: &[Field],
        at: usize,
        table: &DeTable<'_>,
    ) -> Result<Map<String, Value>, ConfigError> {
        let mut read = Map::new();
        for (key, value) in in_order(table) {
            let Some(field) = fields.iter().find(|field| field.name == key.get_ref()) else {
                let names = fields.iter().map(|field| field.name);
                let hint = match nearest(key.get_ref(), names.clone()) {
                    Some(name) => format!("did you mean `{name}`?"),
                    None => format!("a [[{}]] may have {}", row.name, listed(names)),
                };
                let problem = format!("unknown key `{}` in [[{}]]", key.get_ref(), row.name);
                return Err(self.refuse(key.span().start, &problem, hint));
            };
            let Some(value) = field.kind.read_toml(value.get_ref()) else {
                let found = self.found(field.kind, value);
                let problem =
                    format!("`{}` of [[{}]] is {found}, but must be {}", field.name, row.name, field.kind.wanted());
                return Err(self.refuse(value.span().start, &problem, field_hint(field, &found)));
            };
            read.insert(field.name.to_owned(), value);
        }
        match fields.iter().find(|field| field.is_required && !read.contains_key(field.name)) {
            Some(field) => {
                let problem = format!("[[{}]] has no `{}`", row.name, field.name);
                Err(self.refuse(at, &problem, format!("`{}` must be {}", field.name, field.kind.wanted())))
            }
            None => Ok(read),
        }
    }

    fn unknown_key(&self, prefix: &str, key: &Spanned<DeString<'_>>) -> ConfigError {
        let (table, word) = (prefix.trim_end_matches('.'), key.get_ref());
        let place = if table.is_empty() { String::new() } else { format!(" in [{table}]") };
        self.refuse(key.span().start, &format!("unknown key `{word}`{place}"), self.unknown_key_hint(prefix, word))
    }

    /// A near name in the same table is most likely; then the same name in another table.
    fn unknown_key_hint(&self, prefix: &str, word: &str) -> String {
        let beneath = self.rows.iter().filter_map(|row| row.name.strip_prefix(prefix));
        let siblings = beneath.map(|rest| rest.split('.').next().unwrap_or(rest));
        if let Some(sibling) = nearest(word, siblings) {
            return format!("did you mean `{sibling}`?");
        }
        match self.rows.iter().map(|row| row.place()).find(|(_, key)| *key == word) {
            Some((None, key)) => format!("`{key}` is in no table: write it above the first line in brackets"),
            Some((Some(table), key)) => format!("write `{key}` below `[{table}]`"),
            None => LIST_HINT.to_owned(),
        }
    }

    fn not_allowed(&self, row: &SettingRow, at: usize) -> ConfigError {
        let variable = row.variable().map(|name| format!(", in the variable `{name}`")).unwrap_or_default();
        let flag = row.flag().map(|name| format!(", with `{name}`")).unwrap_or_default();
        let hint =
            format!("set it in your own file{variable}{flag}; `contexture config --path` says where your own file is");
        self.refuse(at, &format!("`{}` cannot be set by a project, whose file may be somebody else's", row.name), hint)
    }

    fn refuse(&self, at: usize, problem: &str, hint: impl Into<String>) -> ConfigError {
        ConfigError::new(&self.origin(at), problem, hint)
    }

    fn origin(&self, at: usize) -> SettingOrigin {
        let before = self.file.text.as_bytes().iter().take(at);
        let line = before.filter(|byte| **byte == b'\n').count() + 1;
        SettingOrigin::File { owner: self.owner, name: self.file.name.clone(), line }
    }

    /// A value as it is written in the file, short enough for a message.
    fn found(&self, kind: ValueKind, value: &Spanned<DeValue<'_>>) -> String {
        match value.get_ref() {
            DeValue::Table(_) => "a table".to_owned(),
            _ if kind.is_secret() => "something else".to_owned(),
            _ => format!("`{}`", clip(self.file.text.get(value.span()).unwrap_or_default())),
        }
    }
}

/// The pairs of a table in the order of the text, so that the first mistake is reported first.
fn in_order<'a, 'text>(table: &'a DeTable<'text>) -> Vec<Pair<'a, 'text>> {
    let mut pairs: Vec<Pair<'a, 'text>> = table.iter().collect();
    pairs.sort_by_key(|(key, _)| key.span().start);
    pairs
}

fn field_hint(field: &Field, found: &str) -> String {
    let choices = field.kind.choices().iter().map(|choice| choice.name);
    match nearest(found.trim_matches(['`', '"', '\'']), choices) {
        Some(choice) => format!("did you mean `{choice}`?"),
        None => format!("`{}`: {}", field.name, field.says),
    }
}

fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
