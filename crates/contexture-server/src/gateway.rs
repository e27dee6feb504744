//! The gateway: it listens, decides what is sent, and passes answers back.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::{Body, to_bytes};
use axum::extract::{Request as Incoming, State};
use axum::http::{HeaderMap, Method, Response, StatusCode, header};
use axum::serve::ListenerExt;
use bytes::Bytes;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::account::Sent;
use crate::decide::{Asked, Decider, Progress, Ready};
use crate::inspect::controls::Controls;
use crate::options::Options;
use crate::passing::Passing;
use crate::record::RequestRecord;
use crate::refusal::refusal;
use crate::sessions::Session;
use crate::shared::Shared;
use crate::store::{RunningGateway, Store, StoreError};
use crate::tls::prepare_tls;
use crate::upstream::Route;
use crate::watching::Watched;
use crate::{guard, headers, own, watching};

/// How long a connection to a provider is held when nothing passes: providers close them after about 15 s.
const IDLE: Duration = Duration::from_secs(10);

/// How long it may take to find the conversation of a request when that takes longer than all own work may.
const FINDING: Duration = Duration::from_millis(500);

/// Largest body that is taken at all.
const MOST_BYTES: usize = 512 << 20;

/// A gateway that runs.
pub struct Gateway {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    serving: JoinHandle<io::Result<()>>,
}

/// Why a gateway cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("listen on `{address}`")]
    Listen {
        /// The address.
        address: String,
        /// Why.
        source: io::Error,
    },
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Requests cannot be made.
    #[error("set up requests to providers")]
    Client(#[from] reqwest::Error),
    /// It would send requests to itself.
    #[error("the upstream `{0}` is this gateway itself")]
    Loop(String),
}

impl Gateway {
    /// Starts a gateway on an address; port 0 is any that is free.
    ///
    /// # Errors
    /// The address is taken, the store cannot be used, or it would send requests to itself.
    pub async fn start(listen: &str, options: Options) -> Result<Self, StartError> {
        let store = options.store.as_deref().map(Store::open).transpose()?.map(Arc::new);
        let fail = |source| StartError::Listen { address: listen.to_owned(), source };
        let listener = TcpListener::bind(listen).await.map_err(fail)?;
        let address = listener.local_addr().map_err(fail)?;
        for url in [&options.upstreams.anthropic, &options.upstreams.openai] {
            if url.contains(&format!("//{address}")) || url.contains(&format!("//localhost:{}", address.port())) {
                return Err(StartError::Loop(url.clone()));
            }
        }
        let options = Arc::new(options);
        let id = uuid::Uuid::now_v7().simple().to_string();
        let token = blake3::hash(format!("{id}{}", uuid::Uuid::now_v7()).as_bytes()).to_hex()[..32].to_owned();
        let inspector = watching::inspector(&options, address, &token)?;
        if let Some(store) = &store {
            let (address, token, pid) = (address.to_string(), token.clone(), std::process::id());
            // Without it only `status` does not find this gateway.
            let _ = store.note_gateway(&RunningGateway { id: id.clone(), address, token, pid });
        }
        let shared = Arc::new(Shared {
            decider: Decider::new(options.clone(), store.clone()),
            session: Session::new(id, store.clone()),
            client: client()?,
            token,
            store,
            options,
            address,
            inspector: inspector.clone(),
        });
        if let Some(inspector) = inspector {
            inspector.control(Controls::new(&shared));
        }
        let app = axum::Router::new().fallback(handle).with_state(shared.clone());
        let (stop, stopped) = oneshot::channel::<()>();
        // A chunk that waits for the next one is felt as a pause.
        let listener = listener.tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
        let server = axum::serve(listener, app).with_graceful_shutdown(async {
            // An error means that the gateway was dropped.
            let _ = stopped.await;
        });
        let serving = tokio::spawn(async move { server.await });
        Ok(Self { address, shared, stop: Some(stop), serving })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Its address as clients write it.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Where its inspector is, with what opens it; nothing if nothing is inspected.
    pub fn inspect_url(&self) -> Option<String> {
        self.shared.inspector.as_ref().map(|inspector| inspector.url())
    }

    /// What is asked for on its own routes.
    pub fn token(&self) -> &str {
        &self.shared.token
    }

    /// What passed through it so far.
    pub fn records(&self) -> Vec<RequestRecord> {
        self.shared.session.records()
    }

    /// Waits until it ends by itself.
    ///
    /// # Errors
    /// Listening failed.
    pub async fn wait(&mut self) -> io::Result<()> {
        (&mut self.serving).await.unwrap_or_else(|error| Err(io::Error::other(error)))
    }

    /// Ends it. Answers that are still coming are given a moment.
    pub async fn stop(mut self) -> Vec<RequestRecord> {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        // Connections that the client keeps open would hold it for ever.
        let _ = tokio::time::timeout(Duration::from_secs(2), &mut self.serving).await;
        self.serving.abort();
        let until = Instant::now() + Duration::from_secs(2);
        while !self.shared.session.is_complete() && Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if let Some(store) = &self.shared.store {
            let _ = store.forget_gateway(self.shared.session.id());
        }
        self.shared.session.records()
    }
}

fn client() -> Result<reqwest::Client, reqwest::Error> {
    prepare_tls();
    reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .pool_idle_timeout(IDLE)
        .tcp_nodelay(true)
        .build()
}

async fn handle(State(shared): State<Arc<Shared>>, incoming: Incoming) -> Response<Body> {
    let (parts, body) = incoming.into_parts();
    let allowed = [shared.address.ip().to_string()];
    if !guard::is_local(&parts.headers, &parts.uri, &allowed) {
        return refusal(None, StatusCode::FORBIDDEN, "requests for another host or from another origin are refused");
    }
    if let Some(inspector) = shared.inspector.as_ref().filter(|inspector| inspector.is_for(parts.uri.path())) {
        return inspector.respond(&parts, body).await;
    }
    let path = parts.uri.path();
    if let Some(response) = own::respond(&shared, path, &parts.headers, parts.uri.query()) {
        return response;
    }
    let upstreams = match headers::has_account(&parts.headers) {
        true => &shared.options.upstreams.for_account(),
        false => &shared.options.upstreams,
    };
    let route = upstreams.route(path, parts.uri.query(), headers::is_anthropic(&parts.headers));
    if parts.headers.contains_key(header::UPGRADE) {
        return refusal(route.format, StatusCode::UPGRADE_REQUIRED, "only plain requests are passed on");
    }
    match route.format {
        Some(_) if parts.method == Method::POST => model(shared, parts.headers, body, route).await,
        _ => other(&shared, parts.method, parts.headers, body, &route).await,
    }
}

/// A request that asks no model passes as it is.
async fn other(shared: &Arc<Shared>, method: Method, headers: HeaderMap, body: Body, route: &Route) -> Response<Body> {
    let has_body = headers.contains_key(header::CONTENT_LENGTH) || headers.contains_key(header::TRANSFER_ENCODING);
    let mut request = shared.client.request(method, &route.url).headers(plain_headers(&headers));
    if has_body {
        request = request.body(reqwest::Body::wrap_stream(body.into_data_stream()));
    }
    match request.send().await {
        Ok(answer) => passed_on(answer),
        Err(error) => unreachable_upstream(route, &error),
    }
}

/// Headers as they came, but for those that concern one connection.
fn plain_headers(headers: &HeaderMap) -> HeaderMap {
    let mut passed = headers::kept(headers);
    passed.remove(header::HOST);
    passed
}

fn passed_on(answer: reqwest::Response) -> Response<Body> {
    let (status, headers) = (answer.status(), headers::kept(answer.headers()));
    let mut response = Response::new(Body::from_stream(answer.bytes_stream()));
    (*response.status_mut(), *response.headers_mut()) = (status, headers);
    response
}

fn unreachable_upstream(route: &Route, error: &reqwest::Error) -> Response<Body> {
    // The address may carry a key in its query, so errors are told without it.
    let kind = match () {
        () if error.is_connect() => "cannot be reached",
        () if error.is_timeout() => "did not answer in time",
        () => "broke off",
    };
    let host = route.url.split('/').nth(2).unwrap_or_default();
    refusal(route.format, StatusCode::BAD_GATEWAY, &format!("the provider at `{host}` {kind}"))
}

/// A request that asks a model.
async fn model(shared: Arc<Shared>, headers: HeaderMap, body: Body, route: Route) -> Response<Body> {
    let began = Instant::now();
    let Ok(body) = to_bytes(body, MOST_BYTES).await else {
        return refusal(route.format, StatusCode::PAYLOAD_TOO_LARGE, "the request is too large, or broke off");
    };
    let asked = asked(&headers, body, &route);
    let ready = decided(&shared, &asked, &headers).await;
    let own = began.elapsed();
    let mut passed = headers::forwarded(&headers);
    if ready.body.is_some() {
        passed.remove(header::CONTENT_ENCODING);
    }
    let watched = Watched::begin(&shared, &asked, &ready);
    let exchange = Exchange { shared, route, ready, asked, began, own, watched };
    exchange.send(passed).await
}

fn asked(headers: &HeaderMap, body: Bytes, route: &Route) -> Asked {
    Asked {
        body,
        format: route.format.expect("only requests with a format are decided about"),
        scope: headers::session_of(headers),
        is_count: route.is_count,
        is_compaction: headers::is_compaction(headers),
    }
}

/// What is sent: with new decisions if they are made in time, else with what was decided before.
async fn decided(shared: &Arc<Shared>, asked: &Asked, headers: &HeaderMap) -> Ready {
    let unread = match headers.get(header::CONTENT_ENCODING).map(|encoding| encoding.as_bytes()) {
        None | Some(b"identity") if asked.body.len() <= shared.options.read_bytes => None,
        None | Some(b"identity") => Some("the request is too large to be looked into"),
        Some(_) => Some("the request is compressed"),
    };
    if let Some(why) = unread {
        return shared.decider.unread(asked, why);
    }
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
    shared.decider.fallback(asked, found, why)
}

/// The conversation of a request, if it is found soon: what was decided before must not be lost.
async fn found_by(progress: &Progress) -> Option<crate::table::Found> {
    let until = Instant::now() + FINDING;
    loop {
        let found = progress.take_found();
        if found.is_some() || progress.is_passed() || Instant::now() > until {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// A request that is decided about, until its answer has passed.
struct Exchange {
    shared: Arc<Shared>,
    route: Route,
    ready: Ready,
    asked: Asked,
    began: Instant,
    own: Duration,
    watched: Option<Watched>,
}

impl Exchange {
    async fn send(mut self, headers: HeaderMap) -> Response<Body> {
        let body = self.ready.body.clone().unwrap_or_else(|| self.asked.body.clone());
        let is_changed = self.ready.body.is_some();
        let mut answer = self.post(&headers, body).await;
        let is_refused = |answer: &reqwest::Response| matches!(answer.status().as_u16(), 400 | 413 | 422);
        if is_changed && answer.as_ref().is_ok_and(is_refused) {
            answer = self.post(&headers, self.asked.body.clone()).await;
            self.give_up(answer.as_ref().is_ok_and(|answer| answer.status().is_success()));
        }
        match answer {
            Ok(answer) => self.pass(answer),
            Err(error) => {
                let response = unreachable_upstream(&self.route, &error);
                self.note(response.status().as_u16(), Vec::new(), None, self.began.elapsed());
                response
            }
        }
    }

    async fn post(&self, headers: &HeaderMap, body: Bytes) -> Result<reqwest::Response, reqwest::Error> {
        let request = || self.shared.client.post(&self.route.url).headers(headers.clone()).body(body.clone()).send();
        match request().await {
            // Nothing was sent, so nothing can happen twice.
            Err(error) if error.is_connect() => request().await,
            answer => answer,
        }
    }

    /// The provider refused what was made of the request, so it got it as it came. If it took that, what was decided
    /// last was at fault: it is taken back, and nothing more is folded.
    fn give_up(&mut self, is_taken: bool) {
        self.ready.body = None;
        self.ready.has_given_up = true;
        self.ready.sent_tokens = self.ready.came_tokens;
        let Some(conversation) = self.ready.conversation.as_ref().filter(|_| is_taken) else {
            self.ready.passed = Some("the provider refused it, rewritten and as it came".to_owned());
            return;
        };
        let why = "the provider refused the rewritten request, so it was sent again as it came";
        conversation.state().take_back(self.ready.messages, why);
        self.ready.passed = Some(why.to_owned());
    }

    fn pass(self, answer: reqwest::Response) -> Response<Body> {
        let (status, headers) = (answer.status(), headers::kept(answer.headers()));
        let is_stream = headers
            .get(header::CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| kind.starts_with("text/event-stream"));
        let (quota, first_byte) = (headers::quota_of(&headers), self.began.elapsed());
        let at_end = Box::new(move |usage, _is_whole| {
            self.note(status.as_u16(), quota, usage, first_byte);
        });
        let mut response = Response::new(Passing::body(Box::pin(answer.bytes_stream()), is_stream, at_end));
        (*response.status_mut(), *response.headers_mut()) = (status, headers);
        response
    }

    /// Bills the request and notes what became of it.
    fn note(
        &self,
        status: u16,
        quota: Vec<(String, String)>,
        usage: Option<contexture::wire::Usage>,
        first_byte: Duration,
    ) {
        let Self { shared, ready, .. } = self;
        let now_ms = shared.decider.now_ms();
        let sent = Sent {
            sent_tokens: ready.sent_tokens,
            came_tokens: ready.came_tokens,
            is_changed: ready.body.is_some(),
            has_moved: ready.decided.iter().any(|note| note.what == "fold") || ready.has_given_up,
            time_ms: now_ms.saturating_sub(self.began.elapsed().as_millis() as u64),
        };
        let billed = usage.filter(|_| !self.route.is_count);
        let bill = ready.conversation.as_ref().zip(billed).map(|(conversation, usage)| {
            conversation.state().account.note(&ready.model, &ready.prices, sent, &usage, now_ms)
        });
        let record = RequestRecord {
            session: shared.session.id().to_owned(),
            conversation: ready.conversation.as_ref().map(|conversation| conversation.id.to_string()),
            time_ms: sent.time_ms,
            format: self.route.format,
            model: ready.model_name.clone(),
            status,
            is_changed: ready.body.is_some(),
            passed: ready.passed.clone(),
            decided: ready.decided.clone(),
            usage: billed,
            bill,
            dollars: ready.model.input.zip(ready.model.output),
            context: Some(ready.model.context),
            would_send: ready.would_send,
            own_us: self.own.as_micros() as u64,
            first_byte_ms: first_byte.as_millis() as u64,
            quota,
        };
        let (shared, conversation, watched) = (shared.clone(), ready.conversation.clone(), self.watched.clone());
        shared.session.expect();
        // Writing waits for the disk, and nobody waits for it.
        tokio::task::spawn_blocking(move || {
            if let Some(conversation) = conversation.filter(|_| bill.is_some()) {
                shared.decider.save(&conversation);
            }
            if let Some(watched) = watched {
                watched.end(&shared, &record);
            }
            shared.session.note(record);
        });
    }
}
