//! Which files are text that people look at, and in which language.

use std::collections::HashSet;

use super::secret_names::is_secret;

/// Extensions that are read by default, each with the language tag of its fence.
///
/// Files whose names say that they hold secrets are refused whatever they end in.
const EXTENSIONS: &[(&str, &str)] = &[
    ("adoc", "asciidoc"),
    ("astro", "astro"),
    ("awk", "awk"),
    ("bash", "bash"),
    ("bat", "bat"),
    ("bzl", "python"),
    ("c", "c"),
    ("cc", "cpp"),
    ("cfg", "ini"),
    ("cjs", "javascript"),
    ("clj", "clojure"),
    ("cmake", "cmake"),
    ("cmd", "bat"),
    ("conf", "ini"),
    ("cpp", "cpp"),
    ("cs", "csharp"),
    ("css", "css"),
    ("csv", "csv"),
    ("cts", "typescript"),
    ("cxx", "cpp"),
    ("dart", "dart"),
    ("diff", "diff"),
    ("dockerfile", "dockerfile"),
    ("editorconfig", "ini"),
    ("ejs", "html"),
    ("el", "lisp"),
    ("elm", "elm"),
    ("erl", "erlang"),
    ("ex", "elixir"),
    ("exs", "elixir"),
    ("fish", "fish"),
    ("fs", "fsharp"),
    ("fsx", "fsharp"),
    ("gitattributes", "text"),
    ("gitignore", "text"),
    ("go", "go"),
    ("gql", "graphql"),
    ("gradle", "groovy"),
    ("graphql", "graphql"),
    ("groovy", "groovy"),
    ("h", "c"),
    ("hbs", "html"),
    ("hcl", "hcl"),
    ("hh", "cpp"),
    ("hpp", "cpp"),
    ("hs", "haskell"),
    ("htm", "html"),
    ("html", "html"),
    ("ini", "ini"),
    ("ipynb", "json"),
    ("java", "java"),
    ("jl", "julia"),
    ("js", "javascript"),
    ("json", "json"),
    ("json5", "json5"),
    ("jsonc", "jsonc"),
    ("jsonl", "json"),
    ("jsx", "jsx"),
    ("kt", "kotlin"),
    ("kts", "kotlin"),
    ("less", "less"),
    ("lisp", "lisp"),
    ("lock", "text"),
    ("log", "text"),
    ("lua", "lua"),
    ("m", "objectivec"),
    ("mak", "makefile"),
    ("markdown", "markdown"),
    ("md", "markdown"),
    ("mdx", "mdx"),
    ("mjs", "javascript"),
    ("mk", "makefile"),
    ("ml", "ocaml"),
    ("mli", "ocaml"),
    ("mm", "objectivec"),
    ("mod", "text"),
    ("mts", "typescript"),
    ("nim", "nim"),
    ("nix", "nix"),
    ("org", "org"),
    ("patch", "diff"),
    ("php", "php"),
    ("pl", "perl"),
    ("plist", "xml"),
    ("pm", "perl"),
    ("prisma", "prisma"),
    ("properties", "properties"),
    ("proto", "protobuf"),
    ("ps1", "powershell"),
    ("py", "python"),
    ("pyi", "python"),
    ("r", "r"),
    ("rake", "ruby"),
    ("rb", "ruby"),
    ("rs", "rust"),
    ("rst", "rst"),
    ("sass", "sass"),
    ("scala", "scala"),
    ("scm", "scheme"),
    ("scss", "scss"),
    ("sh", "bash"),
    ("sol", "solidity"),
    ("sql", "sql"),
    ("sum", "text"),
    ("svelte", "svelte"),
    ("svg", "xml"),
    ("swift", "swift"),
    ("tcl", "tcl"),
    ("tex", "latex"),
    ("text", "text"),
    ("tf", "hcl"),
    ("tfvars", "hcl"),
    ("toml", "toml"),
    ("ts", "typescript"),
    ("tsv", "csv"),
    ("tsx", "tsx"),
    ("txt", "text"),
    ("vb", "vb"),
    ("vim", "vim"),
    ("vue", "vue"),
    ("wat", "wasm"),
    ("xml", "xml"),
    ("xsd", "xml"),
    ("yaml", "yaml"),
    ("yml", "yaml"),
    ("zig", "zig"),
    ("zsh", "zsh"),
];

/// Whole names that are read by default. Names that people use as hashtags are not among them.
const NAMES: &[(&str, &str)] = &[
    (".dockerignore", "text"),
    (".editorconfig", "ini"),
    (".env.example", "bash"),
    (".eslintrc", "json"),
    (".gitattributes", "text"),
    (".gitignore", "text"),
    (".npmignore", "text"),
    (".nvmrc", "text"),
    (".prettierrc", "json"),
    ("Brewfile", "ruby"),
    ("CHANGELOG", "text"),
    ("CODEOWNERS", "text"),
    ("CONTRIBUTING", "text"),
    ("COPYING", "text"),
    ("Caddyfile", "text"),
    ("Containerfile", "dockerfile"),
    ("Dockerfile", "dockerfile"),
    ("GNUmakefile", "makefile"),
    ("Gemfile", "ruby"),
    ("Jenkinsfile", "groovy"),
    ("Justfile", "makefile"),
    ("LICENCE", "text"),
    ("LICENSE", "text"),
    ("Makefile", "makefile"),
    ("Pipfile", "toml"),
    ("Procfile", "text"),
    ("README", "text"),
    ("Rakefile", "ruby"),
    ("Vagrantfile", "ruby"),
];

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
        let entries = EXTENSIONS.iter().chain(NAMES).map(|(entry, _)| *entry);
        Self::new(entries)
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
    let find = |list: &[(&str, &'static str)], key: &str| {
        list.binary_search_by_key(&key, |(entry, _)| entry).ok().map(|found| list[found].1)
    };
    let by_name = find(NAMES, name);
    let extension = || name.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    by_name.or_else(|| find(EXTENSIONS, &extension()?)).unwrap_or("text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_sorted_for_the_search() {
        assert!(EXTENSIONS.is_sorted_by_key(|(entry, _)| *entry));
        assert!(NAMES.is_sorted_by_key(|(entry, _)| *entry));
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
