//! The rules of the providers, by format, each with the day on which it was read and where.
//!
//! A new rule is a new row. If none of the [checks](Check) fits, add one.

use super::rule::{Check, Rule};
use crate::format::Format;
use crate::format::Format::{Chat, Gemini, Messages, Responses};
use crate::in_force::TOOL_CHANGES;

const ANTHROPIC: &str = "https://platform.claude.com/docs/en/api/messages";
const ANTHROPIC_TOOLS: &str = "https://platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use";
const ANTHROPIC_SYSTEM: &str = "https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages";
const ANTHROPIC_THINKING: &str = "https://platform.claude.com/docs/en/build-with-claude/thinking-troubleshooting";
const ANTHROPIC_TURNS: &str = "https://platform.claude.com/docs/en/build-with-claude/thinking-tool-workflows";
const ANTHROPIC_CACHE: &str = "https://platform.claude.com/docs/en/build-with-claude/prompt-caching";
const OPENAI_CHAT: &str = "https://developers.openai.com/api/reference/resources/chat";
const OPENAI_TOOLS: &str = "https://developers.openai.com/api/docs/guides/function-calling";
const OPENAI_RESPONSES: &str = "https://developers.openai.com/api/reference/resources/responses";
const OPENAI_REASONING: &str = "https://developers.openai.com/api/docs/guides/reasoning";

const GEMINI: &str = "https://ai.google.dev/api/generate-content";
const GEMINI_CONTENT: &str = "https://ai.google.dev/api/caching#Content";
const GEMINI_TOOLS: &str = "https://ai.google.dev/gemini-api/docs/function-calling";
const GEMINI_SIGNATURES: &str = "https://ai.google.dev/gemini-api/docs/thought-signatures";
const VERTEX: &str = "https://docs.cloud.google.com/vertex-ai/generative-ai/docs/model-reference/inference";
const GEMINI_CACHE: &str = "https://ai.google.dev/gemini-api/docs/caching";

/// The day on which rows were read last, unless they say another one.
const READ: &str = "2026-11-17";

/// The day on which others were read.
const READ_LATER: &str = "2026-11-18";

/// The rule that binds reasoning to what was sent before it.
const BOUND: &str = "thinking-is-bound";

/// Models that do not go on with a text that the request begins for them.
const WITHOUT_PREFILL: &[&str] = &[
    "claude-opus-4-6",
    "claude-opus-4-7",
    "claude-opus-4-8",
    "claude-sonnet-4-6",
    "claude-opus-5",
    "claude-sonnet-5",
    "claude-haiku-5",
    "claude-fable",
    "claude-mythos",
];

/// Models that check that everything before a thought is as it was. It is enforced for accounts since 2026-08-31.
const BINDING: &[&str] = &[
    "claude-fable-5-1",
    "claude-fable-5-2",
    "claude-mythos-5-1",
    "claude-mythos-5-2",
    "claude-opus-5-5",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
];

/// Models that refuse calls which come back without what the model thought before them, while they think.
const THINKING_ALOUD: &[&str] = &["kimi", "deepseek"];

/// Models of OpenAI, whose provider checks ids.
const OF_OPENAI: &[&str] = &["gpt-", "codex-", "o3", "o4"];

/// Models that refuse a call of the current turn without its signature.
const SIGNING: &[&str] = &["gemini-3", "gemini-4"];

const fn rule(id: &'static str, format: Format, check: Check, refused: &'static str, source: &'static str) -> Rule {
    Rule { id, format, refused, models: &[], read: READ, source, check }
}

const fn read_later(rule: Rule) -> Rule {
    Rule { read: READ_LATER, ..rule }
}

const fn for_models(models: &'static [&'static str], rule: Rule) -> Rule {
    Rule { models, ..rule }
}

/// All rules.
pub const TABLE: &[Rule] = &[
    // Anthropic messages.
    rule("not-empty", Messages, Check::NotEmpty, "a request without messages", ANTHROPIC),
    rule(
        "roles",
        Messages,
        Check::Roles(&["user", "assistant", "system"]),
        "a message whose role is none of user, assistant and system",
        ANTHROPIC,
    ),
    rule("first-is-user", Messages, Check::First(&["user"]), "a first message that is not the user's", ANTHROPIC),
    for_models(
        WITHOUT_PREFILL,
        rule(
            "last-is-not-assistant",
            Messages,
            Check::Last(&["user", "system"]),
            "a last message of the model",
            "https://platform.claude.com/docs/en/about-claude/models/migration-guide",
        ),
    ),
    rule(
        "content",
        Messages,
        Check::Content("assistant"),
        "a message without content that is not the model's last one",
        ANTHROPIC,
    ),
    rule("text", Messages, Check::Text, "a text without anything but white space", ANTHROPIC),
    rule("end-of-text", Messages, Check::EndOfText, "a last text of the model that ends with white space", ANTHROPIC),
    rule(
        "system-follows-user",
        Messages,
        Check::After("system", &["user"]),
        "a system message that does not directly follow a user message",
        ANTHROPIC_SYSTEM,
    ),
    rule(
        "system-precedes-assistant",
        Messages,
        Check::Before("system", &["assistant"]),
        "a system message that is neither last nor directly followed by a message of the model",
        ANTHROPIC_SYSTEM,
    ),
    rule(
        "calls-answered",
        Messages,
        Check::CallsAnswered,
        "a call without its result in the message directly after it",
        ANTHROPIC_TOOLS,
    ),
    rule(
        "results-asked",
        Messages,
        Check::OutputsAsked,
        "a result without its call in the message directly before it",
        ANTHROPIC_TOOLS,
    ),
    rule(
        "results-first",
        Messages,
        Check::OutputsFirst,
        "a result after other content of its message",
        ANTHROPIC_TOOLS,
    ),
    rule(
        "server-results-asked",
        Messages,
        Check::ServerOutputsAsked,
        "a result of a tool of the provider's own without its call before it",
        ANTHROPIC_TOOLS,
    ),
    rule("unique-calls", Messages, Check::UniqueIds, "two calls with the same id", ANTHROPIC_TOOLS),
    rule("thinking-signed", Messages, Check::Signed, "thinking without its signature", ANTHROPIC_THINKING),
    rule(
        "thinking-first",
        Messages,
        Check::ReasoningFirst,
        "thinking that is not at the start of the model's newest message",
        ANTHROPIC_THINKING,
    ),
    rule(
        "thinking-not-last",
        Messages,
        Check::ReasoningLast,
        "thinking at the end of a message of the model",
        ANTHROPIC_THINKING,
    ),
    rule(
        "thinking-begins-turn",
        Messages,
        Check::ReasoningBegins,
        "a turn of the model that goes on with results and does not begin with thinking, if thinking has a budget",
        ANTHROPIC_TURNS,
    ),
    rule(
        "thinking-unchanged",
        Messages,
        Check::Elsewhere,
        "thinking of the model's newest message that is not as it came",
        ANTHROPIC_THINKING,
    ),
    for_models(
        BINDING,
        rule(
            BOUND,
            Messages,
            Check::Elsewhere,
            "thinking from before a change of anything that was sent before it",
            "https://platform.claude.com/docs/en/build-with-claude/preserved-thinking",
        ),
    ),
    rule("marks", Messages, Check::Marks(4), "more than four cache marks", ANTHROPIC_CACHE),
    rule(
        "marks-on-thinking",
        Messages,
        Check::Unmarked(&["thinking", "redacted_thinking"]),
        "a cache mark on thinking",
        ANTHROPIC_CACHE,
    ),
    rule("marks-on-empty", Messages, Check::UnmarkedEmpty, "a cache mark on an empty text", ANTHROPIC_CACHE),
    rule(
        "long-marks-first",
        Messages,
        Check::LongMarksFirst,
        "a cache mark for an hour after one for five minutes",
        ANTHROPIC_CACHE,
    ),
    read_later(rule(
        "tool-changes",
        Messages,
        Check::OnlyIn("system", &TOOL_CHANGES),
        "a change of tools that is not in a system message",
        ANTHROPIC_SYSTEM,
    )),
    for_models(
        &["claude"],
        read_later(rule(
            "plain-ids",
            Messages,
            Check::PlainIds,
            "a call whose id has other signs than letters, digits, `_` and `-`",
            "https://github.com/maximhq/bifrost/issues/5097",
        )),
    ),
    // OpenAI chat completions.
    rule("not-empty", Chat, Check::NotEmpty, "a request without messages", OPENAI_CHAT),
    rule(
        "roles",
        Chat,
        Check::Roles(&["developer", "system", "user", "assistant", "tool", "function"]),
        "a message whose role is not known",
        OPENAI_CHAT,
    ),
    rule(
        "content",
        Chat,
        Check::Content("assistant"),
        "a message without content, unless it is of the model and has calls",
        OPENAI_CHAT,
    ),
    rule("calls-not-empty", Chat, Check::CallsNotEmpty, "a list of calls that has none", OPENAI_CHAT),
    rule(
        "calls-answered",
        Chat,
        Check::CallsAnswered,
        "calls that are not all answered by the tool messages directly after them",
        OPENAI_TOOLS,
    ),
    rule(
        "outputs-asked",
        Chat,
        Check::OutputsAsked,
        "a tool message that answers no call of the message before it",
        OPENAI_TOOLS,
    ),
    for_models(
        THINKING_ALOUD,
        read_later(rule(
            "calls-reasoned",
            Chat,
            Check::CallsReasoned,
            "a call without its reasoning, while others have theirs",
            "https://api-docs.deepseek.com/guides/thinking_mode",
        )),
    ),
    // OpenAI responses.
    rule(
        "roles",
        Responses,
        Check::Roles(&["developer", "system", "user", "assistant"]),
        "a message whose role is not known",
        OPENAI_RESPONSES,
    ),
    rule("calls-answered", Responses, Check::CallsAnswered, "a call without its output", OPENAI_TOOLS),
    rule("outputs-asked", Responses, Check::OutputsAsked, "an output without its call before it", OPENAI_TOOLS),
    rule("unique-items", Responses, Check::UniqueIds, "two items with the same id", OPENAI_RESPONSES),
    rule(
        "reasoning-followed",
        Responses,
        Check::ReasoningFollowed,
        "reasoning that is not followed by what it led to",
        OPENAI_REASONING,
    ),
    rule(
        "items-with-reasoning",
        Responses,
        Check::Elsewhere,
        "an item that has an id, without the reasoning that led to it",
        OPENAI_REASONING,
    ),
    rule(
        "parts-of-role",
        Responses,
        Check::PartsOfRole,
        "a part of input in a message of the model, or the other way round",
        OPENAI_RESPONSES,
    ),
    for_models(
        OF_OPENAI,
        read_later(rule(
            "item-ids",
            Responses,
            Check::ItemIds(64),
            "an id of more than 64 characters, or of an item of another kind",
            "https://github.com/openai/codex/issues/14355",
        )),
    ),
    // Google's generateContent.
    rule("not-empty", Gemini, Check::NotEmpty, "a request without contents", GEMINI),
    rule(
        "roles",
        Gemini,
        Check::Roles(&["user", "model", "function"]),
        "a content whose role is not known",
        GEMINI_CONTENT,
    ),
    rule("first-is-user", Gemini, Check::First(&["user"]), "a first content that is not the user's", GEMINI),
    rule("last-is-user", Gemini, Check::Last(&["user", "function"]), "a last content of the model", GEMINI),
    rule("parts", Gemini, Check::Content(""), "a content without parts", VERTEX),
    rule("text", Gemini, Check::Text, "a part that is empty", VERTEX),
    rule(
        "calls-answered",
        Gemini,
        Check::CallsAnswered,
        "calls without as many responses in the content directly after them",
        GEMINI_TOOLS,
    ),
    rule(
        "responses-asked",
        Gemini,
        Check::OutputsAsked,
        "a response without its call in the content directly before it",
        GEMINI_TOOLS,
    ),
    rule(
        "calls-after-user",
        Gemini,
        Check::CallsAfter(&["user", "function"]),
        "calls that do not directly follow the user's turn or responses",
        GEMINI_TOOLS,
    ),
    rule("roles-alternate", Gemini, Check::Alternate, "two contents of one role in a row", GEMINI_CONTENT),
    for_models(
        SIGNING,
        rule(
            "calls-signed",
            Gemini,
            Check::Signed,
            "a first call of a step of the current turn without its signature",
            GEMINI_SIGNATURES,
        ),
    ),
    rule(
        "signatures-unchanged",
        Gemini,
        Check::Elsewhere,
        "a signature that is not in the part in which it came",
        GEMINI_SIGNATURES,
    ),
    rule(
        "beside-cached-content",
        Gemini,
        Check::Beside(&["systemInstruction", "tools", "toolConfig"]),
        "instructions or tools beside a cached content",
        GEMINI_CACHE,
    ),
];

/// The rules for a format and a model.
pub fn rules(format: Format, model: &str) -> impl Iterator<Item = &'static Rule> + use<'_> {
    let name = model.rsplit('/').next().unwrap_or_default();
    let is_about = move |rule: &&Rule| {
        rule.format == format && (rule.models.is_empty() || rule.models.iter().any(|start| name.starts_with(start)))
    };
    TABLE.iter().filter(is_about)
}

/// Whether a provider binds the reasoning of a model to everything that was sent before it, so that reasoning from
/// before a change of the past is refused.
pub fn binds_reasoning(format: Format, model: &str) -> bool {
    rules(format, model).any(|rule| rule.id == BOUND)
}
