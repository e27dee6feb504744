//! Reads the text of an opened file.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::OwnedFd;

use contexture_core::host::{FileError, FileErrorCode, FileStamp, FileText, ReadLimits};
use rustix::fs::{FileType, Stat};

use super::{now_ns, refused, size};

/// How often a file is read again because it changed while it was read.
const MAX_READS: usize = 3;

const SECOND_NS: i64 = 1_000_000_000;

/// Clocks of file systems that count nanoseconds still tick only as often as the kernel: every 10 ms at worst.
/// Two ticks of margin, since we look at a finer clock than they do.
const FINE_TICK_NS: i64 = 30_000_000;

/// Some file systems count seconds, or even pairs of them.
const COARSE_TICK_NS: i64 = 2 * SECOND_NS + FINE_TICK_NS;

/// Whether a file is a regular one and within the limits.
pub(super) fn check_stat(stat: &Stat, path: &str, limits: ReadLimits) -> Result<(), FileError> {
    let what = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if size(stat) > limits.max_bytes => return Err(too_large(path, limits)),
        FileType::RegularFile => return Ok(()),
        FileType::Directory => "it is a directory",
        _ => super::NOT_REGULAR,
    };
    Err(FileError::new(FileErrorCode::NotAFile, path, what))
}

/// The stamp of a file that was examined at `now_ns`.
#[allow(clippy::unnecessary_cast, reason = "these fields have other types on other systems")]
pub(super) fn stamp(stat: &Stat, now_ns: i64) -> FileStamp {
    let modified_ns = nanoseconds(stat.st_mtime, stat.st_mtime_nsec);
    // Every write sets it to the current tick, and programs cannot set it back.
    let changed_ns = nanoseconds(stat.st_ctime, stat.st_ctime_nsec);
    let coarse = modified_ns % SECOND_NS == 0 && changed_ns % SECOND_NS == 0;
    let tick_ns = if coarse { COARSE_TICK_NS } else { FINE_TICK_NS };
    FileStamp {
        device: stat.st_dev as u64,
        inode: stat.st_ino as u64,
        size: size(stat),
        modified_ns,
        changed_ns,
        settled: now_ns.saturating_sub(changed_ns) > tick_ns,
    }
}

/// Reads an opened file that passed [`check_stat`].
///
/// If it changes while it is read, it is read again. If it keeps changing, the last text is returned with the stamp
/// from before it, so that the next check sees a difference.
pub(super) fn read_handle(file: OwnedFd, path: &str, limits: ReadLimits) -> Result<FileText, FileError> {
    let mut file = File::from(file);
    let mut reads = 0;
    loop {
        reads += 1;
        let before = stamp_handle(&file, path, limits)?;
        let bytes = read_bytes(&mut file, before.size, path, limits)?;
        let after = stamp_handle(&file, path, limits)?;
        if before.matches(&after) || reads == MAX_READS {
            return Ok(FileText { text: text(bytes, path)?, stamp: before, linked_name: None });
        }
        file.rewind().map_err(|error| read_failed(&error, path))?;
    }
}

fn stamp_handle(file: &File, path: &str, limits: ReadLimits) -> Result<FileStamp, FileError> {
    let stat = rustix::fs::fstat(file).map_err(|errno| refused(path, errno))?;
    check_stat(&stat, path, limits)?;
    Ok(stamp(&stat, now_ns()))
}

/// Reads to the end, or to one byte above the limit.
fn read_bytes(file: &mut File, expected: u64, path: &str, limits: ReadLimits) -> Result<Vec<u8>, FileError> {
    let mut bytes = Vec::new();
    let capacity = usize::try_from(expected).unwrap_or(usize::MAX).saturating_add(1);
    bytes
        .try_reserve(capacity)
        .map_err(|_| FileError::new(FileErrorCode::ReadFailed, path, "there is not enough memory to read it"))?;
    let read = file.take(limits.max_bytes.saturating_add(1)).read_to_end(&mut bytes);
    read.map_err(|error| read_failed(&error, path))?;
    if bytes.len() as u64 > limits.max_bytes {
        return Err(too_large(path, limits));
    }
    Ok(bytes)
}

fn text(bytes: Vec<u8>, path: &str) -> Result<String, FileError> {
    let refuse = |message| FileError::new(FileErrorCode::NotText, path, message);
    let text = String::from_utf8(bytes).map_err(|_| refuse("it is not valid UTF-8"))?;
    // UTF-8 allows NUL, but no text file has one, and many binary files are valid UTF-8 otherwise.
    if text.as_bytes().contains(&0) {
        return Err(refuse("it holds NUL characters"));
    }
    Ok(text)
}

fn too_large(path: &str, limits: ReadLimits) -> FileError {
    let message = format!("it is larger than {} bytes", limits.max_bytes);
    FileError::new(FileErrorCode::FileTooLarge, path, message)
}

fn read_failed(error: &std::io::Error, path: &str) -> FileError {
    FileError::new(FileErrorCode::ReadFailed, path, error.kind().to_string())
}

/// Nanoseconds since the epoch, as far as the year 2262.
fn nanoseconds(seconds: impl Into<i128>, nanoseconds: impl Into<i128>) -> i64 {
    let since_epoch = seconds.into() * i128::from(SECOND_NS) + nanoseconds.into();
    since_epoch.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long after a change its stamp is trusted, for a file system that counts in steps of `unit_ns`.
    fn settles_after(unit_ns: i64) -> i64 {
        let file = tempfile::tempfile().unwrap();
        let mut stat = rustix::fs::fstat(&file).unwrap();
        stat.st_mtime_nsec = if unit_ns == SECOND_NS { 0 } else { 1 };
        stat.st_ctime_nsec = stat.st_mtime_nsec;
        let changed_ns = nanoseconds(stat.st_ctime, stat.st_ctime_nsec);
        (0..400).map(|step| step * 10_000_000).find(|age| stamp(&stat, changed_ns + age).settled).unwrap()
    }

    #[test]
    fn a_stamp_is_trusted_once_the_clock_of_the_file_system_has_moved_on() {
        assert_eq!(settles_after(1), 40_000_000);
        assert_eq!(settles_after(SECOND_NS), 2_040_000_000);
    }

    #[test]
    fn a_stamp_from_the_future_is_not_trusted() {
        let stat = rustix::fs::fstat(tempfile::tempfile().unwrap()).unwrap();
        assert!(!stamp(&stat, 0).settled);
    }
}
