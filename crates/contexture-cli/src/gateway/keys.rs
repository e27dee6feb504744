//! The keys of `contexture serve`, in a file that only its user can read.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use contexture_gateway::AccessKey;

use crate::failure::Failure;
use crate::state_directory::state_directory;

/// The name of the first key.
const FIRST: &str = "own";

/// The keys, and where they are kept.
pub(super) struct KeptKeys {
    pub(super) keys: Vec<AccessKey>,
    pub(super) path: PathBuf,
    /// Whether they were made just now.
    pub(super) is_new: bool,
}

impl KeptKeys {
    /// Reads the keys; on the first start one is made.
    ///
    /// # Errors
    /// The file cannot be read or created, others can read it, or there is something else in it.
    pub(super) fn read(path: Option<&Path>) -> Result<Self, Failure> {
        let path = match path {
            Some(path) => path.to_owned(),
            None => state_directory()?.join("gateway-keys.toml"),
        };
        let fail = |error: io::Error| Failure::work(format!("read the keys in `{}`: {error}", path.display()));
        let is_new = match create(&path) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => false,
            Err(error) => return Err(fail(error)),
        };
        let mut file = fs::File::open(&path).map_err(fail)?;
        check_private(&file.metadata().map_err(fail)?, &path)?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(fail)?;
        Ok(Self { keys: parsed(&text, &path)?, path, is_new })
    }
}

/// Creates the file with a fresh key, unless there is one.
fn create(path: &Path) -> io::Result<()> {
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(directory)?;
    }
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let text = format!(
        "# Who may use `contexture serve`: a name for each, with 32 letters and digits or more that nobody guesses.\n\
         # With more than one, conversations are kept by key, and files named as `#path` are not read.\n\
         {FIRST} = \"{}\"\n",
        AccessKey::fresh(FIRST).secret()
    );
    options.open(path)?.write_all(text.as_bytes())
}

#[cfg(unix)]
fn check_private(found: &fs::Metadata, path: &Path) -> Result<(), Failure> {
    match std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o077 {
        0 => Ok(()),
        _ => Err(Failure::work(format!("other users can read the keys in `{}`", path.display()))
            .hint(format!("`chmod 600 {}`, and replace the keys if others had the time to read them", path.display()))),
    }
}

#[cfg(not(unix))]
fn check_private(_: &fs::Metadata, _: &Path) -> Result<(), Failure> {
    // The user's directory is private there.
    Ok(())
}

/// The keys in the text of the file. Errors never quote it.
fn parsed(text: &str, path: &Path) -> Result<Vec<AccessKey>, Failure> {
    let fail = |what: String| {
        Failure::work(format!("`{}`: {what}", path.display())).hint("write each key as `name = \"32 letters or more\"`")
    };
    let table: toml::Table = toml::from_str(text).map_err(|_| fail("this is no list of keys".to_owned()))?;
    let mut keys = Vec::new();
    for (name, value) in &table {
        let secret = value.as_str().ok_or_else(|| fail(format!("the key `{name}` is no text")))?;
        let key = AccessKey::new(name, secret).map_err(|error| fail(format!("the key `{name}`: {error}")))?;
        if keys.iter().any(|other: &AccessKey| other.secret() == key.secret()) {
            return Err(fail(format!("the key `{name}` is there twice")));
        }
        keys.push(key);
    }
    match keys.is_empty() {
        true => Err(fail("there is no key in it".to_owned()).hint("delete it, and the next start makes a key")),
        false => Ok(keys),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_once_and_kept_for_this_user_only() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state/contexture/keys.toml");
        let first = KeptKeys::read(Some(&path)).unwrap();
        assert!(first.is_new && first.keys.len() == 1);
        let second = KeptKeys::read(Some(&path)).unwrap();
        assert!(!second.is_new && second.keys == first.keys);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
            let failure = KeptKeys::read(Some(&path)).err().unwrap();
            assert!(failure.sentence().contains("other users can read"), "{failure:?}");
        }
    }

    #[test]
    fn what_is_no_key_is_refused_without_being_quoted() {
        let check = |text: &str, words: &str| {
            let failure = format!("{:?}", parsed(text, Path::new("keys.toml")).unwrap_err());
            assert!(failure.contains(words) && !failure.contains("hunter2"), "{failure}");
        };
        check("one = \"hunter2\"", "32 to 256 letters");
        check("one = 5", "no text");
        check("hunter2", "no list of keys");
        check("", "no key in it");
        let secret = "a".repeat(32);
        check(&format!("one = \"{secret}\"\ntwo = \"{secret}\""), "twice");
        let keys = parsed(&format!("one = \"{secret}\"\ntwo = \"{secret}b\""), Path::new("keys.toml")).unwrap();
        assert_eq!(keys.iter().map(AccessKey::name).collect::<Vec<_>>(), ["one", "two"]);
    }
}
