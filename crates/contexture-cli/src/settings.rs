//! Configuration: one table of keys, and values that know where they came from.
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
//! assert_eq!(config.get(&keys::BUDGET), 16_000);
//! assert_eq!(config.get(&keys::COUNTER), keys::Counter::O200k);
//! assert_eq!(config.get(&keys::PROVIDER), keys::PriceProvider::Anthropic);
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
//! Add one row to the table in `settings/keys.rs`, read the value with [`Config::get`], and regenerate the page
//! `docs/configuration.md`. Parsing, the variable's name, messages, `contexture config` and the page are derived from
//! the row.

mod error;
mod kind;
mod row;
pub mod keys;
mod origin;
mod setting;
mod nearest;
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
pub use origin::{ConfigOwner, SettingOrigin};
pub use page::page;
pub use resolved::{Config, Flag, Resolved, SettingSources, resolve};
pub use row::{Command, Fallback, SetBy, SettingKey, SettingRow, VARIABLE_PREFIX};
pub use setting::Setting;
pub use variables::{FILE_VARIABLE, GATEWAY_VARIABLE};
