//! Names for files that a link can point to, such as `src-index-ts` for `src/index.ts`.

/// How many hexadecimal digits of a path's hash distinguish two files with the same slug.
const SHORT_HASH: usize = 6;

/// The anchor of a path, if no other file has it already: letters and digits are kept, everything else becomes `-`.
///
/// Different paths can have the same slug: `a/b.rs` and `a-b.rs`. See [`distinct`].
///
/// ```
/// use contexture::reference::anchor::slug;
/// assert_eq!(slug("src/index.ts"), "src-index-ts");
/// assert_eq!(slug("docs/日本.md"), "docs-日本-md");
/// assert_eq!(slug(".gitignore"), "gitignore");
/// ```
pub fn slug(path: &str) -> String {
    let mut slug = String::with_capacity(path.len());
    for c in path.chars() {
        if c.is_alphanumeric() {
            slug.extend(c.to_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    while slug.ends_with('-') {
        slug.pop();
    }
    if slug.is_empty() { "file".to_owned() } else { slug }
}

/// A unique anchor for a path: its slug, with as much of its hash as needed.
///
/// The same path among the same others always gets the same anchor.
///
/// ```
/// use contexture::reference::anchor::distinct;
/// assert_eq!(distinct("a/b.rs", |_| false), "a-b-rs");
/// assert_eq!(distinct("a-b.rs", |anchor| anchor == "a-b-rs"), "a-b-rs-6136df");
/// ```
pub fn distinct(path: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let slug = slug(path);
    if !is_taken(&slug) {
        return slug;
    }
    let hash = blake3::hash(path.as_bytes()).to_hex();
    let lengths = [SHORT_HASH, 2 * SHORT_HASH, hash.len()];
    let hashed = lengths.map(|length| format!("{slug}-{}", &hash[..length]));
    let [.., longest] = &hashed;
    hashed.iter().find(|anchor| !is_taken(anchor)).unwrap_or(longest).clone()
}
