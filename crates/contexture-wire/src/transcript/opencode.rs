//! OpenCode: an exported session, or the list of its messages, each with typed parts.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Error, Value};

use contexture_core::item::{FunctionCall, Outcome, Role};

use super::assemble::{Assembler, Join, append_text, call};
use super::blocks::{IMAGE_NOTE, value_of};

#[derive(Deserialize)]
struct OpenCodeExport<'a> {
    info: Info,
    #[serde(borrow)]
    parts: Vec<OpenCodePart<'a>>,
}

#[derive(Deserialize)]
struct Info {
    role: String,
    /// Where the agent works.
    #[serde(default)]
    path: Value,
    /// When it was written.
    #[serde(default)]
    time: Value,
    #[serde(rename = "modelID")]
    model_id: Option<String>,
}

#[derive(Deserialize)]
struct OpenCodePart<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    text: Option<String>,
    /// Shown to the person only.
    ignored: Option<bool>,
    tool: Option<String>,
    #[serde(rename = "callID")]
    call_id: Option<String>,
    #[serde(borrow)]
    state: Option<OpenCodeToolState<'a>>,
    mime: Option<String>,
    filename: Option<String>,
}

#[derive(Deserialize)]
struct OpenCodeToolState<'a> {
    status: Option<String>,
    #[serde(borrow)]
    input: Option<&'a RawValue>,
    output: Option<String>,
    error: Option<String>,
    /// What the tool adds for the program that shows it: the exit status of a command, among others.
    #[serde(default)]
    metadata: Value,
    #[serde(default)]
    attachments: Vec<OpenCodeAttachment>,
}

#[derive(Deserialize)]
struct OpenCodeAttachment {
    mime: Option<String>,
}

pub(super) fn record(json: &str, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let message: OpenCodeExport<'_> = serde_json::from_str(json)?;
    assembler.set_time_ms(message.info.time["created"].as_u64());
    assembler.set_directory(message.info.path["cwd"].as_str());
    assembler.set_model(message.info.model_id.as_deref());
    match &*message.info.role {
        "assistant" => assistant(message.parts, assembler),
        role => {
            user(if role == "user" { Role::User } else { Role::System }, message.parts, assembler);
            Ok(())
        }
    }
}

fn user(role: Role, parts: Vec<OpenCodePart<'_>>, assembler: &mut Assembler<'_>) {
    let mut text = String::new();
    for part in parts {
        append_text(&mut text, part.into_text(assembler));
    }
    if !text.is_empty() {
        assembler.say(role, text);
    }
}

/// One model call with the outputs of the calls it asked for.
#[derive(Default)]
struct OpenCodeStep {
    text: String,
    calls: Vec<FunctionCall>,
    /// Outputs by the id of the call.
    answers: Vec<(String, String, Outcome)>,
}

fn assistant(parts: Vec<OpenCodePart<'_>>, assembler: &mut Assembler<'_>) -> Result<(), Error> {
    let mut step = OpenCodeStep::default();
    for part in parts {
        match &*part.kind {
            "step-start" => std::mem::take(&mut step).hand_on(assembler),
            "reasoning" => assembler.tally.thinking_blocks += 1,
            "tool" => step.add(part, assembler)?,
            _ => append_text(&mut step.text, part.into_text(assembler)),
        }
    }
    step.hand_on(assembler);
    Ok(())
}

impl OpenCodeToolState<'_> {
    /// How a call of a tool ended. A command that failed is a completed call too.
    fn outcome(&self, tool: &str) -> Outcome {
        match (self.status.as_deref(), self.metadata.get("exit")) {
            (Some("error"), _) => Outcome::Failed,
            (Some("pending" | "running"), _) => Outcome::Interrupted,
            (Some("completed"), Some(exit)) => match exit.as_i64() {
                Some(0) => Outcome::Done,
                Some(_) => Outcome::Failed,
                None => Outcome::Unknown,
            },
            (Some("completed"), None) if tool == "bash" => Outcome::Unknown,
            (Some("completed"), None) => Outcome::Done,
            _ => Outcome::Unknown,
        }
    }
}

impl OpenCodeStep {
    fn add(&mut self, part: OpenCodePart<'_>, assembler: &mut Assembler<'_>) -> Result<(), Error> {
        let (id, name) = (part.call_id.unwrap_or_default(), part.tool.unwrap_or_default());
        let arguments = value_of(part.state.as_ref().and_then(|state| state.input))?;
        self.calls.push(call(&id, &name, arguments));
        let Some(state) = part.state else { return Ok(()) };
        let outcome = state.outcome(&name);
        if let Some(mut answer) = state.output.or(state.error) {
            for _ in state.attachments.iter().filter(|attachment| is_image(attachment.mime.as_deref())) {
                assembler.tally.images += 1;
                append_text(&mut answer, IMAGE_NOTE.to_owned());
            }
            self.answers.push((id, answer, outcome));
        }
        Ok(())
    }

    fn hand_on(self, assembler: &mut Assembler<'_>) {
        assembler.speak(Join::Never, self.text, self.calls);
        for (id, answer, outcome) in self.answers {
            assembler.answer(&id, answer, outcome);
        }
    }
}

impl OpenCodePart<'_> {
    fn into_text(self, assembler: &mut Assembler<'_>) -> String {
        match &*self.kind {
            _ if self.ignored == Some(true) => String::new(),
            "text" => self.text.unwrap_or_default(),
            "file" if is_image(self.mime.as_deref()) => {
                assembler.tally.images += 1;
                IMAGE_NOTE.to_owned()
            }
            "file" => format!("[file {}]", self.filename.as_deref().unwrap_or("without a name")),
            _ => String::new(),
        }
    }
}

fn is_image(mime: Option<&str>) -> bool {
    mime.is_some_and(|mime| mime.starts_with("image/"))
}
