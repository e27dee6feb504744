//! Reads the body of a request into one piece of memory.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;

/// Largest body that is accepted.
pub(crate) const MOST_BYTES: usize = 512 << 20;

/// Most bytes that are reserved because a client announces them.
const MOST_RESERVED: usize = 64 << 20;

/// Most bytes of a refused request that are read and thrown away, and the longest time for that.
const MOST_DISCARDED: usize = 64 << 20;
const DISCARD_TIME: Duration = Duration::from_secs(5);

/// Reads what the client of a refused request still sends: while it writes, it does not read why it was refused, and a
/// connection that is closed under it tells it nothing.
pub async fn discard(body: Body) {
    discard_rest(&mut body.into_data_stream()).await;
}

async fn discard_rest(chunks: &mut BodyDataStream) {
    let read = async {
        let mut length = 0;
        while let Some(Ok(chunk)) = chunks.next().await {
            length += chunk.len();
            if length > MOST_DISCARDED {
                return;
            }
        }
    };
    // Who takes longer is cut off.
    let _ = tokio::time::timeout(DISCARD_TIME, read).await;
}

/// Reads a body of at most so many bytes. `None` if it is larger, or breaks off.
pub async fn collected(headers: &HeaderMap, body: Body, most: usize) -> Option<Bytes> {
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    let mut chunks = body.into_data_stream();
    if announced.is_some_and(|length| length > most) {
        discard_rest(&mut chunks).await;
        return None;
    }
    let Some(first) = chunks.next().await else { return Some(Bytes::new()) };
    let first = first.ok()?;
    if announced == Some(first.len()) {
        return Some(first);
    }
    // With the whole length reserved, nothing is copied while it grows.
    let mut whole = BytesMut::with_capacity(announced.unwrap_or(0).min(MOST_RESERVED).max(first.len()));
    whole.extend_from_slice(&first);
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.ok()?;
        if whole.len() + chunk.len() > most {
            discard_rest(&mut chunks).await;
            return None;
        }
        whole.extend_from_slice(&chunk);
    }
    (announced.is_none_or(|length| length == whole.len())).then(|| whole.freeze())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn body(chunks: &[&'static str]) -> Body {
        let chunks: Vec<Result<Bytes, std::io::Error>> =
            chunks.iter().map(|chunk| Ok(Bytes::from_static(chunk.as_bytes()))).collect();
        Body::from_stream(futures_util::stream::iter(chunks))
    }

    #[tokio::test]
    async fn a_body_is_whole_or_nothing() {
        let plain = HeaderMap::new();
        assert_eq!(collected(&plain, body(&["ab", "cd"]), 4).await.as_deref(), Some(&b"abcd"[..]));
        assert_eq!(collected(&plain, body(&["ab", "cde"]), 4).await, None);
        assert_eq!(collected(&plain, body(&[]), 4).await.as_deref(), Some(&b""[..]));
        let announced = |length: &'static str| {
            HeaderMap::from_iter([(header::CONTENT_LENGTH, header::HeaderValue::from_static(length))])
        };
        assert_eq!(collected(&announced("4"), body(&["ab", "cd"]), 4).await.as_deref(), Some(&b"abcd"[..]));
        assert_eq!(collected(&announced("5"), body(&["ab", "cd"]), 9).await, None, "it broke off");
        assert_eq!(collected(&announced("99999999999"), body(&["ab"]), 9).await, None, "nothing is reserved for it");
    }
}
