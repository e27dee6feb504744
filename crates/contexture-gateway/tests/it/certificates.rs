//! Providers whose certificate the system does not trust, as with a proxy of a company.
//!
//! The certificates in `certificates/` are for 127.0.0.1, from an authority that was made for these tests.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

use contexture::wire::Format;
use contexture_gateway::{ExtraRoots, Gateway, Options, Upstreams};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::provider::post;

const AUTHORITY: &[u8] = include_bytes!("certificates/authority.pem");
const SERVER: &[u8] = include_bytes!("certificates/server.pem");
const SERVER_KEY: &[u8] = include_bytes!("certificates/server.key");

/// A provider that speaks TLS and always says the same.
fn provider() -> SocketAddr {
    let chain = CertificateDer::pem_slice_iter(SERVER).map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_slice(SERVER_KEY).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = Arc::new(config.with_no_client_auth().with_single_cert(chain, key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let config = config.clone();
            // A client that does not trust it hangs up.
            std::thread::spawn(move || answer(config, stream));
        }
    });
    address
}

fn answer(config: Arc<ServerConfig>, stream: TcpStream) -> std::io::Result<()> {
    let stream = StreamOwned::new(ServerConnection::new(config).unwrap(), stream);
    let mut reader = BufReader::new(stream);
    let (mut line, mut length) = (String::new(), 0);
    loop {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Ok(());
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length])?;
    let body =
        r#"{"id":"chat_1","object":"chat.completion","choices":[],"usage":{"prompt_tokens":1,"completion_tokens":1}}"#;
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length:";
    write!(reader.get_mut(), "{head} {}\r\n\r\n{body}", body.len())?;
    reader.get_mut().flush()
}

async fn asked(roots: ExtraRoots) -> (u16, String) {
    let upstreams = Upstreams::one(&format!("https://{}/v1", provider()));
    let options = Options { upstreams, extra_roots: roots, ..Options::default() };
    let gateway = Gateway::start("127.0.0.1:0", options).await.unwrap();
    post(&gateway, Format::Chat, r#"{"model":"m","messages":[{"role":"user","content":"hi"}]}"#.to_owned()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_nobody_trusts_is_said_to_be_the_reason() {
    let (status, answer) = asked(ExtraRoots::default()).await;
    assert_eq!(status, 502);
    assert!(answer.contains("has a certificate whose issuer this machine does not trust"), "{answer}");
    assert!(answer.contains("NODE_EXTRA_CA_CERTS") && answer.contains("SSL_CERT_FILE"), "{answer}");
    assert!(!answer.contains("cannot be reached"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn more_authorities_can_be_trusted() {
    let roots = ExtraRoots::read(AUTHORITY).unwrap();
    assert_eq!(roots.count(), 1);
    let (status, answer) = asked(roots).await;
    assert_eq!(status, 200, "{answer}");
}

#[test]
fn what_is_no_certificate_is_refused() {
    let read = |text: &[u8]| ExtraRoots::read(text).err().unwrap();
    assert_eq!(read(b""), "there is no certificate in it");
    assert_eq!(read(b"hello"), "there is no certificate in it");
    assert_eq!(read(SERVER_KEY), "there is no certificate in it");
    let cut = &AUTHORITY[..AUTHORITY.len() / 2];
    assert!(!read(cut).is_empty());
    let wrong = "-----BEGIN CERTIFICATE-----\naGVsbG8=\n-----END CERTIFICATE-----\n";
    assert!(read(wrong.as_bytes()).starts_with("certificate 1: "));
}
