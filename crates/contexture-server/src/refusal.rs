//! Error responses of the gateway itself, in the provider's format.

use axum::body::Body;
use axum::http::{Response, StatusCode, header};
use contexture::wire::Format;
use serde_json::json;

/// An error response in the provider's format.
pub fn refusal(format: Option<Format>, status: StatusCode, message: &str) -> Response<Body> {
    let message = format!("contexture: {message}");
    let body = match format {
        Some(Format::Messages) => json!({"type": "error", "error": {"type": "api_error", "message": message}}),
        _ => json!({"error": {"message": message, "type": "gateway_error", "param": null, "code": null}}),
    };
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
