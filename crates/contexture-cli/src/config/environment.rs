//! The environment of the process, as a value.

use std::ffi::OsString;

use crate::settings::{FILE_VARIABLE, VARIABLE_PREFIX};

use crate::failure::Failure;

/// The variables of the process.
pub(super) struct Environment {
    variables: Vec<(OsString, OsString)>,
}

impl Environment {
    /// Reads the variables of the process.
    pub(super) fn of_process() -> Self {
        Self { variables: crate::environment::variables() }
    }

    /// The value of a variable that is set and not empty.
    pub(super) fn get(&self, name: &str) -> Option<&OsString> {
        let found = self.variables.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value).filter(|value| !value.is_empty())
    }

    /// The program's own variables as text. The one that names a file is a path and need not be Unicode.
    ///
    /// # Errors
    /// One of them is not Unicode.
    pub(super) fn variables(&self) -> Result<Vec<(String, String)>, Failure> {
        let named = self.variables.iter().filter_map(|(name, value)| Some((name.to_str()?, value)));
        let own = named.filter(|(name, _)| name.starts_with(VARIABLE_PREFIX) && *name != FILE_VARIABLE);
        own.map(|(name, value)| match value.to_str() {
            Some(value) => Ok((name.to_owned(), value.to_owned())),
            None => Err(Failure::usage(format!("variable `{name}` is not valid Unicode"))
                .hint("set it again, or remove it from the environment")),
        })
        .collect()
    }

    #[cfg(test)]
    pub(super) fn of(variables: &[(&str, &str)]) -> Self {
        let pair = |&(name, value): &(&str, &str)| (OsString::from(name), OsString::from(value));
        Self { variables: variables.iter().map(pair).collect() }
    }
}
