//! Files of this machine, below one directory.
//!
//! A path is resolved by handle, starting from the handle of the base directory, and after that only the opened handle
//! is used. So a file cannot be replaced between a check and a read: what was checked is what is read.

mod read;
mod resolve;
mod write;

use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

use contexture_core::host::{
    Base, DirEntry, EntryKind, FileError, FileErrorCode, FileStamp, FileText, FsAdapter, ReadLimits, relative_path,
};
use futures_util::future::BoxFuture;
use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

pub use write::Expected;

use read::{check_stat, read_handle, stamp};
use resolve::{Goal, Resolver};

/// Files up to this size are read on the calling thread: handing such a read to another thread takes longer than
/// copying the bytes out of the page cache.
const INLINE_BYTES: u64 = 64 * 1024;

/// How many entries of a directory are looked at, whatever is asked for.
const MAX_LISTED: usize = 100_000;

/// How many stamps are taken on the calling thread before it yields to other tasks.
const INLINE_STATS: usize = 256;

/// A call that took longer was not served from memory, even on a busy machine.
const SLOW_CALL: Duration = Duration::from_millis(25);

/// After a slow call, this many calls are made on threads that may block.
const WARY_CALLS: u32 = 64;

/// Files of this machine, below one directory.
///
/// Every path is resolved below the base: with `openat2` where the kernel has it, component by component otherwise.
/// Symbolic links are refused, or followed if they stay below the base. Only regular files of valid UTF-8 text are read,
/// never more than the limit, and nothing blocks on a pipe or a device.
///
/// Hard links and mounted directories (bind mounts) below the base are part of it. They cannot be distinguished from
/// ordinary files, so anyone who may create them decides what can be read.
///
/// Calls that are served from the page cache run on the calling thread, since they take microseconds. Large reads, and
/// all calls for a while after a slow one (a network, a sleeping disk), run on tokio's blocking threads.
///
/// ```
/// # use contexture::fs::LocalFs;
/// # use contexture::host::{FileErrorCode, FsAdapter, ReadLimits};
/// # let project = tempfile::tempdir().unwrap();
/// # std::fs::write(project.path().join("notes.md"), "hello").unwrap();
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let files = LocalFs::open(project.path()).unwrap();
/// let limits = ReadLimits { max_bytes: 1024, follow_symlinks: false };
/// assert_eq!(files.read("notes.md", limits).await.unwrap().text, "hello");
/// assert_eq!(files.read("../notes.md", limits).await.unwrap_err().code, FileErrorCode::PathTraversal);
/// # });
/// ```
#[derive(Clone, Debug)]
pub struct LocalFs {
    root: Arc<Root>,
}

#[derive(Debug)]
struct Root {
    base: OwnedFd,
    resolver: Resolver,
    /// Its absolute names when it was opened.
    names: Vec<String>,
    /// How many of the next calls run on another thread.
    wary: AtomicU32,
}

/// The result of opening a file in [`FsAdapter::read`].
enum FileOpening {
    Text(FileText),
    /// Too large for the calling thread; with the name of the file that a link led to.
    Large(OwnedFd, Option<String>),
}

impl LocalFs {
    /// Opens the base directory.
    ///
    /// The directory is kept open: moving it does not change what is read.
    ///
    /// # Errors
    /// `NOT_FOUND`, `NOT_A_FILE` if it is not a directory, `PERMISSION_DENIED`.
    pub fn open(base: impl AsRef<Path>) -> Result<Self, FileError> {
        let base = base.as_ref();
        let names = absolute_names(base);
        let opened = rustix::fs::open(base, resolve::DIRECTORY, Mode::empty());
        let base = opened.map_err(|errno| {
            let path = base.display().to_string();
            match errno {
                Errno::NOTDIR => FileError::new(FileErrorCode::NotAFile, path, "the base is not a directory"),
                Errno::NOENT => FileError::new(FileErrorCode::NotFound, path, "there is no such directory"),
                _ => refused(&path, errno),
            }
        })?;
        let resolver = Resolver::detect(base.as_fd());
        Ok(Self { root: Arc::new(Root { base, resolver, names, wary: AtomicU32::new(0) }) })
    }

    /// The same base, resolved component by component even if the kernel has `openat2`.
    ///
    /// Kernels and sandboxes without `openat2` use this; here it can be tested.
    pub fn without_openat2(&self) -> Result<Self, FileError> {
        let base = self.root.base.try_clone().map_err(|error| {
            FileError::new(FileErrorCode::ReadFailed, ".", format!("the base can't be opened again: {}", error.kind()))
        })?;
        let names = self.root.names.clone();
        Ok(Self { root: Arc::new(Root { base, resolver: Resolver::Walk, names, wary: AtomicU32::new(0) }) })
    }

    /// Runs work that may block: on this thread if it is likely to be quick, else on a blocking thread.
    async fn run<T: Send + 'static>(&self, work: impl FnOnce(&Root) -> T + Send + 'static) -> Option<T> {
        match self.root.blocking_threads() {
            Some(threads) => {
                let root = self.root.clone();
                threads.spawn_blocking(move || root.timed(work)).await.ok()
            }
            None => Some(self.root.timed(work)),
        }
    }
}

impl Root {
    /// Where blocking work should run now; `None` is the calling thread.
    fn blocking_threads(&self) -> Option<tokio::runtime::Handle> {
        if self.wary.load(Ordering::Relaxed) == 0 {
            return None;
        }
        tokio::runtime::Handle::try_current().ok()
    }

    /// Runs work and records whether it was slow.
    fn timed<T>(&self, work: impl FnOnce(&Root) -> T) -> T {
        let start = Instant::now();
        let result = work(self);
        if start.elapsed() > SLOW_CALL {
            self.wary.store(WARY_CALLS, Ordering::Relaxed);
        } else {
            // A lost update between two threads does not matter here.
            let wary = self.wary.load(Ordering::Relaxed);
            self.wary.store(wary.saturating_sub(1), Ordering::Relaxed);
        }
        result
    }

    /// Opens a normalised relative path.
    fn open(&self, path: &str, goal: Goal, follow_symlinks: bool) -> Result<OwnedFd, Errno> {
        match follow_symlinks {
            true => Ok(resolve::follow(self.base.as_fd(), &self.names, path, goal)?.0),
            false => self.resolver.open(self.base.as_fd(), path, goal),
        }
    }

    /// What is where the base was when it was opened: it may have been moved, and replaced by another directory.
    fn base(&self) -> Base {
        let Ok(held) = rustix::fs::fstat(&self.base) else { return Base::Failed };
        let (mut names, mut missed) = (Vec::new(), None);
        for name in &self.names {
            match rustix::fs::stat(name.as_str()) {
                Ok(found) if (found.st_dev, found.st_ino) == (held.st_dev, held.st_ino) => names.push(name.clone()),
                Ok(_) => missed = missed.or(Some(Base::Replaced)),
                Err(Errno::NOENT | Errno::NOTDIR) => missed = missed.or(Some(Base::Gone)),
                Err(Errno::ACCESS | Errno::PERM) => missed = missed.or(Some(Base::Forbidden)),
                Err(_) => missed = missed.or(Some(Base::Failed)),
            }
        }
        match missed.filter(|_| names.is_empty()) {
            Some(missed) => missed,
            #[allow(clippy::unnecessary_cast, reason = "the field has other types on other systems")]
            None => Base::Here { names, device: Some(held.st_dev as u64) },
        }
    }

    fn read(&self, path: &str, limits: ReadLimits) -> Result<FileOpening, FileError> {
        let relative = relative_path(path)?;
        let opened = match limits.follow_symlinks {
            // Only the walk knows the name of the file that a link leads to.
            true => resolve::follow(self.base.as_fd(), &self.names, &relative, Goal::Read),
            false => self.open(&relative, Goal::Read, false).map(|file| (file, None)),
        };
        let (file, linked_name) = opened.map_err(|errno| refused(path, errno))?;
        let stat = rustix::fs::fstat(&file).map_err(|errno| refused(path, errno))?;
        check_stat(&stat, path, limits)?;
        if size(&stat) > INLINE_BYTES {
            return Ok(FileOpening::Large(file, linked_name));
        }
        Ok(FileOpening::Text(FileText { linked_name, ..read_handle(file, path, limits)? }))
    }

    /// Takes the stamps of files one after the other. A directory that several of them in a row share is resolved once.
    fn stat_many(&self, paths: &[&str], limits: ReadLimits) -> Vec<Result<FileStamp, FileError>> {
        let now_ns = now_ns();
        let mut shared: Option<(String, Result<OwnedFd, Errno>)> = None;
        let mut stamps = Vec::with_capacity(paths.len());
        for path in paths {
            stamps.push(self.stat(path, limits, now_ns, &mut shared));
        }
        stamps
    }

    fn stat(
        &self,
        path: &str,
        limits: ReadLimits,
        now_ns: i64,
        shared: &mut Option<(String, Result<OwnedFd, Errno>)>,
    ) -> Result<FileStamp, FileError> {
        let relative = relative_path(path)?;
        let (parent, name) = relative.rsplit_once('/').unwrap_or(("", &relative));
        let looked = if parent.is_empty() {
            rustix::fs::statat(&self.base, name, AtFlags::SYMLINK_NOFOLLOW)
        } else {
            if shared.as_ref().is_none_or(|(directory, _)| directory != parent) {
                let opened = self.open(parent, Goal::Directory, limits.follow_symlinks);
                *shared = Some((parent.to_owned(), opened));
            }
            match &shared.as_ref().expect("set above").1 {
                Ok(directory) => rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW),
                Err(errno) => Err(*errno),
            }
        };
        let mut stat = looked.map_err(|errno| refused(path, errno))?;
        if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
            stat = self.stat_link(&relative, limits).map_err(|errno| refused(path, errno))?;
        }
        check_stat(&stat, path, limits)?;
        Ok(stamp(&stat, now_ns))
    }

    /// What is in a directory, by name.
    fn list(&self, path: &str, max_entries: usize, limits: ReadLimits) -> Result<Vec<DirEntry>, FileError> {
        let refuse = |errno| refused(path, errno);
        let directory = match path {
            "." => rustix::fs::openat(&self.base, ".", READ_DIRECTORY, Mode::empty()).map_err(refuse)?,
            path => {
                let relative = relative_path(path)?;
                let found = self.open(&relative, Goal::Directory, limits.follow_symlinks);
                // A handle to look for names by cannot be read itself.
                let opened = found.and_then(|found| rustix::fs::openat(found, ".", READ_DIRECTORY, Mode::empty()));
                opened.map_err(refuse)?
            }
        };
        let mut entries = Vec::new();
        for entry in Dir::read_from(&directory).map_err(refuse)?.take(MAX_LISTED) {
            let entry = entry.map_err(refuse)?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if !matches!(name, "." | "..") {
                let kind = entry_kind(&directory, &entry);
                entries.push(DirEntry { name: name.to_owned(), kind });
            }
        }
        entries.sort();
        entries.truncate(max_entries);
        Ok(entries)
    }

    /// Returns the metadata of a link's target, or refuses the link.
    fn stat_link(&self, relative: &str, limits: ReadLimits) -> Result<Stat, Errno> {
        if !limits.follow_symlinks {
            return Err(Errno::LOOP);
        }
        let target = self.open(relative, Goal::Look, true)?;
        rustix::fs::fstat(target)
    }
}

/// What an entry of a directory is. Some file systems do not say when they list it.
fn entry_kind(directory: &OwnedFd, entry: &rustix::fs::DirEntry) -> EntryKind {
    let kind = match entry.file_type() {
        FileType::Unknown => {
            let looked = rustix::fs::statat(directory, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW);
            looked.map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode))
        }
        kind => kind,
    };
    match kind {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Directory,
        FileType::Symlink => EntryKind::Link,
        _ => EntryKind::Other,
    }
}

/// The absolute names of a directory: as it was given, and without links.
fn absolute_names(base: &Path) -> Vec<String> {
    let given = std::path::absolute(base).ok();
    let plain = base.canonicalize().ok();
    let mut names: Vec<String> = Vec::new();
    for name in [given, plain].into_iter().flatten() {
        // Agents do not write paths that are not text.
        let Ok(name) = name.into_os_string().into_string() else { continue };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

impl FsAdapter for LocalFs {
    fn base_names(&self) -> Vec<String> {
        match self.root.base() {
            Base::Here { names, .. } => names,
            _ => Vec::new(),
        }
    }

    fn base(&self) -> BoxFuture<'_, Base> {
        Box::pin(async { self.run(Root::base).await.unwrap_or(Base::Failed) })
    }

    fn stat<'a>(&'a self, path: &'a str, limits: ReadLimits) -> BoxFuture<'a, Result<FileStamp, FileError>> {
        Box::pin(async move {
            let mut stamps = self.stat_many(&[path], limits).await;
            stamps.pop().unwrap_or_else(|| Err(interrupted(path)))
        })
    }

    fn read<'a>(&'a self, path: &'a str, limits: ReadLimits) -> BoxFuture<'a, Result<FileText, FileError>> {
        Box::pin(async move {
            let asked = path.to_owned();
            let opened = self.run(move |root| root.read(&asked, limits)).await;
            match opened.ok_or_else(|| interrupted(path))?? {
                FileOpening::Text(text) => Ok(text),
                FileOpening::Large(file, linked_name) => {
                    let asked = path.to_owned();
                    let read = move || Ok(FileText { linked_name, ..read_handle(file, &asked, limits)? });
                    match tokio::runtime::Handle::try_current() {
                        Ok(threads) => threads.spawn_blocking(read).await.map_err(|_| interrupted(path))?,
                        Err(_) => read(),
                    }
                }
            }
        })
    }

    fn list<'a>(
        &'a self,
        path: &'a str,
        max_entries: usize,
        limits: ReadLimits,
    ) -> BoxFuture<'a, Result<Vec<DirEntry>, FileError>> {
        Box::pin(async move {
            let asked = path.to_owned();
            let listed = self.run(move |root| root.list(&asked, max_entries, limits)).await;
            listed.unwrap_or_else(|| Err(interrupted(path)))
        })
    }

    fn stat_many<'a>(
        &'a self,
        paths: &'a [&'a str],
        limits: ReadLimits,
    ) -> BoxFuture<'a, Vec<Result<FileStamp, FileError>>> {
        Box::pin(async move {
            if let Some(threads) = self.root.blocking_threads() {
                let (root, owned) = (self.root.clone(), paths.iter().map(|path| (*path).to_owned()).collect());
                let looked = threads.spawn_blocking(move || root.timed(|root| stat_owned(root, owned, limits))).await;
                return looked.unwrap_or_else(|_| paths.iter().map(|path| Err(interrupted(path))).collect());
            }
            let mut stamps = Vec::with_capacity(paths.len());
            for some in paths.chunks(INLINE_STATS) {
                if !stamps.is_empty() {
                    tokio::task::yield_now().await;
                }
                stamps.extend(self.root.timed(|root| root.stat_many(some, limits)));
            }
            stamps
        })
    }
}

fn stat_owned(root: &Root, paths: Vec<String>, limits: ReadLimits) -> Vec<Result<FileStamp, FileError>> {
    let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
    root.stat_many(&paths, limits)
}

/// The size of a file; the system never returns a negative one.
fn size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or(0)
}

/// The current time of the clock that file systems use.
fn now_ns() -> i64 {
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_nanos()).unwrap_or(i64::MAX)
}

fn interrupted(path: &str) -> FileError {
    FileError::new(FileErrorCode::ReadFailed, path, "the program is ending")
}

/// Converts an error of the system.
fn refused(path: &str, errno: Errno) -> FileError {
    use FileErrorCode::*;
    let (code, message) = match errno {
        Errno::XDEV => (PathTraversal, "it leads out of the base directory"),
        Errno::LOOP => (SymlinkRejected, "a part of the path is a symbolic link"),
        Errno::NOENT => (NotFound, "there is no such file"),
        Errno::NOTDIR => (NotFound, "a part of the path is not a directory"),
        Errno::ACCESS | Errno::PERM => (PermissionDenied, "the system does not allow it"),
        Errno::NXIO | Errno::NODEV => (NotAFile, NOT_REGULAR),
        Errno::NAMETOOLONG => (ReadFailed, "the path is too long"),
        Errno::AGAIN => (ReadFailed, "it kept changing while it was opened"),
        _ => return FileError::new(ReadFailed, path, std::io::Error::from(errno).kind().to_string()),
    };
    FileError::new(code, path, message)
}

const NOT_REGULAR: &str = "it is a pipe, a socket or a device";

/// How directories are opened to list what is in them.
const READ_DIRECTORY: OFlags = READ.union(OFlags::DIRECTORY);

/// The flags to open files for reading: without blocking, without becoming a terminal's owner.
const READ: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);
