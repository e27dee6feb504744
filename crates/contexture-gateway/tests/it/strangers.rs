//! What others on the machine try: without the key, with a wrong address, with cookies and with tokens of something else.

use std::time::Duration;

use contexture::wire::Format;
use contexture_gateway::{AccessKey, Gateway, Options, References};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::agent::Agent;
use super::played::{records, small};
use super::provider::{Got, Provider, path_of, patient, post};

fn key(name: &str, sign: char) -> AccessKey {
    AccessKey::new(name, &sign.to_string().repeat(32)).unwrap()
}

/// The URL of a gateway without its key.
fn bare(gateway: &Gateway) -> String {
    format!("http://{}", gateway.address())
}

fn secret(gateway: &Gateway) -> String {
    gateway.url().rsplit('/').next().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn without_the_key_nobody_gets_anything() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("settings.py"), "TOKEN = 'only for me'\n").unwrap();
    let provider = Provider::start().await;
    let own = directory.path().to_str().map(std::sync::Arc::from);
    let gateway = provider.gateway(Options { directory: own, references: References::Typed, ..patient() }).await;
    let key = secret(&gateway);
    assert_eq!(key.len(), 32, "128 bits in hexadecimal digits");
    let body = Agent::new(Format::Messages, "What is in #settings.py?").request(1, false);
    let (less, more, other) = (key[1..].to_owned(), format!("{key}0"), "0".repeat(32));
    let prefixes = ["", "/anthropic", &format!("/{less}"), &format!("/{more}"), &format!("/{other}"), "//", "/%2e"];
    let client = reqwest::Client::new();
    for prefix in prefixes {
        for path in ["/v1/messages", "/v1/models", "/", "/inspect/", "/contexture/status", "/metrics"] {
            let url = format!("{}{prefix}{path}", bare(&gateway));
            for (name, value) in [("authorization", "Bearer sk-mine"), ("x-contexture-key", less.as_str())] {
                let answer = client.post(&url).header(name, value).body(body.clone()).send().await.unwrap();
                assert_eq!(answer.status().as_u16(), 401, "{url} {name}");
                let told = answer.text().await.unwrap();
                assert!(!told.contains("only for me") && !told.contains(&key), "{told}");
            }
        }
    }
    assert!(provider.got().is_empty(), "nothing of it reached the provider");
    assert_eq!(gateway.refused(), 7 * 6 * 2, "the one who started it can be told");
    // The same message of the one who started it.
    let (status, _) = post(&gateway, Format::Messages, body).await;
    assert_eq!(status, 200);
    assert!(provider.last().body.contains("only for me"));
}

#[track_caller]
fn check_untold(got: &Got, secret: &str) {
    assert!(!got.path.contains(secret), "{}", got.path);
    assert!(!got.body.contains(secret));
    for (name, value) in &got.headers {
        assert!(!String::from_utf8_lossy(value.as_bytes()).contains(secret), "{name}");
        assert!(!name.as_str().starts_with("x-contexture"), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_not_forwarded_however_it_came() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(patient()).await;
    let (key, client) = (secret(&gateway), reqwest::Client::new());
    for format in Format::ALL {
        let body = Agent::new(format, "hello").request(1, false);
        let in_path = client.post(format!("{}{}", gateway.url(), path_of(format)));
        let in_header = client.post(format!("{}{}", bare(&gateway), path_of(format))).header("x-contexture-key", &key);
        let in_both = client.post(format!("{}{}", gateway.url(), path_of(format))).header("x-contexture-key", &key);
        for request in [in_path, in_header, in_both] {
            let referer = format!("{}/somewhere", gateway.url());
            let request = request.header("authorization", "Bearer sk-mine").header("referer", referer);
            let answer = request.body(body.clone()).send().await.unwrap();
            assert_eq!(answer.status().as_u16(), 200);
            let got = provider.last();
            assert_eq!(
                (got.path.as_str(), &got.headers["authorization"]),
                (path_of(format), &"Bearer sk-mine".parse().unwrap())
            );
            check_untold(&got, &key);
        }
    }
    let asked = client.get(format!("{}/v1/models", gateway.url())).send().await.unwrap();
    assert_eq!(asked.status().as_u16(), 200);
    check_untold(&provider.last(), &key);
    let count = provider.got().len();
    let in_query = client.get(format!("{}/v1/models?key={key}", gateway.url())).send().await.unwrap();
    assert_eq!((in_query.status().as_u16(), provider.got().len()), (400, count), "it would be in the provider's logs");
    assert!(!format!("{:?}", gateway.stop().await).contains(&key));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mistyped_route_is_answered_here_in_the_providers_form() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(patient()).await;
    let client = reqwest::Client::new();
    let check = async |method: reqwest::Method, path: &str, kind: &str| {
        let request = client.request(method, format!("{}{path}", gateway.url())).bearer_auth("sk-mine");
        let answer = request.body("{}").send().await.unwrap();
        assert_eq!(answer.status().as_u16(), 404, "{path}");
        let told = answer.text().await.unwrap();
        assert!(told.contains(kind) && told.contains("no known route"), "{path}: {told}");
        assert!(!told.contains("sk-mine") && !told.contains(&secret(&gateway)), "{told}");
    };
    check(reqwest::Method::POST, "/anthropic/v1/mesages", r#""type":"not_found_error""#).await;
    check(reqwest::Method::POST, "/openai/chat/completion", r#""type":"gateway_error""#).await;
    check(reqwest::Method::POST, "/v1beta/models/g:generateContents", r#""status":"NOT_FOUND""#).await;
    check(reqwest::Method::GET, "/api/v1/conversations", "gateway_error").await;
    check(reqwest::Method::GET, "/inspect/", "gateway_error").await;
    check(reqwest::Method::GET, "/", "gateway_error").await;
    check(reqwest::Method::PUT, "/v1/chat/completions", "gateway_error").await;
    assert!(provider.got().is_empty(), "nothing of it reached the provider");
    let head = client.head(format!("{}/anthropic", gateway.url())).send().await.unwrap();
    assert_eq!(head.status().as_u16(), 200, "a client may look whether anybody is there");
    assert!(provider.got().is_empty());
    let noted = records(&gateway, 7).await;
    assert!(noted.iter().all(|record| record.status == 404 && record.passed.is_some()), "{noted:?}");
}

/// A client that is still writing reads nothing, and takes a closed connection for a fault that it may try again.
#[tokio::test(flavor = "multi_thread")]
async fn who_sends_much_reads_why_it_was_refused() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(patient()).await;
    let long = "x".repeat(4 << 20);
    for (path, expected) in [("/v1/messages".to_owned(), "401"), (format!("/{}/v1/nothing", secret(&gateway)), "404")] {
        for _ in 0..3 {
            let mut stream = tokio::net::TcpStream::connect(gateway.address()).await.unwrap();
            let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n", long.len());
            stream.write_all(head.as_bytes()).await.unwrap();
            stream.write_all(long.as_bytes()).await.unwrap();
            let mut read = [0; 12];
            stream.read_exact(&mut read).await.unwrap();
            assert_eq!(std::str::from_utf8(&read[9..]), Ok(expected), "{path}");
        }
    }
    assert!(provider.got().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_kept_is_kept_by_key() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("settings.py"), "TOKEN = 'only for me'\n").unwrap();
    let own = directory.path().to_str().map(std::sync::Arc::from);
    let (one, two) = (key("one", 'a'), key("two", 'b'));
    let provider = Provider::start().await;
    let options =
        Options { keys: vec![one.clone(), two.clone()], directory: own, references: References::Typed, ..small() };
    let gateway = provider.gateway(options).await;
    let client = reqwest::Client::new();
    let mut agent = Agent::new(Format::Messages, "What is in #settings.py?");
    agent.work(0);
    for key in [&one, &two, &one, &two] {
        for at in agent.requests() {
            let request = client.post(format!("{}/v1/messages", gateway.url_for(key)));
            let answer = request.body(agent.request(at, false)).send().await.unwrap();
            assert_eq!(answer.status().as_u16(), 200);
            assert!(!provider.last().body.contains("only for me"), "nobody reads files of this machine");
            check_untold(&provider.last(), key.secret());
        }
    }
    let count = agent.requests().len();
    let records = records(&gateway, 4 * count).await;
    let of = |from: usize| records[from * count].conversation.clone().unwrap();
    assert!(records[..count].iter().all(|record| record.conversation.as_deref() == Some(&of(0))));
    assert_ne!(of(0), of(1), "the same words of two people are two conversations");
    assert_eq!((of(0), of(1)), (of(2), of(3)));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_sends_headers_slowly_is_hung_up_on() {
    let provider = Provider::start().await;
    let gateway = provider.gateway(Options { header_time: Duration::from_millis(100), ..patient() }).await;
    let mut silent = tokio::net::TcpStream::connect(gateway.address()).await.unwrap();
    let mut slow = tokio::net::TcpStream::connect(gateway.address()).await.unwrap();
    let dripping = tokio::spawn(async move {
        slow.write_all(b"POST / HTTP/1.1\r\nhost: 127.0.0.1\r\n").await.unwrap();
        for n in 0.. {
            let line = format!("x-{n}: 1\r\n");
            if slow.write_all(line.as_bytes()).await.is_err() {
                return n;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        unreachable!("it drips until it is hung up on");
    });
    let mut rest = Vec::new();
    // It ends because the gateway closes the connection.
    let _ = silent.read_to_end(&mut rest).await;
    assert!(dripping.await.unwrap() > 0);
    let (status, _) = post(&gateway, Format::Chat, Agent::new(Format::Chat, "hello").request(1, false)).await;
    assert_eq!(status, 200, "others are served");
}
