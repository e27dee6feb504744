//! The gateway's own routes, which require its token.

use axum::body::Body;
use axum::http::{Method, Response, StatusCode, header};
use serde_json::Value;

use crate::accept::refusal::refusal;
use crate::report::metrics::metrics;
use crate::shared::SharedState;

/// The name under which the status says whether the gateway is paused.
pub(crate) const PAUSED: &str = "paused";

/// Whether a path is one of the gateway's own.
pub(crate) fn is_own(path: &str) -> bool {
    path == "/metrics" || path.starts_with("/contexture/")
}

/// Responds to a request that has the gateway's token.
pub(crate) fn respond(shared: &SharedState, method: &Method, path: &str) -> Response<Body> {
    match path {
        "/contexture/status" => json(&status(shared)),
        "/contexture/pause" | "/contexture/resume" if *method == Method::POST => {
            shared.decider.pause(path.ends_with("pause"));
            json(&status(shared))
        }
        "/contexture/requests" => json(&shared.session.records()),
        "/metrics" => text(metrics(&shared.session.receipt(), &shared.options)),
        _ => refusal(None, StatusCode::NOT_FOUND, "there is no such route"),
    }
}

/// A receipt, with whether the gateway is paused.
fn status(shared: &SharedState) -> Value {
    let mut status = serde_json::to_value(shared.receipt()).expect("receipts are texts and numbers");
    status[PAUSED] = shared.decider.is_paused().into();
    status
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
