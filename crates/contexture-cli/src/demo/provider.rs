//! The provider of the demo: it keeps to the published rules, has a prompt cache, and answers as recorded.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode, header};
use contexture::clock::Clock;
use contexture::wire::Format;
use contexture_gateway::simulate::cache::Cache;
use contexture_gateway::simulate::played::ASSUMED_MODEL;
use contexture_gateway::simulate::rules;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// How long an unused prefix stays in the cache, as Anthropic documents it.
const CACHE_LIFE: Duration = Duration::from_secs(300);

/// Largest request that is read.
const MOST_BYTES: usize = 64 << 20;

/// Bytes of an answer that count as one token.
const TOKEN_BYTES: usize = 4;

/// A provider on a free port of this machine.
pub struct RecordedProvider {
    address: SocketAddr,
    state: Arc<ProviderState>,
    serving: JoinHandle<()>,
}

struct ProviderState {
    clock: Arc<dyn Clock>,
    served: Mutex<Served>,
}

struct Served {
    cache: Cache,
    /// The content of the next answer.
    answer: Value,
    /// The request that was accepted last.
    accepted: String,
}

impl RecordedProvider {
    /// Starts the provider.
    ///
    /// # Errors
    /// There is no free port.
    pub async fn start(clock: Arc<dyn Clock>) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let cache = Cache::with_life(CACHE_LIFE.as_millis() as u64);
        let served = Mutex::new(Served { cache, answer: json!([]), accepted: String::new() });
        let state = Arc::new(ProviderState { clock, served });
        let app = axum::Router::new().fallback(serve).with_state(state.clone());
        let serving = tokio::spawn(async move {
            // When the server ends, nobody is left to receive the error.
            let _ = axum::serve(listener, app).await;
        });
        Ok(Self { address, state, serving })
    }

    /// Its address.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Sets what it answers to the next request.
    pub fn answer_with(&self, content: Value) {
        self.state.served().answer = content;
    }

    /// The request that it accepted last.
    pub fn accepted(&self) -> String {
        self.state.served().accepted.clone()
    }
}

impl Drop for RecordedProvider {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl ProviderState {
    fn served(&self) -> MutexGuard<'_, Served> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn serve(State(state): State<Arc<ProviderState>>, request: Request) -> Response<Body> {
    let format = Format::Messages;
    let body = to_bytes(request.into_body(), MOST_BYTES).await.unwrap_or_default();
    let body = String::from_utf8_lossy(&body).into_owned();
    if let Err(message) = rules::check(format, &body) {
        return response(StatusCode::BAD_REQUEST, rules::refusal(format, &message));
    }
    let mut served = state.served();
    let took = served.cache.serve(format, &body, state.clock.now().as_millis() as u64);
    let content = std::mem::replace(&mut served.answer, json!([]));
    let usage = took.usage(format, (content.to_string().len() / TOKEN_BYTES) as u64);
    let has_calls = content.as_array().is_some_and(|blocks| blocks.iter().any(|block| block["type"] == "tool_use"));
    let answer = json!({
        "id": "msg_demo", "type": "message", "role": "assistant", "model": ASSUMED_MODEL, "content": content,
        "stop_reason": if has_calls { "tool_use" } else { "end_turn" }, "stop_sequence": null, "usage": usage,
    });
    served.accepted = body;
    response(StatusCode::OK, answer.to_string())
}

fn response(status: StatusCode, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}
