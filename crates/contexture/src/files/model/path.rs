//! Paths as agents write them, and which of them mean the same file.

use std::collections::HashMap;

/// Knows files by every name that was used for them.
///
/// Agents write the same file as an absolute path, relative to the project and relative to a directory they
/// changed into. Which directory relative paths start from is learned: from paths of two parts or more that
/// end another path, since a bare `mod.rs` could be any.
#[derive(Clone, Debug, Default)]
pub(super) struct PathIndex {
    by_path: HashMap<String, usize>,
    /// Paths by their last part.
    by_name: HashMap<String, Vec<String>>,
    /// Directories that relative paths were seen to start from, the newest last.
    roots: Vec<String>,
}

/// Most directories that are remembered as starts of relative paths.
const MAX_ROOTS: usize = 16;

impl PathIndex {
    pub(super) fn find(&self, normal: &str) -> Option<usize> {
        if let Some(index) = self.by_path.get(normal) {
            return Some(*index);
        }
        let by_root = self.roots.iter().rev().find_map(|root| {
            if normal.starts_with('/') {
                self.by_path.get(normal.strip_prefix(root.as_str())?.strip_prefix('/')?)
            } else {
                self.by_path.get(&format!("{root}/{normal}"))
            }
        });
        by_root.copied().or_else(|| self.by_path.get(self.longer_or_shorter(normal)?).copied())
    }

    /// The one known path that ends with this one or that this one ends with.
    fn longer_or_shorter(&self, normal: &str) -> Option<&str> {
        if is_at_revision(normal) {
            return None;
        }
        let candidates = self.by_name.get(last_part(normal))?;
        let mut matching = candidates
            .iter()
            .filter(|path| !is_at_revision(path) && (ends_with_path(path, normal) || ends_with_path(normal, path)));
        let first = matching.next()?;
        matching.all(|path| self.by_path[path] == self.by_path[first]).then_some(first)
    }

    pub(super) fn add(&mut self, normal: &str, index: usize) {
        if self.by_path.contains_key(normal) {
            return;
        }
        if let Some(other) = self.longer_or_shorter(normal) {
            let (long, short) = if other.len() > normal.len() { (other, normal) } else { (normal, other) };
            let root = long[..long.len() - short.len()].trim_end_matches('/').to_owned();
            if root.starts_with('/') && !self.roots.contains(&root) && self.roots.len() < MAX_ROOTS {
                self.roots.push(root);
            }
        }
        self.by_path.insert(normal.to_owned(), index);
        self.by_name.entry(last_part(normal).to_owned()).or_default().push(normal.to_owned());
    }

    /// The same for a name in a text, where the last part alone will do if only one file has it.
    pub(super) fn find_named(&self, normal: &str) -> Option<usize> {
        self.find(normal).or_else(|| {
            let mut paths = self.by_name.get(normal)?.iter().filter(|path| !is_at_revision(path));
            let index = self.by_path[paths.next()?];
            paths.all(|path| self.by_path[path] == index).then_some(index)
        })
    }
}

/// Whether a path is a file at a revision, `HEAD:src/a.rs`, and so another file than the one on disk. A colon behind
/// one letter is a drive's.
pub(super) fn is_at_revision(path: &str) -> bool {
    path.find(':').is_some_and(|colon| colon != 1)
}

pub(super) fn last_part(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Whether a relative `tail` of two parts or more is the end of `path`, by whole parts.
fn ends_with_path(path: &str, tail: &str) -> bool {
    !tail.starts_with('/')
        && tail.contains('/')
        && path.len() > tail.len()
        && path.ends_with(tail)
        && path.as_bytes()[path.len() - tail.len() - 1] == b'/'
}

/// The extension of a path.
pub(super) fn extension_of(path: &str) -> &str {
    last_part(path).rsplit_once('.').map_or("", |(_, extension)| extension)
}

/// Whether a file may be the one at `under`, or stand beneath it. Either may be relative to a directory that
/// nobody knows, and then it may.
pub(super) fn is_beneath(normal: &str, under: &str) -> bool {
    if under.is_empty() || normal == under {
        return true;
    }
    match (normal.starts_with('/'), under.starts_with('/')) {
        (true, true) => normal.strip_prefix(under).is_some_and(|rest| rest.starts_with('/') || under == "/"),
        (false, true) => extension_of(under).is_empty() || ends_with_path(under, normal) || last_part(under) == normal,
        (_, false) => {
            let inner = format!("/{under}/");
            format!("/{normal}/").contains(&inner)
        }
    }
}

/// A path without `.`, `..` and doubled slashes, as far as that can be said without looking.
pub(super) fn normalize(path: &str) -> String {
    let path = path.replace('\\', "/");
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let joined = parts.join("/");
    if path.starts_with('/') { format!("/{joined}") } else { joined }
}
