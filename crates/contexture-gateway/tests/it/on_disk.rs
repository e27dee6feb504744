//! Files that folds show, compared with the agent's disk: wherever the agent works, and whatever becomes of the disk.

use std::path::Path;

use contexture::wire::Format;
use contexture_gateway::{Options, Receipt};
use serde_json::json;

use super::agent::{Agent, file_text, numbered};
use super::played::{play, play_some, records, small};
use super::provider::Provider;

/// An agent that reads modules, some by a path from where it is.
struct Reader {
    agent: Agent,
    /// What is before the name of a module, as the agent writes it.
    prefix: String,
}

impl Reader {
    fn new(task: &str, prefix: &str) -> Self {
        Self { agent: Agent::new(Format::Messages, task), prefix: prefix.to_owned() }
    }

    fn read(&mut self, modules: std::ops::Range<usize>) {
        for module in modules {
            let path = format!("{}module_{module}.rs", self.prefix);
            let output = numbered(&file_text(module, 0, 160));
            self.agent.call("I read.", "Read", json!({"file_path": path}), &output);
        }
    }

    /// What is sent for the last request of a conversation in which something happens in the middle, and the receipt.
    async fn sent(mut self, base: &Path, happens: impl FnOnce()) -> (String, Receipt) {
        let provider = Provider::start().await;
        let directory = base.to_str().map(std::sync::Arc::from);
        let gateway = provider.gateway(Options { directory, budget: Some(24_000), ..small() }).await;
        self.read(0..6);
        play(&gateway, &provider, &self.agent).await;
        happens();
        self.read(6..10);
        let requests = self.agent.requests();
        play_some(&gateway, &provider, &self.agent, &requests[7..]).await;
        let receipt = Receipt::of(&records(&gateway, requests.len()).await);
        (provider.last().body, receipt)
    }
}

fn write(directory: &Path) {
    std::fs::create_dir_all(directory).unwrap();
    for module in 0..10 {
        std::fs::write(directory.join(format!("module_{module}.rs")), file_text(module, 0, 160)).unwrap();
    }
}

/// The headings of views in a request.
fn headings(body: &str) -> Vec<String> {
    let found = body.split("\\n").filter(|line| line.starts_with("## `"));
    found.map(str::to_owned).collect()
}

#[track_caller]
fn check(body: &str, receipt: &Receipt, why: Option<&str>) {
    let headings = headings(body);
    assert!(headings.len() > 2, "{headings:#?}");
    for heading in &headings {
        match why {
            Some(why) => assert!(heading.contains(&format!("not compared ({why}), as seen at message ")), "{heading}"),
            None => assert!(heading.contains("verified on disk"), "{heading}"),
        }
    }
    assert!(!body.contains("is gone from the disk"));
    assert_eq!(receipt.not_compared.keys().map(String::as_str).collect::<Vec<_>>(), Vec::from_iter(why));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_is_not_what_it_was_is_not_compared() {
    let place = tempfile::tempdir().unwrap();
    let base = place.path().join("project");
    for (why, is_made_again) in [("the directory is gone", false), ("the directory is another one now", true)] {
        write(&base);
        let prefix = format!("{}/", base.display());
        let happens = || {
            std::fs::rename(&base, place.path().join(format!("moved-{is_made_again}"))).unwrap();
            if is_made_again {
                write(&base);
            }
        };
        let (body, receipt) = Reader::new("Look at all modules.", &prefix).sent(&base, happens).await;
        check(&body, &receipt, Some(why));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_became_links_are_not_compared() {
    let place = tempfile::tempdir().unwrap();
    let base = place.path().join("project");
    write(&base.join("src"));
    let prefix = format!("{}/src/", base.display());
    let happens = || {
        std::fs::rename(base.join("src"), base.join("other")).unwrap();
        std::os::unix::fs::symlink("other", base.join("src")).unwrap();
    };
    let (body, receipt) = Reader::new("Look at all modules.", &prefix).sent(&base, happens).await;
    check(&body, &receipt, Some("it is a link"));
}

/// `codex -C sub` is started in one directory and works in another.
#[tokio::test(flavor = "multi_thread")]
async fn relative_paths_are_in_the_directory_that_the_conversation_names() {
    let place = tempfile::tempdir().unwrap();
    let base = place.path().join("project");
    write(&base.join("sub"));
    // Other files of the same names.
    for module in 0..10 {
        std::fs::write(base.join(format!("module_{module}.rs")), "another file\n").unwrap();
    }
    let context =
        |directory: &Path| format!("<environment_context>\n<cwd>{}</cwd>\n</environment_context>", directory.display());
    let (body, receipt) = Reader::new(&context(&base.join("sub")), "").sent(&base, || {}).await;
    check(&body, &receipt, None);
    let (body, receipt) = Reader::new("Look at all modules.", "").sent(&base, || {}).await;
    check(&body, &receipt, Some("the directory of its path is not known"));
    let (body, receipt) = Reader::new(&context(place.path()), "").sent(&base, || {}).await;
    check(&body, &receipt, Some("it is outside of the directory"));
}
