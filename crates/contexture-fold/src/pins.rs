//! What a user pins: it is never folded.

use contexture_core::item::{Item, Role};
use serde::{Deserialize, Serialize};

use super::cap::short_hash;
use contexture_text::pattern::path_matches;

/// What is never folded, however old it is.
///
/// Only if a window cannot hold all of it does a fold leave some out, oldest first, and the decision records that.
///
/// ```
/// use contexture_fold::{Pins, Policy};
///
/// let pins = Pins::new().tool("Skill").path("docs/PLAN.md").path("schema/*.sql");
/// let policy = Policy::new(64_000).with_pins(pins);
/// assert!(policy.pins.has_path("/home/me/app/docs/PLAN.md"));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pins {
    roles: Vec<Role>,
    tools: Vec<String>,
    paths: Vec<String>,
    /// Calls, by their ids.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    calls: Vec<String>,
    /// Messages, by the hashes of their texts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    texts: Vec<String>,
}

impl Pins {
    /// Pins nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with all messages of a role kept as they are. What users, the system and developers said is kept
    /// anyway; if pinned, it is also the last to be left out.
    pub fn role(mut self, role: Role) -> Self {
        self.roles.push(role);
        self
    }

    /// The same, with all calls of a tool and their outputs kept as they are.
    pub fn tool(mut self, name: impl Into<String>) -> Self {
        self.tools.push(name.into());
        self
    }

    /// The same, with everything that is known of some files kept in view.
    ///
    /// `*` and `?` match characters within one name of the path, `**` matches any number of names. A pattern that does
    /// not begin with `/` matches beneath any directory.
    pub fn path(mut self, pattern: impl Into<String>) -> Self {
        self.paths.push(pattern.into());
        self
    }

    /// The same, with one call and its output kept as they are.
    pub fn call(mut self, id: &str) -> Self {
        if !self.calls.iter().any(|call| call == id) {
            self.calls.push(id.to_owned());
        }
        self
    }

    /// The same without a call that was pinned.
    pub fn without_call(mut self, id: &str) -> Self {
        self.calls.retain(|call| call != id);
        self
    }

    /// The same, with messages of exactly this text kept as they are.
    pub fn text(mut self, text: &str) -> Self {
        let hash = short_hash(text);
        if !self.texts.contains(&hash) {
            self.texts.push(hash);
        }
        self
    }

    /// The same without messages of a text that was pinned.
    pub fn without_text(mut self, text: &str) -> Self {
        let hash = short_hash(text);
        self.texts.retain(|pinned| *pinned != hash);
        self
    }

    /// The same, with everything that another pins.
    pub fn and(mut self, other: &Pins) -> Self {
        let Pins { roles, tools, paths, calls, texts } = other;
        self.roles.extend(roles);
        self.tools.extend(tools.iter().cloned());
        self.paths.extend(paths.iter().cloned());
        self.calls.extend(calls.iter().cloned());
        self.texts.extend(texts.iter().cloned());
        self
    }

    /// Whether nothing is pinned.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether an item itself is pinned: a message by its role or text, a call by its tool or id.
    pub fn has_item(&self, item: &Item) -> bool {
        match item {
            Item::Message(message) => {
                self.roles.contains(&message.role)
                    || (!self.texts.is_empty() && self.texts.contains(&short_hash(&message.text_cow())))
            }
            Item::FunctionCall(call) => {
                self.tools.iter().any(|tool| *tool == *call.name) || self.calls.iter().any(|id| *id == *call.call_id)
            }
            Item::FunctionCallOutput(_) | Item::Reasoning(_) | Item::Opaque(_) => false,
        }
    }

    /// Whether a file is pinned.
    pub fn has_path(&self, path: &str) -> bool {
        self.paths.iter().any(|pattern| path_matches(pattern, path))
    }
}
