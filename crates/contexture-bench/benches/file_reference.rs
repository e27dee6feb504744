//! The cost of the layer `file-reference` per turn, over real files.
//!
//! Run with `cargo bench -p contexture-bench --bench file_reference [-- unchanged|changed|new|trim]`. Each figure is the least and the median of many runs: the least is
//! what it costs, the median says how quiet the machine was.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture::bpe::Bpe;
use contexture::fs::LocalFs;
use contexture::layers::FileReferenceOptions;
use contexture::layers::file_reference::testing::Conversation;
use contexture::tokens::TokenCounter;
use tokio::runtime::Runtime;

const FILE_BYTES: usize = 10_000;
const BUDGET: u64 = 8_000;

/// A real token counter. Under another name it is a different counter, for which nothing is cached.
struct O200k {
    name: String,
    counter: Bpe,
}

impl O200k {
    fn named(name: &str) -> Arc<Self> {
        Arc::new(Self { name: name.to_owned(), counter: Bpe::o200k() })
    }
}

impl TokenCounter for O200k {
    fn name(&self) -> &str {
        &self.name
    }

    fn count(&self, text: &str) -> u64 {
        self.counter.count(text)
    }

    fn count_until(&self, text: &str, limit: u64) -> Option<u64> {
        self.counter.count_until(text, limit)
    }

    fn head(&self, text: &str, tokens: u64) -> usize {
        self.counter.head(text, tokens)
    }

    fn tail(&self, text: &str, tokens: u64) -> usize {
        self.counter.tail(text, tokens)
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let dir = tempfile::tempdir().expect("a directory");
    let wanted = std::env::args().nth(1).filter(|argument| !argument.starts_with('-')).unwrap_or_default();
    let run = |name: &str, bench: &dyn Fn()| {
        if name.contains(&wanted) {
            bench();
        }
    };
    for count in [10, 100, 1000] {
        run("unchanged", &|| unchanged(&runtime, dir.path(), count));
    }
    run("changed", &|| one_changed(&runtime, dir.path(), 1000));
    run("new", &|| take_in(&runtime, dir.path(), 1000));
    run("trim", &|| trim(&runtime, dir.path()));
}

/// Files of ten kilobytes of code in folders of twenty, and the message that names them all.
fn project(base: &Path, count: usize) -> String {
    let mut message = String::new();
    for n in 0..count {
        let folder = format!("src/module{:03}", n / 20);
        fs::create_dir_all(base.join(&folder)).expect("a folder");
        let path = format!("{folder}/file{n:04}.rs");
        fs::write(base.join(&path), code(n)).expect("a file");
        message.push_str(&format!("#{path} "));
    }
    message
}

fn code(seed: usize) -> String {
    let mut text = String::with_capacity(FILE_BYTES + 100);
    let mut n = seed;
    while text.len() < FILE_BYTES {
        n = n.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let (a, b) = (n % 977, n / 977 % 991);
        text.push_str(&format!("    let value_{a} = compute(input[{b}], {});\n", n % 89));
    }
    text
}

fn talk(base: &Path) -> Conversation {
    let files = Arc::new(LocalFs::open(base).expect("the base"));
    // Without ageing, because a benchmark has more turns than a file stays in use.
    let options = FileReferenceOptions { ageing_turns: None, ..FileReferenceOptions::default() };
    let mut talk = Conversation::new(files, options).expect("sensible options");
    talk.budget = BUDGET;
    talk.with_counter(O200k::named("o200k"))
}

fn unchanged(runtime: &Runtime, dir: &Path, count: usize) {
    let base = dir.join(format!("unchanged{count}"));
    let message = project(&base, count);
    let mut talk = talk(&base);
    settle();
    runtime.block_on(talk.ask(&message));
    report(&format!("a turn with {count} unchanged files"), 300, || {
        let start = Instant::now();
        runtime.block_on(talk.ask("thanks, and now tell me how the weather is in Lisbon"));
        start.elapsed()
    });
}

fn one_changed(runtime: &Runtime, dir: &Path, count: usize) {
    let base = dir.join("changed");
    let message = project(&base, count);
    let mut talk = talk(&base);
    settle();
    runtime.block_on(talk.ask(&message));
    let changes = [
        ("none", None),
        ("one, named only", Some("src/module025/file0501.rs")),
        ("one, shown", Some("src/module000/file0000.rs")),
    ];
    for (which, path) in changes {
        let mut seed = 1_000_000;
        report(&format!("a turn after a pause, {count} files, changed: {which}"), 100, || {
            seed += 1;
            if let Some(path) = path {
                fs::write(base.join(path), code(seed)).expect("a file");
            }
            // A file read before its stamp settles is read again, which would be measured with the next turn.
            settle();
            let start = Instant::now();
            runtime.block_on(talk.ask("thanks, and now tell me how the weather is in Lisbon"));
            start.elapsed()
        });
    }
}

fn take_in(runtime: &Runtime, dir: &Path, count: usize) {
    let base = dir.join("new");
    let message = project(&base, count);
    report(&format!("taking in {count} new files"), 20, || {
        let mut talk = talk(&base);
        let start = Instant::now();
        runtime.block_on(talk.ask(&message));
        start.elapsed()
    });
}

fn trim(runtime: &Runtime, dir: &Path) {
    let base = dir.join("large");
    fs::create_dir_all(&base).expect("a folder");
    let text: String = (0..).map(code).take(104).collect();
    fs::write(base.join("large.rs"), text).expect("a file");
    let mut talk = talk(&base);
    talk.budget = 2_000;
    runtime.block_on(talk.ask("#large.rs"));
    let mut run = 0;
    report("trimming 1 MB to 2 000 tokens", 300, || {
        run += 1;
        talk.counter = O200k::named(&run.to_string());
        let start = Instant::now();
        runtime.block_on(talk.recall());
        start.elapsed()
    });
}

/// Waits until stamps taken now can be trusted.
fn settle() {
    std::thread::sleep(Duration::from_millis(40));
}

fn report(what: &str, runs: usize, mut run: impl FnMut() -> Duration) {
    let mut took: Vec<Duration> = (0..runs).map(|_| run()).collect();
    took.sort_unstable();
    let micros = |duration: Duration| duration.as_secs_f64() * 1e6;
    println!("{what}: least {:.1} µs, median {:.1} µs", micros(took[0]), micros(took[runs / 2]));
}
