//! Handles an incoming request.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::extract::{Request as Incoming, State};
use axum::http::{HeaderMap, Method, Response, StatusCode, header};
use bytes::Bytes;

use crate::accept::access::Caller;
use crate::accept::coding::Coding;
use crate::accept::incoming::{IncomingRequest, Progress, Ready};
use crate::accept::refusal::{ErrorForm, refusal};
use crate::accept::{guard, headers, own, routes};
use crate::account::record::RequestRecord;
use crate::find::index::{FoundConversation, RequestScope};
use crate::send::exchange::{Exchange, unreachable_upstream};
use crate::send::upstream::{Route, rest_of};
use crate::shared::Shared;
use crate::watching::Watched;

/// How much longer to wait for the conversation of a request after the time for deciding is over.
const FINDING: Duration = Duration::from_millis(500);

/// Largest body that is accepted.
const MOST_BYTES: usize = 512 << 20;

/// What is said to those who have no key.
const NO_KEY: &str = "this gateway asks for its key, as the first part of the path or in the header `x-contexture-key`";

/// Serves a request.
pub(crate) async fn handle(State(shared): State<Arc<Shared>>, incoming: Incoming) -> Response<Body> {
    let (parts, body) = incoming.into_parts();
    let form = ErrorForm::of(parts.uri.path(), &parts.headers);
    // Before anything else: who has no key learns nothing, and nothing is done for him.
    let Some(caller) = shared.access.caller(parts.uri.path(), &parts.headers) else {
        shared.refused.fetch_add(1, Ordering::Relaxed);
        return refusal(form, StatusCode::UNAUTHORIZED, NO_KEY);
    };
    if !guard::is_local(&parts.headers, &parts.uri, shared.address.ip()) {
        return refusal(form, StatusCode::FORBIDDEN, "requests for another host or from another origin are refused");
    }
    let (name, path) = match caller {
        Caller::Key { name, path } if !own::is_own(path) => (name, path),
        Caller::Key { .. } => {
            return refusal(form, StatusCode::UNAUTHORIZED, "this route asks for the gateway's token");
        }
        Caller::Owner => return own::respond(&shared, parts.uri.path()),
    };
    if shared.access.would_tell(&parts.headers, parts.uri.query()) {
        let why = "a token or key of this gateway is where the provider would see it, so nothing was forwarded";
        return refusal(form, StatusCode::BAD_REQUEST, why);
    }
    if routes::is_greeting(&parts.method, path) {
        return Response::new(Body::empty());
    }
    let upstreams = match headers::has_account(&parts.headers) {
        true => &shared.options.upstreams.for_account(),
        false => &shared.options.upstreams,
    };
    let route = upstreams.route(path, parts.uri.query(), headers::is_anthropic(&parts.headers));
    if asks_for_web_socket(&parts.headers) {
        return refusal(route.format, StatusCode::UPGRADE_REQUIRED, "only plain requests are passed on");
    }
    if !routes::is_known(&parts.method, rest_of(path)) {
        note_other(
            &shared,
            StatusCode::NOT_FOUND,
            "it was refused: its path is no known route of a provider",
            Instant::now(),
        );
        let why = "this is no known route of a provider, so nothing was forwarded; is the base address right?";
        return refusal(form, StatusCode::NOT_FOUND, why);
    }
    let mut headers = parts.headers;
    shared.access.strip(&mut headers);
    // With one key there is nobody to tell apart, and what was kept before there were keys is found again.
    let owner = if shared.access.keys().len() > 1 { name } else { "" };
    match route.format {
        Some(_) if parts.method == Method::POST => {
            let scope = RequestScope { owner: owner.to_owned(), session: headers::session_of(&headers) };
            model(shared.clone(), headers, body, route, scope).await
        }
        _ => other(&shared, parts.method, headers, body, &route, path).await,
    }
}

/// Whether the client wants a WebSocket. Other upgrades are offers that need not be taken.
fn asks_for_web_socket(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::UPGRADE).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|name| name.trim().eq_ignore_ascii_case("websocket"))
}

/// Forwards a request that does not call a model in a format that is read.
async fn other(
    shared: &Arc<Shared>,
    method: Method,
    headers: HeaderMap,
    body: Body,
    route: &Route,
    path: &str,
) -> Response<Body> {
    let (began, why) = (Instant::now(), why_passed(&method, path));
    let has_body = headers.contains_key(header::CONTENT_LENGTH) || headers.contains_key(header::TRANSFER_ENCODING);
    let mut request = shared.client.request(method, &route.url).headers(plain_headers(&headers));
    if has_body {
        request = request.body(reqwest::Body::wrap_stream(body.into_data_stream()));
    }
    let response = match request.send().await {
        Ok(answer) => passed_on(answer),
        Err(error) => unreachable_upstream(route, &error),
    };
    note_other(shared, response.status(), why, began);
    response
}

/// Records a request that calls no model in a format that is read.
fn note_other(shared: &Arc<Shared>, status: StatusCode, why: &str, began: Instant) {
    let record = RequestRecord {
        session: shared.session.id().to_owned(),
        time_ms: shared.decider.now_ms().saturating_sub(began.elapsed().as_millis() as u64),
        status: status.as_u16(),
        passed: Some(why.to_owned()),
        first_byte_ms: began.elapsed().as_millis() as u64,
        whole_ms: began.elapsed().as_millis() as u64,
        ..RequestRecord::default()
    };
    shared.session.expect();
    let shared = shared.clone();
    // Writing waits for the disk, so it runs in the background.
    tokio::task::spawn_blocking(move || shared.session.note(record));
}

/// Why a request is passed on without being read. The path itself may name what nobody else should see.
fn why_passed(method: &Method, path: &str) -> &'static str {
    let ends = |names: &[&str]| names.iter().any(|name| path.ends_with(name));
    match () {
        () if *method != Method::POST => "it calls no model",
        () if ends(&[":generateContent", ":streamGenerateContent"]) => "Gemini's format is not read, nor what it took",
        () if ends(&[":rawPredict", ":streamRawPredict"]) => "Vertex's format is not read, nor what it took",
        () if ends(&["/invoke", "/invoke-with-response-stream", "/converse", "/converse-stream"]) => {
            "Bedrock's format is not read, nor what it took"
        }
        () => "its path is none of a format that is read",
    }
}

/// Headers as received, except those that concern one connection.
fn plain_headers(headers: &HeaderMap) -> HeaderMap {
    let mut passed = headers::kept(headers);
    passed.remove(header::HOST);
    passed
}

fn passed_on(answer: reqwest::Response) -> Response<Body> {
    let (status, headers, extensions) = (answer.status(), headers::kept(answer.headers()), answer.extensions().clone());
    let mut response = Response::new(Body::from_stream(answer.bytes_stream()));
    (*response.status_mut(), *response.headers_mut(), *response.extensions_mut()) = (status, headers, extensions);
    response
}

/// Handles a request that calls a model.
async fn model(
    shared: Arc<Shared>,
    headers: HeaderMap,
    body: Body,
    route: Route,
    scope: RequestScope,
) -> Response<Body> {
    let began = Instant::now();
    let Ok(came) = to_bytes(body, MOST_BYTES).await else {
        return refusal(route.format, StatusCode::PAYLOAD_TOO_LARGE, "the request is too large, or broke off");
    };
    let received = Instant::now();
    let coding = Coding::of(&headers);
    let text = coding.text(&came, shared.options.read_bytes).await;
    let unread = text.as_ref().err().copied();
    let asked = asked(&headers, text.unwrap_or_else(|_| came.clone()), &route, scope);
    let ready = match unread {
        Some(why) => shared.decider.unread(&asked, why),
        None => decided(&shared, &asked).await,
    };
    let sent = match &ready.body {
        Some(body) => coding.packed(body.clone()).await,
        None => came.clone(),
    };
    let (own, headers) = (received.elapsed(), headers::forwarded(&headers));
    let watched = Watched::begin(&shared, &asked, &ready);
    Exchange { shared, route, headers, coding, ready, came, sent, text: asked.body, began, own, watched }.send().await
}

fn asked(headers: &HeaderMap, body: Bytes, route: &Route, scope: RequestScope) -> IncomingRequest {
    IncomingRequest {
        body,
        format: route.format.expect("only requests with a format are decided about"),
        scope,
        is_count: route.is_count,
        is_compaction: headers::is_compaction(headers),
        asks: headers::asks(headers),
    }
}

/// Returns what is sent: with new decisions if they are made in time, otherwise with the earlier ones.
async fn decided(shared: &Arc<Shared>, asked: &IncomingRequest) -> Ready {
    let progress = Arc::new(Progress::default());
    let mut deciding = tokio::task::spawn_blocking({
        let (shared, progress, asked) = (shared.clone(), progress.clone(), asked.clone());
        move || shared.decider.decide(&asked, &progress)
    });
    let why = match tokio::time::timeout(shared.options.own_work, &mut deciding).await {
        Ok(Ok(ready)) => return ready,
        Ok(Err(_)) => "something went wrong inside the gateway",
        Err(_) if !progress.end() => match deciding.await {
            Ok(ready) => return ready,
            Err(_) => "something went wrong inside the gateway",
        },
        Err(_) => "deciding took too long",
    };
    let found = found_by(&progress).await;
    if let Some(found) = found.as_ref().filter(|_| why.starts_with("something")) {
        found.conversation.state().stopped = Some(format!("nothing more is folded: {why}"));
    }
    let settling = tokio::task::spawn_blocking({
        let (shared, asked) = (shared.clone(), asked.clone());
        move || shared.decider.fallback(&asked, found, why)
    });
    settling.await.unwrap_or_else(|_| shared.decider.unread(asked, "something went wrong inside the gateway"))
}

/// Returns the conversation of a request if it is found soon. Without it, the earlier decisions would not be applied.
async fn found_by(progress: &Progress) -> Option<FoundConversation> {
    let until = Instant::now() + FINDING;
    loop {
        let found = progress.take_found();
        if found.is_some() || progress.is_passed() || Instant::now() > until {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}
