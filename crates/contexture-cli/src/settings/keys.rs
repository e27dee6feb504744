//! The table of keys.

use contexture::item::Role;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::kind::{Choice, Field, ValueKind};
use super::row::Command::{Chat, Compare, Mcp, Memory, Replay, Run, Serve, Window};
use super::row::{Fallback, SetBy, SettingKey, SettingRow};
use contexture::files::dialect::ToolEntry;
use contexture::fold::FoldWhen;
use contexture::layers::file_reference::{MAX_FILE_SIZE, MAX_READ_CONCURRENCY};
use contexture::layers::reminder::{Reminder, ReminderEntry};
use contexture::layers::steering::Pattern;
use contexture::layers::{FileReference, FileReferenceOptions};
use contexture::slot::Slot;
use contexture::tokens::MAX_TOKENS;
use contexture::window::Overflow;
use contexture_gateway::WindowEditor;
use contexture_gateway::models::ModelEntry;
use contexture_gateway::remember::{DEFAULT_BUDGET, DEFAULT_THRESHOLD};

/// The most dollars of a cap: more than anybody spends.
const MAX_DOLLARS: f64 = 1e9;

/// How servers of models are spoken to.
const MODEL_FORMATS: &[Choice] = &[
    Choice { name: "messages", says: "messages of Anthropic" },
    Choice { name: "chat", says: "chat completions, as OpenAI, Ollama, llama.cpp, vLLM and OpenRouter offer them" },
    Choice { name: "responses", says: "responses of OpenAI" },
    Choice { name: "gemini", says: "generateContent of Google" },
];

/// Makes a static of every row, documented with the row's own sentence, and the list of all rows.
macro_rules! keys {
    ($($key:ident: $type:ty = $name:literal, $says:literal, { $($field:ident: $value:expr,)* };)*) => {
        $(
            #[doc = $says]
            pub static $key: SettingKey<$type> = SettingKey::new(SettingRow { name: $name, says: $says, $($field: $value,)* ..SettingRow::EMPTY });
        )*

        /// All keys, in the order in which they are explained.
        pub static ALL: &[&SettingRow] = &[$(&$key.row),*];
    };
}

keys! {
    INSTRUCTIONS: String = "instructions", "The system prompt, which is the first part of every window.", {
        kind: ValueKind::Text,
        default: Fallback::Value(|| json!("")),
        used_by: &[Window, Chat],
        example: r#""You are a careful engineer.""#,
    };

    BUDGET: u64 = "budget", "How many tokens a window may have.", {
        kind: ValueKind::Whole { min: 1, max: MAX_TOKENS as i64, unit: "tokens" },
        default: Fallback::Value(|| json!(64_000)),
        used_by: &[Window, Replay, Compare, Chat],
        has_flag: true,
        example: "32000",
    };

    OVERFLOW: Overflow = "overflow", "What happens to history that does not fit in the window.", {
        kind: ValueKind::Choice(&[
            Choice { name: "truncate", says: "the oldest large items are shortened, then the oldest are dropped" },
            Choice { name: "summarize", says: "a summary replaces the oldest items" },
            Choice { name: "sliding_window", says: "only the newest items are shown" },
        ]),
        default: Fallback::Value(|| json!(Overflow::default())),
        used_by: &[Window],
        example: r#""truncate""#,
    };

    COUNTER: Counter = "counter", "How tokens are counted.", {
        kind: ValueKind::Choice(&[
            Choice { name: "o200k", says: "exactly, in the vocabulary of newer models of OpenAI" },
            Choice { name: "estimate", says: "bytes divided by four" },
        ]),
        default: Fallback::Value(|| json!(Counter::default())),
        used_by: &[Replay],
        has_flag: true,
        example: r#""o200k""#,
    };

    PROVIDER: PriceProvider = "provider", "Whose prices for cached input are used for the bill.", {
        kind: ValueKind::Choice(&[
            Choice { name: "anthropic", says: "cached input costs a tenth, writing to the cache a quarter more than plain input" },
            Choice { name: "openai", says: "cached input costs a tenth, writing to the cache nothing extra" },
            Choice { name: "none", says: "no cache" },
        ]),
        default: Fallback::Value(|| json!(PriceProvider::default())),
        used_by: &[Replay, Compare],
        has_flag: true,
        example: r#""openai""#,
    };

    FOLD: FoldWhen = "fold", "When the past is folded, that is, replaced by what the agent still needs of it.", {
        kind: ValueKind::Choice(&[
            Choice { name: "forced", says: "only when the window is full" },
            Choice { name: "free", says: "also when the provider's cache has expired, so that it costs nothing" },
            Choice { name: "pays", says: "also when the expected saving has paid for it" },
        ]),
        default: Fallback::Value(|| json!(FoldWhen::default())),
        used_by: &[Replay, Compare, Chat],
        has_flag: true,
        example: r#""free""#,
    };

    VERBATIM: bool = "verbatim", "Whether outputs of tools are sent as they are, for as long as they fit.", {
        kind: ValueKind::Switch,
        default: Fallback::Value(|| json!(false)),
        used_by: &[Replay, Compare, Chat],
        example: "true",
    };

    PIN_ROLES: Vec<Role> = "pin.roles",
        "The roles whose messages are kept as they are: `system`, `developer`, `user` or `assistant`.", {
        kind: ValueKind::Texts,
        default: Fallback::Value(|| json!([])),
        check: check_roles,
        used_by: &[Replay, Compare, Run, Serve, Chat],
        example: r#"["assistant"]"#,
    };

    PIN_TOOLS: Vec<String> = "pin.tools", "The tools whose calls and outputs are kept as they are.", {
        kind: ValueKind::Texts,
        default: Fallback::Value(|| json!([])),
        used_by: &[Replay, Compare, Run, Serve, Chat],
        example: r#"["Skill"]"#,
    };

    PIN_PATHS: Vec<String> = "pin.paths",
        "The files that stay in view, as far as they are known; `*` and `**` as in `docs/**/*.md`.", {
        kind: ValueKind::Texts,
        default: Fallback::Value(|| json!([])),
        used_by: &[Replay, Compare, Run, Serve, Chat],
        example: r#"["docs/PLAN.md", "schema/*.sql"]"#,
    };

    FILE_SLOT: Slot = "file-reference.slot",
        "Where the referenced files are among the layers of the window; lower numbers come first.", {
        kind: ValueKind::Whole { min: i32::MIN as i64, max: i32::MAX as i64, unit: "" },
        default: Fallback::Value(|| json!(FileReferenceOptions::default().slot)),
        used_by: &[Window, Chat],
        example: "350",
    };

    MAX_FILE_BYTES: u64 = "file-reference.max_file_size",
        "The size in bytes of the largest file that is read; larger ones are only named.", {
        kind: ValueKind::Whole { min: 1, max: MAX_FILE_SIZE as i64, unit: "bytes" },
        default: Fallback::Value(|| json!(FileReferenceOptions::default().max_file_size)),
        used_by: &[Window, Chat],
        example: "262144",
    };

    FOLLOW_SYMLINKS: bool = "file-reference.follow_symlinks",
        "Whether symbolic links are followed if they stay below the base directory.", {
        kind: ValueKind::Switch,
        default: Fallback::Value(|| json!(FileReferenceOptions::default().follow_symlinks)),
        used_by: &[Window, Chat],
        example: "true",
    };

    ALLOWED_EXTENSIONS: Option<Vec<String>> = "file-reference.allowed_extensions",
        "The extensions and whole names of files that are read; other files are refused.", {
        kind: ValueKind::Texts,
        default: Fallback::Nothing("common extensions of code and text are allowed"),
        check: check_extensions,
        used_by: &[Window, Chat],
        example: r#"["rs", "toml", "Dockerfile"]"#,
    };

    READ_CONCURRENCY: usize = "file-reference.read_concurrency", "How many files are read at the same time.", {
        kind: ValueKind::Whole { min: 1, max: MAX_READ_CONCURRENCY as i64, unit: "files" },
        default: Fallback::Value(|| json!(FileReferenceOptions::default().read_concurrency)),
        used_by: &[Window, Chat],
        example: "4",
    };

    WORKING_MEMORY_TEXT: Option<String> = "working-memory.text",
        "What the agent keeps in mind when a conversation begins, as free text.", {
        kind: ValueKind::Text,
        default: Fallback::Nothing("it has no notes yet"),
        used_by: &[Window, Chat],
        example: r#""The release is on Friday.""#,
    };

    INSTRUCTION_FILES: bool = "layers.instructions.files",
        "Whether the window has what AGENTS.md and CLAUDE.md beneath the base directory say (the layer `instructions`).", {
        kind: ValueKind::Switch,
        default: Fallback::Value(|| json!(true)),
        used_by: &[Window, Chat],
        example: "false",
    };

    SKILLS: bool = "layers.procedural.skills",
        "Whether the window has the layer `procedural`: the skills beneath the base directory.", {
        kind: ValueKind::Switch,
        default: Fallback::Value(|| json!(true)),
        used_by: &[Window, Chat],
        example: "false",
    };

    TASK_STATE: bool = "layers.task-state.enabled",
        "Whether the window has the layer `task-state`: how far a task has come, and what it made.", {
        kind: ValueKind::Switch,
        default: Fallback::Value(|| json!(true)),
        used_by: &[Window, Chat],
        example: "false",
    };

    ENTITY: bool = "layers.entity.enabled",
        "Whether the window has the layer `entity` where `memory.enabled` is set: people, projects and things, and what is known of them.", {
        kind: ValueKind::Switch,
        default: Fallback::Value(|| json!(true)),
        used_by: &[Window, Chat],
        example: "false",
    };

    OBSERVATIONS: bool = "layers.observations.enabled",
        "Whether the window has the layer `observations` where `memory.enabled` is set: what happened in earlier conversations.", {
        kind: ValueKind::Switch,
        default: Fallback::Value(|| json!(true)),
        used_by: &[Window, Chat],
        example: "false",
    };

    EPISODIC: bool = "layers.episodic.enabled",
        "Whether the window has the layer `episodic` where `memory.enabled` is set: what earlier runs were for, and how they ended.", {
        kind: ValueKind::Switch,
        default: Fallback::Value(|| json!(true)),
        used_by: &[Window, Chat],
        example: "false",
    };

    SEMANTIC_RECALL: bool = "layers.semantic-recall.enabled",
        "Whether the window has the layer `semantic-recall` where `memory.enabled` is set: what past conversations say about the newest message.", {
        kind: ValueKind::Switch,
        default: Fallback::Value(|| json!(true)),
        used_by: &[Window, Chat],
        example: "false",
    };

    REMINDER_TIME: bool = "layers.reminder.time",
        "Whether the window has the layer `reminder`, which tells the date and the time.", {
        kind: ValueKind::Switch,
        default: Fallback::Value(|| json!(false)),
        used_by: &[Window, Chat],
        example: "true",
    };

    REMINDERS: Vec<ReminderEntry> = "layers.reminder.entry", "A reminder of the layer `reminder`.", {
        kind: ValueKind::Entries(REMINDER_FIELDS),
        default: Fallback::Value(|| json!([])),
        check: check_reminder,
        used_by: &[Window, Chat],
        example: "name = \"tests\"\ntext = \"Run the tests.\"\nevery_turns = 10",
    };

    STEERING_DEFAULT: bool = "layers.steering.deny_by_default",
        "Whether a tool call runs only if a rule of the layer `steering` allows it.", {
        kind: ValueKind::Switch,
        default: Fallback::Value(|| json!(false)),
        // A project must not lift what its user forbade.
        set_by: SetBy::UserOnly,
        used_by: &[Window, Chat],
        example: "true",
    };

    STEERING_RULES: Vec<Pattern> = "layers.steering.rule",
        "A rule of the layer `steering`: which tool calls are allowed, denied, or to be done differently.", {
        kind: ValueKind::Entries(RULE_FIELDS),
        default: Fallback::Value(|| json!([])),
        // A project must not lift what its user forbade.
        set_by: SetBy::UserOnly,
        used_by: &[Window, Chat],
        example: "name = \"push\"\naction = \"deny\"\ncommand = \"git push*\"\nmessage = \"Ask first.\"",
    };

    TOOLS: Vec<ToolEntry> = "tool",
        "A tool of an agent that the built-in table does not have, or describes wrongly.", {
        kind: ValueKind::Entries(TOOL_FIELDS),
        default: Fallback::Value(|| json!([])),
        used_by: &[Window, Replay, Compare, Run, Serve, Chat],
        example: "name = \"open_file\"\ndoes = \"read\"\npath = \"target\"",
    };

    MEMORY_ENABLED: bool = "memory.enabled",
        "Whether agents that run through the gateway remember, and `chat`: what is said is kept, and what is relevant is added where \
         a person says something; the flag `--memory` of the gateway does the same.", {
        kind: ValueKind::Switch,
        default: Fallback::Value(|| json!(false)),
        // A project must not switch on what its user did not ask for.
        set_by: SetBy::UserOnly,
        used_by: &[Run, Serve, Window, Chat],
        example: "true",
    };

    MEMORY_BUDGET: u64 = "memory.budget", "The most tokens of memory that are added where a person says something.", {
        kind: ValueKind::Whole { min: 100, max: 100_000, unit: "tokens" },
        default: Fallback::Value(|| json!(DEFAULT_BUDGET)),
        set_by: SetBy::UserOnly,
        used_by: &[Run, Serve],
        example: "500",
    };

    MEMORY_THRESHOLD: u64 = "memory.threshold",
        "The percentage of what a person's words are about that a passage must have words for; below it nothing is added.", {
        kind: ValueKind::Whole { min: 0, max: 100, unit: "percent" },
        default: Fallback::Value(|| json!(DEFAULT_THRESHOLD)),
        set_by: SetBy::UserOnly,
        used_by: &[Run, Serve],
        example: "80",
    };

    MEMORY_EMBEDDER_URL: Option<String> = "memory.embedder.url",
        "The address of a server with `/embeddings`, such as Ollama, by whose vectors the memory is searched besides its words.", {
        kind: ValueKind::Name,
        default: Fallback::Nothing("the memory is searched by its words alone"),
        check: check_url,
        // Whoever sets it is sent what is said, and the key.
        set_by: SetBy::UserOnly,
        used_by: &[Run, Serve, Chat, Memory, Mcp],
        example: r#""http://127.0.0.1:11434/v1""#,
    };

    MEMORY_EMBEDDER_MODEL: Option<String> = "memory.embedder.model",
        "The name of the model that makes the vectors; `contexture memory import` makes them again for another one.", {
        kind: ValueKind::Name,
        default: Fallback::Nothing("the memory is searched by its words alone"),
        set_by: SetBy::UserOnly,
        used_by: &[Run, Serve, Chat, Memory, Mcp],
        example: r#""nomic-embed-text""#,
    };

    MEMORY_EMBEDDER_KEY_ENV: Option<String> = "memory.embedder.key_env",
        "The environment variable that has the key for `memory.embedder.url`.", {
        kind: ValueKind::Name,
        default: Fallback::Nothing("no key is sent there"),
        set_by: SetBy::UserOnly,
        used_by: &[Run, Serve, Chat, Memory, Mcp],
        example: r#""OPENAI_API_KEY""#,
    };

    MEMORY_MODEL_URL: Option<String> = "memory.model.url",
        "The address of a server whose model reads conversations that rest and learns facts from them.", {
        kind: ValueKind::Name,
        default: Fallback::Nothing("that of the provider of `memory.model.format`; without either, nothing is learned"),
        check: check_url,
        // Whoever sets it is sent what is said, and the key.
        set_by: SetBy::UserOnly,
        used_by: &[Run, Serve, Chat],
        example: r#""http://127.0.0.1:11434/v1""#,
    };

    MEMORY_MODEL_FORMAT: Option<ModelFormat> = "memory.model.format", "How that server is spoken to.", {
        kind: ValueKind::Choice(MODEL_FORMATS),
        default: Fallback::Nothing("chat completions, if there is an address"),
        set_by: SetBy::UserOnly,
        used_by: &[Run, Serve, Chat],
        example: r#""chat""#,
    };

    MEMORY_MODEL_NAME: Option<String> = "memory.model.name", "The name of the model that learns facts.", {
        kind: ValueKind::Name,
        default: Fallback::Nothing("one that the provider has"),
        set_by: SetBy::UserOnly,
        used_by: &[Run, Serve, Chat],
        example: r#""qwen3""#,
    };

    MEMORY_MODEL_KEY_ENV: Option<String> = "memory.model.key_env",
        "The environment variable that has the key for `memory.model.url`.", {
        kind: ValueKind::Name,
        default: Fallback::Nothing("no key is sent there"),
        set_by: SetBy::UserOnly,
        used_by: &[Run, Serve, Chat],
        example: r#""OPENROUTER_API_KEY""#,
    };

    MEMORY_MODEL_TOKENS: u64 = "memory.model.daily_tokens",
        "The most tokens a day for learning facts, input and output together.", {
        kind: ValueKind::Whole { min: 0, max: MAX_TOKENS as i64, unit: "tokens" },
        default: Fallback::Value(|| json!(200_000)),
        set_by: SetBy::UserOnly,
        used_by: &[Run, Serve, Chat],
        example: "50000",
    };

    GATEWAY_BUDGET: Option<u64> = "gateway.budget",
        "The most tokens of a request that passes through the gateway; the flag `--budget` wins.", {
        kind: ValueKind::Whole { min: 4_000, max: MAX_TOKENS as i64, unit: "tokens" },
        default: Fallback::Nothing("a request may have what its model takes"),
        used_by: &[Run, Serve],
        example: "100000",
    };

    GATEWAY_HOLDOUT: f64 = "gateway.holdout",
        "The share of conversations that pass as they are, for comparison; the flag `--holdout` wins.", {
        kind: ValueKind::Number { min: 0.0, max: 1.0 },
        default: Fallback::Value(|| json!(0.0)),
        used_by: &[Run, Serve],
        example: "0.1",
    };

    GATEWAY_CONTEXT_MANAGEMENT: WindowEditor = "gateway.context_management",
        "Who edits the window of an agent that asks its provider to (`context_management`): never both.", {
        kind: ValueKind::Choice(&[
            Choice { name: "theirs", says: "the provider; the gateway folds nothing new meanwhile" },
            Choice { name: "ours", says: "the gateway; what asks the provider is taken out of requests" },
        ]),
        default: Fallback::Value(|| json!(WindowEditor::default())),
        // It changes what an agent asks its provider for.
        set_by: SetBy::UserOnly,
        used_by: &[Run, Serve],
        example: r#""theirs""#,
    };

    GATEWAY_CAP_DAY_DOLLARS: Option<f64> = "gateway.cap.day_dollars",
        "The most dollars that may be spent in a day, which begins at 00:00 UTC; then requests are refused. The flag `--cap-day-dollars` wins.", {
        kind: ValueKind::Number { min: 0.0, max: MAX_DOLLARS },
        default: Fallback::Nothing("there is no such cap"),
        // A project must not spend more than its user allows.
        set_by: SetBy::UserOnly,
        used_by: &[Run, Serve],
        example: "5.0",
    };

    GATEWAY_CAP_DAY_TOKENS: Option<u64> = "gateway.cap.day_tokens",
        "The most tokens, input and output, that may be spent in a day; the flag `--cap-day-tokens` wins.", {
        kind: ValueKind::Whole { min: 0, max: i64::MAX, unit: "tokens" },
        default: Fallback::Nothing("there is no such cap"),
        // A project must not spend more than its user allows.
        set_by: SetBy::UserOnly,
        used_by: &[Run, Serve],
        example: "20000000",
    };

    GATEWAY_CAP_CONVERSATION_DOLLARS: Option<f64> = "gateway.cap.conversation_dollars",
        "The most dollars that may be spent in a conversation; the flag `--cap-conversation-dollars` wins.", {
        kind: ValueKind::Number { min: 0.0, max: MAX_DOLLARS },
        default: Fallback::Nothing("there is no such cap"),
        // A project must not spend more than its user allows.
        set_by: SetBy::UserOnly,
        used_by: &[Run, Serve],
        example: "2.5",
    };

    GATEWAY_CAP_CONVERSATION_TOKENS: Option<u64> = "gateway.cap.conversation_tokens",
        "The most tokens, input and output, that may be spent in a conversation; the flag `--cap-conversation-tokens` wins.", {
        kind: ValueKind::Whole { min: 0, max: i64::MAX, unit: "tokens" },
        default: Fallback::Nothing("there is no such cap"),
        // A project must not spend more than its user allows.
        set_by: SetBy::UserOnly,
        used_by: &[Run, Serve],
        example: "8000000",
    };

    GATEWAY_LISTEN: String = "gateway.listen", "Where the gateway listens; the flag `--listen` wins.", {
        kind: ValueKind::Name,
        default: Fallback::Value(|| json!("127.0.0.1:7717")),
        set_by: SetBy::UserOnly,
        check: check_address,
        used_by: &[Serve],
        example: r#""127.0.0.1:800""#,
    };

    GATEWAY_STORE: u64 = "gateway.store_megabytes",
        "How large the gateway's store may be; beyond it the conversations that were used longest ago go.", {
        kind: ValueKind::Whole { min: 1, max: 1_000_000, unit: "megabytes" },
        default: Fallback::Value(|| json!(1_024)),
        set_by: SetBy::UserOnly,
        used_by: &[Run, Serve],
        example: "200",
    };

    GATEWAY_ANTHROPIC: Option<String> = "gateway.upstream.anthropic",
        "Where requests in Anthropic's format go; the flag `--upstream`, and an address that is set for the agent, win.", {
        kind: ValueKind::Name,
        default: Fallback::Nothing("they go to Anthropic"),
        set_by: SetBy::UserOnly,
        check: check_url,
        used_by: &[Run, Serve],
        example: r#""https://proxy.example""#,
    };

    GATEWAY_OPENAI: Option<String> = "gateway.upstream.openai",
        "Where requests in OpenAI's formats go; the flag `--upstream`, and an address that is set for the agent, win.", {
        kind: ValueKind::Name,
        default: Fallback::Nothing("they go to OpenAI"),
        set_by: SetBy::UserOnly,
        check: check_url,
        used_by: &[Run, Serve],
        example: r#""https://proxy.example/v1""#,
    };

    GATEWAY_CHAT: Option<String> = "gateway.upstream.chat",
        "Where chat completions go, if not where other requests in OpenAI's formats go.", {
        kind: ValueKind::Name,
        default: Fallback::Nothing("they go where `gateway.upstream.openai` says"),
        set_by: SetBy::UserOnly,
        check: check_url,
        used_by: &[Run, Serve],
        example: r#""http://127.0.0.1:8000/v1""#,
    };

    GATEWAY_RESPONSES: Option<String> = "gateway.upstream.responses",
        "Where requests in the format of responses go, if not where other requests in OpenAI's formats go.", {
        kind: ValueKind::Name,
        default: Fallback::Nothing("they go where `gateway.upstream.openai` says"),
        set_by: SetBy::UserOnly,
        check: check_url,
        used_by: &[Run, Serve],
        example: r#""http://127.0.0.1:8000/v1""#,
    };

    GATEWAY_GOOGLE: Option<String> = "gateway.upstream.google",
        "Where requests in Gemini's format go; the flag `--upstream`, and an address that is set for the agent, win.", {
        kind: ValueKind::Name,
        default: Fallback::Nothing("they go to Google, those of Vertex AI to the region that they name"),
        set_by: SetBy::UserOnly,
        check: check_url,
        used_by: &[Run, Serve],
        example: r#""https://proxy.example""#,
    };

    MODELS: Vec<ModelEntry> = "model",
        "What the gateway is to know of models whose name begins so: prices and sizes; what is left out is taken from the built-in table.", {
        kind: ValueKind::Entries(MODEL_FIELDS),
        default: Fallback::Value(|| json!([])),
        used_by: &[Run, Serve],
        example: "name = \"claude-sonnet-4\"\ncontext = 1000000\ninput = 3.0\noutput = 15.0",
    };

    CHAT_URL: Option<String> = "chat.url", "The address of the server whose model `chat` talks to.", {
        kind: ValueKind::Name,
        default: Fallback::Nothing("that of the provider whose key is in the environment, or of Ollama on this machine"),
        // Whoever sets it is sent what is said, and the key.
        set_by: SetBy::UserOnly,
        used_by: &[Chat],
        example: r#""http://127.0.0.1:11434/v1""#,
    };

    CHAT_FORMAT: Option<ModelFormat> = "chat.format", "How that server is spoken to.", {
        kind: ValueKind::Choice(MODEL_FORMATS),
        default: Fallback::Nothing("chat completions, if there is an address"),
        set_by: SetBy::UserOnly,
        used_by: &[Chat],
        example: r#""chat""#,
    };

    CHAT_MODEL: Option<String> = "chat.model", "The name of the model that `chat` talks to.", {
        kind: ValueKind::Name,
        default: Fallback::Nothing("one that the provider has"),
        used_by: &[Chat],
        example: r#""qwen3-coder""#,
    };

    CHAT_KEY_ENV: Option<String> = "chat.key_env",
        "The environment variable that has the key for `chat.url`; without it no key is sent there.", {
        kind: ValueKind::Name,
        default: Fallback::Nothing("no key is sent to `chat.url`"),
        set_by: SetBy::UserOnly,
        used_by: &[Chat],
        example: r#""OPENROUTER_API_KEY""#,
    };

    CHAT_KEY: Option<String> = "chat.key", "The key for `chat.url`, or for the provider of `chat.format`.", {
        kind: ValueKind::Secret,
        default: Fallback::Nothing("the key that `chat.key_env` names"),
        set_by: SetBy::UserOnly,
        used_by: &[Chat],
        example: r#""sk-…""#,
    };

    CHAT_ENVIRONMENT: Vec<String> = "chat.environment",
        "The environment variables that commands and MCP servers get besides the usual ones, which hold no secrets; `*` stands for any characters.", {
        kind: ValueKind::Texts,
        default: Fallback::Value(|| json!([])),
        set_by: SetBy::UserOnly,
        used_by: &[Chat],
        example: r#"["AWS_PROFILE", "MY_TEAM_*"]"#,
    };

    MCP: Vec<McpEntry> = "mcp", "A server that offers tools over the Model Context Protocol.", {
        kind: ValueKind::Entries(MCP_FIELDS),
        default: Fallback::Value(|| json!([])),
        check: check_mcp,
        set_by: SetBy::UserOnly,
        used_by: &[Chat],
        example: "name = \"everything\"\ncommand = \"npx\"\nargs = [\"-y\", \"@modelcontextprotocol/server-everything\"]",
    };
}

/// The fields of a `[[mcp]]`.
const MCP_FIELDS: &[Field] = &[
    Field {
        name: "name",
        kind: ValueKind::Name,
        is_required: true,
        says: "What its tools are named after: `name/tool`.",
    },
    Field { name: "command", kind: ValueKind::Name, is_required: false, says: "The program." },
    Field { name: "url", kind: ValueKind::Name, is_required: false, says: "Its address, if it is no program." },
    Field { name: "token_env", kind: ValueKind::Name, is_required: false, says: "The variable with the token for it." },
    Field { name: "args", kind: ValueKind::Texts, is_required: false, says: "Its arguments." },
    Field { name: "env", kind: ValueKind::Variables, is_required: false, says: "Its variables, as `NAME=value`." },
];

/// The fields of a `[[layers.reminder.entry]]`.
const REMINDER_FIELDS: &[Field] = &[
    Field { name: "name", kind: ValueKind::Name, is_required: true, says: "The reminder's name." },
    Field { name: "text", kind: ValueKind::Name, is_required: true, says: "What it says." },
    Field { name: "every_turns", kind: OFTEN, is_required: false, says: "It fires every so many turns." },
    Field { name: "every_minutes", kind: OFTEN, is_required: false, says: "It fires every so many minutes." },
    Field { name: "done_by", kind: ValueKind::Texts, is_required: false, says: "The tools that do the thing." },
];

const OFTEN: ValueKind = ValueKind::Whole { min: 1, max: 1_000_000, unit: "" };

/// The fields of a `[[layers.steering.rule]]`.
const RULE_FIELDS: &[Field] = &[
    Field { name: "name", kind: ValueKind::Name, is_required: true, says: "The rule's name." },
    Field {
        name: "action",
        kind: ValueKind::Choice(ACTIONS),
        is_required: true,
        says: "What follows when it matches.",
    },
    argument("tool", "The tool; `*` stands for any characters."),
    argument("path", "A path that the call names; `**` stands for any number of names."),
    argument("command", "A command with its arguments, as in `git push*`."),
    argument("message", "Why, or how to do it differently."),
];

/// What can follow when a rule matches.
const ACTIONS: &[Choice] = &[
    Choice { name: "allow", says: "the call runs, whatever advice others have" },
    Choice { name: "deny", says: "the call does not run" },
    Choice { name: "guide", says: "the call does not run, and the message says how to do it differently" },
];

/// The fields of a `[[tool]]`.
const TOOL_FIELDS: &[Field] = &[
    Field { name: "name", kind: ValueKind::Name, is_required: true, says: "The tool's name." },
    Field { name: "does", kind: ValueKind::Choice(DOES), is_required: true, says: "What the tool does." },
    argument("path", "The argument that holds the path."),
    argument("content", "The argument that holds a file's text, or a patch."),
    argument("old", "The argument that holds the text to be replaced."),
    argument("new", "The argument that holds the new text."),
    argument("command", "The argument that holds the command line."),
];

const fn argument(name: &'static str, says: &'static str) -> Field {
    Field { name, kind: ValueKind::Name, is_required: false, says }
}

/// What a tool can do.
const DOES: &[Choice] = &[
    Choice { name: "read", says: "shows a file" },
    Choice { name: "write", says: "creates or replaces a file" },
    Choice { name: "append", says: "adds text to a file's end" },
    Choice { name: "edit", says: "replaces pieces of text" },
    Choice { name: "insert", says: "inserts lines after a line" },
    Choice { name: "patch", says: "applies a patch" },
    Choice { name: "editor", says: "does what its argument `command` says: `view`, `create`, `str_replace`, `insert`" },
    Choice { name: "search", says: "searches file contents or names" },
    Choice { name: "run", says: "runs a command line" },
    Choice { name: "rework", says: "changes files in a way that its arguments do not show" },
    Choice { name: "delete", says: "removes a file" },
    Choice { name: "move", says: "renames a file" },
    Choice { name: "anything", says: "may change its file in any way, or every file if it names none" },
    Choice { name: "unclear", says: "is not known to change files: what it names is in doubt, all else is presumed" },
    Choice { name: "delegate", says: "lets another agent work, which may change every file unless it is told to look" },
    Choice { name: "wrap", says: "makes other calls that its arguments list" },
    Choice { name: "hear", says: "has nothing to do with files, and returns what a person or another agent said" },
    Choice { name: "nothing", says: "has nothing to do with files" },
];

/// The fields of a `[[model]]`.
const MODEL_FIELDS: &[Field] = &[
    Field { name: "name", kind: ValueKind::Name, is_required: true, says: "How the model's name begins." },
    number(
        "context",
        ValueKind::Whole { min: 1_000, max: MAX_TOKENS as i64, unit: "tokens" },
        "What the model takes, the answer included.",
    ),
    number("input", PRICE, "Dollars for a million tokens of input."),
    number("output", PRICE, "Dollars for a million tokens of output."),
    number("read", SHARE, "The share of the input price for reading from the cache."),
    number("write", SHARE, "The share for writing to the cache."),
    number("write_hour", SHARE, "The share for writing to a cache that holds for an hour."),
    number(
        "least",
        ValueKind::Whole { min: 0, max: MAX_TOKENS as i64, unit: "tokens" },
        "The shortest prefix that is cached.",
    ),
    number("life", ValueKind::Whole { min: 1, max: 31_536_000, unit: "seconds" }, "How long a prefix is held."),
];

const PRICE: ValueKind = ValueKind::Number { min: 0.0, max: 1_000_000.0 };
const SHARE: ValueKind = ValueKind::Number { min: 0.0, max: 100.0 };

const fn number(name: &'static str, kind: ValueKind, says: &'static str) -> Field {
    Field { name, kind, is_required: false, says }
}

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
