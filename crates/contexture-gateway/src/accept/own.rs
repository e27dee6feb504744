//! The gateway's own routes, which require its token.

use axum::body::Body;
use axum::http::{Method, Response, StatusCode, header};
use serde_json::Value;

use crate::accept::refusal::refusal;
use crate::account::metrics::metrics;
use crate::account::receipt::Receipt;
use crate::shared::Shared;

/// The name under which the status says whether the gateway is paused.
pub(crate) const PAUSED: &str = "paused";

/// Whether a path is one of the gateway's own.
pub(crate) fn is_own(path: &str) -> bool {
    path == "/metrics" || path.starts_with("/contexture/")
}

/// Responds to a request that has the gateway's token.
pub(crate) fn respond(shared: &Shared, method: &Method, path: &str) -> Response<Body> {
    let records = shared.session.records();
    match path {
        "/contexture/status" => json(&status(shared, &Receipt::of(&records))),
        "/contexture/pause" | "/contexture/resume" if *method == Method::POST => {
            shared.decider.pause(path.ends_with("pause"));
            json(&status(shared, &Receipt::of(&records)))
        }
        "/contexture/requests" => json(&records),
        "/metrics" => text(metrics(&records, &shared.options)),
        _ => refusal(None, StatusCode::NOT_FOUND, "there is no such route"),
    }
}

/// A receipt, with whether the gateway is paused.
fn status(shared: &Shared, receipt: &Receipt) -> Value {
    let mut status = serde_json::to_value(receipt).expect("receipts are texts and numbers");
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
