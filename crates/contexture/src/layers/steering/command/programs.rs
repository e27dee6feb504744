//! What programs do with their arguments, as far as steering has to know it.

use super::base_name;
use super::code::is_interpreter;
use crate::files::shell::Word;

/// What a program does with its arguments.
pub(super) enum Role {
    /// They are only text, names or patterns.
    Data,
    /// They are another command, after options.
    Wrapper(&'static Wrapper),
    /// It is a shell.
    Shell,
    /// They are joined to a command line.
    Eval,
    /// It runs commands that come from elsewhere.
    Elsewhere,
    /// Some options of it name a command that it runs.
    Callbacks,
    /// They set variables.
    Declares,
    /// They give commands other names.
    Alias,
    /// They are files that get other names.
    Copies,
    /// Commands are between others.
    Find,
    /// They are a command that gets more arguments.
    Feeds,
    /// It runs a program in another language.
    Interpreter,
    /// It is git.
    Git,
    /// It runs later what it reads.
    Schedules,
    /// It is not known.
    Other,
}

/// Programs whose arguments are only text, names or patterns.
const DATA: &[&str] = &[
    "echo",
    "printf",
    "print",
    "cat",
    "tac",
    "bat",
    "head",
    "tail",
    "less",
    "more",
    "wc",
    "sort",
    "uniq",
    "cut",
    "tr",
    "nl",
    "grep",
    "egrep",
    "fgrep",
    "zgrep",
    "rg",
    "ag",
    "ack",
    "ls",
    "tree",
    "exa",
    "eza",
    "diff",
    "cmp",
    "comm",
    "file",
    "stat",
    "du",
    "df",
    "test",
    "[",
    "true",
    "false",
    ":",
    "cd",
    "pushd",
    "popd",
    "pwd",
    "mkdir",
    "rmdir",
    "touch",
    "rm",
    "chmod",
    "chown",
    "tee",
    "jq",
    "yq",
    "curl",
    "wget",
    "which",
    "type",
    "whereis",
    "man",
    "help",
    "whatis",
    "apropos",
    "basename",
    "dirname",
    "realpath",
    "readlink",
    "date",
    "sleep",
    "wait",
    "kill",
    "ps",
    "top",
    "free",
    "uname",
    "whoami",
    "id",
    "hostname",
    "history",
    "unalias",
    "unset",
    "read",
    "shift",
    "return",
    "exit",
    "break",
    "continue",
    "set",
    "shopt",
    "umask",
    "ulimit",
    "seq",
    "yes",
    "md5sum",
    "sha256sum",
    "shasum",
    "base64",
    "xxd",
    "od",
    "hexdump",
    "strings",
    "column",
    "fold",
    "fmt",
    "paste",
    "join",
    "patch",
    "tput",
    "clear",
    "open",
    "xdg-open",
    "pbcopy",
    "notify-send",
    "gh",
    "glab",
    "let",
    "getopts",
    "logger",
    "wall",
    "say",
    "figlet",
    "cowsay",
    "look",
    "spell",
    "aspell",
    "cloc",
    "tokei",
    "scc",
    "apt-cache",
    "dpkg-query",
    "jobs",
    "disown",
    "fg",
    "bg",
];

const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash", "ksh", "ash", "fish", "rbash", "pwsh", "powershell"];

/// A program that runs the command after its options.
pub(super) struct Wrapper {
    name: &'static str,
    /// The options that take the next word as their value.
    values: &'static [&'static str],
    /// The options whose value is a command line.
    lines: &'static [&'static str],
    /// The options with which nothing runs.
    looks: &'static [&'static str],
    /// How many words come before the command.
    before: usize,
    /// Whether variables may be set before the command.
    pub(super) has_assignments: bool,
}

const fn wrapper(name: &'static str, values: &'static [&'static str]) -> Wrapper {
    Wrapper { name, values, lines: &[], looks: &[], before: 0, has_assignments: false }
}

const WRAPPERS: &[Wrapper] = &[
    Wrapper {
        has_assignments: true,
        lines: &["-S", "--split-string"],
        ..wrapper("env", &["-u", "--unset", "-C", "--chdir"])
    },
    Wrapper { has_assignments: true, looks: &["-l", "-v", "-K"], ..wrapper("sudo", SUDO) },
    wrapper("doas", &["-u", "-C"]),
    Wrapper { looks: &["-v", "-V"], ..wrapper("command", &[]) },
    wrapper("builtin", &[]),
    wrapper("exec", &["-a"]),
    wrapper("nohup", &[]),
    wrapper("noglob", &[]),
    wrapper("nocorrect", &[]),
    wrapper("setsid", &[]),
    wrapper("busybox", &[]),
    wrapper("toybox", &[]),
    wrapper("caffeinate", &["-t", "-w"]),
    wrapper("nice", &["-n", "--adjustment"]),
    wrapper("ionice", &["-c", "-n", "-p"]),
    wrapper("chrt", &["-T", "-P", "-D"]),
    wrapper("time", &["-f", "-o", "--format", "--output"]),
    Wrapper { before: 1, ..wrapper("timeout", &["-s", "-k", "--signal", "--kill-after"]) },
    Wrapper { before: 1, ..wrapper("gtimeout", &["-s", "-k", "--signal", "--kill-after"]) },
    wrapper("stdbuf", &["-i", "-o", "-e"]),
    wrapper("strace", &["-e", "-o", "-p", "-s", "-u"]),
    wrapper("coproc", &[]),
];

const SUDO: &[&str] =
    &["-u", "-g", "-h", "-p", "-C", "-r", "-t", "-T", "-U", "-D", "-R", "--user", "--group", "--prompt"];

/// `xargs`, and what is like it.
pub(super) const XARGS: Wrapper = wrapper(
    "xargs",
    &[
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
    ],
);

impl Wrapper {
    /// Whether nothing runs.
    pub(super) fn only_looks(&self, arguments: &[Word]) -> bool {
        arguments.first().is_some_and(|word| self.looks.contains(&word.text.as_str()))
    }

    /// Whether it starts a shell if there is no command.
    pub(super) fn starts_shells(&self) -> bool {
        matches!(self.name, "sudo" | "doas")
    }

    /// The command lines among the values of options.
    pub(super) fn lines<'a>(&'a self, arguments: &'a [Word]) -> impl Iterator<Item = Word> {
        arguments.iter().enumerate().filter_map(|(at, word)| {
            let option = self.lines.iter().find(|option| word.text.starts_with(**option))?;
            let attached = word.text[option.len()..].trim_start_matches('=');
            match attached {
                "" => arguments.get(at + 1).cloned(),
                line => Some(Word { text: line.to_owned(), ..word.clone() }),
            }
        })
    }

    /// Where the command may begin: whether an unknown option takes a value is not known.
    pub(super) fn starts(&self, arguments: &[Word]) -> Vec<usize> {
        let mut starts = Vec::new();
        self.find(arguments, 0, self.before, &mut starts);
        starts
    }

    fn find(&self, arguments: &[Word], at: usize, before: usize, starts: &mut Vec<usize>) {
        let Some(word) = arguments.get(at) else { return };
        let text = word.text.as_str();
        if text == "--" {
            return self.find_after(arguments, at + 1, before, starts);
        }
        if text.starts_with('-') && text.len() > 1 {
            let takes_value = self.values.contains(&text) || self.lines.contains(&text);
            let is_known = takes_value || text.contains('=') || self.values.iter().any(|value| text.starts_with(value));
            if !takes_value {
                self.find(arguments, at + 1, before, starts);
            }
            if (takes_value || !is_known) && starts.len() < 16 {
                self.find(arguments, at + 2, before, starts);
            }
            return;
        }
        self.find_after(arguments, at, before, starts);
    }

    /// The command after all options.
    fn find_after(&self, arguments: &[Word], at: usize, before: usize, starts: &mut Vec<usize>) {
        let mut at = at + before;
        let is_assignment = |word: &Word| word.text.split_once('=').is_some_and(|(name, _)| !name.is_empty());
        while self.has_assignments && arguments.get(at).is_some_and(is_assignment) {
            at += 1;
        }
        if at < arguments.len() && !starts.contains(&at) {
            starts.push(at);
        }
    }
}

/// What a program does with its arguments.
pub(super) fn role_of(name: &str) -> Role {
    if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == name) {
        return Role::Wrapper(wrapper);
    }
    match name {
        "git" | "hub" => Role::Git,
        "eval" => Role::Eval,
        "." | "source" | "fc" => Role::Elsewhere,
        "hash" | "enable" | "bind" | "complete" | "compgen" | "mapfile" | "readarray" => Role::Callbacks,
        "export" | "declare" | "typeset" | "local" | "readonly" | "setenv" => Role::Declares,
        "alias" => Role::Alias,
        "ln" | "cp" | "mv" | "install" => Role::Copies,
        "find" | "gfind" | "fd" | "fdfind" => Role::Find,
        "xargs" | "gxargs" | "parallel" => Role::Feeds,
        "at" | "batch" | "crontab" => Role::Schedules,
        name if SHELLS.contains(&name) => Role::Shell,
        name if is_interpreter(name) => Role::Interpreter,
        name if DATA.contains(&name) => Role::Data,
        _ => Role::Other,
    }
}

/// The name of a program without its directory; `None` if only the shell knows it.
pub(super) fn name_of(word: &Word) -> Option<String> {
    let text = match word.plain().or((word.text == "[").then_some("[")) {
        Some(text) => text,
        None => {
            // A directory whose name only the shell knows; a name after it is written out.
            let known = ["~/", "$HOME/", "${HOME}/", "$PWD/", "${PWD}/"];
            let rest = known.into_iter().find_map(|start| word.text.strip_prefix(start))?;
            if rest.contains(['$', '`', '*', '?', '[', '{', '~']) {
                return None;
            }
            rest
        }
    };
    let name = base_name(text);
    let name = name.strip_suffix(".exe").unwrap_or(name);
    Some(if name == "hub" { "git" } else { name }.to_owned())
}

/// The options of programs that otherwise only print, whose value is a command line.
pub(super) fn options_with_line(name: &str) -> &'static [&'static str] {
    match name {
        "rg" => &["--pre", "--hostname-bin"],
        "sort" => &["--compress-program"],
        "bat" | "ag" | "ack" => &["--pager"],
        "man" => &["-P", "--pager"],
        "wget" => &["--use-askpass"],
        _ => &[],
    }
}

/// Programs of the shell that compute what is in a subscript.
pub(super) const EVALUATES_SUBSCRIPTS: &[&str] =
    &["test", "[", "printf", "read", "unset", "export", "declare", "typeset", "local", "readonly", "let", "wait"];

/// Whether an option of a program of the shell names a command, or a file of commands.
pub(super) fn is_callback(word: &Word) -> bool {
    ["-C", "-F", "-x", "-p", "-f"].iter().any(|option| word.text.starts_with(option))
}

/// Whether an option before the subcommand of a program takes the next word; `None` if that is not known.
pub(super) fn is_option_with_value(program: &str, option: &str) -> Option<bool> {
    if option.contains('=') || option == "--" || option.starts_with('+') {
        return Some(false);
    }
    let (values, switches): (&[&str], &[&str]) = match program {
        "git" => (super::git::VALUES, super::git::SWITCHES),
        "docker" | "podman" | "nerdctl" => (
            &[
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
            &["-D", "--debug", "--tls", "--tlsverify"],
        ),
        "kubectl" | "oc" => {
            (&["-n", "--namespace", "--context", "--kubeconfig", "--cluster", "--user", "-s", "--server", "--as"], &[])
        }
        "npm" | "pnpm" | "yarn" => (
            &["--prefix", "-C", "--userconfig", "-w", "--workspace", "--registry", "--loglevel", "--cwd"],
            &["-g", "-s"],
        ),
        "cargo" => (&["--config", "-C", "-Z", "--color"], &["-v", "-q", "--offline", "--locked", "--frozen"]),
        "rm" | "cp" | "mv" | "ls" | "mkdir" | "chmod" => {
            (&[], &["-r", "-f", "-rf", "-fr", "-R", "-v", "-i", "-p", "-a", "-l"])
        }
        _ => (&[], &[]),
    };
    match (values.contains(&option), switches.contains(&option)) {
        (true, _) => Some(true),
        (false, true) => Some(false),
        (false, false) => None,
    }
}

/// What a variable is for.
pub(super) enum Variable {
    /// Some program runs its value.
    Line,
    /// It names a file that some program runs, or what it changes is not known.
    Elsewhere,
    /// It configures git.
    Git,
    /// It is a value.
    Plain,
}

pub(super) fn variable(name: &str) -> Variable {
    match name {
        "EDITOR"
        | "VISUAL"
        | "PAGER"
        | "MANPAGER"
        | "GIT_EDITOR"
        | "GIT_SEQUENCE_EDITOR"
        | "GIT_PAGER"
        | "GIT_SSH_COMMAND"
        | "GIT_SSH"
        | "GIT_EXTERNAL_DIFF"
        | "GIT_ASKPASS"
        | "SSH_ASKPASS"
        | "GIT_PROXY_COMMAND"
        | "PROMPT_COMMAND"
        | "LESSOPEN"
        | "LESSCLOSE"
        | "RUSTC_WRAPPER"
        | "PS4" => Variable::Line,
        "BASH_ENV" | "ENV" | "ZDOTDIR" | "LD_PRELOAD" | "SHELLOPTS" | "BASHOPTS" => Variable::Elsewhere,
        name if name.starts_with("BASH_FUNC") || name.starts_with("BASH_ALIASES") => Variable::Elsewhere,
        name if name.starts_with("GIT_CONFIG") || name == "GIT_EXEC_PATH" => Variable::Git,
        _ => Variable::Plain,
    }
}

/// The texts that are replaced by what is read: `{}` after `-I`.
pub(super) fn replaced(arguments: &[Word]) -> Vec<String> {
    let values = arguments.iter().enumerate().filter_map(|(at, word)| {
        let rest = word.text.strip_prefix("-I").or_else(|| word.text.strip_prefix("-J"))?;
        if rest.is_empty() { arguments.get(at + 1).map(|word| word.text.clone()) } else { Some(rest.to_owned()) }
    });
    values.filter(|text| !text.is_empty()).chain(["{}".to_owned()]).collect()
}
