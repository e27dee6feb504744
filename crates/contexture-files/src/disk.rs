//! Looks at files on the disk, to compare what is known of them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use contexture_core::host::{FileError, FileErrorCode, FileStamp, FsAdapter, ReadLimits, relative_path};

use super::path::{is_absolute, mounted, normalize, on_drive};

/// How files are read. Links are not followed, since a link may lead to another file than the one that the agent read.
const LIMITS: ReadLimits = ReadLimits { max_bytes: 4 * 1024 * 1024, follow_symlinks: false };

/// After this long, the remaining files are skipped, so that a request does not wait for a slow disk.
const MOST_TIME: Duration = Duration::from_secs(1);

/// A file that is about to be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its place in the model.
    pub file: usize,
    /// Its path as the agent wrote it.
    pub path: String,
    /// Whether it was compared with the disk before and nothing was learnt about it since.
    pub is_as_compared: bool,
}

/// What is on the disk where a file is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OnDisk {
    /// The file, as it was when it was last compared.
    Unchanged,
    /// No file.
    Gone,
    /// Something that cannot be read as the file was: a link, too many bytes, no text.
    Unreadable,
    /// A file with this text.
    Text(String),
}

/// The files of one conversation as they were last seen on the disk. A file that did not change since is not read; only
/// its stamp is checked.
///
/// ```
/// # use contexture_core::testing::MemoryFs;
/// # use contexture_files::disk::{Gate, OnDisk, Wanted};
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let files = MemoryFs::new();
/// files.set("a.rs", "fn a() {}\n");
/// let wanted = Wanted { file: 0, path: "a.rs".into(), is_as_compared: false };
/// let found = Gate::default().look(&files, &[wanted]).await;
/// assert_eq!(found, [(0, OnDisk::Text("fn a() {}\n".into()))]);
/// # });
/// ```
#[derive(Clone, Debug, Default)]
pub struct Gate {
    /// By the file's place in the model.
    stamps: HashMap<usize, FileStamp>,
}

impl Gate {
    /// Looks at files beneath the adapter's base. Files outside of it, and files whose reading failed for another reason
    /// than what they are, are left out of the result, since nothing is known of them.
    pub async fn look(&mut self, fs: &dyn FsAdapter, wanted: &[Wanted]) -> Vec<(usize, OnDisk)> {
        let started = Instant::now();
        let needs_base = wanted.iter().any(|wanted| is_absolute(&wanted.path));
        let bases = if needs_base { fs.base_names() } else { Vec::new() };
        let asked = wanted.iter().filter_map(|wanted| Some((beneath(&wanted.path, &bases)?, wanted)));
        let mut asked: Vec<(String, &Wanted)> = asked.collect();
        // Sorted so that files of one directory are adjacent, which an adapter can make use of.
        asked.sort_by(|one, other| one.0.cmp(&other.0));
        let paths: Vec<&str> = asked.iter().map(|(path, _)| path.as_str()).collect();
        let stamps = fs.stat_many(&paths, LIMITS).await;
        let mut found = Vec::with_capacity(asked.len());
        for ((path, wanted), stamp) in asked.iter().zip(stamps) {
            let on_disk = match stamp {
                Ok(stamp) if self.has_passed(wanted, &stamp) => Ok(OnDisk::Unchanged),
                Ok(_) if started.elapsed() > MOST_TIME => continue,
                Ok(_) => self.read(fs, wanted.file, path).await,
                Err(error) => Err(error),
            };
            found.extend(on_disk.or_else(verdict).ok().map(|on_disk| (wanted.file, on_disk)));
        }
        found
    }

    /// Whether a file is certainly as it was when it was last compared.
    fn has_passed(&self, wanted: &Wanted, stamp: &FileStamp) -> bool {
        let before = self.stamps.get(&wanted.file).filter(|before| before.settled && before.matches(stamp));
        wanted.is_as_compared && before.is_some()
    }

    async fn read(&mut self, fs: &dyn FsAdapter, file: usize, path: &str) -> Result<OnDisk, FileError> {
        self.stamps.remove(&file);
        let text = fs.read(path, LIMITS).await?;
        self.stamps.insert(file, text.stamp);
        Ok(OnDisk::Text(text.text))
    }
}

/// What an error means: the file does not exist, is another kind of thing now, or nothing is known.
fn verdict(error: FileError) -> Result<OnDisk, FileError> {
    match error.code {
        FileErrorCode::NotFound | FileErrorCode::NotAFile => Ok(OnDisk::Gone),
        FileErrorCode::SymlinkRejected | FileErrorCode::FileTooLarge | FileErrorCode::NotText => Ok(OnDisk::Unreadable),
        _ => Err(error),
    }
}

/// Returns the path of a file relative to the base directory, if it is beneath it. Relative paths are assumed to be.
fn beneath(path: &str, bases: &[String]) -> Option<String> {
    let relative = if is_absolute(path) {
        bases.iter().find_map(|base| within(path, base).or_else(|| within_drive(path, base)))?
    } else {
        path.to_owned()
    };
    // `HEAD~1:src/a.rs` is a file of another version, which is not on the disk.
    let is_of_disk = !relative.contains(':');
    is_of_disk.then(|| relative_path(&relative).ok().map(|path| path.into_owned())).flatten()
}

/// Returns the rest of an absolute path after a directory.
fn within(path: &str, base: &str) -> Option<String> {
    let (path, base) = (normalize(path), normalize(base));
    let rest = path.strip_prefix(base.trim_end_matches('/'))?.strip_prefix('/')?;
    (!rest.is_empty() && path.starts_with('/')).then(|| rest.to_owned())
}

/// The same where one of them is on a drive: `D:\work\a.rs` is beneath `/mnt/d/work`. Drives ignore case, but the rest
/// keeps its own.
fn within_drive(path: &str, base: &str) -> Option<String> {
    let (path, base) = (parts_on_drive(path)?, parts_on_drive(base)?);
    let rest = path.get(base.len()..).filter(|rest| !rest.is_empty())?;
    let is_same = |(one, other): (&String, &String)| one.to_lowercase() == other.to_lowercase();
    path.iter().zip(&base).all(is_same).then(|| rest.join("/"))
}

/// Returns the drive of a path and its parts; `None` if the path leads upwards.
fn parts_on_drive(path: &str) -> Option<Vec<String>> {
    let path = if on_drive(path).is_some() { path.to_owned() } else { mounted(path)? };
    let (drive, rest) = on_drive(&path)?;
    let parts = rest.split(['/', '\\']).filter(|part| !part.is_empty() && *part != ".");
    let parts: Vec<String> = [drive.to_string()].into_iter().chain(parts.map(str::to_owned)).collect();
    (!parts.iter().any(|part| part == "..")).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, base: &str, expected: Option<&str>) {
        assert_eq!(beneath(path, &[base.to_owned()]).as_deref(), expected, "{path} beneath {base}");
    }

    #[test]
    fn paths_beneath_the_base_are_mapped_and_others_are_not() {
        check("src/a.rs", "/srv/app", Some("src/a.rs"));
        check("./src/../b.rs", "/srv/app", Some("b.rs"));
        check("/srv/app/src/a.rs", "/srv/app", Some("src/a.rs"));
        check("/srv/app//src/./a.rs", "/srv/app/", Some("src/a.rs"));
        check("/a.rs", "/", Some("a.rs"));
        for outside in ["/srv/application/a.rs", "/srv/app/../b.rs", "../b.rs", "/srv/app", "~/a.rs", "/etc/passwd"] {
            check(outside, "/srv/app", None);
        }
        check("HEAD~1:src/a.rs", "/srv/app", None);
    }

    #[test]
    fn names_of_windows_are_mapped_where_they_can() {
        check(r"D:\work\Src\a.rs", "/mnt/d/work", Some("Src/a.rs"));
        check("d:/WORK/a.rs", "/mnt/d/work", Some("a.rs"));
        check("/d/work/a.rs", "/mnt/d/work", Some("a.rs"));
        check(r"C:\work\a.rs", "/mnt/d/work", None);
        check(r"D:\work\..\a.rs", "/mnt/d/work", None);
        check(r"D:\work\a.rs", "/home/me/work", None);
    }
}
