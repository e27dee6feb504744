//! Looks at files beside what waits for them: what is not seen in time goes on, and is there for the next one.

use std::collections::HashMap;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contexture_core::host::{Base, FileError, FileErrorCode, FileStamp, FsAdapter, ReadLimits};
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, mpsc};

use super::{NotCompared, OnDisk, Wanted, beneath};

/// How files are read. Links are not followed, since a link may lead to another file than the one that the agent read.
const LIMITS: ReadLimits = ReadLimits { max_bytes: 4 * 1024 * 1024, follow_symlinks: false };

/// How many threads wait for a disk at the same time, however slow it is.
const THREADS: usize = 16;

/// How many bytes of texts are kept that were read and not asked for yet.
const MAX_KEPT_BYTES: usize = 1 << 20;

/// What relative paths are relative to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RelativePaths {
    /// The base directory.
    #[default]
    OfBase,
    /// A directory that is not known.
    Unknown,
}

/// The files of one conversation as they were last seen on the disk. A file that did not change since is not read; only
/// its stamp is checked.
///
/// ```
/// # use std::sync::Arc;
/// # use contexture_core::host::FsAdapter;
/// # use contexture_core::testing::MemoryFs;
/// # use contexture_files::disk::{Gate, OnDisk, Wanted};
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let files = MemoryFs::new();
/// files.set("a.rs", "fn a() {}\n");
/// let files: Arc<dyn FsAdapter> = Arc::new(files);
/// let wanted = Wanted { file: 0, path: "a.rs".into(), is_as_compared: false };
/// let found = Gate::default().look(&files, &[wanted], std::future::pending()).await;
/// assert_eq!(found, [(0, OnDisk::Text("fn a() {}\n".into()))]);
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct Gate {
    seen: Arc<Mutex<SeenFiles>>,
    /// One permit for each thread that waits for the disk.
    threads: Arc<Semaphore>,
    /// The permit to look at files that nobody waits for.
    warming: Arc<Semaphore>,
    relative: RelativePaths,
}

/// What was seen, by the path beneath the base.
#[derive(Debug, Default)]
struct SeenFiles {
    files: HashMap<String, SeenFile>,
    /// Bytes of the texts.
    bytes: usize,
}

#[derive(Debug, Default)]
struct SeenFile {
    /// The stamp of the text that was compared last.
    compared: Option<FileStamp>,
    /// A text that nobody asked for yet, with its stamp.
    read: Option<(FileStamp, String)>,
    /// The device that it was on.
    device: Option<u64>,
}

/// What one look at a file has found.
#[derive(Clone, Debug)]
struct Sight {
    on_disk: OnDisk,
    /// The path beneath the base of a text, and its stamp.
    read: Option<(String, FileStamp)>,
}

impl From<NotCompared> for Sight {
    fn from(why: NotCompared) -> Self {
        Self { on_disk: OnDisk::NotCompared(why), read: None }
    }
}

impl Default for Gate {
    fn default() -> Self {
        let (threads, warming) = (Arc::new(Semaphore::new(THREADS)), Arc::new(Semaphore::new(1)));
        Self { seen: Arc::default(), threads, warming, relative: RelativePaths::OfBase }
    }
}

impl Gate {
    /// The same with other relative paths.
    pub fn with_relative_paths(self, relative: RelativePaths) -> Self {
        Self { relative, ..self }
    }

    /// One for another conversation on the same disk, for which no more threads wait.
    pub fn beside(&self) -> Self {
        Self { threads: self.threads.clone(), relative: self.relative, ..Self::default() }
    }

    /// Looks at files beneath the adapter's base until all are seen, or `until` completes. What was not seen by then is
    /// not compared; looking goes on, so that the next look may find it done.
    ///
    /// The result has all files, or none if there is no disk.
    ///
    /// # Panics
    /// It runs outside of a tokio runtime.
    pub async fn look(
        &self,
        fs: &Arc<dyn FsAdapter>,
        wanted: &[Wanted],
        until: impl Future<Output = ()>,
    ) -> Vec<(usize, OnDisk)> {
        let mut sights = HashMap::new();
        let base = self.sights(fs, wanted, until, &mut sights).await;
        if base == Some(Base::NoFiles) {
            return Vec::new();
        }
        let mut seen = self.seen();
        let mut found = Vec::with_capacity(wanted.len());
        for wanted in wanted {
            let Some(Sight { on_disk, read }) = sights.remove(&wanted.file) else {
                found.push((wanted.file, OnDisk::NotCompared(why(base.as_ref()))));
                continue;
            };
            if let Some((path, stamp)) = read {
                seen.note_compared(&path, stamp);
            }
            found.push((wanted.file, on_disk));
        }
        found
    }

    /// Looks at files that may be wanted later. Nobody waits for it, and nothing is done while it is still being done for
    /// earlier ones.
    pub fn warm(&self, fs: &Arc<dyn FsAdapter>, wanted: Vec<Wanted>) {
        let Ok(permit) = self.warming.clone().try_acquire_owned() else { return };
        let (gate, fs) = (self.clone(), fs.clone());
        Handle::current().spawn(async move {
            gate.sights(&fs, &wanted, std::future::pending(), &mut HashMap::new()).await;
            drop(permit);
        });
    }

    /// What is seen of files until then. Returns what became of the base, if that was seen.
    async fn sights(
        &self,
        fs: &Arc<dyn FsAdapter>,
        wanted: &[Wanted],
        until: impl Future<Output = ()>,
        sights: &mut HashMap<usize, Sight>,
    ) -> Option<Base> {
        let mut until = pin!(until);
        let asking = async {
            let (adapter, runtime) = (fs.clone(), Handle::current());
            self.on_thread(move || runtime.block_on(adapter.base())).await
        };
        let base = tokio::select! {
            biased;
            base = asking => base.unwrap_or(Base::Failed),
            () = &mut until => return None,
        };
        let Base::Here { names, .. } = &base else { return Some(base) };
        let (sender, mut receiver) = mpsc::unbounded_channel();
        let mut lanes = self.lanes(wanted, names, sights).into_iter();
        let mut next = lanes.next();
        let mut sender = Some(sender);
        loop {
            if next.is_none() {
                // Once the threads have sent all that they see, nothing more is waited for.
                sender = None;
            }
            tokio::select! {
                biased;
                seen = receiver.recv() => match seen {
                    Some((file, sight)) => _ = sights.insert(file, sight),
                    None => return Some(base),
                },
                permit = self.threads.clone().acquire_owned(), if next.is_some() => {
                    let (lane, sender) = (next.take().unwrap_or_default(), sender.clone());
                    let (gate, fs, runtime) = (self.clone(), fs.clone(), Handle::current());
                    next = lanes.next();
                    Handle::current().spawn_blocking(move || {
                        for (path, wanted) in lane {
                            let sight = runtime.block_on(gate.see(&*fs, &path, wanted.is_as_compared));
                            // Perhaps nobody waits any more; what was read is kept.
                            sender.iter().for_each(|sender| _ = sender.send((wanted.file, sight.clone())));
                        }
                        drop(permit);
                    });
                }
                () = &mut until => {
                    // Waiting may have given way to other tasks before all of it was taken.
                    while let Ok((file, sight)) = receiver.try_recv() {
                        sights.insert(file, sight);
                    }
                    return Some(base);
                }
            }
        }
    }

    /// The files to look at, for each thread its own. Those that cannot be looked at are seen already.
    fn lanes(
        &self,
        wanted: &[Wanted],
        names: &[String],
        sights: &mut HashMap<usize, Sight>,
    ) -> Vec<Vec<(String, Wanted)>> {
        let mut asked = Vec::with_capacity(wanted.len());
        for wanted in wanted {
            match beneath(&wanted.path, names, self.relative) {
                Ok(path) => asked.push((path, wanted.clone())),
                Err(why) => _ = sights.insert(wanted.file, why.into()),
            }
        }
        let mut lanes = vec![Vec::new(); asked.len().min(THREADS)];
        for (at, asked) in asked.into_iter().enumerate() {
            lanes[at % THREADS].push(asked);
        }
        lanes
    }

    /// Runs something on one of the threads that wait for the disk. It goes on if nobody waits for it any more.
    async fn on_thread<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
        let permit = self.threads.clone().acquire_owned().await;
        let work = move || {
            let done = work();
            drop(permit);
            done
        };
        Handle::current().spawn_blocking(work).await.ok()
    }

    /// Looks at one file.
    async fn see(&self, fs: &dyn FsAdapter, path: &str, is_as_compared: bool) -> Sight {
        let stamp = match fs.stat(path, LIMITS).await {
            Ok(stamp) => stamp,
            Err(error) => return self.refused(fs, path, &error).await,
        };
        if let Some(sight) = self.seen().known(path, &stamp, is_as_compared) {
            return sight;
        }
        match fs.read(path, LIMITS).await {
            Ok(text) => {
                self.seen().keep(path, text.stamp, &text.text);
                Sight { on_disk: OnDisk::Text(text.text), read: Some((path.to_owned(), text.stamp)) }
            }
            Err(error) => self.refused(fs, path, &error).await,
        }
    }

    /// What an error means: the file does not exist, or nothing is known of it.
    async fn refused(&self, fs: &dyn FsAdapter, path: &str, error: &FileError) -> Sight {
        match error.code {
            FileErrorCode::NotFound | FileErrorCode::NotAFile => {
                let base = fs.base().await;
                let Base::Here { device, .. } = base else { return why(Some(&base)).into() };
                let before = self.seen().files.get(path).and_then(|file| file.device);
                match before.zip(device) {
                    Some((before, now)) if before != now => NotCompared::Unmounted.into(),
                    _ => Sight { on_disk: OnDisk::Gone, read: None },
                }
            }
            FileErrorCode::SymlinkRejected => NotCompared::Link.into(),
            FileErrorCode::PermissionDenied => NotCompared::Forbidden.into(),
            FileErrorCode::FileTooLarge | FileErrorCode::NotText => NotCompared::NoText.into(),
            FileErrorCode::PathTraversal | FileErrorCode::AbsolutePath => NotCompared::Outside.into(),
            FileErrorCode::DisallowedExtension
            | FileErrorCode::NoFiles
            | FileErrorCode::Changed
            | FileErrorCode::ReadFailed => NotCompared::Failed.into(),
        }
    }

    fn seen(&self) -> MutexGuard<'_, SeenFiles> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why a file in a base was not seen; `None` if the base was not seen either.
fn why(base: Option<&Base>) -> NotCompared {
    match base {
        Some(Base::Gone) => NotCompared::BaseGone,
        Some(Base::Replaced) => NotCompared::BaseReplaced,
        Some(Base::Forbidden) => NotCompared::Forbidden,
        Some(Base::Here { .. }) | None => NotCompared::Late,
        Some(_) => NotCompared::Failed,
    }
}

impl SeenFiles {
    /// What is known of a file with this stamp, without reading it.
    fn known(&mut self, path: &str, stamp: &FileStamp, is_as_compared: bool) -> Option<Sight> {
        let file = self.files.get(path)?;
        let is_same = |before: &FileStamp| before.settled && before.matches(stamp);
        if is_as_compared && file.compared.as_ref().is_some_and(is_same) {
            return Some(Sight { on_disk: OnDisk::Unchanged, read: None });
        }
        let (read, text) = file.read.as_ref().filter(|(read, _)| is_same(read))?;
        Some(Sight { on_disk: OnDisk::Text(text.clone()), read: Some((path.to_owned(), *read)) })
    }

    /// Keeps a text until it is asked for, if there is room.
    fn keep(&mut self, path: &str, stamp: FileStamp, text: &str) {
        let file = self.files.entry(path.to_owned()).or_default();
        file.device = Some(stamp.device);
        let before = file.read.take().map_or(0, |(_, text)| text.len());
        self.bytes -= before;
        if self.bytes + text.len() <= MAX_KEPT_BYTES {
            self.bytes += text.len();
            file.read = Some((stamp, text.to_owned()));
        }
    }

    /// Notes that a text was asked for: from now on its stamp is enough.
    fn note_compared(&mut self, path: &str, stamp: FileStamp) {
        let file = self.files.entry(path.to_owned()).or_default();
        file.compared = Some(stamp);
        self.bytes -= file.read.take().map_or(0, |(_, text)| text.len());
    }
}
