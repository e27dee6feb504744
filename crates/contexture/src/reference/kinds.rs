//! Which files are text that people look at, and in which language.

use std::collections::{HashMap, HashSet};
use std::sync::LazyLock;

use super::secret_names::is_secret;

/// What is read by default, and in which language: extensions, then whole names.
static KINDS: LazyLock<[HashMap<&str, &str>; 2]> = LazyLock::new(|| {
    let (extensions, names) = include_str!("kinds.tsv").split_once("\n\n").expect("a blank line is between them");
    [extensions, names].map(|rows| rows.lines().filter_map(|row| row.split_once('\t')).collect())
});

/// Which files may be read: by extension, or by whole name.
///
/// ```
/// use contexture::reference::kinds::AllowList;
/// let list = AllowList::new([".rs", "md", "Dockerfile"]);
/// assert!(list.allows("src/main.rs") && list.allows("docs/README.MD") && list.allows("web/Dockerfile"));
/// assert!(!list.allows("main.py") && !list.allows("Makefile"));
/// assert!(list.is_name("Dockerfile") && !list.is_name("rs"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowList {
    /// In lower case, without a leading dot.
    extensions: HashSet<Box<str>>,
    /// As written.
    names: HashSet<Box<str>>,
}

impl AllowList {
    /// A list of extensions (`rs` or `.rs`) and of whole names (`Dockerfile`, `.gitignore`).
    ///
    /// An entry allows files with that extension as well as files of that name. An entry that is not all in lower case,
    /// or begins with a dot, also counts as a name: with it `#Dockerfile` is a reference, while `#rs` is not.
    pub fn new<'a>(entries: impl IntoIterator<Item = &'a str>) -> Self {
        let mut list = Self { extensions: HashSet::new(), names: HashSet::new() };
        for entry in entries {
            list.extensions.insert(entry.trim_start_matches('.').to_lowercase().into());
            if entry.starts_with('.') || entry.contains(char::is_uppercase) {
                list.names.insert(entry.into());
            }
        }
        list
    }

    /// Whether a file may be read: it is of an allowed kind, and not [secret](Self::hides).
    pub fn allows(&self, path: &str) -> bool {
        !self.hides(path) && self.has_kind_of(path)
    }

    /// Whether the name of a file says that it holds secrets, and is not itself on the list.
    pub fn hides(&self, path: &str) -> bool {
        !self.names.contains(path.rsplit('/').next().unwrap_or(path)) && is_secret(path)
    }

    fn has_kind_of(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        let lower = name.to_lowercase();
        // Every suffix that begins after a dot is an extension: `d.ts` and `ts` of `index.d.ts`.
        let mut suffixes = lower.match_indices('.').map(|(dot, _)| &lower[dot + 1..]);
        self.names.contains(name) || suffixes.any(|suffix| self.extensions.contains(suffix))
    }

    /// Whether a name without an extension is that of a file.
    pub fn is_name(&self, name: &str) -> bool {
        self.names.contains(name)
    }
}

impl Default for AllowList {
    /// Common kinds of code and text.
    fn default() -> Self {
        Self::new(KINDS.iter().flat_map(HashMap::keys).copied())
    }
}

/// The language tag for the fence around a file; `text` if its name is not known.
///
/// ```
/// use contexture::reference::kinds::language;
/// assert_eq!(language("src/main.rs"), "rust");
/// assert_eq!(language("Makefile"), "makefile");
/// assert_eq!(language("notes"), "text");
/// ```
pub fn language(path: &str) -> &'static str {
    let name = path.rsplit('/').next().unwrap_or(path);
    let [extensions, names] = &*KINDS;
    let extension = || name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    let by_extension = || extensions.get(&*extension()?);
    names.get(name).or_else(by_extension).copied().unwrap_or("text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_read_once() {
        let rows = include_str!("kinds.tsv").lines().filter(|row| row.contains('\t')).count();
        assert_eq!(KINDS.iter().map(HashMap::len).sum::<usize>(), rows);
        assert_eq!([language("a.rs"), language("Dockerfile")], ["rust", "dockerfile"]);
    }

    #[test]
    fn secrets_are_not_read_by_default() {
        let list = AllowList::default();
        for path in [".env", "prod.env", "id_rsa", "server.pem", "tls.key", ".npmrc", ".netrc", "photo.png", "a.out"] {
            assert!(!list.allows(path), "{path}");
        }
        for path in
            ["a.rs", "b/c.TSX", "Dockerfile", "web.dockerfile", ".gitignore", ".env.example", "x.d.ts", "go.mod"]
        {
            assert!(list.allows(path), "{path}");
        }
    }

    #[test]
    fn a_name_is_not_allowed_by_a_mere_ending() {
        let list = AllowList::new(["rs"]);
        assert!(!list.allows("rs"));
        assert!(!list.allows("cars"));
        assert!(!list.allows("rs/readme"));
        assert!(list.allows(".rs"));
    }
}
