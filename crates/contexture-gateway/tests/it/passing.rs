//! What is not rewritten passes byte for byte.

use axum::body::Body;
use axum::http::Response;
use bytes::Bytes;
use contexture::wire::Format;
use contexture_gateway::{Gateway, Options, Receipt, Upstreams};
use futures_util::StreamExt;
use tokio::sync::mpsc;

use super::agent::Agent;
use super::played::records;
use super::provider::{Fault, Provider, path_of, patient, post};

#[tokio::test(flavor = "multi_thread")]
async fn a_request_about_which_nothing_is_decided_keeps_its_bytes() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(patient()).await;
    for format in Format::ALL {
        let body = Agent::new(format, "hello").request(1, false);
        // White space, numbers and the order of fields are the client's.
        let unknown = "{ \"temperature\" : 1.50,\n\t\"unknown\": 1e2 ,";
        // Google refuses fields that it does not know.
        let known = "{ \"labels\" : {\"a\":\"1.50\"},\n\t\"store\": false ,";
        let body = body.replacen('{', if format == Format::Gemini { known } else { unknown }, 1);
        let (status, _) = post(&gateway, format, body.clone()).await;
        assert_eq!((status, provider.last().body), (200, body));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_and_queries_pass_and_answers_come_back_as_they_are() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(patient()).await;
    let body = Agent::new(Format::Messages, "hello").request(1, true);
    let answer = reqwest::Client::new()
        .post(format!("{}/v1/messages?beta=true", gateway.url()))
        .header("authorization", "Bearer account-token")
        .header("anthropic-beta", "one,two")
        .header("connection", "x-hop")
        .header("x-hop", "not passed on")
        .body(body)
        .send()
        .await
        .unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    assert!(answer.text().await.unwrap().ends_with("event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"));
    let got = provider.last();
    assert_eq!(got.path, "/v1/messages?beta=true");
    assert_eq!(
        (&got.headers["authorization"], &got.headers["anthropic-beta"]),
        (&"Bearer account-token".parse().unwrap(), &"one,two".parse().unwrap())
    );
    assert!(!got.headers.contains_key("x-hop"));
}

#[tokio::test(flavor = "multi_thread")]
async fn other_routes_of_providers_pass_untouched() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(patient()).await;
    let answer = reqwest::Client::new().get(format!("{}/v1/models?limit=3", gateway.url())).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), &answer.headers()["x-kind"].clone()), (200, &"other".parse().unwrap()));
    assert_eq!(answer.text().await.unwrap(), "other");
    let gemini = "/v1beta/models/g:streamGenerateContent";
    let body = "not json at all \u{0}".to_owned();
    reqwest::Client::new().post(format!("{}{gemini}", gateway.url())).body(body.clone()).send().await.unwrap();
    assert_eq!((provider.last().path, provider.last().body), (gemini.to_owned(), body));
    let receipt = Receipt::of(&records(&gateway, 2).await);
    let reasons: Vec<(&str, usize)> = receipt.passed.iter().map(|(why, count)| (why.as_str(), *count)).collect();
    assert_eq!(reasons, [("it calls no model", 1), ("the request is not written as expected", 1)]);
    assert_eq!(receipt.requests, 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_the_provider_reach_the_client_unchanged() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(patient()).await;
    for (status, body) in [(429, r#"{"error":"slow down"}"#), (500, "oops"), (529, "overloaded"), (400, "too long")] {
        let headers = vec![("retry-after", "7"), ("x-request-id", "r1")];
        provider.set_fault(Some(Fault { status, headers, body, only_with: None }));
        let before = provider.got().len();
        let answer = reqwest::Client::new()
            .post(format!("{}/v1/messages", gateway.url()))
            .body(Agent::new(Format::Messages, "hello").request(1, false))
            .send()
            .await
            .unwrap();
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["retry-after"].clone()),
            (status, &"7".parse().unwrap())
        );
        assert_eq!(answer.text().await.unwrap(), body);
        assert_eq!(provider.got().len(), before + 1, "the gateway does not try again");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_is_gone_is_told_in_its_own_form() {
    let options = Options { upstreams: Upstreams::one("http://127.0.0.1:1"), ..patient() };
    let gateway = Gateway::start("127.0.0.1:0", options).await.unwrap();
    let (status, body) =
        post(&gateway, Format::Messages, Agent::new(Format::Messages, "hello").request(1, false)).await;
    assert_eq!(status, 502);
    assert!(
        body.starts_with(r#"{"error":{"message":"contexture: the provider at `127.0.0.1:1` cannot be reached""#),
        "{body}"
    );
    let (_, body) = post(&gateway, Format::Chat, Agent::new(Format::Chat, "hello").request(1, false)).await;
    assert!(body.contains("gateway_error"), "{body}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgrade_is_refused_so_that_the_client_falls_back() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(patient()).await;
    let request = reqwest::Client::new().get(format!("{}/v1/responses", gateway.url()));
    let answer = request.header("connection", "upgrade").header("upgrade", "websocket").send().await.unwrap();
    assert_eq!(answer.status().as_u16(), 426);
    assert!(provider.got().is_empty());
    // Other upgrades are offers, which are not taken.
    let request =
        reqwest::Client::new().post(format!("{}/v1/responses", gateway.url())).version(reqwest::Version::HTTP_11);
    let request = request.header("connection", "upgrade, http2-settings").header("upgrade", "h2c");
    let body = Agent::new(Format::Responses, "hello").request(1, false);
    assert_eq!(
        request.header("http2-settings", "AAMAAABkAAQAAP__").body(body).send().await.unwrap().status().as_u16(),
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upstream_that_is_the_gateway_itself_is_noticed_however_it_is_written() {
    for host in ["127.0.0.1", "127.1", "localhost", "0.0.0.0"] {
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let upstreams = Upstreams::one(&format!("http://{host}:{port}/v1"));
        let started = Gateway::start(&format!("127.0.0.1:{port}"), Options { upstreams, ..patient() }).await;
        assert!(matches!(started, Err(contexture_gateway::StartError::Loop(_))), "{host}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reason_beside_a_status_is_kept() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let options =
        Options { upstreams: Upstreams::one(&format!("http://{}", listener.local_addr().unwrap())), ..patient() };
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut bytes = vec![0; 65_536];
            // One packet is enough to answer.
            let _ = stream.read(&mut bytes).await.unwrap();
            stream.write_all(b"HTTP/1.1 529 Overloaded\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        }
    });
    let gateway = Gateway::start("127.0.0.1:0", options).await.unwrap();
    let mut client = tokio::net::TcpStream::connect(gateway.address()).await.unwrap();
    let body = r#"{"messages":[]}"#;
    let head = format!(
        "POST {}/v1/messages HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        gateway.url().strip_prefix(&format!("http://{}", gateway.address())).unwrap(),
        gateway.address(),
        body.len()
    );
    client.write_all((head + body).as_bytes()).await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 529 Overloaded\r\n"), "{answer}");
}

#[test]
fn a_login_with_an_account_has_an_upstream_of_its_own_unless_the_user_set_one() {
    let url = |upstreams: &Upstreams| upstreams.for_account().route("/openai/responses", None, None).url;
    assert_eq!(url(&Upstreams::default()), "https://chatgpt.com/backend-api/codex/responses");
    assert_eq!(url(&Upstreams::one("https://proxy.example/v1")), "https://proxy.example/v1/responses");
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_and_account_headers_arrive_byte_for_byte() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(patient()).await;
    let sent = [
        ("authorization", &b"Bearer eyJhbGciOiJub25lIn0.e30.  c2ln"[..]),
        ("chatgpt-account-id", b"account-4711"),
        ("x-codex-turn-metadata", b"{\"session_id\":\"a\", \"b\" : 1}"),
        ("x-latin", b"caf\xe9"),
        ("cookie", b"one=1; two=2"),
    ];
    let mut request = reqwest::Client::new().post(format!("{}/openai/responses", gateway.url()));
    for (name, value) in sent {
        request = request.header(name, reqwest::header::HeaderValue::from_bytes(value).unwrap());
    }
    let body = Agent::new(Format::Responses, "hello").request(1, false);
    assert_eq!(request.body(body).send().await.unwrap().status().as_u16(), 200);
    let got = provider.last();
    for (name, value) in sent {
        assert_eq!(got.headers[name].as_bytes(), value, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_chunk_is_passed_on_before_the_next_one_comes() {
    // The provider sends a chunk only when the client has seen the one before.
    let (allow, allowed) = mpsc::channel::<()>(1);
    let allowed = std::sync::Arc::new(tokio::sync::Mutex::new(allowed));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let app = axum::Router::new().fallback(move || {
        let allowed = allowed.clone();
        async move {
            let chunks = futures_util::stream::unfold((0, allowed), |(n, allowed)| async move {
                if n == 4 {
                    return None;
                }
                allowed.lock().await.recv().await?;
                Some((Ok::<_, std::io::Error>(Bytes::from(format!("data: {{\"n\":{n}}}\n\n"))), (n + 1, allowed)))
            });
            Response::builder().header("content-type", "text/event-stream").body(Body::from_stream(chunks)).unwrap()
        }
    });
    tokio::spawn(async move { axum::serve(listener, app).await });
    let options = Options { upstreams: Upstreams::one(&url), ..patient() };
    let gateway = Gateway::start("127.0.0.1:0", options).await.unwrap();
    allow.send(()).await.unwrap();
    let request = reqwest::Client::new().post(format!("{}{}", gateway.url(), path_of(Format::Messages)));
    let answer = request.body(Agent::new(Format::Messages, "hello").request(1, true)).send().await.unwrap();
    let mut chunks = answer.bytes_stream();
    for n in 0..4 {
        let chunk =
            tokio::time::timeout(std::time::Duration::from_secs(5), chunks.next()).await.expect("in time").unwrap();
        assert_eq!(chunk.unwrap(), format!("data: {{\"n\":{n}}}\n\n"));
        if n < 3 {
            allow.send(()).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_header_is_added_that_the_client_did_not_send() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let provider = Provider::start().await;
    let gateway = provider.gateway(patient()).await;
    let path = gateway.url().split_once(&gateway.address().to_string()).unwrap().1.to_owned();
    let body = Agent::new(Format::Messages, "hello").request(1, false);
    let requests = [
        format!("POST {path}/v1/messages HTTP/1.1\r\ncontent-length: {}\r\n", body.len()),
        format!("POST {path}/v1/messages HTTP/1.1\r\naccept: text/event-stream\r\ncontent-length: {}\r\n", body.len()),
        format!("GET {path}/v1/models HTTP/1.1\r\n"),
    ];
    let expected = [None, Some("text/event-stream"), None];
    for (request, expected) in requests.into_iter().zip(expected) {
        let mut stream = tokio::net::TcpStream::connect(gateway.address()).await.unwrap();
        let sent = if request.starts_with("POST") { &*body } else { "" };
        let head = format!("{request}host: {}\r\nconnection: close\r\nx-own: kept\r\n\r\n", gateway.address());
        stream.write_all(format!("{head}{sent}").as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&answer));
        let headers = provider.last().headers;
        assert_eq!(headers.get("accept").map(|value| value.to_str().unwrap()), expected);
        let mut names: Vec<&str> = headers.keys().map(|name| name.as_str()).collect();
        names.retain(|name| !["host", "content-length", "accept", "accept-encoding"].contains(name));
        assert_eq!(names, ["x-own"]);
    }
}
