//! Responses of the inspector: its page, its API and its events.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Response, StatusCode, header};
use futures_util::stream;
use tokio::sync::broadcast;

use super::server::Inspector;
use super::{answer, page, routes};

/// Interval of keep-alive events.
const QUIET: Duration = Duration::from_secs(15);

/// Largest body of a request.
const MOST_BYTES: usize = 64 << 10;

impl Inspector {
    /// Responds to a request from this machine.
    pub async fn respond(self: &Arc<Self>, parts: &Parts, body: Body) -> Response<Body> {
        if let Some(why) = self.pass.refuses(&parts.method, &parts.uri, &parts.headers) {
            return answer::refused(StatusCode::UNAUTHORIZED, why);
        }
        let Ok(body) = to_bytes(body, MOST_BYTES).await else {
            return answer::refused(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large");
        };
        let path = parts.uri.path().to_owned();
        match path.strip_prefix("/api/v1/") {
            Some("events") => self.events(),
            Some(route) => {
                let (method, query) = (parts.method.clone(), parts.uri.query().unwrap_or_default().to_owned());
                self.api(method, route.to_owned(), query, body).await
            }
            None => self.page(&path),
        }
    }

    async fn api(self: &Arc<Self>, method: Method, route: String, query: String, body: Bytes) -> Response<Body> {
        let inspector = self.clone();
        // Reading the archive blocks on the disk.
        let work = move || routes::respond(&inspector, &method, &route, &query, &body);
        let failed = |_| answer::refused(StatusCode::INTERNAL_SERVER_ERROR, "something went wrong in the inspector");
        tokio::task::spawn_blocking(work).await.unwrap_or_else(failed)
    }

    fn page(&self, path: &str) -> Response<Body> {
        match path {
            "/inspect" | "/inspect/" => {
                let mut response = answer::of("text/html; charset=utf-8", page::DOCUMENT);
                if let Ok(cookie) = HeaderValue::from_str(&self.pass.cookie()) {
                    response.headers_mut().insert(header::SET_COOKIE, cookie);
                }
                response
            }
            "/inspect/app.js" => answer::of("text/javascript; charset=utf-8", page::SCRIPT),
            "/inspect/icon.svg" => answer::of("image/svg+xml", page::ICON),
            "/inspect/app.css" => answer::of("text/css; charset=utf-8", page::STYLE),
            _ => answer::refused(StatusCode::NOT_FOUND, "there is no such page"),
        }
    }

    /// A stream of events.
    fn events(&self) -> Response<Body> {
        let news = self.news.subscribe();
        let start = stream::iter([Ok::<_, std::convert::Infallible>(Bytes::from_static(b"retry: 1000\n\n"))]);
        let later = stream::unfold(news, |mut news| async move {
            let text = match tokio::time::timeout(QUIET, news.recv()).await {
                Ok(Ok(text)) => text,
                // A page that missed an event reloads everything.
                Ok(Err(broadcast::error::RecvError::Lagged(_))) => "event: reload\ndata: {}\n\n".to_owned(),
                Ok(Err(broadcast::error::RecvError::Closed)) => return None,
                Err(_) => ": quiet\n\n".to_owned(),
            };
            Some((Ok(Bytes::from(text)), news))
        });
        let stream = futures_util::StreamExt::chain(start, later);
        answer::of("text/event-stream", Body::from_stream(stream))
    }
}
