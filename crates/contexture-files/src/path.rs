//! Paths as agents write them: relative or absolute, of Unix or of Windows.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization;

use contexture_text::packed::{Damaged, Packer, Unpacker};

/// Normalizes a path without looking at the disk: removes `.`, `..` and doubled slashes. A path on a drive is written
/// `d:/a` in lower case, since drives ignore case.
pub(crate) fn normalize(path: &str) -> String {
    match on_drive(path) {
        Some((drive, rest)) => {
            let parts = parts_of(&rest.replace('\\', "/")).join("/");
            format!("{}:/{parts}", drive.to_ascii_lowercase()).to_lowercase()
        }
        None => {
            let joined = parts_of(path).join("/");
            if path.starts_with('/') { format!("/{joined}") } else { joined }
        }
    }
}

/// Splits a path such as `D:\a` or `D:/a` into the drive and the rest.
pub(crate) fn on_drive(path: &str) -> Option<(char, &str)> {
    let drive = path.chars().next().filter(char::is_ascii_alphabetic)?;
    let rest = path[1..].strip_prefix(':')?;
    rest.starts_with(['/', '\\']).then_some((drive, rest))
}

/// Converts a path that a shell on Windows writes as `/d/a` or `/mnt/d/a` to a path on a drive.
pub(crate) fn mounted(path: &str) -> Option<String> {
    let rest = path.strip_prefix("/mnt/").or_else(|| path.strip_prefix('/'))?;
    let drive = rest.chars().next().filter(char::is_ascii_alphabetic)?;
    let rest = rest[1..].strip_prefix('/').or(Some("").filter(|_| rest.len() == 1))?;
    Some(format!("{drive}:/{rest}"))
}

/// The path in an address of a file, after `file:`. `None` if it is on another machine or has escapes that are no text.
pub(crate) fn path_of_address(address: &str) -> Option<String> {
    let path = match address.strip_prefix("//") {
        Some(rest) => rest.strip_prefix("localhost").unwrap_or(rest),
        None => address,
    };
    let path = unescaped(path.starts_with('/').then_some(path)?)?;
    // `file:///c:/a` is on a drive.
    Some(match on_drive(&path[1..]) {
        Some(_) => path[1..].to_owned(),
        None => path,
    })
}

/// A text in which escapes such as `%20` are replaced by what they stand for.
fn unescaped(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        match (first, after) {
            (b'%', [high, low, after @ ..]) => {
                let digits = [*high, *low];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
                rest = after;
            }
            (b'%', _) => return None,
            (byte, after) => {
                bytes.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// Directories of systems that tell upper from lower case.
const KEEP_CASE: [&str; 7] = ["/etc/", "/home/", "/opt/", "/root/", "/srv/", "/usr/", "/var/"];

/// A path as systems compare it that ignore letter case, and how accents are composed.
pub(crate) fn folded(path: &str) -> Cow<'_, str> {
    let is_lower = path.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
    if is_lower || KEEP_CASE.iter().any(|root| path.starts_with(root)) {
        return Cow::Borrowed(path);
    }
    Cow::Owned(path.nfc().collect::<String>().to_lowercase())
}

/// The last part of a path, as it is compared on every system.
pub(crate) fn folded_name(path: &str) -> String {
    folded(last_part(path)).into_owned()
}

fn parts_of(path: &str) -> Vec<&str> {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            ".." if path.starts_with('/') => {}
            part => parts.push(part),
        }
    }
    parts
}

/// Whether a path names a device, which stores nothing.
pub(crate) fn is_device(path: &str) -> bool {
    let parts = written_parts(path);
    path.starts_with('/') && parts.len() > 1 && parts[0] == "dev" && parts[1] != "shm" && !parts.contains(&"..")
}

/// Whether a path leads through directories in which names are other names of files elsewhere.
fn leads_elsewhere(path: &str) -> bool {
    let (written, normal) = (written_parts(path), parts_of(path));
    let is_linked = |parts: &[&str]| parts.first() == Some(&"proc");
    path.starts_with('/')
        && (is_linked(&written) || is_linked(&normal) || (written.first() == Some(&"dev") && written.contains(&"..")))
}

/// The parts of a path as written, without empty ones and dots.
fn written_parts(path: &str) -> Vec<&str> {
    path.split('/').filter(|part| !matches!(*part, "" | ".")).collect()
}

/// Whether a path does not depend on a directory.
pub(crate) fn is_absolute(path: &str) -> bool {
    path.starts_with('/') || path.starts_with('~') || path.starts_with("\\\\") || on_drive(path).is_some()
}

/// Resolves a path from a directory.
pub(crate) fn join(directory: &str, path: &str) -> String {
    if is_absolute(path) {
        return path.to_owned();
    }
    if on_drive(directory).is_some() {
        return format!("{}/{}", directory.trim_end_matches(['/', '\\']), path.replace('\\', "/"));
    }
    if directory.is_empty() {
        return path.to_owned();
    }
    format!("{}/{path}", directory.trim_end_matches('/'))
}

/// The last part of a path.
pub(crate) fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a normal path is at or beneath `under`. If one of them is relative to an unknown directory, whether it may
/// be.
pub(crate) fn is_beneath(normal: &str, under: &str) -> bool {
    let (normal, under) = (&*folded(normal), &*folded(under));
    if under.is_empty() || under.starts_with("..") || normal.starts_with("..") {
        return true;
    }
    match (is_absolute(normal), is_absolute(under)) {
        (true, true) | (false, false) => starts(normal, under),
        // The file may be anywhere.
        (false, true) => true,
        (true, false) => normal.match_indices('/').any(|(at, _)| starts(&normal[at + 1..], under)),
    }
}

/// Whether a path begins with another one, by whole parts.
fn starts(path: &str, start: &str) -> bool {
    path.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || start.ends_with('/'))
}

/// Whether two different normal paths may name the same file: because one is relative to an unknown directory, or
/// because the system may ignore letter case and how accents are composed.
pub(crate) fn may_be_same(one: &str, other: &str) -> bool {
    let (one, other) = (&*folded(one), &*folded(other));
    if one == other {
        return true;
    }
    let (long, short) = match (is_absolute(one), is_absolute(other)) {
        (true, false) => (one, other),
        (false, true) => (other, one),
        (true, true) => {
            return mounted(one).is_some_and(|path| normalize(&path) == other)
                || mounted(other).is_some_and(|path| normalize(&path) == one);
        }
        (false, false) => {
            return last_part(one) == last_part(other) && (one.starts_with("..") || other.starts_with(".."));
        }
    };
    let short = short.trim_start_matches("../");
    long.strip_suffix(short).is_some_and(|rest| rest.ends_with('/'))
}

/// The directory that a command runs in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Directory {
    /// Where the session began, which is unknown; paths stay relative.
    #[default]
    Start,
    /// This one; absolute, or relative to where the session began.
    At(String),
    /// Unknown.
    Lost,
}

impl Directory {
    /// Resolves a path from here. `None` if it is relative and the directory is lost, or if it is unknown where it
    /// leads.
    pub(crate) fn place(&self, written: &str) -> Option<String> {
        let placed = match self {
            // Only on Windows is this a drive; elsewhere it is a directory, whose name has upper and lower case.
            _ if written.contains(":/") && on_drive(written).is_some() => self.place_on_drive(written)?,
            _ if is_absolute(written) => written.to_owned(),
            Directory::Start => written.to_owned(),
            Directory::At(directory) => join(directory, written),
            Directory::Lost => return None,
        };
        Some(placed).filter(|path| !leads_elsewhere(path))
    }

    /// The same for a name of which only its end may be known: a relative one stays as it is where the directory is lost.
    /// `None` if it is unknown where it leads.
    pub(crate) fn place_somewhere(&self, written: &str) -> Option<String> {
        self.place(written).or_else(|| (!is_absolute(written) && *self == Directory::Lost).then(|| written.to_owned()))
    }

    /// The same for tools that are given absolute paths, addresses of files, or paths from the root of the workspace.
    pub(crate) fn place_for_tool(&self, written: &str) -> Option<String> {
        let addressed = match written.strip_prefix("file:") {
            Some(address) => Some(path_of_address(address)?),
            None => None,
        };
        let written = addressed.as_deref().unwrap_or(written);
        if on_drive(written).is_some() {
            return Some(written.to_owned());
        }
        // The root of the workspace may be this directory or any above, so the path stays relative.
        match written.strip_prefix("@/") {
            Some(rest) => Directory::Start.place(rest),
            None => self.place(written),
        }
    }

    /// Resolves a path such as `c:/a`, if it is known of which system it is.
    fn place_on_drive(&self, written: &str) -> Option<String> {
        match self {
            Directory::At(directory) if on_drive(directory).is_some() || mounted(directory).is_some() => {
                Some(written.to_owned())
            }
            Directory::At(directory) if directory.starts_with('/') => Some(format!("{directory}/{written}")),
            _ => None,
        }
    }

    /// Writes it.
    pub(crate) fn rest(&self, packer: &mut Packer<'_>) {
        match self {
            Directory::Start => packer.number(0_u64),
            Directory::Lost => packer.number(1_u64),
            Directory::At(path) => {
                packer.number(2_u64);
                packer.text(path);
            }
        }
    }

    /// Reads it again.
    pub(crate) fn wake(unpacker: &mut Unpacker<'_>) -> Result<Self, Damaged> {
        match unpacker.number::<u64>()? {
            0 => Ok(Directory::Start),
            1 => Ok(Directory::Lost),
            2 => Ok(Directory::At(unpacker.text()?.as_ref().to_owned())),
            _ => Err(Damaged),
        }
    }
}
