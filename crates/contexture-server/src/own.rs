//! The gateway's own routes, which require its token.

use axum::body::Body;
use axum::http::{HeaderMap, Response, StatusCode, header};

use crate::metrics::metrics;
use crate::receipt::Receipt;
use crate::refusal::refusal;
use crate::shared::Shared;

/// Responds to a request for one of the gateway's own routes.
pub(crate) fn respond(shared: &Shared, path: &str, headers: &HeaderMap, query: Option<&str>) -> Option<Response<Body>> {
    let route = path.strip_prefix("/contexture/").or_else(|| (path == "/metrics").then_some("metrics"))?;
    if !is_allowed(shared, headers, query) {
        return Some(refusal(None, StatusCode::UNAUTHORIZED, "this route asks for the gateway's token"));
    }
    let records = shared.session.records();
    Some(match route {
        "status" => json(&Receipt::of(&records)),
        "requests" => json(&records),
        "metrics" => text(metrics(&records, &shared.options)),
        _ => refusal(None, StatusCode::NOT_FOUND, "there is no such route"),
    })
}

fn is_allowed(shared: &Shared, headers: &HeaderMap, query: Option<&str>) -> bool {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let bearer = bearer.and_then(|value| value.strip_prefix("Bearer "));
    let asked = query.into_iter().flat_map(|query| query.split('&')).find_map(|pair| pair.strip_prefix("token="));
    // Comparing digests keeps the timing independent of the token.
    let is_it = |given: &str| blake3::hash(given.as_bytes()) == blake3::hash(shared.token.as_bytes());
    bearer.into_iter().chain(asked).any(is_it)
}

fn json(value: &impl serde::Serialize) -> Response<Body> {
    let mut response = text(serde_json::to_string(value).expect("receipts are texts and numbers"));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

fn text(text: String) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/plain; version=0.0.4"));
    response
}
