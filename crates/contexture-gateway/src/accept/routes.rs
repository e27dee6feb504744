//! The routes of providers that are forwarded. Everything else is answered by the gateway itself.
//!
//! From the public references: Anthropic's API (messages, models, files, batches), OpenAI's API (chat completions,
//! responses, models, embeddings, completions, audio, images, files, batches, moderations), Gemini's and Vertex's
//! methods of models and cached contents, and Bedrock's runtime.

use axum::http::Method;
use contexture_core::percent::decoded_lossy;

/// Where a route may begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Start {
    /// After any path: whoever calls a model, with a body, means a provider. Its base address may be anything.
    Anywhere,
    /// After a version and what providers usually write before it.
    Base,
}

use Start::{Anywhere, Base};

/// A route: its method, where it may begin, and its parts, of which `*` is any one and `**` are any number.
type RouteRow = (Method, Start, &'static str);

/// The routes that are forwarded.
const ROUTES: &[RouteRow] = &[
    (Method::POST, Anywhere, "messages"),
    (Method::POST, Anywhere, "messages/count_tokens"),
    (Method::POST, Anywhere, "chat/completions"),
    (Method::POST, Anywhere, "completions"),
    (Method::POST, Anywhere, "responses"),
    (Method::POST, Anywhere, "responses/compact"),
    (Method::POST, Anywhere, "responses/input_tokens"),
    (Method::POST, Anywhere, "embeddings"),
    (Method::POST, Anywhere, "models/*:generateContent"),
    (Method::POST, Anywhere, "models/*:streamGenerateContent"),
    (Method::POST, Anywhere, "models/*:countTokens"),
    (Method::POST, Anywhere, "models/*:embedContent"),
    (Method::POST, Anywhere, "models/*:batchEmbedContents"),
    (Method::POST, Anywhere, "models/*:predict"),
    (Method::POST, Anywhere, "models/*:rawPredict"),
    (Method::POST, Anywhere, "models/*:streamRawPredict"),
    (Method::POST, Anywhere, "model/*/invoke"),
    (Method::POST, Anywhere, "model/*/invoke-with-response-stream"),
    (Method::POST, Anywhere, "model/*/converse"),
    (Method::POST, Anywhere, "model/*/count-tokens"),
    (Method::POST, Anywhere, "model/*/converse-stream"),
    (Method::POST, Anywhere, "cachedContents"),
    // Vertex AI: models that were tuned, and contents that are kept.
    (Method::POST, Base, "projects/*/locations/*/endpoints/*:generateContent"),
    (Method::POST, Base, "projects/*/locations/*/endpoints/*:streamGenerateContent"),
    (Method::POST, Base, "projects/*/locations/*/endpoints/*:countTokens"),
    (Method::GET, Base, "projects/*/locations/*/cachedContents"),
    (Method::GET, Base, "projects/*/locations/*/cachedContents/*"),
    (Method::PATCH, Base, "projects/*/locations/*/cachedContents/*"),
    (Method::DELETE, Base, "projects/*/locations/*/cachedContents/*"),
    // Code Assist, which Gemini CLI uses with a Google login.
    (Method::POST, Base, "v1internal:generateContent"),
    (Method::POST, Base, "v1internal:streamGenerateContent"),
    (Method::POST, Base, "v1internal:countTokens"),
    (Method::POST, Base, "v1internal:loadCodeAssist"),
    (Method::POST, Base, "v1internal:onboardUser"),
    (Method::POST, Base, "v1internal:fetchAdminControls"),
    (Method::POST, Base, "v1internal:listExperiments"),
    (Method::POST, Base, "v1internal:retrieveUserQuota"),
    (Method::POST, Base, "v1internal:recordCodeAssistMetrics"),
    (Method::POST, Base, "v1internal:setCodeAssistGlobalUserSetting"),
    (Method::GET, Base, "v1internal:getCodeAssistGlobalUserSetting"),
    (Method::GET, Base, "v1internal/operations/*"),
    (Method::GET, Base, "models"),
    // Names of models may have several parts.
    (Method::GET, Base, "models/**"),
    (Method::POST, Base, "complete"),
    (Method::POST, Base, "messages/batches"),
    (Method::GET, Base, "messages/batches"),
    (Method::GET, Base, "messages/batches/*"),
    (Method::DELETE, Base, "messages/batches/*"),
    (Method::GET, Base, "messages/batches/*/results"),
    (Method::POST, Base, "messages/batches/*/cancel"),
    (Method::GET, Base, "responses/*"),
    (Method::DELETE, Base, "responses/*"),
    (Method::GET, Base, "responses/*/input_items"),
    (Method::POST, Base, "responses/*/cancel"),
    (Method::GET, Base, "chat/completions"),
    (Method::GET, Base, "chat/completions/*"),
    (Method::POST, Base, "chat/completions/*"),
    (Method::DELETE, Base, "chat/completions/*"),
    (Method::GET, Base, "chat/completions/*/messages"),
    (Method::POST, Base, "moderations"),
    (Method::POST, Base, "images/generations"),
    (Method::POST, Base, "images/edits"),
    (Method::POST, Base, "images/variations"),
    (Method::POST, Base, "audio/speech"),
    (Method::POST, Base, "audio/transcriptions"),
    (Method::POST, Base, "audio/translations"),
    (Method::POST, Base, "files"),
    (Method::GET, Base, "files"),
    (Method::GET, Base, "files/*"),
    (Method::DELETE, Base, "files/*"),
    (Method::GET, Base, "files/*/content"),
    (Method::POST, Base, "batches"),
    (Method::GET, Base, "batches"),
    (Method::GET, Base, "batches/*"),
    (Method::POST, Base, "batches/*/cancel"),
    (Method::GET, Base, "cachedContents"),
    (Method::GET, Base, "cachedContents/*"),
    (Method::PATCH, Base, "cachedContents/*"),
    (Method::DELETE, Base, "cachedContents/*"),
];

/// What providers write before a version, or in place of one.
const BASES: &[&str] = &["api", "anthropic", "openai", "compatible-mode", "paas", "coding", "inference", "codex"];

/// The longest path that is forwarded.
const MOST_PARTS: usize = 24;

/// Whether a request to a path, without the gateway's own parts, is one that a provider knows.
pub(crate) fn is_known(method: &Method, path: &str) -> bool {
    let parts: Vec<&str> = path.strip_prefix('/').unwrap_or(path).trim_end_matches('/').split('/').collect();
    if parts.len() > MOST_PARTS || !parts.iter().all(|part| is_plain(part)) {
        return false;
    }
    ROUTES.iter().any(|(row_method, start, pattern)| {
        let pattern: Vec<&str> = pattern.split('/').collect();
        row_method == method
            && (0..parts.len()).any(|at| starts(*start, &parts[..at]) && matches(&pattern, &parts[at..]))
    })
}

/// Whether a provider takes money for a request to a known route, sent with `POST`.
pub(crate) fn is_paid(path: &str) -> bool {
    let path = path.trim_end_matches('/');
    let is_free = [
        "/count_tokens",
        "/input_tokens",
        "/count-tokens",
        "/count-tokens:rawPredict",
        ":countTokens",
        "/cancel",
        "/files",
        "/moderations",
    ];
    if let Some((_, method)) = path.rsplit_once("/v1internal:") {
        return method.ends_with("enerateContent");
    }
    // What follows them is the name of something that the provider keeps.
    !is_free.iter().any(|end| path.ends_with(end)) && !path.contains("/chat/completions/")
}

/// Whether a client only looks whether anybody is there, as some do before their first request.
pub(crate) fn is_greeting(method: &Method, path: &str) -> bool {
    // Claude Code asks for a page of its own.
    let path = path.trim_end_matches('/').trim_end_matches("/api/hello");
    *method == Method::HEAD && ["", "/anthropic", "/openai", "/v1", "/anthropic/v1", "/openai/v1"].contains(&path)
}

/// Whether a part of a path means what it says: nothing that leads elsewhere once it is decoded.
fn is_plain(part: &str) -> bool {
    let decoded = decoded_lossy(part);
    let is_control = |sign: char| sign.is_control() || sign == '\\' || sign == '?' || sign == '#';
    !decoded.is_empty() && decoded != "." && !decoded.contains("..") && !decoded.contains(is_control)
}

fn starts(start: Start, parts: &[&str]) -> bool {
    start == Anywhere || parts.iter().all(|part| BASES.contains(part) || is_version(part))
}

/// Whether a part is a version, as in `v1`, `v4` and `v1beta`.
fn is_version(part: &str) -> bool {
    let number = part.strip_prefix('v').unwrap_or_default();
    let rest = number.trim_start_matches(|sign: char| sign.is_ascii_digit());
    number.len() > rest.len() && ["", "alpha", "beta", "beta1", "beta2"].contains(&rest)
}

fn matches(pattern: &[&str], parts: &[&str]) -> bool {
    match (pattern, parts) {
        ([], []) => true,
        (["**"], [_, ..]) => true,
        ([first, pattern @ ..], [part, parts @ ..]) => is_part(first, part) && matches(pattern, parts),
        _ => false,
    }
}

fn is_part(pattern: &str, part: &str) -> bool {
    match pattern.strip_prefix('*') {
        Some(end) => part.len() > end.len() && part.ends_with(end),
        None => pattern == part,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(expected: bool, requests: &[(Method, &str)]) {
        for (method, path) in requests {
            assert_eq!(is_known(method, path), expected, "{method} {path}");
        }
    }

    #[test]
    fn routes_of_providers_are_known() {
        check(
            true,
            &[
                (Method::POST, "/v1/messages"),
                (Method::POST, "/v1/messages/"),
                (Method::POST, "/v1/messages/count_tokens"),
                (Method::POST, "/chat/completions"),
                (Method::POST, "/api/v1/chat/completions"),
                (Method::POST, "/openai/deployments/my-model/chat/completions"),
                (Method::POST, "/api/coding/paas/v4/chat/completions"),
                (Method::POST, "/responses"),
                (Method::POST, "/v1/responses/compact"),
                (Method::GET, "/models"),
                (Method::GET, "/v1/models/gpt-5"),
                (Method::GET, "/api/v1/models/author/name"),
                (Method::POST, "/v1/embeddings"),
                (Method::POST, "/v1/completions"),
                (Method::POST, "/v1beta/models/gemini:streamGenerateContent"),
                (Method::POST, "/v1beta1/projects/p/locations/l/publishers/google/models/gemini:countTokens"),
                (Method::POST, "/v1beta/cachedContents"),
                (Method::POST, "/v1/projects/p/locations/l/endpoints/12:streamGenerateContent"),
                (Method::POST, "/v1beta1/projects/p/locations/l/cachedContents"),
                (Method::DELETE, "/v1beta1/projects/p/locations/l/cachedContents/34"),
                (Method::POST, "/v1internal:streamGenerateContent"),
                (Method::GET, "/v1internal/operations/1"),
                (Method::DELETE, "/v1beta/cachedContents/abc"),
                (Method::POST, "/v1/projects/p/locations/l/publishers/anthropic/models/claude@1:rawPredict"),
                (Method::POST, "/model/anthropic.claude%3A0/converse-stream"),
                (Method::GET, "/v1/responses/resp_1/input_items"),
            ],
        );
    }

    #[test]
    fn everything_else_is_not() {
        check(
            false,
            &[
                (Method::GET, "/"),
                (Method::POST, "/"),
                (Method::POST, "/v1/mesages"),
                (Method::POST, "/v1/messages/count"),
                (Method::GET, "/v1/messages"),
                (Method::PUT, "/v1/messages"),
                (Method::OPTIONS, "/v1/messages"),
                (Method::GET, "/inspect/"),
                (Method::GET, "/inspect/app.js"),
                (Method::GET, "/api/v1/about"),
                (Method::GET, "/api/v1/conversations"),
                (Method::GET, "/api/v1/conversations/r1/requests/3/window"),
                (Method::DELETE, "/api/v1/conversations/r1"),
                (Method::GET, "/inspect/models"),
                (Method::GET, "/contexture/status"),
                (Method::GET, "/metrics"),
                (Method::GET, "/v1/organizations"),
                (Method::GET, "/v1/organization/admin_api_keys"),
                (Method::POST, "/v1/models/gpt-5"),
                (Method::DELETE, "/v1/projects/p/locations/l/endpoints/12"),
                (Method::POST, "/v1/projects/p/locations/l/endpoints/12:predictAll"),
                (Method::POST, "/v1internal:deleteAll"),
                (Method::GET, "/v1internal:loadCodeAssist"),
                (Method::POST, "/x/../v1/messages"),
                (Method::POST, "/x/%2e%2e/v1/messages"),
                (Method::POST, "/x/%2E./v1/messages"),
                (Method::POST, "//evil.example/v1/messages"),
                (Method::POST, "/x\\y/v1/messages"),
                (Method::GET, "/v1/models/..%2f..%2fadmin"),
            ],
        );
        check(false, &[(Method::POST, &"/x".repeat(40)), (Method::POST, &format!("{}/messages", "/x".repeat(40)))]);
    }

    #[test]
    fn counting_costs_nothing() {
        for path in ["/v1/messages", "/responses", "/v1/embeddings", "/model/x/invoke", "/models/g:generateContent"] {
            assert!(is_paid(path), "{path}");
        }
        assert!(is_paid("/v1internal:streamGenerateContent") && !is_paid("/v1internal:loadCodeAssist"));
        for path in ["/v1/messages/count_tokens", "/responses/input_tokens", "/models/g:countTokens", "/v1/files/"] {
            assert!(!is_paid(path), "{path}");
        }
    }

    #[test]
    fn a_client_may_look_whether_anybody_is_there() {
        assert!(is_greeting(&Method::HEAD, "/") && is_greeting(&Method::HEAD, "/anthropic"));
        assert!(is_greeting(&Method::HEAD, "/anthropic/api/hello"));
        assert!(!is_greeting(&Method::GET, "/") && !is_greeting(&Method::HEAD, "/elsewhere"));
    }
}
