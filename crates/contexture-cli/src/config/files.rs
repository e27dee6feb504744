//! Finds the configuration files.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::settings::{ConfigFile, ConfigOwner, FILE_VARIABLE, PROJECT_FILE};
use serde_json::{Value, json};

use super::environment::Environment;
use super::flags::FileFlags;
use crate::failure::Failure;

/// The largest size of a configuration file, in bytes.
const MAX_BYTES: u64 = 1 << 20;

/// The path of the user's file below the directory for configuration.
const USER_FILE: [&str; 2] = ["contexture", "config.toml"];

/// The two configuration files.
pub(crate) struct Files {
    /// The project's before the user's, in the order of precedence.
    places: [ConfigFileCandidate; 2],
}

/// A configuration file.
pub(crate) struct ConfigFileCandidate {
    pub(crate) owner: ConfigOwner,
    /// Its path, even if it does not exist. `None` if no directory for it is known.
    path: Option<PathBuf>,
    /// The flag or variable that named it.
    named_by: Option<&'static str>,
    state: ConfigFileState,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum ConfigFileState {
    Found,
    Missing,
    Ignored,
}

impl Files {
    /// Finds both files; the search for the project's starts in `base`.
    pub(super) fn find(flags: &FileFlags, base: &Path, environment: &Environment) -> Self {
        let mut places = [project(flags, base, environment), user(environment, cfg!(windows))];
        if flags.are_ignored {
            places.iter_mut().for_each(|place| place.state = ConfigFileState::Ignored);
        }
        Self { places }
    }

    /// The files in the order of precedence.
    pub(crate) fn places(&self) -> &[ConfigFileCandidate] {
        &self.places
    }

    /// Reads a file, if it exists and is not ignored.
    ///
    /// # Errors
    /// The file cannot be read, or was named and does not exist.
    pub(super) fn read(&self, owner: ConfigOwner) -> Result<Option<ConfigFile>, Failure> {
        match self.places.iter().find(|place| place.owner == owner) {
            Some(place) => place.read(),
            None => Ok(None),
        }
    }
}

impl ConfigFileCandidate {
    fn of(owner: ConfigOwner, path: Option<PathBuf>) -> Self {
        let is_there = path.as_deref().is_some_and(Path::is_file);
        let state = if is_there { ConfigFileState::Found } else { ConfigFileState::Missing };
        Self { owner, path, named_by: None, state }
    }

    fn named(path: PathBuf, by: &'static str) -> Self {
        let state = if path.exists() { ConfigFileState::Found } else { ConfigFileState::Missing };
        Self { owner: ConfigOwner::Project, path: Some(path), named_by: Some(by), state }
    }

    fn read(&self) -> Result<Option<ConfigFile>, Failure> {
        let is_wanted = match self.state {
            ConfigFileState::Found => true,
            ConfigFileState::Missing => self.named_by.is_some(),
            ConfigFileState::Ignored => false,
        };
        let Some(path) = self.path.as_deref().filter(|_| is_wanted) else { return Ok(None) };
        let text = read_text(path).map_err(|error| {
            let failure = Failure::usage(format!("read `{}`: {error}", path.display()));
            let by = self.named_by.map(|by| format!("`{by}` names this file"));
            failure.hint(by.unwrap_or_else(|| "`--no-config` ignores configuration files".to_owned()))
        })?;
        Ok(Some(ConfigFile::new(path.display().to_string(), text)))
    }

    /// The path for people.
    pub(crate) fn shown_path(&self) -> String {
        self.path.as_ref().map_or("no directory for it is known".to_owned(), |path| path.display().to_string())
    }

    /// Whether the file exists, and what named it.
    pub(crate) fn state(&self) -> String {
        let state = match (self.state, self.owner) {
            (ConfigFileState::Found, _) => "found",
            (ConfigFileState::Missing, ConfigOwner::Project) if self.named_by.is_none() => {
                "not found, nor in a parent directory"
            }
            (ConfigFileState::Missing, _) => "not found",
            (ConfigFileState::Ignored, _) => "ignored (--no-config)",
        };
        match self.named_by {
            Some(by) => format!("{state}, named by {by}"),
            None => state.to_owned(),
        }
    }

    /// The file as JSON.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "file": self.owner.name(),
            "path": self.path.as_ref().map(|path| path.display().to_string()),
            "exists": self.path.as_deref().is_some_and(Path::exists),
            "used": self.state == ConfigFileState::Found,
            "named_by": self.named_by,
        })
    }
}

/// The file that a flag or variable names, or else the nearest in `base` or a parent of it.
fn project(flags: &FileFlags, base: &Path, environment: &Environment) -> ConfigFileCandidate {
    if let Some(path) = &flags.file {
        return ConfigFileCandidate::named(path.clone(), "--config");
    }
    if let Some(path) = environment.get(FILE_VARIABLE) {
        return ConfigFileCandidate::named(PathBuf::from(path), FILE_VARIABLE);
    }
    // A base directory that does not exist is reported elsewhere.
    let Ok(start) = base.canonicalize() else {
        return ConfigFileCandidate::of(ConfigOwner::Project, Some(base.join(PROJECT_FILE)));
    };
    let found = start.ancestors().map(|directory| directory.join(PROJECT_FILE)).find(|path| path.is_file());
    let path = found.unwrap_or_else(|| start.join(PROJECT_FILE));
    ConfigFileCandidate::of(ConfigOwner::Project, Some(from_here(path)))
}

/// A path relative to the working directory, if it is below it.
fn from_here(path: PathBuf) -> PathBuf {
    let here = Path::new(".").canonicalize();
    let beneath = here.ok().and_then(|here| path.strip_prefix(here).ok().map(Path::to_owned));
    beneath.unwrap_or(path)
}

/// The user's own file.
fn user(environment: &Environment, is_windows: bool) -> ConfigFileCandidate {
    let directory = |name: &str| environment.get(name).map(PathBuf::from);
    let directory = if is_windows {
        directory("APPDATA")
    } else {
        // The specification of the variable says to ignore a relative path.
        let own = directory("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
        own.or_else(|| directory("HOME").map(|home| home.join(".config")))
    };
    ConfigFileCandidate::of(
        ConfigOwner::User,
        directory.map(|directory| directory.join(USER_FILE.iter().collect::<PathBuf>())),
    )
}

fn read_text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(io::Error::other(format!("it has more than {MAX_BYTES} bytes")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_user(variables: &[(&str, &str)], is_windows: bool, expected: Option<&str>) {
        let found = user(&Environment::of(variables), is_windows).path;
        assert_eq!(found, expected.map(PathBuf::from));
    }

    #[test]
    fn the_user_s_file_is_where_the_system_keeps_configuration() {
        let (home, xdg) = (("HOME", "/home/ada"), ("XDG_CONFIG_HOME", "/etc/ada"));
        check_user(&[home], false, Some("/home/ada/.config/contexture/config.toml"));
        check_user(&[home, xdg], false, Some("/etc/ada/contexture/config.toml"));
        check_user(&[home, ("XDG_CONFIG_HOME", "")], false, Some("/home/ada/.config/contexture/config.toml"));
        check_user(&[home, ("XDG_CONFIG_HOME", "etc")], false, Some("/home/ada/.config/contexture/config.toml"));
        check_user(&[], false, None);
        check_user(&[home, ("APPDATA", "/appdata")], true, Some("/appdata/contexture/config.toml"));
        check_user(&[home], true, None);
    }
}
