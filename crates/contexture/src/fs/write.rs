//! Replaces the text of a file, wholly or not at all.

use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use contexture_core::host::{FileError, FileErrorCode, FileStamp, relative_path};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use super::read::stamp;
use super::resolve::{Goal, Resolver};
use super::{LocalFs, NOT_REGULAR, Root, interrupted, now_ns, refused};

/// What must be true of a file for its text to be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Expected {
    /// There is no such file.
    Missing,
    /// It is in the state in which it was read.
    Unchanged(FileStamp),
}

/// How files are made that take another's place.
const NEW: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl LocalFs {
    /// Replaces the text of a file, or makes it and the directories above it.
    ///
    /// At every moment the file has its old text or the new one, whole. Its permissions stay; hard links to it keep the
    /// old text. A symbolic link is not followed.
    ///
    /// # Errors
    /// `CHANGED` if the file is not as expected, also when it changes while it is replaced: then it has the text that
    /// somebody else gave it. `PATH_TRAVERSAL`, `ABSOLUTE_PATH`, `SYMLINK_REJECTED`, `NOT_A_FILE`,
    /// `PERMISSION_DENIED` as for reading.
    pub async fn write(&self, path: &str, text: &str, expected: Expected) -> Result<FileStamp, FileError> {
        let (root, asked, text) = (self.root.clone(), path.to_owned(), text.to_owned());
        let write = move || root.write(&asked, text.as_bytes(), expected);
        match tokio::runtime::Handle::try_current() {
            Ok(threads) => threads.spawn_blocking(write).await.map_err(|_| interrupted(path))?,
            Err(_) => write(),
        }
    }
}

impl Root {
    fn write(&self, path: &str, bytes: &[u8], expected: Expected) -> Result<FileStamp, FileError> {
        let relative = relative_path(path)?;
        let (parent, name) = relative.rsplit_once('/').unwrap_or(("", &relative));
        if matches!(name, "" | "." | "..") {
            return Err(FileError::new(FileErrorCode::NotAFile, path, "it is a directory"));
        }
        let to_error = |errno| refused(path, errno);
        let directory = make_directories(self.resolver, self.base.as_fd(), parent).map_err(to_error)?;
        let directory = directory.as_ref().map_or(self.base.as_fd(), AsFd::as_fd);
        let _lock = lock(directory).map_err(to_error)?;
        let found = look(directory, name).map_err(to_error)?;
        check(found.as_ref(), path, expected)?;
        let (temporary, file) = make_temporary(directory, name).map_err(to_error)?;
        let place = NewFilePlace { directory, name, temporary: &temporary };
        let written = fill(file, bytes, found.as_ref()).map_err(|error| failed(path, &error));
        let written = written.and_then(|stamp| place.put(path, expected).map(|()| stamp));
        if written.is_err() {
            // What could not take its place is of no use, and an error of this would hide the first.
            let _ = rustix::fs::unlinkat(directory, &temporary, AtFlags::empty());
        }
        written
    }
}

/// Opens a directory beneath the base and makes what of it is not there; `None` is the base itself.
fn make_directories(resolver: Resolver, base: BorrowedFd<'_>, path: &str) -> Result<Option<OwnedFd>, Errno> {
    let mut directory: Option<OwnedFd> = None;
    let mut reached = String::new();
    for name in path.split('/').filter(|name| !name.is_empty()) {
        if !reached.is_empty() {
            reached.push('/');
        }
        reached.push_str(name);
        let opened = match resolver.open(base, &reached, Goal::Directory) {
            Err(Errno::NOENT) => {
                let above = directory.as_ref().map_or(base, AsFd::as_fd);
                match rustix::fs::mkdirat(above, name, Mode::from_raw_mode(0o777)) {
                    // Somebody else may have made it meanwhile.
                    Ok(()) | Err(Errno::EXIST) => resolver.open(base, &reached, Goal::Directory),
                    Err(errno) => Err(errno),
                }
            }
            opened => opened,
        };
        directory = Some(opened?);
    }
    Ok(directory)
}

/// Keeps other writers of this library, in other processes too, out of a directory until it is dropped. Without it, two
/// of them that undo their exchange of names could undo a third one's.
fn lock(directory: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
    let handle = rustix::fs::openat(directory, ".", flags, Mode::empty())?;
    loop {
        match rustix::fs::flock(&handle, rustix::fs::FlockOperation::LockExclusive) {
            Err(Errno::INTR) => {}
            // Some file systems have no locks; then a writer may undo what another one wrote at the same moment.
            Ok(()) | Err(Errno::NOSYS | Errno::OPNOTSUPP | Errno::NOLCK) => return Ok(handle),
            Err(errno) => return Err(errno),
        }
    }
}

/// What there is under a name, itself and not what it links to.
fn look(directory: BorrowedFd<'_>, name: &str) -> Result<Option<Stat>, Errno> {
    match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Whether what was found is what is expected.
fn check(found: Option<&Stat>, path: &str, expected: Expected) -> Result<(), FileError> {
    let kind = found.map(|stat| FileType::from_raw_mode(stat.st_mode));
    match (kind, expected) {
        (Some(FileType::Symlink), _) => Err(refused(path, Errno::LOOP)),
        (Some(FileType::Directory), _) => Err(FileError::new(FileErrorCode::NotAFile, path, "it is a directory")),
        (Some(FileType::RegularFile), Expected::Unchanged(stamp))
            if found.is_some_and(|found| is_same(found, stamp)) =>
        {
            Ok(())
        }
        (Some(FileType::RegularFile), Expected::Unchanged(_)) => Err(changed(path, "it changed since it was read")),
        (Some(FileType::RegularFile), Expected::Missing) => Err(changed(path, "there is such a file already")),
        (Some(_), _) => Err(FileError::new(FileErrorCode::NotAFile, path, NOT_REGULAR)),
        (None, Expected::Missing) => Ok(()),
        (None, Expected::Unchanged(_)) => Err(changed(path, "it was removed since it was read")),
    }
}

/// Whether a file is in the state of a stamp. When its name last changed does not matter, since exchanging names is what
/// happens here.
fn is_same(found: &Stat, expected: FileStamp) -> bool {
    let found = stamp(found, now_ns());
    (found.device, found.inode, found.size, found.modified_ns)
        == (expected.device, expected.inode, expected.size, expected.modified_ns)
}

fn changed(path: &str, message: &str) -> FileError {
    FileError::new(FileErrorCode::Changed, path, message)
}

fn failed(path: &str, error: &std::io::Error) -> FileError {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOSPC | Errno::DQUOT) => FileError::new(FileErrorCode::ReadFailed, path, "the disk is full"),
        Some(errno) => refused(path, errno),
        None => FileError::new(FileErrorCode::ReadFailed, path, error.kind().to_string()),
    }
}

/// A new file beside the one whose place it will take.
fn make_temporary(directory: BorrowedFd<'_>, name: &str) -> Result<(String, OwnedFd), Errno> {
    // Names may have 255 bytes, and this one should be recognised.
    let start = &name[..name.floor_char_boundary(180)];
    let temporary = format!(".{start}.{}.new", uuid::Uuid::now_v7().simple());
    let file = rustix::fs::openat(directory, &temporary, NEW, Mode::from_raw_mode(0o666))?;
    Ok((temporary, file))
}

/// Writes the text, with the permissions of the file that it replaces; returns the stamp of the new file.
fn fill(file: OwnedFd, bytes: &[u8], replaced: Option<&Stat>) -> std::io::Result<FileStamp> {
    let mut file = File::from(file);
    file.write_all(bytes)?;
    if let Some(stat) = replaced {
        rustix::fs::fchmod(&file, Mode::from_raw_mode(stat.st_mode & 0o7777))?;
    }
    // Otherwise a power cut could leave the new name with an empty file.
    file.sync_all()?;
    Ok(stamp(&rustix::fs::fstat(&file)?, now_ns()))
}

/// Where a new file is to be.
struct NewFilePlace<'a> {
    directory: BorrowedFd<'a>,
    name: &'a str,
    temporary: &'a str,
}

impl NewFilePlace<'_> {
    /// Puts the new file under its name.
    fn put(&self, path: &str, expected: Expected) -> Result<(), FileError> {
        let to_error = |errno| refused(path, errno);
        match expected {
            Expected::Missing => match self.rename(RenameFlags::NOREPLACE) {
                Err(Errno::EXIST) => Err(changed(path, "somebody else made it meanwhile")),
                Err(Errno::INVAL | Errno::NOSYS) => self.replace(path, expected),
                renamed => renamed.map_err(to_error),
            },
            Expected::Unchanged(stamp) => match self.rename(RenameFlags::EXCHANGE) {
                Ok(()) => self.keep_if(path, stamp),
                Err(Errno::NOENT) => Err(changed(path, "it was removed since it was read")),
                Err(Errno::INVAL | Errno::NOSYS) => self.replace(path, expected),
                Err(errno) => Err(to_error(errno)),
            },
        }
    }

    /// After both files exchanged their names: if the old one is not the expected one, they exchange them again.
    fn keep_if(&self, path: &str, expected: FileStamp) -> Result<(), FileError> {
        let to_error = |errno| refused(path, errno);
        let old = look(self.directory, self.temporary).map_err(to_error)?;
        if old.as_ref().is_some_and(|old| is_same(old, expected)) {
            return rustix::fs::unlinkat(self.directory, self.temporary, AtFlags::empty()).map_err(to_error);
        }
        self.rename(RenameFlags::EXCHANGE).map_err(to_error)?;
        Err(changed(path, "it changed since it was read"))
    }

    /// For file systems that cannot exchange names: a change in the moment between look and rename is lost.
    fn replace(&self, path: &str, expected: Expected) -> Result<(), FileError> {
        let found = look(self.directory, self.name).map_err(|errno| refused(path, errno))?;
        check(found.as_ref(), path, expected)?;
        let renamed = rustix::fs::renameat(self.directory, self.temporary, self.directory, self.name);
        renamed.map_err(|errno| refused(path, errno))
    }

    fn rename(&self, flags: RenameFlags) -> Result<(), Errno> {
        rustix::fs::renameat_with(self.directory, self.temporary, self.directory, self.name, flags)
    }
}
