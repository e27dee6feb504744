//! `read_file`: shows lines of a file with their numbers.

use contexture_core::error::BoxError;
use contexture_core::tool::{Tool, ToolContext};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::arguments::{parse, schema_of};
use super::workspace::{Workspace, hinted};

/// Most lines that one call shows.
const MAX_LINES: usize = 2_000;

/// Most bytes that one call shows: about 16 000 tokens.
const MAX_BYTES: usize = 64 * 1024;

/// Shows lines of a file with their numbers.
#[derive(Clone, Debug)]
pub struct ReadFile(Workspace);

#[derive(Deserialize, JsonSchema)]
struct ReadFileArguments {
    /// The file, relative to the working directory.
    path: String,
    /// The first line to show; 1 if left out.
    offset: Option<usize>,
    /// How many lines to show; 2000 if left out.
    limit: Option<usize>,
}

impl ReadFile {
    /// Creates the tool for a directory.
    pub fn new(workspace: Workspace) -> Self {
        Self(workspace)
    }
}

impl Tool for ReadFile {
    fn name(&self) -> &str {
        "read_file"
    }

    fn description(&self) -> &str {
        "Shows a text file: each line after its number and a tab. Long files are shown in parts; say offset and limit for more."
    }

    fn parameters(&self) -> Value {
        schema_of::<ReadFileArguments>()
    }

    async fn call(&self, arguments: Value, _: ToolContext<'_>) -> Result<String, BoxError> {
        let ReadFileArguments { path, offset, limit } = parse(arguments)?;
        let path = self.0.relative(&path).map_err(hinted)?;
        let file = self.0.read(&path).await.map_err(hinted)?;
        numbered(&file.text, offset.unwrap_or(1).max(1), limit.unwrap_or(MAX_LINES).clamp(1, MAX_LINES))
    }
}

/// The lines with their numbers, and a note about what is not shown.
fn numbered(text: &str, first: usize, limit: usize) -> Result<String, BoxError> {
    let total = text.lines().count();
    if total == 0 {
        return Ok("(the file is empty)".to_owned());
    }
    if first > total {
        return Err(format!("the file has {total} lines; offset must not be larger").into());
    }
    let (mut shown, mut last) = (String::new(), first - 1);
    for (index, line) in text.lines().enumerate().skip(first - 1).take(limit) {
        let line = format!("{}\t{line}\n", index + 1);
        if !shown.is_empty() && shown.len() + line.len() > MAX_BYTES {
            break;
        }
        match line.len() > MAX_BYTES {
            true => {
                shown.push_str(&line[..line.floor_char_boundary(MAX_BYTES)]);
                shown.push_str("…\n[this line is longer; search_files finds parts of it]\n");
            }
            false => shown.push_str(&line),
        }
        last = index + 1;
    }
    if last < total {
        shown.push_str(&format!("[lines {first}-{last} of {total}; go on with offset {}]\n", last + 1));
    } else {
        // Without this, the numbers could be part of the text for those who read the output later.
        shown.push_str(&format!("(End of file: {total} line{})\n", if total == 1 { "" } else { "s" }));
    }
    Ok(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_carry_their_numbers_and_a_part_says_that_there_is_more() {
        assert_eq!(numbered("a\nb\nc", 1, 10).unwrap(), "1\ta\n2\tb\n3\tc\n(End of file: 3 lines)\n");
        assert_eq!(numbered("a\r\nb", 1, 10).unwrap(), "1\ta\n2\tb\n(End of file: 2 lines)\n");
        assert_eq!(numbered("a", 1, 10).unwrap(), "1\ta\n(End of file: 1 line)\n");
        assert_eq!(numbered("a\nb\nc\nd", 4, 10).unwrap(), "4\td\n(End of file: 4 lines)\n");
        assert_eq!(numbered("a\nb\nc\nd\n", 2, 2).unwrap(), "2\tb\n3\tc\n[lines 2-3 of 4; go on with offset 4]\n");
        assert_eq!(numbered("", 1, 10).unwrap(), "(the file is empty)");
        assert!(numbered("a\n", 2, 1).unwrap_err().to_string().contains("1 lines"));
    }

    #[test]
    fn a_call_shows_no_more_than_its_limit() {
        let text = "x".repeat(1_000) + "\n";
        let shown = numbered(&text.repeat(1_000), 1, MAX_LINES).unwrap();
        assert!(shown.len() < MAX_BYTES + 100, "{}", shown.len());
        assert!(shown.ends_with("go on with offset 66]\n"), "{}", &shown[shown.len() - 60..]);
        let shown = numbered(&"é".repeat(MAX_BYTES), 1, 1).unwrap();
        assert!(shown.len() < MAX_BYTES + 100 && shown.contains("this line is longer"));
    }
}
