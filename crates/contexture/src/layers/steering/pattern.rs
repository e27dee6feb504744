//! Rules that name tools, paths and commands.

use contexture_core::item::FunctionCall;
use contexture_core::layer::SteeringDecision;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::command;
use crate::arguments::{is_command, maybe_paths, normal_path, texts};
use contexture_text::block::flat;
use contexture_text::pattern::{name_matches, path_matches};

/// The effect of a matching pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// The call runs, regardless of guidance from other rules.
    Allow,
    /// The call does not run.
    #[default]
    Deny,
    /// The call does not run, and the message says how to do it differently.
    Guide,
}

/// A rule over tool calls. Fields that are not set match everything.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pattern {
    /// The rule's name, for the ledger.
    pub name: String,
    /// The effect when it matches.
    pub action: Action,
    /// The tool's public name; `*` matches any characters.
    #[serde(default)]
    pub tool: Option<String>,
    /// A path that the call names; `*` matches within one name, `**` any number of names.
    #[serde(default)]
    pub path: Option<String>,
    /// A command, with its arguments, as in `git push *`.
    #[serde(default)]
    pub command: Option<String>,
    /// Why it is denied, or how to do it differently.
    #[serde(default)]
    pub message: String,
}

impl Pattern {
    /// Creates a rule that denies every call, until it is narrowed.
    pub fn deny(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self { name: name.into(), message: message.into(), ..Self::default() }
    }

    /// Creates a rule that guides every call, until it is narrowed.
    pub fn guide(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self { action: Action::Guide, ..Self::deny(name, message) }
    }

    /// Creates a rule that allows every call, until it is narrowed.
    pub fn allow(name: impl Into<String>) -> Self {
        Self { action: Action::Allow, ..Self::deny(name, "") }
    }

    /// Limits it to one tool.
    pub fn tool(mut self, tool: impl Into<String>) -> Self {
        self.tool = Some(tool.into());
        self
    }

    /// Limits it to one path.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Limits it to one command.
    pub fn command(mut self, command: impl Into<String>) -> Self {
        self.command = Some(command.into());
        self
    }

    /// Whether the rule applies to a call. `bases` are absolute paths of the directory that paths are relative to.
    pub(super) fn matches(&self, tool: &str, call: &FunctionCall, bases: &[String]) -> bool {
        let arguments = call.parsed_arguments();
        self.tool.as_ref().is_none_or(|pattern| name_matches(pattern, tool))
            && self.path.as_ref().is_none_or(|pattern| self.matches_path(pattern, &arguments, bases))
            && self.command.as_ref().is_none_or(|pattern| self.matches_command(pattern, &arguments))
    }

    /// For a denial one matching path is enough, wherever it is; to allow, all paths of the call must match.
    fn matches_path(&self, pattern: &str, arguments: &Value, bases: &[String]) -> bool {
        let paths = maybe_paths(arguments);
        let has_command = texts(arguments).iter().any(|(name, _)| is_command(name));
        let matches = |path: &String| path_matches(pattern, &normal_path(path, bases));
        match self.action {
            Action::Allow => !paths.is_empty() && !has_command && paths.iter().all(matches),
            Action::Deny | Action::Guide => paths.iter().any(matches),
        }
    }

    fn matches_command(&self, pattern: &str, arguments: &Value) -> bool {
        let texts = texts(arguments);
        let mut lines = texts.iter().filter(|(name, _)| is_command(name)).map(|(_, text)| *text).peekable();
        match self.action {
            Action::Allow => lines.peek().is_some() && lines.all(|line| command::is_all(pattern, line)),
            Action::Deny | Action::Guide => lines.any(|line| command::may_have(pattern, line)),
        }
    }

    pub(super) fn decision(&self) -> SteeringDecision {
        let message = if self.message.trim().is_empty() { "this is not allowed here" } else { &self.message };
        match self.action {
            Action::Allow => SteeringDecision::Allow,
            Action::Deny => SteeringDecision::deny(message),
            Action::Guide => SteeringDecision::guide(message),
        }
    }

    /// The rule in words for the model.
    pub(super) fn in_words(&self) -> String {
        let verb = if self.action == Action::Deny { "not allowed" } else { "to be done differently" };
        let parts = [("tool", &self.tool), ("path", &self.path), ("command", &self.command)];
        let named: Vec<String> =
            parts.iter().filter_map(|(kind, text)| Some(format!("{kind} `{}`", flat(text.as_ref()?)))).collect();
        let what = if named.is_empty() { "every call".to_owned() } else { named.join(", ") };
        let message = if self.message.trim().is_empty() { String::new() } else { format!(": {}", flat(&self.message)) };
        format!("- {what} is {verb}{message}")
    }
}
