//! `edit_file`: replaces a piece of text in a file.

use contexture_core::error::BoxError;
use contexture_core::tool::{Tool, ToolContext};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::arguments::{parse, schema_of};
use super::nearest::nearest;
use super::replace::{ReplaceError, replace};
use super::workspace::{Workspace, hinted};

/// How many positions are listed if the text occurs several times.
const MAX_PLACES: usize = 8;

/// Replaces a piece of text in a file.
#[derive(Clone, Debug)]
pub struct EditFile(Workspace);

#[derive(Deserialize, JsonSchema)]
struct EditFileArguments {
    /// The file, relative to the working directory.
    path: String,
    /// The text to replace, exactly as the file has it, without line numbers.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Replace every occurrence; without this the text must be there exactly once.
    replace_all: Option<bool>,
}

impl EditFile {
    /// Creates the tool for a directory.
    pub fn new(workspace: Workspace) -> Self {
        Self(workspace)
    }
}

impl Tool for EditFile {
    fn name(&self) -> &str {
        "edit_file"
    }

    fn description(&self) -> &str {
        "Replaces a piece of a file. The piece must be in the file exactly once: give enough lines around it."
    }

    fn parameters(&self) -> Value {
        schema_of::<EditFileArguments>()
    }

    async fn call(&self, arguments: Value, _: ToolContext<'_>) -> Result<String, BoxError> {
        let EditFileArguments { path, old_string, new_string, replace_all } = parse(arguments)?;
        let path = self.0.relative(&path).map_err(hinted)?;
        let file = self.0.look(&path).await.map_err(hinted)?;
        let replaced = replace(&file.text, &old_string, &new_string, replace_all.unwrap_or(false));
        let replaced = replaced.map_err(|error| explain(&path, &file.text, &old_string, &error))?;
        self.0.write(&path, Some(file), replaced.text).await?;
        let lines: Vec<String> = replaced.lines.iter().take(MAX_PLACES).map(usize::to_string).collect();
        let more = if replaced.lines.len() > MAX_PLACES { ", …" } else { "" };
        Ok(format!("edited `{path}` at line {}{more}", lines.join(", ")))
    }
}

/// Why nothing was replaced, with what the model needs to correct it.
fn explain(path: &str, text: &str, old: &str, error: &ReplaceError) -> String {
    match error {
        ReplaceError::Empty => "`old_string` is empty; write_file makes a file".to_owned(),
        ReplaceError::Same => "`old_string` and `new_string` are the same".to_owned(),
        ReplaceError::Missing => match nearest(text, old) {
            Some(nearest) => format!(
                "`{path}` does not have this text. What comes nearest, with line numbers that are not part of it:\n{nearest}"
            ),
            None => format!("`{path}` does not have this text, nor anything like it; read the file again"),
        },
        ReplaceError::Several(lines) => {
            let named: Vec<String> = lines.iter().take(MAX_PLACES).map(usize::to_string).collect();
            let more = if lines.len() > MAX_PLACES { ", …" } else { "" };
            format!(
                "`{path}` has this text {} times, at line {}{more}; give more lines around it, or set replace_all",
                lines.len(),
                named.join(", ")
            )
        }
    }
}
