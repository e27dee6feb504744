//! Merges the sources of a configuration.

use std::path::Path;

use crate::settings::{Command, Config, ConfigError, ConfigOwner, Resolved, SettingSources, resolve};

use super::environment::Environment;
use super::files::Files;
use super::flags::{ConfigFlags, FlagsOf};
use crate::failure::Failure;
use crate::source;

impl<C: FlagsOf> ConfigFlags<C> {
    /// Returns the configuration for a command; the search for the project's file starts in `base`.
    ///
    /// # Errors
    /// A file cannot be read, or a source is invalid; the message says where.
    pub fn load(&self, command: Command, base: &Path) -> Result<Config, Failure> {
        let (resolved, _) = self.resolve(base)?;
        for (name, origin) in resolved.unused_by(command) {
            source::say(&format!("contexture: `{command}` does not use `{name}` ({origin})"));
        }
        Ok(resolved.for_command(command))
    }

    /// Returns all values, and the configuration files.
    pub(crate) fn resolve(&self, base: &Path) -> Result<(Resolved, Files), Failure> {
        let environment = Environment::of_process();
        let files = Files::find(&self.files, base, &environment);
        let sources = SettingSources {
            user: files.read(ConfigOwner::User)?,
            project: files.read(ConfigOwner::Project)?,
            variables: environment.variables()?,
            flags: self.values.clone(),
        };
        Ok((resolve(&sources)?, files))
    }

    /// Returns the configuration files, without reading them.
    pub(crate) fn files(&self, base: &Path) -> Files {
        Files::find(&self.files, base, &Environment::of_process())
    }
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Self {
        Failure::usage(error.to_string()).hint(error.hint())
    }
}
