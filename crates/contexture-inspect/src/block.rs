//! The blocks of a request: instructions, tools, and the parts of its messages.

use contexture::item::{Content, Item, Message, Role};
use contexture::tokens::TokenCounter;
use contexture::wire::{Format, read, unit_tokens};
use contexture_text::spoken::spoken;
use contexture_text::window_part::{PROJECT_RULES, WindowPart, is_project_rules};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// Most bytes kept of a part of an unknown kind.
const MOST_UNKNOWN_BYTES: usize = 64 << 10;

/// The source of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockSource {
    /// Instructions, and what the agent's program says in the user's place.
    System,
    /// A tool declaration.
    Tools,
    /// What people said.
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

impl BlockSource {
    const ALL: [BlockSource; 7] = [
        BlockSource::System,
        BlockSource::Tools,
        BlockSource::Said,
        BlockSource::Made,
        BlockSource::File,
        BlockSource::Output,
        BlockSource::Model,
    ];

    /// Its name in the API and in the archive.
    pub fn name(self) -> &'static str {
        match self {
            BlockSource::System => "system",
            BlockSource::Tools => "tools",
            BlockSource::Said => "said",
            BlockSource::File => "file",
            BlockSource::Output => "output",
            BlockSource::Model => "model",
            BlockSource::Made => "made",
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
pub enum BlockKind {
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
    /// The provider's own summary of everything before it, which the model does not see any more.
    Compaction,
    /// Anything else.
    Other,
}

impl BlockKind {
    /// Its name in the API and in the archive.
    pub fn name(self) -> &'static str {
        match self {
            BlockKind::Text => "text",
            BlockKind::Thought => "thought",
            BlockKind::Call => "call",
            BlockKind::Output => "output",
            BlockKind::Tool => "tool",
            BlockKind::Compaction => "compaction",
            BlockKind::Other => "other",
        }
    }

    /// Parses a kind by its name.
    pub fn named(name: &str) -> Self {
        let all = [
            BlockKind::Text,
            BlockKind::Thought,
            BlockKind::Call,
            BlockKind::Output,
            BlockKind::Tool,
            BlockKind::Compaction,
        ];
        all.into_iter().find(|kind| kind.name() == name).unwrap_or(BlockKind::Other)
    }
}

/// A block that is not in an archive yet.
#[derive(Clone, Debug, PartialEq)]
pub struct BlockDraft {
    /// Its source.
    pub source: BlockSource,
    /// Its kind.
    pub kind: BlockKind,
    /// The role of its author, if any.
    pub role: &'static str,
    /// The tool or file it is about.
    pub name: String,
    /// The id of the call that it is, or that it is the output of.
    pub call: String,
    /// What it is, if Contexture wrote it.
    pub made: &'static str,
    /// Whether it reports a failure.
    pub is_error: bool,
    /// Its tokens, by our own count.
    pub tokens: u64,
    /// The text.
    pub text: String,
}

impl BlockDraft {
    /// The part of a window that it belongs to, wherever it stands.
    pub fn part(&self) -> WindowPart {
        part_of(self.source, self.kind, self.role, &self.name, self.made)
    }

    /// The hash that identifies it, over what the model sees of it.
    pub fn hash(&self) -> [u8; 16] {
        let parts = [self.source.name(), self.kind.name(), self.role, &self.name, &self.call, &self.text];
        text_hash(parts.map(str::as_bytes))
    }
}

/// The part of a window that a block belongs to, wherever it stands.
pub(crate) fn part_of(source: BlockSource, kind: BlockKind, role: &str, name: &str, made: &str) -> WindowPart {
    match (source, made, kind) {
        _ if name == PROJECT_RULES => WindowPart::ProjectRules,
        (BlockSource::System | BlockSource::Tools, ..) | (BlockSource::Made, "layer" | "note", _) => {
            WindowPart::Instructions
        }
        (BlockSource::Said, ..) => WindowPart::People,
        (BlockSource::File, ..) | (BlockSource::Made, "views" | "brought_back" | "references" | "digest", _) => {
            WindowPart::Files
        }
        (BlockSource::Output, ..)
        | (BlockSource::Model, _, BlockKind::Call)
        | (BlockSource::Made, "records" | "echoes", _) => WindowPart::Calls,
        (BlockSource::Made, "cut", _) if role == "user" => WindowPart::People,
        (BlockSource::Model | BlockSource::Made, ..) => WindowPart::Agent,
    }
}

/// The hash of a block, over its source, kind, role, name, call and text.
pub(crate) fn text_hash(parts: [&[u8]; 6]) -> [u8; 16] {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    let mut hash = [0; 16];
    hash.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
    hash
}

/// The part of a request before its messages.
#[derive(Deserialize)]
pub struct RequestHead<'a> {
    /// The declared tools.
    #[serde(borrow, default)]
    tools: Option<&'a RawValue>,
    /// Instructions in Anthropic's format.
    #[serde(borrow, default)]
    system: Option<&'a RawValue>,
    /// Instructions in OpenAI's responses format.
    #[serde(borrow, default)]
    instructions: Option<&'a RawValue>,
    /// Instructions in Gemini's format.
    #[serde(borrow, default, rename = "systemInstruction", alias = "system_instruction")]
    system_instruction: Option<&'a RawValue>,
}

impl<'a> RequestHead<'a> {
    /// Extracts it from a body.
    pub fn parse(body: &'a str) -> Self {
        serde_json::from_str(body).unwrap_or(Self {
            tools: None,
            system: None,
            instructions: None,
            system_instruction: None,
        })
    }

    /// Its parts as received, in the order in which a model sees them.
    pub fn parts(&self) -> impl Iterator<Item = (HeadPart, &'a RawValue)> + use<'a> {
        let parts = [
            (HeadPart::Tools, self.tools),
            (HeadPart::System, self.system),
            (HeadPart::System, self.instructions),
            (HeadPart::System, self.system_instruction),
        ];
        parts.into_iter().filter_map(|(part, raw)| Some((part, raw?)))
    }
}

/// A part of a request that is not a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HeadPart {
    /// The tools.
    Tools,
    /// Instructions.
    System,
}

/// The blocks of the part before the messages.
pub fn head_drafts(part: HeadPart, raw: &RawValue, counter: &dyn TokenCounter) -> Vec<BlockDraft> {
    let value: Value = serde_json::from_str(raw.get()).unwrap_or_default();
    let draft = |kind, name: String, text: String| BlockDraft {
        source: if part == HeadPart::Tools { BlockSource::Tools } else { BlockSource::System },
        kind,
        role: if part == HeadPart::Tools { "" } else { "system" },
        name,
        call: String::new(),
        made: "",
        is_error: false,
        tokens: counter.count(&text),
        text,
    };
    match (part, value) {
        (_, Value::Null) => Vec::new(),
        (HeadPart::Tools, Value::Array(tools)) => {
            declared(&tools).map(|tool| draft(BlockKind::Tool, tool_name(tool), pretty(tool))).collect()
        }
        (HeadPart::System, Value::String(text)) => vec![draft(BlockKind::Text, String::new(), text)],
        (HeadPart::System, Value::Array(blocks)) => {
            let text = |block: &Value| block["text"].as_str().map_or_else(|| pretty(block), str::to_owned);
            blocks.iter().map(|block| draft(BlockKind::Text, String::new(), text(block))).collect()
        }
        (HeadPart::System, other) if other["parts"].is_array() || other["parts"]["text"].is_string() => {
            let parts = other["parts"].as_array().cloned().unwrap_or_else(|| vec![other["parts"].clone()]);
            let text = |part: &Value| part["text"].as_str().map_or_else(|| pretty(part), str::to_owned);
            parts.iter().map(|part| draft(BlockKind::Text, String::new(), text(part))).collect()
        }
        (_, other) => vec![draft(BlockKind::Other, String::new(), pretty(&other))],
    }
}

/// The tools of a list; Gemini declares several functions in one of its elements.
fn declared(tools: &[Value]) -> impl Iterator<Item = &Value> {
    tools.iter().flat_map(|tool| {
        let names = ["functionDeclarations", "function_declarations"];
        let functions = names.iter().find_map(|name| tool.get(name)?.as_array());
        functions.map_or(std::slice::from_ref(tool), Vec::as_slice)
    })
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
pub fn message_drafts(format: Format, raw: &RawValue, counter: &dyn TokenCounter) -> Vec<BlockDraft> {
    let Ok(units) = read(format, raw, None) else { return vec![unknown(raw.get(), counter)] };
    units.iter().map(|unit| item_draft(&unit.item, counter)).collect()
}

/// Converts an item to a block.
pub fn item_draft(item: &Item, counter: &dyn TokenCounter) -> BlockDraft {
    counted_draft(item, unit_tokens(counter, item))
}

/// Converts an item whose tokens are known to a block.
pub fn counted_draft(item: &Item, tokens: u64) -> BlockDraft {
    let draft = |source, kind, text: String| BlockDraft {
        source,
        kind,
        role: if source == BlockSource::Model { "assistant" } else { "" },
        name: String::new(),
        call: String::new(),
        made: "",
        is_error: false,
        tokens,
        text,
    };
    match item {
        Item::Message(message) => {
            let text = message_text(message);
            let (source, role) = match message.role {
                Role::System => (BlockSource::System, "system"),
                Role::Developer => (BlockSource::System, "developer"),
                Role::User if spoken(&text).is_none() => (BlockSource::System, "user"),
                Role::User => (BlockSource::Said, "user"),
                Role::Assistant => (BlockSource::Model, "assistant"),
            };
            let is_rules = source == BlockSource::System && is_project_rules(&text);
            let name = if is_rules { PROJECT_RULES } else { "" }.to_owned();
            BlockDraft { role, name, ..draft(source, BlockKind::Text, text) }
        }
        Item::FunctionCall(call) => BlockDraft {
            name: call.name.to_string(),
            call: call.call_id.to_string(),
            ..draft(BlockSource::Model, BlockKind::Call, call.arguments.clone())
        },
        Item::FunctionCallOutput(output) => {
            let more = output.extra.get("content").and_then(Value::as_array);
            let more: Vec<String> = more.into_iter().flatten().map(opaque_text).collect();
            let text =
                if more.is_empty() { output.output.clone() } else { format!("{}\n{}", output.output, more.join("\n")) };
            let call = output.call_id.to_string();
            BlockDraft {
                call,
                is_error: output.outcome.is_error(),
                ..draft(BlockSource::Output, BlockKind::Output, text)
            }
        }
        Item::Reasoning(reasoning) => {
            let opaque = reasoning.opaque.as_ref().and_then(Value::as_str).map_or(0, str::len);
            let text = match reasoning.text.is_empty() {
                true => format!("[thoughts that only the provider can read, {opaque} bytes]"),
                false => reasoning.text.clone(),
            };
            draft(BlockSource::Model, BlockKind::Thought, text)
        }
        // Anthropic's block; a provider of OpenAI's format keeps what is before its own to itself.
        Item::Opaque(value) if value["type"] == "compaction" => {
            let text = value["content"].as_str().map_or_else(|| opaque_text(value), str::to_owned);
            draft(BlockSource::Model, BlockKind::Compaction, text)
        }
        Item::Opaque(value) => draft(BlockSource::Output, BlockKind::Other, opaque_text(value)),
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

fn unknown(json: &str, counter: &dyn TokenCounter) -> BlockDraft {
    let text = json[..super::text::floor(json, MOST_UNKNOWN_BYTES)].to_owned();
    let (role, name, call) = ("", String::new(), String::new());
    let tokens = counter.count(&text);
    let (source, kind, made) = (BlockSource::Output, BlockKind::Other, "");
    BlockDraft { source, kind, role, name, call, made, is_error: false, tokens, text }
}
