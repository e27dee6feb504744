//! A rule of a provider, and a breach of it.

use std::fmt;

use crate::format::Format;

/// Something that a provider refuses.
#[derive(Debug)]
pub struct Rule {
    /// Its name.
    pub id: &'static str,
    /// The format that it is about.
    pub format: Format,
    /// What is refused, in words.
    pub refused: &'static str,
    /// How the names of the models begin that it is about; empty for all.
    pub models: &'static [&'static str],
    /// The day on which it was read, as `YYYY-MM-DD`.
    pub read: &'static str,
    /// Where it was read.
    pub source: &'static str,
    /// How it is checked.
    pub check: Check,
}

/// How a rule is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// There is at least one message.
    NotEmpty,
    /// Messages have these roles only.
    Roles(&'static [&'static str]),
    /// The first message has one of these roles.
    First(&'static [&'static str]),
    /// The last message has one of these roles.
    Last(&'static [&'static str]),
    /// A message of a role directly follows one of these roles.
    After(&'static str, &'static [&'static str]),
    /// A message of a role is the last one, or is directly followed by one of these roles.
    Before(&'static str, &'static [&'static str]),
    /// No two messages in a row have the same role.
    Alternate,
    /// A message that calls functions directly follows one of these roles, and no other message that calls some.
    CallsAfter(&'static [&'static str]),
    /// A request that goes on from a content which the provider keeps has none of these fields.
    Beside(&'static [&'static str]),
    /// Messages have a content, except for the last one if it is of this role.
    Content(&'static str),
    /// Texts are not empty, and have more than white space.
    Text,
    /// The last message, if it is of the model, does not end with white space.
    EndOfText,
    /// A call is answered directly after the message that makes it.
    CallsAnswered,
    /// An output answers a call of the message directly before it.
    OutputsAsked,
    /// The output of a tool that the provider runs itself comes after its call.
    ServerOutputsAsked,
    /// A list of calls has some.
    CallsNotEmpty,
    /// Outputs come before everything else of their message.
    OutputsFirst,
    /// No two calls, or items, have the same id.
    UniqueIds,
    /// Reasoning has its signature.
    Signed,
    /// The newest message of the model begins with its reasoning, if it has any.
    ReasoningFirst,
    /// A message of the model does not end with reasoning.
    ReasoningLast,
    /// With a budget for reasoning, the turn of the model that a request goes on with begins with reasoning.
    ReasoningBegins,
    /// Reasoning is followed by what it led to.
    ReasoningFollowed,
    /// There are at most so many cache marks.
    Marks(usize),
    /// Blocks of these kinds have no cache mark.
    Unmarked(&'static [&'static str]),
    /// Empty texts have no cache mark.
    UnmarkedEmpty,
    /// Marks for an hour come before those for minutes.
    LongMarksFirst,
    /// Blocks of these kinds are in messages of this role only.
    OnlyIn(&'static str, &'static [&'static str]),
    /// Calls have their reasoning, if others have it.
    CallsReasoned,
    /// Ids have letters, digits, `_` and `-` only.
    PlainIds,
    /// Ids are not longer than this, and those of items begin with what their kind is called.
    ItemIds(usize),
    /// Messages of the model have parts of the model, others have parts that are input.
    PartsOfRole,
    /// It cannot be seen in one request. Whoever rewrites requests keeps it by the way he does it.
    Elsewhere,
}

/// A rule that a request breaks.
#[derive(Clone, Copy, Debug)]
pub struct Broken {
    /// The rule.
    pub rule: &'static Rule,
    /// The message, if it is about one.
    pub at: Option<usize>,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.rule.refused)
    }
}

/// A breach of a rule at a message.
pub(super) fn at(rule: &'static Rule, message: usize) -> Option<Broken> {
    Some(Broken { rule, at: Some(message) })
}
