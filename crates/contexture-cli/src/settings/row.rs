//! A row of the table of keys: everything that is known about one key.

use std::fmt;
use std::marker::PhantomData;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::kind::ValueKind;
use super::nearest::nearest;

/// What the names of all variables begin with.
pub const VARIABLE_PREFIX: &str = "CONTEXTURE_";

/// A key and the type of its value.
#[derive(Debug)]
pub struct SettingKey<T> {
    /// What is known about the key.
    pub row: SettingRow,
    value: PhantomData<fn() -> T>,
}

/// What is known about a key. Everything that reads, checks, shows or explains the key is derived from this.
#[derive(Clone, Copy, Debug)]
pub struct SettingRow {
    /// Its name in a file; a dot separates the table from the key, as in `working-memory.text`.
    pub name: &'static str,
    /// What it is for, in one plain sentence.
    pub says: &'static str,
    /// What kind of value it has.
    pub kind: ValueKind,
    /// The value when nobody sets it.
    pub default: Fallback,
    /// Who may set it.
    pub set_by: SetBy,
    /// Whether the commands that use it have a flag of its name.
    pub has_flag: bool,
    /// The commands that use it.
    pub used_by: &'static [Command],
    /// A value as one would write it in a file; for a list of tables the lines of one entry.
    pub example: &'static str,
    /// Refuses values that the kind alone would accept; says what is wrong, to be read after the key's name.
    pub check: fn(&Value) -> Result<(), String>,
    /// Whether the value has the Rust type of the key.
    pub fits: fn(&Value) -> bool,
}

/// The value of a key that nobody set.
#[derive(Clone, Copy, Debug)]
pub enum Fallback {
    /// There is none; says what happens then, to be read after "by default".
    Nothing(&'static str),
    /// A value, the same for every command.
    Value(fn() -> Value),
}

/// Who may set a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetBy {
    /// Every source.
    Anyone,
    /// Every source but the project's file, which may come from somebody else.
    UserOnly,
}

/// A command that uses configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Command {
    /// `contexture window`.
    Window,
    /// `contexture replay`.
    Replay,
    /// `contexture compare`.
    Compare,
    /// `contexture run`.
    Run,
    /// `contexture serve`.
    Serve,
    /// `contexture chat`.
    Chat,
    /// `contexture memory`.
    Memory,
    /// `contexture mcp`.
    Mcp,
}

impl<T: DeserializeOwned> SettingKey<T> {
    /// The key of a row, whose values have the type `T`.
    pub const fn new(row: SettingRow) -> Self {
        Self { row: SettingRow { fits: fits::<T>, ..row }, value: PhantomData }
    }
}

impl SettingRow {
    /// A row with nothing in it, to be filled with `..SettingRow::EMPTY`.
    pub const EMPTY: SettingRow = SettingRow {
        name: "",
        says: "",
        kind: ValueKind::Text,
        default: Fallback::Nothing(""),
        set_by: SetBy::Anyone,
        has_flag: false,
        used_by: &[],
        example: "",
        check: |_| Ok(()),
        fits: |_| true,
    };

    /// The variable that sets the key. Lists have none.
    pub fn variable(&self) -> Option<String> {
        let name = || self.name.to_uppercase().replace(['-', '.'], "_");
        self.kind.is_scalar().then(|| format!("{VARIABLE_PREFIX}{}", name()))
    }

    /// The flag that sets the key, with its dashes, if commands have one.
    pub fn flag(&self) -> Option<String> {
        self.has_flag.then(|| format!("--{}", self.name.replace(['.', '_'], "-")))
    }

    /// The table that the key is in, if it is in one, and its name there.
    pub fn place(&self) -> (Option<&'static str>, &'static str) {
        match self.name.rsplit_once('.') {
            Some((table, key)) => (Some(table), key),
            None => (None, self.name),
        }
    }

    /// The value when nobody sets the key; null if there is none.
    pub fn default_value(&self) -> Value {
        match self.default {
            Fallback::Nothing(_) => Value::Null,
            Fallback::Value(value) => value(),
        }
    }

    /// Reads the text of a flag.
    ///
    /// # Errors
    /// Says what the value must be.
    pub fn read_flag(&self, text: &str) -> Result<Value, String> {
        let value = self.kind.read_text(text).ok_or_else(|| format!("it must be {}", self.kind.wanted()))?;
        self.accept(value)
    }

    /// Checks a value of the right kind.
    pub(super) fn accept(&self, value: Value) -> Result<Value, String> {
        (self.check)(&value)?;
        let has_type = if matches!(self.kind, ValueKind::Entries(_)) {
            (self.fits)(&Value::Array(vec![value.clone()]))
        } else {
            (self.fits)(&value)
        };
        if has_type { Ok(value) } else { Err(format!("must be {}", self.kind.wanted())) }
    }

    /// A hint for someone who wrote a value that is refused.
    pub(super) fn hint(&self, found: &str) -> String {
        let choices = self.kind.choices().iter().map(|choice| choice.name);
        match (nearest(found.trim_matches(['"', '\'']), choices), self.place()) {
            (Some(choice), _) => format!("did you mean `{choice}`?"),
            (None, (None, key)) => format!("write it as `{key} = {}`", self.example),
            (None, (Some(table), key)) => format!("write it as `{key} = {}` below `[{table}]`", self.example),
        }
    }
}

impl Command {
    /// All commands that use configuration.
    pub const ALL: [Command; 8] = [
        Command::Window,
        Command::Replay,
        Command::Compare,
        Command::Run,
        Command::Serve,
        Command::Chat,
        Command::Memory,
        Command::Mcp,
    ];

    /// The command's name.
    pub fn name(self) -> &'static str {
        match self {
            Command::Window => "window",
            Command::Replay => "replay",
            Command::Compare => "compare",
            Command::Run => "run",
            Command::Serve => "serve",
            Command::Chat => "chat",
            Command::Memory => "memory",
            Command::Mcp => "mcp",
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

fn fits<T: DeserializeOwned>(value: &Value) -> bool {
    T::deserialize(value).is_ok()
}
