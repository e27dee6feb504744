//! The files of a project, found by a few of their letters.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contexture::reference;
use ignore::WalkBuilder;
use tokio::sync::watch;

/// The most files that are known; of a larger project, those that are found first.
const MAX_FILES: usize = 500_000;

/// How many files are added at once, so that the first ones can be found early.
const BATCH: usize = 1_000;

/// The names of a project's files. They are collected in the background; what is known so far can be searched.
#[derive(Clone)]
pub struct ProjectFiles {
    known: Arc<Mutex<Vec<Known>>>,
    /// How many there are, and whether these are all.
    progress: watch::Receiver<(usize, bool)>,
}

struct Known {
    path: String,
    lower: String,
    /// Where the file's own name begins.
    name: usize,
}

impl ProjectFiles {
    /// Begins to collect the files beneath a directory that `.gitignore` does not leave out.
    pub fn collect(directory: &Path) -> Self {
        let (sender, progress) = watch::channel((0, false));
        let files = Self { known: Arc::default(), progress };
        let (known, directory) = (files.known.clone(), directory.to_owned());
        std::thread::spawn(move || walk(directory, &known, &sender));
        files
    }

    /// Changes when more files are known.
    pub fn progress(&self) -> watch::Receiver<(usize, bool)> {
        self.progress.clone()
    }

    /// The files whose paths have these letters in this order, the best first.
    pub fn find(&self, letters: &str, count: usize) -> Vec<String> {
        let wanted = letters.to_lowercase();
        let known = lock(&self.known);
        let score = |(index, file): (usize, &Known)| Some((score(file, wanted.as_bytes())?, index));
        let mut found: Vec<(i64, usize)> = known.iter().enumerate().filter_map(score).collect();
        let order = |one: &(i64, usize), other: &(i64, usize)| {
            let path = |found: &(i64, usize)| &known[found.1].path;
            other
                .0
                .cmp(&one.0)
                .then_with(|| path(one).len().cmp(&path(other).len()))
                .then_with(|| path(one).cmp(path(other)))
        };
        if found.len() > count && count > 0 {
            found.select_nth_unstable_by(count - 1, order);
        }
        found.truncate(count);
        found.sort_by(order);
        found.into_iter().map(|(_, index)| known[index].path.clone()).collect()
    }
}

fn walk(directory: PathBuf, known: &Mutex<Vec<Known>>, progress: &watch::Sender<(usize, bool)>) {
    let walk = WalkBuilder::new(&directory)
        .hidden(false)
        .require_git(false)
        .filter_entry(|entry| entry.file_name() != ".git")
        .build();
    let (mut batch, mut total) = (Vec::new(), 0);
    let files = walk.filter_map(Result::ok).filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    for entry in files.take(MAX_FILES) {
        // A name that is not text, or that would end a line, can't be written in a message.
        let path = entry.path().strip_prefix(&directory).ok().and_then(Path::to_str);
        let Some(path) = path.filter(|path| !path.contains(char::is_control)) else { continue };
        let lower = path.to_lowercase();
        let name = lower.rfind('/').map_or(0, |at| at + 1);
        batch.push(Known { path: path.to_owned(), lower, name });
        if batch.len() == BATCH {
            total += batch.len();
            lock(known).append(&mut batch);
            // The program that no longer listens has ended.
            if progress.send((total, false)).is_err() {
                return;
            }
        }
    }
    total += batch.len();
    lock(known).append(&mut batch);
    // Nobody has to listen.
    let _ = progress.send((total, true));
}

/// How well a file matches: more for its own name, for letters side by side, and for beginnings of words.
fn score(file: &Known, wanted: &[u8]) -> Option<i64> {
    let path = file.lower.as_bytes();
    let in_name = matched(path, file.name, wanted).map(|score| score + 50);
    let score = in_name.or_else(|| matched(path, 0, wanted))?;
    Some(score * 4 - path.len() as i64)
}

/// How well letters match a path from a position on; `None` if not all of them are there in order.
fn matched(path: &[u8], from: usize, wanted: &[u8]) -> Option<i64> {
    let (mut score, mut at, mut last) = (0, from, None);
    for &letter in wanted {
        let found = at + memchr::memchr(letter, path.get(at..)?)?;
        let is_next = last.is_some_and(|last| last + 1 == found);
        let is_begin = found == from || matches!(path[found - 1], b'/' | b'_' | b'-' | b'.' | b' ');
        score += 1 + if is_next { 12 } else { 0 } + if is_begin { 8 } else { 0 };
        last = Some(found);
        at = found + 1;
    }
    Some(score)
}

/// A path as a reference: in quotes if it would not be understood without.
pub fn referenced(path: &str) -> String {
    let plain = format!("#{path}");
    let is_understood = reference::find(&plain, |_| false).first().is_some_and(|found| found.path == path);
    if is_understood { plain } else { format!("#\"{path}\"") }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(paths: &[&str]) -> ProjectFiles {
        let known = paths.iter().map(|path| Known {
            path: (*path).to_owned(),
            lower: path.to_lowercase(),
            name: path.rfind('/').map_or(0, |at| at + 1),
        });
        ProjectFiles { known: Arc::new(Mutex::new(known.collect())), progress: watch::channel((0, true)).1 }
    }

    #[test]
    fn names_match_before_directories_and_words_before_letters() {
        let files = files(&["src/lib.rs", "library/other.txt", "src/chat/line_mode.rs", "README.md", "docs/Models.md"]);
        assert_eq!(files.find("lib", 2), ["src/lib.rs", "library/other.txt"]);
        assert_eq!(files.find("lm", 1), ["src/chat/line_mode.rs"]);
        assert_eq!(files.find("MODELS", 3), ["docs/Models.md"]);
        assert_eq!(files.find("src/l", 1), ["src/lib.rs"]);
        assert_eq!(files.find("zzz", 3), Vec::<String>::new());
        assert_eq!(files.find("", 2), ["README.md", "src/lib.rs"]);
        assert_eq!(files.find("lib", 0), Vec::<String>::new());
    }

    #[test]
    fn references_are_written_so_that_they_are_understood() {
        for (path, expected) in
            [("src/lib.rs", "#src/lib.rs"), ("my notes.md", "#\"my notes.md\""), ("Makefile", "#\"Makefile\"")]
        {
            assert_eq!(referenced(path), expected);
            assert_eq!(reference::find(&referenced(path), |_| false)[0].path, path);
        }
    }

    #[test]
    fn ignored_files_are_not_completed() {
        let directory = tempfile::tempdir().expect("a directory");
        for (path, text) in [(".gitignore", "target\n"), ("target/a.rs", ""), ("src/a.rs", ""), (".git/a.rs", "")] {
            let path = directory.path().join(path);
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
            std::fs::write(path, text).expect("a file");
        }
        let files = ProjectFiles::collect(directory.path());
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let mut progress = files.progress();
        runtime.block_on(progress.wait_for(|(_, is_all)| *is_all)).expect("the walk ends");
        assert_eq!(files.find("a.rs", 9), ["src/a.rs"]);
    }
}
