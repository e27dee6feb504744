//! Which files the user and the agent name.

use serde_json::Value;

use super::{Folder, Mention, Role, Who};
use crate::files::model::named_places;
use crate::transcript::{Message, ToolCall};

/// Share of the budget up to which a window has room for what is known of files that were only named.
const ROOM_FOR_NAMED_SHARE: f64 = 0.8;

impl Folder {
    /// Takes note of the files, and of the user's lines, that a message names.
    pub(super) fn note_names(&mut self, at: usize, message: &Message) {
        let moment = at as u32 + 1;
        let who = if message.role == Role::User { Who::User } else { Who::Agent };
        let has_room = self.window.total() as f64 <= self.policy.budget as f64 * ROOM_FOR_NAMED_SHARE;
        for place in named_places(&message.text) {
            let Some(file) = self.model.name(moment, place.path, who) else { continue };
            if has_room {
                self.touched.push(file);
            }
            if who == Who::User && place.line.is_some() {
                self.model.mention(file, Mention { at: moment, line: place.line });
                self.pointed_at.push(file);
            }
        }
    }

    /// Takes note of the files that a call names which does nothing to them: plans are made by such calls.
    pub(super) fn note_plan(&mut self, at: usize, call: &ToolCall) {
        for place in texts_in(&call.arguments).into_iter().flat_map(named_places) {
            self.model.name(at as u32 + 1, place.path, Who::Agent);
        }
    }
}

/// All texts in the arguments of a call.
fn texts_in(arguments: &Value) -> Vec<&str> {
    match arguments {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().flat_map(texts_in).collect(),
        Value::Object(fields) => fields.values().flat_map(texts_in).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}
