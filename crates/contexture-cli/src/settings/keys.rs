//! The structure of all settings, with what is known about each of its keys.

use contexture::item::Role;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::kind::ValueKind::{Choice as OneOf, Entries, Name, Number, Secret, Switch, Text, Texts, Variables, Whole};
use super::kind::{Choice, Field, ValueKind};
use super::row::Command::{Chat, Mcp, Memory, Replay, Run, Serve, Window};
use super::row::{Command, SettingRow};
use contexture::files::dialect::ToolEntry;
use contexture::fold::FoldWhen;
use contexture::layers::file_reference::{MAX_FILE_SIZE, MAX_READ_CONCURRENCY};
use contexture::layers::reminder::{Reminder, ReminderEntry};
use contexture::layers::steering::Pattern;
use contexture::layers::{FileReference, FileReferenceOptions};
use contexture::slot::Slot;
use contexture::tokens::MAX_TOKENS;
use contexture::window::Overflow;
use contexture_gateway::DEFAULT_BUDGET;
use contexture_gateway::WindowEditor;
use contexture_gateway::models::ModelEntry;
use contexture_gateway::remember::{DEFAULT_BUDGET as MEMORY_BUDGET, DEFAULT_THRESHOLD};

/// Makes the structure, the table of its keys, and a method for each by which commands read it.
/// A key is `"its name in files" field: type = default => row;`, and its comment is what people read about it.
macro_rules! settings {
    ($($(#[doc = $says:literal])+ $name:literal $field:ident: $type:ty = $default:expr => $row:expr;)*) => {
        /// The values of all keys.
        #[derive(Clone, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub(super) struct Settings {
            $(#[serde(rename = $name)] $field: $type,)*
        }

        impl Default for Settings {
            fn default() -> Self {
                Self { $($field: $default,)* }
            }
        }

        /// All keys, in the order in which they are explained.
        pub static ALL: &[SettingRow] = &[$(SettingRow {
            name: $name,
            says: concat!($($says),+).trim_ascii(),
            default: || json!(Settings::default().$field),
            fits: |value| <$type>::deserialize(value).is_ok(),
            ..$row
        }),*];

        /// The value of each key. A method panics if the row of the key does not list the command that asks. So what
        /// `docs/reference/configuration.md` says about which commands use a key is true.
        impl super::Config {
            $($(#[doc = $says])+ pub fn $field(&self) -> $type {
                self.asked($name).$field.clone()
            })*
        }
    };
}

settings! {
    /// The system prompt, which is the first part of every window.
    "instructions" instructions: String = String::new() => key(Text, LAYERS, r#""You are a careful engineer.""#);

    /// How many tokens a window may have.
    "budget" budget: u64 = DEFAULT_BUDGET => key(tokens(1), &[Window, Replay, Chat], "32000").with_flag();

    /// What happens to history that does not fit in the window.
    "overflow" overflow: Overflow = Overflow::default() => key(OneOf(OVERFLOWS), &[Window], r#""truncate""#);

    /// How tokens are counted.
    "counter" counter: Counter = Counter::default() => key(OneOf(COUNTERS), &[Replay], r#""o200k""#).with_flag();

    /// Whose prices for cached input are used for the bill.
    "provider" provider: PriceProvider = PriceProvider::default() =>
        key(OneOf(PROVIDERS), &[Replay], r#""openai""#).with_flag();

    /// When the past is folded, that is, replaced by what the agent still needs of it.
    "fold" fold: FoldWhen = FoldWhen::default() => key(OneOf(FOLDS), FOLDING, r#""free""#).with_flag();

    /// Whether outputs of tools are sent as they are, for as long as they fit.
    "verbatim" verbatim: bool = false => key(Switch, FOLDING, "true");

    /// The roles whose messages are kept as they are: `system`, `developer`, `user` or `assistant`.
    "pin.roles" pin_roles: Vec<Role> = Vec::new() => key(Texts, PINS, r#"["assistant"]"#).checked(check_roles);
    /// The tools whose calls and outputs are kept as they are.
    "pin.tools" pin_tools: Vec<String> = Vec::new() => key(Texts, PINS, r#"["Skill"]"#);
    /// The files that stay in view, as far as they are known; `*` and `**` as in `docs/**/*.md`.
    "pin.paths" pin_paths: Vec<String> = Vec::new() => key(Texts, PINS, r#"["docs/PLAN.md", "schema/*.sql"]"#);

    /// Where the referenced files are among the layers of the window; lower numbers come first.
    "file-reference.slot" file_reference_slot: Slot = of_files().slot =>
        key(whole(i32::MIN as i64, i32::MAX as i64, ""), LAYERS, "350");
    /// The size in bytes of the largest file that is read; larger ones are only named.
    "file-reference.max_file_size" file_reference_max_file_size: u64 = of_files().max_file_size =>
        key(whole(1, MAX_FILE_SIZE as i64, "bytes"), LAYERS, "262144");
    /// Whether symbolic links are followed if they stay below the base directory.
    "file-reference.follow_symlinks" file_reference_follow_symlinks: bool = of_files().follow_symlinks =>
        key(Switch, LAYERS, "true");
    /// The extensions and whole names of files that are read; other files are refused.
    "file-reference.allowed_extensions" file_reference_allowed_extensions: Option<Vec<String>> = None =>
        key(Texts, LAYERS, r#"["rs", "toml", "Dockerfile"]"#)
            .unset("common extensions of code and text are allowed").checked(check_extensions);
    /// How many files are read at the same time.
    "file-reference.read_concurrency" file_reference_read_concurrency: usize = of_files().read_concurrency =>
        key(whole(1, MAX_READ_CONCURRENCY as i64, "files"), LAYERS, "4");

    /// What the agent keeps in mind when a conversation begins, as free text.
    "working-memory.text" working_memory_text: Option<String> = None =>
        key(Text, LAYERS, r#""The release is on Friday.""#).unset("it has no notes yet");

    /// Whether the window has what AGENTS.md and CLAUDE.md beneath the base directory say (the layer `instructions`).
    "layers.instructions.files" layers_instructions_files: bool = true => key(Switch, LAYERS, "false");

    /// Whether the window has the layer `procedural`: the skills beneath the base directory.
    "layers.procedural.skills" layers_procedural_skills: bool = true => key(Switch, LAYERS, "false");

    /// Whether the window has the layer `task-state`: how far a task has come, and what it made.
    "layers.task-state.enabled" layers_task_state_enabled: bool = true => key(Switch, LAYERS, "false");

    /// Whether the window has the layer `entity` where `memory.enabled` is set: people, projects and things, and what
    /// is known of them.
    "layers.entity.enabled" layers_entity_enabled: bool = true => key(Switch, LAYERS, "false");

    /// Whether the window has the layer `observations` where `memory.enabled` is set: what happened in earlier
    /// conversations.
    "layers.observations.enabled" layers_observations_enabled: bool = true => key(Switch, LAYERS, "false");

    /// Whether the window has the layer `episodic` where `memory.enabled` is set: what earlier runs were for, and how
    /// they ended.
    "layers.episodic.enabled" layers_episodic_enabled: bool = true => key(Switch, LAYERS, "false");

    /// Whether the window has the layer `semantic-recall` where `memory.enabled` is set: what past conversations say
    /// about the newest message.
    "layers.semantic-recall.enabled" layers_semantic_recall_enabled: bool = true => key(Switch, LAYERS, "false");

    /// Whether the window has the layer `reminder`, which tells the date and the time.
    "layers.reminder.time" layers_reminder_time: bool = false => key(Switch, LAYERS, "true");
    /// A reminder of the layer `reminder`.
    "layers.reminder.entry" layers_reminder_entry: Vec<ReminderEntry> = Vec::new() =>
        key(Entries(REMINDER_FIELDS), LAYERS, r#"name = "tests"
text = "Run the tests."
every_turns = 10"#).checked(check_reminder);

    /// Whether a tool call runs only if a rule of the layer `steering` allows it.
    // A project must not lift what its user forbade.
    "layers.steering.deny_by_default" layers_steering_deny_by_default: bool = false =>
        key(Switch, LAYERS, "true").user_only();
    /// A rule of the layer `steering`: which tool calls are allowed, denied, or to be done differently.
    // A project must not lift what its user forbade.
    "layers.steering.rule" layers_steering_rule: Vec<Pattern> = Vec::new() =>
        key(Entries(RULE_FIELDS), LAYERS, r#"name = "push"
action = "deny"
command = "git push*"
message = "Ask first.""#).user_only();

    /// A tool of an agent that the built-in table does not have, or describes wrongly.
    "tool" tool: Vec<ToolEntry> = Vec::new() =>
        key(Entries(TOOL_FIELDS), &[Window, Replay, Run, Serve, Chat], r#"name = "open_file"
does = "read"
path = "target""#);

    /// Whether agents that run through the gateway remember, and `chat`: what is said is kept, and what is relevant is
    /// added where a person says something; the flag `--memory` of the gateway does the same.
    // A project must not switch on what its user did not ask for.
    "memory.enabled" memory_enabled: bool = false => key(Switch, &[Run, Serve, Window, Chat], "true").user_only();
    /// The most tokens of memory that are added where a person says something.
    "memory.budget" memory_budget: u64 = MEMORY_BUDGET =>
        key(whole(100, 100_000, "tokens"), GATEWAY, "500").user_only();
    /// The percentage of what a person's words are about that a passage must have words for; below it nothing is added.
    "memory.threshold" memory_threshold: u8 = DEFAULT_THRESHOLD =>
        key(whole(0, 100, "percent"), GATEWAY, "80").user_only();

    /// The address of a server with `/embeddings`, such as Ollama, by whose vectors the memory is searched besides its
    /// words.
    // Whoever sets it is sent what is said, and the key.
    "memory.embedder.url" memory_embedder_url: Option<String> = None =>
        key(Name, EMBEDDING, r#""http://127.0.0.1:11434/v1""#)
            .unset("the memory is searched by its words alone").user_only().checked(check_url);
    /// The name of the model that makes the vectors; `contexture memory import` makes them again for another one.
    "memory.embedder.model" memory_embedder_model: Option<String> = None =>
        key(Name, EMBEDDING, r#""nomic-embed-text""#).unset("the memory is searched by its words alone").user_only();
    /// The environment variable that has the key for `memory.embedder.url`.
    "memory.embedder.key_env" memory_embedder_key_env: Option<String> = None =>
        key(Name, EMBEDDING, r#""OPENAI_API_KEY""#).unset("no key is sent there").user_only();

    /// The address of a server whose model reads conversations that rest and learns facts from them.
    // Whoever sets it is sent what is said, and the key.
    "memory.model.url" memory_model_url: Option<String> = None =>
        key(Name, LEARNING, r#""http://127.0.0.1:11434/v1""#)
            .unset("that of the provider of `memory.model.format`; without either, nothing is learned")
            .user_only().checked(check_url);
    /// How that server is spoken to.
    "memory.model.format" memory_model_format: Option<ModelFormat> = None =>
        key(OneOf(MODEL_FORMATS), LEARNING, r#""chat""#).unset("chat completions, if there is an address").user_only();
    /// The name of the model that learns facts.
    "memory.model.name" memory_model_name: Option<String> = None =>
        key(Name, LEARNING, r#""qwen3""#).unset("one that the provider has").user_only();
    /// The environment variable that has the key for `memory.model.url`.
    "memory.model.key_env" memory_model_key_env: Option<String> = None =>
        key(Name, LEARNING, r#""OPENROUTER_API_KEY""#).unset("no key is sent there").user_only();
    /// The most tokens a day for learning facts, input and output together.
    "memory.model.daily_tokens" memory_model_daily_tokens: u64 = 200_000 =>
        key(tokens(0), LEARNING, "50000").user_only();

    /// The most tokens of a request that passes through the gateway; the flag `--budget` wins.
    "gateway.budget" gateway_budget: Option<u64> = None =>
        key(tokens(4_000), GATEWAY, "100000").unset("a request may have what its model takes");
    /// The share of conversations that pass as they are, for comparison; the flag `--holdout` wins.
    "gateway.holdout" gateway_holdout: f64 = 0.0 => key(number(0.0, 1.0), GATEWAY, "0.1");
    /// Who edits the window of an agent that asks its provider to (`context_management`): never both.
    // It changes what an agent asks its provider for.
    "gateway.context_management" gateway_context_management: WindowEditor = WindowEditor::default() =>
        key(OneOf(EDITORS), GATEWAY, r#""theirs""#).user_only();

    /// The most dollars that may be spent in a day, which begins at 00:00 UTC; then requests are refused. The flag
    /// `--cap` wins.
    // A project must not spend more than its user allows, here and below.
    "gateway.cap.day_dollars" gateway_cap_day_dollars: Option<f64> = None =>
        key(number(0.0, MAX_DOLLARS), GATEWAY, "5.0").unset("there is no such cap").user_only();
    /// The most tokens, input and output, that may be spent in a day; the flag `--cap` wins.
    "gateway.cap.day_tokens" gateway_cap_day_tokens: Option<u64> = None =>
        key(whole(0, i64::MAX, "tokens"), GATEWAY, "20000000").unset("there is no such cap").user_only();
    /// The most dollars that may be spent in a conversation; the flag `--cap` wins.
    "gateway.cap.conversation_dollars" gateway_cap_conversation_dollars: Option<f64> = None =>
        key(number(0.0, MAX_DOLLARS), GATEWAY, "2.5").unset("there is no such cap").user_only();
    /// The most tokens, input and output, that may be spent in a conversation; the flag `--cap`
    /// wins.
    "gateway.cap.conversation_tokens" gateway_cap_conversation_tokens: Option<u64> = None =>
        key(whole(0, i64::MAX, "tokens"), GATEWAY, "8000000").unset("there is no such cap").user_only();

    /// Where the gateway listens; the flag `--listen` wins.
    "gateway.listen" gateway_listen: String = "127.0.0.1:7717".to_owned() =>
        key(Name, &[Serve], r#""127.0.0.1:800""#).user_only().checked(check_address);
    /// How large the gateway's store may be; beyond it the conversations that were used longest ago go.
    "gateway.store_megabytes" gateway_store_megabytes: u64 = 1_024 =>
        key(whole(1, 1_000_000, "megabytes"), GATEWAY, "200").user_only();
    /// For how many days after a conversation was used last what is needed to send the same bytes again is kept, in clear.
    /// What its requests cost is kept longer.
    "gateway.keep_days" gateway_keep_days: u64 = 30 =>
        key(whole(1, 36_500, "days"), GATEWAY, "7").user_only();

    /// Where requests in Anthropic's format go; the flag `--upstream`, and an address that is set for the agent, win.
    "gateway.upstream.anthropic" gateway_upstream_anthropic: Option<String> = None =>
        key(Name, GATEWAY, r#""https://proxy.example""#).unset("they go to Anthropic").user_only().checked(check_url);
    /// Where requests in OpenAI's formats go; the flag `--upstream`, and an address that is set for the agent, win.
    "gateway.upstream.openai" gateway_upstream_openai: Option<String> = None =>
        key(Name, GATEWAY, r#""https://proxy.example/v1""#).unset("they go to OpenAI").user_only().checked(check_url);
    /// Where chat completions go, if not where other requests in OpenAI's formats go.
    "gateway.upstream.chat" gateway_upstream_chat: Option<String> = None =>
        key(Name, GATEWAY, r#""http://127.0.0.1:8000/v1""#)
            .unset("they go where `gateway.upstream.openai` says").user_only().checked(check_url);
    /// Where requests in the format of responses go, if not where other requests in OpenAI's formats go.
    "gateway.upstream.responses" gateway_upstream_responses: Option<String> = None =>
        key(Name, GATEWAY, r#""http://127.0.0.1:8000/v1""#)
            .unset("they go where `gateway.upstream.openai` says").user_only().checked(check_url);
    /// Where requests in Gemini's format go; the flag `--upstream`, and an address that is set for the agent, win.
    "gateway.upstream.google" gateway_upstream_google: Option<String> = None =>
        key(Name, GATEWAY, r#""https://proxy.example""#)
            .unset("they go to Google, those of Vertex AI to the region that they name").user_only().checked(check_url);

    /// What the gateway is to know of models whose name begins so: prices and sizes; what is left out is taken from the
    /// built-in table.
    "model" model: Vec<ModelEntry> = Vec::new() =>
        key(Entries(MODEL_FIELDS), &[Replay, Run, Serve], r#"name = "claude-sonnet-4"
context = 1000000
input = 3.0
output = 15.0"#);

    /// The address of the server whose model `chat` talks to.
    // Whoever sets it is sent what is said, and the key.
    "chat.url" chat_url: Option<String> = None =>
        key(Name, &[Chat], r#""http://127.0.0.1:11434/v1""#)
            .unset("that of the provider whose key is in the environment, or of Ollama on this machine").user_only();
    /// How that server is spoken to.
    "chat.format" chat_format: Option<ModelFormat> = None =>
        key(OneOf(MODEL_FORMATS), &[Chat], r#""chat""#).unset("chat completions, if there is an address").user_only();
    /// The name of the model that `chat` talks to.
    "chat.model" chat_model: Option<String> = None =>
        key(Name, &[Chat], r#""qwen3-coder""#).unset("one that the provider has");
    /// The environment variable that has the key for `chat.url`; without it no key is sent there.
    "chat.key_env" chat_key_env: Option<String> = None =>
        key(Name, &[Chat], r#""OPENROUTER_API_KEY""#).unset("no key is sent to `chat.url`").user_only();
    /// The key for `chat.url`, or for the provider of `chat.format`.
    "chat.key" chat_key: Option<String> = None =>
        key(Secret, &[Chat], r#""sk-…""#).unset("the key that `chat.key_env` names").user_only();
    /// The environment variables that commands and MCP servers get besides the usual ones, which hold no secrets; `*`
    /// stands for any characters.
    "chat.environment" chat_environment: Vec<String> = Vec::new() =>
        key(Texts, &[Chat], r#"["AWS_PROFILE", "MY_TEAM_*"]"#).user_only();

    /// A server that offers tools over the Model Context Protocol.
    "mcp" mcp: Vec<McpEntry> = Vec::new() =>
        key(Entries(MCP_FIELDS), &[Chat], r#"name = "everything"
command = "npx"
args = ["-y", "@modelcontextprotocol/server-everything"]"#).user_only().checked(check_mcp);
}

/// The row of a key.
///
/// # Panics
/// There is no such key.
pub fn row(name: &str) -> &'static SettingRow {
    ALL.iter().find(|row| row.name == name).unwrap_or_else(|| panic!("there is no key `{name}`"))
}

/// The most dollars of a cap: more than anybody spends.
const MAX_DOLLARS: f64 = 1e9;

// Which commands use a key.
const LAYERS: &[Command] = &[Window, Chat];
const FOLDING: &[Command] = &[Replay, Chat];
const PINS: &[Command] = &[Replay, Run, Serve, Chat];
const GATEWAY: &[Command] = &[Run, Serve];
const LEARNING: &[Command] = &[Run, Serve, Chat];
const EMBEDDING: &[Command] = &[Run, Serve, Chat, Memory, Mcp];

fn of_files() -> FileReferenceOptions {
    FileReferenceOptions::default()
}

const fn key(kind: ValueKind, used_by: &'static [Command], example: &'static str) -> SettingRow {
    SettingRow { kind, used_by, example, ..SettingRow::EMPTY }
}

const fn whole(min: i64, max: i64, unit: &'static str) -> ValueKind {
    Whole { min, max, unit }
}

const fn tokens(min: i64) -> ValueKind {
    whole(min, MAX_TOKENS as i64, "tokens")
}

const fn number(min: f64, max: f64) -> ValueKind {
    Number { min, max }
}

const fn choice(name: &'static str, says: &'static str) -> Choice {
    Choice { name, says }
}

/// A field that every entry must have.
const fn needed(name: &'static str, kind: ValueKind, says: &'static str) -> Field {
    Field { name, kind, is_required: true, says }
}

const fn field(name: &'static str, kind: ValueKind, says: &'static str) -> Field {
    Field { name, kind, is_required: false, says }
}

/// The fields of a `[[mcp]]`.
const MCP_FIELDS: &[Field] = &[
    needed("name", Name, "What its tools are named after: `name/tool`."),
    field("command", Name, "The program."),
    field("url", Name, "Its address, if it is no program."),
    field("token_env", Name, "The variable with the token for it."),
    field("args", Texts, "Its arguments."),
    field("env", Variables, "Its variables, as `NAME=value`."),
];

/// The fields of a `[[layers.reminder.entry]]`.
const REMINDER_FIELDS: &[Field] = &[
    needed("name", Name, "The reminder's name."),
    needed("text", Name, "What it says."),
    field("every_turns", OFTEN, "It fires every so many turns."),
    field("every_minutes", OFTEN, "It fires every so many minutes."),
    field("done_by", Texts, "The tools that do the thing."),
];

const OFTEN: ValueKind = whole(1, 1_000_000, "");

/// The fields of a `[[layers.steering.rule]]`.
const RULE_FIELDS: &[Field] = &[
    needed("name", Name, "The rule's name."),
    needed("action", OneOf(ACTIONS), "What follows when it matches."),
    field("tool", Name, "The tool; `*` stands for any characters."),
    field("path", Name, "A path that the call names; `**` stands for any number of names."),
    field("command", Name, "A command with its arguments, as in `git push*`."),
    field("message", Name, "Why, or how to do it differently."),
];

const ACTIONS: &[Choice] = &[
    choice("allow", "the call runs, whatever advice others have"),
    choice("deny", "the call does not run"),
    choice("guide", "the call does not run, and the message says how to do it differently"),
];

/// The fields of a `[[tool]]`.
const TOOL_FIELDS: &[Field] = &[
    needed("name", Name, "The tool's name."),
    needed("does", OneOf(DOES), "What the tool does."),
    field("path", Name, "The argument that holds the path."),
    field("content", Name, "The argument that holds a file's text, or a patch."),
    field("old", Name, "The argument that holds the text to be replaced."),
    field("new", Name, "The argument that holds the new text."),
    field("command", Name, "The argument that holds the command line."),
];

const DOES: &[Choice] = &[
    choice("read", "shows a file"),
    choice("write", "creates or replaces a file"),
    choice("append", "adds text to a file's end"),
    choice("edit", "replaces pieces of text"),
    choice("insert", "inserts lines after a line"),
    choice("patch", "applies a patch"),
    choice("editor", "does what its argument `command` says: `view`, `create`, `str_replace`, `insert`"),
    choice("search", "searches file contents or names"),
    choice("run", "runs a command line"),
    choice("rework", "changes files in a way that its arguments do not show"),
    choice("delete", "removes a file"),
    choice("move", "renames a file"),
    choice("anything", "could write any file"),
    choice("unclear", "the same"),
    choice("delegate", "lets another agent work, which could write any file"),
    choice("wrap", "makes other calls that its arguments list"),
    choice("hear", "has nothing to do with files, and returns what a person or another agent said"),
    choice("nothing", "has nothing to do with files"),
];

/// The fields of a `[[model]]`.
const MODEL_FIELDS: &[Field] = &[
    needed("name", Name, "How the model's name begins."),
    field("context", tokens(1_000), "What the model takes, the answer included."),
    field("input", PRICE, "Dollars for a million tokens of input."),
    field("output", PRICE, "Dollars for a million tokens of output."),
    field("read", SHARE, "The share of the input price for reading from the cache."),
    field("write", SHARE, "The share for writing to the cache."),
    field("write_hour", SHARE, "The share for writing to a cache that holds for an hour."),
    field("least", tokens(0), "The shortest prefix that is cached."),
    field("life", whole(1, 31_536_000, "seconds"), "How long a prefix is held."),
];

const PRICE: ValueKind = number(0.0, 1_000_000.0);
const SHARE: ValueKind = number(0.0, 100.0);

const MODEL_FORMATS: &[Choice] = &[
    choice("messages", "messages of Anthropic"),
    choice("chat", "chat completions, as OpenAI, Ollama, llama.cpp, vLLM and OpenRouter offer them"),
    choice("responses", "responses of OpenAI"),
    choice("gemini", "generateContent of Google"),
];

const OVERFLOWS: &[Choice] = &[
    choice("truncate", "the oldest large items are shortened, then the oldest are dropped"),
    choice("summarize", "a summary replaces the oldest items"),
    choice("sliding_window", "only the newest items are shown"),
];

const COUNTERS: &[Choice] = &[
    choice("o200k", "exactly, in the vocabulary of newer models of OpenAI"),
    choice("estimate", "bytes divided by four"),
];

const PROVIDERS: &[Choice] = &[
    choice("anthropic", "cached input costs a tenth, writing to the cache a quarter more than plain input"),
    choice("openai", "cached input costs a tenth, writing to the cache nothing extra"),
    choice("none", "no cache"),
];

const FOLDS: &[Choice] = &[
    choice("forced", "only when the window is full"),
    choice("free", "also when the provider's cache has expired, so that it costs nothing"),
    choice("pays", "also when the expected saving has paid for it"),
];

const EDITORS: &[Choice] = &[
    choice("theirs", "the provider; the gateway folds nothing new meanwhile"),
    choice("ours", "the gateway; what asks the provider is taken out of requests"),
];

/// How tokens are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counter {
    /// Exactly, in the vocabulary of newer models of OpenAI.
    O200k,
    /// Bytes divided by four.
    #[default]
    Estimate,
}

/// Whose prices for cached input are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PriceProvider {
    /// Those of Anthropic.
    #[default]
    Anthropic,
    /// Those of OpenAI.
    Openai,
    /// There is no cache.
    None,
}

/// How a model is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ModelFormat {
    /// Messages of Anthropic.
    Messages,
    /// Chat completions.
    Chat,
    /// Responses of OpenAI.
    Responses,
    /// Google's generateContent.
    Gemini,
}

/// A server that offers tools over the Model Context Protocol: a program or an address.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpEntry {
    /// What its tools are named after.
    pub name: String,
    /// The program.
    #[serde(default)]
    pub command: String,
    /// The address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The variable with the token for the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_env: Option<String>,
    /// Headers for the address, which only an editor sets.
    #[serde(skip)]
    pub headers: Vec<(String, String)>,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Its variables, as `NAME=value`.
    #[serde(default)]
    pub env: Vec<String>,
}

/// It is a program or an address, and every variable has a name and a value.
fn check_mcp(value: &Value) -> Result<(), String> {
    match (value["command"].is_string(), value["url"].is_string()) {
        (true, false) => {}
        (false, true) => check_url(&value["url"]).map_err(|problem| format!("[[mcp]] has a `url` that {problem}"))?,
        _ => return Err("[[mcp]] needs a `command` or a `url`, and not both".to_owned()),
    }
    let variables = value["env"].as_array().into_iter().flatten().filter_map(Value::as_str);
    match variables.map(|text| text.split_once('=')).any(|pair| pair.is_none_or(|(name, _)| name.is_empty())) {
        true => Err("[[mcp]] has an `env` that is not a list of texts like `NAME=value`".to_owned()),
        false => Ok(()),
    }
}

/// Only the roles that a message can have.
fn check_roles(value: &Value) -> Result<(), String> {
    let wanted = "roles are `system`, `developer`, `user` and `assistant`";
    Vec::<Role>::deserialize(value).map(drop).map_err(|_| wanted.to_owned())
}

/// An address of a provider.
fn check_url(value: &Value) -> Result<(), String> {
    let host = value.as_str().and_then(|url| url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")));
    match host.is_some_and(|host| !host.is_empty() && !host.starts_with('/') && !host.contains(char::is_whitespace)) {
        true => Ok(()),
        false => Err("must be an address that begins with `https://` or `http://`".to_owned()),
    }
}

/// An address to listen on.
fn check_address(value: &Value) -> Result<(), String> {
    let port = value.as_str().and_then(|address| address.rsplit_once(':')).map(|(_, port)| port.parse::<u16>());
    if matches!(port, Some(Ok(_))) { Ok(()) } else { Err("must be a host and a port, with a colon between".to_owned()) }
}

/// The layer judges its own options, so that its rules are written once.
fn check_extensions(value: &Value) -> Result<(), String> {
    let allowed_extensions = Vec::deserialize(value).ok();
    let options = FileReferenceOptions { allowed_extensions, ..FileReferenceOptions::default() };
    FileReference::new(options).map(drop).map_err(|error| error.problem)
}

/// The layer judges its own entries.
fn check_reminder(value: &Value) -> Result<(), String> {
    let entry = ReminderEntry::deserialize(value).map_err(|error| error.to_string())?;
    Reminder::new().with_entry(entry).map(drop).map_err(|error| format!("`{}` {}", error.field, error.problem))
}
