//! The server over HTTP: one request a POST, to those of this machine who have its token.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{Request as HttpRequest, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Response, StatusCode, header};
use contexture_gateway::accept::access::{AccessKey, bearer, is_same};
use contexture_gateway::accept::collect::{collected, discard};
use contexture_gateway::accept::guard;
use contexture_gateway::accept::serving::{HEADER_TIME, serve as serve_connections};
use futures_util::stream::unfold;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;

use super::Server;
use super::protocol::{
    ClientMessage, ClientRequest, Era, HANDSHAKE, HEADER_MISMATCH, INVALID_PARAMS, INVALID_REQUEST, NO_SUCH_METHOD,
    PARSE_ERROR, ProtocolError, STATELESS, UNSUPPORTED_VERSION, wants_progress,
};
use super::stdio::MAX_LINE_BYTES;
use crate::environment::variable;
use crate::failure::Failure;

/// The path that is served.
const PATH: &str = "/mcp";
/// How long the body of a request may take.
const BODY_TIME: Duration = Duration::from_secs(30);
/// The most requests at once.
const MAX_REQUESTS: usize = 64;
/// The headers that routers read; each must say what the body says.
const VERSION_HEADER: &str = "mcp-protocol-version";
const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";

/// What requests are judged by and answered from.
struct HttpDoor {
    server: Arc<Server>,
    address: SocketAddr,
    token: AccessKey,
    /// A permit for every request at once.
    requests: Semaphore,
}

/// Serves until the program is told to end.
pub(super) async fn serve(server: Arc<Server>, address: &str, token_env: Option<&str>) -> Result<(), Failure> {
    let token = token(token_env)?;
    let failed = |error: io::Error| {
        Failure::usage(format!("listen on `{address}`: {error}")).hint("such as `--listen 127.0.0.1:7719`")
    };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    if !address.ip().is_loopback() && token_env.is_none() {
        return Err(Failure::usage(format!("`{}` can be reached by other machines", address.ip()))
            .hint("name a variable with a token of your own, `--token-env VARIABLE`, or listen on 127.0.0.1"));
    }
    let mut told = format!("listening on http://{address}{PATH}\n");
    if token_env.is_none() {
        told.push_str(&format!("token: {}\n", token.secret()));
    }
    io::stdout().write_all(told.as_bytes())?;
    io::stdout().flush()?;
    if !address.ip().is_loopback() {
        eprintln!("warning: the token and everything else can be read on the way; put a server with TLS before it");
    }
    let door = Arc::new(HttpDoor { server, address, token, requests: Semaphore::new(MAX_REQUESTS) });
    let app = axum::Router::new().fallback(handle).with_state(door);
    let (_stop, stopped) = watch::channel(());
    Ok(serve_connections(listener, app, HEADER_TIME, stopped).await?)
}

/// The token that is asked for.
fn token(variable_name: Option<&str>) -> Result<AccessKey, Failure> {
    let Some(name) = variable_name else { return Ok(AccessKey::fresh("mcp")) };
    let secret = variable(name).ok_or_else(|| Failure::usage(format!("the variable `{name}` is not set")))?;
    AccessKey::new("mcp", secret.trim()).map_err(|error| Failure::usage(format!("the token in `{name}`: {error}")))
}

async fn handle(State(door): State<Arc<HttpDoor>>, request: HttpRequest) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let permit = match door.refused(&parts) {
        Some(response) => Err(response),
        None => {
            door.requests.try_acquire().map_err(|_| plain(StatusCode::SERVICE_UNAVAILABLE, "too many requests at once"))
        }
    };
    let _permit = match permit {
        Ok(permit) => permit,
        Err(response) => {
            discard(body).await;
            return response;
        }
    };
    match tokio::time::timeout(BODY_TIME, collected(&parts.headers, body, MAX_LINE_BYTES)).await {
        Ok(Some(bytes)) => door.answer(&parts.headers, &bytes).await,
        Ok(None) => plain(StatusCode::PAYLOAD_TOO_LARGE, "the body cannot be read, or is longer than 4 MB"),
        Err(_) => plain(StatusCode::REQUEST_TIMEOUT, "the body did not come in time"),
    }
}

impl HttpDoor {
    /// The response to a request that is refused for its head.
    fn refused(&self, parts: &Parts) -> Option<Response<Body>> {
        let headers = &parts.headers;
        if !guard::is_local(headers, &parts.uri, self.address.ip()) {
            return Some(plain(StatusCode::FORBIDDEN, "requests for another host or from another origin are refused"));
        }
        if !bearer(headers).is_some_and(|given| is_same(given, self.token.secret())) {
            let mut response = plain(StatusCode::UNAUTHORIZED, "send the token: `authorization: Bearer TOKEN`");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
            return Some(response);
        }
        if parts.uri.path().trim_end_matches('/') != PATH {
            return Some(plain(StatusCode::NOT_FOUND, "the server is at /mcp"));
        }
        if parts.method != Method::POST {
            // There are no sessions, and nothing is sent that was not asked for.
            let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "only POST is served");
            response.headers_mut().insert(header::ALLOW, header::HeaderValue::from_static("POST"));
            return Some(response);
        }
        let is_json =
            text_of(headers, "content-type").is_some_and(|kind| kind.to_lowercase().starts_with("application/json"));
        (!is_json).then(|| plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/json"))
    }

    async fn answer(&self, headers: &HeaderMap, body: &Bytes) -> Response<Body> {
        let request = match ClientMessage::read(body) {
            ClientMessage::Request(request) => request,
            ClientMessage::Refused(response) => return response_to(&response),
            // Nothing is remembered between requests, so there is nothing that a notification could change.
            ClientMessage::Cancelled(_) | ClientMessage::Other => return accepted(),
        };
        if let Err(refusal) = check_headers(headers, &request) {
            return response_to(&refusal.response(&request.id));
        }
        let takes_events = text_of(headers, "accept").is_some_and(|accept| accept.contains("text/event-stream"));
        match takes_events && wants_progress(&request) {
            true => self.stream(request),
            false => {
                let response = self.server.response(&request, &|_| {}).await;
                match Era::version_in(&request) {
                    Some(_) => response_to(&response),
                    // Clients of these revisions take another status for a failure of the connection.
                    None => with_json(StatusCode::OK, &response),
                }
            }
        }
    }

    /// The response as a stream of events, with what is told before it.
    fn stream(&self, request: ClientRequest) -> Response<Body> {
        let server = self.server.clone();
        let (sender, events) = mpsc::unbounded_channel();
        let work = tokio::spawn(async move {
            let notes = sender.clone();
            let tell = move |notification: Value| {
                // If nobody reads any more, the work ends with the stream.
                let _ = notes.send(notification);
            };
            let response = server.response(&request, &tell).await;
            let _ = sender.send(response);
        });
        let body = Body::from_stream(unfold((events, Working(work)), async |(mut events, working)| {
            let message: Value = events.recv().await?;
            let event = Ok::<_, io::Error>(format!("event: message\ndata: {message}\n\n"));
            Some((event, (events, working)))
        }));
        let mut response = Response::new(body);
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("text/event-stream"));
        headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-cache, no-transform"));
        response
    }
}

/// Work that ends when nobody reads its stream any more: closing the connection is how a client cancels.
struct Working(JoinHandle<()>);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Whether the headers say the same as the body, which those on the way believe.
fn check_headers(headers: &HeaderMap, request: &ClientRequest) -> Result<(), ProtocolError> {
    let mismatch = |name: &str| ProtocolError::new(HEADER_MISMATCH, format!("the header `{name}` and the body differ"));
    for name in [VERSION_HEADER, METHOD_HEADER, NAME_HEADER] {
        if headers.get_all(name).iter().count() > 1 {
            return Err(ProtocolError::new(HEADER_MISMATCH, format!("the header `{name}` is there more than once")));
        }
    }
    let version = text_of(headers, VERSION_HEADER);
    let said = Era::version_in(request).filter(|_| request.method != "initialize");
    if said.is_none() && version != Some(STATELESS) {
        return match version {
            Some(version) if !HANDSHAKE.contains(&version) => Err(ProtocolError::of_version(version)),
            _ => Ok(()),
        };
    }
    if said != version {
        return Err(mismatch(VERSION_HEADER));
    }
    if text_of(headers, METHOD_HEADER) != Some(request.method.as_str()) {
        return Err(mismatch(METHOD_HEADER));
    }
    // Names that are not those of our tools may be encoded; they are unknown either way.
    let name = request.params["name"].as_str().filter(|_| request.method == "tools/call");
    match name.is_some() && text_of(headers, NAME_HEADER) != name {
        true => Err(mismatch(NAME_HEADER)),
        false => Ok(()),
    }
}

fn text_of<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// A response of the protocol, with the status that fits it.
fn response_to(message: &Value) -> Response<Body> {
    let status = match message["error"]["code"].as_i64() {
        Some(NO_SUCH_METHOD) => StatusCode::NOT_FOUND,
        Some(PARSE_ERROR | INVALID_REQUEST | INVALID_PARAMS | HEADER_MISMATCH | UNSUPPORTED_VERSION) => {
            StatusCode::BAD_REQUEST
        }
        _ => StatusCode::OK,
    };
    with_json(status, message)
}

/// A refusal before anything of the protocol was read.
/// A refusal. Not all of the body may have been read; then the connection ends with it, and a client that would use it for
/// its next request must know.
fn plain(status: StatusCode, message: &str) -> Response<Body> {
    let mut response = with_json(status, &json!({ "error": message }));
    response.headers_mut().insert(header::CONNECTION, header::HeaderValue::from_static("close"));
    response
}

fn accepted() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

fn with_json(status: StatusCode, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
