//! A disk that is slow, hung, or not what it was: nothing waits for it, and nothing wrong is said of it.

use std::future::{pending, ready};
use std::sync::{Arc, Mutex};

use contexture_core::BoxFuture;
use contexture_core::host::{Base, FileError, FileErrorCode, FileStamp, FileText, FsAdapter, NoFiles, ReadLimits};
use contexture_core::testing::MemoryFs;
use contexture_files::disk::{Gate, NotCompared, OnDisk, RelativePaths, Wanted};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Semaphore;

/// Files of which those whose names begin with `slow` are only seen when a permit is given for each operation.
struct SlowFiles {
    files: MemoryFs,
    permits: Semaphore,
    base: Mutex<Base>,
    /// What is refused, and why.
    refused: Mutex<Option<FileErrorCode>>,
    /// Operations that were begun: stamps, and reads.
    begun: Mutex<(usize, usize)>,
}

impl SlowFiles {
    fn new(names: &[String]) -> Arc<Self> {
        let files = MemoryFs::new();
        names.iter().for_each(|name| files.set(name, format!("text of {name}\n")));
        let base = Base::Here { names: vec!["/srv/app".to_owned()], device: None };
        Arc::new(Self {
            files,
            permits: Semaphore::new(0),
            base: Mutex::new(base),
            refused: Mutex::default(),
            begun: Mutex::default(),
        })
    }

    async fn pass(&self, path: &str) -> Result<(), FileError> {
        if path.starts_with("slow") {
            self.permits.acquire().await.unwrap().forget();
        }
        let refused = *self.refused.lock().unwrap();
        refused.map_or(Ok(()), |code| Err(FileError::new(code, path, "it is refused")))
    }

    fn begun(&self) -> (usize, usize) {
        *self.begun.lock().unwrap()
    }
}

impl FsAdapter for SlowFiles {
    fn stat<'a>(&'a self, path: &'a str, limits: ReadLimits) -> BoxFuture<'a, Result<FileStamp, FileError>> {
        self.begun.lock().unwrap().0 += 1;
        Box::pin(async move {
            self.pass(path).await?;
            self.files.stat(path, limits).await
        })
    }

    fn read<'a>(&'a self, path: &'a str, limits: ReadLimits) -> BoxFuture<'a, Result<FileText, FileError>> {
        self.begun.lock().unwrap().1 += 1;
        Box::pin(async move {
            self.pass(path).await?;
            self.files.read(path, limits).await
        })
    }

    fn base(&self) -> BoxFuture<'_, Base> {
        let base = self.base.lock().unwrap().clone();
        Box::pin(ready(base))
    }
}

fn runtime() -> Runtime {
    Builder::new_multi_thread().worker_threads(2).build().unwrap()
}

fn names(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|n| format!("{prefix}{n}.rs")).collect()
}

fn wanted(paths: &[String]) -> Vec<Wanted> {
    let one = |(file, path): (usize, &String)| Wanted { file, path: path.clone(), is_as_compared: false };
    paths.iter().enumerate().map(one).collect()
}

/// Completes once so many stamps were asked for.
async fn asked_for(files: &SlowFiles, stamps: usize) {
    while files.begun().0 < stamps {
        tokio::task::yield_now().await;
    }
}

#[test]
fn what_is_not_seen_in_time_is_not_compared_and_the_rest_is() {
    let paths: Vec<String> = names("quick", 16).into_iter().chain(names("slow", 16)).collect();
    let files = SlowFiles::new(&paths);
    let (gate, fs) = (Gate::default(), files.clone() as Arc<dyn FsAdapter>);
    let runtime = runtime();
    // A slow file is only asked for after the quick one was seen on the same thread.
    let found = runtime.block_on(gate.look(&fs, &wanted(&paths), asked_for(&files, 32)));
    files.permits.add_permits(1_000);
    assert_eq!(found.len(), 32);
    for (file, on_disk) in found {
        let expected = match file < 16 {
            true => OnDisk::Text(format!("text of {}\n", paths[file])),
            false => OnDisk::NotCompared(NotCompared::Late),
        };
        assert_eq!(on_disk, expected, "{}", paths[file]);
    }
}

#[test]
fn a_disk_that_hangs_is_asked_so_often_and_no_more() {
    let paths = names("slow", 100);
    let files = SlowFiles::new(&paths);
    let (gate, fs) = (Gate::default(), files.clone() as Arc<dyn FsAdapter>);
    let runtime = runtime();
    let _inside = runtime.enter();
    for conversation in [gate.beside(), gate.beside(), gate] {
        for _ in 0..3 {
            let found = runtime.block_on(conversation.look(&fs, &wanted(&paths), asked_for(&files, 16)));
            let late = found.iter().filter(|(_, on_disk)| *on_disk == OnDisk::NotCompared(NotCompared::Late));
            assert_eq!(late.count(), 100);
        }
        conversation.warm(&fs, wanted(&paths));
    }
    assert_eq!(files.begun(), (16, 0));
    files.permits.add_permits(10_000);
}

#[test]
fn looking_goes_on_beside_requests_so_that_a_stamp_is_enough_later() {
    let paths = names("slow", 4);
    let files = SlowFiles::new(&paths);
    let (gate, fs) = (Gate::default(), files.clone() as Arc<dyn FsAdapter>);
    let runtime = runtime();
    let _inside = runtime.enter();
    gate.warm(&fs, wanted(&paths));
    // Four stamps and four reads.
    files.permits.add_permits(8);
    runtime.block_on(async {
        // Something else is only looked at once that is done.
        while files.begun().0 < 5 {
            gate.warm(&fs, wanted(&["other.rs".to_owned()]));
            tokio::task::yield_now().await;
        }
    });
    // Now there are permits for stamps only.
    files.permits.add_permits(4);
    let (stamps, reads) = files.begun();
    let found = runtime.block_on(gate.look(&fs, &wanted(&paths), pending()));
    assert!(found.iter().all(|(_, on_disk)| matches!(on_disk, OnDisk::Text(_))), "{found:?}");
    assert_eq!((files.begun().1, reads), (4, 4), "{stamps} stamps");
}

#[test]
fn every_way_in_which_a_file_is_not_compared_is_said() {
    let runtime = runtime();
    let check = |path: &str, base: Option<Base>, refused: Option<FileErrorCode>, expected: OnDisk| {
        let files = SlowFiles::new(&["a.rs".to_owned()]);
        base.into_iter().for_each(|base| *files.base.lock().unwrap() = base);
        *files.refused.lock().unwrap() = refused;
        let gate = Gate::default().with_relative_paths(RelativePaths::Unknown);
        let fs = files as Arc<dyn FsAdapter>;
        let found = runtime.block_on(gate.look(&fs, &wanted(&[path.to_owned()]), pending()));
        assert_eq!(found, [(0, expected)], "{path} {refused:?}");
    };
    let here = "/srv/app/a.rs";
    let not = OnDisk::NotCompared;
    check(here, None, None, OnDisk::Text("text of a.rs\n".into()));
    check("/srv/app/b.rs", None, None, OnDisk::Gone);
    check(here, Some(Base::Gone), None, not(NotCompared::BaseGone));
    check(here, Some(Base::Replaced), None, not(NotCompared::BaseReplaced));
    check(here, Some(Base::Forbidden), None, not(NotCompared::Forbidden));
    check(here, Some(Base::Failed), None, not(NotCompared::Failed));
    check(here, None, Some(FileErrorCode::PermissionDenied), not(NotCompared::Forbidden));
    check(here, None, Some(FileErrorCode::SymlinkRejected), not(NotCompared::Link));
    check(here, None, Some(FileErrorCode::NotText), not(NotCompared::NoText));
    check(here, None, Some(FileErrorCode::FileTooLarge), not(NotCompared::NoText));
    check(here, None, Some(FileErrorCode::ReadFailed), not(NotCompared::Failed));
    check("/srv/app/a:b.rs", None, None, not(NotCompared::Colon));
    check("/srv/other/a.rs", None, None, not(NotCompared::Outside));
    // It is there, but perhaps it is another one.
    check("a.rs", None, None, not(NotCompared::UnknownDirectory));
    check("gone.rs", None, None, not(NotCompared::UnknownDirectory));
}

#[test]
fn a_file_that_was_on_another_device_is_not_gone() {
    let files = SlowFiles::new(&["a.rs".to_owned()]);
    let here = |device| Base::Here { names: vec!["/srv/app".to_owned()], device: Some(device) };
    let (gate, fs) = (Gate::default(), files.clone() as Arc<dyn FsAdapter>);
    let runtime = runtime();
    let limits = ReadLimits { max_bytes: 100, follow_symlinks: false };
    let device = runtime.block_on(files.files.stat("a.rs", limits)).unwrap().device;
    *files.base.lock().unwrap() = here(device);
    let look = || runtime.block_on(gate.look(&fs, &wanted(&["a.rs".to_owned()]), pending())).remove(0).1;
    assert!(matches!(look(), OnDisk::Text(_)));
    files.files.remove("a.rs");
    assert_eq!(look(), OnDisk::Gone);
    *files.base.lock().unwrap() = here(device + 1);
    assert_eq!(look(), OnDisk::NotCompared(NotCompared::Unmounted));
}

#[test]
fn without_files_nothing_is_said_of_them() {
    let fs: Arc<dyn FsAdapter> = Arc::new(NoFiles);
    let found = runtime().block_on(Gate::default().look(&fs, &wanted(&names("a", 3)), pending()));
    assert_eq!(found, []);
}
