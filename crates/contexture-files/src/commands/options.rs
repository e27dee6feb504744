//! Options and variables that change what programs do.

/// Options with which an action of `git` writes a file or runs another program.
pub const GIT_UNLESS: &[&str] =
    &["--output", "--ext-diff", "--textconv", "-O", "--open-files-in-pager", "--upload-pack", "--exec"];

/// Variables that change what commands do that run nothing of the project.
pub const APART_VARIABLES: &[&str] = &["GOFLAGS", "GOWORK", "NODE_OPTIONS", "GH_PAGER", "GOTOOLCHAIN"];

/// Beginnings of parts of options that ask for files to be changed, so that nothing is presumed.
pub const WRITES: &[&str] = &["update", "bless", "overwrite", "regen", "snapshot"];

/// The same for whole parts of options.
pub const WRITES_WHOLE: &[&str] = &["accept", "acceptall", "accepted", "fix", "write", "apply", "inplace", "u"];

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
