//! `--lean-tools`: requests without the declarations of tools that the newest conversations of a project did not call.
//!
//! What leaves is decided with the first request of a conversation, and stays so until it ends. A request is made lean
//! before anything else is decided about it, so that all its forms but the original have the same tools.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use contexture::wire::{DeclaredTool, Request, raw_digest, read};
use contexture_agents::{Does, tool};

use crate::accept::compaction::is_aside;
use crate::accept::incoming::IncomingRequest;
use crate::account::record::{RequestRecord, ToolsNote};
use crate::conversation::hashes::{ArrivingMessages, Hashing};

/// In so many conversations, one after the other, a tool was not called that leaves. Chosen.
pub const LEAST_CONVERSATIONS: usize = 10;

/// Conversations that began longer ago are not looked at, in milliseconds: thirty days.
pub(crate) const LOOK_BACK_MS: u64 = 30 * 86_400_000;

/// Most conversations of which it is known what they called.
const MOST_KNOWN: usize = 1_000;

/// That tools are to leave which nobody calls, and which of them stay all the same.
#[derive(Clone, Debug, Default)]
pub struct LeanTools {
    /// Tools that the agent cannot do without, beside those that do something with files.
    pub needed: &'static [&'static str],
    /// How the names of tools of MCP servers begin, and what is between the server and the tool.
    pub of_servers: (&'static str, &'static str),
    /// Texts that name tools, beside those of the requests: instructions and skills.
    pub named_in: Arc<str>,
}

impl LeanTools {
    /// What a tool leaves together with: the tools of its server.
    fn group_of<'n>(&self, name: &'n str) -> &'n str {
        let (start, end) = self.of_servers;
        let server = name.strip_prefix(start).and_then(|rest| rest.find(end)).filter(|at| *at > 0);
        server.map_or(name, |at| &name[..start.len() + at + end.len()])
    }

    /// The server of a group.
    fn server_of<'n>(&self, group: &'n str) -> Option<&'n str> {
        let (start, end) = self.of_servers;
        group.strip_prefix(start)?.strip_suffix(end).filter(|server| !server.is_empty())
    }

    /// Whether the agent needs a tool to work.
    fn is_needed(&self, name: &str) -> bool {
        self.needed.contains(&name) || tool(name).is_some_and(|tool| *tool.does() != Does::Nothing)
    }

    /// Whether nothing of a group was called in the newest conversations that had it, and that called anything.
    fn is_unused(&self, group: &str, known: &[ToolUse]) -> bool {
        let has = |names: &BTreeSet<String>| names.iter().any(|name| self.group_of(name) == group);
        let had = known.iter().rev().filter(|tools| has(&tools.offered) && !tools.called.is_empty());
        let newest: Vec<&ToolUse> = had.take(LEAST_CONVERSATIONS).collect();
        newest.len() == LEAST_CONVERSATIONS && !newest.iter().any(|tools| has(&tools.called))
    }

    /// Whether a text names a tool: with its server, or by a name of its own that is no common word.
    fn names(&self, text: &str, name: &str) -> bool {
        let own = name.strip_prefix(self.group_of(name)).unwrap_or_default();
        let is_common = own.bytes().all(|byte| byte.is_ascii_lowercase());
        text.contains(name) || (!is_common && has_word(text, own))
    }

    /// Whether a text names the server of a group, if it is of one.
    fn names_server(&self, text: &str, group: &str) -> bool {
        self.server_of(group).is_some_and(|server| has_word(&text.to_lowercase(), &server.to_lowercase()))
    }
}

/// A request as it is to be, and what its record says of its tools.
pub(crate) struct LeanRequest {
    /// The body, if tools have left.
    pub(crate) body: Option<Bytes>,
    /// For the record.
    pub(crate) note: ToolsNote,
}

/// What the conversations of a project call, and what leaves.
pub(crate) struct Leaner {
    asked: LeanTools,
    /// The project.
    place: String,
    hashing: Hashing,
    known: Mutex<Vec<ToolUse>>,
}

/// The tools of a conversation.
#[derive(Clone, Debug, Default)]
struct ToolUse {
    /// How it begins.
    key: String,
    began_ms: u64,
    /// Those that its client declares, also if they leave.
    offered: BTreeSet<String>,
    called: BTreeSet<String>,
    left_out: BTreeSet<String>,
    /// The most messages that were seen of it.
    messages: usize,
}

impl ToolUse {
    fn id(&self) -> String {
        format!("{}-{}", self.key, self.began_ms)
    }

    /// Adds what the record of one of its requests says.
    fn add(&mut self, note: &ToolsNote) {
        self.offered.extend(note.offered.iter().cloned());
        self.called.extend(note.called.iter().cloned());
        self.left_out.extend(note.left_out.iter().cloned());
        self.messages = self.messages.max(note.messages);
    }
}

impl Leaner {
    /// One for a project, with the records of its conversations so far.
    pub(crate) fn new(asked: LeanTools, place: &str, records: &[RequestRecord]) -> Self {
        let place = raw_digest(place.as_bytes()).to_string();
        let mut known: Vec<ToolUse> = Vec::new();
        for record in records {
            let Some(note) = record.tools.as_ref().filter(|note| note.place == place) else { continue };
            let Some((key, began)) = note.conversation.rsplit_once('-') else { continue };
            let began_ms = began.parse().unwrap_or(record.time_ms);
            let is_it = |tools: &ToolUse| (&*tools.key, tools.began_ms) == (key, began_ms);
            let at = known.iter().position(is_it).unwrap_or_else(|| {
                known.push(ToolUse { key: key.to_owned(), began_ms, ..ToolUse::default() });
                known.len() - 1
            });
            known[at].add(note);
        }
        let given_up = records.iter().filter_map(|record| record.tools.as_ref()).filter(|note| note.is_whole);
        let given_up: BTreeSet<&str> = given_up.map(|note| &*note.conversation).collect();
        known.iter_mut().filter(|tools| given_up.contains(&*tools.id())).for_each(|tools| tools.left_out.clear());
        known.sort_by_key(|tools| tools.began_ms);
        Self { asked, place, hashing: Hashing::default(), known: Mutex::new(known) }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ToolUse>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes a request lean. `None` if it declares no tools, or is none of a person's conversation with the agent.
    pub(crate) fn lean(&self, incoming: &IncomingRequest, now_ms: u64) -> Option<LeanRequest> {
        let text = std::str::from_utf8(&incoming.body).ok()?;
        let request = Request::parse(incoming.format, text).ok()?;
        let is_elsewhere = request.previous_response().is_some() || request.is_of_thread();
        if incoming.is_sub_agent || is_elsewhere || request.messages().is_empty() || is_aside(&request) {
            return None;
        }
        let tools = request.declared_tools();
        let offered: BTreeSet<String> =
            tools.iter().filter(|tool| tool.may_leave).map(|tool| tool.name.to_string()).collect();
        if offered.is_empty() {
            return None;
        }
        let mut arriving = ArrivingMessages::new(&request, request.messages().len(), &self.hashing);
        let first = arriving.plain(request.leading_instructions().min(arriving.len() - 1)).ok()?;
        let begins = format!("{:?}\n{}\n{first}", incoming.format, incoming.scope.session);
        let (key, is_answered) = (raw_digest(begins.as_bytes()).to_string(), arriving.is_answered());
        let mut known = self.lock();
        let messages = request.messages().len();
        let found = known.iter().rposition(|tools| tools.key == key);
        // Without an answer it goes on with nothing that has one.
        let found = found.filter(|at| is_answered || known[*at].messages <= messages);
        let mut note = ToolsNote { place: self.place.clone(), ..ToolsNote::default() };
        let at = match found {
            Some(at) => at,
            None if incoming.is_count => return None,
            None => {
                // What is under way goes on with all its tools.
                let left_out = if is_answered { BTreeSet::new() } else { self.leaving(&request, &tools, &known) };
                (note.offered, note.left_out) = (offered.iter().cloned().collect(), left_out.iter().cloned().collect());
                if known.len() == MOST_KNOWN {
                    known.remove(0);
                }
                known.push(ToolUse { key, began_ms: now_ms, offered, left_out, ..ToolUse::default() });
                known.len() - 1
            }
        };
        let tools = &mut known[at];
        if !incoming.is_count {
            let from = tools.messages.min(messages);
            let called = calls(&request, from).filter(|name| !tools.called.contains(name)).collect::<BTreeSet<_>>();
            note.missed = called.intersection(&tools.left_out).cloned().collect();
            note.called = called.iter().cloned().collect();
            tools.called.extend(called);
            (tools.messages, note.messages) = (messages, messages);
        }
        note.conversation = tools.id();
        let body = request.without_tools(&|name| tools.left_out.contains(name));
        note.tokens = body.as_ref().map_or(0, |body| (text.len() - body.len()) as u64 / 4);
        Some(LeanRequest { body: body.map(Bytes::from), note })
    }

    /// Lets a conversation have all its tools again: its provider has refused it without some.
    pub(crate) fn give_up(&self, conversation: &str) {
        self.lock().iter_mut().filter(|tools| tools.id() == conversation).for_each(|tools| tools.left_out.clear());
    }

    /// The tools that leave from a conversation that begins with a request.
    fn leaving(&self, request: &Request<'_>, tools: &[DeclaredTool<'_>], known: &[ToolUse]) -> BTreeSet<String> {
        if tools.iter().any(|tool| tool.is_deferred) {
            return BTreeSet::new();
        }
        let asked = &self.asked;
        let is_any = |group: &str, is_it: &dyn Fn(&DeclaredTool<'_>) -> bool| {
            tools.iter().any(|tool| asked.group_of(&tool.name) == group && is_it(tool))
        };
        let may_leave = |group: &&str| {
            !is_any(group, &|tool| !tool.may_leave || asked.is_needed(&tool.name)) && asked.is_unused(group, known)
        };
        let groups: BTreeSet<&str> = tools.iter().map(|tool| asked.group_of(&tool.name)).collect();
        let mut leaving: BTreeSet<&str> = groups.into_iter().filter(may_leave).collect();
        let said: String = request.messages().iter().map(|message| message.get()).collect();
        // What stays may name what would leave, and then that may name more.
        loop {
            let Some(left) = request.without_tools(&|name| leaving.contains(asked.group_of(name))) else {
                return BTreeSet::new();
            };
            let is_named = |group: &str| {
                is_any(group, &|tool| asked.names(&left, &tool.name) || asked.names(&asked.named_in, &tool.name))
                    || asked.names_server(&said, group)
                    || asked.names_server(&asked.named_in, group)
            };
            let before = leaving.len();
            leaving.retain(|group| !is_named(group));
            if leaving.len() == before {
                let names = tools.iter().filter(|tool| leaving.contains(asked.group_of(&tool.name)));
                return names.map(|tool| tool.name.to_string()).collect();
            }
        }
    }
}

/// The names of the tools that are called in the messages of a request from one on.
fn calls<'r>(request: &'r Request<'_>, from: usize) -> impl Iterator<Item = String> + 'r {
    let messages = request.messages().iter().skip(from);
    let units = messages.flat_map(move |message| read(request.format(), message, None).unwrap_or_default());
    units.filter_map(|unit| Some(unit.item.as_call()?.name.to_string()))
}

/// Whether a word is in a text. In JSON a line feed before it is written with a letter.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric();
    let bytes = text.as_bytes();
    !word.is_empty()
        && text.match_indices(word).any(|(at, _)| {
            let before = bytes[..at].last().is_some_and(is_part) && bytes[..at].iter().nth_back(1) != Some(&b'\\');
            !before && !bytes[at + word.len()..].first().is_some_and(is_part)
        })
}

#[cfg(test)]
mod tests {
    use contexture::wire::Format;
    use serde_json::{Value, json};

    use super::*;
    use crate::accept::incoming::RequestScope;

    /// A client with tools of its own and of two servers.
    struct Client {
        leaner: Leaner,
        records: Vec<RequestRecord>,
        now_ms: u64,
        instructions: &'static str,
    }

    const TOOLS: [&str; 6] =
        ["Read", "Skill", "WebFetch", "mcp__tracker__create_issue", "mcp__tracker__find", "mcp__weather__today"];

    impl Client {
        fn new() -> Self {
            let asked = LeanTools { needed: &["Skill"], of_servers: ("mcp__", "__"), named_in: "".into() };
            let leaner = Leaner::new(asked, "/project", &[]);
            Self { leaner, records: Vec::new(), now_ms: 0, instructions: "You are an agent." }
        }

        fn body(&self, task: &str, calls: &[&str]) -> Value {
            let tools: Vec<Value> = TOOLS.iter().map(|name| json!({"name": name, "input_schema": {}})).collect();
            let mut messages = vec![json!({"role": "user", "content": task})];
            for (n, name) in calls.iter().enumerate() {
                let id = format!("c{n}");
                messages.push(json!({"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": name, "input": {}}]}));
                messages.push(
                    json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "ok"}]}),
                );
            }
            json!({"model": "m", "system": self.instructions, "tools": tools, "messages": messages})
        }

        /// Sends a request; returns the names of the tools that are sent, and what is noted.
        fn send(&mut self, body: &Value) -> (Vec<String>, ToolsNote) {
            self.now_ms += 1_000;
            let incoming = IncomingRequest {
                body: Bytes::from(body.to_string()),
                format: Format::Messages,
                model: None,
                scope: RequestScope::default(),
                is_count: false,
                is_compaction: false,
                is_sub_agent: false,
                asks: Default::default(),
            };
            let LeanRequest { body: lean, note } = self.leaner.lean(&incoming, self.now_ms).unwrap();
            let sent: Value = serde_json::from_slice(&lean.unwrap_or(incoming.body)).unwrap();
            let rest = |body: &Value| {
                let mut body = body.clone();
                body.as_object_mut().unwrap().remove("tools");
                body
            };
            assert_eq!(rest(&sent), rest(body), "nothing but tools leaves");
            let names = sent["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
            let record = RequestRecord { tools: Some(note.clone()), time_ms: self.now_ms, ..RequestRecord::default() };
            self.records.push(record);
            (names.collect(), note)
        }

        /// A whole conversation with some calls.
        fn work(&mut self, task: &str, calls: &[&str]) -> Vec<String> {
            let (first, _) = self.send(&self.body(task, &[]));
            for count in 1..=calls.len() {
                let (later, _) = self.send(&self.body(task, &calls[..count]));
                assert_eq!(later, first, "never in the middle of a conversation");
            }
            first
        }

        fn used(mut self, conversations: usize) -> Self {
            for n in 0..conversations {
                assert_eq!(self.work(&format!("Task {n}."), &["Read"]), TOOLS);
            }
            self
        }
    }

    #[test]
    fn tools_leave_that_the_last_conversations_did_not_call_and_come_back_when_they_are() {
        let mut client = Client::new().used(LEAST_CONVERSATIONS);
        let lean = client.work("One more.", &["Read", "mcp__tracker__find"]);
        assert_eq!(lean, ["Read", "Skill"]);
        let (_, note) = client.send(&client.body("One more.", &["Read", "mcp__tracker__find", "WebFetch"]));
        assert_eq!(note.missed, ["WebFetch"]);
        // One that was called brings its server back.
        let next = client.work("The next.", &["Read"]);
        assert_eq!(next, ["Read", "Skill", "WebFetch", "mcp__tracker__create_issue", "mcp__tracker__find"]);
    }

    #[test]
    fn a_few_conversations_or_those_without_calls_say_nothing() {
        let mut client = Client::new().used(LEAST_CONVERSATIONS - 1);
        assert_eq!(client.work("Hello.", &[]), TOOLS);
        assert_eq!(client.work("And now?", &[]), TOOLS);
    }

    #[test]
    fn what_is_named_anywhere_stays_with_its_server() {
        let all_but = |left: &[&str]| TOOLS.into_iter().filter(|name| !left.contains(name)).collect::<Vec<_>>();
        for (task, instructions, left) in [
            ("Use WebFetch.", "", &["mcp__tracker__create_issue", "mcp__tracker__find", "mcp__weather__today"][..]),
            ("Look at the Tracker, please.", "", &["WebFetch", "mcp__weather__today"]),
            ("Go on.", "First:\ncreate_issue", &["WebFetch", "mcp__weather__today"]),
            ("Find out the weather's state", "", &["WebFetch", "mcp__tracker__create_issue", "mcp__tracker__find"]),
            ("Refind trackers today.", "", &all_but(&["Read", "Skill"])),
        ] {
            let mut client = Client::new().used(LEAST_CONVERSATIONS);
            client.instructions = instructions;
            assert_eq!(client.work(task, &["Read"]), all_but(left), "{task} {instructions}");
        }
        let mut client = Client::new().used(LEAST_CONVERSATIONS);
        client.leaner.asked.named_in = "Say the weather with mcp__weather__today.".into();
        assert_eq!(client.work("Go on.", &["Read"]), ["Read", "Skill", "mcp__weather__today"]);
    }

    #[test]
    fn what_was_decided_is_known_after_a_restart_and_what_is_under_way_keeps_its_tools() {
        let mut client = Client::new().used(LEAST_CONVERSATIONS);
        let lean = client.work("One more.", &["Read"]);
        let again = |client: &Client| Leaner::new(client.leaner.asked.clone(), "/project", &client.records);
        client.leaner = again(&client);
        assert_eq!(client.send(&client.body("One more.", &["Read", "Read"])).0, lean);
        assert_eq!(client.send(&client.body("Begun elsewhere.", &["Read"])).0, TOOLS);
        let (_, note) = client.send(&client.body("Fresh.", &[]));
        assert_eq!(note.left_out.len(), 4);
        client.leaner.give_up(&note.conversation);
        client.records.last_mut().unwrap().tools.as_mut().unwrap().is_whole = true;
        assert_eq!(client.send(&client.body("Fresh.", &["Read"])).0, TOOLS);
        client.leaner = again(&client);
        assert_eq!(client.send(&client.body("Fresh.", &["Read", "Read"])).0, TOOLS);
        let elsewhere = Leaner::new(client.leaner.asked.clone(), "/other", &client.records);
        assert!(elsewhere.lock().is_empty(), "another project");
    }

    #[test]
    fn where_tools_are_deferred_nothing_leaves() {
        let mut client = Client::new().used(LEAST_CONVERSATIONS);
        let mut body = client.body("One more.", &[]);
        body["tools"].as_array_mut().unwrap().push(json!({"name": "ToolSearch", "input_schema": {}}));
        assert_eq!(client.send(&body).0.len(), TOOLS.len() + 1);
    }
}
