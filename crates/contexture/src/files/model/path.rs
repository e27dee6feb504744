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
        let candidates = self.by_name.get(last_part(normal))?;
        let mut matching =
            candidates.iter().filter(|path| ends_with_path(path, normal) || ends_with_path(normal, path));
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

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}

fn last_part(path: &str) -> &str {
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
