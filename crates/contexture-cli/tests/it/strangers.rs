//! What other users of the machine can see and do.

// Clippy allows `unwrap` in test functions but not in what they call.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::gateway::{Rig, text};

/// A program that prints all that it is told: its arguments and its parent's as every user sees them, its variables,
/// and the files that are named in arguments or put into its directory.
const TELLING: &str = r#"#!/bin/sh
echo "ARGUMENTS $(tr '\0' ' ' < /proc/$$/cmdline) $(tr '\0' ' ' < /proc/$PPID/cmdline)"
env | sed 's/^/TOLD /'
for one in "$@" "$HOME"/.codex/*.config.toml; do
  if [ -f "$one" ]; then echo "MODE $(stat -c '%a' "$one")"; sed 's/^/TOLD /' "$one"; fi
done
"#;

/// A word of 32 hexadecimal digits.
fn secret_in(text: &str) -> Option<&str> {
    text.split(|sign: char| !sign.is_ascii_hexdigit()).find(|word| word.len() == 32)
}

fn files_below(directory: &Path) -> Vec<std::path::PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files
}

#[track_caller]
fn check_nowhere(directory: &Path, secret: &str) {
    for path in files_below(directory) {
        let bytes = fs::read(&path).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains(secret), "it is in {}", path.display());
    }
}

#[test]
fn no_agent_has_the_key_in_its_arguments_and_nothing_is_left_behind() {
    let agents = contexture_agents::agents().iter().filter_map(|agent| Some(agent.run()?.name()));
    let agents: Vec<&str> = agents.collect();
    assert!(agents.len() >= 14 && agents.contains(&"claude"), "{agents:?}");
    for agent in agents {
        let rig = Rig::new();
        let bin = rig.home.path().join("bin");
        let temporary = rig.home.path().join("tmp");
        fs::create_dir_all(rig.home.path().join(".codex")).unwrap();
        fs::create_dir_all(rig.home.path().join(".claude")).unwrap();
        fs::create_dir_all(&temporary).unwrap();
        fs::create_dir_all(&bin).unwrap();
        // With settings that beat variables Claude Code is told by a file.
        let settings = r#"{"env":{"ANTHROPIC_BASE_URL":"http://127.0.0.1:9"}}"#;
        fs::write(rig.home.path().join(".claude/settings.json"), settings).unwrap();
        let program = bin.join(agent.trim_end_matches("-code"));
        fs::write(&program, TELLING).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_contexture"))
            .args(["run", agent])
            .current_dir(&temporary)
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", bin.display()))
            .env("HOME", rig.home.path())
            .env("TMPDIR", &temporary)
            .env("COPILOT_PROVIDER_BASE_URL", "http://127.0.0.1:9/v1")
            .env("KIMI_BASE_URL", "http://127.0.0.1:9/v1")
            .env("KIMI_MODEL_BASE_URL", "http://127.0.0.1:9/v1")
            .output()
            .unwrap();
        let told = text(&output.stdout);
        assert!(output.status.success(), "{agent}: {}", text(&output.stderr));
        let lines = |start: &str| told.lines().filter(|line| line.starts_with(start)).collect::<Vec<_>>().join("\n");
        let told_privately = lines("TOLD ");
        let secret = secret_in(&told_privately).unwrap_or_else(|| panic!("{agent} is not told: {told}"));
        assert!(!lines("ARGUMENTS ").contains(secret) && lines("ARGUMENTS ").contains(agent), "{agent}: {told}");
        assert!(lines("MODE ").lines().filter(|line| *line != "MODE 600").count() == 0 || agent == "claude", "{told}");
        assert!(!text(&output.stderr).contains(secret));
        check_nowhere(rig.home.path(), secret);
        assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "{agent} leaves nothing behind");
        assert_eq!(fs::read_dir(rig.home.path().join(".codex")).unwrap().count(), 0, "{agent} leaves nothing behind");
    }
}

#[test]
fn neither_the_key_of_a_run_nor_the_providers_is_kept() {
    let rig = Rig::new();
    let output = rig.run(&["--inspect"]);
    assert_eq!(output.status.code(), Some(7), "{}", text(&output.stderr));
    let told = text(&output.stdout);
    let secret = told.lines().find_map(|line| line.strip_prefix("its key is ")).unwrap().to_owned();
    assert_eq!(secret_in(&secret), Some(secret.as_str()));
    assert!(!text(&output.stderr).contains(&secret));
    assert!(!files_below(rig.home.path()).is_empty(), "there is something to look into");
    for made_up in [secret.as_str(), "sk-agent-secret"] {
        check_nowhere(rig.home.path(), made_up);
        for command in [&["receipts", "--json"][..], &["status", "--json"], &["receipts", "--by", "session"]] {
            assert!(!text(&rig.contexture(command).stdout).contains(made_up), "{command:?}");
        }
    }
}

/// `contexture serve`, with what it printed when it began.
struct Serving {
    child: Child,
    told: String,
}

impl Serving {
    fn start(rig: &Rig, flags: &[&str]) -> Self {
        let upstream = format!("{}/v1", rig.answerer.url());
        let mut child = Command::new(env!("CARGO_BIN_EXE_contexture"))
            .args(["serve", "--upstream", &upstream])
            .args(flags)
            .env("XDG_STATE_HOME", rig.home.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (mut told, mut lines) = (String::new(), BufReader::new(child.stdout.take().unwrap()).lines());
        while !told.contains("ask for the token") {
            told += &lines.next().unwrap_or_else(|| panic!("it ended: {told}")).unwrap();
            told.push('\n');
        }
        Self { child, told }
    }

    fn variable(&self, name: &str) -> String {
        let start = format!("  export {name}=http://");
        self.told
            .lines()
            .find_map(|line| line.strip_prefix(&start))
            .unwrap_or_else(|| panic!("{}", self.told))
            .to_owned()
    }

    fn end(mut self) -> String {
        self.child.kill().unwrap();
        let mut told = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
        self.child.wait().unwrap();
        told
    }
}

/// Asks for a path and returns the status.
pub fn asked(host: &str, path: &str, header: &str) -> String {
    let body = r#"{"model":"gpt-5","messages":[{"role":"user","content":"hello"}]}"#;
    let mut stream = TcpStream::connect(host).unwrap();
    let length = body.len();
    write!(
        stream,
        "POST /{path} HTTP/1.1\r\nhost: {host}\r\n{header}connection: close\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.split(' ').nth(1).unwrap_or_default().to_owned()
}

#[test]
fn serve_asks_for_a_key_that_it_makes_once() {
    let rig = Rig::new();
    let first = Serving::start(&rig, &["--listen", "127.0.0.1:0"]);
    assert!(first.told.contains("was made now"), "{}", first.told);
    let address = first.variable("OPENAI_BASE_URL");
    let (host, path) = address.split_once('/').unwrap();
    let key = path.split('/').next().unwrap().to_owned();
    let file = rig.home.path().join("contexture/gateway-keys.toml");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(asked(host, "openai/chat/completions", ""), "401");
    assert_eq!(asked(host, "openai/chat/completions", "authorization: Bearer sk-any\r\n"), "401");
    assert_eq!(asked(host, &format!("{path}/chat/completions"), ""), "200");
    assert_eq!(asked(host, "openai/chat/completions", &format!("x-contexture-key: {key}\r\n")), "200");
    assert_eq!(asked(host, &format!("{path}/chat/completion"), ""), "404");
    let status = text(&rig.contexture(&["status"]).stdout);
    assert!(status.contains(host) && status.contains("requests"), "{status}");
    first.end();
    // After it was killed it starts again on the same port, with the same key.
    let second = Serving::start(&rig, &["--listen", host]);
    assert_eq!(second.variable("OPENAI_BASE_URL"), address);
    assert!(second.told.contains("is kept in") && !second.told.contains("was made now"), "{}", second.told);
    assert_eq!(asked(host, &format!("{path}/chat/completions"), ""), "200");
    second.end();
    let kept = fs::read_to_string(&file).unwrap();
    fs::remove_file(&file).unwrap();
    check_nowhere(rig.home.path(), &key);
    // One more key, and each has its own address.
    fs::write(&file, format!("{kept}ann = \"{}\"\n", "a".repeat(40))).unwrap();
    let output = rig.contexture(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(text(&output.stderr).contains("other users can read the keys"), "{}", text(&output.stderr));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let third = Serving::start(&rig, &["--listen", "127.0.0.1:0"]);
    assert!(third.told.contains("for the key `ann`") && third.told.contains("for the key `own`"), "{}", third.told);
    third.end();
}

#[test]
fn who_lets_other_machines_in_is_warned() {
    let rig = Rig::new();
    let serving = Serving::start(&rig, &["--listen", "0.0.0.0:0", "--no-store"]);
    let address = serving.variable("OPENAI_BASE_URL");
    let (_, port) = address.split('/').next().unwrap().split_once(':').unwrap();
    assert_eq!(asked(&format!("127.0.0.1:{port}"), "openai/chat/completions", ""), "401");
    let told = serving.end();
    assert!(told.contains("warning: other machines can reach 0.0.0.0:") && told.contains("hint: "), "{told}");
}

#[test]
fn a_store_of_something_else_is_neither_written_into_nor_said_to_be_of_no_use() {
    let rig = Rig::new();
    let path = rig.home.path().join("memory.db");
    drop(contexture::store::SqliteStore::open(&path).unwrap());
    let before = fs::read(&path).unwrap();
    let path_text = path.to_str().unwrap();
    for command in [&["receipts"][..], &["status"], &["show", "abcdef"], &["forget", "--all"]] {
        let output = rig.contexture(&[command, &["--store", path_text]].concat());
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{command:?} {told}");
        assert!(told.contains("is no store of the gateway") && told.contains("hint: "), "{told}");
        assert!(!told.contains("deleted"), "{told}");
    }
    let output = rig.contexture(&[
        "run",
        "--set",
        "A={url}",
        "--upstream",
        "http://127.0.0.1:9/v1",
        "--store",
        path_text,
        "true",
    ]);
    assert!(text(&output.stderr).contains("is no store of the gateway"), "{}", text(&output.stderr));
    let output = rig.contexture(&["serve", "--listen", "127.0.0.1:0", "--store", path_text]);
    assert!(text(&output.stderr).contains("is no store of the gateway"), "{}", text(&output.stderr));
    assert!(before == fs::read(&path).unwrap(), "it is as it was");
}

#[test]
fn serve_ends_on_a_signal_with_its_receipt_and_its_store_is_known() {
    let rig = Rig::new();
    let mut serving = Serving::start(&rig, &["--listen", "127.0.0.1:0"]);
    let address = serving.variable("OPENAI_BASE_URL");
    let (host, path) = address.split_once('/').unwrap();
    assert_eq!(asked(host, &format!("{path}/chat/completions"), ""), "200");
    let signal = Command::new("kill").args(["-TERM", &serving.child.id().to_string()]).status().unwrap();
    assert!(signal.success());
    let status = serving.child.wait().unwrap();
    let mut told = String::new();
    serving.child.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    assert_eq!(status.code(), Some(0), "{told}");
    assert!(told.contains("1 request, 1 conversation"), "{told}");
    let store = rig.home.path().join("contexture/gateway.db");
    let (store, copy) = (store.to_str().unwrap(), rig.home.path().join("copy.db"));
    let checked = rig.contexture(&["store", "check", store]);
    assert_eq!(text(&checked.stdout), "checked 1 conversation and 1 request of the gateway\n", "{checked:?}");
    let copied = rig.contexture(&["store", "copy", store, copy.to_str().unwrap()]);
    assert_eq!(text(&copied.stdout), "copied 1 conversation and 1 request of the gateway\n", "{copied:?}");
    let again = rig.contexture(&["store", "copy", store, copy.to_str().unwrap()]);
    assert_eq!(again.status.code(), Some(1));
    // One byte of what was noted of the request.
    let mut bytes = fs::read(&copy).unwrap();
    let place = bytes.windows(9).position(|found| found == b"\"session\"").unwrap() + 14;
    bytes[place] ^= 1;
    fs::write(&copy, bytes).unwrap();
    let damaged = rig.contexture(&["store", "check", copy.to_str().unwrap()]);
    assert_eq!(damaged.status.code(), Some(1));
    assert!(text(&damaged.stdout).contains("damaged: row 1 of `requests`"), "{damaged:?}");
}
