//! Which names refer to the same file.

use std::collections::HashMap;

use crate::path::{folded_name, may_be_same, mounted, normalize, on_drive};
use contexture_text::packed::{Damaged, Packer, Unpacker};

/// Finds files by their normal paths. Each path is a separate file: a longer and a shorter path are never taken for the
/// same file because their ends are equal, since another package may have a file of that name.
#[derive(Clone, Debug, Default)]
pub(super) struct PathIndex {
    by_path: HashMap<String, usize>,
    /// Paths by their last part, in lower case.
    by_name: HashMap<String, Vec<String>>,
    /// Whether paths on drives were seen, so that `/d/a` counts as one too.
    has_drives: bool,
}

impl PathIndex {
    pub(super) fn find(&self, normal: &str) -> Option<usize> {
        self.by_path.get(normal).or_else(|| self.by_path.get(&self.on_drive(normal)?)).copied()
    }

    fn on_drive(&self, normal: &str) -> Option<String> {
        mounted(normal).filter(|_| self.has_drives).map(|path| normalize(&path))
    }

    pub(super) fn add(&mut self, normal: &str, index: usize) {
        self.has_drives |= on_drive(normal).is_some();
        let normal = self.on_drive(normal).unwrap_or_else(|| normal.to_owned());
        self.by_name.entry(folded_name(&normal)).or_default().push(normal.clone());
        self.by_path.insert(normal, index);
    }

    /// The file that a name in a text most likely refers to: the one path that ends with it. It is used only for marks,
    /// never for what is known of a file.
    pub(super) fn find_like(&self, normal: &str) -> Option<usize> {
        self.find(normal).or_else(|| {
            let paths = self.by_name.get(&folded_name(normal))?;
            let is_like = |path: &&String| ends_with(path, normal) || ends_with(normal, path);
            let mut like = paths.iter().filter(is_like);
            let first = like.next()?;
            like.next().is_none().then(|| self.by_path[first])
        })
    }

    /// Other files that may be the same as the file of a path.
    pub(super) fn others(&self, normal: &str) -> Vec<usize> {
        let Some(paths) = self.by_name.get(&folded_name(normal)) else { return Vec::new() };
        let is_other = |path: &&String| path.as_str() != normal && may_be_same(path, normal);
        paths.iter().filter(is_other).map(|path| self.by_path[path]).collect()
    }

    /// Writes all paths with their files.
    pub(super) fn rest(&self, packer: &mut Packer<'_>) {
        let Self { by_path, by_name, has_drives } = self;
        let mut names: Vec<(&String, &Vec<String>)> = by_name.iter().collect();
        names.sort_unstable();
        let mut before = "";
        packer.list(names, |packer, (_, paths)| {
            packer.list(paths, |packer, path| {
                packer.text_after(before, path);
                packer.number(by_path[path]);
                before = path;
            });
        });
        packer.flag(*has_drives);
    }

    /// Reads them again, for a model with this many files.
    pub(super) fn wake(unpacker: &mut Unpacker<'_>, files: usize) -> Result<Self, Damaged> {
        let mut index = Self::default();
        let mut before = String::new();
        unpacker.list(|unpacker| {
            unpacker.list(|unpacker| {
                let path = unpacker.text_after(&before)?;
                before.clone_from(&path);
                index.by_name.entry(folded_name(&path)).or_default().push(path.clone());
                index.by_path.insert(path, unpacker.place(files)?);
                Ok(())
            })
        })?;
        index.has_drives = unpacker.flag()?;
        Ok(index)
    }
}

/// Whether a path ends with another one, by whole parts.
fn ends_with(path: &str, tail: &str) -> bool {
    path.strip_suffix(tail).is_some_and(|rest| rest.ends_with('/'))
}
