//! A response with which a provider refuses a request, and what it says.

use axum::http::Response;
use serde_json::Value;

use crate::models::said::window_in_refusal;

/// What a provider said when it refused a request.
pub(crate) struct Rejection {
    /// Why, without what differs for every request; `None` if its response could not be read.
    reason: Option<String>,
    window: Option<u64>,
}

impl Rejection {
    /// Whether a response refuses the request for what it is.
    pub(crate) fn is_in(answer: &reqwest::Response) -> bool {
        matches!(answer.status().as_u16(), 400 | 413 | 422)
    }

    /// Reads a response that refuses the request. Returns the same response, to be forwarded.
    pub(crate) async fn read(answer: reqwest::Response) -> (Result<reqwest::Response, reqwest::Error>, Self) {
        let (status, version) = (answer.status(), answer.version());
        let (headers, extensions) = (answer.headers().clone(), answer.extensions().clone());
        let body = match answer.bytes().await {
            Ok(body) => body,
            Err(error) => return (Err(error), Self { reason: None, window: None }),
        };
        let said = Self::of(&String::from_utf8_lossy(&body));
        let mut same = Response::new(body);
        (*same.status_mut(), *same.version_mut()) = (status, version);
        (*same.headers_mut(), *same.extensions_mut()) = (headers, extensions);
        (Ok(same.into()), said)
    }

    fn of(text: &str) -> Self {
        let body: Value = serde_json::from_str(text).unwrap_or_default();
        let message = body["error"]["message"].as_str().or_else(|| body["message"].as_str());
        let reason = Some(message.unwrap_or(text)).filter(|reason| !reason.is_empty());
        Self { reason: reason.map(str::to_owned), window: window_in_refusal(text) }
    }

    /// The size of the model's window, if it names it.
    pub(crate) fn window(&self) -> Option<u64> {
        self.window
    }

    /// Whether both give the same reason; what gives none is like nothing else.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        self.reason.is_some() && self.reason == other.reason
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rejections_for_the_same_reason_are_alike() {
        let anthropic =
            |id, message| json!({"type": "error", "error": {"message": message}, "request_id": id}).to_string();
        let amazon = r#"{"message":"Malformed input request"}"#;
        let check = |one: &str, other: &str, expected| {
            assert_eq!(Rejection::of(one).is_like(&Rejection::of(other)), expected, "{one} and {other}");
        };
        check(&anthropic(1, "no"), &anthropic(2, "no"), true);
        check(&anthropic(1, "no"), &anthropic(1, "never"), false);
        check(amazon, amazon, true);
        check(amazon, r#"{"message":"Too long"}"#, false);
        check("plain text", "plain text", true);
        check("plain text", "other text", false);
        check("", "", false);
    }
}
