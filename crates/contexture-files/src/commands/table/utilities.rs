//! The rows of the shell's own commands, and of the programs that every system has.

use super::Trait::{AltersShell, Ends, Evaluates, HandsOnOptions, Moves, NamesItself, PassesOnStatus, ShowsOperands};
use super::arguments::{
    CAFFEINATE, CHRT, COMMAND, DOAS, ENV, EXEC, IONICE, NICE, OF_FILES, PLAIN, STDBUF, STRACE, SUDO, TIME, TIMEOUT,
    XARGS,
};
use super::{
    Arguments, Changes, Filter, Output, Program, Runs, Sets, Wrapper, apart, apart_unless, makes, presumed, program,
};

/// Options with which `tar` runs another program, or makes files while it lists some.
const TAR_RUNS: &[&str] =
    &["-I", "-F", "-g", "--to", "--use", "--info", "--new", "--checkpoint", "--rsh", "--rmt", "--index", "--listed"];

/// Options with which `wget` writes a file besides what it prints, or runs a program.
const WGET_WRITES: &[&str] = &[
    "-a", "-e", "-o", "-r", "-m", "-p", "--a", "--config", "--e", "--hsts", "--m", "--o", "--p", "--r", "--s", "--use",
    "--warc",
];

/// Options with which `tar` does more than to put files together.
const TAR_TAKES: &[&str] = &[
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

/// By name.
pub(super) static ROWS: &[Program] = &[
    program(".").takes(Arguments::Elsewhere).also(&["source"]).runs(Runs::Anything).is(&[
        AltersShell,
        HandsOnOptions,
        Moves,
        PassesOnStatus,
    ]),
    program(":").text(&[]).reads().prints(Output::Nothing).is(&[NamesItself]),
    program("[").text(&[]).reads().is(&[Evaluates, NamesItself]),
    program("ack").text(&["--pager"]),
    program("ag").text(&["--pager"]).reads_unless(&["--pager"]),
    program("alias").takes(Arguments::Aliases).is(&[AltersShell, Moves]),
    program("apply_patch").does(Changes::Patch),
    program("apropos").text(&[]),
    program("apt-cache").text(&[]),
    program("arch").reads(),
    program("ash").takes(Arguments::Shell).runs(Runs::Anything).is(&[HandsOnOptions]),
    program("aspell").text(&[]),
    program("at").takes(Arguments::Later),
    program("awk").takes(Arguments::Code).does(Changes::Awk).runs(Runs::Work).is(&[ShowsOperands]),
    program("b2sum").reads(),
    program("base64").text(&[]).reads_unless(&["-o", "--output"]),
    program("basename").text(&[]).reads().is(&[NamesItself]),
    program("bash")
        .takes(Arguments::Shell)
        .also(&["sh"])
        .does(Changes::Inner(Wrapper::Line))
        .runs(Runs::Anything)
        .is(&[HandsOnOptions, PassesOnStatus]),
    program("bat").text(&["--pager"]).reads_unless(&["--pager"]).is(&[ShowsOperands]),
    program("batch").takes(Arguments::Later),
    program("bg").text(&[]),
    program("bind").takes(Arguments::Callbacks).is(&[AltersShell]),
    program("break").text(&[]).reads(),
    program("builtin").takes(Arguments::Command(&PLAIN)).does(Changes::Inner(Wrapper::Rest)).is(&[AltersShell]),
    program("busybox").takes(Arguments::Command(&PLAIN)).runs(Runs::Work),
    program("bzip2").runs(Runs::Anything),
    program("caffeinate").takes(Arguments::Command(&CAFFEINATE)),
    program("cat").text(&[]).reads().prints(Output::Whole).filters(Filter::Passes).is(&[NamesItself, ShowsOperands]),
    program("cd").text(&[]).does(Changes::Never).prints(Output::Directory).is(&[Moves, NamesItself]),
    program("chdir").is(&[Moves]),
    program("chmod").text(&[]).options(OF_FILES).reads().prints(Output::Nothing).is(&[NamesItself]),
    program("chown").text(&[]),
    program("chroot").runs(Runs::Anything),
    program("chrt").takes(Arguments::Command(&CHRT)),
    program("cksum").reads(),
    program("clear").text(&[]),
    program("cmp").text(&[]).reads(),
    program("column").text(&[]).reads(),
    program("comm").text(&[]).reads(),
    program("command").takes(Arguments::Command(&COMMAND)).does(Changes::Inner(Wrapper::Command)),
    program("compgen").takes(Arguments::Callbacks),
    program("complete").takes(Arguments::Callbacks),
    program("continue").text(&[]).reads(),
    program("coproc").takes(Arguments::Command(&PLAIN)),
    program("cowsay").text(&[]),
    program("cp")
        .takes(Arguments::Files)
        .options(OF_FILES)
        .does(Changes::Copy)
        .prints(Output::Nothing)
        .runs(Runs::Anything)
        .is(&[NamesItself]),
    program("crontab").takes(Arguments::Later),
    program("csplit").runs(Runs::Anything),
    program("curl").text(&[]).does(Changes::Curl),
    program("cut").text(&[]).reads().is(&[NamesItself, ShowsOperands]),
    program("dash")
        .takes(Arguments::Shell)
        .does(Changes::Inner(Wrapper::Line))
        .runs(Runs::Anything)
        .is(&[HandsOnOptions, PassesOnStatus]),
    program("date").text(&[]).reads().is(&[NamesItself]),
    program("dd").runs(Runs::Anything),
    program("declare").takes(Arguments::Variables).sets(Sets::Always).is(&[Evaluates]),
    program("df").text(&[]).reads(),
    program("diff").text(&[]).reads().is(&[NamesItself]),
    program("dig").text(&[]).reads(),
    program("dirname").text(&[]).reads().is(&[NamesItself]),
    program("dirs").does(Changes::Never),
    program("disown").text(&[]),
    program("doas").takes(Arguments::Command(&DOAS)).runs(Runs::Anything),
    program("dpkg-query").text(&[]),
    program("du").text(&[]).reads(),
    program("echo").text(&[]).reads().is(&[NamesItself]),
    program("ed").runs(Runs::Anything),
    program("egrep").text(&[]).also(&["fgrep"]).reads().prints(Output::Hits).is(&[NamesItself, ShowsOperands]),
    program("emacs").runs(Runs::Anything),
    program("enable").takes(Arguments::Callbacks).is(&[AltersShell]),
    program("env")
        .takes(Arguments::Command(&ENV))
        .does(Changes::Inner(Wrapper::Environment))
        .runs(Runs::Anything)
        .is(&[HandsOnOptions]),
    program("eval").takes(Arguments::Line).runs(Runs::Anything).is(&[
        AltersShell,
        HandsOnOptions,
        Moves,
        PassesOnStatus,
    ]),
    program("ex").runs(Runs::Anything),
    program("exa").text(&[]).reads(),
    program("exec").takes(Arguments::Command(&EXEC)).runs(Runs::Anything).is(&[
        AltersShell,
        Ends,
        HandsOnOptions,
        PassesOnStatus,
    ]),
    program("exit").text(&[]).reads().is(&[Ends]),
    program("expand").reads(),
    program("expect").takes(Arguments::Code).runs(Runs::Anything),
    program("export").takes(Arguments::Variables).prints(Output::Variables).sets(Sets::Always).is(&[Evaluates]),
    program("expr").reads(),
    program("eza").text(&[]).reads(),
    program("false").text(&[]).reads(),
    program("fc").takes(Arguments::Elsewhere),
    program("fd").takes(Arguments::Between).reads_unless(&["-x", "-X", "--exec", "--exec-batch"]),
    program("fdfind").takes(Arguments::Between),
    program("fg").text(&[]),
    program("figlet").text(&[]),
    program("file").text(&[]).reads_unless(&["-C", "--compile"]),
    program("find")
        .takes(Arguments::Between)
        .searches_unless(&["-delete", "-exec", "-execdir", "-ok", "-okdir", "-fprint", "-fprint0", "-fprintf", "-fls"])
        .is(&[NamesItself, PassesOnStatus]),
    program("fish").takes(Arguments::Shell),
    program("fmt").text(&[]).reads(),
    program("fold").text(&[]).reads(),
    program("free").text(&[]).reads(),
    program("gawk").takes(Arguments::Code).does(Changes::Awk),
    program("getopts").text(&[]),
    program("gfind").takes(Arguments::Between),
    program("grep").text(&[]).reads().prints(Output::Hits).filters(Filter::Greps).is(&[NamesItself, ShowsOperands]),
    program("groups").reads(),
    program("gsed").takes(Arguments::Code),
    program("gtimeout").takes(Arguments::Command(&TIMEOUT)).does(Changes::Inner(Wrapper::AfterDuration)),
    program("gunzip").runs(Runs::Anything),
    program("gxargs").takes(Arguments::Fed(&XARGS)),
    program("gzip").runs(Runs::Anything),
    program("hash").takes(Arguments::Callbacks).is(&[AltersShell]),
    program("head").text(&[]).reads().prints(Output::Ends).filters(Filter::Ends).is(&[NamesItself, ShowsOperands]),
    program("help").text(&[]),
    program("hexdump").text(&[]).reads(),
    program("history").text(&[]),
    program("hostname").text(&[]).reads(),
    program("id").text(&[]).reads(),
    program("install").takes(Arguments::Files).runs(Runs::Anything),
    program("ionice").takes(Arguments::Command(&IONICE)),
    program("jobs").text(&[]),
    program("join").text(&[]),
    program("jq").text(&[]).reads(),
    program("kill").text(&[]).reads(),
    program("killall").reads(),
    program("ksh").takes(Arguments::Shell).runs(Runs::Anything).is(&[HandsOnOptions, PassesOnStatus]),
    program("less").text(&[]).is(&[ShowsOperands]),
    program("let").text(&[]).is(&[Evaluates]),
    program("link").does(Changes::Link),
    program("ln").takes(Arguments::Files).does(Changes::Link).prints(Output::Nothing).is(&[NamesItself]),
    program("local").takes(Arguments::Variables).sets(Sets::Always).is(&[Evaluates]),
    program("logger").text(&[]),
    program("look").text(&[]),
    program("ls").text(&[]).options(OF_FILES).reads().is(&[NamesItself]),
    program("lsof").reads(),
    program("man").text(&["-P", "--pager"]),
    program("mapfile").takes(Arguments::Callbacks).is(&[Evaluates, Moves]),
    program("mawk").takes(Arguments::Code).does(Changes::Awk),
    program("md5").reads(),
    program("md5sum").text(&[]).reads(),
    program("mkdir").text(&[]).options(OF_FILES).reads().prints(Output::Nothing).is(&[NamesItself]),
    program("mktemp").reads(),
    program("more").text(&[]).is(&[ShowsOperands]),
    program("mv")
        .takes(Arguments::Files)
        .options(OF_FILES)
        .does(Changes::Move)
        .prints(Output::Nothing)
        .runs(Runs::Anything)
        .is(&[NamesItself]),
    program("nano").runs(Runs::Anything),
    program("nawk").takes(Arguments::Code),
    program("nc").runs(Runs::Anything).actions(&[presumed("-z"), presumed("-vz"), presumed("-zv")]),
    program("nice").takes(Arguments::Command(&NICE)).does(Changes::Inner(Wrapper::Rest)),
    program("nl").text(&[]).reads().prints(Output::Whole).is(&[NamesItself, ShowsOperands]),
    program("nocorrect").takes(Arguments::Command(&PLAIN)),
    program("noglob").takes(Arguments::Command(&PLAIN)),
    program("nohup").takes(Arguments::Command(&PLAIN)).does(Changes::Inner(Wrapper::Rest)),
    program("notify-send").text(&[]),
    program("nproc").reads(),
    program("od").text(&[]).reads(),
    program("open").text(&[]),
    program("parallel").takes(Arguments::Fed(&XARGS)).runs(Runs::Anything).is(&[PassesOnStatus]),
    program("paste").text(&[]).reads(),
    program("patch").text(&[]).runs(Runs::Anything),
    program("pbcopy").text(&[]),
    program("pgrep").reads(),
    program("pkill").reads(),
    program("popd").text(&[]).does(Changes::Never).is(&[Moves]),
    program("powershell").takes(Arguments::Shell),
    program("print").text(&[]),
    program("printenv").reads(),
    program("printf").text(&[]).reads().sets(Sets::AfterOption).is(&[Evaluates, NamesItself]),
    program("ps").text(&[]).reads(),
    program("pushd").text(&[]).does(Changes::Never).is(&[Moves]),
    program("pwd").text(&[]).reads().is(&[NamesItself]),
    program("pwsh").takes(Arguments::Shell),
    program("rbash").takes(Arguments::Shell),
    program("read").text(&[]).sets(Sets::Always).is(&[Evaluates]),
    program("readarray").takes(Arguments::Callbacks).is(&[Evaluates, Moves]),
    program("readlink").text(&[]).reads(),
    program("readonly").takes(Arguments::Variables).sets(Sets::Always).is(&[Evaluates]),
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
        .takes(Arguments::Code)
        .does(Changes::Sed)
        .prints(Output::Sed)
        .filters(Filter::Sed)
        .runs(Runs::Work)
        .is(&[NamesItself, ShowsOperands]),
    program("seq").text(&[]).reads(),
    program("set").text(&[]).does(Changes::Settings).prints(Output::Settings),
    program("setenv").takes(Arguments::Variables),
    program("setsid").takes(Arguments::Command(&PLAIN)),
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
    program("stdbuf").takes(Arguments::Command(&STDBUF)),
    program("strace").takes(Arguments::Command(&STRACE)),
    program("strings").text(&[]).reads(),
    program("su").runs(Runs::Anything),
    program("sudo").takes(Arguments::Command(&SUDO)).runs(Runs::Anything).is(&[HandsOnOptions, PassesOnStatus]),
    program("sum").reads(),
    program("tac").text(&[]).reads().is(&[NamesItself, ShowsOperands]),
    program("tail").text(&[]).reads().prints(Output::Ends).filters(Filter::Ends).is(&[NamesItself, ShowsOperands]),
    program("tar").runs(Runs::Anything).actions(&[
        makes("-c -f", TAR_TAKES),
        makes("-caf", TAR_TAKES),
        makes("-cf", TAR_TAKES),
        makes("-cjf", TAR_TAKES),
        makes("-czf", TAR_TAKES),
        makes("-czvf", TAR_TAKES),
        makes("caf", TAR_TAKES),
        makes("cf", TAR_TAKES),
        makes("cjf", TAR_TAKES),
        makes("cvf", TAR_TAKES),
        makes("czf", TAR_TAKES),
        makes("czvf", TAR_TAKES),
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
    program("tclsh").takes(Arguments::Code).runs(Runs::Anything),
    program("tee").text(&[]).does(Changes::Tee).runs(Runs::Work).is(&[NamesItself]),
    program("test").text(&[]).reads().is(&[Evaluates, NamesItself]),
    program("time").takes(Arguments::Command(&TIME)).does(Changes::Inner(Wrapper::Rest)),
    program("timeout").takes(Arguments::Command(&TIMEOUT)).does(Changes::Inner(Wrapper::AfterDuration)),
    program("top").text(&[]),
    program("touch").text(&[]).does(Changes::Touch).prints(Output::Nothing).is(&[NamesItself]),
    program("toybox").takes(Arguments::Command(&PLAIN)),
    program("tput").text(&[]),
    program("tr").text(&[]).reads().is(&[NamesItself]),
    program("trap").is(&[AltersShell]),
    program("tree").text(&[]).reads_unless(&["-o", "-R"]),
    program("true").text(&[]).reads().prints(Output::Nothing),
    program("truncate").does(Changes::Truncate).runs(Runs::Work),
    program("tty").reads(),
    program("type").text(&[]).reads(),
    program("typeset").takes(Arguments::Variables).sets(Sets::Always).is(&[Evaluates]),
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
        .takes(Arguments::Fed(&XARGS))
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
        .takes(Arguments::Shell)
        .does(Changes::Inner(Wrapper::Line))
        .runs(Runs::Anything)
        .is(&[HandsOnOptions]),
    program("zstd").runs(Runs::Anything),
];
