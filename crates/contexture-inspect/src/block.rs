//! The blocks of a request: instructions, tools, and the parts of its messages.

use contexture::item::{Content, Item, Message, Role};
use contexture::tokens::TokenCounter;
use contexture::wire::{Format, read, unit_tokens};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// Most bytes kept of a part of an unknown kind.
const MOST_UNKNOWN_BYTES: usize = 64 << 10;

/// The source of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// Instructions.
    System,
    /// A tool declaration.
    Tools,
    /// Messages of the user, or of the harness in the user's place.
    Said,
    /// File content that a tool returned.
    File,
    /// Any other tool output.
    Output,
    /// The model's texts, reasoning and calls.
    Model,
    /// Texts made by Contexture: written by a fold, or added after a message that names files.
    Made,
}

impl Source {
    /// All sources, in display order.
    pub const ALL: [Source; 7] =
        [Source::System, Source::Tools, Source::Said, Source::Made, Source::File, Source::Output, Source::Model];

    /// Its name in the API and in the archive.
    pub fn name(self) -> &'static str {
        match self {
            Source::System => "system",
            Source::Tools => "tools",
            Source::Said => "said",
            Source::File => "file",
            Source::Output => "output",
            Source::Model => "model",
            Source::Made => "made",
        }
    }

    /// Parses a source by its name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.name() == name)
    }
}

/// The kind of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A text of a message.
    Text,
    /// Reasoning of the model.
    Thought,
    /// A tool call.
    Call,
    /// The output of a tool.
    Output,
    /// A tool declaration.
    Tool,
    /// Anything else.
    Other,
}

impl Kind {
    /// Its name in the API and in the archive.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::Thought => "thought",
            Kind::Call => "call",
            Kind::Output => "output",
            Kind::Tool => "tool",
            Kind::Other => "other",
        }
    }

    /// Parses a kind by its name.
    pub fn named(name: &str) -> Self {
        let all = [Kind::Text, Kind::Thought, Kind::Call, Kind::Output, Kind::Tool];
        all.into_iter().find(|kind| kind.name() == name).unwrap_or(Kind::Other)
    }
}

/// A block that is not in an archive yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// Its source.
    pub source: Source,
    /// Its kind.
    pub kind: Kind,
    /// The role of its author, if any.
    pub role: &'static str,
    /// The tool or file it is about.
    pub name: String,
    /// The id of the call that it is, or that it is the output of.
    pub call: String,
    /// Whether it reports a failure.
    pub is_error: bool,
    /// Its tokens, by our own count.
    pub tokens: u64,
    /// The text.
    pub text: String,
}

impl Draft {
    /// The hash that identifies it, over what the model sees of it.
    pub fn hash(&self) -> [u8; 16] {
        let mut hasher = blake3::Hasher::new();
        for part in [self.source.name(), self.kind.name(), self.role, &self.name, &self.call, &self.text] {
            hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
        }
        let mut hash = [0; 16];
        hash.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        hash
    }
}

/// The part of a request before its messages.
#[derive(Deserialize)]
pub struct Head<'a> {
    /// The declared tools.
    #[serde(borrow, default)]
    tools: Option<&'a RawValue>,
    /// Instructions in Anthropic's format.
    #[serde(borrow, default)]
    system: Option<&'a RawValue>,
    /// Instructions in OpenAI's responses format.
    #[serde(borrow, default)]
    instructions: Option<&'a RawValue>,
}

impl<'a> Head<'a> {
    /// Extracts it from a body.
    pub fn parse(body: &'a str) -> Self {
        serde_json::from_str(body).unwrap_or(Self { tools: None, system: None, instructions: None })
    }

    /// Its parts as received, in the order in which a model sees them.
    pub fn parts(&self) -> impl Iterator<Item = (Part, &'a RawValue)> + use<'a> {
        let parts = [(Part::Tools, self.tools), (Part::System, self.system), (Part::System, self.instructions)];
        parts.into_iter().filter_map(|(part, raw)| Some((part, raw?)))
    }
}

/// A part of a request that is not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The tools.
    Tools,
    /// Instructions.
    System,
}

/// The blocks of the part before the messages.
pub fn head_drafts(part: Part, raw: &RawValue, counter: &dyn TokenCounter) -> Vec<Draft> {
    let value: Value = serde_json::from_str(raw.get()).unwrap_or_default();
    let draft = |kind, name: String, text: String| Draft {
        source: if part == Part::Tools { Source::Tools } else { Source::System },
        kind,
        role: if part == Part::Tools { "" } else { "system" },
        name,
        call: String::new(),
        is_error: false,
        tokens: counter.count(&text),
        text,
    };
    match (part, value) {
        (_, Value::Null) => Vec::new(),
        (Part::Tools, Value::Array(tools)) => {
            tools.iter().map(|tool| draft(Kind::Tool, tool_name(tool), pretty(tool))).collect()
        }
        (Part::System, Value::String(text)) => vec![draft(Kind::Text, String::new(), text)],
        (Part::System, Value::Array(blocks)) => {
            let text = |block: &Value| block["text"].as_str().map_or_else(|| pretty(block), str::to_owned);
            blocks.iter().map(|block| draft(Kind::Text, String::new(), text(block))).collect()
        }
        (_, other) => vec![draft(Kind::Other, String::new(), pretty(&other))],
    }
}

fn tool_name(tool: &Value) -> String {
    let name = tool["name"].as_str().or_else(|| tool["function"]["name"].as_str()).or_else(|| tool["type"].as_str());
    name.unwrap_or("a tool without a name").to_owned()
}

fn pretty(value: &Value) -> String {
    let mut value = value.clone();
    if let Some(fields) = value.as_object_mut() {
        fields.remove("cache_control");
    }
    serde_json::to_string_pretty(&value).unwrap_or_default()
}

/// The blocks of a message. Outputs have no name yet.
pub fn message_drafts(format: Format, raw: &RawValue, counter: &dyn TokenCounter) -> Vec<Draft> {
    let Ok(units) = read(format, raw, None) else { return vec![unknown(raw.get(), counter)] };
    units.iter().map(|unit| item_draft(&unit.item, counter)).collect()
}

/// Converts an item to a block.
pub fn item_draft(item: &Item, counter: &dyn TokenCounter) -> Draft {
    let tokens = unit_tokens(counter, item);
    let draft = |source, kind, text: String| Draft {
        source,
        kind,
        role: if source == Source::Model { "assistant" } else { "" },
        name: String::new(),
        call: String::new(),
        is_error: false,
        tokens,
        text,
    };
    match item {
        Item::Message(message) => {
            let (source, role) = match message.role {
                Role::System => (Source::System, "system"),
                Role::Developer => (Source::System, "developer"),
                Role::User => (Source::Said, "user"),
                Role::Assistant => (Source::Model, "assistant"),
            };
            Draft { role, ..draft(source, Kind::Text, message_text(message)) }
        }
        Item::FunctionCall(call) => Draft {
            name: call.name.to_string(),
            call: call.call_id.to_string(),
            ..draft(Source::Model, Kind::Call, call.arguments.clone())
        },
        Item::FunctionCallOutput(output) => {
            let more = output.extra.get("content").and_then(Value::as_array);
            let more: Vec<String> = more.into_iter().flatten().map(opaque_text).collect();
            let text =
                if more.is_empty() { output.output.clone() } else { format!("{}\n{}", output.output, more.join("\n")) };
            let call = output.call_id.to_string();
            Draft { call, is_error: output.outcome.is_error(), ..draft(Source::Output, Kind::Output, text) }
        }
        Item::Reasoning(reasoning) => {
            let opaque = reasoning.opaque.as_ref().and_then(Value::as_str).map_or(0, str::len);
            let text = match reasoning.text.is_empty() {
                true => format!("[thoughts that only the provider can read, {opaque} bytes]"),
                false => reasoning.text.clone(),
            };
            draft(Source::Model, Kind::Thought, text)
        }
        Item::Opaque(value) => draft(Source::Output, Kind::Other, opaque_text(value)),
    }
}

fn message_text(message: &Message) -> String {
    let text = |content: &Content| match (content.as_text(), content) {
        (Some(text), _) => text.to_owned(),
        (None, Content::Opaque(value)) => opaque_text(value),
        (None, Content::Text { .. }) => String::new(),
    };
    message.content.iter().map(text).collect::<Vec<_>>().join("\n")
}

/// The text shown for a part that is not text; binary data is replaced by its size.
fn opaque_text(value: &Value) -> String {
    let kind = value["type"].as_str().unwrap_or("part");
    match kind {
        "text" | "input_text" | "output_text" => value["text"].as_str().unwrap_or_default().to_owned(),
        "image" | "image_url" | "input_image" | "document" | "file" | "input_file" | "input_audio" => {
            format!("[{kind}, {} bytes]", value.to_string().len())
        }
        _ => {
            let text = pretty(value);
            let end = super::text::floor(&text, MOST_UNKNOWN_BYTES);
            text[..end].to_owned()
        }
    }
}

fn unknown(json: &str, counter: &dyn TokenCounter) -> Draft {
    let text = json[..super::text::floor(json, MOST_UNKNOWN_BYTES)].to_owned();
    let (role, name, call) = ("", String::new(), String::new());
    let tokens = counter.count(&text);
    Draft { source: Source::Output, kind: Kind::Other, role, name, call, is_error: false, tokens, text }
}
