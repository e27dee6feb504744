//! Programs that rewrite files to their own taste.

/// A program that rewrites files.
pub(super) struct Formatter {
    /// The words that it begins with.
    words: &'static [&'static str],
    /// Options of which one must be there for it to write; none if it always does.
    needs: &'static [&'static str],
    /// The files that it rewrites where it is given a directory or nothing; all if empty.
    pub(super) extensions: &'static [&'static str],
}

/// Options with which no formatter writes.
const LOOKS_ONLY: [&str; 8] = ["--check", "--diff", "-d", "-l", "--dry-run", "--list-different", "-check", "--verify"];

const SCRIPTS: &[&str] = &["js", "jsx", "ts", "tsx", "mjs", "cjs", "mts", "cts", "vue", "svelte"];

const TABLE: &[Formatter] = &[
    Formatter { words: &["cargo", "fmt"], needs: &[], extensions: &["rs"] },
    Formatter { words: &["cargo", "fix"], needs: &[], extensions: &["rs"] },
    Formatter { words: &["cargo", "clippy"], needs: &["--fix"], extensions: &["rs"] },
    Formatter { words: &["rustfmt"], needs: &[], extensions: &["rs"] },
    Formatter { words: &["gofmt"], needs: &["-w"], extensions: &["go"] },
    Formatter { words: &["goimports"], needs: &["-w"], extensions: &["go"] },
    Formatter { words: &["gofumpt"], needs: &["-w"], extensions: &["go"] },
    Formatter { words: &["go", "fmt"], needs: &[], extensions: &["go"] },
    Formatter { words: &["go", "fix"], needs: &[], extensions: &["go"] },
    Formatter { words: &["prettier"], needs: &["--write", "-w"], extensions: &[] },
    Formatter { words: &["eslint"], needs: &["--fix"], extensions: SCRIPTS },
    Formatter { words: &["biome"], needs: &["--write", "--apply", "--fix"], extensions: &[] },
    Formatter { words: &["dprint", "fmt"], needs: &[], extensions: &[] },
    Formatter { words: &["deno", "fmt"], needs: &[], extensions: &[] },
    Formatter { words: &["ruff", "format"], needs: &[], extensions: &["py", "pyi"] },
    Formatter { words: &["ruff"], needs: &["--fix"], extensions: &["py", "pyi"] },
    Formatter { words: &["black"], needs: &[], extensions: &["py", "pyi"] },
    Formatter { words: &["isort"], needs: &[], extensions: &["py", "pyi"] },
    Formatter { words: &["autopep8"], needs: &["-i", "--in-place"], extensions: &["py"] },
    Formatter { words: &["yapf"], needs: &["-i", "--in-place"], extensions: &["py"] },
    Formatter { words: &["clang-format"], needs: &["-i"], extensions: &["c", "h", "cc", "cpp", "hpp", "cxx", "m"] },
    Formatter { words: &["shfmt"], needs: &["-w"], extensions: &["sh", "bash"] },
    Formatter { words: &["stylua"], needs: &[], extensions: &["lua"] },
    Formatter { words: &["terraform", "fmt"], needs: &[], extensions: &["tf", "tfvars"] },
    Formatter { words: &["dart", "format"], needs: &[], extensions: &["dart"] },
    Formatter { words: &["mix", "format"], needs: &[], extensions: &["ex", "exs"] },
    Formatter { words: &["rubocop"], needs: &["-a", "-A", "--autocorrect", "--autocorrect-all"], extensions: &["rb"] },
    Formatter { words: &["php-cs-fixer", "fix"], needs: &[], extensions: &["php"] },
    Formatter { words: &["swiftformat"], needs: &[], extensions: &["swift"] },
    Formatter { words: &["ktlint"], needs: &["-F", "--format"], extensions: &["kt", "kts"] },
    Formatter { words: &["dotnet", "format"], needs: &[], extensions: &["cs", "vb"] },
    Formatter { words: &["zig", "fmt"], needs: &[], extensions: &["zig"] },
    Formatter { words: &["taplo", "fmt"], needs: &[], extensions: &["toml"] },
    Formatter { words: &["pre-commit", "run"], needs: &[], extensions: &[] },
];

/// Words that only start another program.
const STARTERS: [&str; 14] =
    ["npx", "bunx", "pnpm", "yarn", "exec", "dlx", "sudo", "uv", "poetry", "run", "uvx", "time", "python", "python3"];

/// The formatter that a command runs and its arguments, if it writes files.
pub(super) fn formatter(words: &[String]) -> Option<(&'static Formatter, &[String])> {
    let start = words.iter().position(|word| !STARTERS.contains(&word.as_str()) && word != "-m" && word != "-y")?;
    let words = &words[start..];
    let name = words.first()?.rsplit('/').next()?;
    let is_this = |formatter: &&Formatter| {
        let (first, rest) = formatter.words.split_first().expect("a formatter has a name");
        let follows = rest.iter().enumerate().all(|(index, word)| words.get(index + 1).is_some_and(|own| own == word));
        *first == name && follows && formatter.writes(words)
    };
    let formatter = TABLE.iter().find(is_this)?;
    Some((formatter, &words[formatter.words.len()..]))
}

impl Formatter {
    /// Whether it writes files with these words.
    fn writes(&self, words: &[String]) -> bool {
        let has = |options: &[&str]| words.iter().any(|word| options.contains(&word.as_str()));
        match self.needs {
            [] => !has(&LOOKS_ONLY),
            needs => has(needs),
        }
    }
}
