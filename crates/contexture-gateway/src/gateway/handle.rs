//! Handles an incoming request.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{Request as Incoming, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Response, StatusCode, Uri, header};
use bytes::Bytes;
use tokio::sync::SemaphorePermit;

use super::{capped, own};
use crate::accept::access::Caller;
use crate::accept::coding::Coding;
use crate::accept::collect::{MOST_BYTES, collected, discard};
use crate::accept::incoming::{IncomingRequest, RequestScope};
use crate::accept::refusal::{ErrorForm, refusal};
use crate::accept::{guard, headers, health, routes};
use crate::account::record::{RequestRecord, ToolsNote};
use crate::conversation::health::StopReason;
use crate::decide::prepared::PreparedRequest;
use crate::decide::progress::Progress;
use crate::decide::reason::PassReason;
use crate::lean::LeanRequest;
use crate::models::said;
use crate::provider::upstream::{Route, rest_of};
use crate::send::exchange::{Bodies, Exchange, ProviderTarget, Timing, ToFollow, unreachable_upstream};
use crate::shared::SharedState;
use crate::watch::{RequestWatch, WatchedBodies};

/// The part of the gateway's time for deciding; the rest is for applying the earlier decisions instead.
const DECIDING: f64 = 0.8;

/// How long a request waits for a decision that is far above its budget.
const BOUND_WAIT: Duration = Duration::from_millis(500);

/// Bodies that are larger are looked at one by one.
const LARGE_BYTES: usize = 8 << 20;

/// What is said to those who have no key.
const NO_KEY: &str = "this gateway asks for its key, as the first part of the path or in the header `x-contexture-key`";

/// Serves a request.
pub(crate) async fn handle(State(shared): State<Arc<SharedState>>, incoming: Incoming) -> Response<Body> {
    let (parts, body) = incoming.into_parts();
    let AdmittedRequest { name, path, route } = match known(&shared, &parts).await {
        Ok(known) => known,
        Err(response) => {
            discard(body).await;
            return response;
        }
    };
    let form = ErrorForm::of(parts.uri.path(), &parts.headers);
    let is_paid = parts.method == Method::POST && !route.is_count && routes::is_paid(rest_of(&path));
    let body = match is_paid {
        true => {
            match capped::by_day(&shared, route.format.map_or(form, |format| Some(format).into()), &parts.headers, body)
                .await
            {
                Ok(body) => body,
                Err(refused) => return refused,
            }
        }
        false => body,
    };
    let mut headers = parts.headers;
    shared.access.strip(&mut headers);
    // With one key there is nobody to tell apart, and what was kept before there were keys is found again.
    let owner = if shared.access.keys().len() > 1 { name } else { String::new() };
    match route.format {
        Some(_) if parts.method == Method::POST => {
            let scope = RequestScope { owner, session: headers::session_of(&headers) };
            model(shared.clone(), headers, body, route, scope).await
        }
        _ => other(&shared, parts.method, headers, body, &route, &path).await,
    }
}

/// A request that a provider knows, of somebody who has a key.
struct AdmittedRequest {
    /// The name of the key.
    name: String,
    /// The path without the gateway's own parts.
    path: String,
    route: Route,
}

/// Judges a request by its head; the error is the response to one that is not forwarded.
async fn known(shared: &Arc<SharedState>, parts: &Parts) -> Result<AdmittedRequest, Response<Body>> {
    let form = ErrorForm::of(parts.uri.path(), &parts.headers);
    if shared.options.is_supervised
        && health::is_asked(&parts.method, parts.uri.path())
        && is_local(shared, &parts.headers, &parts.uri)
    {
        return Err(shared.readiness.respond(shared.store.as_ref(), parts.uri.path()).await);
    }
    // Before anything else: who has no key learns nothing else, and nothing else is done for him.
    let Some(caller) = shared.access.caller(parts.uri.path(), &parts.headers) else {
        shared.refused.fetch_add(1, Ordering::Relaxed);
        return Err(refusal(form, StatusCode::UNAUTHORIZED, NO_KEY));
    };
    if !is_local(shared, &parts.headers, &parts.uri) {
        let why = "requests for another host or from another origin are refused";
        return Err(refusal(form, StatusCode::FORBIDDEN, why));
    }
    let (name, path) = match caller {
        Caller::Key { name, path } if !own::is_own(path) => (name, path),
        Caller::Key { .. } => {
            return Err(refusal(form, StatusCode::UNAUTHORIZED, "this route asks for the gateway's token"));
        }
        Caller::Owner => return Err(own::respond(shared, &parts.method, parts.uri.path())),
    };
    if shared.access.would_tell(&parts.headers, parts.uri.query()) {
        let why = "a token or key of this gateway is where the provider would see it, so nothing was forwarded";
        return Err(refusal(form, StatusCode::BAD_REQUEST, why));
    }
    if routes::is_greeting(&parts.method, path) {
        return Err(Response::new(Body::empty()));
    }
    let upstreams = match headers::has_account(&parts.headers) {
        true => &shared.options.upstreams.for_account(),
        false => &shared.options.upstreams,
    };
    let looks = headers::looks(&parts.headers, parts.uri.query());
    let route = upstreams.route(path, parts.uri.query(), looks);
    if asks_for_web_socket(&parts.headers) {
        return Err(refusal(route.format, StatusCode::UPGRADE_REQUIRED, "only plain requests are passed on"));
    }
    if !routes::is_known(&parts.method, rest_of(path)) {
        let noted = "it was refused: its path is no known route of a provider";
        note_other(shared, StatusCode::NOT_FOUND, noted, Instant::now());
        let why = "this is no known route of a provider, so nothing was forwarded; is the base address right?";
        return Err(refusal(form, StatusCode::NOT_FOUND, why));
    }
    Ok(AdmittedRequest { name: name.to_owned(), path: path.to_owned(), route })
}

fn is_local(shared: &SharedState, headers: &HeaderMap, uri: &Uri) -> bool {
    guard::is_local(headers, uri, shared.address.ip())
}

/// Whether the client wants a WebSocket. Other upgrades are offers that need not be taken.
fn asks_for_web_socket(headers: &HeaderMap) -> bool {
    let values = headers.get_all(header::UPGRADE).iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|name| name.trim().eq_ignore_ascii_case("websocket"))
}

/// Forwards a request that does not call a model in a format that is read.
async fn other(
    shared: &Arc<SharedState>,
    method: Method,
    headers: HeaderMap,
    body: Body,
    route: &Route,
    path: &str,
) -> Response<Body> {
    let (began, why) = (Instant::now(), why_passed(&method, path));
    let has_body = headers.contains_key(header::CONTENT_LENGTH) || headers.contains_key(header::TRANSFER_ENCODING);
    let is_list = method == Method::GET && rest_of(path).contains("/models");
    let mut headers_sent = plain_headers(&headers);
    if is_list {
        // It is read for the windows of models.
        headers_sent.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    }
    let body = has_body.then_some(body);
    let response = match shared.client.pass(method, &route.url, headers_sent, body).await {
        Ok(answer) if is_list => listed(shared, answer).await,
        Ok(answer) => passed_on(answer),
        Err(error) => unreachable_upstream(route, error),
    };
    note_other(shared, response.status(), why, began);
    response
}

/// Records a request that calls no model in a format that is read.
fn note_other(shared: &Arc<SharedState>, status: StatusCode, why: &str, began: Instant) {
    let record = RequestRecord {
        session: shared.session.id().to_owned(),
        time_ms: capped::began_ms(shared, began),
        status: status.as_u16(),
        passed: Some(why.to_owned()),
        first_byte_ms: began.elapsed().as_millis() as u64,
        whole_ms: began.elapsed().as_millis() as u64,
        ..RequestRecord::default()
    };
    capped::note(shared, record);
}

/// Why a request is passed on without being read. The path itself may name what nobody else should see.
fn why_passed(method: &Method, path: &str) -> &'static str {
    let ends = |names: &[&str]| names.iter().any(|name| path.ends_with(name));
    match () {
        () if *method != Method::POST => "it calls no model",
        () if rest_of(path).starts_with("/v1internal:") => "it calls no model",
        () if ends(&[":rawPredict", ":streamRawPredict"]) => {
            "Vertex's formats of other models than Anthropic's are not read, nor what they took"
        }
        () if ends(&["/invoke", "/invoke-with-response-stream"]) => {
            "Bedrock's formats of other models than Anthropic's are not read, nor what they took"
        }
        () if ends(&["/converse", "/converse-stream"]) => {
            "Bedrock's own format (Converse) is not read, nor what it took"
        }
        () => "its path is none of a format that is read",
    }
}

/// Headers as received, except those that concern one connection.
fn plain_headers(headers: &HeaderMap) -> HeaderMap {
    let mut passed = headers::without_hop_headers(headers);
    passed.remove(header::HOST);
    passed
}

/// Forwards a list of models, and notes what it says about their windows.
async fn listed(shared: &SharedState, answer: reqwest::Response) -> Response<Body> {
    let (status, headers, extensions) =
        (answer.status(), headers::without_hop_headers(answer.headers()), answer.extensions().clone());
    let Ok(body) = answer.bytes().await else {
        return refusal(None, StatusCode::BAD_GATEWAY, "the provider broke off");
    };
    if let Ok(list) = serde_json::from_slice(&body) {
        for (name, window) in said::windows_in_list(&list) {
            shared.options.models.note_window(&name, window);
        }
    }
    let mut response = Response::new(Body::from(body));
    (*response.status_mut(), *response.headers_mut(), *response.extensions_mut()) = (status, headers, extensions);
    response
}

fn passed_on(answer: reqwest::Response) -> Response<Body> {
    let (status, headers, extensions) =
        (answer.status(), headers::without_hop_headers(answer.headers()), answer.extensions().clone());
    let mut response = Response::new(Body::from_stream(answer.bytes_stream()));
    (*response.status_mut(), *response.headers_mut(), *response.extensions_mut()) = (status, headers, extensions);
    response
}

/// Handles a request that calls a model.
async fn model(
    shared: Arc<SharedState>,
    headers: HeaderMap,
    body: Body,
    route: Route,
    scope: RequestScope,
) -> Response<Body> {
    let began = Instant::now();
    let Some(came) = collected(&headers, body, MOST_BYTES).await else {
        return refusal(route.format, StatusCode::PAYLOAD_TOO_LARGE, "the request is too large, or broke off");
    };
    let mut received = Instant::now();
    let coding = Coding::of(&headers);
    let text = coding.text(&came, shared.options.read_bytes).await;
    let unread = text.as_ref().err().copied();
    let is_signed = headers::is_signed(&headers);
    let incoming = incoming(&headers, text.unwrap_or_else(|_| came.clone()), &route, scope);
    let turn = turn(&shared, &incoming).await;
    if turn.is_some() {
        received = Instant::now();
    }
    let (incoming, tools) = match unread {
        None if !is_signed => lean(&shared, incoming).await,
        _ => (incoming, None),
    };
    let prepared = match unread {
        None if is_signed => shared.decider.unread(&incoming, PassReason::Signed),
        Some(why) => shared.decider.unread(&incoming, PassReason::Unread(why)),
        None => decided(&shared, &incoming, received).await,
    };
    let prepared = prepared.with_tools(tools);
    drop(turn);
    let asked = Instant::now();
    let admission = match capped::admitted(&shared, route.format.into(), &incoming, &prepared).await {
        Ok(admission) => admission,
        Err(refused) => return refused,
    };
    // Waiting is no work.
    received += asked.elapsed();
    let bodies = Bodies::new(came, incoming.body.clone(), &prepared, coding).await;
    let timing = Timing { began, own: received.elapsed() };
    let target = ProviderTarget { route, headers: headers::forwarded(&headers), coding };
    let record = prepared.record(shared.session.id(), shared.decider.now_ms());
    let record = RequestRecord { format: Some(incoming.format), is_count: incoming.is_count, ..record };
    let begun = shared.session.begin(record.clone(), prepared.kept_version());
    let watched = watched(&shared, &incoming, &prepared, record);
    let passing = shared.decider.passing(&incoming, &prepared);
    let following = following(&shared, incoming, &prepared);
    let exchange = Exchange::new(shared, target, prepared, bodies, timing, (watched, begun, following));
    exchange.remembering(passing).admitted(admission).send().await
}

/// Waits until a large body may be looked at: what is made of it takes several times its size, so that is done for one
/// after the other. `None` if it is not large.
async fn turn<'s>(shared: &'s SharedState, incoming: &IncomingRequest) -> Option<SemaphorePermit<'s>> {
    // Nobody closes it, and without a turn it would only take more memory.
    if incoming.body.len() > LARGE_BYTES { shared.large.acquire().await.ok() } else { None }
}

/// A request without the tools that nobody calls, and what is noted of its tools. While a user has paused the gateway it
/// stays as it is.
async fn lean(shared: &Arc<SharedState>, incoming: IncomingRequest) -> (IncomingRequest, Option<ToolsNote>) {
    if shared.leaner.is_none() || shared.decider.is_paused() {
        return (incoming, None);
    }
    let (making, asked) = (shared.clone(), incoming.clone());
    let made = tokio::task::spawn_blocking(move || making.leaner.as_ref()?.lean(&asked, making.decider.now_ms()));
    // If that panicked, nothing leaves.
    let Some(LeanRequest { body, note }) = made.await.ok().flatten() else { return (incoming, None) };
    let body = body.unwrap_or_else(|| incoming.body.clone());
    (IncomingRequest { body, ..incoming }, Some(note))
}

/// What counts the signals of harm in what is new of a conversation. Nothing waits for it but the record of the request.
fn following(shared: &Arc<SharedState>, incoming: IncomingRequest, prepared: &PreparedRequest) -> Option<ToFollow> {
    // The prompt for a summary is nothing that a user says.
    let is_followed = !incoming.is_count && !prepared.outgoing().why().is_some_and(PassReason::is_summing_up);
    let conversation = prepared.conversation().filter(|_| is_followed)?.clone();
    let shared = shared.clone();
    Some(Box::new(move || {
        tokio::spawn(async move {
            let _turn = turn(&shared, &incoming).await;
            let deciding = shared.clone();
            // What goes wrong in it is not counted.
            let _ = tokio::task::spawn_blocking(move || deciding.decider.follow(&incoming, &conversation)).await;
        })
    }))
}

/// Tells watchers of a request that is about to be sent.
fn watched(
    shared: &SharedState,
    incoming: &IncomingRequest,
    prepared: &PreparedRequest,
    record: RequestRecord,
) -> Option<RequestWatch> {
    let bodies = WatchedBodies { came: incoming.body.clone(), sent: prepared.body().cloned() };
    let parent = prepared.conversation().and_then(|conversation| conversation.beginning().parent.clone());
    RequestWatch::begin(&shared.options.watchers, &shared.access, (incoming.format, parent), record, bodies)
}

fn incoming(headers: &HeaderMap, body: Bytes, route: &Route, scope: RequestScope) -> IncomingRequest {
    IncomingRequest {
        body,
        format: route.format.expect("only requests with a format are decided about"),
        model: route.model.clone(),
        scope,
        is_count: route.is_count,
        is_compaction: headers::is_compaction(headers),
        is_sub_agent: headers::is_sub_agent(headers),
        asks: headers::asks(headers),
    }
}

/// Returns what is sent: with new decisions if they are made in time, otherwise with the earlier ones.
async fn decided(shared: &Arc<SharedState>, incoming: &IncomingRequest, received: Instant) -> PreparedRequest {
    let own_work = shared.options.working_time();
    let progress = Arc::new(Progress::new(received + own_work));
    let mut deciding = tokio::task::spawn_blocking({
        let (shared, progress, incoming) = (shared.clone(), progress.clone(), incoming.clone());
        move || {
            let prepared = shared.decider.decide(&incoming, &progress);
            shared.decider.settle();
            prepared
        }
    });
    let until = tokio::time::Instant::from_std(received + own_work.mul_f64(DECIDING));
    let in_time = match tokio::time::timeout_at(until, &mut deciding).await {
        Ok(decided) => Some(decided),
        Err(_) => late(shared, &progress, &mut deciding, received + BOUND_WAIT).await,
    };
    let why = match in_time {
        Some(Ok(prepared)) => return prepared,
        Some(Err(_)) => {
            if let Some(found) = progress.found() {
                found.conversation.state().health_mut().stop(StopReason::WentWrong);
            }
            PassReason::WentWrong
        }
        None => PassReason::TooLong,
    };
    let settling = tokio::task::spawn_blocking({
        let (shared, incoming, found) = (shared.clone(), incoming.clone(), progress.found());
        let is_far_above = progress.is_far_above();
        move || shared.decider.fallback(&incoming, found, why, is_far_above)
    });
    let prepared = settling.await.unwrap_or_else(|_| shared.decider.unread(incoming, PassReason::WentWrong));
    prepared.sent_during(progress)
}

type Deciding = tokio::task::JoinHandle<PreparedRequest>;

/// What becomes of a decision that takes too long. `None` if it is not waited for.
async fn late(
    shared: &SharedState,
    progress: &Progress,
    deciding: &mut Deciding,
    bound: Instant,
) -> Option<Result<PreparedRequest, tokio::task::JoinError>> {
    // Parsing waits for nothing and nobody. After it is known whether the provider may refuse the request as it came.
    let may_be_refused = tokio::select! {
        decided = &mut *deciding => return Some(decided),
        may_be_refused = progress.parsed() => may_be_refused,
    };
    let is_shared = shared.decider.patience().is_some();
    if may_be_refused || is_shared {
        // What other gateways have sent is known from a shared store only, however slow that is.
        tokio::select! {
            decided = &mut *deciding => return Some(decided),
            () = progress.settled() => {}
        }
    } else {
        // What was decided before can be sent once the conversation is found. Without it the request would be sent as it
        // came, and be billed whole.
        tokio::select! {
            decided = &mut *deciding => return Some(decided),
            () = progress.settled() => {}
            () = tokio::time::sleep(shared.options.own_work) => {}
        }
    }
    if is_shared
        && !progress.is_needed()
        && let Ok(decided) = tokio::time::timeout(shared.options.own_work, &mut *deciding).await
    {
        return Some(decided);
    }
    // Far above the budget the alternative is a fold without views.
    if progress.is_far_above()
        && !progress.is_needed()
        && let Ok(decided) = tokio::time::timeout_at(bound.into(), &mut *deciding).await
    {
        return Some(decided);
    }
    // Above the provider's limit the alternative is a certain refusal.
    let is_waited_for = progress.is_needed() || !progress.end();
    if is_waited_for { Some(deciding.await) } else { None }
}
