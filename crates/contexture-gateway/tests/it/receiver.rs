//! A receiver of telemetry that is a real server.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use contexture_gateway::otlp::Receiver;
use serde_json::Value;

/// Bodies that a receiver got, with a header.
pub type Received = Arc<Mutex<Vec<(String, Value)>>>;

/// Starts a receiver of spans. Returns where it is, and what it got.
pub async fn receiver() -> (Receiver, Received) {
    receiver_at("/v1/traces").await
}

/// The same for what is sent to a path.
pub async fn receiver_at(path: &'static str) -> (Receiver, Received) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}{path}", listener.local_addr().unwrap());
    let received = Received::default();
    let app = axum::Router::new().fallback({
        let received = received.clone();
        move |request: axum::extract::Request| async move {
            let (parts, body) = request.into_parts();
            assert_eq!(
                (parts.uri.path(), &parts.headers["content-type"]),
                (path, &"application/json".parse().unwrap())
            );
            let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
            let key = parts.headers["x-key"].to_str().unwrap().to_owned();
            received.lock().unwrap().push((key, serde_json::from_slice(&body).unwrap()));
            "{}"
        }
    });
    tokio::spawn(async move { axum::serve(listener, app).await });
    let headers = vec![("x-key".to_owned(), "of the receiver".to_owned())];
    (Receiver { url, headers, service: "test".to_owned(), delay: Duration::from_secs(1) }, received)
}
