//! Programs that rewrite files to their own taste, with the kinds of files that they can reach.

/// A program that rewrites files.
pub struct Formatter {
    /// The words that it begins with.
    pub words: &'static [&'static str],
    /// Options of which one must be there for it to write; none if it always does.
    pub needs: &'static [&'static str],
    /// The extensions of the files that it rewrites; all if empty.
    pub extensions: &'static [&'static str],
}

const fn formats(words: &'static [&'static str], extensions: &'static [&'static str]) -> Formatter {
    Formatter { words, needs: &[], extensions }
}

/// Formatters, and what they can reach.
pub const FORMATTERS: &[Formatter] = &[
    formats(&["black"], &["py", "pyi", "ipynb"]),
    formats(&["cargo", "fmt"], &["rs"]),
    formats(&["dart", "format"], &["dart"]),
    formats(&["go", "fmt"], &["go"]),
    Formatter { words: &["gofmt"], needs: &["-w"], extensions: &["go"] },
    Formatter { words: &["gofumpt"], needs: &["-w"], extensions: &["go"] },
    Formatter { words: &["goimports"], needs: &["-w"], extensions: &["go"] },
    formats(&["isort"], &["py", "pyi"]),
    formats(&["mix", "format"], &["ex", "exs", "heex"]),
    formats(&["ruff", "format"], &["py", "pyi", "ipynb"]),
    formats(&["rustfmt"], &["rs"]),
    formats(&["stylua"], &["lua"]),
    formats(&["swiftformat"], &["swift"]),
    formats(&["taplo", "fmt"], &["toml"]),
    formats(&["terraform", "fmt"], &["tf", "tfvars", "hcl"]),
    formats(&["zig", "fmt"], &["zig", "zon"]),
];
