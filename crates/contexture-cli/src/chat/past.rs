//! What was said before, for a person who goes on with a thread.

use contexture::item::{Item, Role};
use contexture_text::numbers::counted;

use super::happening::AgentCall;
use super::marked::MarkedAnswer;
use contexture_terminal::harmless::{spoken, written_out};
use contexture_terminal::markdown::wrapped_text;
use contexture_terminal::screen::{Screen, TextStyle};

/// The most turns that are shown.
const MAX_TURNS: usize = 3;

/// The most rows of one message.
const MAX_ROWS: usize = 20;

/// The last turns of a log, as they were shown when they happened; nothing if there is none.
pub(super) fn shown<'a>(log: impl Iterator<Item = &'a Item>, screen: Screen) -> String {
    let items: Vec<&Item> = log.collect();
    let said: Vec<usize> =
        items.iter().enumerate().filter(|(_, item)| item.is_message_of(Role::User)).map(|(at, _)| at).collect();
    let Some(first) = said.len().checked_sub(MAX_TURNS).map_or(said.first(), |skipped| said.get(skipped)) else {
        return String::new();
    };
    let mut text = String::new();
    match said.len().saturating_sub(MAX_TURNS) {
        0 => {}
        1 => text.push_str(&dim(screen, "… 1 earlier turn …")),
        earlier => text.push_str(&dim(screen, &format!("… {earlier} earlier turns …"))),
    }
    for item in &items[*first..] {
        if let Some(call) = item.as_call() {
            let call = AgentCall::new(&call.call_id, &call.name, &call.parsed_arguments());
            text.push_str(&dim(screen, &format!("● {}", call.line)));
        }
        let Some(message) = item.as_message() else { continue };
        let rows: Vec<String> = match message.role {
            Role::User => {
                let said = written_out(&as_typed(&message.text()));
                let lines =
                    said.lines().enumerate().map(|(at, line)| format!("{}{line}", if at == 0 { "› " } else { "  " }));
                let gap = (!text.is_empty()).then(String::new);
                gap.into_iter().chain(lines.flat_map(|line| wrapped_text(&line, 2, screen.columns))).collect()
            }
            Role::Assistant => {
                let mut answer = MarkedAnswer::default();
                let said = spoken(&message.text());
                let mut rows: Vec<String> = said.lines().flat_map(|line| answer.line(line, screen)).collect();
                rows.extend(answer.end(screen));
                rows
            }
            _ => continue,
        };
        let left = rows.len().saturating_sub(MAX_ROWS);
        rows.iter().take(MAX_ROWS).for_each(|row| text.push_str(&format!("{row}\n")));
        if left > 0 {
            text.push_str(&dim(screen, &format!("  … {} …", counted(left, "more row"))));
        }
    }
    text
}

/// A message as it was typed: `[#a.rs](#a-rs)`, as the model reads it, was `#a.rs`.
fn as_typed(text: &str) -> String {
    let (mut typed, mut rest) = (String::new(), text);
    while let Some((before, link)) = rest.split_once("[#") {
        typed.push_str(before);
        typed.push('#');
        let whole = link.split_once("](#").and_then(|(name, after)| Some((name, after.split_once(')')?)));
        match whole.filter(|(name, (anchor, _))| !name.contains(['[', '\n']) && !anchor.contains(char::is_whitespace)) {
            Some((name, (_, after))) => {
                typed.push_str(name);
                rest = after;
            }
            None => {
                typed.insert(typed.len() - 1, '[');
                rest = link;
            }
        }
    }
    typed + rest
}

fn dim(screen: Screen, text: &str) -> String {
    format!("{}\n", screen.paint(TextStyle::Dim, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_named_as_they_were_typed() {
        assert_eq!(as_typed("see [#a b.rs](#a-b-rs) and [#c](#c)!"), "see #a b.rs and #c!");
        for text in ["see [#a", "[#a](b) x", "[#a](#b c", "#plain", "[x](#y)"] {
            assert_eq!(as_typed(text), text);
        }
    }

    #[test]
    fn the_last_turns_are_shown_and_the_rest_is_counted() {
        let screen = Screen { columns: 30, has_colours: false };
        let mut log = Vec::new();
        for turn in 0..5 {
            log.push(Item::user(format!("question {turn}\x1b[2J")));
            log.push(Item::assistant(format!("# Answer\n- {turn}")));
        }
        log.push(Item::assistant("x\n".repeat(30)));
        let shown = shown(log.iter(), screen);
        assert!(
            shown.starts_with("… 2 earlier turns …\n\n› question 2\\u{1b}[2J\n\n◆ Answer\n  • 2\n\n› question 3"),
            "{shown}"
        );
        assert!(shown.ends_with("  x\n  … 11 more rows …\n"), "{shown}");
        assert_eq!(super::shown([].iter(), screen), "");
    }
}
