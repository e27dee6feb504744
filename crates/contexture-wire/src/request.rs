//! A request, split into its messages without a copy.

use std::borrow::Cow;
use std::ops::Range;

use memchr::memmem;
use serde_json::value::RawValue;

use super::anthropic::{ContentBlocks, MARK};
use super::error::WireError;
use super::fields::{Fields, FieldsWithLists};
use super::format::Format;
use super::gemini::either;
use super::marks::CacheMarks;
use super::plan::Plan;
use super::rewritten::{self, Came};

/// The body of a request to a model.
pub struct Request<'a> {
    format: Format,
    body: &'a str,
    fields: Fields<'a>,
    messages: Vec<&'a RawValue>,
    /// Where the messages are in the body.
    list: Range<usize>,
    /// The model that its address names.
    addressed: Option<Cow<'a, str>>,
    /// Where its newest summary is, of those that the provider made and that replace all before them.
    summary: Option<usize>,
}

/// Objects inside which Google's methods expect a request: one that counts tokens, and that of its own clients.
const WRAPPED: [&str; 2] = ["generateContentRequest", "request"];

impl<'a> Request<'a> {
    /// Splits a body.
    ///
    /// # Errors
    /// It is not JSON, or has no list of messages.
    pub fn parse(format: Format, body: &'a str) -> Result<Self, WireError> {
        let name = format.list();
        let FieldsWithLists { mut fields, mut lists } = FieldsWithLists::parse(body, name)?;
        let mut addressed = None;
        if format == Format::Gemini
            && lists.is_empty()
            && let Some(inner) = WRAPPED.iter().find_map(|name| either(&fields, name))
        {
            addressed = fields.text("model");
            FieldsWithLists { fields, lists } = FieldsWithLists::parse(inner.get(), name)?;
        }
        if lists.len() > 1 {
            return Err(WireError::Twice(name));
        }
        let messages = lists.pop().flatten().ok_or(WireError::NoList(name))?;
        let at = |text: &str| text.as_ptr() as usize - body.as_ptr() as usize;
        let list = match (messages.first(), messages.last()) {
            (Some(first), Some(last)) => at(first.get())..at(last.get()) + last.get().len(),
            _ => 0..0,
        };
        let summary = if format == Format::Messages { newest_summary(body, &messages) } else { None };
        Ok(Self { format, body, fields, messages, list, addressed, summary })
    }

    /// Says which model its address names, for a format whose body need not name any.
    pub fn addressed_to(mut self, model: Option<&'a str>) -> Self {
        self.addressed = self.addressed.or(model.map(Cow::Borrowed));
        self
    }

    /// How it is written.
    pub fn format(&self) -> Format {
        self.format
    }

    /// The whole of it, as it came.
    pub fn body(&self) -> &'a str {
        self.body
    }

    /// Its messages, as they came.
    pub fn messages(&self) -> &[&'a RawValue] {
        &self.messages
    }

    /// The model that is asked.
    pub fn model(&self) -> Option<Cow<'a, str>> {
        self.fields.text("model").or_else(|| self.addressed.clone())
    }

    /// Whether the answer is wanted piece by piece.
    pub fn is_streaming(&self) -> bool {
        self.fields.is_true("stream")
    }

    /// Whether it has a field of a name, beside its messages.
    pub fn has_field(&self, name: &str) -> bool {
        self.fields.get(name).is_some()
    }

    /// Whether it has a field of a name in either of Google's spellings.
    pub(super) fn has_either(&self, name: &str) -> bool {
        either(&self.fields, name).is_some()
    }

    /// A field beside its messages.
    pub(super) fn field(&self, name: &str) -> Option<&'a RawValue> {
        self.fields.get(name)
    }

    /// Whether it goes on from a content that the provider keeps under a name.
    pub fn has_cached_content(&self) -> bool {
        self.format == Format::Gemini && either(&self.fields, "cachedContent").is_some()
    }

    /// Whether it offers tools.
    pub fn has_tools(&self) -> bool {
        self.fields.get("tools").is_some_and(|tools| tools.get().len() > 2)
    }

    /// The name under which the client wants it cached, which stays the same for a conversation.
    pub fn cache_key(&self) -> Option<Cow<'a, str>> {
        self.fields.text("prompt_cache_key")
    }

    /// The response that it continues, if the provider keeps the history.
    pub fn previous_response(&self) -> Option<Cow<'a, str>> {
        match self.format {
            Format::Responses => self.fields.text("previous_response_id").or_else(|| self.kept_conversation()),
            Format::Messages => self.thread()?.text("previous_message_id"),
            Format::Chat | Format::Gemini => None,
        }
    }

    /// The conversation that the provider keeps, by its id.
    fn kept_conversation(&self) -> Option<Cow<'a, str>> {
        let named = self.fields.get("conversation").filter(|named| named.get() != "null")?;
        Fields::parse(named.get())
            .ok()
            .and_then(|fields| fields.text("id"))
            .or_else(|| self.fields.text("conversation"))
    }

    /// Whether the provider keeps its messages for the requests after it, or kept those before it.
    pub fn is_of_thread(&self) -> bool {
        self.thread().is_some()
    }

    fn thread(&self) -> Option<Fields<'a>> {
        let thread = self.fields.get("thread").filter(|_| self.format == Format::Messages)?;
        Fields::parse(thread.get()).ok()
    }

    /// Whether what the model says between calls comes as thoughts.
    pub fn tells_in_thoughts(&self) -> bool {
        let thinking = self.fields.get("thinking").filter(|_| self.format == Format::Messages);
        let Some(thinking) = thinking.and_then(|thinking| Fields::parse(thinking.get()).ok()) else { return false };
        thinking.text("type").as_deref() == Some("between_tools")
            || thinking.text("display").as_deref() == Some("updates")
    }

    /// The most tokens that the answer may have.
    pub fn most_output(&self) -> Option<u64> {
        let names = ["max_tokens", "max_completion_tokens", "max_output_tokens"];
        if self.format == Format::Gemini {
            let options = Fields::parse(either(&self.fields, "generationConfig")?.get()).ok()?;
            return either(&options, "maxOutputTokens")?.get().parse().ok();
        }
        names.iter().find_map(|name| self.fields.get(name)?.get().parse().ok())
    }

    /// Bytes of the request that are no messages: instructions, tools, options.
    pub fn other_bytes(&self) -> usize {
        self.body.len() - self.list.len()
    }

    /// The text of the request before its messages and after them: instructions, tools, options.
    pub fn others(&self) -> [&'a str; 2] {
        [&self.body[..self.list.start], &self.body[self.list.end..]]
    }

    /// How many messages at the start are instructions, or summed up by the provider: they are never touched.
    pub fn leading_instructions(&self) -> usize {
        let is_instruction = |raw: &&&RawValue| Fields::parse(raw.get()).is_ok_and(|fields| fields.is_instruction());
        match self.format {
            Format::Messages => self.summary.map_or(0, |summary| {
                // What it called together with the summary is answered in the next message.
                let has_calls = memmem::find(self.messages[summary].get().as_bytes(), b"\"tool_use\"").is_some();
                (summary + 1 + usize::from(has_calls)).min(self.messages.len())
            }),
            Format::Gemini => 0,
            Format::Chat | Format::Responses => self.messages.iter().take_while(is_instruction).count(),
        }
    }

    /// How many messages at the start are seen by nobody, because the provider has summed them up.
    ///
    /// Items of OpenAI's responses are not meant: clients of that format compact by themselves as well, leave out what
    /// is before, and go on from there.
    pub fn summed_up(&self) -> usize {
        self.summary.unwrap_or(0)
    }

    /// Whether the whole of it is to be summed up by the provider: then the response is a summary.
    pub fn asks_for_summary(&self) -> bool {
        self.format == Format::Messages && self.fields.get("compaction").is_some_and(|asked| asked.get() != "null")
    }

    /// Whether the client asks the provider to compact the conversation, in a way of its own.
    pub fn asks_for_compaction(&self) -> bool {
        let last = self.messages.last().and_then(|raw| Fields::parse(raw.get()).ok());
        last.and_then(|fields| fields.text("type")).as_deref() == Some("compaction_trigger")
    }

    /// Its cache marks.
    pub fn marks(&self) -> CacheMarks {
        let mut marks = CacheMarks::default();
        marks.note(self.body);
        marks
    }

    /// The body with its messages as a plan says; the very same bytes if the plan changes nothing.
    ///
    /// # Errors
    /// The plan is not for this request.
    pub fn rewritten(&self, plan: &Plan) -> Result<Cow<'a, str>, WireError> {
        if plan.is_as_it_came() {
            return Ok(Cow::Borrowed(self.body));
        }
        if plan.covered() > self.messages.len() || self.messages.is_empty() {
            return Err(WireError::OtherRequest);
        }
        let list = {
            let marks = if self.format == Format::Messages { self.marks().count } else { 0 };
            let automatic = self.fields.get(MARK).map(RawValue::get).filter(|mark| mark.starts_with('{'));
            let automatic = automatic.filter(|_| self.format == Format::Messages);
            rewritten::list(&Came { format: self.format, messages: &self.messages, marks, automatic }, plan)?
        };
        let [before, after] = self.others();
        Ok(Cow::Owned([before, &list, after].concat()))
    }
}

/// The newest message with a block into which the provider has compacted the past. One without a content failed.
fn newest_summary(body: &str, messages: &[&RawValue]) -> Option<usize> {
    const KIND: &str = "compaction";
    let is_likely = |json: &str| memmem::find(json.as_bytes(), KIND.as_bytes()).is_some();
    if !is_likely(body) {
        return None;
    }
    let has_summary = |message: &RawValue| {
        let content = Fields::parse(message.get()).ok()?.get("content")?;
        let ContentBlocks::List(blocks) = ContentBlocks::of(content).ok()? else { return None };
        let is_it = |block: &&RawValue| {
            let fields = Fields::parse(block.get()).unwrap_or_default();
            let holds = |name: &str| fields.get(name).is_some_and(|value| value.get() != "null");
            fields.text("type").is_some_and(|kind| kind == KIND) && (holds("content") || holds("encrypted_content"))
        };
        blocks.iter().any(is_it).then_some(())
    };
    messages.iter().rposition(|message| is_likely(message.get()) && has_summary(message).is_some())
}
