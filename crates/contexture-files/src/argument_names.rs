//! The names of the arguments of tools, by what they hold.
//!
//! Agents agree on them only loosely. Whoever looks for a path, a command or a text in a call does it with these, after
//! [`common_arguments`](crate::dialect::Dialects::common_arguments) has renamed those of tools that are configured.

use serde_json::Value;

pub use contexture_agents::argument_names as names;

/// The path that arguments name.
///
/// ```
/// use contexture_files::argument_names::path_in;
/// assert_eq!(path_in(&serde_json::json!({ "notebook_path": "a.ipynb" })), Some("a.ipynb"));
/// ```
pub fn path_in(arguments: &Value) -> Option<&str> {
    names().path().iter().find_map(|name| arguments.get(*name)?.as_str())
}

/// Whether an argument of this name holds a text, which is no path whatever is in it. Names that some tools give to paths
/// are left out.
pub fn holds_text(name: &str) -> bool {
    const MAYBE_PATHS: &[&str] = &["old", "new", "find", "search", "input", "code"];
    let texts = [names().content(), names().old(), names().replacement(), names().insert(), names().patch()];
    !MAYBE_PATHS.contains(&name) && texts.iter().any(|names| names.contains(&name))
}
