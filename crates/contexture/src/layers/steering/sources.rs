//! The files of the project from which programs read what they run: scripts, Makefiles, scripts of packages.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap, HashSet};

use contexture_core::host::{FileErrorCode, FsAdapter, ReadLimits, relative_path};
use serde_json::Value;

use crate::arguments::normal_path;
use crate::files::argument_names::names;

/// Most files that are read for one call.
const MAX_FILES: usize = 48;
/// Most parts of files that one search looks at.
const MAX_SEEN: usize = 60;
/// Most directories that a line may be in.
const MAX_DIRECTORIES: usize = 8;
const LIMITS: ReadLimits = ReadLimits { max_bytes: 512 * 1024, follow_symlinks: true };

/// What is known of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SourceFile {
    /// Its text.
    Text(String),
    /// It is no text: a compiled program.
    Binary,
    /// There is none.
    Absent,
    /// It cannot be read.
    Unreadable,
}

/// The files that were read for a call, and those that are asked for.
///
/// A search for what a pattern names never waits: it asks for files here, and is made again once they are read.
#[derive(Default)]
pub(super) struct SourceFiles {
    /// Absolute names of the directory that paths are relative to.
    bases: Vec<String>,
    known: HashMap<String, SourceFile>,
    asked: RefCell<BTreeSet<String>>,
    /// The directories that the call may be in.
    directories: RefCell<Vec<String>>,
    /// Whether it may be in another one besides.
    is_lost: Cell<bool>,
    /// What this search has looked at.
    seen: RefCell<HashSet<String>>,
}

impl SourceFiles {
    pub(super) fn new(bases: Vec<String>) -> Self {
        Self { bases, ..Self::default() }
    }

    /// With files that are known already.
    #[cfg(test)]
    pub(super) fn with(mut self, files: &[(&str, &str)]) -> Self {
        let known = files.iter().map(|(path, text)| ((*path).to_owned(), SourceFile::Text((*text).to_owned())));
        self.known.extend(known);
        self
    }

    pub(super) fn bases(&self) -> &[String] {
        &self.bases
    }

    /// Begins a search in the arguments of a call.
    pub(super) fn begin(&self, arguments: &Value) {
        *self.directories.borrow_mut() = vec![String::new()];
        self.seen.borrow_mut().clear();
        self.is_lost.set(false);
        for name in names().workdir() {
            if let Some(directory) = arguments.get(*name).and_then(Value::as_str) {
                self.enter(Some(directory));
            }
        }
    }

    /// The call may change its directory; without a name it is not known to which one.
    pub(super) fn enter(&self, directory: Option<&str>) {
        let mut directories = self.directories.borrow_mut();
        let found: Vec<String> =
            directory.iter().flat_map(|to| directories.iter().filter_map(move |from| self.joined(from, to))).collect();
        self.is_lost.set(self.is_lost.get() || found.is_empty());
        for found in found {
            // The last one is the one that it is in if nothing fails.
            directories.retain(|known| *known != found);
            directories.push(found);
        }
        let surplus = directories.len().saturating_sub(MAX_DIRECTORIES);
        self.is_lost.set(self.is_lost.get() || surplus > 0);
        directories.drain(..surplus);
    }

    /// Looks at what runs in a directory of its own, after which the call is where it was.
    pub(super) fn within<T>(&self, directory: &str, look: impl FnOnce() -> T) -> T {
        let before = (self.directories.borrow().clone(), self.is_lost.get());
        let inside: Vec<String> = before.0.iter().filter_map(|from| self.joined(from, directory)).collect();
        self.is_lost.set(before.1 || inside.is_empty());
        *self.directories.borrow_mut() = inside;
        let looked = look();
        *self.directories.borrow_mut() = before.0;
        self.is_lost.set(before.1);
        looked
    }

    /// Whether the call may be in a directory that is not known.
    pub(super) fn is_lost(&self) -> bool {
        self.is_lost.get()
    }

    /// The directories that the call may be in, the likeliest last, each with the name that a path has from there; `None`
    /// if all lead elsewhere.
    pub(super) fn names(&self, path: &str) -> Option<Vec<(String, String)>> {
        let directories = self.directories.borrow();
        let named = |directory: &String| Some((directory.clone(), self.joined(directory, path)?));
        let names: Vec<(String, String)> = directories.iter().filter_map(named).collect();
        (!names.is_empty()).then_some(names)
    }

    /// Looks at what runs in one of these directories. If it goes elsewhere, it is not known where the call is then.
    pub(super) fn in_directory<T>(&self, directory: &str, look: impl FnOnce() -> T) -> T {
        let here = vec![directory.to_owned()];
        let before = self.directories.replace(here.clone());
        let looked = look();
        let after = self.directories.replace(before);
        self.is_lost.set(self.is_lost.get() || after != here);
        looked
    }

    /// A file; until it is read it is absent.
    pub(super) fn file(&self, path: &str) -> &SourceFile {
        self.known.get(path).unwrap_or_else(|| {
            self.asked.borrow_mut().insert(path.to_owned());
            &SourceFile::Absent
        })
    }

    /// Whether this search sees something for the first time.
    pub(super) fn is_first(&self, what: String) -> bool {
        self.seen.borrow_mut().insert(what)
    }

    /// Whether this search has looked at so much that the rest is not looked at.
    pub(super) fn is_tired(&self) -> bool {
        self.seen.borrow().len() >= MAX_SEEN
    }

    /// Reads what was asked for, and says whether there was anything.
    pub(super) async fn read(&mut self, fs: &dyn FsAdapter) -> bool {
        let asked = std::mem::take(self.asked.get_mut());
        let is_any = !asked.is_empty();
        for path in asked {
            let source = if self.known.len() < MAX_FILES { read(fs, &path).await } else { SourceFile::Unreadable };
            self.known.insert(path, source);
        }
        is_any
    }

    /// A path below the base, from a directory below it.
    fn joined(&self, directory: &str, path: &str) -> Option<String> {
        let path = normal_path(path, &self.bases);
        if path.starts_with(['/', '~']) || self.bases.contains(&path) {
            return self.bases.contains(&path).then(String::new);
        }
        let joined = if directory.is_empty() { path } else { format!("{directory}/{path}") };
        match relative_path(&joined) {
            Ok(path) => Some(path.into_owned()),
            // The base itself.
            Err(error) if error.code == FileErrorCode::NotAFile || joined.is_empty() => Some(String::new()),
            Err(_) => None,
        }
    }
}

async fn read(fs: &dyn FsAdapter, path: &str) -> SourceFile {
    match fs.read(path, LIMITS).await {
        Ok(read) => SourceFile::Text(read.text),
        Err(error) => match error.code {
            FileErrorCode::NotFound => SourceFile::Absent,
            FileErrorCode::NotText => SourceFile::Binary,
            // Nobody writes so long a script; one with an extension may be one all the same.
            FileErrorCode::FileTooLarge if !path.rsplit('/').next().unwrap_or(path).contains('.') => SourceFile::Binary,
            _ => SourceFile::Unreadable,
        },
    }
}
