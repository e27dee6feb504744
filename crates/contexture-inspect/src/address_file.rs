//! The address of a running inspector, in a file that only its owner can read, so that other commands can link to it.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// The name of the file, which is in the directory of the store.
const NAME: &str = "inspector.address";

/// A file with the address of a running inspector. It is deleted with the inspector, unless another one has written its
/// own since.
pub struct AddressFile {
    path: PathBuf,
    url: String,
}

impl AddressFile {
    /// Writes the address of an inspector beside a store. Where that fails, nothing links to it.
    pub fn write(store: &Path, url: String) -> Option<Self> {
        let path = store.with_file_name(NAME);
        // Made anew, so that it never has the rights of an older file.
        if fs::remove_file(&path).is_err() && path.exists() {
            return None;
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        options.open(&path).and_then(|mut file| file.write_all(url.as_bytes())).ok()?;
        Some(Self { path, url })
    }
}

impl Drop for AddressFile {
    fn drop(&mut self) {
        if fs::read_to_string(&self.path).is_ok_and(|url| url == self.url) {
            // A file that cannot be deleted names an inspector that has ended.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The address of the inspector of a running gateway with this store, if it has one.
pub fn running_inspector(store: &Path) -> Option<String> {
    let url = fs::read_to_string(store.with_file_name(NAME)).ok()?;
    let is_local = url.starts_with("http://127.0.0.1:") && !url.contains(char::is_whitespace);
    (is_local && !url.contains(char::is_control)).then_some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_there_as_long_as_its_inspector() {
        let directory = tempfile::tempdir().unwrap();
        let store = directory.path().join("gateway.db");
        assert_eq!(running_inspector(&store), None);
        let first = AddressFile::write(&store, "http://127.0.0.1:1/inspect/#token=a".to_owned()).unwrap();
        let second = AddressFile::write(&store, "http://127.0.0.1:2/inspect/#token=b".to_owned()).unwrap();
        drop(first);
        assert_eq!(running_inspector(&store).as_deref(), Some("http://127.0.0.1:2/inspect/#token=b"));
        #[cfg(unix)]
        {
            let mode = std::os::unix::fs::PermissionsExt::mode(
                &fs::metadata(store.with_file_name(NAME)).unwrap().permissions(),
            );
            assert_eq!(mode & 0o777, 0o600);
        }
        drop(second);
        assert_eq!(running_inspector(&store), None);
        // What somebody else has put there is not linked to.
        fs::write(store.with_file_name(NAME), "http://evil.example/\u{1b}[31m").unwrap();
        assert_eq!(running_inspector(&store), None);
    }
}
