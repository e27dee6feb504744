//! What is sent for recordings, as digests by which two versions of the gateway are compared.
//!
//! `RECORDINGS=DIR STORES=DIR cargo test -p contexture-server --test it compared -- --ignored --nocapture` prints a line
//! for each recording. The store after its first half is kept in `STORES`; where one is kept already, maybe by another
//! version, only the second half is sent, with that store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use contexture::clock::Clock;
use contexture::transcript::Transcript;
use contexture::wire::Format;
use contexture_server::testing::recorded::Recorded;
use contexture_server::{Options, RequestRecord};
use futures_util::future::BoxFuture;
use serde_json::json;

use super::provider::{Provider, patient, post};

/// The budgets at which recordings are sent, in turn.
const BUDGETS: [u64; 3] = [16_000, 32_000, 64_000];

/// A clock that stands still, so that no cache expires between two versions.
struct Still;

impl Clock for Still {
    fn now(&self) -> Duration {
        Duration::from_secs(1_750_000_000)
    }

    fn monotonic(&self) -> Duration {
        self.now()
    }

    fn sleep(&self, time: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(time))
    }
}

/// What is the same of a record whenever the same is sent.
fn lasting(record: &RequestRecord) -> String {
    let RequestRecord { is_changed, passed, is_unsaved, decided, usage, bill, would_send, .. } = record;
    json!([is_changed, passed, is_unsaved, decided, usage, bill, would_send]).to_string()
}

/// Sends some requests of a recording through a gateway with a store. Returns a digest of all that was sent and noted.
async fn send(
    provider: &Provider,
    options: Options,
    (format, recorded): (Format, &Recorded),
    numbers: std::ops::Range<usize>,
) -> String {
    let gateway = provider.gateway(options).await;
    let mut hasher = blake3::Hasher::new();
    for number in numbers {
        let (status, answer) = post(&gateway, format, recorded.request(number)).await;
        assert_eq!(status, 200, "{answer}");
        hasher.update(provider.last().body.as_bytes());
    }
    for record in gateway.stop().await {
        hasher.update(lasting(&record).as_bytes());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

async fn compare(at: usize, path: &Path, stores: Option<&Path>) {
    let bytes = std::fs::read(path).unwrap();
    let Ok((transcript, _)) = Transcript::read(bytes.as_slice()) else { return };
    let format = Format::ALL[at % Format::ALL.len()];
    let recorded = Recorded::new(format, &transcript.records);
    let name = path.file_stem().unwrap().to_str().unwrap();
    let directory = tempfile::tempdir().unwrap();
    let store = directory.path().join("gateway.db");
    let kept = stores.map(|stores| stores.join(format!("{name}.db")));
    let provider = Provider::start().await;
    let budget = Some(BUDGETS[at / 3 % 3]);
    let options = || Options { store: Some(store.clone()), budget, clock: Arc::new(Still), ..patient() };
    let half = recorded.len() / 2;
    let first = match kept.as_ref().filter(|kept| kept.exists()) {
        Some(kept) => {
            std::fs::copy(kept, &store).unwrap();
            "kept".to_owned()
        }
        None => send(&provider, options(), (format, &recorded), 0..half).await,
    };
    if let Some(kept) = kept.filter(|kept| !kept.exists()) {
        // Everything is moved from the log of writes into the file when the last connection is closed.
        std::fs::copy(&store, kept).unwrap();
    }
    let second = send(&provider, options(), (format, &recorded), half..recorded.len()).await;
    println!("{name} {format:?} {} {first} {second}", recorded.len());
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs recordings, and tells something only beside another version"]
async fn what_is_sent_for_recordings_is_compared() {
    let directory = std::env::var_os("RECORDINGS").expect("RECORDINGS names a directory");
    let stores = std::env::var_os("STORES").map(PathBuf::from);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for (at, path) in paths.iter().enumerate() {
        compare(at, path, stores.as_deref()).await;
    }
}
