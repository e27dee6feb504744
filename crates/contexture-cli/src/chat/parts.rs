//! What the model was sent last, in seven parts that people know.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use contexture::client::Client;
use contexture::error::BoxError;
use contexture::item::{Item, Role};
use contexture::model::{Deltas, LlmResponse, Model, ModelRequest};
use contexture::tokens::{Estimate, count_item};
use contexture::usage::StepUsage;
use contexture_text::window_part::WindowPart;

/// The layer that reads AGENTS.md and CLAUDE.md.
const INSTRUCTIONS_LAYER: &str = "instructions";

/// The layer of the files that messages name.
const FILES_LAYER: &str = "file-reference";

/// The tool whose outputs are files.
const READ_TOOL: &str = "read_file";

/// What a part of a request takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartTokens {
    pub(super) part: WindowPart,
    /// What it is.
    pub(super) says: &'static str,
    pub(super) tokens: u64,
}

/// The parts of a conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ConversationParts {
    people: u64,
    agent: u64,
    files: u64,
    calls: u64,
    newest: u64,
}

/// The items of the last request. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub(super) struct SentItems(Arc<Mutex<Vec<Arc<Item>>>>);

/// A model whose requests are looked at.
pub(super) struct WatchedModel {
    client: Client,
    sent: SentItems,
}

impl SentItems {
    /// The same model, whose requests are kept here.
    pub(super) fn watching(&self, client: Client) -> WatchedModel {
        WatchedModel { client, sent: self.clone() }
    }

    /// The parts of the last request, whose tokens the engine counted.
    pub(super) fn parts(&self, usage: &StepUsage) -> Vec<PartTokens> {
        let items = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let blocks = usage.anchor + usage.live + usage.updates + usage.tail;
        let of_layer = |id: &str| -> u64 {
            usage.layers.iter().filter(|layer| layer.layer_id.as_str() == id).map(|layer| layer.used).sum()
        };
        let (agents, named) = (of_layer(INSTRUCTIONS_LAYER), of_layer(FILES_LAYER));
        let said = scaled(conversation(&items, blocks), usage.history);
        let part = |part, says, tokens| PartTokens { part, says, tokens };
        vec![
            part(
                WindowPart::Instructions,
                "the prompt, the tools, notes and the plan",
                (usage.system + usage.tools + blocks).saturating_sub(agents + named),
            ),
            part(WindowPart::ProjectRules, "what AGENTS.md and CLAUDE.md say", agents),
            part(WindowPart::People, "what you said before", said.people),
            part(WindowPart::Agent, "what the model said before", said.agent),
            part(WindowPart::Files, "files that were read or named, and what folds keep", said.files + named),
            part(WindowPart::Calls, "other calls with what they returned", said.calls),
            part(WindowPart::Newest, "since the model's last answer", said.newest),
        ]
    }
}

/// The conversation in a request, as it is estimated. What the engine wrote besides the blocks of layers is what folds
/// keep.
fn conversation(items: &[Arc<Item>], blocks: u64) -> ConversationParts {
    let is_answer = |item: &Arc<Item>| match &**item {
        Item::Message(message) => message.role == Role::Assistant,
        Item::FunctionCall(_) | Item::Reasoning(_) => true,
        Item::FunctionCallOutput(_) | Item::Opaque(_) => false,
    };
    let newest = items.iter().rposition(is_answer).map_or(0, |last| last + 1);
    let calls = items.iter().filter_map(|item| item.as_call()).filter(|call| &*call.name == READ_TOOL);
    let reads: HashSet<&str> = calls.map(|call| &*call.call_id).collect();
    let mut parts = ConversationParts::default();
    let mut written = 0;
    for (at, item) in items.iter().enumerate() {
        let tokens = count_item(&Estimate, item);
        match &**item {
            Item::Message(message) if matches!(message.role, Role::System | Role::Developer) => written += tokens,
            _ if at >= newest => parts.newest += tokens,
            Item::Message(message) if message.role == Role::User => parts.people += tokens,
            Item::Message(_) | Item::Reasoning(_) => parts.agent += tokens,
            Item::FunctionCallOutput(output) if reads.contains(&*output.call_id) => parts.files += tokens,
            Item::FunctionCall(_) | Item::FunctionCallOutput(_) | Item::Opaque(_) => parts.calls += tokens,
        }
    }
    parts.files += written.saturating_sub(blocks);
    parts
}

/// Parts in the same proportions that come to a sum; what is lost in rounding is in the newest.
fn scaled(parts: ConversationParts, sum: u64) -> ConversationParts {
    let ConversationParts { people, agent, files, calls, newest } = parts;
    let estimated = people + agent + files + calls + newest;
    let share = |part: u64| part * sum / estimated.max(1);
    let (people, agent, files, calls) = (share(people), share(agent), share(files), share(calls));
    ConversationParts { people, agent, files, calls, newest: sum - people - agent - files - calls }
}

impl Model for WatchedModel {
    async fn call(&self, request: ModelRequest) -> Result<LlmResponse, BoxError> {
        self.keep(&request);
        self.client.call(request).await
    }

    async fn stream(&self, request: ModelRequest, deltas: Deltas) -> Result<LlmResponse, BoxError> {
        self.keep(&request);
        self.client.stream(request, deltas).await
    }
}

impl WatchedModel {
    fn keep(&self, request: &ModelRequest) {
        self.sent.0.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&request.items);
    }
}

#[cfg(test)]
mod tests {
    use contexture::item::{FunctionCall, FunctionCallOutput, Outcome};

    use super::*;

    fn sent(items: Vec<Item>) -> SentItems {
        SentItems(Arc::new(Mutex::new(items.into_iter().map(Arc::new).collect())))
    }

    #[test]
    fn parts_come_to_the_whole_request() {
        let call = |id: &str, name: &str| Item::from(FunctionCall::new(id, name, "{}"));
        let output = |id: &str| Item::from(FunctionCallOutput::new(id, "x".repeat(400), Outcome::Done));
        let items = vec![
            Item::user("first"),
            call("1", "read_file"),
            output("1"),
            call("2", "execute_bash"),
            output("2"),
            Item::assistant("done"),
            Item::user("second"),
            call("3", "read_file"),
            output("3"),
        ];
        let usage = StepUsage { system: 10, tools: 20, history: 1_000, budget: 9_000, ..StepUsage::default() };
        let parts = sent(items).parts(&usage);
        assert_eq!(parts.iter().map(|part| part.tokens).sum::<u64>(), usage.total());
        let of = |name: &str| parts.iter().find(|part| part.part.label() == name).map_or(0, |part| part.tokens);
        assert_eq!((of("Instructions"), of("AGENTS.md")), (30, 0));
        assert!(of("People") > 0 && of("Agent") > 0 && of("Files") > 200 && of("Calls") > 200, "{parts:?}");
        assert!(of("Newest") > 200, "{parts:?}");
        assert_eq!(parts.len(), 7);
    }
}
