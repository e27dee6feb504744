//! What programs do with their arguments, as far as these are commands themselves.

/// What a program does with its arguments.
#[derive(Clone, Copy)]
pub enum ArgumentUse {
    /// Anything.
    Unknown,
    /// They are only text, names or patterns, except the values of these options, which are command lines.
    Text(&'static [&'static str]),
    /// They are another command, after options.
    Command(&'static Prefix),
    /// They are such a command, and it gets more arguments from what is read.
    Fed(&'static Prefix),
    /// Commands are between them.
    Between,
    /// They are options of a shell, a script, or a line.
    Shell,
    /// They are joined to a command line.
    Line,
    /// Commands come from elsewhere.
    Elsewhere,
    /// Some options name a command that is run later.
    Callbacks,
    /// They set variables.
    Variables,
    /// They give commands other names.
    Aliases,
    /// They are files that get other names.
    Files,
    /// They are a program in another language, or name one.
    Code,
    /// They are those of `git`.
    Git,
    /// What is read is run later.
    Later,
}

/// How a program is told which command to run.
pub struct Prefix {
    /// The options that take the next word as their value.
    pub values: &'static [&'static str],
    /// The options whose value is a command line.
    pub lines: &'static [&'static str],
    /// The options with which nothing runs.
    pub looks: &'static [&'static str],
    /// How many words come before the command.
    pub before: usize,
    /// Whether variables may be set before the command.
    pub has_assignments: bool,
    /// Whether it starts a shell if there is no command.
    pub starts_shells: bool,
}

const fn prefix(values: &'static [&'static str]) -> Prefix {
    Prefix { values, lines: &[], looks: &[], before: 0, has_assignments: false, starts_shells: false }
}

pub(super) static PLAIN: Prefix = prefix(&[]);
pub(super) static CAFFEINATE: Prefix = prefix(&["-t", "-w"]);
pub(super) static CHRT: Prefix = prefix(&["-T", "-P", "-D"]);
pub(super) static COMMAND: Prefix = Prefix { looks: &["-v", "-V"], ..prefix(&[]) };
pub(super) static DOAS: Prefix = Prefix { starts_shells: true, ..prefix(&["-u", "-C"]) };
pub(super) static ENV: Prefix =
    Prefix { has_assignments: true, lines: &["-S", "--split-string"], ..prefix(&["-u", "--unset", "-C", "--chdir"]) };
pub(super) static EXEC: Prefix = prefix(&["-a"]);
pub(super) static IONICE: Prefix = prefix(&["-c", "-n", "-p"]);
pub(super) static NICE: Prefix = prefix(&["-n", "--adjustment"]);
pub(super) static STDBUF: Prefix = prefix(&["-i", "-o", "-e"]);
pub(super) static STRACE: Prefix = prefix(&["-e", "-o", "-p", "-s", "-u"]);
pub(super) static SUDO: Prefix = Prefix {
    has_assignments: true,
    looks: &["-l", "-v", "-K"],
    starts_shells: true,
    ..prefix(&["-u", "-g", "-h", "-p", "-C", "-r", "-t", "-T", "-U", "-D", "-R", "--user", "--group", "--prompt"])
};
pub(super) static TIME: Prefix = prefix(&["-f", "-o", "--format", "--output"]);
pub(super) static TIMEOUT: Prefix = Prefix { before: 1, ..prefix(&["-s", "-k", "--signal", "--kill-after"]) };
pub(super) static XARGS: Prefix = prefix(&[
    "-n",
    "-P",
    "-I",
    "-J",
    "-L",
    "-d",
    "-a",
    "-s",
    "-E",
    "-R",
    "-j",
    "--max-args",
    "--max-procs",
    "--delimiter",
    "--jobs",
]);

/// The options before a subcommand.
#[derive(Clone, Copy)]
pub struct LeadingOptions {
    /// Those that take the next word as their value.
    pub values: &'static [&'static str],
    /// Those that take none.
    pub switches: &'static [&'static str],
}

pub(super) const NO_OPTIONS: LeadingOptions = LeadingOptions { values: &[], switches: &[] };
pub(super) const OF_CARGO: LeadingOptions = LeadingOptions {
    values: &["--config", "-C", "-Z", "--color"],
    switches: &["-v", "-q", "--offline", "--locked", "--frozen"],
};
pub(super) const OF_DOCKER: LeadingOptions = LeadingOptions {
    values: &[
        "--config",
        "-c",
        "--context",
        "-H",
        "--host",
        "-l",
        "--log-level",
        "--tlscacert",
        "--tlscert",
        "--tlskey",
    ],
    switches: &["-D", "--debug", "--tls", "--tlsverify"],
};
pub(super) const OF_FILES: LeadingOptions =
    LeadingOptions { values: &[], switches: &["-r", "-f", "-rf", "-fr", "-R", "-v", "-i", "-p", "-a", "-l"] };
pub(super) const OF_GIT: LeadingOptions = LeadingOptions {
    values: &[
        "-C",
        "-c",
        "--git-dir",
        "--work-tree",
        "--namespace",
        "--super-prefix",
        "--config-env",
        "--attr-source",
        "--list-cmds",
    ],
    switches: &[
        "-p",
        "--paginate",
        "-P",
        "--no-pager",
        "--no-replace-objects",
        "--bare",
        "--literal-pathspecs",
        "--glob-pathspecs",
        "--noglob-pathspecs",
        "--icase-pathspecs",
        "--no-optional-locks",
        "--no-lazy-fetch",
        "--no-advice",
        "--exec-path",
        "--version",
        "-v",
        "--help",
        "-h",
        "--html-path",
        "--man-path",
        "--info-path",
    ],
};
pub(super) const OF_KUBECTL: LeadingOptions = LeadingOptions {
    values: &["-n", "--namespace", "--context", "--kubeconfig", "--cluster", "--user", "-s", "--server", "--as"],
    switches: &[],
};
pub(super) const OF_NPM: LeadingOptions = LeadingOptions {
    values: &["--prefix", "-C", "--userconfig", "-w", "--workspace", "--registry", "--loglevel", "--cwd"],
    switches: &["-g", "-s"],
};
