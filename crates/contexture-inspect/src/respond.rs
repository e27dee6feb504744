//! Responses of the inspector: its page, its API and its events.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::http::request::Parts;
use axum::http::{Method, Response, StatusCode};
use futures_util::stream;
use tokio::sync::broadcast;

use super::server::Inspector;
use super::{answer, page, routes};

/// Interval of keep-alive events.
const QUIET: Duration = Duration::from_secs(15);

/// Largest body of a request.
const MOST_BYTES: usize = 64 << 10;

impl Inspector {
    /// Responds to a request from this machine. The page itself holds nothing that is kept from anybody; all it shows
    /// it gets from the API, which asks for the token.
    pub async fn respond(self: &Arc<Self>, parts: &Parts, body: Body) -> Response<Body> {
        let path = parts.uri.path().to_owned();
        let Some(route) = path.strip_prefix("/api/v1/") else { return page(&path) };
        if let Some(why) = self.pass.refuses(&parts.method, &parts.headers) {
            return answer::refused(StatusCode::UNAUTHORIZED, why);
        }
        let Ok(body) = to_bytes(body, MOST_BYTES).await else {
            return answer::refused(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large");
        };
        match route {
            "events" => self.events(),
            route => {
                let (method, query) = (parts.method.clone(), parts.uri.query().unwrap_or_default().to_owned());
                self.api(method, route.to_owned(), query, body).await
            }
        }
    }

    async fn api(self: &Arc<Self>, method: Method, route: String, query: String, body: Bytes) -> Response<Body> {
        let inspector = self.clone();
        // Reading the archive blocks on the disk.
        let work = move || routes::respond(&inspector, &method, &route, &query, &body);
        let failed = |_| answer::refused(StatusCode::INTERNAL_SERVER_ERROR, "something went wrong in the inspector");
        tokio::task::spawn_blocking(work).await.unwrap_or_else(failed)
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

fn page(path: &str) -> Response<Body> {
    match path {
        "/" | "/inspect" | "/inspect/" => answer::of("text/html; charset=utf-8", page::DOCUMENT),
        "/inspect/app.js" => answer::of("text/javascript; charset=utf-8", page::SCRIPT),
        "/inspect/icon.svg" => answer::of("image/svg+xml", page::ICON),
        "/inspect/app.css" => answer::of("text/css; charset=utf-8", page::STYLE),
        _ => answer::sentence(StatusCode::NOT_FOUND, "There is no such page. The inspector is at /inspect/."),
    }
}
