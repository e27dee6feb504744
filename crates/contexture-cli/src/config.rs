//! The configuration file: TOML, everything in it optional.

use std::path::{Path, PathBuf};

use contexture::layers::FileReferenceOptions;
use contexture::layers::working_memory::{Notes, WorkingMemory};
use contexture::window::Overflow;
use serde::Deserialize;

use crate::failure::Failure;

/// What a configuration file may say.
///
/// ```toml
/// instructions = "You are a careful engineer."
/// budget = 32000
/// overflow = "truncate"
///
/// [file-reference]
/// max_file_size = 262144
/// allowed_extensions = ["rs", "toml", "md"]
///
/// [working-memory]
/// text = "The release is on Friday."
/// ```
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct Config {
    /// The system prompt.
    pub instructions: String,
    /// How many tokens a window may have.
    pub budget: Option<u64>,
    /// What gives way when history does not fit.
    pub overflow: Overflow,
    /// The layer `file-reference`.
    pub file_reference: FileReferenceOptions,
    /// The layer `working-memory`; without it the layer is left out.
    pub working_memory: Option<WorkingMemoryConfig>,
}

/// What working memory starts with.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkingMemoryConfig {
    /// The text that the agent keeps in mind.
    pub text: String,
}

impl Config {
    /// Reads a configuration file; without one everything has its default.
    ///
    /// # Errors
    /// The file cannot be read, or says something that is not understood; the sentence says where.
    pub fn read(path: Option<&Path>) -> Result<Config, Failure> {
        let Some(path) = path else { return Ok(Config::default()) };
        let shown = path.display();
        let text = std::fs::read_to_string(path).map_err(|error| Failure::usage(format!("read `{shown}`: {error}")))?;
        toml::from_str(&text).map_err(|error| {
            let place = error.span().map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
            let place = place.map_or(String::new(), |line| format!(", line {line}"));
            Failure::usage(format!("`{shown}`{place}: {}", error.message().trim().replace('\n', " ")))
                .hint("`contexture window --help` shows what a configuration file may say")
        })
    }

    /// The layer `working-memory`, if the file has one. It shows what the file says and does not change.
    pub fn working_memory(&self) -> Option<WorkingMemory> {
        let notes = Notes::Text(self.working_memory.as_ref()?.text.clone());
        Some(WorkingMemory::new().with_template(notes).read_only())
    }

    /// The options of the layer `file-reference`, beneath a base directory.
    pub fn file_reference(&self, base: PathBuf) -> FileReferenceOptions {
        FileReferenceOptions { base_dir: Some(base), ..self.file_reference.clone() }
    }
}
