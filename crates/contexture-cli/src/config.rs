//! The configuration file: TOML, everything in it optional.

use std::path::{Path, PathBuf};

use contexture::files::dialect::{Dialects, ToolEntry};
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
///
/// [[tool]]
/// name = "open_file"
/// does = "read"
/// path = "target"
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
    /// Tools of the recorded agents that the built-in table does not know, or that it has wrong.
    pub tool: Vec<ToolEntry>,
}

/// What helps with a configuration file that is not understood.
const CONFIG_HINT: &str = "`contexture window --help` shows what a configuration file may say";

/// What helps with a tool that is not understood.
const TOOL_HINT: &str = "a [[tool]] has a `name`, what it `does` (read, write, append, edit, insert, patch, editor, \
    search, run, delete, move or nothing) and the names of its arguments: `path`, `content`, `old`, `new`, `command`";

/// Whether a place of a configuration file belongs to a tool: the last heading before its end says so.
fn is_in_tool(text: &str, place: usize) -> bool {
    let end = text[place..].find('\n').map_or(text.len(), |len| place + len);
    let heading = text[..end].lines().rev().find(|line| line.trim_start().starts_with('['));
    heading.is_some_and(|line| line.trim().starts_with("[[tool]]"))
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
            let start = error.span().map_or(0, |span| span.start.min(text.len()));
            let hint = if is_in_tool(&text, start) { TOOL_HINT } else { CONFIG_HINT };
            Failure::usage(format!("`{shown}`{place}: {}", error.message().trim().replace('\n', " "))).hint(hint)
        })
    }

    /// The dialects that recorded work is read with: the built-in ones and the file's own.
    ///
    /// # Errors
    /// A tool has no name, or is described twice.
    pub fn dialects(&self) -> Result<Dialects, Failure> {
        let mut dialects = Dialects::builtin();
        for (index, entry) in self.tool.iter().enumerate() {
            let complaint = match entry.name.trim() {
                "" => Some(format!("entry {} of [[tool]] has an empty `name`", index + 1)),
                name if self.tool[..index].iter().any(|other| other.name == name) => {
                    Some(format!("[[tool]] describes `{name}` twice"))
                }
                _ => None,
            };
            if let Some(complaint) = complaint {
                return Err(Failure::usage(complaint).hint(TOOL_HINT));
            }
            dialects = dialects.with(entry.clone());
        }
        Ok(dialects)
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
