//! Between programs and their database: passes bytes on, cuts connections and delays what is on its way.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Passes bytes on, and cuts every connection after some of them.
pub struct Proxy {
    pub port: u16,
    cuts: Arc<AtomicU64>,
    task: tokio::task::JoinHandle<()>,
}

/// What a proxy does to connections.
#[derive(Clone, Copy, Debug)]
pub struct Faults {
    /// A connection is cut after this many bytes in one direction, or up to twice as many.
    pub least: u64,
    /// Whether requests are cut as well as responses.
    pub cuts_requests: bool,
    /// One piece of bytes in this many is delayed; none if it is 0.
    pub delays_one_in: u64,
    /// For how long.
    pub delay: Duration,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Numbers that look random and are the same every time.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }
}

impl Proxy {
    /// Cuts responses after a number of bytes that differs from one to the next, between `least` and twice as many.
    pub async fn start(server: u16, least: u64, seed: u64) -> Self {
        let faults = Faults { least, cuts_requests: false, delays_one_in: 0, delay: Duration::ZERO };
        Self::with(server, faults, seed).await
    }

    pub async fn with(server: u16, faults: Faults, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let cuts = Arc::new(AtomicU64::new(0));
        let counter = cuts.clone();
        let task = tokio::spawn(async move {
            let mut numbers = Numbers(seed);
            loop {
                // A connection that ends while it is accepted is no reason to stop.
                let Ok((client, _)) = listener.accept().await else { continue };
                tokio::spawn(pass(client, server, faults, numbers.next(), counter.clone()));
            }
        });
        Self { port, cuts, task }
    }

    pub fn cuts(&self) -> u64 {
        self.cuts.load(Ordering::Relaxed)
    }
}

async fn pass(client: TcpStream, server: u16, faults: Faults, seed: u64, cuts: Arc<AtomicU64>) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else { return };
    let mut numbers = Numbers(seed);
    let mut limit = || faults.least + numbers.next() % faults.least.max(1);
    // Requests are longer than responses.
    let (up, down) = (if faults.cuts_requests { limit() * 12 } else { u64::MAX }, limit());
    let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
    let is_cut = tokio::select! {
        is_cut = carry(from_client, to_server, up, faults, seed ^ 1) => is_cut,
        is_cut = carry(from_server, to_client, down, faults, seed ^ 2) => is_cut,
    };
    cuts.fetch_add(u64::from(is_cut), Ordering::Relaxed);
}

/// Returns whether the limit was reached. Half of a message may have arrived then; who sent it has done its work.
async fn carry(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    mut left: u64,
    faults: Faults,
    seed: u64,
) -> bool {
    let (mut buffer, mut numbers) = (vec![0; 4_096], Numbers(seed));
    loop {
        let Ok(count) = from.read(&mut buffer).await else { return false };
        if count == 0 {
            return false;
        }
        if faults.delays_one_in > 0 && numbers.next().is_multiple_of(faults.delays_one_in) {
            tokio::time::sleep(faults.delay).await;
        }
        if count as u64 >= left {
            // If it cannot be written, the connection is cut all the same.
            let _ = to.write_all(&buffer[..usize::try_from(left).unwrap_or(0).min(count)]).await;
            return true;
        }
        left -= count as u64;
        if to.write_all(&buffer[..count]).await.is_err() {
            return false;
        }
    }
}
