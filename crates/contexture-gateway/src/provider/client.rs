//! The client that sends requests to providers, with the headers that came and no others.
//!
//! `reqwest` adds `accept: */*` to every request that has no such header. So requests without one go through a client of
//! their own, unless a proxy is set, which only `reqwest` speaks to.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, Uri, header};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as BareClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::proxy::matcher::Matcher;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls_platform_verifier::Verifier;

use super::tls::{ExtraRoots, certificate_error, prepare_tls};

/// How long an idle connection to a provider is kept: providers close them after about 15 s.
const IDLE: Duration = Duration::from_secs(10);

/// Why a request got no response. No part of the address is in it, since that may contain a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum SendError {
    /// The provider's certificate is not accepted, for this reason: nothing was sent.
    Certificate(String),
    /// There is no connection: nothing was sent.
    Connect,
    /// It took too long.
    Timeout,
    /// The connection broke.
    Broken,
}

impl From<reqwest::Error> for SendError {
    fn from(error: reqwest::Error) -> Self {
        match certificate_error(&error) {
            Some(wrong) => Self::Certificate(wrong),
            None if error.is_connect() => Self::Connect,
            None if error.is_timeout() => Self::Timeout,
            None => Self::Broken,
        }
    }
}

impl From<hyper_util::client::legacy::Error> for SendError {
    fn from(error: hyper_util::client::legacy::Error) -> Self {
        match certificate_error(&error) {
            Some(wrong) => Self::Certificate(wrong),
            None if error.is_connect() => Self::Connect,
            None => Self::Broken,
        }
    }
}

/// Sends requests to providers.
pub(crate) struct ProviderClient {
    usual: reqwest::Client,
    bare: Option<BareClient<HttpsConnector<HttpConnector>, Body>>,
    proxies: Matcher,
}

impl ProviderClient {
    /// A client that trusts the system's certificates, and some more.
    pub(crate) fn new(roots: &ExtraRoots) -> Result<Self, reqwest::Error> {
        prepare_tls();
        let usual = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .pool_idle_timeout(IDLE)
            .tcp_nodelay(true);
        // With certificates of its own it would not mind that the system has none.
        let usual = if roots.count() > 0 { usual.tls_certs_merge(roots.for_reqwest()) } else { usual };
        let usual = usual.build()?;
        Ok(Self { usual, bare: bare(roots), proxies: Matcher::from_system() })
    }

    /// Sends a request whose body is in memory.
    pub(crate) async fn post(
        &self,
        url: &str,
        headers: HeaderMap,
        body: bytes::Bytes,
    ) -> Result<reqwest::Response, SendError> {
        match self.bare_for(url, &headers) {
            Some((bare, uri)) => sent(bare, Method::POST, uri, headers, Body::from(body)).await,
            None => Ok(self.usual.post(url).headers(headers).body(body).send().await?),
        }
    }

    /// Sends a request whose body is passed on as it comes, if it has one.
    pub(crate) async fn pass(
        &self,
        method: Method,
        url: &str,
        headers: HeaderMap,
        body: Option<Body>,
    ) -> Result<reqwest::Response, SendError> {
        if let Some((bare, uri)) = self.bare_for(url, &headers) {
            return sent(bare, method, uri, headers, body.unwrap_or_default()).await;
        }
        let mut request = self.usual.request(method, url).headers(headers);
        if let Some(body) = body {
            request = request.body(reqwest::Body::wrap_stream(body.into_data_stream()));
        }
        Ok(request.send().await?)
    }

    /// The client that adds nothing, for a request that needs it.
    fn bare_for(
        &self,
        url: &str,
        headers: &HeaderMap,
    ) -> Option<(&BareClient<HttpsConnector<HttpConnector>, Body>, Uri)> {
        let bare = self.bare.as_ref().filter(|_| !headers.contains_key(header::ACCEPT))?;
        let uri: Uri = url.parse().ok()?;
        // What listens on this machine is not behind its proxy.
        let is_local = matches!(uri.host(), Some("127.0.0.1" | "localhost" | "[::1]"));
        (is_local || self.proxies.intercept(&uri).is_none()).then_some((bare, uri))
    }
}

/// A client that adds no header. Without the system's certificates there is none.
fn bare(roots: &ExtraRoots) -> Option<BareClient<HttpsConnector<HttpConnector>, Body>> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = Verifier::new_with_extra_roots(roots.certificates().cloned(), provider.clone()).ok()?;
    let config = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().ok()?;
    let config = config.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth();
    let mut http = HttpConnector::new();
    http.set_nodelay(true);
    http.enforce_http(false);
    let https = HttpsConnectorBuilder::new()
        .with_tls_config(config)
        .https_or_http()
        .enable_http1()
        .enable_http2()
        .wrap_connector(http);
    let mut builder = BareClient::builder(TokioExecutor::new());
    Some(builder.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE).build(https))
}

async fn sent(
    bare: &BareClient<HttpsConnector<HttpConnector>, Body>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<reqwest::Response, SendError> {
    let mut request = Request::new(body);
    (*request.method_mut(), *request.uri_mut(), *request.headers_mut()) = (method, uri, headers);
    let (parts, body) = bare.request(request).await?.into_parts();
    Ok(axum::http::Response::from_parts(parts, reqwest::Body::wrap(body)).into())
}
