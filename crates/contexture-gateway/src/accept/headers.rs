//! Headers that are forwarded, and what they say about the client.

use axum::http::{HeaderMap, HeaderName, header};
use contexture_agents::every;

use crate::models::Asks;
use crate::provider::upstream::Looks;

/// Headers that concern one connection only, or that are set again.
const HOP_BY_HOP: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Headers that report the use of a quota.
const QUOTAS: &[&str] = &["anthropic-ratelimit-unified", "x-codex-primary", "x-codex-secondary"];

/// The headers of a request to forward.
pub(crate) fn forwarded(headers: &HeaderMap) -> HeaderMap {
    let mut passed = without_hop_headers(headers);
    passed.remove(header::HOST);
    passed.remove(header::CONTENT_LENGTH);
    // The response is read for its usage, so it must not be compressed.
    passed.insert(header::ACCEPT_ENCODING, header::HeaderValue::from_static("identity"));
    passed
}

/// All headers except those that concern one connection.
pub(crate) fn without_hop_headers(headers: &HeaderMap) -> HeaderMap {
    let named = headers.get_all(header::CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named: Vec<String> =
        named.flat_map(|value| value.split(',')).map(|name| name.trim().to_ascii_lowercase()).collect();
    let is_hop =
        |name: &HeaderName| HOP_BY_HOP.contains(&name.as_str()) || named.iter().any(|other| other == name.as_str());
    let mut passed = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers.iter().filter(|(name, _)| !is_hop(name)) {
        passed.append(name.clone(), value.clone());
    }
    passed
}

/// Whether a signature of Amazon's (SigV4) covers the body: the hash of the body is part of what is signed, unless it is
/// said not to be.
pub(crate) fn is_signed(headers: &HeaderMap) -> bool {
    let starts = |name: &str, start: &str| {
        headers.get(name).and_then(|value| value.to_str().ok()).is_some_and(|value| value.trim().starts_with(start))
    };
    starts("authorization", "AWS4-") && !starts("x-amz-content-sha256", "UNSIGNED-PAYLOAD")
}

/// The client's session, if the headers name one.
pub(crate) fn session_of(headers: &HeaderMap) -> String {
    let text = |name: &&str| headers.get(*name).and_then(|value| value.to_str().ok());
    let session = every(|agent| agent.session().session()).find_map(text).unwrap_or_default();
    let parts: Vec<&str> = every(|agent| agent.session().part()).filter_map(text).collect();
    match session.is_empty() && parts.is_empty() {
        true => String::new(),
        false => format!("{session}/{}", parts.join("/")),
    }
}

/// Whether the client says that a sub-agent sends the request.
pub(crate) fn is_sub_agent(headers: &HeaderMap) -> bool {
    every(|agent| agent.session().sub_agent()).any(|name| headers.get(*name).is_some_and(|value| !value.is_empty()))
}

/// Whether the client says that it is summarising the conversation.
pub(crate) fn is_compaction(headers: &HeaderMap) -> bool {
    every(|agent| agent.compaction().headers()).any(|mark| {
        headers.get(mark.name()).and_then(|value| value.to_str().ok()).is_some_and(|value| value.contains(mark.has()))
    })
}

/// What a request says about the window of its model.
pub(crate) fn asks(headers: &HeaderMap) -> Asks {
    let values = headers.get_all("anthropic-beta").iter().filter_map(|value| value.to_str().ok());
    let betas: Vec<String> = values.flat_map(|value| value.split(',')).map(|beta| beta.trim().to_owned()).collect();
    let token = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let is_login = token.starts_with("Bearer sk-ant-oat") || betas.iter().any(|beta| beta.starts_with("oauth-"));
    Asks { betas, is_login }
}

/// Whether a request looks like one for Anthropic.
pub(crate) fn is_anthropic(headers: &HeaderMap) -> bool {
    headers.contains_key("anthropic-version") || headers.contains_key("x-api-key")
}

/// Whose request it looks like.
pub(crate) fn looks(headers: &HeaderMap, query: Option<&str>) -> Option<Looks> {
    let has_key = |query: &str| query.split('&').any(|field| field.starts_with("key="));
    match () {
        () if headers.contains_key("x-goog-api-key") || query.is_some_and(has_key) => Some(Looks::Google),
        () if is_anthropic(headers) => Some(Looks::Anthropic),
        () => None,
    }
}

/// Whether a request is authenticated by an OpenAI account instead of an API key.
pub(crate) fn has_account(headers: &HeaderMap) -> bool {
    headers.contains_key("chatgpt-account-id")
}

/// Whether a request is paid by a plan, and not by its tokens.
pub(crate) fn is_on_plan(headers: &HeaderMap) -> bool {
    has_account(headers) || asks(headers).is_login
}

/// The headers of a response that report the use of a quota.
pub(crate) fn quota_of(headers: &HeaderMap) -> Vec<(String, String)> {
    let is_quota = |name: &HeaderName| QUOTAS.iter().any(|start| name.as_str().starts_with(start));
    headers
        .iter()
        .filter(|(name, _)| is_quota(name))
        .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())))
        .collect()
}
