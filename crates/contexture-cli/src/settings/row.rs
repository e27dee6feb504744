//! A row of the table of keys: everything that is known about one key.

use std::fmt;

use serde_json::Value;

use super::kind::ValueKind;

/// What the names of all variables begin with.
pub const VARIABLE_PREFIX: &str = "CONTEXTURE_";

/// What is known about a key. Everything that reads, checks, shows or explains the key is derived from this.
#[derive(Clone, Copy, Debug)]
pub struct SettingRow {
    /// Its name in a file; a dot separates the table from the key, as in `working-memory.text`.
    pub name: &'static str,
    /// What it is for, in one plain sentence.
    pub says: &'static str,
    /// What kind of value it has.
    pub kind: ValueKind,
    /// The value when nobody sets it, the same for every command; null if there is none.
    pub default: fn() -> Value,
    /// What happens without a value, to be read after "not set:", if there is no default.
    pub unset: Option<&'static str>,
    /// Whether the project's file may not set it, which may come from somebody else.
    pub is_user_only: bool,
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

impl SettingRow {
    /// A row with nothing in it, to be filled with `..SettingRow::EMPTY`.
    pub const EMPTY: SettingRow = SettingRow {
        name: "",
        says: "",
        kind: ValueKind::Text,
        default: || Value::Null,
        unset: None,
        is_user_only: false,
        has_flag: false,
        used_by: &[],
        example: "",
        check: |_| Ok(()),
        fits: |_| true,
    };

    pub(super) const fn unset(self, meaning: &'static str) -> Self {
        Self { unset: Some(meaning), ..self }
    }

    pub(super) const fn user_only(self) -> Self {
        Self { is_user_only: true, ..self }
    }

    pub(super) const fn checked(self, check: fn(&Value) -> Result<(), String>) -> Self {
        Self { check, ..self }
    }

    pub(super) const fn with_flag(self) -> Self {
        Self { has_flag: true, ..self }
    }

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
        self.name.rsplit_once('.').map_or((None, self.name), |(table, key)| (Some(table), key))
    }

    /// The line that sets the key, with the table that it is below.
    pub(super) fn line(&self) -> (Option<&'static str>, String) {
        let (table, key) = self.place();
        (table, format!("{key} = {}", self.example))
    }

    /// Reads the text of a flag.
    ///
    /// # Errors
    /// Says what the value must be.
    pub fn read_flag(&self, text: &str) -> Result<Value, String> {
        self.accept(self.kind.read_text(text).ok_or_else(|| format!("it must be {}", self.kind.wanted()))?)
    }

    /// Checks a value of the right kind; of a list of tables, an entry.
    pub(super) fn accept(&self, value: Value) -> Result<Value, String> {
        (self.check)(&value)?;
        let has_type = match self.kind {
            ValueKind::Entries(_) => (self.fits)(&Value::Array(vec![value.clone()])),
            _ => (self.fits)(&value),
        };
        if has_type { Ok(value) } else { Err(format!("must be {}", self.kind.wanted())) }
    }
}

macro_rules! commands {
    ($($variant:ident $name:literal,)*) => {
        /// A command that uses configuration.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[non_exhaustive]
        pub enum Command {
            $(#[doc = concat!("`contexture ", $name, "`.")] $variant,)*
        }

        impl Command {
            /// All commands that use configuration.
            pub const ALL: [Command; [$($name),*].len()] = [$(Command::$variant),*];

            /// The command's name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Command::$variant => $name,)*
                }
            }
        }
    };
}

commands! {
    Window "config window",
    Replay "replay",
    Run "run",
    Serve "serve",
    Chat "chat",
    Memory "memory",
    Mcp "mcp",
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
