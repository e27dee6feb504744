//! What providers refuse, and a check of a request against it.
//!
//! The rules are rows of [one table](TABLE), each with the day on which it was read and where. [`broken`] looks for the
//! first one that a request breaks. What it cannot read it does not judge: a form that is new to it may well be accepted.
//!
//! ```
//! use contexture_wire::{Format, rules};
//!
//! let body = r#"{"model":"m","messages":[{"role":"assistant","content":"hello"}]}"#;
//! let broken = rules::broken(Format::Messages, body).unwrap();
//! assert_eq!((broken.rule.id, broken.at), ("first-is-user", Some(0)));
//! ```

mod rule;
mod table;
mod roles;
mod messages;
mod chat;
mod responses;
mod gemini;

pub use rule::{Broken, Check, Rule};
pub use table::{TABLE, binds_reasoning, rules};

use super::format::Format;
use super::request::Request;

/// Returns the first rule that a request breaks; `None` also for a request that cannot be read.
pub fn broken(format: Format, body: &str) -> Option<Broken> {
    broken_for(format, body, None)
}

/// The same for a request whose address names this model.
pub fn broken_for(format: Format, body: &str, model: Option<&str>) -> Option<Broken> {
    all_broken(format, body, model).into_iter().next()
}

/// All rules that a request breaks, in the order of the table; none for a request that cannot be read.
pub fn all_broken(format: Format, body: &str, model: Option<&str>) -> Vec<Broken> {
    let Ok(request) = Request::parse(format, body) else { return Vec::new() };
    let request = request.addressed_to(model);
    let model = request.model().unwrap_or_default();
    let broken = match format {
        Format::Messages => messages::broken(&request, body, &model),
        Format::Chat => chat::broken(&request, &model),
        Format::Responses => responses::broken(&request, &model),
        Format::Gemini => gemini::broken(&request, &model),
    };
    broken.unwrap_or_default()
}

#[cfg(test)]
mod tests;
