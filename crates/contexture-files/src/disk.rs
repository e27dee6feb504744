//! Looks at files on the disk, to compare what is known of them.

mod gate;

use contexture_core::host::relative_path;
use serde::{Deserialize, Serialize};

use super::path::{is_absolute, mounted, normalize, on_drive};

pub use gate::{Gate, RelativePaths};

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
    /// A file with this text.
    Text(String),
    /// Nothing is known of it.
    NotCompared(NotCompared),
}

/// Why a file was not compared with the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NotCompared {
    /// The agent's directory was deleted or moved.
    BaseGone,
    /// Another directory is where the agent's was.
    BaseReplaced,
    /// The file was on a file system that is not there any more.
    Unmounted,
    /// The system does not allow it.
    Forbidden,
    /// It is a symbolic link, or beneath one.
    Link,
    /// It took too long.
    Late,
    /// Its name has a colon, as that of a file of another version has.
    Colon,
    /// It is not in the agent's directory.
    Outside,
    /// Its path is relative, and the directory that it begins in is not known.
    UnknownDirectory,
    /// It is too large, or no text.
    NoText,
    /// The system cannot read it.
    Failed,
}

impl NotCompared {
    /// All reasons. Their order is part of what is stored.
    pub const ALL: [Self; 11] = [
        Self::BaseGone,
        Self::BaseReplaced,
        Self::Unmounted,
        Self::Forbidden,
        Self::Link,
        Self::Late,
        Self::Colon,
        Self::Outside,
        Self::UnknownDirectory,
        Self::NoText,
        Self::Failed,
    ];

    /// The reason in a few words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BaseGone => "the directory is gone",
            Self::BaseReplaced => "the directory is another one now",
            Self::Unmounted => "its file system is not mounted",
            Self::Forbidden => "it may not be read",
            Self::Link => "it is a link",
            Self::Late => "the disk is slow",
            Self::Colon => "its name has a colon",
            Self::Outside => "it is outside of the directory",
            Self::UnknownDirectory => "the directory of its path is not known",
            Self::NoText => "it is too large or no text",
            Self::Failed => "it cannot be read",
        }
    }
}

/// Returns the path of a file relative to the base directory, if it is beneath it.
fn beneath(path: &str, bases: &[String], relative: RelativePaths) -> Result<String, NotCompared> {
    let path = match (is_absolute(path), relative) {
        (true, _) => {
            let found = bases.iter().find_map(|base| within(path, base).or_else(|| within_drive(path, base)));
            found.ok_or(NotCompared::Outside)?
        }
        // `HEAD~1:src/a.rs` is a file of another version, which is not on the disk.
        (false, _) if path.contains(':') => return Err(NotCompared::Colon),
        (false, RelativePaths::Unknown) => return Err(NotCompared::UnknownDirectory),
        (false, RelativePaths::OfBase) => path.to_owned(),
    };
    match path.contains(':') {
        true => Err(NotCompared::Colon),
        false => relative_path(&path).map(|path| path.into_owned()).map_err(|_| NotCompared::Outside),
    }
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
        let found = beneath(path, &[base.to_owned()], RelativePaths::OfBase);
        assert_eq!(found.ok().as_deref(), expected, "{path} beneath {base}");
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
    fn what_is_not_beneath_the_base_says_why() {
        let why = |path: &str, relative| beneath(path, &["/srv/app".to_owned()], relative).unwrap_err();
        for relative in [RelativePaths::OfBase, RelativePaths::Unknown] {
            assert_eq!(why("/etc/passwd", relative), NotCompared::Outside);
            assert_eq!(why("/srv/app/a:b.rs", relative), NotCompared::Colon);
            assert_eq!(why("HEAD~1:src/a.rs", relative), NotCompared::Colon);
        }
        assert_eq!(why("../a.rs", RelativePaths::OfBase), NotCompared::Outside);
        assert_eq!(why("src/a.rs", RelativePaths::Unknown), NotCompared::UnknownDirectory);
    }

    #[test]
    fn reasons_are_stored_by_their_place() {
        assert!(NotCompared::ALL.is_sorted());
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
