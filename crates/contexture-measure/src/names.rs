//! Names of files in tables: their common folder is printed once.

use std::path::{Path, PathBuf};

/// Names beneath a folder.
pub struct Names {
    folder: PathBuf,
}

impl Names {
    /// Finds the common folder of all paths; for a single path there is none.
    pub fn of<'a>(paths: impl IntoIterator<Item = &'a str>) -> Self {
        let mut paths = paths.into_iter().map(|path| Path::new(path).parent().unwrap_or(Path::new("")));
        let mut folder = paths.next().map(Path::to_owned).unwrap_or_default();
        for other in paths {
            while !other.starts_with(&folder) && folder.pop() {}
        }
        Self { folder }
    }

    /// The folder, if it is worth printing.
    pub fn folder(&self) -> Option<String> {
        let is_said = !self.folder.as_os_str().is_empty() && self.folder != Path::new(".");
        is_said.then(|| self.folder.display().to_string())
    }

    /// A path without the folder.
    pub fn short(&self, path: &str) -> String {
        let short = Path::new(path).strip_prefix(&self.folder).unwrap_or(Path::new(path));
        short.display().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(paths: &[&str], folder: Option<&str>, short: &[&str]) {
        let names = Names::of(paths.iter().copied());
        assert_eq!(names.folder().as_deref(), folder);
        assert_eq!(paths.iter().map(|path| names.short(path)).collect::<Vec<_>>(), short);
    }

    #[test]
    fn the_common_folder_is_taken_off() {
        check(&["/a/b/one", "/a/b/c/two"], Some("/a/b"), &["one", "c/two"]);
        check(&["a/one", "ab/two"], None, &["a/one", "ab/two"]);
        check(&["./one", "./two"], None, &["one", "two"]);
        check(&["in/one", "-"], None, &["in/one", "-"]);
        check(&["/a/one", "/b/two"], Some("/"), &["a/one", "b/two"]);
        check(&[], None, &[]);
    }
}
