//! What a user pins: it is never folded.

use contexture_core::item::{Item, Role};
use serde::{Deserialize, Serialize};

/// What is never folded, however old it is.
///
/// Only a window that cannot hold all of it makes a fold leave some out, the oldest first, and the decision says so.
///
/// ```
/// use contexture::fold::{Pins, Policy};
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
}

impl Pins {
    /// Pins nothing.
    pub fn new() -> Self {
        Self::default()
    }

    /// The same, with all messages of a role as they are. What users, the system and developers said is kept without
    /// it; pinned, it is also the last to go.
    pub fn role(mut self, role: Role) -> Self {
        self.roles.push(role);
        self
    }

    /// The same, with all calls of a tool and their outputs as they are.
    pub fn tool(mut self, name: impl Into<String>) -> Self {
        self.tools.push(name.into());
        self
    }

    /// The same, with everything that is known of some files in view.
    ///
    /// `*` and `?` stand for characters within one name of the path, `**` for any number of names. A pattern that does
    /// not begin with `/` matches beneath any directory.
    pub fn path(mut self, pattern: impl Into<String>) -> Self {
        self.paths.push(pattern.into());
        self
    }

    /// Whether nothing is pinned.
    pub fn is_empty(&self) -> bool {
        self.roles.is_empty() && self.tools.is_empty() && self.paths.is_empty()
    }

    /// Whether an item is pinned by itself: a message by its role, a call by its tool.
    pub fn has_item(&self, item: &Item) -> bool {
        match item {
            Item::Message(message) => self.roles.contains(&message.role),
            Item::FunctionCall(call) => self.tools.iter().any(|tool| *tool == *call.name),
            Item::FunctionCallOutput(_) | Item::Reasoning(_) | Item::Opaque(_) => false,
        }
    }

    /// Whether a file is pinned.
    pub fn has_path(&self, path: &str) -> bool {
        self.paths.iter().any(|pattern| matches(pattern, path))
    }
}

/// Whether a pattern matches a path.
fn matches(pattern: &str, path: &str) -> bool {
    let names = |text: &str| -> Vec<String> {
        text.split(['/', '\\']).filter(|name| !matches!(*name, "" | ".")).map(str::to_owned).collect()
    };
    let (wanted, given) = (names(pattern), names(path));
    if wanted.is_empty() {
        return false;
    }
    let is_rooted = pattern.starts_with('/');
    let starts = if is_rooted { 0..=0 } else { 0..=given.len() };
    starts.into_iter().any(|start| names_match(&wanted, &given[start..]))
}

/// Whether names match, where `**` is any number of names. Each pair is looked at once.
fn names_match(wanted: &[String], given: &[String]) -> bool {
    let mut can_match = vec![false; given.len() + 1];
    can_match[given.len()] = true;
    for pattern in wanted.iter().rev() {
        let mut next = vec![false; given.len() + 1];
        for at in (0..=given.len()).rev() {
            next[at] = match pattern.as_str() {
                "**" => can_match[at] || next.get(at + 1).copied().unwrap_or(false),
                pattern => at < given.len() && can_match[at + 1] && name_matches(pattern, &given[at]),
            };
        }
        can_match = next;
    }
    can_match[0]
}

/// Whether one name matches, where `*` is any number of characters and `?` is one.
fn name_matches(pattern: &str, name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let mut can_match = vec![false; name.len() + 1];
    can_match[0] = true;
    for character in pattern.chars() {
        let mut next = vec![false; name.len() + 1];
        for at in 0..=name.len() {
            next[at] = match character {
                '*' => can_match[at] || (at > 0 && next[at - 1]),
                character => at > 0 && can_match[at - 1] && (character == '?' || character == name[at - 1]),
            };
        }
        can_match = next;
    }
    can_match[name.len()]
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_whole_names_beneath_any_directory() {
        let cases = [
            ("PLAN.md", "docs/PLAN.md", true),
            ("docs/PLAN.md", "/home/me/app/docs/PLAN.md", true),
            ("docs/PLAN.md", "/home/me/mydocs/PLAN.md", false),
            ("*.sql", "schema/a.sql", true),
            ("schema/*.sql", "schema/old/a.sql", false),
            ("schema/**/*.sql", "schema/old/a.sql", true),
            ("schema/**/*.sql", "schema/a.sql", true),
            ("schema/**", "x/schema/a/b", true),
            ("/etc/*", "/etc/hosts", true),
            ("/etc/*", "/srv/etc/hosts", false),
            ("a?.rs", "ab.rs", true),
            ("a?.rs", "a.rs", false),
            ("**", "anything/at/all", true),
            ("./src/lib.rs", "src/lib.rs", true),
            ("src\\lib.rs", "d:/app/src/lib.rs", true),
            ("", "a", false),
            ("/", "a", false),
        ];
        for (pattern, path, is_match) in cases {
            assert_eq!(matches(pattern, path), is_match, "{pattern} on {path}");
        }
    }
}
