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
    known: Arc<Mutex<Vec<CompletablePath>>>,
    /// How many there are, and whether these are all.
    progress: watch::Receiver<(usize, bool)>,
}

struct CompletablePath {
    path: String,
    lower: String,
    /// Where the file's own name begins.
    name: usize,
    letters: Letters,
}

/// Which letters a text has, one bit for each; others share bits. A file without one of the wanted letters needs no
/// closer look.
#[derive(Clone, Copy)]
struct Letters(u64);

impl Letters {
    fn of(text: &[u8]) -> Self {
        Letters(text.iter().fold(0, |bits, byte| bits | 1 << (byte % 64)))
    }

    fn has_all(self, wanted: Letters) -> bool {
        self.0 & wanted.0 == wanted.0
    }
}

/// What was found for some letters, so that one more letter only has to be looked for there.
#[derive(Debug, Default)]
pub struct Narrowed {
    letters: String,
    /// The files that have the letters.
    found: Vec<usize>,
    /// How many files were looked at.
    looked_at: usize,
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
        self.find_again(letters, count, &mut Narrowed::default())
    }

    /// The same, with what was found before for fewer letters.
    pub fn find_again(&self, letters: &str, count: usize, narrowed: &mut Narrowed) -> Vec<String> {
        let wanted = letters.to_lowercase();
        let known = lock(&self.known);
        // A path that has these letters in this order also has the first of them.
        if !wanted.starts_with(&narrowed.letters) {
            *narrowed = Narrowed::default();
        }
        let needed = Letters::of(wanted.as_bytes());
        let mut found = Vec::new();
        let candidates = narrowed.found.iter().copied().chain(narrowed.looked_at..known.len());
        for index in candidates.filter(|index| known[*index].letters.has_all(needed)) {
            if let Some(score) = score(&known[index], wanted.as_bytes()) {
                found.push((score, index));
            }
        }
        narrowed.found.clear();
        narrowed.found.extend(found.iter().map(|(_, index)| *index));
        (narrowed.letters, narrowed.looked_at) = (wanted, known.len());
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

impl CompletablePath {
    fn new(path: &str) -> Self {
        let lower = path.to_lowercase();
        let name = lower.rfind('/').map_or(0, |at| at + 1);
        let letters = Letters::of(lower.as_bytes());
        Self { path: path.to_owned(), lower, name, letters }
    }
}

fn walk(directory: PathBuf, known: &Mutex<Vec<CompletablePath>>, progress: &watch::Sender<(usize, bool)>) {
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
        batch.push(CompletablePath::new(path));
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
fn score(file: &CompletablePath, wanted: &[u8]) -> Option<i64> {
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
        let known = paths.iter().map(|path| CompletablePath::new(path));
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

    proptest::proptest! {
        /// Letter by letter, with more files in between, the same is found as at once.
        #[test]
        fn narrowing_finds_the_same(
            paths in proptest::collection::vec("[a-cé/_A-C]{1,8}", 0..20),
            more in proptest::collection::vec("[a-c/]{1,8}", 0..5),
            letters in "[a-cÉA]{0,5}",
            back in 0_usize..3,
        ) {
            let all: Vec<&str> = paths.iter().map(String::as_str).collect();
            let known = files(&all);
            let mut narrowed = Narrowed::default();
            let typed: Vec<char> = letters.chars().collect();
            for end in 0..=typed.len() {
                known.find_again(&typed[..end].iter().collect::<String>(), 3, &mut narrowed);
            }
            lock(&known.known).extend(more.iter().map(|path| CompletablePath::new(path)));
            let fewer: String = typed[..typed.len().saturating_sub(back)].iter().collect();
            proptest::prop_assert_eq!(known.find_again(&fewer, 3, &mut narrowed), known.find(&fewer, 3));
            proptest::prop_assert_eq!(known.find_again(&letters, 99, &mut narrowed), known.find(&letters, 99));
        }
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
