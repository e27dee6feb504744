//! `contexture install` and `contexture uninstall`, in homes that are made up.

// Clippy allows `unwrap` in test functions but not in what they call.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

use crate::gateway::text;

/// A service manager that writes down what it is asked, and starts nothing.
const SYSTEMCTL: &str = "#!/bin/sh\necho \"$@\" >> \"$HOME/systemctl.log\"\n";

struct Home {
    directory: TempDir,
    port: u16,
}

impl Home {
    /// A home with settings, and with a service manager if it has one.
    fn new(files: &[(&str, &str)], systemctl: Option<&str>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        // Free now, and very probably so until it is used.
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let home = Self { directory, port };
        for (name, content) in files {
            fs::create_dir_all(home.path(name).parent().unwrap()).unwrap();
            fs::write(home.path(name), content).unwrap();
        }
        fs::create_dir(home.path("bin")).unwrap();
        if let Some(script) = systemctl {
            fs::write(home.path("bin/systemctl"), script).unwrap();
            fs::set_permissions(home.path("bin/systemctl"), fs::Permissions::from_mode(0o755)).unwrap();
        }
        home
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn contexture(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_contexture"))
            .args(arguments)
            .current_dir(self.directory.path())
            .env_clear()
            .env("HOME", self.directory.path())
            // Nothing of this machine's own is found.
            .env("PATH", self.path("bin"))
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    fn install(&self, agent: &str) -> Output {
        self.contexture(&["install", "--yes", "--port", &self.port.to_string(), agent])
    }

    /// Everything in it, by name.
    fn files(&self) -> Vec<(PathBuf, Vec<u8>, u32)> {
        fn below(directory: &Path, found: &mut Vec<(PathBuf, Vec<u8>, u32)>) {
            for entry in fs::read_dir(directory).unwrap() {
                let path = entry.unwrap().path();
                match path.is_dir() {
                    true => below(&path, found),
                    false => {
                        let mode = fs::metadata(&path).unwrap().permissions().mode();
                        found.push((path.clone(), fs::read(&path).unwrap(), mode));
                    }
                }
            }
        }
        let mut found = Vec::new();
        below(self.directory.path(), &mut found);
        found.retain(|(path, ..)| !path.ends_with("systemctl.log"));
        found.sort();
        found
    }
}

/// The settings of agents that can be installed: before, and words that are in them afterwards.
const SETTINGS: [(&str, &str, &str, &[&str]); 7] = [
    (
        "claude",
        ".claude/settings.json",
        "{\n    \"model\": \"opus\",\n    \"env\": {\"A\": \"b\"}\n}\n",
        &[
            "\"ANTHROPIC_BASE_URL\": \"http://127.0.0.1:",
            "\"ENABLE_TOOL_SEARCH\": \"true\"",
            "status --line",
            "    \"model\": \"opus\",\n",
        ],
    ),
    (
        "codex",
        ".codex/config.toml",
        "# mine\nmodel = 'gpt'\n[tui]\nx = 1\n",
        &["openai_base_url = \"http://127.0.0.1:", "# mine\nmodel = 'gpt'\n[tui]\nx = 1\n"],
    ),
    (
        "opencode",
        ".config/opencode/opencode.json",
        "{\"model\": \"openai/x\"}",
        &["\"baseURL\":\"http://127.0.0.1:", "/openai"],
    ),
    (
        "goose",
        ".config/goose/config.yaml",
        "GOOSE_PROVIDER: openai\n",
        &["OPENAI_HOST: \"http://127.0.0.1:", "GOOSE_PROVIDER: openai\n"],
    ),
    (
        "mini",
        ".config/mini-swe-agent/.env",
        "MSWEA_MODEL_NAME='x'\n",
        &["OPENAI_API_BASE='http://127.0.0.1:", "MSWEA_MODEL_NAME='x'\n"],
    ),
    (
        "grok",
        ".grok/user-settings.json",
        "{\n  \"apiKey\": \"x\"\n}",
        &["\"baseURL\": \"http://127.0.0.1:", "  \"apiKey\": \"x\",\n"],
    ),
    ("pi", ".pi/agent/models.json", "{\n\t\"providers\": {}\n}", &["\"baseUrl\": \"http://127.0.0.1:"]),
];

#[test]
fn what_is_installed_is_undone_byte_for_byte() {
    std::thread::scope(|scope| {
        for (agent, file, before, words) in SETTINGS {
            for is_there in [true, false] {
                scope.spawn(move || check_undone(agent, file, before, words, is_there));
            }
        }
    });
}

fn check_undone(agent: &str, file: &str, before: &str, words: &[&str], is_there: bool) {
    let files = [(file, before)];
    let home = Home::new(if is_there { &files } else { &[] }, Some(SYSTEMCTL));
    if is_there {
        fs::set_permissions(home.path(file), fs::Permissions::from_mode(0o644)).unwrap();
    }
    let untouched = home.files();
    let output = home.install(agent);
    let told = text(&output.stdout);
    assert!(output.status.success(), "{agent}: {}", text(&output.stderr));
    let after = fs::read_to_string(home.path(file)).unwrap();
    let address = format!("http://127.0.0.1:{}/", home.port);
    assert!(after.contains(&address), "{agent}: {after}");
    if is_there {
        assert!(words.iter().all(|words| after.contains(words)), "{agent}: {after}");
    }
    // It holds a key, which nobody is shown.
    assert_eq!(fs::metadata(home.path(file)).unwrap().permissions().mode() & 0o777, 0o600, "{agent}");
    let keys = home.path(&format!(".local/state/contexture/installed/{agent}.toml"));
    assert_eq!(fs::metadata(&keys).unwrap().permissions().mode() & 0o777, 0o600);
    let key = fs::read_to_string(&keys).unwrap().split('"').nth(1).unwrap().to_owned();
    assert!(after.contains(&key) && !told.contains(&key), "{agent}: {told}");
    assert!(told.contains(&format!("{address}(key)")), "{agent}: {told}");
    let unit = home.path(&format!(".config/systemd/user/contexture-{agent}.service"));
    let unit = fs::read_to_string(unit).unwrap();
    assert!(unit.contains(&format!("\"serve\" \"--installed\" \"{agent}\"")) && !unit.contains(&key), "{unit}");
    let log = fs::read_to_string(home.path("systemctl.log")).unwrap();
    assert!(log.contains(&format!("--user enable --now contexture-{agent}.service")), "{log}");

    let output = home.contexture(&["uninstall", agent]);
    assert!(output.status.success(), "{agent}: {}", text(&output.stderr));
    let log = fs::read_to_string(home.path("systemctl.log")).unwrap();
    assert!(log.contains(&format!("--user disable --now contexture-{agent}.service")), "{log}");
    assert_eq!(home.files(), untouched, "{agent}: all is as it was");
}

#[test]
fn nothing_is_written_unless_somebody_agrees() {
    let home = Home::new(&[(".claude/settings.json", "{}")], Some(SYSTEMCTL));
    let untouched = home.files();
    let output = home.contexture(&["install", "claude"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("+ env.ANTHROPIC_BASE_URL = http://127.0.0.1:"), "{}", text(&output.stdout));
    assert!(text(&output.stderr).contains("error: nothing was written\nhint: pass --yes"), "{}", text(&output.stderr));
    assert_eq!(home.files(), untouched);
}

#[test]
fn settings_that_cannot_be_read_are_left_alone() {
    let hostile: [(&str, &str, &[u8]); 12] = [
        ("claude", ".claude/settings.json", b"{ // mine\n \"model\": \"x\" }"),
        ("claude", ".claude/settings.json", b"{\"model\": \"x\",}"),
        ("claude", ".claude/settings.json", b"[]"),
        ("claude", ".claude/settings.json", b"{\"env\": \"text\"}"),
        ("claude", ".claude/settings.json", b"{\"env\": {\"A\": \xff}}"),
        ("claude", ".claude/settings.json", b"\xef\xbb\xbf{}"),
        ("claude", ".claude/settings.json", b"{\"env\": {}, \"env\": {\"ANTHROPIC_BASE_URL\": 5}}"),
        ("opencode", ".config/opencode/opencode.jsonc", b"{ /* mine */ }"),
        ("codex", ".codex/config.toml", b"what = is = this"),
        ("codex", ".codex/config.toml", b"[unclosed\n"),
        ("goose", ".config/goose/config.yaml", b"mine: &mine\n  A: x\n<<: *mine\n"),
        ("pi", ".pi/agent/models.json", b"{\"providers\": null}"),
    ];
    for (agent, file, content) in hostile {
        let home = Home::new(&[(file, "")], Some(SYSTEMCTL));
        fs::write(home.path(file), content).unwrap();
        let untouched = home.files();
        let output = home.install(agent);
        let told = text(&output.stderr);
        let shown = String::from_utf8_lossy(content);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{agent} {shown}: {told}");
        assert!(told.starts_with("error: ") && told.contains("\nhint: "), "{agent} {shown}: {told}");
        assert!(!told.contains("--upstream"), "`install` has no such flag: {told}");
        assert!(told.contains(file) || told.contains("ANTHROPIC_BASE_URL"), "{agent} {shown}: {told}");
        assert_eq!(home.files(), untouched, "{agent} {shown}");
    }
    let home = Home::new(&[], Some(SYSTEMCTL));
    fs::create_dir_all(home.path(".claude/settings.json")).unwrap();
    let output = home.install("claude");
    assert!(text(&output.stderr).contains("it is no file"), "{}", text(&output.stderr));
}

#[test]
fn what_a_user_changed_since_stays() {
    let before = "{\n  \"model\": \"opus\",\n  \"env\": {\"ANTHROPIC_BASE_URL\": \"https://mine.example\"},\n  \"statusLine\": {\"type\": \"command\", \"command\": \"mine\"}\n}\n";
    let home = Home::new(&[(".claude/settings.json", before)], Some(SYSTEMCTL));
    let output = home.install("claude");
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("- env.ANTHROPIC_BASE_URL = https://mine.example\n"));
    let file = home.path(".claude/settings.json");
    let after = fs::read_to_string(&file).unwrap();
    assert!(
        after.contains("\"command\": \"mine\"") && !after.contains("status --line"),
        "a status line stays: {after}"
    );
    fs::write(&file, after.replace("\"opus\"", "\"sonnet\"")).unwrap();
    let output = home.contexture(&["uninstall", "claude"]);
    let told = text(&output.stdout);
    assert!(output.status.success() && told.contains("was changed since"), "{told}{}", text(&output.stderr));
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    let expected = before.replace("\"opus\"", "\"sonnet\"");
    assert_eq!(json(&fs::read_to_string(&file).unwrap()), json(&expected));
    let copy = home.path(".local/state/contexture/installed/claude.before");
    assert_eq!(fs::read_to_string(copy).unwrap(), before, "how it was is kept");
}

#[test]
fn an_address_of_the_user_s_own_becomes_where_the_gateway_sends_requests() {
    // The user's directory is where the command runs, and its settings are no project's.
    let before = "openai_base_url = \"https://mine.example/v1\"\n";
    let home = Home::new(&[(".codex/config.toml", before)], Some(SYSTEMCTL));
    let output = home.install("codex");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let told = text(&output.stdout);
    assert!(told.contains("- openai_base_url = https://mine.example/v1\n+ openai_base_url = http://127"), "{told}");
    let record = fs::read_to_string(home.path(".local/state/contexture/installed/codex.json")).unwrap();
    assert!(record.contains("\"openai\": \"https://mine.example/v1\""), "{record}");
    assert!(home.contexture(&["uninstall", "codex"]).status.success());
    assert_eq!(fs::read_to_string(home.path(".codex/config.toml")).unwrap(), before);
    // One of a project is refused as before.
    let project = home.path("project/.codex");
    fs::create_dir_all(&project).unwrap();
    fs::write(project.join("config.toml"), before).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_contexture"))
        .args(["run", "codex"])
        .current_dir(home.path("project"))
        .env_clear()
        .env("HOME", home.directory.path())
        .output()
        .unwrap();
    assert!(text(&output.stderr).contains("which some versions use and others ignore"), "{}", text(&output.stderr));
}

#[test]
fn tables_that_were_made_are_gone_with_what_was_installed() {
    let file = ".claude/settings.json";
    type Change = fn(&str) -> String;
    let changes: [(&str, Change, &str); 4] = [
        ("{}", |text| text.replacen('{', "{\"theme\": 1, ", 1), r#"{"theme": 1}"#),
        (r#"{"env": {}}"#, |text| text.replacen('{', "{\"theme\": 1, ", 1), r#"{"env": {}, "theme": 1}"#),
        ("{}", |text| text.replacen("\"env\": {", "\"env\": {\"MINE\": \"1\", ", 1), r#"{"env": {"MINE": "1"}}"#),
        ("{}", |text| text.replace("status --line", "mine"), r#"{"statusLine": {"command": "(ours)"}}"#),
    ];
    for (before, change, expected) in changes {
        let home = Home::new(&[(file, before)], Some(SYSTEMCTL));
        assert!(home.install("claude").status.success());
        let changed = change(&fs::read_to_string(home.path(file)).unwrap());
        fs::write(home.path(file), &changed).unwrap();
        let output = home.contexture(&["uninstall", "claude"]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        let mut left: serde_json::Value = serde_json::from_str(&fs::read_to_string(home.path(file)).unwrap()).unwrap();
        if let Some(command) = left.pointer_mut("/statusLine/command") {
            *command = "(ours)".into();
        }
        assert_eq!(left, serde_json::from_str::<serde_json::Value>(expected).unwrap(), "{changed}");
    }
}

#[test]
fn settings_that_a_user_broke_since_are_not_touched() {
    let home = Home::new(&[(".codex/config.toml", "model = 'x'\n")], Some(SYSTEMCTL));
    assert!(home.install("codex").status.success());
    let file = home.path(".codex/config.toml");
    let broken = fs::read_to_string(&file).unwrap() + "what = is = this\n";
    fs::write(&file, &broken).unwrap();
    let output = home.contexture(&["uninstall", "codex"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("so nothing was undone"), "{}", text(&output.stderr));
    assert_eq!(fs::read_to_string(&file).unwrap(), broken);
    fs::write(&file, broken.replace("what = is = this\n", "")).unwrap();
    assert!(home.contexture(&["uninstall", "codex"]).status.success());
    assert_eq!(fs::read_to_string(&file).unwrap(), "model = 'x'\n");
}

#[test]
fn installing_twice_is_installing_once_and_uninstalling_needs_an_installation() {
    let home = Home::new(&[(".claude/settings.json", "{}\n")], Some(SYSTEMCTL));
    let untouched = home.files();
    for name in ["claude", "unheard-of", "../claude", ""] {
        let output = home.contexture(&["uninstall", name]);
        assert!(matches!(output.status.code(), Some(1 | 2)), "{name}");
        assert!(text(&output.stderr).contains("\nhint: "), "{name}: {}", text(&output.stderr));
    }
    assert_eq!(home.files(), untouched);
    assert!(home.install("claude").status.success());
    let installed = home.files();
    let again = home.install("claude");
    assert!(again.status.success(), "{}", text(&again.stderr));
    assert!(text(&again.stdout).contains("is installed already"), "{}", text(&again.stdout));
    assert_eq!(home.files(), installed);
    assert!(home.contexture(&["uninstall", "claude"]).status.success());
    assert_eq!(home.files(), untouched);
}

#[test]
fn without_a_service_manager_nothing_changes_and_it_is_said_what_to_run() {
    for systemctl in [None, Some("#!/bin/sh\necho 'Failed to connect to bus' >&2\nexit 1\n")] {
        let home = Home::new(&[(".claude/settings.json", "{}")], systemctl);
        let before = home.files();
        let output = home.install("claude");
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(
            told.contains("so nothing was installed")
                && told.contains("hint: start the agent with `contexture run claude`"),
            "{told}"
        );
        assert_eq!(home.files(), before, "the agent works as before");
    }
}

#[test]
fn agents_without_such_settings_are_said_to_have_none() {
    let home = Home::new(&[], Some(SYSTEMCTL));
    for agent in ["copilot", "aider", "kimi", "qwen"] {
        let output = home.install(agent);
        let told = text(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{agent}");
        assert!(told.starts_with(&format!("error: `{agent}` cannot be installed: ")), "{told}");
        assert!(told.contains(&format!("hint: start it with `contexture run {agent}`")), "{told}");
    }
    let output = home.install("unheard-of");
    let told = text(&output.stderr);
    assert!(told.contains("is no agent that is known") && !told.contains("--set"), "{told}");
    let bedrock = r#"{"env":{"CLAUDE_CODE_USE_BEDROCK":"1"}}"#;
    let home = Home::new(&[(".claude/settings.json", bedrock)], Some(SYSTEMCTL));
    assert!(text(&home.install("claude").stderr).contains("CLAUDE_CODE_USE_BEDROCK"));
}

#[test]
fn a_link_to_settings_stays_a_link() {
    let home = Home::new(&[("dotfiles/settings.json", "{\"model\": \"x\"}")], Some(SYSTEMCTL));
    fs::create_dir(home.path(".claude")).unwrap();
    symlink(home.path("dotfiles/settings.json"), home.path(".claude/settings.json")).unwrap();
    assert!(home.install("claude").status.success());
    assert!(fs::symlink_metadata(home.path(".claude/settings.json")).unwrap().is_symlink());
    assert!(fs::read_to_string(home.path("dotfiles/settings.json")).unwrap().contains("ANTHROPIC_BASE_URL"));
    assert!(home.contexture(&["uninstall", "claude"]).status.success());
    assert_eq!(fs::read_to_string(home.path("dotfiles/settings.json")).unwrap(), "{\"model\": \"x\"}");
}

#[test]
fn the_service_serves_and_run_does_not_go_through_it_a_second_time() {
    // Like systemd, it starts what the unit says.
    let systemctl = "#!/bin/sh\nif [ \"$2\" = enable ]; then\n  command=$(/bin/sed -n 's/^ExecStart=//p' \"$HOME/.config/systemd/user/$4\")\n  /bin/sh -c \"exec $command\" > \"$HOME/served.log\" 2>&1 &\n  echo $! > \"$HOME/served.pid\"\nfi\n";
    let home = Home::new(
        &[(".claude/settings.json", "{\"env\": {\"ANTHROPIC_BASE_URL\": \"http://127.0.0.1:9\"}}")],
        Some(systemctl),
    );
    let output = home.install("claude");
    let told = text(&output.stdout);
    let pid = fs::read_to_string(home.path("served.pid")).unwrap_or_default();
    let end = || {
        let _ = Command::new("/bin/kill").args(["-9", pid.trim()]).status();
    };
    let is_up = told.contains(&format!("the gateway runs at 127.0.0.1:{}", home.port));
    let status = text(&home.contexture(&["status"]).stdout);
    fs::write(home.path("bin/claude"), "#!/bin/sh\necho \"told $*\"\n").unwrap();
    fs::set_permissions(home.path("bin/claude"), fs::Permissions::from_mode(0o755)).unwrap();
    let config = home.contexture(&["run", "--no-store", "claude", "-p", "x"]);
    let served = fs::read_to_string(home.path("served.log")).unwrap_or_default();
    end();
    assert!(is_up, "{told}{served}");
    assert!(status.contains(&format!("127.0.0.1:{}  claude  0 requests", home.port)), "{status}");
    assert!(served.contains("the gateway of `claude` listens on") && !served.contains("export"), "{served}");
    assert!(config.status.success(), "{}", text(&config.stderr));
    assert!(text(&config.stdout).contains("--settings"), "its settings are beaten: {}", text(&config.stdout));
}
