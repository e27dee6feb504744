//! A gateway that is asked to stop finishes what it has begun, and nothing else.

use std::convert::Infallible;
use std::future::pending;

use axum::body::Body;
use axum::http::{Response, header};
use bytes::Bytes;
use contexture_gateway::{Gateway, Options, Upstreams};
use futures_util::StreamExt;
use futures_util::stream::unfold;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};

const BEGINNING: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"one\"}}]}\n\n";
const END: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"two\"}}]}\n\ndata: [DONE]\n\n";

/// A provider of chat completions that streams what it is handed, and ends its response with the sender.
async fn streaming_provider() -> (String, mpsc::Sender<&'static str>) {
    let (send, receive) = mpsc::channel::<&'static str>(4);
    let receive = std::sync::Arc::new(std::sync::Mutex::new(Some(receive)));
    let answer = move || {
        let chunks = receive.lock().unwrap().take().unwrap();
        let stream = unfold(chunks, |mut chunks| async move {
            let chunk = chunks.recv().await?;
            Some((Ok::<_, Infallible>(Bytes::from_static(chunk.as_bytes())), chunks))
        });
        let response = Response::builder().header(header::CONTENT_TYPE, "text/event-stream");
        std::future::ready(response.body(Body::from_stream(stream)).unwrap())
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, axum::Router::new().fallback(answer)).await });
    (url, send)
}

/// A client in the middle of a response, with what ends the response.
async fn in_the_middle() -> (Gateway, reqwest::Response, mpsc::Sender<&'static str>) {
    let (url, provider) = streaming_provider().await;
    let options = Options { upstreams: Upstreams::one(&url), ..Options::default() };
    let gateway = Gateway::start("127.0.0.1:0", options).await.unwrap();
    provider.send(BEGINNING).await.unwrap();
    let mut response = reqwest::Client::new()
        .post(format!("{}/v1/chat/completions", gateway.url()))
        .body(r#"{"model":"gpt-5","stream":true,"messages":[{"role":"user","content":"hello"}]}"#)
        .send()
        .await
        .unwrap();
    assert_eq!(response.chunk().await.unwrap().unwrap(), BEGINNING);
    (gateway, response, provider)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_in_progress_is_finished_while_nothing_new_is_accepted() {
    let (gateway, response, provider) = in_the_middle().await;
    let address = gateway.address();
    let stopping = tokio::spawn(gateway.end_after(pending()));
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert!(!stopping.is_finished(), "it waits for the response");
    provider.send(END).await.unwrap();
    drop(provider);
    let rest: Vec<u8> = response.bytes_stream().map(|chunk| chunk.unwrap().to_vec()).concat().await;
    assert_eq!(String::from_utf8(rest).unwrap(), END, "the client got all of it");
    let receipt = stopping.await.unwrap();
    assert_eq!(receipt.requests, 1, "and it is on the receipt");
    assert!(receipt.failed.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_response_that_does_not_end_holds_it_only_for_as_long_as_there_is_patience() {
    let (gateway, _response, _provider) = in_the_middle().await;
    let (impatient, patience) = oneshot::channel::<()>();
    let stopping = tokio::spawn(gateway.end_after(async { drop(patience.await) }));
    impatient.send(()).unwrap();
    // It returns, which is all that is asked here.
    stopping.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_does_not_hold_it() {
    let gateway = Gateway::start("127.0.0.1:0", Options { is_supervised: true, ..Options::default() }).await.unwrap();
    let client = reqwest::Client::new();
    // The client keeps the connection for later.
    let answer = client.get(format!("http://{}/contexture/health", gateway.address())).send().await.unwrap();
    assert_eq!(answer.text().await.unwrap(), "ok\n");
    assert_eq!(gateway.end_after(pending()).await.requests, 0);
}
