//! What a person said in a message, without what a harness wrote around it.

use std::borrow::Cow;

use contexture_agents::every;

/// What is shown for a message without text.
const EMPTY: &str = "…";

/// What a person said in a message: the text without leading elements such as `<current_datetime>…</current_datetime>`.
/// `None` if nothing is left, or if a harness wrote all of it.
///
/// ```
/// use contexture_text::spoken::spoken;
/// assert_eq!(spoken("<current_datetime>noon</current_datetime>\n\nfix the bug"), Some("fix the bug"));
/// assert_eq!(spoken("<system-reminder>note</system-reminder>"), None);
/// ```
pub fn spoken(text: &str) -> Option<&str> {
    let mut rest = text.trim();
    while let Some(after) = after_element(rest) {
        rest = after.trim_start();
    }
    let is_harness = every(|agent| agent.notes().untyped()).any(|start| rest.starts_with(start));
    (!rest.is_empty() && rest != EMPTY && !is_harness).then_some(rest)
}

/// How harnesses mark what they add to a message, wherever it is.
const REMINDER: [&str; 2] = ["<system-reminder>", "</system-reminder>"];

/// What a person said in a message, also where a harness put reminders between or after it.
pub fn spoken_text(text: &str) -> Option<Cow<'_, str>> {
    if !text.contains(REMINDER[0]) {
        return spoken(text).map(Cow::Borrowed);
    }
    let (mut left, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once(REMINDER[0]) {
        left.push_str(before);
        // A reminder without an end goes on to the end of the message.
        rest = after.split_once(REMINDER[1]).map_or("", |(_, after)| after);
    }
    left.push_str(rest);
    spoken(&left).map(|said| Cow::Owned(said.trim_end().to_owned()))
}

/// Characters of a title.
const TITLE_CHARS: usize = 120;

/// The title of a conversation: the first line of what a person said in a message. `None` if nobody said anything.
///
/// ```
/// use contexture_text::spoken::title_of;
/// let message = "<current_datetime>noon</current_datetime>\nfix the bug\n\nIt is in `main`.";
/// assert_eq!(title_of(message).as_deref(), Some("fix the bug"));
/// ```
pub fn title_of(message: &str) -> Option<String> {
    let said = spoken_text(message)?;
    let line = said.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(match line.char_indices().nth(TITLE_CHARS) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.to_owned(),
    })
}

/// What follows an element of a harness at the start of a text. Such an element has a name of several words, which those
/// of HTML do not have.
fn after_element(text: &str) -> Option<&str> {
    let inside = text.strip_prefix('<')?;
    let name = &inside[..inside.find('>')?];
    let word = name.split(' ').next().unwrap_or_default();
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || "_-".contains(letter);
    let is_long = word.contains(['_', '-']) || (name.contains(' ') && !name.contains('='));
    if word.is_empty() || !word.chars().all(is_name) || !is_long || name.contains('\n') {
        return None;
    }
    let whole = format!("</{name}>");
    let end = match text.find(&whole) {
        Some(at) => at + whole.len(),
        None => {
            let short = format!("</{word}>");
            text.find(&short)? + short.len()
        }
    };
    Some(&text[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        assert_eq!(spoken(text), expected, "{text}");
    }

    #[test]
    fn what_harnesses_write_is_not_what_people_say() {
        check("fix the bug", Some("fix the bug"));
        check("<current_datetime>2025-01-01</current_datetime>\n\nfix the bug", Some("fix the bug"));
        check(
            "<permissions instructions>\nall\n</permissions instructions>\n<apps_instructions>x</apps_instructions>",
            None,
        );
        check("<system-reminder>note</system-reminder>", None);
        check("<environment_context cwd=\"/x\">y</environment_context> go on", Some("go on"));
        check("<div>what does this do?</div>", Some("<div>what does this do?</div>"));
        check("<a href=\"x_y\">what is this?</a>", Some("<a href=\"x_y\">what is this?</a>"));
        check("<unclosed_element> please", Some("<unclosed_element> please"));
        check("Base directory for this skill: /x/skills/commit\n\n# Commits", None);
        check("  \n ", None);
        check("…", None);
        check("<", Some("<"));
        check("<é_x>", Some("<é_x>"));
    }

    #[test]
    fn reminders_are_left_out_wherever_they_are() {
        let said = |text: &str| spoken_text(text).map(Cow::into_owned);
        let reminder = "<system-reminder>\nremember the list\n</system-reminder>";
        assert_eq!(said(&format!("fix it\n{reminder}")).as_deref(), Some("fix it"));
        assert_eq!(said(&format!("{reminder}\nfix it{reminder} now")).as_deref(), Some("fix it now"));
        assert_eq!(said("fix <system-reminder> all of this is theirs").as_deref(), Some("fix"));
        assert_eq!(said(reminder), None);
    }

    #[test]
    fn a_title_is_the_first_line_of_what_a_person_said() {
        let title = |text: &str| title_of(text);
        assert_eq!(title("<system-reminder>x</system-reminder>\n\n  fix it  \nnow").as_deref(), Some("fix it"));
        assert_eq!(title("<system-reminder>x</system-reminder>"), None);
        let long = title(&"ü".repeat(500)).unwrap_or_default();
        assert_eq!((long.chars().count(), long.ends_with("ü…")), (TITLE_CHARS + 1, true));
    }
}
