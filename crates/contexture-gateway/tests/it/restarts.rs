//! A gateway that ends and starts again goes on with the same bytes.

use contexture::wire::Format;
use contexture_gateway::{Options, open_store};

use super::played::{long, play, play_some, records, small};
use super::provider::Provider;

/// How the agent of the tests says that a request of Gemini's is streamed.
const STREAMED: &str = r#""labels":{"stream":"true"},"#;

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_the_same_bytes_are_sent() {
    for format in Format::ALL {
        let agent = long(format, 14);
        let requests = agent.requests();
        let directory = tempfile::tempdir().unwrap();
        let store = Some(directory.path().join("state/gateway.db"));
        let mut sent = Vec::new();
        let provider = Provider::start().await;
        // The store's door makes shortened outputs name a command, so all of it runs with one.
        let whole = tempfile::tempdir().unwrap();
        let options = Options { store: Some(whole.path().join("gateway.db")), ..small() };
        // Each has a provider of its own: what is found in its cache decides how much a fold leaves.
        let other = Provider::start().await;
        let with_store = play(&other.gateway(options).await, &other, &agent).await;
        for part in requests.chunks(17) {
            let options = Options { store: store.clone(), ..small() };
            let gateway = provider.gateway(options).await;
            sent.extend(play_some(&gateway, &provider, &agent, part).await);
            gateway.stop().await;
        }
        let plain = |bodies: &[String]| -> Vec<String> {
            bodies
                .iter()
                .map(|body| body.replace("\"stream\":true", "\"stream\":false").replace(STREAMED, ""))
                .collect()
        };
        let (sent, with_store) = (plain(&sent), plain(&with_store));
        let differs = sent.iter().zip(&with_store).position(|(one, two)| one != two);
        assert_eq!(differs, None, "{format:?}");
        assert_eq!(sent.len(), requests.len());
    }
}

/// What is answered to a client between two runs on a store is in its history, and the store knows nothing of it.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_beside_the_store_is_named_once() {
    for format in Format::ALL {
        let (provider, directory) = (Provider::start().await, tempfile::tempdir().unwrap());
        let stored = || Options { store: Some(directory.path().join("gateway.db")), ..small() };
        let (agent, mut unknown) = (long(format, 8), Vec::new());
        let requests = agent.requests();
        for (options, part) in [(stored(), &requests[..5]), (small(), &requests[5..8]), (stored(), &requests[8..10])] {
            let gateway = provider.gateway(options).await;
            play_some(&gateway, &provider, &agent, part).await;
            unknown.extend(records(&gateway, part.len()).await.iter().map(|record| record.unknown));
            gateway.stop().await;
        }
        assert_eq!(unknown, [0, 0, 0, 0, 0, 0, 0, 0, 3, 0], "{format:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_texts_only_what_requests_cost_is_kept_and_a_restart_folds_anew() {
    let (provider, directory) = (Provider::start().await, tempfile::tempdir().unwrap());
    let path = directory.path().join("gateway.db");
    let options = || Options { store: Some(path.clone()), keeps_texts: false, ..small() };
    let agent = long(Format::Messages, 12);
    let requests = agent.requests();
    let (first, rest) = requests.split_at(requests.len() - 2);
    let gateway = provider.gateway(options()).await;
    play_some(&gateway, &provider, &agent, first).await;
    let folds = gateway.end().await.folds.len();
    assert!(folds > 0);
    for file in std::fs::read_dir(directory.path()).unwrap() {
        let bytes = std::fs::read(file.unwrap().path()).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("bring all modules") && !text.contains("Contexture's note"), "no text is there");
    }
    assert_eq!(open_store(&path).unwrap().requests(None).unwrap().len(), first.len());
    let gateway = provider.gateway(options()).await;
    assert!(gateway.notes().iter().any(|note| note.contains("folded anew")), "{:?}", gateway.notes());
    play_some(&gateway, &provider, &agent, rest).await;
    assert!(!gateway.end().await.folds.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_store_nothing_is_kept() {
    let directory = tempfile::tempdir().unwrap();
    let provider = Provider::start().await;
    let gateway = provider.gateway(small()).await;
    play(&gateway, &provider, &long(Format::Chat, 12)).await;
    gateway.stop().await;
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_forgotten_is_gone_from_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("gateway.db");
    let provider = Provider::start().await;
    let gateway = provider.gateway(Options { store: Some(path.clone()), ..small() }).await;
    let mut agent = long(Format::Messages, 10);
    let secret = "a very special marker of this output";
    let output: String = (0..4_000).map(|n| format!("line {n} of the log\n")).collect();
    agent.call("Logs.", "Bash", serde_json::json!({"command": "cat log"}), &format!("{output}{secret}\n{output}"));
    play(&gateway, &provider, &agent).await;
    gateway.stop().await;
    let store = open_store(&path).unwrap();
    let holds = || {
        let files =
            std::fs::read_dir(directory.path()).unwrap().map(|file| std::fs::read(file.unwrap().path()).unwrap());
        files.into_iter().any(|bytes| String::from_utf8_lossy(&bytes).contains(secret))
    };
    assert!(holds(), "what was shortened can be shown");
    assert!(store.forget(None).unwrap() >= 1);
    assert!(!holds());
    assert!(store.requests(None).unwrap().is_empty());
}

#[cfg(unix)]
#[tokio::test(flavor = "multi_thread")]
async fn only_its_owner_can_read_the_store() {
    use std::os::unix::fs::PermissionsExt;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a/b/gateway.db");
    let provider = Provider::start().await;
    let gateway = provider.gateway(Options { store: Some(path.clone()), ..small() }).await;
    play(&gateway, &provider, &long(Format::Chat, 3)).await;
    for file in std::fs::read_dir(path.parent().unwrap()).unwrap() {
        let mode = file.unwrap().metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o}");
    }
    assert_eq!(std::fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o077, 0);
}
