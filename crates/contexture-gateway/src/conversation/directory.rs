//! The directory that an agent works in, as its conversation says it.

use std::sync::Arc;

use contexture::item::{Item, Role};
use contexture::wire::Request;
use contexture_agents::every;

/// Longest path that is looked for.
const MAX_BYTES: usize = 4096;

/// How often the words before a path are looked at that no path follows.
const MAX_MARKS: usize = 64;

/// The directory that the instructions of a request name: those that are no messages, or the leading messages.
pub(crate) fn of_instructions(request: &Request<'_>, lead: usize) -> Option<Arc<str>> {
    let lead = request.messages().iter().take(lead).map(|message| message.get());
    lead.chain(request.others()).find_map(|json| named_in(json, unescaped))
}

/// The directory that a message names, if an agent writes it: one of instructions, the first of the conversation, or one
/// that begins with a tag.
pub(crate) fn of_message(item: &Item, is_first: bool) -> Option<Arc<str>> {
    let message = item.as_message().filter(|message| message.role != Role::Assistant)?;
    let text = message.text_cow();
    let is_of_agent = message.role != Role::User || is_first || text.trim_start().starts_with('<');
    if is_of_agent { named_in(&text, str::to_owned) } else { None }
}

/// The directory that a text names in the words of any agent. `plain` makes plain text of a part of it.
fn named_in(text: &str, plain: impl Fn(&str) -> String) -> Option<Arc<str>> {
    let lower = text.to_ascii_lowercase();
    let marks = every(|agent| agent.notes().directory());
    let named = marks.filter_map(|mark| {
        let starts = lower.match_indices(mark.before()).map(|(at, before)| at + before.len());
        let mut starts = starts.take(MAX_MARKS);
        starts.find_map(|start| {
            let end = contexture_core::tokens::floor_boundary(text, start.saturating_add(MAX_BYTES));
            let rest = plain(&text[start..end]);
            let path = rest.split(mark.after()).next().unwrap_or_default().trim();
            is_path(path).then(|| (start, Arc::from(path)))
        })
    });
    named.min_by_key(|(start, _)| *start).map(|(_, path)| path)
}

/// Whether a text is the absolute path of a directory.
fn is_path(text: &str) -> bool {
    let drive = text.as_bytes().get(1) == Some(&b':') && text.as_bytes()[0].is_ascii_alphabetic();
    (text.starts_with('/') || drive) && !text.contains(['\n', '"', '<'])
}

/// The text that a part of a string of JSON is, as far as the string goes.
fn unescaped(json: &str) -> String {
    let (mut text, mut signs) = (String::new(), json.chars());
    while let Some(sign) = signs.next() {
        match sign {
            '"' => break,
            '\\' => match signs.next() {
                Some(sign @ ('\\' | '"' | '/')) => text.push(sign),
                // Every other escape is of something that no path has.
                _ => text.push('\n'),
            },
            sign => text.push(sign),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use contexture::wire::Format;
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check_instructions(text: &str, expected: Option<&str>) {
        let chat = json!({"messages": [{"role": "system", "content": text}, {"role": "user", "content": "hi"}]});
        let messages = json!({"system": text, "messages": [{"role": "user", "content": "hi"}]});
        for (format, body, lead) in [(Format::Chat, chat, 1), (Format::Messages, messages, 0)] {
            let body = body.to_string();
            let request = Request::parse(format, &body).unwrap();
            assert_eq!(of_instructions(&request, lead).as_deref(), expected, "{format:?}: {text}");
        }
    }

    #[test]
    fn instructions_name_the_directory() {
        check_instructions("<env>\nWorking directory: /srv/app\nIs git: yes\n</env>", Some("/srv/app"));
        check_instructions(" - Primary working directory: /srv/my app", Some("/srv/my app"));
        check_instructions("Current Working Directory: C:\\work\\app\n", Some("C:\\work\\app"));
        check_instructions("The current working directory is `/srv/app`.", Some("/srv/app"));
        check_instructions("# Current Working Directory (/srv/app) Files", Some("/srv/app"));
        check_instructions("Say the working directory: always", None);
        check_instructions("Say the working directory: always\nWorking directory: /srv/app", Some("/srv/app"));
        check_instructions("You are an agent.", None);
    }

    #[test]
    fn messages_of_agents_name_it_and_others_do_not() {
        let context = "<environment_context>\n  <cwd>/srv/sub</cwd>\n</environment_context>";
        let of = |item: Item, is_first| of_message(&item, is_first).map(|path| path.to_string());
        assert_eq!(of(Item::user(context), false).as_deref(), Some("/srv/sub"));
        assert_eq!(of(Item::developer("Working directory: /srv/sub\n"), false).as_deref(), Some("/srv/sub"));
        let gemini = "I'm currently working in the directory: /srv/app\nHere is the structure";
        assert_eq!(of(Item::user(gemini), true).as_deref(), Some("/srv/app"));
        for item in [Item::user(gemini), Item::assistant(context), Item::output("1", context)] {
            assert_eq!(of(item, false), None);
        }
    }
}
