//! The parts of a window, by names that people know: the same in the inspector's page and in the chat.

use serde::{Deserialize, Serialize};

/// A part of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WindowPart {
    /// Instructions and tools, and what the agent's program adds by itself.
    Instructions,
    /// The rules of the project, as in `AGENTS.md`.
    ProjectRules,
    /// What people said.
    People,
    /// What the agent said and thought.
    Agent,
    /// Lines of files.
    Files,
    /// Calls and their outputs.
    Calls,
    /// What came since the model's last answer.
    Newest,
}

impl WindowPart {
    /// All parts, in the order in which they are shown.
    pub const ALL: [Self; 7] =
        [Self::Instructions, Self::ProjectRules, Self::People, Self::Agent, Self::Files, Self::Calls, Self::Newest];

    /// The name that people read.
    pub fn label(self) -> &'static str {
        match self {
            Self::Instructions => "Instructions",
            Self::ProjectRules => PROJECT_RULES,
            Self::People => "People",
            Self::Agent => "Agent",
            Self::Files => "Files",
            Self::Calls => "Calls",
            Self::Newest => "Newest",
        }
    }

    /// The part of something that came since the model's last answer: instructions and rules stay what they are.
    #[must_use]
    pub fn of_newest(self) -> Self {
        match self {
            Self::Instructions | Self::ProjectRules => self,
            _ => Self::Newest,
        }
    }
}

/// The name of the rules of a project, whichever of their files an agent reads.
pub const PROJECT_RULES: &str = "AGENTS.md";

/// Names of files with the rules of a project.
const RULES_FILES: [&str; 3] = [PROJECT_RULES, "CLAUDE.md", "GEMINI.md"];

/// Bytes at the start of a message in which its program names the file that it shows.
const HEAD_BYTES: usize = 600;

/// Whether a message that no person wrote shows the rules of the project.
///
/// ```
/// use contexture_text::window_part::is_project_rules;
/// assert!(is_project_rules("# AGENTS.md instructions for /project\n\n<INSTRUCTIONS>\n- be brief"));
/// assert!(!is_project_rules("<environment_context>linux</environment_context>"));
/// ```
pub fn is_project_rules(text: &str) -> bool {
    let head = &text[..text.floor_char_boundary(HEAD_BYTES)];
    RULES_FILES.iter().any(|name| head.contains(name))
}
