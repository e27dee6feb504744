//! The configuration that comes out of all sources.

use std::collections::BTreeMap;
use std::fmt;

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::error::{ConfigError, printable};
use super::file::{self, ConfigFile};
use super::keys::{self, Settings};
use super::kind::ValueKind;
use super::origin::{ConfigOwner, Setting, SettingOfSource, SettingOrigin};
use super::row::{Command, SettingRow};
use super::variables;

/// Everything that can set a key, as it was read by the program. Its `Debug` shows no values.
#[derive(Clone, Default)]
pub struct SettingSources {
    /// The user's own file.
    pub user: Option<ConfigFile>,
    /// The project's file, or the file that is used instead of it.
    pub project: Option<ConfigFile>,
    /// Environment variables, with names and values; those of others are ignored.
    pub variables: Vec<(String, String)>,
    /// Flags of the command line.
    pub flags: Vec<Flag>,
}

impl fmt::Debug for SettingSources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let variables: Vec<&str> = self.variables.iter().map(|(name, _)| name.as_str()).collect();
        let mut shown = f.debug_struct("Sources");
        shown.field("user", &self.user).field("project", &self.project);
        shown.field("variables", &variables).field("flags", &self.flags).finish()
    }
}

/// A flag of the command line that sets a key.
#[derive(Clone, Debug)]
pub struct Flag {
    row: &'static SettingRow,
    value: Value,
}

impl Flag {
    /// The flag of a key, with a value that [`SettingRow::read_flag`] returned.
    pub fn new(row: &'static SettingRow, value: Value) -> Self {
        Self { row, value }
    }

    fn given(&self) -> SettingOfSource {
        let origin = SettingOrigin::Flag(self.row.flag().unwrap_or_else(|| self.row.name.to_owned()));
        (self.row, Setting { value: self.value.clone(), origin })
    }
}

/// Finds the value of every key: flags win over variables, then the project's file, the user's file, and defaults.
///
/// Each key is decided by itself, also the keys of one table. Of a list of tables, such as `[[tool]]`, entries of
/// different names are all kept.
///
/// # Errors
/// A source says something that is not understood, or that it may not say. The first mistake is reported, those of the
/// user's file before those of the project's file before those of variables.
pub fn resolve(sources: &SettingSources) -> Result<Resolved, ConfigError> {
    resolve_with(keys::ALL, sources)
}

/// Does the same for another table of keys.
pub(super) fn resolve_with(rows: &'static [SettingRow], sources: &SettingSources) -> Result<Resolved, ConfigError> {
    let read = |file: &Option<ConfigFile>, owner| match file {
        Some(file) => file::read(rows, file, owner),
        None => Ok(Vec::new()),
    };
    let weakest_first = [
        read(&sources.user, ConfigOwner::User)?,
        read(&sources.project, ConfigOwner::Project)?,
        variables::read(rows, &sources.variables)?,
        sources.flags.iter().map(Flag::given).collect(),
    ];
    let mut settings: BTreeMap<&'static str, Vec<Setting>> = BTreeMap::new();
    // A stronger source replaces the value of the same key, or the entry of the same name.
    for (row, setting) in weakest_first.into_iter().flatten() {
        let existing = settings.entry(row.name).or_default();
        match row.kind {
            ValueKind::Entries(_) => existing.retain(|other| other.value["name"] != setting.value["name"]),
            _ => existing.clear(),
        }
        existing.push(setting);
    }
    Ok(Resolved { rows, settings, unknown_variables: variables::unknown(rows, &sources.variables) })
}

/// The values of all keys, with where they came from.
#[derive(Clone, Debug)]
pub struct Resolved {
    rows: &'static [SettingRow],
    settings: BTreeMap<&'static str, Vec<Setting>>,
    unknown_variables: Vec<(String, Option<String>)>,
}

impl Resolved {
    /// The configuration as a command sees it.
    pub fn for_command(self, command: Command) -> Config {
        let set = self.rows.iter().filter(|row| !self.settings(row).is_empty());
        let values: Map<String, Value> = set.map(|row| (row.name.to_owned(), self.value(row))).collect();
        let settings = Settings::deserialize(Value::Object(values)).expect("values are checked when they are read");
        Config { resolved: self, settings, command }
    }

    /// What was set for a key: nothing, one value, or one for each entry of a list of tables.
    pub fn settings(&self, row: &SettingRow) -> &[Setting] {
        self.settings.get(row.name).map_or(&[], Vec::as_slice)
    }

    /// The keys of layers that somebody set and that a command with layers leaves unused, with where they are set.
    pub fn unused_by(&self, command: Command) -> Vec<(&'static str, String)> {
        let layers = || self.rows.iter().filter(|row| row.name.starts_with("layers."));
        if !layers().any(|row| row.used_by.contains(&command)) {
            return Vec::new();
        }
        let unused = layers().filter(|row| !row.used_by.contains(&command));
        unused.filter_map(|row| Some((row.name, self.settings(row).first()?.origin.to_string()))).collect()
    }

    /// Variables that look as if they set a key and do not, each with the variable that was probably meant.
    pub fn unknown_variables(&self) -> &[(String, Option<String>)] {
        &self.unknown_variables
    }

    /// Every key with its value as one line of text and where it came from, for people. A list of tables has a line
    /// for each entry.
    pub fn lines(&self) -> Vec<[String; 3]> {
        let lines = |row: &SettingRow| {
            let line = |value, origin: &SettingOrigin| [row.name.to_owned(), value, origin.to_string()];
            let set = |setting: &Setting| line(in_words(&row.kind.shown(&setting.value)), &setting.origin);
            match self.settings(row) {
                [] => vec![line(default_in_words(row), &SettingOrigin::Default)],
                settings => settings.iter().map(set).collect(),
            }
        };
        self.rows.iter().flat_map(lines).collect()
    }

    /// Every key as an object with `key`, `value` and `from`; a list of tables has `from` as a list, in the order of its
    /// entries.
    pub fn to_json(&self) -> Value {
        self.rows.iter().map(|row| self.key_to_json(row)).collect()
    }

    fn key_to_json(&self, row: &SettingRow) -> Value {
        let mut origins = self.settings(row).iter().map(|setting| setting.origin.to_json());
        let (value, from) = match (self.value(row), row.kind) {
            (Value::Array(entries), ValueKind::Entries(_)) => {
                (entries.iter().map(|entry| row.kind.shown(entry)).collect(), origins.collect())
            }
            (value, kind) => (kind.shown(&value), origins.next().unwrap_or_else(|| SettingOrigin::Default.to_json())),
        };
        json!({ "key": row.name, "value": value, "from": from })
    }

    /// The value of a key; null if it has none.
    pub(super) fn value(&self, row: &SettingRow) -> Value {
        match (self.settings(row), row.kind) {
            (settings @ [_, ..], ValueKind::Entries(_)) => {
                settings.iter().map(|setting| setting.value.clone()).collect()
            }
            ([setting, ..], _) => setting.value.clone(),
            ([], _) => (row.default)(),
        }
    }
}

/// The configuration as one command sees it, with a method for each key.
#[derive(Clone)]
pub struct Config {
    resolved: Resolved,
    settings: Settings,
    command: Command,
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Config")
            .field("resolved", &self.resolved)
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}

impl Config {
    /// The settings, for a command that asks for this key.
    pub(super) fn asked(&self, name: &str) -> &Settings {
        let is_listed = keys::row(name).used_by.contains(&self.command);
        assert!(is_listed, "the row of `{name}` does not list `{}`", self.command);
        &self.settings
    }

    /// Whether any source set a key.
    pub fn is_set(&self, name: &str) -> bool {
        !self.resolved.settings(keys::row(name)).is_empty()
    }
}

/// The most characters of a value in a line.
const MAX_LINE_CHARS: usize = 48;

/// A value as it is written in a file, cut to one short line; of an entry, its name.
fn in_words(value: &Value) -> String {
    let text = match value {
        Value::Object(entry) => entry.get("name").map(Value::to_string).unwrap_or_default(),
        Value::Array(list) => format!("[{}]", list.iter().map(Value::to_string).collect::<Vec<_>>().join(", ")),
        value => value.to_string(),
    };
    let text = printable(&text);
    match text.char_indices().nth(MAX_LINE_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The value of a key that nobody set, in words.
pub(super) fn default_in_words(row: &SettingRow) -> String {
    if row.unset.is_some() { "not set".to_owned() } else { in_words(&(row.default)()) }
}
