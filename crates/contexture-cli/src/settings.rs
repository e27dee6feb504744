//! Configuration: one structure, whose fields are the keys, and values that know where they came from.
//!
//! Values come from flags, environment variables, the project's file, the user's file and defaults, in this order of
//! precedence. Nothing here reads a file or the environment: a program reads them and passes their texts in as
//! [`SettingSources`]; what comes out is the same for the same texts.
//!
//! ```
//! use contexture_cli::settings::{Command, ConfigFile, SettingSources, keys, resolve};
//!
//! let project = ConfigFile::new("contexture.toml", "budget = 16000\n");
//! let variables = vec![("CONTEXTURE_COUNTER".to_owned(), "o200k".to_owned())];
//! let resolved = resolve(&SettingSources { project: Some(project), variables, ..SettingSources::default() })?;
//! let config = resolved.for_command(Command::Replay);
//! assert_eq!(config.budget(), 16_000);
//! assert_eq!(config.counter(), keys::Counter::O200k);
//! assert_eq!(config.provider(), keys::PriceProvider::Anthropic);
//!
//! let project = ConfigFile::new("contexture.toml", "buget = 16000\n");
//! let error = resolve(&SettingSources { project: Some(project), ..SettingSources::default() }).unwrap_err();
//! assert_eq!(error.to_string(), "`contexture.toml`, line 1: unknown key `buget`");
//! assert_eq!(error.hint(), "did you mean `budget`?");
//! # Ok::<(), contexture_cli::settings::ConfigError>(())
//! ```
//!
//! # To add a key
//!
//! Add a field to the structure in `settings/keys.rs`, read the value with the method of [`Config`] that has its name,
//! and regenerate the page `docs/reference/configuration.md`. Parsing, the variable's name, messages, `contexture config` and the
//! page are derived from the field.

mod error;
mod kind;
mod row;
pub mod keys;
mod origin;
pub(crate) mod nearest;
mod file;
mod variables;
mod resolved;
mod applied;
mod page;
#[cfg(test)]
mod tests;

pub use applied::{ConversationLayers, Remembering};
pub use error::ConfigError;
pub use file::{ConfigFile, PROJECT_FILE};
pub use kind::{Choice, Field, ValueKind};
pub use origin::{ConfigOwner, Setting, SettingOrigin};
pub use page::page;
pub use resolved::{Config, Flag, Resolved, SettingSources, resolve};
pub use row::{Command, SettingRow, VARIABLE_PREFIX};
pub use variables::{FILE_VARIABLE, GATEWAY_VARIABLE};
