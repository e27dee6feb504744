//! The commands of the gateway, with an agent that is a process of its own.

// Clippy allows `unwrap` in test functions but not in what they call.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::env;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::{Command, Output};

use contexture_gateway::answerer::Answerer;
use tempfile::TempDir;

/// The variable by which the agent finds its provider.
const ADDRESS: &str = "TEST_AGENT_BASE_URL";

/// What the agent is: this program again, which runs only the test below.
const AGENT: [&str; 3] = ["--exact", "gateway::an_agent_that_asks_three_questions", "--nocapture"];

/// The agent. As a test of its own it does nothing.
#[test]
fn an_agent_that_asks_three_questions() {
    let Ok(url) = env::var(ADDRESS) else { return };
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    if env::var("TEST_AGENT_LISTS").is_ok() {
        let mut stream = TcpStream::connect(host).unwrap();
        write!(stream, "GET /{path}/models HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\r\n").unwrap();
        stream.read_to_string(&mut String::new()).unwrap();
        println!("it only listed the models");
        std::process::exit(0);
    }
    let login = match env::var("TEST_AGENT_LOGGED_OUT") {
        Ok(_) => "",
        Err(_) => "authorization: Bearer sk-agent-secret\r\n",
    };
    for question in 0..3 {
        let body = format!(r#"{{"model":"gpt-5","messages":[{{"role":"user","content":"question {question}"}}]}}"#);
        let mut stream = TcpStream::connect(host).unwrap();
        let head = format!(
            "POST /{path}/chat/completions HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n{login}content-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains(r#""content":"ok""#), "{answer}");
    }
    println!("the agent works in {}", env::current_dir().unwrap().display());
    println!("its key is {}", path.split('/').next().unwrap());
    std::process::exit(7);
}

pub struct Rig {
    runtime: tokio::runtime::Runtime,
    pub answerer: Answerer,
    pub home: TempDir,
}

impl Rig {
    pub fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let answerer = runtime.block_on(Answerer::start()).unwrap();
        Self { runtime, answerer, home: tempfile::tempdir().unwrap() }
    }

    pub fn contexture(&self, arguments: &[&str]) -> Output {
        // The answerer works on the runtime's own threads meanwhile.
        let _entered = self.runtime.enter();
        Command::new(env!("CARGO_BIN_EXE_contexture"))
            .args(arguments)
            .env("XDG_STATE_HOME", self.home.path())
            .env_remove(ADDRESS)
            .output()
            .unwrap()
    }

    pub fn run(&self, flags: &[&str]) -> Output {
        let (set, url) = (format!("{ADDRESS}={{url}}/openai"), format!("{}/v1", self.answerer.url()));
        let agent = env::current_exe().unwrap();
        let mut arguments = vec!["run", "--set", &set, "--upstream", &url];
        arguments.extend(flags);
        arguments.push(agent.to_str().unwrap());
        arguments.extend(AGENT);
        self.contexture(&arguments)
    }
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn an_agent_runs_as_if_nothing_were_between_and_a_receipt_is_printed() {
    let rig = Rig::new();
    let output = rig.run(&[]);
    let (told, receipt) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(7), "the agent's exit code: {receipt}");
    assert!(told.contains("the agent works in"), "{told}");
    assert!(!told.contains("contexture:"), "the receipt is not in the agent's output");
    let lines: Vec<&str> = receipt.lines().filter(|line| line.starts_with("contexture: ")).collect();
    let [line] = lines.as_slice() else { panic!("one line tells it: {receipt}") };
    assert!(line.ends_with("3 requests, 3 conversations; nothing was changed") && line.contains('$'), "{line}");
    assert!(!receipt.contains("folded"), "the rest is asked for: {receipt}");
    let details = text(&rig.run(&["--details"]).stderr);
    assert!(details.contains("  folded     nothing\n") && details.contains("  model      gpt-5: "), "{details}");

    let receipts = text(&rig.contexture(&["receipts", "--by", "model"]).stdout);
    assert!(receipts.contains("gpt-5") && receipts.contains("6 requests"), "{receipts}");
    let json = rig.contexture(&["receipts", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["receipts"].as_array().unwrap().len(), 3);
    let newest = &json["receipts"][0];
    assert_eq!(newest["title"], "question 2", "{newest}");
    let name = newest["name"].as_str().unwrap();
    check_list(&text(&rig.contexture(&["receipts"]).stdout), name);
    let details = text(&rig.contexture(&["receipts", "--details"]).stdout);
    assert!(details.contains(name) && details.contains("written by the agent"), "{details}");
    assert!(details.lines().all(|line| line.chars().count() <= 80), "{details}");
    let shown = text(&rig.contexture(&["show", name]).stdout);
    assert_eq!(shown, format!("conversation {name}: 0 decisions\n"));
    assert!(text(&rig.contexture(&["status"]).stdout).contains("no gateway runs"));

    assert!(text(&rig.contexture(&["forget", name]).stdout).contains("forgot 1 conversation\n"));
    assert!(text(&rig.contexture(&["forget", "--all"]).stdout).contains("forgot 2 conversations"));
    let json: serde_json::Value = serde_json::from_slice(&rig.contexture(&["receipts", "--json"]).stdout).unwrap();
    assert_eq!(json["receipts"].as_array().unwrap().len(), 0);
}

/// Every conversation is one line, newest first: the id by which it can be named, the day, and what was said first.
#[track_caller]
fn check_list(list: &str, newest: &str) {
    let titles: Vec<&str> =
        list.lines().filter_map(|line| line.split_once("question ")).map(|(_, rest)| rest).collect();
    assert_eq!(titles, ["2", "1", "0"], "{list}");
    let lines = list.lines().skip(1).take(3).map(|line| line.split_once("  ").unwrap());
    let ids: Vec<&str> = lines.clone().map(|(id, _)| id).collect();
    assert!(newest.starts_with(ids[0]) && ids[0].len() >= 8 && ids[1] != ids[0], "{list}");
    assert!(lines.clone().all(|(_, rest)| rest.starts_with("20")), "a day: {list}");
    assert!(list.contains("`contexture receipts --details` says why"), "{list}");
}

#[cfg(unix)]
#[test]
fn signals_reach_the_agent_which_ends_as_it_likes() {
    use rustix::process::{Pid, Signal, kill_process};
    use std::io::BufRead;
    let rig = Rig::new();
    let script = "trap 'echo was told TERM; exit 5' TERM; trap 'echo was told HUP; exit 6' HUP; trap 'echo was told INT; exit 8' INT
                  echo ready; while :; do sleep 0.05; done";
    for (signal, name, code) in [(Signal::TERM, "TERM", 5), (Signal::HUP, "HUP", 6), (Signal::INT, "INT", 8)] {
        let mut running = Command::new(env!("CARGO_BIN_EXE_contexture"))
            .args(["run", "--set", "A={url}", "--upstream", "http://127.0.0.1:9/v1", "sh", "-c", script])
            .env("XDG_STATE_HOME", rig.home.path())
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = std::io::BufReader::new(running.stdout.take().unwrap());
        let mut line = String::new();
        told.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        kill_process(Pid::from_raw(running.id().try_into().unwrap()).unwrap(), signal).unwrap();
        told.read_to_string(&mut line).unwrap();
        let output = running.wait_with_output().unwrap();
        assert!(line.contains(&format!("was told {name}")), "{line}");
        assert_eq!(output.status.code(), Some(code));
        assert!(text(&output.stderr).contains("contexture: no request was seen"), "{}", text(&output.stderr));
    }
}

#[cfg(unix)]
#[test]
fn a_receipt_is_kept_in_a_database_that_is_named() {
    let Some(server) = crate::store::server::Server::start() else { return };
    let (rig, url) = (Rig::new(), server.url(&server.make_database()));
    let output = rig.run(&["--store", &url]);
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    let receipts = text(&rig.contexture(&["receipts", "--by", "model", "--store", &url]).stdout);
    assert!(receipts.contains("gpt-5") && receipts.contains("3 requests"), "{receipts}");
    assert!(text(&rig.contexture(&["receipts"]).stdout).contains("no request was seen yet"), "nothing is in the file");
    assert!(text(&rig.contexture(&["forget", "--all", "--store", &url]).stdout).contains("forgot 3 conversations"));
}

#[test]
fn without_a_store_nothing_is_left_behind() {
    let rig = Rig::new();
    let output = rig.run(&["--no-store", "--observe"]);
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    assert_eq!(std::fs::read_dir(rig.home.path()).unwrap().count(), 0);
}

#[test]
fn an_agent_that_does_not_use_the_gateway_is_told_loudly() {
    let rig = Rig::new();
    let output = rig.contexture(&["run", "--set", "OTHER={url}", "true"]);
    assert!(text(&output.stderr).contains("no request was seen"), "{}", text(&output.stderr));
    let output = rig.contexture(&["doctor", "--set", "OTHER={url}", "true", "x"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("error: no request of `true` was seen"), "{}", text(&output.stderr));
}

#[cfg(unix)]
#[test]
fn the_doctor_shows_why_an_agent_asked_nothing() {
    let rig = Rig::new();
    let script = "printf '\\033[31mNot logged in\\033[0m · Please run /login\\n'; exit 1";
    let output = rig.contexture(&["doctor", "--set", "OTHER={url}", "sh", "-c", script]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("`sh` said:\n  Not logged in · Please run /login\n"), "{told}");
    assert!(
        told.contains("error: no request of `sh` was seen by the gateway (it ended with exit status: 1)"),
        "{told}"
    );
    assert!(output.stdout.is_empty(), "{}", text(&output.stdout));
}

#[test]
fn the_doctor_is_not_content_with_requests_that_no_model_answers() {
    let rig = Rig::new();
    let agent = env::current_exe().unwrap();
    let set = format!("{ADDRESS}={{url}}/openai");
    let mut arguments = vec!["doctor", "--set", &set, "--set", "TEST_AGENT_LISTS=1", agent.to_str().unwrap()];
    arguments.extend(AGENT);
    let output = rig.contexture(&arguments);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}");
    assert!(told.contains("the gateway saw 1 request of") && told.contains("none that a model answered"), "{told}");
    assert!(told.contains("it only listed the models"), "the agent's own words: {told}");
}

#[cfg(unix)]
#[test]
fn the_doctor_ends_an_agent_that_does_not_end() {
    let rig = Rig::new();
    let script = "echo waiting for a key; sleep 600 & wait";
    let output = rig.contexture(&["doctor", "--seconds", "1", "--set", "OTHER={url}", "sh", "-c", script]);
    let told = text(&output.stderr);
    assert!(told.contains("still running after 1 s") && told.contains("  waiting for a key\n"), "{told}");
}

/// What `contexture run` prints for an agent that is a shell script.
#[cfg(unix)]
fn run_script(rig: &Rig, flags: &[&str], script: &str) -> Output {
    let mut arguments = vec!["run", "--set", "A={url}", "--upstream", "http://127.0.0.1:9/v1"];
    arguments.extend(flags);
    arguments.extend(["sh", "-c", script]);
    rig.contexture(&arguments)
}

#[cfg(unix)]
#[test]
fn a_status_line_is_about_the_gateway_of_whoever_asks() {
    let rig = Rig::new();
    let program = env!("CARGO_BIN_EXE_contexture");
    for flags in [&[][..], &["--no-store"]] {
        // The inner agent asks for its own line twice, the second time without any variable; the outer one asks twice
        // when the inner one has ended.
        let line = format!("{program} status --line");
        let list = format!("{program} status --json");
        let flag = flags.join(" ");
        let inner = format!(
            "echo inner $CONTEXTURE_GATEWAY; {line}; {list}; {program} pause; env -i XDG_STATE_HOME=$XDG_STATE_HOME {line}"
        );
        let inner_run =
            format!("{program} run {flag} --set A={{url}} --upstream http://127.0.0.1:9/v1 sh -c '{inner}'");
        let outer =
            format!("echo outer $CONTEXTURE_GATEWAY; {inner_run}; {line}; env -u CONTEXTURE_GATEWAY -u A {line}");
        let output = run_script(&rig, flags, &outer);
        let told = text(&output.stdout);
        let address = |name: &str| {
            told.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{told}")).trim().to_owned()
        };
        let (outer, inner) = (address("outer "), address("inner "));
        assert_ne!(outer, inner);
        let lines: Vec<&str> = told.lines().filter(|line| line.contains("0 requests, ")).collect();
        let plain = "0 requests, 0 tokens instead of 0 tokens (0 % less), 0 folds";
        let paused = format!("paused: {plain}");
        assert_eq!(lines, [plain, &paused, plain, plain], "only the inner one is paused: {told}");
        let start = told.find("[\n").unwrap_or_else(|| panic!("{told}"));
        let end = start + told[start..].find("\n]\n").unwrap() + 3;
        let json: serde_json::Value = serde_json::from_str(&told[start..end]).unwrap();
        let mut listed: Vec<&str> =
            json.as_array().unwrap().iter().map(|gateway| gateway["address"].as_str().unwrap()).collect();
        listed.sort_unstable();
        let mut expected = [outer.as_str(), inner.as_str()];
        expected.sort_unstable();
        assert_eq!(listed, expected, "both run: {told}");
        assert!(told.contains(&format!("{inner} is paused: requests pass as they come")), "{told}");
        let status = text(&rig.contexture(&["status", "--line"]).stdout);
        assert_eq!(status, "contexture: no gateway runs\n");
    }
}

#[cfg(unix)]
#[test]
fn what_may_bypass_the_gateway_is_said_before_the_agent_starts() {
    let rig = Rig::new();
    let home = rig.home.path();
    std::fs::create_dir_all(home.join("bin")).unwrap();
    std::fs::write(home.join("bin/claude"), "#!/bin/sh\necho the agent starts >&2\n").unwrap();
    std::fs::set_permissions(home.join("bin/claude"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_contexture"))
        .args(["run", "--no-store", "--upstream", "http://127.0.0.1:9", "claude"])
        .current_dir(home)
        .env_clear()
        .env("PATH", format!("{}:/usr/bin:/bin", home.join("bin").display()))
        .env("HOME", home)
        .env("CLAUDE_CODE_USE_BEDROCK", "1")
        .env("NODE_EXTRA_CA_CERTS", "/nonexistent/ca.pem")
        .output()
        .unwrap();
    let told = text(&output.stderr);
    let at = |words: &str| told.find(words).unwrap_or_else(|| panic!("{words}: {told}"));
    assert!(at("warning: `claude` has `CLAUDE_CODE_USE_BEDROCK` set to `1`") < at("the agent starts"), "{told}");
    assert!(at("warning: `NODE_EXTRA_CA_CERTS` names `/nonexistent/ca.pem`") < at("the agent starts"), "{told}");
}

#[test]
fn which_gateway_is_paused_must_be_clear() {
    let rig = Rig::new();
    for arguments in [&["pause"][..], &["pause", "--off"]] {
        let output = rig.contexture(arguments);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).starts_with("error: no gateway runs\nhint: "), "{}", text(&output.stderr));
    }
}

#[test]
fn the_doctor_sees_an_agent_that_does() {
    let rig = Rig::new();
    let agent = env::current_exe().unwrap();
    let set = format!("{ADDRESS}={{url}}/openai");
    let mut arguments = vec!["doctor", "--set", &set, agent.to_str().unwrap()];
    arguments.extend(AGENT);
    let output = rig.contexture(&arguments);
    let told = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert_eq!(told.matches("OpenAI chat completions, model gpt-5, status 200").count(), 3, "{told}");
}

#[cfg(unix)]
#[test]
fn the_doctor_is_not_content_with_requests_that_a_provider_will_refuse() {
    use std::os::unix::fs::PermissionsExt;
    let home = tempfile::tempdir().unwrap();
    // In place of an agent of the table, which needs no login to send requests.
    let (script, test) = (home.path().join("gptme"), env::current_exe().unwrap());
    let arguments = AGENT.join(" ");
    let text_of = format!("#!/bin/sh\n{ADDRESS}=$OPENAI_BASE_URL exec '{}' {arguments}\n", test.display());
    std::fs::write(&script, text_of).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let doctor = |variables: &[(&str, &str)]| {
        Command::new(env!("CARGO_BIN_EXE_contexture"))
            .args(["doctor", "gptme"])
            .env_clear()
            .env("HOME", home.path())
            .env("PATH", format!("{}:/usr/bin:/bin", home.path().display()))
            .envs(variables.iter().copied())
            .current_dir(home.path())
            .output()
            .unwrap()
    };
    let output = doctor(&[("TEST_AGENT_LOGGED_OUT", "1")]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{told}{}", text(&output.stdout));
    assert!(told.contains("error: `gptme` reaches the gateway, but without a key or a login"), "{told}");
    assert!(told.contains("`gptme` said:\n  ") && told.contains("\nhint: log `gptme` in"), "{told}");
    let output = doctor(&[]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    // A provider of one's own may want no key.
    let output = doctor(&[("TEST_AGENT_LOGGED_OUT", "1"), ("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn what_cannot_be_done_is_one_sentence_and_a_hint() {
    let rig = Rig::new();
    let check = |arguments: &[&str], code: i32, sentence: &str, hint: &str| {
        let output = rig.contexture(arguments);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{told}");
        assert!(told.starts_with(&format!("error: {sentence}")), "{told}");
        assert!(told.contains(&format!("\nhint: {hint}")), "{told}");
    };
    check(
        &["run", "unheard-of-agent"],
        2,
        "`unheard-of-agent` is no agent that is known",
        "say how it finds the gateway",
    );
    check(&["run", "cluade"], 2, "`cluade` is no agent that is known", "did you mean `claude`?");
    check(&["run", "--set", "X={url}", "unheard-of-agent"], 1, "start `unheard-of-agent`", "is it installed");
    check(&["run", "--set", "nonsense", "claude"], 2, "`nonsense` is no variable", "write it as");
    check(&["doctor", "unheard-of-agent"], 2, "`unheard-of-agent` is no agent that is known", "say how");
    check(&["run", "kimi"], 2, "where `kimi` sends its requests is not known", "set `KIMI_BASE_URL`");
    check(&["run", "--upstream", "ftp://x", "claude"], 2, "invalid value 'ftp://x'", "");
    check(&["serve", "--upstream", "http:// x"], 2, "invalid value 'http:// x'", "");
    check(&["serve", "--listen", "256.1.1.1:99"], 1, "listen on `256.1.1.1:99`", "it is an address of this machine");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    check(&["serve", "--listen", &taken], 1, &format!("listen on `{taken}`"), "another program");
    check(
        &["serve", "--listen", "127.0.0.1:17718", "--upstream", "http://127.0.0.1:17718"],
        1,
        "the upstream",
        "an address of the gateway",
    );
    for command in ["show", "forget"] {
        check(&[command, "0000000000"], 1, "nothing is kept under `0000000000`", "`contexture receipts`");
    }
    check(&["run", "--holdout", "3", "claude"], 2, "invalid value '3'", "");
}

#[test]
fn the_configuration_sets_prices_and_budget_and_flags_win() {
    let rig = Rig::new();
    let file = rig.home.path().join("mine.toml");
    std::fs::write(&file, "[gateway]\nbudget = 5000\n[[model]]\nname = \"gpt-5\"\ninput = 1e6\noutput = 0\n").unwrap();
    let file = file.to_str().unwrap();
    let receipt = text(&rig.run(&["--details", "--config", file]).stderr);
    // Three answers that took one token each, at a dollar a token.
    assert!(
        receipt.contains("contexture: $3.00, ") && receipt.contains("by [[model]] of the configuration"),
        "{receipt}"
    );
    std::fs::write(file, "[gateway]\nbudget = 5\n").unwrap();
    let output = rig.run(&["--config", file]);
    let complaint = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{complaint}");
    assert!(complaint.contains("line 2: `gateway.budget` is `5`, but must be"), "{complaint}");
    assert!(complaint.contains("hint: write it as `budget = 100000` below `[gateway]`"), "{complaint}");
}
