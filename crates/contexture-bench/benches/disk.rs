//! The cost of comparing files with the disk: 50 files of 10 kB that an agent has read whole.
//!
//! Run with `cargo bench -p contexture-bench --bench disk`. Each figure is the minimum and the median of many runs: the
//! minimum is the cost, the median shows how much other load the machine had.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture::files::disk::{Gate, OnDisk, Wanted};
use contexture::files::model::{Compared, FileModel, Found, Verified};
use contexture::files::numbering::Passage;
use contexture::files::observation::Observation;
use contexture::fs::LocalFs;
use contexture::host::FsAdapter;
use tokio::runtime::Runtime;

const FILES: usize = 50;
const FILE_BYTES: usize = 10_000;
const RUNS: usize = 300;

/// Longer than the time stamp resolution of file systems.
const SETTLING: Duration = Duration::from_millis(60);

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let dir = tempfile::tempdir().expect("a directory");
    let mut model = read_project(dir.path());
    let files: Arc<dyn FsAdapter> = Arc::new(LocalFs::open(dir.path()).expect("the base"));
    std::thread::sleep(SETTLING);
    let first = || {
        let (gate, mut model) = (Gate::default(), model.clone());
        timed(|| check(&runtime, &files, &gate, &mut model))
    };
    report(&format!("{FILES} files compared for the first time"), first);
    let gate = Gate::default();
    check(&runtime, &files, &gate, &mut model);
    report(&format!("{FILES} unchanged files compared again"), || timed(|| check(&runtime, &files, &gate, &mut model)));
}

/// Files in folders of ten, and the knowledge of an agent that has read them.
fn read_project(base: &Path) -> FileModel {
    let mut model = FileModel::new();
    for n in 0..FILES {
        let (folder, mut text) = (format!("src/module{}", n / 10), String::new());
        while text.len() < FILE_BYTES {
            let line = text.len();
            text.push_str(&format!("    let value_{n}_{line} = compute(input[{line}], {n});\n"));
        }
        let path = format!("{folder}/file{n}.rs");
        fs::create_dir_all(base.join(&folder)).expect("a folder");
        fs::write(base.join(&path), &text).expect("a file");
        model.apply(1, &Observation::Read { path, block: Passage::plain(Some(1), &text), whole: true });
    }
    model
}

/// Checks all files and applies the result, which must equal what is known.
fn check(runtime: &Runtime, files: &Arc<dyn FsAdapter>, gate: &Gate, model: &mut FileModel) {
    let wanted = model.files().iter().enumerate().map(|(file, state)| Wanted {
        file,
        path: state.path.clone(),
        is_as_compared: model.is_as_compared(file),
    });
    let found = runtime.block_on(gate.look(files, &wanted.collect::<Vec<_>>(), std::future::pending()));
    assert_eq!(found.len(), FILES);
    for (file, on_disk) in found {
        let compared = match on_disk {
            OnDisk::Unchanged => Some(Compared { file, found: Found::Unchanged }),
            OnDisk::Gone => model.compare(file, None),
            OnDisk::NotCompared(why) => model.not_compared(file, why),
            OnDisk::Text(text) => model.compare(file, Some(&text)),
        };
        let compared = compared.expect("all files are known");
        assert_eq!(model.take_over(2, &compared), Verified::Same);
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn report(what: &str, mut run: impl FnMut() -> Duration) {
    let mut times: Vec<Duration> = (0..RUNS).map(|_| run()).collect();
    times.sort();
    println!("{what}: least {:?}, median {:?}", times[0], times[RUNS / 2]);
}
