//! `contexture config`, and what configuration does to the other commands.

use std::fs;
use std::path::Path;

use contexture_cli::settings::{Command, keys};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Run, bare_program, run};

/// A directory with a home, a project, and a directory `sub` inside it.
struct Place {
    root: TempDir,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a temporary directory");
        for directory in ["home/.config/contexture", "project/sub"] {
            fs::create_dir_all(root.path().join(directory)).expect("directories can be made");
        }
        Self { root }
    }

    fn with_user(self, text: &str) -> Self {
        self.with("home/.config/contexture/config.toml", text)
    }

    fn with_project(self, text: &str) -> Self {
        self.with("project/contexture.toml", text)
    }

    fn with(self, path: &str, text: &str) -> Self {
        fs::write(self.root.path().join(path), text).expect("files can be written");
        self
    }

    /// Runs the program in a directory; words with `=` before the first other one are variables.
    fn run_in(&self, directory: &str, words: &[&str]) -> Run {
        let mut command = bare_program(&self.root.path().join(directory));
        command.env("HOME", self.root.path().join("home")).env("COLUMNS", "300");
        let (variables, arguments) = words.split_at(words.iter().take_while(|word| word.contains('=')).count());
        command.envs(variables.iter().filter_map(|word| word.split_once('='))).args(arguments);
        let Run { code, stdout, stderr } = run(command, "");
        Run { code, stdout: self.mask(&stdout), stderr: self.mask(&stderr) }
    }

    fn run(&self, words: &[&str]) -> Run {
        self.run_in("project", words)
    }

    /// The temporary directory has another name in every run.
    fn mask(&self, text: &str) -> String {
        let root = self.root.path().canonicalize().expect("it exists");
        let names = [root.as_path(), self.root.path()].map(|path| path.to_str().expect("its name is text").to_owned());
        names.iter().fold(text.to_owned(), |text, name| text.replace(name, "ROOT"))
    }

    /// The value and origin of a key, as `contexture config` prints them.
    #[track_caller]
    fn line(&self, words: &[&str], key: &str) -> String {
        let run = self.run(words);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        let line = run.stdout.lines().find(|line| line.starts_with(&format!("{key} "))).expect("the key is listed");
        line.split_whitespace().skip(1).collect::<Vec<_>>().join(" ")
    }

    #[track_caller]
    fn check_refused(&self, words: &[&str], sentence: &str, hint: &str) {
        let expected = Run { code: 2, stdout: String::new(), stderr: format!("error: {sentence}\nhint: {hint}\n") };
        assert_eq!(self.run(words), expected);
    }
}

#[test]
fn without_files_everything_is_a_default() {
    let expected = "\
key                                value             from
instructions                       \"\"                default
budget                             112000            default
overflow                           \"truncate\"        default
counter                            \"estimate\"        default
provider                           \"anthropic\"       default
fold                               \"pays\"            default
verbatim                           false             default
pin.roles                          []                default
pin.tools                          []                default
pin.paths                          []                default
file-reference.slot                350               default
file-reference.max_file_size       1048576           default
file-reference.follow_symlinks     false             default
file-reference.allowed_extensions  not set           default
file-reference.read_concurrency    16                default
working-memory.text                not set           default
layers.instructions.files          true              default
layers.procedural.skills           true              default
layers.task-state.enabled          true              default
layers.entity.enabled              true              default
layers.observations.enabled        true              default
layers.episodic.enabled            true              default
layers.semantic-recall.enabled     true              default
layers.reminder.time               false             default
layers.reminder.entry              []                default
layers.steering.deny_by_default    false             default
layers.steering.rule               []                default
tool                               []                default
memory.enabled                     false             default
memory.budget                      1000              default
memory.threshold                   70                default
memory.embedder.url                not set           default
memory.embedder.model              not set           default
memory.embedder.key_env            not set           default
memory.model.url                   not set           default
memory.model.format                not set           default
memory.model.name                  not set           default
memory.model.key_env               not set           default
memory.model.daily_tokens          200000            default
gateway.budget                     not set           default
gateway.holdout                    0.0               default
gateway.context_management         \"theirs\"          default
gateway.cap.day_dollars            not set           default
gateway.cap.day_tokens             not set           default
gateway.cap.conversation_dollars   not set           default
gateway.cap.conversation_tokens    not set           default
gateway.listen                     \"127.0.0.1:7717\"  default
gateway.store_megabytes            1024              default
gateway.keep_days                  30                default
gateway.upstream.anthropic         not set           default
gateway.upstream.openai            not set           default
gateway.upstream.chat              not set           default
gateway.upstream.responses         not set           default
gateway.upstream.google            not set           default
model                              []                default
chat.url                           not set           default
chat.format                        not set           default
chat.model                         not set           default
chat.key_env                       not set           default
chat.key                           not set           default
chat.environment                   []                default
mcp                                []                default

file     path                                       state
project  contexture.toml                            not found, nor in a parent directory
user     ROOT/home/.config/contexture/config.toml  not found
";
    let run = Place::new().run(&["config"]);
    // The columns of paths are as wide as the name of the temporary directory.
    let squeezed = |text: &str| {
        text.lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>())
            .map(|words| words.join(" "))
            .collect::<Vec<_>>()
    };
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    assert_eq!(squeezed(&run.stdout), squeezed(expected));
    assert!(run.stdout.starts_with(&expected[..expected.find("\n\n").expect("two tables")]), "{}", run.stdout);
}

#[test]
fn flags_win_over_variables_over_the_project_over_the_user() {
    let place = Place::new().with_user("budget = 1\ncounter = \"o200k\"\n");
    assert_eq!(place.line(&["config"], "budget"), "1 user file, line 1");
    let place = place.with_project("# Ours.\nbudget = 2\n");
    assert_eq!(place.line(&["config"], "budget"), "2 project file, line 2");
    assert_eq!(place.line(&["CONTEXTURE_BUDGET=3", "config"], "budget"), "3 CONTEXTURE_BUDGET");
    assert_eq!(place.line(&["CONTEXTURE_BUDGET=3", "config", "--budget", "4"], "budget"), "4 --budget");
    assert_eq!(place.line(&["CONTEXTURE_BUDGET=", "config"], "budget"), "2 project file, line 2");
    assert_eq!(place.line(&["config"], "counter"), "\"o200k\" user file, line 2");
}

#[test]
fn the_project_s_file_is_the_nearest_in_a_parent() {
    let place = Place::new().with_project("budget = 2\n");
    let budget = |place: &Place, directory: &str, words: &[&str]| {
        let run = place.run_in(directory, &[words, &["config", "--json"]].concat());
        let config: Value = serde_json::from_str(&run.stdout).expect("`--json` prints JSON");
        let keys = config["keys"].as_array().expect("keys are a list").clone();
        keys.into_iter().find(|key| key["key"] == "budget").expect("the key is listed")
    };
    let project = json!({ "source": "project", "file": "ROOT/project/contexture.toml", "line": 1 });
    assert_eq!(budget(&place, "project/sub", &[]), json!({ "key": "budget", "value": 2, "from": project }));
    let default = json!({ "key": "budget", "value": 112_000, "from": { "source": "default" } });
    assert_eq!(budget(&place, "home", &[]), default);
    let place = place.with("project/sub/contexture.toml", "budget = 3\n");
    assert_eq!(budget(&place, "project/sub", &[])["from"]["file"], "contexture.toml");
    assert_eq!(budget(&place, "project", &[])["value"], 2);
    let run = place
        .run_in("home", &["config", "window", "--json", "-m", "x", "--base", "../project/sub", "--budget", "5000"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""));
    let run = place.run_in("home", &["config", "--base", "../project/sub"]);
    assert!(run.stdout.contains("ROOT/project/sub/contexture.toml"), "{}", run.stdout);
}

#[test]
fn another_file_can_be_used_instead_of_the_project_s() {
    let place = Place::new().with_user("overflow = \"summarize\"\n").with_project("budget = 2\n");
    let place = place.with("one.toml", "budget = 11\n").with("two.toml", "budget = 12\n");
    assert_eq!(place.line(&["config", "--config", "../one.toml"], "budget"), "11 project file, line 1");
    assert_eq!(place.line(&["CONTEXTURE_CONFIG=../two.toml", "config"], "budget"), "12 project file, line 1");
    let both = ["CONTEXTURE_CONFIG=../two.toml", "config", "--config", "../one.toml"];
    assert_eq!(place.line(&both, "budget"), "11 project file, line 1");
    assert_eq!(place.line(&both, "overflow"), "\"summarize\" user file, line 1");
    place.check_refused(
        &["config", "--config", "none.toml"],
        "read `none.toml`: No such file or directory (os error 2)",
        "`--config` names this file",
    );
    place.check_refused(
        &["CONTEXTURE_CONFIG=none.toml", "replay"],
        "read `none.toml`: No such file or directory (os error 2)",
        "`CONTEXTURE_CONFIG` names this file",
    );
}

#[test]
fn both_files_can_be_ignored() {
    let place = Place::new().with_user("budget = 1\n").with_project("nonsense\n");
    let default = "112000 default";
    assert_eq!(place.line(&["config", "--no-config"], "budget"), default);
    assert_eq!(place.line(&["CONTEXTURE_CONFIG=none.toml", "config", "--no-config"], "budget"), default);
    assert_eq!(place.line(&["CONTEXTURE_BUDGET=3", "config", "--no-config"], "budget"), "3 CONTEXTURE_BUDGET");
    place.check_refused(
        &["config", "--no-config", "--config", "x"],
        "the argument '--no-config' cannot be used with '--config <FILE>'",
        "write it as `contexture config --no-config`",
    );
}

#[test]
fn mistakes_are_one_sentence_and_a_hint_for_every_command() {
    let place = Place::new().with_user("\nbuget = 1\n");
    for words in [&["config"][..], &["replay"], &["config", "window", "-m", "x"], &["replay", "--compare", "x"]] {
        place.check_refused(
            words,
            "`ROOT/home/.config/contexture/config.toml`, line 2: unknown key `buget`",
            "did you mean `budget`?",
        );
    }
    let place = Place::new().with_project("[file-reference]\nfollow_symlinks = 1\n");
    place.check_refused(
        &["config", "window", "-m", "x"],
        "`contexture.toml`, line 2: `file-reference.follow_symlinks` is `1`, but must be `true` or `false`",
        "write it as `follow_symlinks = true` below `[file-reference]`",
    );
    let place = Place::new();
    place.check_refused(
        &["CONTEXTURE_PROVIDER=openia", "replay"],
        "variable `CONTEXTURE_PROVIDER`: `provider` is `openia`, but must be `anthropic`, `openai` or `none`",
        "did you mean `openai`?",
    );
}

#[test]
fn files_that_cannot_be_read_are_told() {
    let place = Place::new().with("project/big.toml", &"#".repeat((1 << 20) + 1));
    place.check_refused(
        &["config", "--config", "big.toml"],
        "read `big.toml`: it has more than 1048576 bytes",
        "`--config` names this file",
    );
    fs::write(place.root.path().join("project/contexture.toml"), [b'#', 255]).expect("files can be written");
    place.check_refused(
        &["config"],
        "read `contexture.toml`: stream did not contain valid UTF-8",
        "`--no-config` ignores configuration files",
    );
}

#[test]
fn the_files_are_listed() {
    let place = Place::new().with_project("budget = broken\n");
    let listed = |words: &[&str]| -> Value {
        let run = place.run(words);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        serde_json::from_str(&run.stdout).expect("`--json` prints JSON")
    };
    let user_path = "ROOT/home/.config/contexture/config.toml";
    let user = json!({ "file": "user", "path": user_path, "exists": false, "used": false, "named_by": null });
    let project = |path: &str, exists: bool, used: bool, named_by: Value| json!({ "file": "project", "path": path, "exists": exists, "used": used, "named_by": named_by });
    let nearest = project("contexture.toml", true, true, Value::Null);
    assert_eq!(listed(&["config", "--path", "--json"]), json!([nearest, user]));
    let ignored = project("contexture.toml", true, false, Value::Null);
    assert_eq!(listed(&["config", "--path", "--json", "--no-config"]), json!([ignored, user]));
    let named = project("x.toml", false, false, json!("CONTEXTURE_CONFIG"));
    assert_eq!(listed(&["CONTEXTURE_CONFIG=x.toml", "config", "--path", "--json"]), json!([named, user]));
    let run = place.run(&["config", "--path"]);
    assert!(run.stdout.contains("project  contexture.toml "), "{}", run.stdout);
}

#[test]
fn variables_that_set_nothing_are_told() {
    let run = Place::new().run(&["CONTEXTURE_BUGET=1", "CONTEXTURE_X=1", "config"]);
    assert_eq!(run.code, 0);
    let told = "\n\nvariable `CONTEXTURE_BUGET` sets no key; did you mean `CONTEXTURE_BUDGET`?\n\
                variable `CONTEXTURE_X` sets no key\n";
    assert!(run.stdout.ends_with(told.trim_start_matches('\n')), "{}", run.stdout);
}

#[test]
fn commands_use_what_is_configured() {
    let place = Place::new().with_user("budget = 5000\n").with_project("counter = \"o200k\"\ninstructions = \"Hi.\"\n");
    let printed = |words: &[&str]| -> Value {
        let run = place.run(words);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""));
        serde_json::from_str(&run.stdout).expect("`--json` prints JSON")
    };
    let window = printed(&["config", "window", "-m", "x", "--json"]);
    assert_eq!(window["usage"]["budget"], 5000);
    assert_ne!(
        window["usage"]["bands"]["system"],
        printed(&["config", "window", "-m", "x", "--json", "--no-config"])["usage"]["bands"]["system"]
    );
    assert_eq!(printed(&["replay", "--json"])["budget"], 5000);
    assert_eq!(printed(&["replay", "--json", "--no-config"])["budget"], 112_000);
    let recording =
        format!("{}\n{}\n", json!({"role": "user", "text": "hi"}), json!({"role": "assistant", "text": "ho"}));
    fs::write(place.root.path().join("project/a.jsonl"), recording).expect("files can be written");
    assert_eq!(printed(&["replay", "--compare", "a.jsonl", "--json"])["budget"], 5000);
    assert_eq!(printed(&["replay", "a.jsonl", "--json", "--budget", "7000"])["budget"], 7000);
    assert_eq!(printed(&["replay", "a.jsonl", "--json", "--no-config"])["budget"], 112_000);
}

#[test]
fn the_table_of_keys_names_commands_and_flags_that_exist() {
    for command in Command::ALL {
        let mut program = bare_program(Path::new("."));
        program.args(command.name().split(' ')).arg("--help");
        let help = run(program, "");
        assert_eq!(help.code, 0, "{command}");
        for flag in keys::ALL.iter().filter(|row| row.used_by.contains(&command)).filter_map(|row| row.flag()) {
            // Help has not all of them, and the command takes them.
            let mut program = bare_program(Path::new("."));
            program.args(command.name().split(' ')).arg(&flag);
            let refused = run(program, "").stderr;
            assert!(refused.contains(&format!("a value is required for '{flag} <")), "{flag} of {command}: {refused}");
        }
    }
}

#[test]
fn passwords_in_addresses_are_not_shown() {
    let upstream = "[gateway.upstream]\nanthropic = \"https://ann:made-up-word@proxy.example/v1\"\nopenai = \"https://o.example/v1?key=made-up-word\"\n";
    let place = Place::new().with_user(upstream);
    for words in [&["config"][..], &["config", "--json"]] {
        let run = place.run_in("project", words);
        assert_eq!(run.code, 0, "{}", run.stderr);
        assert!(run.stdout.contains("proxy.example") && run.stdout.contains("o.example"), "{}", run.stdout);
        assert!(!run.stdout.contains("made-up-word") && !run.stderr.contains("made-up-word"), "{}", run.stdout);
    }
}
