//! Checks the paths that a file adapter is called with.

use std::borrow::Cow;

use super::{FileError, FileErrorCode};

/// The longest accepted path, in bytes: the limit of Linux for one call.
pub const MAX_PATH_BYTES: usize = 4095;

/// The path as every [`FsAdapter`](super::FsAdapter) resolves it: relative, `/` between components, without `.` and `..`.
///
/// `..` is resolved lexically, so `a/../b` is `b` whatever `a` is. This is only the first check: an adapter still makes
/// sure that what it opens is below its base.
///
/// ```
/// use contexture_core::host::{FileErrorCode, relative_path};
/// assert_eq!(relative_path("./src//main.rs").unwrap(), "src/main.rs");
/// assert_eq!(relative_path("src/../Cargo.toml").unwrap(), "Cargo.toml");
/// assert_eq!(relative_path("../secret.txt").unwrap_err().code, FileErrorCode::PathTraversal);
/// assert_eq!(relative_path("/etc/passwd").unwrap_err().code, FileErrorCode::AbsolutePath);
/// ```
///
/// # Errors
/// `ABSOLUTE_PATH`, `PATH_TRAVERSAL`, `NOT_A_FILE` for the base itself, `READ_FAILED` for invalid file names.
pub fn relative_path(path: &str) -> Result<Cow<'_, str>, FileError> {
    let refuse = |code, message: &str| Err(FileError { code, path: path.to_owned(), message: message.to_owned() });
    if is_absolute(path) {
        return refuse(FileErrorCode::AbsolutePath, "only paths relative to the base directory are read");
    }
    if path.contains('\0') {
        return refuse(FileErrorCode::ReadFailed, "the path holds a NUL character");
    }
    if path.len() > MAX_PATH_BYTES {
        return refuse(FileErrorCode::ReadFailed, "the path is too long");
    }
    let plain = path.split('/').all(|component| !matches!(component, "" | "." | ".."));
    if plain {
        return Ok(Cow::Borrowed(path));
    }
    let mut components = Vec::new();
    for component in path.split('/') {
        match component {
            "" | "." => {}
            ".." if components.pop().is_none() => {
                return refuse(FileErrorCode::PathTraversal, "it leads out of the base directory");
            }
            ".." => {}
            name => components.push(name),
        }
    }
    if components.is_empty() {
        return refuse(FileErrorCode::NotAFile, "it is a directory");
    }
    Ok(Cow::Owned(components.join("/")))
}

/// Whether a path is absolute on Unix or on Windows.
fn is_absolute(path: &str) -> bool {
    let bytes = path.as_bytes();
    let drive =
        bytes.len() > 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' && matches!(bytes[2], b'/' | b'\\');
    path.starts_with('/') || path.starts_with("\\\\") || drive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: Result<&str, FileErrorCode>) {
        assert_eq!(relative_path(path).as_deref().map_err(|error| error.code), expected, "{path:?}");
    }

    #[test]
    fn paths_are_normalised_or_refused() {
        check("a.rs", Ok("a.rs"));
        check("a/b/c.rs", Ok("a/b/c.rs"));
        check("./a.rs", Ok("a.rs"));
        check("a//b.rs", Ok("a/b.rs"));
        check("a/./b.rs", Ok("a/b.rs"));
        check("a/../b.rs", Ok("b.rs"));
        check("a/b/../../c.rs", Ok("c.rs"));
        check("a.rs/", Ok("a.rs"));
        check("...", Ok("..."));
        check("..a/b", Ok("..a/b"));
        check("..", Err(FileErrorCode::PathTraversal));
        check("../a.rs", Err(FileErrorCode::PathTraversal));
        check("a/../../b.rs", Err(FileErrorCode::PathTraversal));
        check("/a.rs", Err(FileErrorCode::AbsolutePath));
        check("//a.rs", Err(FileErrorCode::AbsolutePath));
        check("C:\\a.rs", Err(FileErrorCode::AbsolutePath));
        check("c:/a.rs", Err(FileErrorCode::AbsolutePath));
        check("\\\\server\\a.rs", Err(FileErrorCode::AbsolutePath));
        check("", Err(FileErrorCode::NotAFile));
        check(".", Err(FileErrorCode::NotAFile));
        check("a/..", Err(FileErrorCode::NotAFile));
        check("a\0.rs", Err(FileErrorCode::ReadFailed));
        check(&"a".repeat(MAX_PATH_BYTES), Ok(&"a".repeat(MAX_PATH_BYTES)));
        check(&"a".repeat(MAX_PATH_BYTES + 1), Err(FileErrorCode::ReadFailed));
    }
}
