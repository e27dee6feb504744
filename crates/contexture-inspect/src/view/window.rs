//! A window: its blocks, and the texts of them.

use std::collections::BTreeMap;

use contexture_text::window_part::WindowPart;
use serde::{Deserialize, Serialize};

use super::files::FileGrade;
use crate::block::{BlockKind, BlockSource};

/// The form in which a window is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowForm {
    /// As sent.
    Sent,
    /// As received.
    Came,
    /// As sent, compared with the previous request.
    Before,
}

impl WindowForm {
    /// Its name in the API.
    pub fn name(self) -> &'static str {
        match self {
            WindowForm::Sent => "sent",
            WindowForm::Came => "came",
            WindowForm::Before => "before",
        }
    }

    /// Parses a form by its name.
    pub fn named(name: &str) -> Option<Self> {
        [WindowForm::Sent, WindowForm::Came, WindowForm::Before].into_iter().find(|form| form.name() == name)
    }
}

/// The state of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockState {
    /// Sent as received.
    Kept,
    /// Sent with a different text.
    Shortened,
    /// Written by Contexture.
    Made,
    /// Received, but not sent.
    LeftOut,
    /// Unchanged since the previous request, and before the first change.
    Same,
    /// Unchanged since the previous request, but after a change, so it is billed again.
    Behind,
    /// Not in the previous request.
    New,
    /// In the previous request, but not in this one.
    Gone,
}

/// Lines of a file that a window shows, and how well they are known.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileView {
    /// The block that shows them.
    pub block: u32,
    /// The path, as the model sees it.
    pub path: String,
    /// The lines: `all 40`, `12–20`, or how many.
    pub lines: String,
    /// How many lines.
    pub count: u64,
    /// How well they are known.
    pub grade: FileGrade,
    /// The first and the last message at which they were seen or written, as the model is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moments: Option<(u32, u32)>,
    /// What changed the file since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Whether Contexture wrote them, as against the output of a read.
    pub is_written: bool,
}

/// A block of a window.
#[derive(Clone, Debug, Serialize)]
pub struct BlockLine {
    /// Its index in the window.
    pub place: u64,
    /// Its id.
    pub id: u32,
    /// Its source.
    pub source: BlockSource,
    /// Its kind.
    pub kind: BlockKind,
    /// The part of a window that it belongs to, wherever it stands.
    pub part: WindowPart,
    /// The role of its author.
    pub role: String,
    /// The tool or file it is about.
    pub name: String,
    /// What it is, if Contexture wrote it: `views`, `account`, `records`, `digest`, `brought_back`, `echoes`, `references`, `note`,
    /// `cut`, `layer` or `summary`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub made: String,
    /// The lines of files that it shows, if Contexture wrote it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub views: Vec<FileView>,
    /// Its tokens, as the provider counts this request.
    pub tokens: u64,
    /// Bytes of its text.
    pub bytes: u64,
    /// Whether it reports a failure.
    pub is_error: bool,
    /// The start of its text, on one line.
    pub preview: String,
    /// Its state.
    pub state: BlockState,
    /// The reason for its state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How reliable the file lines that it shows are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grade: Option<FileGrade>,
    /// Why the grade is not higher.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grade_reason: Option<String>,
    /// The block that it replaces, or that replaces it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other: Option<u32>,
    /// Whether it is pinned.
    pub is_pinned: bool,
    /// The request in which it first appeared.
    pub since: u64,
}

/// A page of a window.
#[derive(Clone, Debug, Serialize)]
pub struct WindowPage {
    /// The form.
    pub form: WindowForm,
    /// The number of blocks in the window.
    pub total: u64,
    /// Tokens of the whole window.
    pub tokens: u64,
    /// The index of the first block that differs from what the form is compared with.
    pub first_difference: Option<u64>,
    /// The index of the first block that the provider did not read from its cache, judging by its figures.
    pub cache_boundary: Option<u64>,
    /// The number of blocks in each state.
    pub states: BTreeMap<BlockState, u64>,
    /// The row of the requested block, if it is in the window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
    /// The first row of this page.
    pub from: u64,
    /// The blocks of this page.
    pub blocks: Vec<BlockLine>,
    /// Where the next page starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// The text of a block, or a part of it.
#[derive(Clone, Debug, Serialize)]
pub struct BlockText {
    /// The block.
    pub id: u32,
    /// Its source.
    pub source: BlockSource,
    /// Its kind.
    pub kind: BlockKind,
    /// The tool or file it is about.
    pub name: String,
    /// The id of the call that it is, or that it is the output of.
    pub call: String,
    /// Size of the whole text in bytes.
    pub bytes: u64,
    /// Where this part begins, in bytes.
    pub from: u64,
    /// The text of this part.
    pub text: String,
    /// Where the next part begins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}
