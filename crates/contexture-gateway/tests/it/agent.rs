//! An agent that works on files, and writes its requests as real ones do.

use contexture::wire::Format;
use serde_json::{Value, json};

/// Something that happened in a conversation.
#[derive(Clone, Debug)]
pub enum Step {
    /// The user says something.
    User(String),
    /// The model thinks, speaks and calls tools.
    Model { text: String, calls: Vec<(String, &'static str, Value)> },
    /// Tools return something.
    Outputs(Vec<(String, String, bool)>),
}

/// A conversation, as an agent keeps it.
#[derive(Clone, Debug)]
pub struct Agent {
    pub format: Format,
    pub steps: Vec<Step>,
    /// Whether arguments are serialised anew, with other blanks, in every other request.
    pub is_careless: bool,
    pub session: Option<String>,
    /// Whether it sends reminders in the role `system` inside the conversation, as Claude Code does with newer models:
    /// after what the user says and after every so many outputs.
    pub has_reminders: bool,
    /// Whether its reminders also make tools available, as those of Claude Code do with tools of MCP servers.
    pub changes_tools: bool,
    /// The model of Anthropic that is asked, if it is not the usual one.
    pub model: Option<&'static str>,
    /// How long the encrypted reasoning of each of the model's turns is, in pieces of about ten bytes.
    pub reasoning: usize,
    calls: usize,
}

/// Lines of a file.
pub fn file_text(file: usize, version: usize, lines: usize) -> String {
    let line = |n: usize| match n % 9 {
        0 => format!("pub fn handle_{file}_{n}(input: &Request, limit: usize) -> Result<Answer, Fault> {{"),
        1 => format!("    let total_{n} = input.parts().iter().map(|part| part.len() * {n}).sum::<usize>();"),
        2 => format!("    if total_{n} > limit {{ return Err(Fault::TooLarge {{ file: {file}, line: {n} }}); }}"),
        8 => "}".to_owned(),
        3 => format!("    // version {version} of this part, which concerns module {file}"),
        _ => format!("    tracing::debug!(total_{n}, \"checked part {n} of module {file}\");"),
    };
    (1..=lines).map(line).collect::<Vec<_>>().join("\n")
}

/// A file as the tool that reads it shows it.
pub fn numbered(text: &str) -> String {
    text.lines().enumerate().map(|(n, line)| format!("{:>6}→{line}\n", n + 1)).collect()
}

impl Agent {
    pub fn new(format: Format, task: &str) -> Self {
        let steps = vec![Step::User(task.to_owned())];
        Self {
            format,
            steps,
            is_careless: false,
            session: None,
            has_reminders: false,
            changes_tools: false,
            model: None,
            reasoning: 20,
            calls: 0,
        }
    }

    /// A call with what it returned.
    pub fn call(&mut self, text: &str, name: &'static str, arguments: Value, output: &str) {
        self.calls += 1;
        let id = format!("call_{:04}", self.calls);
        self.steps.push(Step::Model { text: text.to_owned(), calls: vec![(id.clone(), name, arguments)] });
        self.steps.push(Step::Outputs(vec![(id, output.to_owned(), false)]));
    }

    pub fn say(&mut self, text: &str) {
        self.steps.push(Step::Model { text: "That is done.".to_owned(), calls: Vec::new() });
        self.steps.push(Step::User(text.to_owned()));
    }

    /// One round of work on a file: read it, change it, read it again, run the tests.
    pub fn work(&mut self, round: usize) -> Vec<usize> {
        let file = round % 7;
        let path = format!("/project/src/module_{file}.rs");
        let read = |version| numbered(&file_text(file, version, 160));
        let mut ends = Vec::new();
        self.call("I look at the file.", "Read", json!({"file_path": path}), &read(round / 7));
        ends.push(self.steps.len());
        let change = json!({
            "file_path": path,
            "old_string": format!("    // version {} of this part, which concerns module {file}", round / 7),
            "new_string": format!("    // version {} of this part, which concerns module {file}", round / 7 + 1),
            "replace_all": true,
        });
        self.call(
            "I change it.",
            "Edit",
            change,
            &format!("The file {path} has been updated. All occurrences were replaced."),
        );
        ends.push(self.steps.len());
        let output: String = (0..60).map(|n| format!("test module_{file}::case_{n} ... ok\n")).collect();
        self.call("I run the tests.", "Bash", json!({"command": "cargo test"}), &format!("{output}\ntest result: ok"));
        ends.push(self.steps.len());
        ends
    }

    /// The request after the first steps.
    pub fn request(&self, steps: usize, stream: bool) -> String {
        let steps = &self.steps[..steps];
        let blanks = self.is_careless && steps.len() % 4 == 3;
        let body = match self.format {
            Format::Messages => self.messages(steps, stream),
            Format::Chat => self.chat(steps, stream, blanks),
            Format::Responses => self.responses(steps, stream, blanks),
            Format::Gemini => self.gemini(steps, stream),
        };
        body.to_string()
    }

    /// Where requests are made: after everything but what the model says.
    pub fn requests(&self) -> Vec<usize> {
        let is_model = |at: &usize| matches!(self.steps.get(*at), Some(Step::Model { .. }) | None);
        (1..=self.steps.len()).filter(is_model).collect()
    }

    fn messages(&self, steps: &[Step], stream: bool) -> Value {
        let mark = json!({"type": "ephemeral"});
        let mut messages: Vec<Value> = steps
            .iter()
            .enumerate()
            .flat_map(|(at, step)| {
                let message = self.message(at, step);
                let is_reminded = self.has_reminders && (matches!(step, Step::User(_)) || at % 6 == 2);
                let reminder = format!("Reminder {at}: keep to the conventions of this project, and be brief.");
                let mut reminder = json!({"role": "system", "content": [{"type": "text", "text": reminder}]});
                if self.changes_tools {
                    let tool = json!({"type": "tool_reference", "name": format!("mcp__docs__{at}")});
                    let change = json!({"type": "tool_addition", "tool": tool});
                    reminder["content"].as_array_mut().unwrap().push(change);
                }
                std::iter::once(message).chain((is_reminded && !matches!(step, Step::Model { .. })).then_some(reminder))
            })
            .collect();
        if let Some(block) =
            messages.last_mut().and_then(|last| last["content"].as_array_mut()).and_then(|blocks| blocks.last_mut())
        {
            block["cache_control"] = mark.clone();
        }
        let usual = if self.has_reminders { "claude-opus-4-8" } else { "claude-sonnet-4-5" };
        let model = self.model.unwrap_or(usual);
        json!({
            "model": model, "max_tokens": 8000, "stream": stream,
            "system": [{"type": "text", "text": "You are a coding agent. ".repeat(200), "cache_control": mark}],
            "tools": tools("input_schema"), "messages": messages, "metadata": {"user_id": "somebody"},
        })
    }

    fn message(&self, at: usize, step: &Step) -> Value {
        match step {
            Step::User(text) => json!({"role": "user", "content": [
                {"type": "text", "text": "<system-reminder>\nThe project's rules are in CLAUDE.md.\n</system-reminder>"},
                {"type": "text", "text": text}]}),
            Step::Model { text, calls } => {
                let mut blocks = vec![
                    json!({"type": "thinking", "thinking": format!("thought {at}"), "signature": format!("sig+{at}=")}),
                    json!({"type": "text", "text": text}),
                ];
                blocks.extend(calls.iter().map(
                    |(id, name, arguments)| json!({"type": "tool_use", "id": id, "name": name, "input": arguments}),
                ));
                json!({"role": "assistant", "content": blocks})
            }
            Step::Outputs(outputs) => {
                let block = |(id, text, is_error): &(String, String, bool)| json!({"type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error});
                json!({"role": "user", "content": outputs.iter().map(block).collect::<Vec<_>>()})
            }
        }
    }

    fn arguments(value: &Value, blanks: bool) -> String {
        if blanks { serde_json::to_string_pretty(value).unwrap() } else { value.to_string() }
    }

    fn chat(&self, steps: &[Step], stream: bool, blanks: bool) -> Value {
        let mut messages = vec![json!({"role": "system", "content": "You are a coding agent. ".repeat(200)})];
        for step in steps {
            match step {
                Step::User(text) => messages.push(json!({"role": "user", "content": text})),
                Step::Model { text, calls } => {
                    let call = |(id, name, arguments): &(String, &str, Value)| json!({"id": id, "type": "function", "function": {"name": name, "arguments": Self::arguments(arguments, blanks)}});
                    let mut message = json!({"role": "assistant", "content": text});
                    if !calls.is_empty() {
                        message["tool_calls"] = calls.iter().map(call).collect();
                    }
                    messages.push(message);
                }
                Step::Outputs(outputs) => messages.extend(
                    outputs.iter().map(|(id, text, _)| json!({"role": "tool", "tool_call_id": id, "content": text})),
                ),
            }
        }
        json!({"model": "gpt-5", "stream": stream, "messages": messages, "tools": tools("parameters"), "stream_options": {"include_usage": true}})
    }

    fn responses(&self, steps: &[Step], stream: bool, blanks: bool) -> Value {
        let mut input = vec![
            json!({"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "You are a coding agent. ".repeat(200)}]}),
        ];
        for (at, step) in steps.iter().enumerate() {
            match step {
                Step::User(text) => input.push(
                    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}),
                ),
                Step::Model { text, calls } => {
                    input.push(json!({"type": "reasoning", "id": format!("rs_{at}"), "summary": [], "encrypted_content": format!("gAAAA{at}==").repeat(self.reasoning)}));
                    input.push(json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}));
                    input.extend(calls.iter().map(|(id, name, arguments)| json!({"type": "function_call", "call_id": id, "name": name, "arguments": Self::arguments(arguments, blanks)})));
                }
                Step::Outputs(outputs) => input.extend(
                    outputs
                        .iter()
                        .map(|(id, text, _)| json!({"type": "function_call_output", "call_id": id, "output": text})),
                ),
            }
        }
        json!({"model": "gpt-5", "stream": stream, "store": false, "input": input, "tools": tools("parameters"), "prompt_cache_key": self.session})
    }
}

/// Requests of Gemini CLI: thoughts are not sent back, signatures are; calls have ids, if the model made some.
impl Agent {
    fn gemini(&self, steps: &[Step], stream: bool) -> Value {
        let mut contents = Vec::new();
        let mut names: std::collections::HashMap<&str, &str> = std::collections::HashMap::new();
        for (at, step) in steps.iter().enumerate() {
            match step {
                Step::User(text) => contents.push(json!({"role": "user", "parts": [{"text": text}]})),
                Step::Model { text, calls } => {
                    let mut parts = vec![json!({"text": text})];
                    for (n, (id, name, arguments)) in calls.iter().enumerate() {
                        names.insert(id, name);
                        let mut part = json!({"functionCall": {"name": name, "args": arguments}});
                        if n == 0 {
                            part["thoughtSignature"] = format!("c2ln{at}").repeat(self.reasoning).into();
                        }
                        parts.push(part);
                    }
                    contents.push(json!({"role": "model", "parts": parts}));
                }
                Step::Outputs(outputs) => {
                    let part = |(id, text, is_error): &(String, String, bool)| {
                        let field = if *is_error { "error" } else { "output" };
                        json!({"functionResponse": {"id": id, "name": names[id.as_str()], "response": {field: text}}})
                    };
                    contents.push(json!({"role": "user", "parts": outputs.iter().map(part).collect::<Vec<_>>()}));
                }
            }
        }
        let declared: Vec<Value> = tools("parametersJsonSchema").as_array().cloned().unwrap_or_default();
        let mut body = json!({
            "contents": contents, "tools": [{"functionDeclarations": declared}],
            "systemInstruction": {"role": "user", "parts": [{"text": "You are a coding agent. ".repeat(200)}]},
            "generationConfig": {"temperature": 1, "topP": 0.95},
        });
        if stream {
            body["labels"] = json!({"stream": "true"});
        }
        body
    }
}

fn tools(schema: &str) -> Value {
    let names = ["Read", "Edit", "Bash"];
    names
        .iter()
        .map(|name| json!({"name": name, "description": "A tool. ".repeat(40), schema: {"type": "object"}}))
        .collect()
}
