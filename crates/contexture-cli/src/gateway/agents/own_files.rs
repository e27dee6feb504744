//! Files that agents are told of, for as long as they run.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Files of the gateway's own, which only this user can read, and which are deleted at the end.
#[derive(Default)]
pub(super) struct OwnFiles(Vec<PathBuf>);

impl OwnFiles {
    /// All of them.
    #[cfg(test)]
    pub(super) fn paths(&self) -> &[PathBuf] {
        &self.0
    }

    pub(super) fn make_directory(&mut self, path: &Path) -> io::Result<()> {
        #[cfg_attr(not(unix), allow(unused_mut))]
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        // One that is there already is somebody else's.
        builder.create(path)?;
        self.0.push(path.to_owned());
        Ok(())
    }

    pub(super) fn write(&mut self, path: &Path, text: &str) -> io::Result<()> {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(path)?;
        self.0.push(path.to_owned());
        file.write_all(text.as_bytes())
    }
}

impl Drop for OwnFiles {
    fn drop(&mut self) {
        for path in self.0.iter().rev() {
            // An error only leaves a file with a key that is worth nothing any more.
            let _ = if path.is_dir() { fs::remove_dir(path) } else { fs::remove_file(path) };
        }
    }
}

/// Removes files of runs that were killed before they could do it themselves.
#[cfg(unix)]
pub(super) fn remove_left(directory: &Path, name: &str) {
    use rustix::process::{Pid, test_kill_process};
    let Some((start, end)) = name.split_once("{id}") else { return };
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let found = entry.file_name();
        let id = found.to_str().and_then(|found| found.strip_prefix(start)?.strip_suffix(end));
        let pid = id.and_then(|id| id.split_once('-')?.0.parse().ok()).and_then(Pid::from_raw);
        if pid.is_some_and(|pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH)) {
            // If it stays, it holds a key that is worth nothing any more.
            let _ = fs::remove_file(entry.path());
        }
    }
}

#[cfg(not(unix))]
pub(super) fn remove_left(_: &Path, _: &str) {}
