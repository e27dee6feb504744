//! Programs that reformat files, and the files that they may change.

use crate::path::last_part;

/// A program that rewrites files.
pub struct Formatter {
    /// The words that it begins with.
    pub words: &'static [&'static str],
    /// Options of which one is required for it to write; empty if it always writes.
    pub needs: &'static [&'static str],
    /// The extensions of the files that it rewrites by default; empty for all.
    pub extensions: &'static [&'static str],
    /// Whether it rewrites only the files that are named, if any are.
    pub only_named: bool,
    /// Whether what it changes is near to what it dislikes, as with one that only lays out the text.
    pub is_local: bool,
}

impl Formatter {
    /// A name that is the same for all ways to start it.
    pub fn family(&self) -> String {
        match self.words {
            ["go", "fmt"] => "gofmt".to_owned(),
            ["cargo", "fmt"] => "rustfmt".to_owned(),
            words => words.join(" "),
        }
    }
}

/// A formatter that rewrites the files that are named.
const fn formats(
    words: &'static [&'static str],
    needs: &'static [&'static str],
    extensions: &'static [&'static str],
) -> Formatter {
    Formatter { words, needs, extensions, only_named: true, is_local: true }
}

/// One that also changes what the text means, anywhere in a file.
const fn fixes(
    words: &'static [&'static str],
    needs: &'static [&'static str],
    extensions: &'static [&'static str],
) -> Formatter {
    Formatter { words, needs, extensions, only_named: true, is_local: false }
}

/// A formatter that follows references from file to file, or takes packages.
const fn roams(words: &'static [&'static str], extensions: &'static [&'static str]) -> Formatter {
    Formatter { words, needs: &[], extensions, only_named: false, is_local: true }
}

/// Formatters, and the files that they may change.
pub const FORMATTERS: &[Formatter] = &[
    fixes(&["autopep8"], &["-i", "--in-place"], &["py", "pyi"]),
    fixes(&["biome", "check"], &["--write", "--fix", "--apply"], &[]),
    formats(&["biome", "format"], &["--write", "--fix"], &[]),
    fixes(&["biome", "lint"], &["--write", "--fix", "--apply"], &[]),
    formats(&["black"], &[], &["py", "pyi", "ipynb"]),
    roams(&["cargo", "fmt"], &["rs"]),
    formats(&["clang-format"], &["-i"], &[]),
    formats(&["dart", "format"], &[], &["dart"]),
    fixes(&["eslint"], &["--fix"], &[]),
    roams(&["go", "fmt"], &["go"]),
    formats(&["gofmt"], &["-w"], &["go"]),
    formats(&["gofumpt"], &["-w"], &["go"]),
    fixes(&["goimports"], &["-w"], &["go"]),
    fixes(&["isort"], &[], &["py", "pyi"]),
    formats(&["mix", "format"], &[], &["ex", "exs", "heex"]),
    formats(&["prettier"], &["--write", "-w"], &[]),
    fixes(&["ruff", "check"], &["--fix"], &["py", "pyi", "ipynb"]),
    formats(&["ruff", "format"], &[], &["py", "pyi", "ipynb"]),
    roams(&["rustfmt"], &["rs"]),
    formats(&["shfmt"], &["-w"], &[]),
    formats(&["stylua"], &[], &["lua"]),
    formats(&["swiftformat"], &[], &["swift"]),
    formats(&["taplo", "fmt"], &[], &["toml"]),
    formats(&["terraform", "fmt"], &[], &["tf", "tfvars", "hcl"]),
    formats(&["yapf"], &["-i", "--in-place"], &["py", "pyi"]),
    formats(&["zig", "fmt"], &[], &["zig", "zon"]),
];

/// Parts of options that may name more files.
const NAMING: [&str; 4] = ["file", "out", "dir", "path"];

/// The files that a formatter may change.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reach<'a> {
    /// All files with these extensions; all files if there are none.
    Kinds(&'static [&'static str]),
    /// These files, and what is in these directories, each with the extensions that it is limited to.
    Named(Vec<(&'a str, &'static [&'static str])>),
}

/// Whether a command is a formatter that writes.
pub(super) fn writes(words: &[&str]) -> bool {
    formatter_of(words).is_some()
}

fn formatter_of(words: &[&str]) -> Option<&'static Formatter> {
    let needed = |needs: &[&str]| needs.is_empty() || words.iter().any(|word| needs.contains(word));
    FORMATTERS.iter().find(|formatter| words.starts_with(formatter.words) && needed(formatter.needs))
}

/// Returns which files a command may change, if it is a formatter.
pub(super) fn reach<'a>(words: &[&'a str]) -> Option<(&'static Formatter, Reach<'a>)> {
    let formatter = formatter_of(words)?;
    let arguments = &words[formatter.words.len()..];
    let is_option = |word: &&&str| word.starts_with('-');
    if arguments.iter().filter(is_option).any(|word| NAMING.iter().any(|part| word.contains(part))) {
        return None;
    }
    let named: Vec<&str> = arguments.iter().filter(|word| !is_option(word)).copied().collect();
    // Patterns are expanded by the formatter itself.
    let is_plain = |word: &&str| !word.contains(['*', '?', '[', '{', '!', '@', '\\']);
    if formatter.only_named && !named.is_empty() && named.iter().all(is_plain) {
        // A directory may also contain files of other kinds.
        let is_directory = |word: &str| word.ends_with('/') || matches!(last_part(word), "." | "..");
        let limits = |word: &str| if is_directory(word) { formatter.extensions } else { &[] };
        return Some((formatter, Reach::Named(named.into_iter().map(|word| (word, limits(word))).collect())));
    }
    Some((formatter, Reach::Kinds(formatter.extensions)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_formatter_reaches_what_it_is_told_to() {
        let of = |line: &'static str| Some(reach(&line.split(' ').collect::<Vec<_>>())?.1);
        let named = |names: &[&'static str]| Some(Reach::Named(names.iter().map(|name| (*name, &[][..])).collect()));
        assert_eq!(of("gofmt -w a.go b.go"), named(&["a.go", "b.go"]));
        assert_eq!(of("prettier --write src"), named(&["src"]));
        assert_eq!(of("eslint --fix --ext .ts src"), named(&[".ts", "src"]));
        assert_eq!(of("gofmt -w ."), Some(Reach::Named(vec![(".", &["go"])])));
        assert_eq!(of("eslint --fix"), Some(Reach::Kinds(&[])));
        assert_eq!(of("prettier --write src/*.ts"), Some(Reach::Kinds(&[])));
        assert_eq!(of("black"), Some(Reach::Kinds(&["py", "pyi", "ipynb"])));
        assert_eq!(of("rustfmt src/main.rs"), Some(Reach::Kinds(&["rs"])), "it follows modules");
        assert_eq!(of("clang-format -i --files=list"), None);
        assert_eq!(of("eslint src"), None, "it only looks");
    }
}
