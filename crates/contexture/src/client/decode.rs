//! What the formats share when a response is decoded.

use contexture_core::item::Item;
use contexture_core::model::{Deltas, LlmResponse, Usage};
use serde_json::Value;

use super::error::{ClientError, malformed};
use crate::wire;

/// Assembles a streamed response.
pub(super) trait Decode: Send {
    /// Processes one event and forwards the deltas that a user may want to see.
    fn event(&mut self, event: &Value, deltas: &Deltas) -> Result<(), ClientError>;

    /// Whether the provider said that the response is complete.
    fn has_ended(&self) -> bool;

    /// The items of the whole response.
    fn finish(self: Box<Self>) -> Result<Vec<Item>, ClientError>;
}

/// A string, or an empty one if the value is not a string.
pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// An error that a provider reports in the middle of a response.
pub(super) fn provider_error(event: &Value) -> ClientError {
    ClientError::Failed { message: error_message(event).unwrap_or_else(|| event.to_string()) }
}

/// The message of a provider's error.
pub(super) fn error_message(report: &Value) -> Option<String> {
    let error = &report["error"];
    let message = [&error["message"], error, &report["message"], &report["detail"]];
    message.into_iter().find_map(Value::as_str).map(str::to_owned)
}

/// The usage, as far as the provider reported it.
#[derive(Debug, Default)]
pub(super) struct ReportedUsage {
    usage: wire::Usage,
    says_anything: bool,
    says_written: bool,
    cost: Option<f64>,
}

impl ReportedUsage {
    /// Adds the usage of a response or of one of its events.
    pub(super) fn take(&mut self, event: &Value) {
        self.says_anything |= self.usage.take(event);
        for usage in [&event["usage"], &event["message"]["usage"]] {
            self.says_written |= usage.get("cache_creation_input_tokens").is_some();
            self.cost = usage["cost"].as_f64().or(self.cost);
        }
    }

    /// The response with these items.
    pub(super) fn response(self, items: Vec<Item>) -> LlmResponse {
        let mut response = LlmResponse { items, cost: self.cost, ..LlmResponse::default() };
        if self.says_anything {
            response.usage = Usage {
                input_tokens: self.usage.total_input(),
                output_tokens: self.usage.output,
                cache_read_tokens: Some(self.usage.cache_read),
                cache_write_tokens: self.says_written.then_some(self.usage.cache_write + self.usage.cache_write_hour),
            };
        }
        response
    }
}

/// Parses JSON from a provider.
pub(super) fn parse(json: &str) -> Result<Value, ClientError> {
    serde_json::from_str(json).map_err(|error| malformed(format!("it is not JSON ({error})")))
}
