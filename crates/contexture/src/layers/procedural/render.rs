//! Skills as the model reads them.

use std::sync::Arc;

use contexture_core::LayerId;
use contexture_core::tokens::TokenCounter;
use contexture_core::window::fence_for;

use super::find::Skill;
use super::{MAX_LIST_TOKENS, Opened};
use contexture_text::block::{fit_parts, fits, start_of};
use contexture_text::one_line::one_line;

/// Descriptions are shortened in steps of this many bytes.
const STEP_BYTES: usize = 16;

/// What is listed.
pub(super) struct SkillList<'a> {
    pub(super) skills: &'a [Arc<Skill>],
    pub(super) left_out: usize,
}

/// The list and the open skills within a number of tokens. `opened` has the most recently opened one first.
pub(super) fn block(
    counter: &dyn TokenCounter,
    layer: &LayerId,
    listed: &SkillList<'_>,
    opened: &[&Opened],
    tokens: u64,
) -> Option<String> {
    // Open skills are in use, so the list leaves them most of the room.
    let list_tokens = if opened.is_empty() { tokens } else { tokens / 4 }.min(MAX_LIST_TOKENS);
    let list = listed.within(counter, layer, list_tokens).unwrap_or_default();
    fit_parts(counter, layer, tokens, opened.len(), |shown| {
        let mut text = list.clone();
        for opened in opened[..shown].iter().rev() {
            let fence = fence_for(&opened.text);
            text.push_str(&format!("\nThe skill `{}`:\n{fence}\n{}\n{fence}", one_line(&opened.name), opened.text));
        }
        let hidden: Vec<String> =
            opened[shown..].iter().map(|opened| format!("`{}`", one_line(&opened.name))).collect();
        if !hidden.is_empty() {
            text.push_str(&format!("\nOpen, but there is no room to show them: {}.", hidden.join(", ")));
        }
        text.trim_start().to_owned()
    })
}

impl SkillList<'_> {
    /// The list: descriptions are shortened evenly before any skill is left out.
    fn within(&self, counter: &dyn TokenCounter, layer: &LayerId, tokens: u64) -> Option<String> {
        if self.skills.is_empty() {
            return Some(self.text(0, 0));
        }
        let longest = self.skills.iter().map(|skill| skill.description.len()).max().unwrap_or(0);
        let steps = longest.div_ceil(STEP_BYTES);
        if fits(counter, layer, &self.text(self.skills.len(), 0), tokens) {
            return fit_parts(counter, layer, tokens, steps, |steps| self.text(self.skills.len(), steps * STEP_BYTES));
        }
        fit_parts(counter, layer, tokens, self.skills.len(), |shown| self.text(shown, 0))
    }

    /// The first `shown` skills, with a limit of bytes for each description.
    fn text(&self, shown: usize, bytes: usize) -> String {
        let mut text = String::new();
        if !self.skills.is_empty() {
            text.push_str("Skills. Before a task that one of them describes, open it with `procedural/open`.");
        }
        for skill in &self.skills[..shown] {
            match bytes {
                0 => text.push_str(&format!("\n- `{}`", one_line(&skill.name))),
                bytes => {
                    let description = start_of(&skill.description, bytes);
                    text.push_str(&format!("\n- `{}`: {description}", one_line(&skill.name)));
                }
            }
        }
        let hidden = self.skills.len() - shown;
        if hidden > 0 {
            text.push_str(&format!("\n({hidden} of {} skills are not listed for lack of room)", self.skills.len()));
        }
        if self.left_out > 0 {
            text.push_str(&format!(
                "\n({} folders with a SKILL.md without a description, or beyond the bound, are left out)",
                self.left_out
            ));
        }
        text.trim_start().to_owned()
    }
}
