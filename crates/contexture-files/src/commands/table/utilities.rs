//! The rows of the shell's own commands, and of the programs that every system has.

use super::Trait::{AltersShell, Ends, Evaluates, HandsOnOptions, Moves, NamesItself, PassesOnStatus, ShowsOperands};
use super::arguments::{
    CAFFEINATE, CHRT, COMMAND, DOAS, ENV, EXEC, IONICE, NICE, OF_FILES, PLAIN, STDBUF, STRACE, SUDO, TIME, TIMEOUT,
    XARGS,
};
use super::{
    ArgumentUse, Changes, Filter, Output, Program, Runs, Sets, Wrapper, apart, apart_unless, makes, presumed, program,
};

/// Options with which `tar` runs another program, or makes or removes files besides those that it is told to.
const TAR_RUNS: &[&str] = &[
    "-I",
    "-F",
    "-g",
    "--to",
    "--use",
    "--info",
    "--new",
    "--checkpoint",
    "--rsh",
    "--rmt",
    "--index",
    "--listed",
    "--remove",
];

/// Options with which `wget` writes a file besides what it prints, or runs a program.
const WGET_WRITES: &[&str] = &[
    "-a", "-e", "-o", "-r", "-m", "-p", "--a", "--config", "--e", "--hsts", "--m", "--o", "--p", "--r", "--s", "--use",
    "--warc",
];

/// By name.
pub(super) static ROWS: &[Program] = &[
    program(".").takes(ArgumentUse::Elsewhere).also(&["source"]).runs(Runs::Anything).is(&[
        AltersShell,
        HandsOnOptions,
        Moves,
        PassesOnStatus,
    ]),
    program(":").text(&[]).reads().prints(Output::Nothing).is(&[NamesItself]),
    program("[").text(&[]).reads().is(&[Evaluates, NamesItself]),
    program("ack").text(&["--pager"]),
    program("ag").text(&["--pager"]).reads_unless(&["--pager"]),
    program("alias").takes(ArgumentUse::Aliases).is(&[AltersShell, Moves]),
    program("apply_patch").does(Changes::Patch),
    program("apropos").text(&[]),
    program("apt-cache").text(&[]),
    program("arch").reads(),
    program("ash").takes(ArgumentUse::Shell).runs(Runs::Anything).is(&[HandsOnOptions]),
    program("aspell").text(&[]),
    program("at").takes(ArgumentUse::Later),
    program("awk").takes(ArgumentUse::Code).does(Changes::Awk).runs(Runs::Work).is(&[ShowsOperands]),
    program("b2sum").reads(),
    program("base64").text(&[]).reads_unless(&["-o", "--output"]),
    program("basename").text(&[]).reads().is(&[NamesItself]),
    program("bash")
        .takes(ArgumentUse::Shell)
        .also(&["sh"])
        .does(Changes::Inner(Wrapper::Line))
        .runs(Runs::Anything)
        .is(&[HandsOnOptions, PassesOnStatus]),
    program("bat").text(&["--pager"]).reads_unless(&["--pager"]).is(&[ShowsOperands]),
    program("batch").takes(ArgumentUse::Later),
    program("bg").text(&[]),
    program("bind").takes(ArgumentUse::Callbacks).is(&[AltersShell]),
    program("break").text(&[]).reads(),
    program("builtin").takes(ArgumentUse::Command(&PLAIN)).does(Changes::Inner(Wrapper::Rest)).is(&[AltersShell]),
    program("busybox").takes(ArgumentUse::Command(&PLAIN)).runs(Runs::Work),
    program("bzip2").runs(Runs::Anything),
    program("caffeinate").takes(ArgumentUse::Command(&CAFFEINATE)),
    program("cat").text(&[]).reads().prints(Output::Whole).filters(Filter::Passes).is(&[NamesItself, ShowsOperands]),
    program("cd").text(&[]).does(Changes::Never).prints(Output::Directory).is(&[Moves, NamesItself]),
    program("chdir").is(&[Moves]),
    program("chmod").text(&[]).options(OF_FILES).reads().prints(Output::Nothing).is(&[NamesItself]),
    program("chown").text(&[]),
    program("chroot").runs(Runs::Anything),
    program("chrt").takes(ArgumentUse::Command(&CHRT)),
    program("cksum").reads(),
    program("clear").text(&[]),
    program("cmp").text(&[]).reads(),
    program("column").text(&[]).reads(),
    program("comm").text(&[]).reads(),
    program("command").takes(ArgumentUse::Command(&COMMAND)).does(Changes::Inner(Wrapper::Command)),
    program("compgen").takes(ArgumentUse::Callbacks),
    program("complete").takes(ArgumentUse::Callbacks),
    program("continue").text(&[]).reads(),
    program("coproc").takes(ArgumentUse::Command(&PLAIN)),
    program("cowsay").text(&[]),
    program("cp")
        .takes(ArgumentUse::Files)
        .options(OF_FILES)
        .does(Changes::Copy)
        .prints(Output::Nothing)
        .runs(Runs::Anything)
        .is(&[NamesItself]),
    program("crontab").takes(ArgumentUse::Later),
    program("csplit").runs(Runs::Anything),
    program("curl").text(&[]).does(Changes::Curl),
    program("cut").text(&[]).reads().is(&[NamesItself, ShowsOperands]),
    program("dash")
        .takes(ArgumentUse::Shell)
        .does(Changes::Inner(Wrapper::Line))
        .runs(Runs::Anything)
        .is(&[HandsOnOptions, PassesOnStatus]),
    program("date").text(&[]).reads().is(&[NamesItself]),
    program("dd").runs(Runs::Anything),
    program("declare").takes(ArgumentUse::Variables).sets(Sets::Always).is(&[Evaluates]),
    program("df").text(&[]).reads(),
    program("diff").text(&[]).reads().is(&[NamesItself]),
    program("dig").text(&[]).reads(),
    program("dirname").text(&[]).reads().is(&[NamesItself]),
    program("dirs").does(Changes::Never),
    program("disown").text(&[]),
    program("doas").takes(ArgumentUse::Command(&DOAS)).runs(Runs::Anything),
    program("dpkg-query").text(&[]),
    program("du").text(&[]).reads(),
    program("echo").text(&[]).reads().is(&[NamesItself]),
    program("ed").runs(Runs::Anything),
    program("egrep").text(&[]).also(&["fgrep"]).reads().prints(Output::Hits).is(&[NamesItself, ShowsOperands]),
    program("emacs").runs(Runs::Anything),
    program("enable").takes(ArgumentUse::Callbacks).is(&[AltersShell]),
    program("env")
        .takes(ArgumentUse::Command(&ENV))
        .does(Changes::Inner(Wrapper::Environment))
        .runs(Runs::Anything)
        .is(&[HandsOnOptions]),
    program("eval").takes(ArgumentUse::Line).runs(Runs::Anything).is(&[
        AltersShell,
        HandsOnOptions,
        Moves,
        PassesOnStatus,
    ]),
    program("ex").runs(Runs::Anything),
    program("exa").text(&[]).reads(),
    program("exec").takes(ArgumentUse::Command(&EXEC)).runs(Runs::Anything).is(&[
        AltersShell,
        Ends,
        HandsOnOptions,
        PassesOnStatus,
    ]),
    program("exit").text(&[]).reads().is(&[Ends]),
    program("expand").reads(),
    program("expect").takes(ArgumentUse::Code).runs(Runs::Anything),
    program("export").takes(ArgumentUse::Variables).prints(Output::Variables).sets(Sets::Always).is(&[Evaluates]),
    program("expr").reads(),
    program("eza").text(&[]).reads(),
    program("false").text(&[]).reads(),
    program("fc").takes(ArgumentUse::Elsewhere),
    program("fd").takes(ArgumentUse::Between).reads_unless(&["-x", "-X", "--exec", "--exec-batch"]),
    program("fdfind").takes(ArgumentUse::Between),
    program("fg").text(&[]),
    program("figlet").text(&[]),
    program("file").text(&[]).reads_unless(&["-C", "--compile"]),
    program("find")
        .takes(ArgumentUse::Between)
        .searches_unless(&["-delete", "-exec", "-execdir", "-ok", "-okdir", "-fprint", "-fprint0", "-fprintf", "-fls"])
        .is(&[NamesItself, PassesOnStatus]),
    program("fish").takes(ArgumentUse::Shell),
    program("fmt").text(&[]).reads(),
    program("fold").text(&[]).reads(),
    program("free").text(&[]).reads(),
    program("gawk").takes(ArgumentUse::Code).does(Changes::Awk),
    program("getopts").text(&[]),
    program("gfind").takes(ArgumentUse::Between),
    program("grep").text(&[]).reads().prints(Output::Hits).filters(Filter::Greps).is(&[NamesItself, ShowsOperands]),
    program("groups").reads(),
    program("gsed").takes(ArgumentUse::Code),
    program("gtimeout").takes(ArgumentUse::Command(&TIMEOUT)).does(Changes::Inner(Wrapper::AfterDuration)),
    program("gunzip").runs(Runs::Anything),
    program("gxargs").takes(ArgumentUse::Fed(&XARGS)),
    program("gzip").runs(Runs::Anything),
    program("hash").takes(ArgumentUse::Callbacks).is(&[AltersShell]),
    program("head").text(&[]).reads().prints(Output::Ends).filters(Filter::Ends).is(&[NamesItself, ShowsOperands]),
    program("help").text(&[]),
    program("hexdump").text(&[]).reads(),
    program("history").text(&[]),
    program("hostname").text(&[]).reads(),
    program("id").text(&[]).reads(),
    program("install").takes(ArgumentUse::Files).runs(Runs::Anything),
    program("ionice").takes(ArgumentUse::Command(&IONICE)),
    program("jobs").text(&[]),
    program("join").text(&[]),
    program("jq").text(&[]).reads(),
    program("kill").text(&[]).reads(),
    program("killall").reads(),
    program("ksh").takes(ArgumentUse::Shell).runs(Runs::Anything).is(&[HandsOnOptions, PassesOnStatus]),
    program("less").text(&[]).is(&[ShowsOperands]),
    program("let").text(&[]).is(&[Evaluates]),
    program("link").does(Changes::Link),
    program("ln").takes(ArgumentUse::Files).does(Changes::Link).prints(Output::Nothing).is(&[NamesItself]),
    program("local").takes(ArgumentUse::Variables).sets(Sets::Always).is(&[Evaluates]),
    program("logger").text(&[]),
    program("look").text(&[]),
    program("ls").text(&[]).options(OF_FILES).reads().is(&[NamesItself]),
    program("lsof").reads(),
    program("man").text(&["-P", "--pager"]),
    program("mapfile").takes(ArgumentUse::Callbacks).is(&[Evaluates, Moves]),
    program("mawk").takes(ArgumentUse::Code).does(Changes::Awk),
    program("md5").reads(),
    program("md5sum").text(&[]).reads(),
    program("mkdir").text(&[]).options(OF_FILES).reads().prints(Output::Nothing).is(&[NamesItself]),
    program("mktemp").reads(),
    program("more").text(&[]).is(&[ShowsOperands]),
    program("mv")
        .takes(ArgumentUse::Files)
        .options(OF_FILES)
        .does(Changes::Move)
        .prints(Output::Nothing)
        .runs(Runs::Anything)
        .is(&[NamesItself]),
    program("nano").runs(Runs::Anything),
    program("nawk").takes(ArgumentUse::Code),
    program("nc").runs(Runs::Anything).actions(&[presumed("-z"), presumed("-vz"), presumed("-zv")]),
    program("nice").takes(ArgumentUse::Command(&NICE)).does(Changes::Inner(Wrapper::Rest)),
    program("nl").text(&[]).reads().prints(Output::Whole).is(&[NamesItself, ShowsOperands]),
    program("nocorrect").takes(ArgumentUse::Command(&PLAIN)),
    program("noglob").takes(ArgumentUse::Command(&PLAIN)),
    program("nohup").takes(ArgumentUse::Command(&PLAIN)).does(Changes::Inner(Wrapper::Rest)),
    program("notify-send").text(&[]),
    program("nproc").reads(),
    program("od").text(&[]).reads(),
    program("open").text(&[]),
    program("parallel").takes(ArgumentUse::Fed(&XARGS)).runs(Runs::Anything).is(&[PassesOnStatus]),
    program("paste").text(&[]).reads(),
    program("patch").text(&[]).runs(Runs::Anything),
    program("pbcopy").text(&[]),
    program("pgrep").reads(),
    program("pkill").reads(),
    program("popd").text(&[]).does(Changes::Never).is(&[Moves]),
    program("powershell").takes(ArgumentUse::Shell),
    program("print").text(&[]),
    program("printenv").reads(),
    program("printf").text(&[]).reads().sets(Sets::AfterOption).is(&[Evaluates, NamesItself]),
    program("ps").text(&[]).reads(),
    program("pushd").text(&[]).does(Changes::Never).is(&[Moves]),
    program("pwd").text(&[]).reads().is(&[NamesItself]),
    program("pwsh").takes(ArgumentUse::Shell),
    program("rbash").takes(ArgumentUse::Shell),
    program("read").text(&[]).sets(Sets::Always).is(&[Evaluates]),
    program("readarray").takes(ArgumentUse::Callbacks).is(&[Evaluates, Moves]),
    program("readlink").text(&[]).reads(),
    program("readonly").takes(ArgumentUse::Variables).sets(Sets::Always).is(&[Evaluates]),
    program("realpath").text(&[]).reads(),
    program("return").text(&[]).does(Changes::Never).is(&[Ends]),
    program("rev").reads().is(&[NamesItself]),
    program("rg")
        .text(&["--pre", "--hostname-bin"])
        .reads_unless(&["--pre", "--hostname-bin"])
        .prints(Output::Hits)
        .is(&[ShowsOperands]),
    program("rm")
        .text(&[])
        .options(OF_FILES)
        .does(Changes::Remove)
        .prints(Output::Nothing)
        .runs(Runs::Anything)
        .is(&[NamesItself]),
    program("rmdir").text(&[]).reads().prints(Output::Nothing).is(&[NamesItself]),
    program("rsync").runs(Runs::Anything),
    program("say").text(&[]),
    program("scp").runs(Runs::Anything),
    program("sed")
        .takes(ArgumentUse::Code)
        .does(Changes::Sed)
        .prints(Output::Sed)
        .filters(Filter::Sed)
        .runs(Runs::Work)
        .is(&[NamesItself, ShowsOperands]),
    program("seq").text(&[]).reads(),
    program("set").text(&[]).does(Changes::Settings).prints(Output::Settings),
    program("setenv").takes(ArgumentUse::Variables),
    program("setsid").takes(ArgumentUse::Command(&PLAIN)),
    program("sha1sum").reads(),
    program("sha256sum").text(&[]).reads(),
    program("shasum").text(&[]).reads(),
    program("shellcheck").reads(),
    program("shift").text(&[]).does(Changes::Never),
    program("shopt").text(&[]).is(&[AltersShell]),
    program("shuf").reads_unless(&["-o", "--output"]),
    program("sleep").text(&[]).reads().prints(Output::Nothing),
    program("sort")
        .text(&["--compress-program"])
        .reads_unless(&["-o", "--output", "--compress-program"])
        .filters(Filter::Sorts)
        .is(&[NamesItself, ShowsOperands]),
    program("spell").text(&[]),
    program("split").runs(Runs::Anything),
    program("ss").text(&[]).reads_unless(&["-D", "--diag"]),
    program("ssh").is(&[PassesOnStatus]),
    program("stat").text(&[]).reads(),
    program("stdbuf").takes(ArgumentUse::Command(&STDBUF)),
    program("strace").takes(ArgumentUse::Command(&STRACE)),
    program("strings").text(&[]).reads(),
    program("su").runs(Runs::Anything),
    program("sudo").takes(ArgumentUse::Command(&SUDO)).runs(Runs::Anything).is(&[HandsOnOptions, PassesOnStatus]),
    program("sum").reads(),
    program("tac").text(&[]).reads().is(&[NamesItself, ShowsOperands]),
    program("tail").text(&[]).reads().prints(Output::Ends).filters(Filter::Ends).is(&[NamesItself, ShowsOperands]),
    program("tar").runs(Runs::Anything).actions(&[
        makes("-c -f", TAR_RUNS),
        makes("-caf", TAR_RUNS),
        makes("-cf", TAR_RUNS),
        makes("-cjf", TAR_RUNS),
        makes("-czf", TAR_RUNS),
        makes("-czvf", TAR_RUNS),
        makes("caf", TAR_RUNS),
        makes("cf", TAR_RUNS),
        makes("cjf", TAR_RUNS),
        makes("cvf", TAR_RUNS),
        makes("czf", TAR_RUNS),
        makes("czvf", TAR_RUNS),
        apart_unless("tf", TAR_RUNS),
        apart_unless("tvf", TAR_RUNS),
        apart_unless("tzf", TAR_RUNS),
        apart_unless("tzvf", TAR_RUNS),
        apart_unless("-t", TAR_RUNS),
        apart_unless("-tf", TAR_RUNS),
        apart_unless("-tvf", TAR_RUNS),
        apart_unless("-tzf", TAR_RUNS),
        apart_unless("-tzvf", TAR_RUNS),
        apart_unless("--list", TAR_RUNS),
        apart_unless("xOf", TAR_RUNS),
        apart_unless("xzOf", TAR_RUNS),
        apart_unless("-xOf", TAR_RUNS),
        apart_unless("-xzOf", TAR_RUNS),
    ]),
    program("tclsh").takes(ArgumentUse::Code).runs(Runs::Anything),
    program("tee").text(&[]).does(Changes::Tee).runs(Runs::Work).is(&[NamesItself]),
    program("test").text(&[]).reads().is(&[Evaluates, NamesItself]),
    program("time").takes(ArgumentUse::Command(&TIME)).does(Changes::Inner(Wrapper::Rest)),
    program("timeout").takes(ArgumentUse::Command(&TIMEOUT)).does(Changes::Inner(Wrapper::AfterDuration)),
    program("top").text(&[]),
    program("touch").text(&[]).does(Changes::Touch).prints(Output::Nothing).is(&[NamesItself]),
    program("toybox").takes(ArgumentUse::Command(&PLAIN)),
    program("tput").text(&[]),
    program("tr").text(&[]).reads().is(&[NamesItself]),
    program("trap").is(&[AltersShell]),
    program("tree").text(&[]).reads_unless(&["-o", "-R"]),
    program("true").text(&[]).reads().prints(Output::Nothing),
    program("truncate").does(Changes::Truncate).runs(Runs::Work),
    program("tty").reads(),
    program("type").text(&[]).reads(),
    program("typeset").takes(ArgumentUse::Variables).sets(Sets::Always).is(&[Evaluates]),
    program("ulimit").text(&[]).is(&[AltersShell]),
    program("umask").text(&[]).is(&[AltersShell]),
    program("unalias").text(&[]).is(&[AltersShell]),
    program("uname").text(&[]).reads(),
    program("unexpand").reads(),
    program("uniq").text(&[]).reads_one(&[]),
    program("unlink").does(Changes::Remove),
    program("unset").text(&[]).sets(Sets::Always).is(&[Evaluates]),
    program("unzip").runs(Runs::Anything).actions(&[apart("-l"), apart("-p"), apart("-t"), apart("-v"), apart("-Z1")]),
    program("uptime").reads(),
    program("vi").runs(Runs::Anything),
    program("vim").runs(Runs::Anything),
    program("wait").text(&[]).does(Changes::Never).is(&[Evaluates]),
    program("wall").text(&[]),
    program("watch").runs(Runs::Anything),
    program("wc").text(&[]).reads().is(&[NamesItself]),
    program("wget").text(&["--use-askpass"]).runs(Runs::Anything).actions(&[
        apart_unless("--spider", WGET_WRITES),
        apart_unless("-O -", WGET_WRITES),
        apart_unless("-O-", WGET_WRITES),
        apart_unless("-q -O -", WGET_WRITES),
        apart_unless("-q -O-", WGET_WRITES),
        apart_unless("-qO -", WGET_WRITES),
        apart_unless("-qO-", WGET_WRITES),
    ]),
    program("whatis").text(&[]),
    program("whereis").text(&[]).reads(),
    program("which").text(&[]).reads(),
    program("whoami").text(&[]).reads(),
    program("xargs")
        .takes(ArgumentUse::Fed(&XARGS))
        .does(Changes::Inner(Wrapper::Fed))
        .runs(Runs::Anything)
        .is(&[PassesOnStatus]),
    program("xdg-open").text(&[]),
    program("xxd").text(&[]).reads_one(&["-r"]),
    program("xz").runs(Runs::Anything),
    program("yes").text(&[]),
    program("yq").text(&[]).reads_unless(&["-i", "--inplace", "--in-place", "-s", "--split-exp"]),
    program("zcat").text(&[]).also(&["bzcat", "gzcat", "xzcat", "zstdcat"]).reads(),
    program("zgrep").text(&[]).reads(),
    program("zip").runs(Runs::Anything),
    program("zsh")
        .takes(ArgumentUse::Shell)
        .does(Changes::Inner(Wrapper::Line))
        .runs(Runs::Anything)
        .is(&[HandsOnOptions]),
    program("zstd").runs(Runs::Anything),
];
