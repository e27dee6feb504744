//! Error responses of the gateway itself, in the provider's format.

use axum::body::Body;
use axum::http::{HeaderMap, Response, StatusCode, header};
use contexture::wire::Format;
use serde_json::json;

use crate::accept::headers;

/// Whose form of an error a client understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorForm {
    /// Anthropic's.
    Anthropic,
    /// OpenAI's, which most others have as well.
    OpenAi,
    /// Google's.
    Google,
}

impl ErrorForm {
    /// The form for a request, by its path and its headers.
    pub fn of(path: &str, headers: &HeaderMap) -> Self {
        let is_google = path.contains(":generateContent") || path.contains(":streamGenerateContent");
        match () {
            () if is_google || path.contains(":countTokens") || headers.contains_key("x-goog-api-key") => Self::Google,
            () if path.contains("/anthropic/") || path.contains("/messages") => Self::Anthropic,
            () if headers::is_anthropic(headers) => Self::Anthropic,
            () => Self::OpenAi,
        }
    }
}

impl From<Option<Format>> for ErrorForm {
    fn from(format: Option<Format>) -> Self {
        match format {
            Some(Format::Messages) => Self::Anthropic,
            Some(Format::Gemini) => Self::Google,
            _ => Self::OpenAi,
        }
    }
}

/// An error response in the provider's format.
pub(crate) fn refusal(form: impl Into<ErrorForm>, status: StatusCode, message: &str) -> Response<Body> {
    let message = format!("contexture: {message}");
    let kind = match status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::NOT_FOUND => "not_found_error",
        _ => "api_error",
    };
    let body = match form.into() {
        ErrorForm::Anthropic => json!({"type": "error", "error": {"type": kind, "message": message}}),
        ErrorForm::OpenAi => {
            json!({"error": {"message": message, "type": "gateway_error", "param": null, "code": null}})
        }
        ErrorForm::Google => {
            let name = match status {
                StatusCode::UNAUTHORIZED => "UNAUTHENTICATED",
                StatusCode::FORBIDDEN => "PERMISSION_DENIED",
                StatusCode::NOT_FOUND => "NOT_FOUND",
                StatusCode::SERVICE_UNAVAILABLE | StatusCode::BAD_GATEWAY => "UNAVAILABLE",
                status if status.is_client_error() => "INVALID_ARGUMENT",
                _ => "INTERNAL",
            };
            json!({"error": {"code": status.as_u16(), "message": message, "status": name}})
        }
    };
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
