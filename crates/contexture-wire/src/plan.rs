//! Which parts of a request are kept, and what replaces the rest.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What is sent for the first messages of a request; all later ones are sent unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    segments: Vec<Segment>,
    /// The number of messages that it covers.
    covered: usize,
    /// How many segments at the start stay until the next fold, and perhaps after it.
    #[serde(default)]
    standing: usize,
    /// How many segments at the start stayed when the plan was last changed, and had been standing before.
    #[serde(default)]
    stayed: usize,
}

/// A piece of what is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Segment {
    /// These messages as they came.
    Keep(Range<usize>),
    /// Some parts of a message, or parts with another text.
    Part {
        /// The message.
        message: usize,
        /// Its parts that are sent, in order.
        units: Vec<ShownUnit>,
    },
    /// A message that replaces others.
    Made(Arc<str>),
    /// A text of the model, without the calls and the reasoning that came with it.
    Told(Arc<str>),
}

/// A part of a message that is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownUnit {
    /// The part.
    pub unit: usize,
    /// Its text, if that is another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Arc<str>>,
}

impl Plan {
    /// A plan of these segments for the first messages.
    pub fn of(segments: Vec<Segment>, covered: usize) -> Self {
        Self { segments, covered, ..Self::default() }
    }

    /// Begins with the first messages as they came.
    pub fn keeping(messages: usize) -> Self {
        let segments = if messages == 0 { Vec::new() } else { vec![Segment::Keep(0..messages)] };
        Self { segments, covered: messages, ..Self::default() }
    }

    /// The segments, in order.
    pub fn segments(&self) -> &[Segment] {
        &self.segments
    }

    /// The number of messages that it covers.
    pub fn covered(&self) -> usize {
        self.covered
    }

    /// Whether it changes nothing.
    pub fn is_as_it_came(&self) -> bool {
        match self.segments.as_slice() {
            [] => self.covered == 0,
            [Segment::Keep(kept)] => *kept == (0..self.covered),
            _ => false,
        }
    }

    /// Adds a part of a message that has `of` parts. Parts come in order.
    pub fn push_unit(&mut self, message: usize, unit: usize, of: usize, text: Option<Arc<str>>) {
        let shown = ShownUnit { unit, text };
        match self.segments.last_mut() {
            Some(Segment::Part { message: last, units }) if *last == message => units.push(shown),
            _ => self.segments.push(Segment::Part { message, units: vec![shown] }),
        }
        self.join(of);
    }

    /// Adds a message that replaces others.
    pub fn push_made(&mut self, text: Arc<str>) {
        self.segments.push(Segment::Made(text));
    }

    /// Adds a text of the model without what came with it.
    pub fn push_told(&mut self, text: Arc<str>) {
        self.segments.push(Segment::Told(text));
    }

    /// Adds messages as they came.
    pub fn push_kept(&mut self, messages: Range<usize>) {
        match self.segments.last_mut() {
            _ if messages.is_empty() => {}
            Some(Segment::Keep(kept)) if kept.end == messages.start => kept.end = messages.end,
            _ => self.segments.push(Segment::Keep(messages)),
        }
    }

    /// Says how many messages it speaks of.
    pub fn cover(&mut self, messages: usize) {
        self.covered = messages;
    }

    /// Says how many segments at the start stay until the next fold. A request that changes the plan should find them
    /// in the provider's cache then.
    pub fn stand(&mut self, segments: usize) {
        self.standing = segments;
    }

    /// How many segments at the start stay until the next fold.
    pub fn standing(&self) -> usize {
        self.standing
    }

    /// Notes the plan that was in effect before: what both begin with can be read from the provider's cache.
    pub fn follow(&mut self, before: &Plan) {
        let same = self.segments.iter().zip(&before.segments).take_while(|(own, other)| own == other).count();
        self.stayed = same.min(before.standing);
    }

    /// How many segments at the start stayed when the plan was last changed.
    pub fn stayed(&self) -> usize {
        self.stayed
    }

    /// Sets what [`follow`](Self::follow) notes, for a plan that is read from a store.
    pub fn set_stayed(&mut self, segments: usize) {
        self.stayed = segments;
    }

    /// Turns the last part into a kept message if it is one.
    fn join(&mut self, of: usize) {
        let Some(Segment::Part { message, units }) = self.segments.last() else { return };
        let is_whole =
            units.len() == of && units.iter().enumerate().all(|(at, shown)| shown.unit == at && shown.text.is_none());
        if is_whole {
            let message = *message;
            self.segments.pop();
            self.push_kept(message..message + 1);
        }
    }

    /// Whether anything of a message is sent as it came.
    pub fn shows(&self, message: usize) -> bool {
        let shows = |segment: &Segment| match segment {
            Segment::Keep(kept) => kept.contains(&message),
            Segment::Part { message: own, units } => *own == message && units.iter().any(|shown| shown.text.is_none()),
            Segment::Made(_) | Segment::Told(_) => false,
        };
        message >= self.covered || self.segments.iter().any(shows)
    }

    /// How many messages of the log are sent as they came.
    pub fn kept_messages(&self) -> usize {
        let kept = |segment: &Segment| if let Segment::Keep(kept) = segment { kept.len() } else { 0 };
        self.segments.iter().map(kept).sum()
    }

    /// Whether what this one sends begins with what another one sends for its messages.
    pub fn goes_on_from(&self, before: &Plan) -> bool {
        let mut own = self.segments.iter();
        let mut others = before.segments.iter().peekable();
        while let Some(other) = others.next() {
            let is_same = match (own.next(), other) {
                (Some(Segment::Keep(one)), Segment::Keep(two)) if others.peek().is_none() => {
                    one.start == two.start && one.end >= two.end
                }
                (Some(one), two) => one == two,
                (None, _) => false,
            };
            if !is_same {
                return false;
            }
        }
        self.covered >= before.covered
    }
}
