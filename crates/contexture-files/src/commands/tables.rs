//! The published tables: which commands certainly change no file, and which are only presumed to leave sources alone.

/// A command that changes no file.
pub struct ReadOnly {
    /// The program.
    pub name: &'static str,
    /// Options with which it may change files; with any of them nothing is certain.
    pub unless: &'static [&'static str],
    /// The greatest number of operands, if it would write to further ones.
    pub most_operands: Option<usize>,
}

const fn reads(name: &'static str) -> ReadOnly {
    ReadOnly { name, unless: &[], most_operands: None }
}

const fn reads_unless(name: &'static str, unless: &'static [&'static str]) -> ReadOnly {
    ReadOnly { name, unless, most_operands: None }
}

/// Commands that change no file whatever their arguments, except for the options listed.
pub const READ_ONLY: &[ReadOnly] = &[
    reads(":"),
    reads("["),
    reads_unless("ag", &["--pager"]),
    reads("arch"),
    reads("b2sum"),
    reads_unless("base64", &["-o", "--output"]),
    reads("basename"),
    reads("break"),
    reads("cat"),
    reads("chmod"),
    reads("cksum"),
    reads_unless("clang-format", &["-i", "--i", "--files"]),
    reads("cmp"),
    reads("column"),
    reads("comm"),
    reads("continue"),
    reads("cut"),
    reads("date"),
    reads("df"),
    reads("diff"),
    reads("dirname"),
    reads("du"),
    reads("echo"),
    reads("egrep"),
    reads("exit"),
    reads("expand"),
    reads("expr"),
    reads("false"),
    reads_unless("fd", &["-x", "-X", "--exec", "--exec-batch"]),
    reads("fgrep"),
    reads_unless("file", &["-C", "--compile"]),
    reads_unless("find", &["-delete", "-exec", "-execdir", "-ok", "-okdir", "-fprint", "-fprint0", "-fprintf", "-fls"]),
    reads("fmt"),
    reads("fold"),
    reads("free"),
    reads_unless("gofmt", &["-w", "--w", "-cpuprofile", "--cpuprofile"]),
    reads_unless("gofumpt", &["-w", "--w", "-cpuprofile", "--cpuprofile"]),
    reads_unless("goimports", &["-w", "--w", "-cpuprofile", "-memprofile", "-trace"]),
    reads("grep"),
    reads("groups"),
    reads("head"),
    reads("hexdump"),
    reads("hostname"),
    reads("id"),
    reads("jq"),
    reads("kill"),
    reads("killall"),
    reads("ls"),
    reads("lsof"),
    reads("md5"),
    reads("md5sum"),
    reads("mkdir"),
    reads("mktemp"),
    reads("nl"),
    reads("nproc"),
    reads("od"),
    reads("paste"),
    reads("pgrep"),
    reads("pkill"),
    reads("printenv"),
    reads("printf"),
    reads("ps"),
    reads("pwd"),
    reads("readlink"),
    reads("realpath"),
    reads("rev"),
    reads_unless("rg", &["--pre", "--hostname-bin"]),
    reads("rmdir"),
    reads("seq"),
    reads("sha1sum"),
    reads("sha256sum"),
    reads("shasum"),
    reads("shellcheck"),
    reads_unless("shuf", &["-o", "--output"]),
    reads("sleep"),
    reads_unless("sort", &["-o", "--output", "--compress-program"]),
    reads("stat"),
    reads("strings"),
    reads("sum"),
    reads("tac"),
    reads("tail"),
    reads("test"),
    reads("tr"),
    reads_unless("tree", &["-o", "-R"]),
    reads("true"),
    reads("tty"),
    reads("type"),
    reads("uname"),
    reads("unexpand"),
    ReadOnly { name: "uniq", unless: &[], most_operands: Some(1) },
    reads("uptime"),
    reads("wc"),
    reads("whereis"),
    reads("which"),
    reads("whoami"),
    ReadOnly { name: "xxd", unless: &["-r"], most_operands: Some(1) },
];

/// Actions of `git` that change no file of the work tree and nothing in the repository that matters to one.
pub const GIT_READ_ONLY: &[&str] = &[
    "blame",
    "cat-file",
    "check-ignore",
    "cherry",
    "count-objects",
    "describe",
    "diff",
    "diff-tree",
    "for-each-ref",
    "grep",
    "help",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "merge-base",
    "name-rev",
    "range-diff",
    "rev-list",
    "rev-parse",
    "shortlog",
    "show",
    "show-ref",
    "status",
    "var",
    "version",
    "whatchanged",
];

/// Options with which an action of `git` writes a file or runs another program.
pub const GIT_UNLESS: &[&str] =
    &["--output", "--ext-diff", "--textconv", "-O", "--open-files-in-pager", "--upload-pack", "--exec"];

/// Actions of `git` that change the repository and no file of the work tree, and run no hook that could.
pub const GIT_APART: &[&[&str]] = &[
    &["add"],
    &["branch"],
    &["fetch"],
    &["gc"],
    &["notes"],
    &["reflog"],
    &["remote"],
    &["stash", "clear"],
    &["stash", "drop"],
    &["stash", "list"],
    &["stash", "show"],
    &["tag"],
    &["worktree", "list"],
];

/// A command that runs nothing of the project and writes no source.
pub struct Apart {
    /// The words that it begins with.
    pub words: &'static [&'static str],
    /// Options of which one is required; empty if none is.
    pub needs: &'static [&'static str],
    /// How options begin with which it may write one, or run something.
    pub unless: &'static [&'static str],
}

const fn apart(words: &'static [&'static str]) -> Apart {
    Apart { words, needs: &[], unless: &[] }
}

/// Options with which the compiler of Go writes to a named file, changes the list of modules or runs a program.
const GO_UNLESS: &[&str] = &[
    "-o",
    "-toolexec",
    "-exec",
    "-mod",
    "-modfile",
    "-overlay",
    "-vettool",
    "-fix",
    "-u",
    "--o",
    "--toolexec",
    "--exec",
    "--mod",
    "--overlay",
    "--vettool",
    "--fix",
];

/// Commands that run nothing of the project and write no source: compilers and checkers that are told to write
/// nothing, and requests to other machines.
pub const APART: &[Apart] = &[
    apart(&["aws", "s3", "ls"]),
    apart(&["aws", "sts", "get-caller-identity"]),
    Apart { words: &["biome", "check"], needs: &[], unless: &["--write", "--fix", "--apply", "--unsafe"] },
    Apart { words: &["biome", "ci"], needs: &[], unless: &["--write", "--fix", "--apply", "--unsafe"] },
    Apart { words: &["biome", "lint"], needs: &[], unless: &["--write", "--fix", "--apply", "--unsafe"] },
    apart(&["docker", "images"]),
    apart(&["docker", "inspect"]),
    apart(&["docker", "logs"]),
    apart(&["docker", "ps"]),
    apart(&["gh", "issue", "list"]),
    apart(&["gh", "issue", "view"]),
    apart(&["gh", "pr", "checks"]),
    apart(&["gh", "pr", "comment"]),
    apart(&["gh", "pr", "diff"]),
    apart(&["gh", "pr", "list"]),
    apart(&["gh", "pr", "view"]),
    apart(&["gh", "repo", "view"]),
    apart(&["gh", "run", "list"]),
    apart(&["gh", "run", "view"]),
    Apart { words: &["go", "build"], needs: &[], unless: GO_UNLESS },
    apart(&["go", "doc"]),
    Apart { words: &["go", "env"], needs: &[], unless: &["-w", "--w"] },
    Apart { words: &["go", "list"], needs: &[], unless: GO_UNLESS },
    apart(&["go", "version"]),
    Apart { words: &["go", "vet"], needs: &[], unless: GO_UNLESS },
    apart(&["kubectl", "get"]),
    apart(&["kubectl", "logs"]),
    apart(&["npm", "view"]),
    apart(&["pyright"]),
    Apart { words: &["staticcheck"], needs: &[], unless: &["-debug", "--debug"] },
    apart(&["tmux", "capture-pane"]),
    apart(&["tmux", "list-panes"]),
    apart(&["tmux", "list-sessions"]),
    apart(&["tmux", "list-windows"]),
    Apart {
        words: &["tsc"],
        needs: &["--noEmit"],
        unless: &["--watch", "-w", "--build", "-b", "--init", "--generate", "--tsBuildInfo", "--incremental", "--out"],
    },
];

/// Variables that change what such commands do.
pub const APART_VARIABLES: &[&str] = &["GOFLAGS", "GOWORK", "NODE_OPTIONS", "GH_PAGER", "GOTOOLCHAIN"];

/// A command that is presumed not to change sources.
pub struct Presumed {
    /// The words that it begins with.
    pub words: &'static [&'static str],
    /// Options of which one is required; empty if the command is presumed safe without.
    pub needs: &'static [&'static str],
}

const fn presumed(words: &'static [&'static str]) -> Presumed {
    Presumed { words, needs: &[] }
}

/// Commands that are only presumed not to change sources: tests, builds, checks, most of `git`.
pub const PRESUMED: &[Presumed] = &[
    presumed(&["aws", "s3", "ls"]),
    presumed(&["aws", "sts", "get-caller-identity"]),
    presumed(&["bazel", "build"]),
    presumed(&["bazel", "test"]),
    presumed(&["biome", "check"]),
    presumed(&["biome", "ci"]),
    presumed(&["bd", "blocked"]),
    presumed(&["bd", "children"]),
    presumed(&["bd", "close"]),
    presumed(&["bd", "comments"]),
    presumed(&["bd", "create"]),
    presumed(&["bd", "dep"]),
    presumed(&["bd", "label"]),
    presumed(&["bd", "ready"]),
    presumed(&["bd", "stale"]),
    presumed(&["bd", "where"]),
    presumed(&["biome", "format"]),
    presumed(&["biome", "lint"]),
    Presumed { words: &["black"], needs: &["--check", "--diff"] },
    presumed(&["bun", "run", "build"]),
    presumed(&["bun", "run", "check"]),
    presumed(&["bun", "run", "lint"]),
    presumed(&["bun", "run", "test"]),
    presumed(&["bun", "run", "typecheck"]),
    presumed(&["bun", "test"]),
    presumed(&["cargo", "bench"]),
    presumed(&["cargo", "build"]),
    presumed(&["cargo", "check"]),
    presumed(&["cargo", "clippy"]),
    presumed(&["cargo", "doc"]),
    Presumed { words: &["cargo", "fmt"], needs: &["--check"] },
    presumed(&["cargo", "metadata"]),
    presumed(&["cargo", "nextest"]),
    presumed(&["cargo", "test"]),
    presumed(&["cargo", "tree"]),
    presumed(&["cmake", "--build"]),
    presumed(&["ctest"]),
    Presumed { words: &["dart", "format"], needs: &["--output=none", "--output=show"] },
    presumed(&["deno", "check"]),
    presumed(&["deno", "lint"]),
    presumed(&["deno", "test"]),
    presumed(&["docker", "images"]),
    presumed(&["docker", "inspect"]),
    presumed(&["docker", "logs"]),
    presumed(&["docker", "ps"]),
    presumed(&["dotnet", "build"]),
    presumed(&["dotnet", "test"]),
    presumed(&["eslint"]),
    presumed(&["flake8"]),
    presumed(&["gh", "api"]),
    presumed(&["gh", "issue"]),
    presumed(&["gh", "pr", "checks"]),
    presumed(&["gh", "pr", "comment"]),
    presumed(&["gh", "pr", "create"]),
    presumed(&["gh", "pr", "diff"]),
    presumed(&["gh", "pr", "edit"]),
    presumed(&["gh", "pr", "list"]),
    presumed(&["gh", "pr", "ready"]),
    presumed(&["gh", "pr", "review"]),
    presumed(&["gh", "pr", "view"]),
    presumed(&["gh", "repo", "view"]),
    presumed(&["gh", "run", "list"]),
    presumed(&["gh", "run", "view"]),
    presumed(&["gh", "run", "watch"]),
    presumed(&["git", "commit"]),
    presumed(&["git", "config"]),
    presumed(&["git", "init"]),
    presumed(&["git", "push"]),
    presumed(&["git", "symbolic-ref"]),
    presumed(&["git", "update-index"]),
    presumed(&["git", "worktree", "add"]),
    presumed(&["git", "worktree", "prune"]),
    presumed(&["go", "build"]),
    presumed(&["go", "doc"]),
    presumed(&["go", "env"]),
    presumed(&["go", "install"]),
    presumed(&["go", "list"]),
    presumed(&["go", "test"]),
    presumed(&["go", "version"]),
    presumed(&["go", "vet"]),
    presumed(&["golangci-lint", "run"]),
    Presumed { words: &["isort"], needs: &["--check", "--check-only", "--diff"] },
    presumed(&["jest"]),
    presumed(&["kubectl", "get"]),
    presumed(&["kubectl", "logs"]),
    presumed(&["markdownlint"]),
    presumed(&["markdownlint-cli2"]),
    presumed(&["mix", "compile"]),
    Presumed { words: &["mix", "format"], needs: &["--check-formatted", "--dry-run"] },
    presumed(&["mix", "test"]),
    presumed(&["mocha"]),
    presumed(&["mvn", "compile"]),
    presumed(&["mvn", "package"]),
    presumed(&["mvn", "test"]),
    presumed(&["mvn", "verify"]),
    presumed(&["mypy"]),
    presumed(&["ninja"]),
    presumed(&["npm", "ci"]),
    presumed(&["npm", "ls"]),
    presumed(&["npm", "run", "build"]),
    presumed(&["npm", "run", "check"]),
    presumed(&["npm", "run", "lint"]),
    presumed(&["npm", "run", "test"]),
    presumed(&["npm", "run", "typecheck"]),
    presumed(&["npm", "test"]),
    presumed(&["npm", "view"]),
    presumed(&["oxlint"]),
    presumed(&["phpunit"]),
    presumed(&["playwright", "test"]),
    presumed(&["pnpm", "build"]),
    presumed(&["pnpm", "lint"]),
    presumed(&["pnpm", "run", "build"]),
    presumed(&["pnpm", "run", "check"]),
    presumed(&["pnpm", "run", "lint"]),
    presumed(&["pnpm", "run", "test"]),
    presumed(&["pnpm", "run", "typecheck"]),
    presumed(&["pnpm", "test"]),
    presumed(&["pnpm", "typecheck"]),
    Presumed { words: &["prettier"], needs: &["--check", "-c", "--list-different", "-l"] },
    presumed(&["pylint"]),
    presumed(&["pyright"]),
    presumed(&["pytest"]),
    presumed(&["rspec"]),
    presumed(&["ruff", "check"]),
    Presumed { words: &["ruff", "format"], needs: &["--check", "--diff"] },
    Presumed { words: &["rustfmt"], needs: &["--check"] },
    presumed(&["staticcheck"]),
    Presumed { words: &["stylua"], needs: &["--check"] },
    presumed(&["swift", "build"]),
    presumed(&["swift", "test"]),
    Presumed { words: &["swiftformat"], needs: &["--lint", "--dryrun"] },
    Presumed { words: &["taplo", "fmt"], needs: &["--check", "--diff"] },
    presumed(&["terraform", "plan"]),
    presumed(&["terraform", "validate"]),
    Presumed { words: &["terraform", "fmt"], needs: &["-check", "-write=false"] },
    presumed(&["tsc"]),
    presumed(&["unittest"]),
    presumed(&["vitest"]),
    presumed(&["yarn", "build"]),
    presumed(&["yarn", "lint"]),
    presumed(&["yarn", "run", "build"]),
    presumed(&["yarn", "run", "test"]),
    presumed(&["yarn", "test"]),
    presumed(&["yarn", "typecheck"]),
    presumed(&["zig", "build"]),
    Presumed { words: &["zig", "fmt"], needs: &["--check"] },
];

/// Commands that install or resolve packages, and the extensions of the files in which they note that. They are presumed
/// to leave all other files alone.
pub const INSTALLERS: &[(&[&str], &[&str])] = &[
    (&["bun", "add"], &["json", "lock", "lockb"]),
    (&["bun", "install"], &["json", "lock", "lockb"]),
    (&["bundle", "install"], &["lock"]),
    (&["cargo", "add"], &["toml", "lock"]),
    (&["cargo", "fetch"], &["lock"]),
    (&["cargo", "update"], &["lock"]),
    (&["go", "get"], &["mod", "sum"]),
    (&["go", "mod", "download"], &["sum"]),
    (&["go", "mod", "init"], &["mod"]),
    (&["go", "mod", "tidy"], &["mod", "sum"]),
    (&["npm", "i"], &["json"]),
    (&["npm", "install"], &["json"]),
    (&["pip", "install"], &["pyc"]),
    (&["pip3", "install"], &["pyc"]),
    (&["pnpm", "add"], &["json", "yaml"]),
    (&["pnpm", "i"], &["json", "yaml"]),
    (&["pnpm", "install"], &["json", "yaml"]),
    (&["poetry", "add"], &["toml", "lock"]),
    (&["poetry", "install"], &["lock"]),
    (&["uv", "add"], &["toml", "lock"]),
    (&["uv", "sync"], &["lock"]),
    (&["yarn", "add"], &["json", "lock"]),
    (&["yarn", "install"], &["json", "lock"]),
];

/// The extensions of the files that a command changes because it installs packages.
pub(super) fn installed(words: &[&str]) -> Option<&'static [&'static str]> {
    INSTALLERS.iter().find(|(begin, _)| words.starts_with(begin)).map(|(_, extensions)| *extensions)
}

/// Targets with which `make` is presumed not to change sources, as it is without a target.
pub const MAKE_TARGETS: &[&str] = &["all", "build", "check", "compile", "lint", "test", "tests", "vet"];

/// Beginnings of parts of options that ask for files to be changed, so that nothing is presumed.
pub const WRITES: &[&str] = &["update", "bless", "overwrite", "accept", "regen", "snapshot"];

/// The same for whole parts of options.
pub const WRITES_WHOLE: &[&str] = &["fix", "write", "apply", "inplace", "u"];

/// Options with which `curl` writes files; without them it is presumed to leave sources alone.
pub const CURL_WRITES: &[&str] = &[
    "output",
    "remote",
    "dump",
    "cookie",
    "trace",
    "config",
    "create",
    "etag-save",
    "stderr",
    "libcurl",
    "hsts",
    "alt-svc",
    "upload",
];

/// Variables that determine which programs run, or what they do to files.
pub const RISKY_VARIABLES: &[&str] = &[
    "PATH",
    "IFS",
    "BASH_ENV",
    "ENV",
    "SHELLOPTS",
    "CDPATH",
    "HOME",
    "PWD",
    "OLDPWD",
    "PAGER",
    "EDITOR",
    "SHELL",
    "PS4",
    "PROMPT_COMMAND",
];

/// How names of such variables begin.
pub const RISKY_PREFIXES: &[&str] = &["LD_", "DYLD_", "GIT_", "BASH_", "RIPGREP_", "GREP_"];
