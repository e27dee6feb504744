//! HTTP responses of the inspector.

use axum::body::Body;
use axum::http::{HeaderValue, Response, StatusCode, header};
use serde::Serialize;
use serde_json::json;

/// The content security policy of the page: only resources of the same origin, and no inline scripts.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; \
                      trusted-types 'none'";

/// A response with a body and its content type.
pub fn of(kind: &'static str, body: impl Into<Body>) -> Response<Body> {
    let mut response = Response::new(body.into());
    let headers = [
        (header::CONTENT_TYPE, kind),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_FRAME_OPTIONS, "DENY"),
    ];
    for (name, value) in headers {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    let own = HeaderValue::from_static("same-origin");
    response.headers_mut().insert("cross-origin-resource-policy", own.clone());
    response.headers_mut().insert("cross-origin-opener-policy", own);
    response
}

/// A JSON response.
pub fn json(value: &impl Serialize) -> Response<Body> {
    match serde_json::to_vec(value) {
        Ok(bytes) => of("application/json", bytes),
        Err(_) => refused(StatusCode::INTERNAL_SERVER_ERROR, "the answer cannot be written"),
    }
}

/// A page with one sentence.
pub fn sentence(status: StatusCode, words: &'static str) -> Response<Body> {
    let page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Contexture</title></head>\
         <body><p>{words}</p></body></html>\n"
    );
    let mut response = of("text/html; charset=utf-8", page);
    *response.status_mut() = status;
    response
}

/// An error response.
pub fn refused(status: StatusCode, why: &str) -> Response<Body> {
    let body = json!({"error": {"message": why}}).to_string();
    let mut response = of("application/json", body);
    *response.status_mut() = status;
    response
}
