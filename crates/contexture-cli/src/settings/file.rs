//! Values from a configuration file, each with the line that it is on.

use std::fmt;

use serde_json::{Map, Value};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::error::{ConfigError, clip};
use super::kind::{Field, ValueKind};
use super::nearest::did_you_mean;
use super::origin::{ConfigOwner, Setting, SettingOfSource, SettingOrigin};
use super::row::SettingRow;

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
    rows: &'static [SettingRow],
    file: &ConfigFile,
    owner: ConfigOwner,
) -> Result<Vec<SettingOfSource>, ConfigError> {
    let mut reader = SettingsReader { rows, file, owner, given: Vec::new() };
    let document = DeTable::parse(&file.text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        let problem = error.message().trim().replace('\n', " ");
        reader.refuse(at, &problem, "a configuration file is TOML: see https://toml.io")
    })?;
    reader.table("", document.get_ref())?;
    Ok(reader.given)
}

/// One key of a table and its value, with their places in the text.
type Pair<'a, 'text> = (&'a Spanned<DeString<'text>>, &'a Spanned<DeValue<'text>>);

struct SettingsReader<'a> {
    rows: &'static [SettingRow],
    file: &'a ConfigFile,
    owner: ConfigOwner,
    given: Vec<SettingOfSource>,
}

impl SettingsReader<'_> {
    /// Reads what is in a table; `prefix` is its name with a dot after it, or empty.
    fn table(&mut self, prefix: &str, table: &DeTable<'_>) -> Result<(), ConfigError> {
        for (key, value) in in_order(table) {
            let (word, at) = (key.get_ref().as_ref(), key.span().start);
            let name = format!("{prefix}{word}");
            let beneath = format!("{name}.");
            let mut inner = self.rows.iter().filter(|row| row.name.starts_with(&beneath)).peekable();
            if let Some(row) = self.rows.iter().find(|row| row.name == name) {
                self.value(row, at, value)?;
            } else if inner.peek().is_none() {
                let place =
                    if prefix.is_empty() { String::new() } else { format!(" in [{}]", &prefix[..prefix.len() - 1]) };
                let problem = format!("unknown key `{word}`{place}");
                return Err(self.refuse(at, &problem, self.unknown_key_hint(prefix, word)));
            } else if let DeValue::Table(table) = value.get_ref() {
                self.table(&beneath, table)?;
            } else {
                let problem = format!(
                    "`{name}` is {}, but must be a table",
                    self.found(inner.any(|row| row.kind.is_secret()), value)
                );
                return Err(self.refuse(at, &problem, format!("begin it with `[{name}]`")));
            }
        }
        Ok(())
    }

    /// Reads the value of a known key.
    fn value(&mut self, row: &'static SettingRow, at: usize, value: &Spanned<DeValue<'_>>) -> Result<(), ConfigError> {
        if self.owner == ConfigOwner::Project && row.is_user_only {
            return Err(self.not_allowed(row, at));
        }
        if let ValueKind::Entries(fields) = row.kind {
            return self.entries(row, fields, value);
        }
        let name = format!("`{}`", row.name);
        let hint = || match row.line() {
            (None, line) => format!("write it as `{line}`"),
            (Some(table), line) => format!("write it as `{line}` below `[{table}]`"),
        };
        let read = self.read(row.kind, &name, value, hint)?;
        let value = row.accept(read).map_err(|problem| self.refuse(at, &format!("{name} {problem}"), hint()))?;
        self.give(row, at, value);
        Ok(())
    }

    /// Reads a list of tables. No two entries of one file have the same name.
    fn entries(
        &mut self,
        row: &'static SettingRow,
        fields: &[Field],
        value: &Spanned<DeValue<'_>>,
    ) -> Result<(), ConfigError> {
        let start = self.given.len();
        let list = value.get_ref().as_array().map(|list| list.iter().collect::<Vec<_>>());
        for entry in list.unwrap_or_else(|| vec![value]) {
            let at = entry.span().start;
            let Some(table) = entry.get_ref().as_table().filter(|_| value.get_ref().is_array()) else {
                let problem = format!("`{0}` must be a list of tables, each under a line `[[{0}]]`", row.name);
                return Err(self.refuse(at, &problem, format!("write two brackets: `[[{}]]`", row.name)));
            };
            let read = Value::Object(self.entry(row, fields, at, table)?);
            let value = row.accept(read).map_err(|problem| self.refuse(at, &problem, LIST_HINT))?;
            let twin = self.given[start..].iter().find(|(_, other)| other.value["name"] == value["name"]);
            if let Some((_, Setting { origin: SettingOrigin::File { line, .. }, .. })) = twin {
                let problem = format!("[[{}]] describes {} twice", row.name, value["name"]);
                return Err(self.refuse(at, &problem, format!("the other one is on line {line}; remove one of them")));
            }
            self.give(row, at, value);
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
                let names = || fields.iter().map(|field| field.name);
                let all = || names().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
                let hint = did_you_mean(key.get_ref(), names());
                let hint = hint.unwrap_or_else(|| format!("a [[{}]] may have {}", row.name, all()));
                let problem = format!("unknown key `{}` in [[{}]]", key.get_ref(), row.name);
                return Err(self.refuse(key.span().start, &problem, hint));
            };
            let name = format!("`{}` of [[{}]]", field.name, row.name);
            let value = self.read(field.kind, &name, value, || format!("`{}`: {}", field.name, field.says))?;
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

    /// Reads a value of a kind, of a key or field of this name.
    fn read(
        &self,
        kind: ValueKind,
        name: &str,
        value: &Spanned<DeValue<'_>>,
        hint: impl FnOnce() -> String,
    ) -> Result<Value, ConfigError> {
        kind.read_toml(value.get_ref()).ok_or_else(|| {
            let found = self.found(kind.is_secret(), value);
            let problem = format!("{name} is {found}, but must be {}", kind.wanted());
            self.refuse(value.span().start, &problem, kind.near_choice(&found).unwrap_or_else(hint))
        })
    }

    fn give(&mut self, row: &'static SettingRow, at: usize, value: Value) {
        self.given.push((row, Setting { value, origin: self.origin(at) }));
    }

    /// A near name in the same table is most likely; then the same name in another table.
    fn unknown_key_hint(&self, prefix: &str, word: &str) -> String {
        let beneath = self.rows.iter().filter_map(|row| row.name.strip_prefix(prefix));
        let siblings = beneath.map(|rest| rest.split('.').next().unwrap_or(rest));
        did_you_mean(word, siblings).unwrap_or_else(|| {
            match self.rows.iter().map(SettingRow::place).find(|(_, key)| *key == word) {
                Some((None, key)) => format!("`{key}` is in no table: write it above the first line in brackets"),
                Some((Some(table), key)) => format!("write `{key}` below `[{table}]`"),
                None => LIST_HINT.to_owned(),
            }
        })
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
    fn found(&self, is_secret: bool, value: &Spanned<DeValue<'_>>) -> String {
        match value.get_ref() {
            DeValue::Table(_) => "a table".to_owned(),
            _ if is_secret => "something else".to_owned(),
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
