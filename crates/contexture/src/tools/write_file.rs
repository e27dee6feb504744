//! `write_file`: writes a file.

use contexture_core::error::BoxError;
use contexture_core::host::FileErrorCode;
use contexture_core::tool::{Tool, ToolContext};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::arguments::{parse, schema_of};
use super::replace::with_line_ends_of;
use super::workspace::{Workspace, hinted};

/// Writes a file.
#[derive(Clone, Debug)]
pub struct WriteFile(Workspace);

#[derive(Deserialize, JsonSchema)]
struct WriteFileArguments {
    /// The file, relative to the working directory.
    path: String,
    /// The whole text of the file.
    content: String,
}

impl WriteFile {
    /// Creates the tool for a directory.
    pub fn new(workspace: Workspace) -> Self {
        Self(workspace)
    }
}

impl Tool for WriteFile {
    fn name(&self) -> &str {
        "write_file"
    }

    fn description(&self) -> &str {
        "Makes a file, or replaces the whole text of one that was read before. Missing directories are made."
    }

    fn parameters(&self) -> Value {
        schema_of::<WriteFileArguments>()
    }

    async fn call(&self, arguments: Value, _: ToolContext<'_>) -> Result<String, BoxError> {
        let WriteFileArguments { path, content } = parse(arguments)?;
        let path = self.0.relative(&path).map_err(hinted)?;
        let before = match self.0.look(&path).await {
            Ok(file) => Some(file),
            Err(error) if error.code == FileErrorCode::NotFound => None,
            Err(error) => return Err(hinted(error)),
        };
        if let Some(file) = &before {
            if !self.0.was_read(&path) {
                return Err(format!("`{path}` is there already; read it before you replace it").into());
            }
            if !self.0.is_known(&path, &file.text) {
                return Err(
                    format!("`{path}` changed since you read it; read it again, then decide what to write").into()
                );
            }
        }
        let text = before.as_ref().map_or_else(|| content.clone(), |file| with_line_ends_of(&file.text, &content));
        let (lines, is_new) = (text.lines().count(), before.is_none());
        self.0.write(&path, before, text).await?;
        Ok(format!("{} `{path}`: {lines} lines", if is_new { "made" } else { "replaced" }))
    }
}
