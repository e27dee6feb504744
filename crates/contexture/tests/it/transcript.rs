//! Reading recordings: every format, broken and odd ones, and long ones.

mod agents;
mod chats;
mod damage;
mod long;
mod times;

use contexture::transcript::{Message, Role, Transcript};

/// A transcript as short lines: `role: text`, calls as `+id name {arguments}`, answers as `=id name`.
fn brief(messages: &[Message]) -> String {
    let mut lines = String::new();
    for message in messages {
        let role = match message.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        };
        lines.push_str(&format!("{role}: {:?}", message.text));
        for call in &message.tool_calls {
            lines.push_str(&format!(" +{} {} {}", call.id, call.name, call.arguments));
        }
        if let Some(id) = &message.tool_call_id {
            lines.push_str(&format!(" ={id} {}", message.name.as_deref().unwrap_or("?")));
        }
        lines.push('\n');
    }
    lines
}

/// Checks the format and the messages of a recording; indentation of both texts does not matter.
#[track_caller]
fn check(recording: &str, format: &str, expected: &str) {
    let (transcript, report) = Transcript::read(recording.as_bytes()).expect("a known format");
    assert_eq!(brief(&transcript.messages), unindent(expected));
    assert_eq!(report.format.to_string(), format);
    assert_eq!(report.messages, transcript.messages.len() as u64);
}

fn unindent(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| format!("{line}\n")).collect()
}
