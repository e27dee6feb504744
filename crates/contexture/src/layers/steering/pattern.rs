//! Rules that name tools, paths and commands.

use contexture_core::layer::SteeringDecision;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::command::{self, Likeness};
use crate::arguments::{ArgumentCommand, commands, maybe_paths, name_patterns, normal_path};
use contexture_text::block::flat;
use contexture_text::pattern::{name_matches, path_matches, patterns_meet};

/// The effect of a matching pattern.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleAction {
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
    pub action: RuleAction,
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
        Self { action: RuleAction::Guide, ..Self::deny(name, message) }
    }

    /// Creates a rule that allows every call, until it is narrowed.
    pub fn allow(name: impl Into<String>) -> Self {
        Self { action: RuleAction::Allow, ..Self::deny(name, "") }
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

    /// Whether the rule applies to a call, by its arguments under common names. `bases` are absolute names of the
    /// directory that paths are relative to.
    pub(super) fn likeness(&self, tool: &str, arguments: &Value, bases: &[String]) -> Likeness {
        let applies = self.tool.as_ref().is_none_or(|pattern| name_matches(pattern, tool))
            && self.path.as_ref().is_none_or(|pattern| self.matches_path(pattern, arguments, bases));
        match &self.command {
            _ if !applies => Likeness::No,
            Some(pattern) => self.command_likeness(pattern, arguments),
            None => Likeness::Yes,
        }
    }

    /// Whether it denies paths to a tool, whatever else a call of it says.
    pub(super) fn denies_paths_of(&self, tool: &str) -> bool {
        self.action == RuleAction::Deny
            && self.command.is_none()
            && self.tool.as_ref().is_none_or(|pattern| name_matches(pattern, tool))
    }

    /// For a denial one matching path is enough, wherever it is; to allow, all paths of the call must match.
    fn matches_path(&self, pattern: &str, arguments: &Value, bases: &[String]) -> bool {
        let paths = maybe_paths(arguments);
        let has_command = !commands(arguments).is_empty();
        let matches = |path: &String| path_matches(pattern, &normal_path(path, bases));
        match self.action {
            RuleAction::Allow => !paths.is_empty() && !has_command && paths.iter().all(matches),
            RuleAction::Deny | RuleAction::Guide => {
                paths.iter().any(matches)
                    || name_patterns(arguments).iter().any(|given| patterns_meet(pattern, &normal_path(given, bases)))
            }
        }
    }

    /// For a denial one command that may be meant is enough; to allow, all commands of the call must match.
    fn command_likeness(&self, pattern: &str, arguments: &Value) -> Likeness {
        let commands = commands(arguments);
        let is_allowed = |command: &ArgumentCommand<'_>| match command {
            ArgumentCommand::Line(line) => command::is_all(pattern, line),
            ArgumentCommand::Words(words) => command::is_words(pattern, words),
        };
        let likeness = |command: &ArgumentCommand<'_>| match command {
            ArgumentCommand::Line(line) => command::line_likeness(pattern, line),
            ArgumentCommand::Words(words) => command::words_likeness(pattern, words),
        };
        match self.action {
            RuleAction::Allow if !commands.is_empty() && commands.iter().all(is_allowed) => Likeness::Yes,
            RuleAction::Allow => Likeness::No,
            RuleAction::Deny | RuleAction::Guide => commands.iter().map(likeness).max().unwrap_or(Likeness::No),
        }
    }

    /// Whether it allows a command that it names, and not any.
    pub(super) fn allows_by_name(&self) -> bool {
        let names = |command: &String| !command.trim_start().starts_with(['*', '?']);
        self.action == RuleAction::Allow && self.command.as_ref().is_some_and(names)
    }

    pub(super) fn decision(&self) -> SteeringDecision {
        let message = if self.message.trim().is_empty() { "this is not allowed here" } else { &self.message };
        match self.action {
            RuleAction::Allow => SteeringDecision::Allow,
            RuleAction::Deny => SteeringDecision::deny(message),
            RuleAction::Guide => SteeringDecision::guide(message),
        }
    }

    /// The decision about a call that may be meant, but is not understood as a whole.
    pub(super) fn decision_in_doubt(&self, likeness: Likeness) -> SteeringDecision {
        let why = match likeness {
            Likeness::UnclearFile => {
                "it is a shell that runs what a file says, so it may be what this rule is about; run the commands that \
                 are needed themselves, or ask the user, who can allow it with a rule that names it"
            }
            _ => {
                "the command is not understood as a whole, so it may be what this rule is about; write it plainly, \
                 without what a shell reads from elsewhere"
            }
        };
        match self.decision() {
            SteeringDecision::Deny { reason } => SteeringDecision::deny(format!("{reason} ({why})")),
            SteeringDecision::Guide { guidance } => SteeringDecision::guide(format!("{guidance} ({why})")),
            SteeringDecision::Allow => SteeringDecision::Allow,
        }
    }

    /// The rule in words for the model.
    pub(super) fn in_words(&self) -> String {
        let verb = if self.action == RuleAction::Deny { "not allowed" } else { "to be done differently" };
        let parts = [("tool", &self.tool), ("path", &self.path), ("command", &self.command)];
        let named: Vec<String> =
            parts.iter().filter_map(|(kind, text)| Some(format!("{kind} `{}`", flat(text.as_ref()?)))).collect();
        let what = if named.is_empty() { "every call".to_owned() } else { named.join(", ") };
        let message = if self.message.trim().is_empty() { String::new() } else { format!(": {}", flat(&self.message)) };
        format!("- {what} is {verb}{message}")
    }
}
