//! Whether a client asks the model to summarise the conversation.

use contexture::item::{Content, Role};
use contexture::wire::{Request, Unit, read};
use contexture_agents::every;
use memchr::memmem;

/// How many messages at the end are looked at.
const MAX_AFTER: usize = 8;

/// How some clients write the angle brackets of a phrase in JSON.
const ESCAPED: &str = "\\u003c";

/// The phrases by which clients ask a model to summarise the conversation. No new decisions are made for such a request.
fn asks() -> impl Iterator<Item = &'static str> {
    every(|agent| agent.compaction().asks()).copied()
}

/// Phrases that are in instructions only, which are other ones then than in the rest of the conversation.
fn instructs() -> impl Iterator<Item = &'static str> {
    every(|agent| agent.compaction().instructs()).copied()
}

fn has_any(mut phrases: impl Iterator<Item = &'static str>, text: &str) -> bool {
    phrases.any(|words| memmem::find(text.as_bytes(), words.as_bytes()).is_some())
}

/// Where the client asks the model to summarise the conversation, if it does: the first message that asks for it. It may
/// be followed by reminders, and be beside an output. It is 0 if the request has nothing else, and the number of messages
/// if a field of the request asks for it.
pub(crate) fn compaction(request: &Request<'_>) -> Option<usize> {
    let messages = request.messages();
    let last = messages.len().checked_sub(1)?;
    if request.asks_for_compaction() {
        return Some(last);
    }
    if request.asks_for_summary() {
        // No message asks for it.
        return Some(messages.len());
    }
    let units = |at: usize| read(request.format(), messages[at], None).unwrap_or_default();
    let is_of_model = |at: usize| units(at).first().is_some_and(|unit| unit.item.is_of_model());
    let asks_at = |at: &usize| may_ask(messages[*at].get()) && has_any(asks(), &said(&units(*at)));
    let lead = request.leading_instructions();
    if last <= lead {
        // A conversation of one message is no conversation, unless it is told in that message.
        let is_told = !request.has_tools() && (asks_at(&last) || is_instructed(request, lead));
        return is_told.then_some(0);
    }
    // What is said after the newest response of the model, which may be begun for it.
    let end = if is_of_model(last) { last } else { messages.len() };
    let newest = (lead.max(1)..end).rev().take(MAX_AFTER).take_while(|at| !is_of_model(*at));
    newest.filter(asks_at).last().or_else(|| is_instructed(request, lead).then_some(last))
}

/// Whether a message may ask for a summary, without reading it: it has the words, or may have them in another form.
fn may_ask(message: &str) -> bool {
    let has_blocks = || message.matches("\"text\":").nth(1).is_some();
    has_any(asks(), message) || message.contains(ESCAPED) || has_blocks()
}

/// What a message says, all blocks in one. Outputs of tools are no part of it: they may contain the same words.
fn said(units: &[Unit]) -> String {
    let messages = units.iter().filter_map(|unit| unit.item.as_message());
    let messages = messages.filter(|message| message.role != Role::Assistant);
    messages.flat_map(|message| &message.content).filter_map(Content::as_text).collect()
}

/// Whether the instructions of a request are for a summary.
fn is_instructed(request: &Request<'_>, lead: usize) -> bool {
    instructions(request, lead).any(|text| has_any(instructs(), text) || has_any(asks(), text))
}

fn instructions<'a>(request: &Request<'a>, lead: usize) -> impl Iterator<Item = &'a str> {
    let leading: Vec<&str> = request.messages().iter().take(lead).map(|message| message.get()).collect();
    request.others().into_iter().chain(leading)
}

/// Whether the client asks something about a conversation, beside it, with messages out of its middle.
pub(crate) fn is_aside(request: &Request<'_>) -> bool {
    let asked = || every(|agent| agent.aside().instructs()).copied();
    !request.has_tools() && instructions(request, request.leading_instructions()).any(|text| has_any(asked(), text))
}

#[cfg(test)]
mod tests {
    use contexture::wire::{Format, Request};
    use serde_json::{Value, json};

    use super::*;

    /// A request of a format with instructions, and with texts of the user and the model in turn.
    fn request(format: Format, instructions: &str, texts: &[&str], has_tools: bool) -> String {
        let tools =
            if has_tools { json!([{"name": "read", "functionDeclarations": [{"name": "read"}]}]) } else { json!([]) };
        let message = |(at, text): (usize, &&str)| -> Value {
            let role = match (at % 2, format) {
                (0, _) => "user",
                (_, Format::Gemini) => "model",
                _ => "assistant",
            };
            match format {
                Format::Gemini => json!({"role": role, "parts": [{"text": text}]}),
                Format::Responses => json!({"type": "message", "role": role, "content": text}),
                Format::Messages | Format::Chat => json!({"role": role, "content": text}),
            }
        };
        let mut messages: Vec<Value> = texts.iter().enumerate().map(message).collect();
        let body = match format {
            Format::Messages => json!({"model": "m", "system": instructions, "tools": tools, "messages": messages}),
            Format::Chat => {
                messages.insert(0, json!({"role": "system", "content": instructions}));
                json!({"model": "m", "tools": tools, "messages": messages})
            }
            Format::Responses => json!({"model": "m", "instructions": instructions, "tools": tools, "input": messages}),
            Format::Gemini => {
                json!({"systemInstruction": {"parts": [{"text": instructions}]}, "tools": tools, "contents": messages})
            }
        };
        body.to_string()
    }

    #[track_caller]
    fn check(format: Format, instructions: &str, texts: &[&str], has_tools: bool, expected: Option<usize>) {
        let body = request(format, instructions, texts, has_tools);
        let found = compaction(&Request::parse(format, &body).unwrap());
        // Where instructions are a message, the others come after it.
        let lead = usize::from(format == Format::Chat);
        assert_eq!(found, expected.map(|at| if at == 0 { 0 } else { at + lead }), "{format:?}: {body}");
    }

    #[test]
    fn a_question_beside_the_conversation_is_known_by_its_instructions() {
        for words in every(|agent| agent.aside().instructs()) {
            let body = request(Format::Gemini, &format!("{words}, or not."), &["Do it.", "Done.", "Is it?"], false);
            assert!(is_aside(&Request::parse(Format::Gemini, &body).unwrap()));
            let with_tools = request(Format::Gemini, words, &["Do it."], true);
            assert!(!is_aside(&Request::parse(Format::Gemini, &with_tools).unwrap()));
        }
    }

    #[test]
    fn the_prompts_of_all_clients_are_recognised_wherever_they_are() {
        for format in Format::ALL {
            for words in asks() {
                let prompt = format!("Before it. {words}, and after it.");
                let usual = "You are a coding agent.";
                check(format, usual, &["Do it.", "Done.", &prompt], true, Some(2));
                check(format, usual, &["Do it.", "Done.", &prompt], false, Some(2));
                // The whole conversation in one message.
                check(format, usual, &[&prompt], false, Some(0));
                // Somebody speaks of it, and goes on.
                check(format, usual, &[&prompt], true, None);
                check(format, usual, &["Do it.", &prompt, "Yes."], true, None);
                check(format, usual, &["Do it.", "Done.", &prompt, "I do that.", "Thank you."], true, None);
                // The client begins the response for the model.
                check(format, usual, &["Do it.", "Done.", &prompt, "<summary>"], true, Some(2));
                check(format, &prompt, &["Do it.", "Done.", "Go on with that."], true, Some(2));
            }
            for words in instructs() {
                let instructions = format!("Before it. {words}, and after it.");
                check(format, &instructions, &["Do it.", "Done.", "Go on with that."], true, Some(2));
                check(format, &instructions, &["All that was said: nothing."], false, Some(0));
            }
            let split = ["Your task is to create a det", "ailed summary of the conversation so far"];
            let body = request(format, "", &["Do it.", "Done.", "A|B"], true);
            let block = |text: &str| match format {
                Format::Gemini => format!(r#"{{"text":"{text}"}}"#),
                Format::Responses => format!(r#"{{"type":"input_text","text":"{text}"}}"#),
                Format::Messages | Format::Chat => format!(r#"{{"type":"text","text":"{text}"}}"#),
            };
            let blocks = split.map(block).join(",");
            let body = match format {
                Format::Gemini => body.replace(&block("A|B"), &blocks),
                _ => body.replace(r#""A|B""#, &format!("[{blocks}]")),
            };
            assert!(compaction(&Request::parse(format, &body).unwrap()).is_some(), "{body}");
            let escaped = request(format, "", &["Do it.", "Done.", "Write the <state_snapshot>."], true);
            let escaped = escaped.replace('<', "\\u003c").replace('>', "\\u003e");
            assert!(compaction(&Request::parse(format, &escaped).unwrap()).is_some(), "{escaped}");
            check(format, "You are a coding agent.", &["Do it.", "Done.", "Sum up what you did."], true, None);
        }
    }
}
