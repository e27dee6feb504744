//! What can be set about the layer, and what makes no sense.

use std::path::PathBuf;

use contexture_core::host::ReadLimits;
use contexture_core::{Slot, SpecError};
use serde::{Deserialize, Serialize};

use super::ID;
use crate::reference::kinds::AllowList;

/// The largest possible limit for a file: files are read into memory whole.
pub const MAX_FILE_SIZE: u64 = 1 << 30;

/// The most files that can be read and scored at the same time.
pub const MAX_READ_CONCURRENCY: usize = 1024;

/// The default of [`FileReferenceOptions::max_file_size`]: 1 MB.
pub const DEFAULT_MAX_FILE_SIZE: u64 = 1024 * 1024;

/// The default of [`FileReferenceOptions::ageing_turns`].
pub const DEFAULT_AGEING_TURNS: u64 = 20;

/// The default of [`FileReferenceOptions::read_concurrency`].
pub const DEFAULT_READ_CONCURRENCY: usize = 16;

/// The options of the layer `file-reference`. The defaults suit most uses.
///
/// ```
/// use contexture::layers::{FileReference, FileReferenceOptions};
/// let layer = FileReference::new(FileReferenceOptions { max_file_size: 512 * 1024, ..Default::default() });
/// assert!(layer.is_ok());
/// let layer = FileReference::new(FileReferenceOptions { allowed_extensions: Some(vec![]), ..Default::default() });
/// assert_eq!(
///     layer.err().map(|error| error.to_string()).as_deref(),
///     Some("layer `file-reference`: `allowed_extensions` is empty, so no file could ever be read")
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FileReferenceOptions {
    /// The directory that references are relative to. `None` uses the files that the engine gives to hooks, which in
    /// the program `contexture` are below the current directory.
    pub base_dir: Option<PathBuf>,
    /// Its slot among the layers.
    pub slot: Slot,
    /// The model that scores files; `None` uses the default of the engine's model client.
    pub scoring_model: Option<String>,
    /// Whether to ask a model how relevant files are when not all of them fit. Otherwise the relevance is estimated
    /// from words.
    pub scoring: bool,
    /// The largest file that is read, in bytes; larger ones are `FILE_TOO_LARGE`.
    pub max_file_size: u64,
    /// Whether symbolic links are followed, as long as they stay below the base. The target must have an allowed
    /// extension or name as well.
    pub follow_symlinks: bool,
    /// Extensions (`rs`, `.rs`) and whole names (`Dockerfile`) that are read; `None` allows common code and text files.
    /// Anything else is `DISALLOWED_EXTENSION`.
    pub allowed_extensions: Option<Vec<String>>,
    /// After how many turns without being named, read or changed a file is shown only by name; `None` means never.
    pub ageing_turns: Option<u64>,
    /// How many files are read and scored at the same time.
    pub read_concurrency: usize,
}

impl Default for FileReferenceOptions {
    fn default() -> Self {
        Self {
            base_dir: None,
            slot: Slot::RAG,
            scoring_model: None,
            scoring: true,
            max_file_size: DEFAULT_MAX_FILE_SIZE,
            follow_symlinks: false,
            allowed_extensions: None,
            ageing_turns: Some(DEFAULT_AGEING_TURNS),
            read_concurrency: DEFAULT_READ_CONCURRENCY,
        }
    }
}

/// Validated options.
#[derive(Clone, Debug)]
pub(super) struct ValidOptions {
    pub(super) slot: Slot,
    pub(super) scoring_model: String,
    pub(super) scoring: bool,
    pub(super) limits: ReadLimits,
    pub(super) allow_list: AllowList,
    pub(super) ageing_turns: u64,
    pub(super) read_concurrency: usize,
}

impl ValidOptions {
    /// Validates the options.
    pub(super) fn of(options: &FileReferenceOptions) -> Result<ValidOptions, SpecError> {
        let refuse = |field: &str, problem: String| Err(SpecError::layer(ID, field, problem));
        match options.max_file_size {
            0 => return refuse("max_file_size", "is 0, so no file could ever be read".into()),
            size if size > MAX_FILE_SIZE => {
                return refuse(
                    "max_file_size",
                    format!("is above {MAX_FILE_SIZE} ({size}): files are read into memory"),
                );
            }
            _ => {}
        }
        if options.scoring_model.as_ref().is_some_and(|model| model.trim().is_empty()) {
            return refuse("scoring_model", "is blank; leave it out to use the default model".into());
        }
        if options.ageing_turns == Some(0) {
            return refuse("ageing_turns", "is 0, so no file would ever be shown; leave it out for no ageing".into());
        }
        match options.read_concurrency {
            0 => return refuse("read_concurrency", "is 0, so no file could ever be read".into()),
            count if count > MAX_READ_CONCURRENCY => {
                return refuse("read_concurrency", format!("is above {MAX_READ_CONCURRENCY} ({count})"));
            }
            _ => {}
        }
        Ok(ValidOptions {
            slot: options.slot,
            scoring_model: options.scoring_model.clone().unwrap_or_default(),
            scoring: options.scoring,
            limits: ReadLimits { max_bytes: options.max_file_size, follow_symlinks: options.follow_symlinks },
            allow_list: allow_list(options.allowed_extensions.as_deref())?,
            ageing_turns: options.ageing_turns.unwrap_or(u64::MAX),
            read_concurrency: options.read_concurrency,
        })
    }
}

fn allow_list(entries: Option<&[String]>) -> Result<AllowList, SpecError> {
    let Some(entries) = entries else { return Ok(AllowList::default()) };
    let refuse = |problem: String| Err(SpecError::layer(ID, "allowed_extensions", problem));
    if entries.is_empty() {
        return refuse("is empty, so no file could ever be read".into());
    }
    for entry in entries {
        let bare = entry.trim_start_matches('.');
        if bare.is_empty() || bare.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return refuse(format!("has an entry `{}` that no file can end in", entry.escape_debug()));
        }
        if bare.contains(['/', '\\', '*', '?']) {
            return refuse(format!("has `{entry}`; it takes extensions and file names, not paths or patterns"));
        }
    }
    Ok(AllowList::new(entries.iter().map(String::as_str)))
}
