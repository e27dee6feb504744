//! A value and where it came from.

use std::fmt;

use serde_json::{Value, json};

use super::row::SettingRow;

/// A value and where it came from. Its `Debug` does not show the value, which may be a key.
#[derive(Clone, PartialEq)]
pub struct Setting {
    /// The value.
    pub value: Value,
    /// Where it came from.
    pub origin: SettingOrigin,
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Setting").field("origin", &self.origin).finish_non_exhaustive()
    }
}

/// What one source says about a key. For a list of tables there is one for each entry.
pub(super) type SettingOfSource = (&'static SettingRow, Setting);

/// Where a value came from. `Display` gives it in a few words: `project file, line 2`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SettingOrigin {
    /// Nobody set it.
    Default,
    /// A configuration file.
    File {
        /// Whose file it is.
        owner: ConfigOwner,
        /// The file's name, as it is shown to people.
        name: String,
        /// The line of the key, counted from 1.
        line: usize,
    },
    /// An environment variable of this name.
    Variable(String),
    /// A flag of the command line, with its dashes.
    Flag(String),
}

/// Whose file a configuration file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConfigOwner {
    /// The user's own file.
    User,
    /// The project's file, or one that was named to be used instead of it. It may have been written by somebody else.
    Project,
}

impl ConfigOwner {
    /// The name of the owner: `user` or `project`.
    pub fn name(self) -> &'static str {
        match self {
            ConfigOwner::User => "user",
            ConfigOwner::Project => "project",
        }
    }
}

impl fmt::Display for SettingOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingOrigin::Default => f.write_str("default"),
            SettingOrigin::File { owner, line, .. } => write!(f, "{} file, line {line}", owner.name()),
            SettingOrigin::Variable(name) | SettingOrigin::Flag(name) => f.write_str(name),
        }
    }
}

impl SettingOrigin {
    /// The origin as JSON: an object with `source` (`default`, `user`, `project`, `environment` or `flag`), and what is
    /// known beyond it.
    pub fn to_json(&self) -> Value {
        match self {
            SettingOrigin::Default => json!({ "source": "default" }),
            SettingOrigin::File { owner, name, line } => json!({ "source": owner.name(), "file": name, "line": line }),
            SettingOrigin::Variable(name) => json!({ "source": "environment", "variable": name }),
            SettingOrigin::Flag(name) => json!({ "source": "flag", "flag": name }),
        }
    }
}
