//! What the tools of each agent say when a change was made, when it was not, and when something else came out.

use contexture_agents::{Says, every};

/// The text after a form at the beginning of a text; `None` if it does not begin with it. The flag says whether anything
/// may follow.
pub(super) fn after<'a>(form: &str, text: &'a str) -> Option<(&'a str, bool)> {
    let (form, is_open) = form.strip_suffix('…').map_or((form, false), |form| (form, true));
    let mut parts = form.split('*');
    let mut rest = text.strip_prefix(parts.next()?)?;
    for part in parts {
        // An open end stands for the path or the count, up to the end of its line.
        let at = if part.is_empty() { name_length(rest) } else { rest.find(part)? };
        rest = &rest[at + part.len()..];
    }
    Some((rest, is_open))
}

/// How many bytes of a text belong to a name at its beginning.
fn name_length(text: &str) -> usize {
    let is_end = |(at, c): (usize, char)| {
        c == '\n' || (c == '.' && text[at + 1..].chars().next().is_none_or(char::is_whitespace)) || c == '('
    };
    text.char_indices().find(|place| is_end(*place)).map_or(text.len(), |(at, _)| at)
}

/// The rows of a tool; a name may be used by several agents.
pub(super) fn of(tool: &str) -> impl Iterator<Item = &'static Says> {
    every(|agent| agent.says()).filter(move |says| says.tools().contains(&tool))
}
