//! The client of the demo: it sends recorded requests to the gateway, at the times of the recording.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use contexture::clock::Clock;
use contexture::host::SystemClock;
use futures_util::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A clock with the time of the recording, so that pauses count as they were.
#[derive(Default)]
pub struct RecordedClock {
    now_ms: AtomicU64,
    system: SystemClock,
}

impl RecordedClock {
    /// Sets the time, in milliseconds since the Unix epoch.
    pub fn set(&self, now_ms: u64) {
        self.now_ms.store(now_ms, Ordering::Relaxed);
    }
}

impl Clock for RecordedClock {
    fn now(&self) -> Duration {
        Duration::from_millis(self.now_ms.load(Ordering::Relaxed))
    }

    fn monotonic(&self) -> Duration {
        self.system.monotonic()
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.system.sleep(duration)
    }
}

/// Sends a request, and returns its status and the whole response.
///
/// # Errors
/// The connection failed, or what came is no response.
pub async fn post(gateway: SocketAddr, path: &str, body: &str) -> io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(gateway).await?;
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: {gateway}\r\nx-api-key: none\r\nanthropic-version: 2023-06-01\r\n\
         content-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    let mut response = Vec::new();
    stream.read_to_end(&mut response).await?;
    let response = String::from_utf8_lossy(&response).into_owned();
    let status = response.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "no HTTP response came back"))?;
    Ok((status, response))
}
