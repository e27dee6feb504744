//! The tools of a coding agent, called by an engine on real files.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use contexture::BoxFuture;
use contexture::files::dialect::Dialects;
use contexture::files::model::{Fact, FileModel};
use contexture::fs::{Expected, LocalFs};
use contexture::host::{FileErrorCode, FsAdapter, ReadLimits};
use contexture::item::{FunctionCall, FunctionCallOutput, Outcome};
use contexture::layers::FileHistory;
use contexture::prelude::*;
use contexture::testing::{ScriptedModel, engine};
use contexture::tools::{
    AllowAll, Approval, Approve, McpHost, McpProgress, McpQuestion, McpReply, McpServer, ToolAction, Workspace,
};
use serde_json::{Value, json};

/// Has the model call tools one after the other; returns what they returned.
async fn outputs(workspace: &Workspace, calls: &[(&str, Value)]) -> Vec<(String, Outcome)> {
    let mut model = ScriptedModel::new();
    for (name, arguments) in calls {
        model = model.calls(name, arguments.to_string());
    }
    let engine = workspace.add_tools(engine(memory(())).model(model)).build().unwrap();
    let mut execution = engine.execution("t").start().await.unwrap();
    execution.turn("go").await.unwrap();
    let outputs = execution.log().iter().filter_map(|item| item.as_output());
    outputs.map(|output| (output.output.clone(), output.outcome)).collect()
}

async fn output(workspace: &Workspace, name: &str, arguments: Value) -> (String, Outcome) {
    outputs(workspace, &[(name, arguments)]).await.remove(0)
}

fn project(files: &[(&str, &str)]) -> tempfile::TempDir {
    let project = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = project.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    project
}

fn text_of(project: &tempfile::TempDir, path: &str) -> String {
    std::fs::read_to_string(project.path().join(path)).unwrap()
}

/// Everything beneath a directory but what was put there.
fn leftovers(project: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(project).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    entries.filter(|name| name.ends_with(".new")).collect()
}

#[tokio::test]
async fn files_are_read_edited_and_written() {
    let project = project(&[("src/lib.rs", "fn one() {}\nfn two() {}\n")]);
    let workspace = Workspace::open(project.path()).unwrap();
    let absolute = project.path().join("src/lib.rs").to_str().unwrap().to_owned();
    let calls = [
        ("read_file", json!({ "path": "src/lib.rs" })),
        ("edit_file", json!({ "path": "./src/lib.rs", "old_string": "two", "new_string": "three" })),
        ("read_file", json!({ "path": absolute, "offset": 2 })),
        ("write_file", json!({ "path": "a/b/new.txt", "content": "hello\n" })),
        ("write_file", json!({ "path": "a/b/new.txt", "content": "bye\n" })),
    ];
    let outputs = outputs(&workspace, &calls).await;
    let expected = [
        "1\tfn one() {}\n2\tfn two() {}\n(End of file: 2 lines)\n",
        "edited `src/lib.rs` at line 2",
        "2\tfn three() {}\n(End of file: 2 lines)\n",
        "made `a/b/new.txt`: 1 lines",
        "replaced `a/b/new.txt`: 1 lines",
    ];
    for ((output, outcome), expected) in outputs.iter().zip(expected) {
        assert_eq!((output.as_str(), *outcome), (expected, Outcome::Done));
    }
    assert_eq!(text_of(&project, "src/lib.rs"), "fn one() {}\nfn three() {}\n");
    assert_eq!(text_of(&project, "a/b/new.txt"), "bye\n");
    let changes = workspace.take_changes();
    assert_eq!(changes.len(), 3);
    assert_eq!(changes[1].before, None);
    assert_eq!(changes[2].before.as_deref(), Some("hello\n"));
}

/// What a model knows of a file after calls: its lines, whether they are all, and how often it was read and changed.
async fn known(text: &str, calls: &[(&str, Value)]) -> (usize, bool, Fact, u32, u32) {
    let project = project(&[("a.txt", text)]);
    let workspace = Workspace::open(project.path()).unwrap();
    let (mut model, outputs) = (FileModel::new(), outputs(&workspace, calls).await);
    for (at, ((name, arguments), (output, outcome))) in calls.iter().zip(outputs).enumerate() {
        let call = FunctionCall::new("1", name, arguments.to_string());
        let seen = Dialects::builtin().observe(&call, &FunctionCallOutput::new("1", output, outcome));
        seen.observations.iter().for_each(|observation| model.apply(at as u32, observation));
    }
    let file = &model.files()[0];
    let facts = (0..file.segments.len()).map(|at| model.claim(0, at, 0..file.segments[at].lines.len()).fact);
    (file.known_lines(), file.whole, facts.min().unwrap_or(Fact::Seen), file.reads, file.edits)
}

#[tokio::test]
async fn files_of_any_length_are_known_after_they_were_read() {
    let read = || ("read_file", json!({ "path": "a.txt" }));
    for (text, lines) in [
        ("", 0),
        ("a\n", 1),
        ("a", 1),
        ("a\r\n", 1),
        ("a\nb\n", 2),
        ("a\nb", 2),
        ("a\r\nb\r\n", 2),
        ("a\r\nb", 2),
        ("a\nb\nc\n", 3),
        ("\n\n", 2),
    ] {
        assert_eq!(known(text, &[read()]).await, (lines, true, Fact::Seen, 1, 0), "{text:?}");
    }
    let edit = ("edit_file", json!({ "path": "a.txt", "old_string": "b", "new_string": "c" }));
    assert_eq!(known("a\nb\n", &[read(), edit]).await, (2, true, Fact::Seen, 1, 1));
}

#[tokio::test]
async fn a_file_that_changed_since_it_was_read_is_not_overwritten() {
    let project = project(&[("a.txt", "one\n"), ("b.txt", "never read\n")]);
    let workspace = Workspace::open(project.path()).unwrap();
    output(&workspace, "read_file", json!({ "path": "a.txt" })).await;
    std::fs::write(project.path().join("a.txt"), "somebody else\n").unwrap();
    let (text, outcome) = output(&workspace, "write_file", json!({ "path": "a.txt", "content": "mine\n" })).await;
    assert_eq!(outcome, Outcome::Failed);
    assert!(text.contains("changed since you read it; read it again"), "{text}");
    let (text, outcome) = output(&workspace, "write_file", json!({ "path": "b.txt", "content": "mine\n" })).await;
    assert_eq!(outcome, Outcome::Failed);
    assert!(text.contains("read it before you replace it"), "{text}");
    // An edit names the text that it replaces, so it is not blind.
    let edit = json!({ "path": "a.txt", "old_string": "somebody else", "new_string": "both" });
    assert_eq!(output(&workspace, "edit_file", edit).await.1, Outcome::Done);
    assert_eq!((text_of(&project, "a.txt").as_str(), text_of(&project, "b.txt").as_str()), ("both\n", "never read\n"));
}

#[tokio::test]
async fn an_edit_that_does_not_fit_says_what_would() {
    let project = project(&[("a.rs", "fn main() {\n    let total = sum(&numbers);\n}\nlet x = 1;\nlet x = 1;\n")]);
    let workspace = Workspace::open(project.path()).unwrap();
    let cases = [
        (
            "let total = sum(numbers);",
            "x",
            "What comes nearest, with line numbers that are not part of it:\n2\t    let total = sum(&numbers);",
        ),
        ("let x = 1;", "y", "has this text 2 times, at line 4, 5; give more lines around it, or set replace_all"),
        ("import os", "y", "nor anything like it"),
        ("", "y", "`old_string` is empty"),
        ("let x = 1;", "let x = 1;", "are the same"),
    ];
    for (old, new, expected) in cases {
        let edit = json!({ "path": "a.rs", "old_string": old, "new_string": new });
        let (text, outcome) = output(&workspace, "edit_file", edit).await;
        assert_eq!(outcome, Outcome::Failed);
        assert!(text.contains(expected), "{text}");
    }
    assert!(workspace.take_changes().is_empty());
    let all = json!({ "path": "a.rs", "old_string": "let x = 1;", "new_string": "", "replace_all": true });
    assert_eq!(output(&workspace, "edit_file", all).await.0, "edited `a.rs` at line 4, 5");
}

#[tokio::test]
async fn a_binary_file_is_neither_shown_nor_changed() {
    let project = project(&[]);
    let bytes = b"MZ\0\xff\xfe needle \0\n";
    std::fs::write(project.path().join("a.bin"), bytes).unwrap();
    let workspace = Workspace::open(project.path()).unwrap();
    let calls = [
        ("read_file", json!({ "path": "a.bin" })),
        ("edit_file", json!({ "path": "a.bin", "old_string": "needle", "new_string": "x" })),
        ("write_file", json!({ "path": "a.bin", "content": "x" })),
    ];
    for (output, outcome) in outputs(&workspace, &calls).await {
        assert_eq!(outcome, Outcome::Failed, "{output}");
        assert!(!output.contains("needle"), "{output}");
    }
    assert_eq!(std::fs::read(project.path().join("a.bin")).unwrap(), bytes);
}

#[tokio::test]
async fn permissions_and_line_ends_stay() {
    let project = project(&[("run.sh", "#!/bin/sh\r\necho one\r\n"), ("no-end", "last")]);
    let path = project.path().join("run.sh");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o750)).unwrap();
    let workspace = Workspace::open(project.path()).unwrap();
    let edit = json!({ "path": "run.sh", "old_string": "sh\necho one", "new_string": "sh\necho two\necho three" });
    assert_eq!(output(&workspace, "edit_file", edit).await.1, Outcome::Done);
    assert_eq!(text_of(&project, "run.sh"), "#!/bin/sh\r\necho two\r\necho three\r\n");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o750);
    output(&workspace, "edit_file", json!({ "path": "no-end", "old_string": "last", "new_string": "end" })).await;
    assert_eq!(text_of(&project, "no-end"), "end");
    assert_eq!(leftovers(project.path()), Vec::<String>::new());
}

#[tokio::test]
async fn a_linked_directory_is_refused_in_the_same_words_by_all_tools() {
    let outside = project(&[("a/secret.txt", "secret\n")]);
    let project = project(&[("in.txt", "inside\n")]);
    symlink(outside.path(), project.path().join("dir")).unwrap();
    let workspace = Workspace::open(project.path()).unwrap();
    for path in ["dir", "dir/a"] {
        let expected = format!("`{path}`: a part of the path is a symbolic link");
        for (tool, arguments) in
            [("list_files", json!({ "path": path })), ("search_files", json!({ "pattern": "secret", "path": path }))]
        {
            let (text, outcome) = output(&workspace, tool, arguments).await;
            assert!(outcome == Outcome::Failed && text.contains(&expected), "{tool} {path}: {text}");
        }
    }
    let (text, _) = output(&workspace, "read_file", json!({ "path": "dir/a/secret.txt" })).await;
    assert!(text.contains("a part of the path is a symbolic link"), "{text}");
    assert_eq!(output(&workspace, "list_files", json!({ "glob": "*.none" })).await.0, "(no files)");
}

#[tokio::test]
async fn nothing_outside_of_the_directory_is_touched() {
    let outside = project(&[("secret.txt", "secret\n")]);
    let project = project(&[("in.txt", "inside\n")]);
    symlink(outside.path().join("secret.txt"), project.path().join("link.txt")).unwrap();
    symlink(outside.path(), project.path().join("dir")).unwrap();
    let workspace = Workspace::open(project.path()).unwrap().with_approval(AllowAll);
    let secret = outside.path().join("secret.txt").to_str().unwrap().to_owned();
    let paths = [
        "../secret.txt",
        "link.txt",
        "dir/secret.txt",
        &secret,
        "/etc/passwd",
        "a/../../x",
        "in.txt/x",
        "",
        ".",
        "a\0b",
    ];
    for path in paths {
        for (tool, arguments) in [
            ("read_file", json!({ "path": path })),
            ("write_file", json!({ "path": path, "content": "broken" })),
            ("edit_file", json!({ "path": path, "old_string": "secret", "new_string": "broken" })),
        ] {
            let (text, outcome) = output(&workspace, tool, arguments).await;
            assert_eq!(outcome, Outcome::Failed, "{tool} {path:?}: {text}");
            assert!(!text.contains("root:"), "{text}");
        }
    }
    for (tool, arguments) in [
        ("list_files", json!({})),
        ("list_files", json!({ "path": "dir" })),
        ("search_files", json!({ "pattern": "secret" })),
        ("search_files", json!({ "pattern": "secret", "path": "dir" })),
        ("search_files", json!({ "pattern": "secret", "path": "link.txt" })),
        ("list_files", json!({ "path": "../" })),
    ] {
        let (text, _) = output(&workspace, tool, arguments).await;
        assert!(!text.contains("secret.txt") && !text.contains("secret\n"), "{tool}: {text}");
    }
    assert_eq!(text_of(&outside, "secret.txt"), "secret\n");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn files_are_found_as_git_would() {
    let project = project(&[
        (".gitignore", "target/\n*.log\n"),
        ("src/main.rs", "fn main() { needle(); }\n"),
        ("src/big.bin", "needle\0binary"),
        ("src/deep/x.rs", "// Needle\n"),
        ("target/out.rs", "needle\n"),
        ("run.log", "needle\n"),
        (".env.example", "needle=1\n"),
        (".git/config", "needle\n"),
    ]);
    let workspace = Workspace::open(project.path()).unwrap();
    let (listed, _) = output(&workspace, "list_files", json!({})).await;
    assert_eq!(listed, ".env.example\n.gitignore\nsrc/big.bin\nsrc/deep/x.rs\nsrc/main.rs\n");
    let (listed, _) = output(&workspace, "list_files", json!({ "path": "src", "glob": "*.rs" })).await;
    assert_eq!(listed, "src/deep/x.rs\nsrc/main.rs\n");
    let (found, _) = output(&workspace, "search_files", json!({ "pattern": "needle" })).await;
    assert_eq!(found, ".env.example:1:needle=1\nsrc/main.rs:1:fn main() { needle(); }\n");
    let search = json!({ "pattern": "^// NEEDLE$", "ignore_case": true, "glob": "*.rs" });
    assert_eq!(output(&workspace, "search_files", search).await.0, "src/deep/x.rs:1:// Needle\n");
    for (arguments, expected) in [
        (json!({ "pattern": "(" }), "is no regular expression"),
        (json!({ "pattern": "x", "glob": "[" }), "is no glob"),
        (json!({ "pattern": "x", "path": "nowhere" }), "there is no directory `nowhere`"),
    ] {
        let (text, outcome) = output(&workspace, "search_files", arguments).await;
        assert!(outcome == Outcome::Failed && text.contains(expected), "{text}");
    }
    assert_eq!(
        output(&workspace, "search_files", json!({ "pattern": "nothing has this" })).await.0,
        "(no lines found)"
    );
}

#[tokio::test]
async fn commands_run_only_if_they_are_allowed() {
    let project = project(&[]);
    let workspace = Workspace::open(project.path()).unwrap();
    let (text, outcome) = output(&workspace, "execute_bash", json!({ "command": "touch x" })).await;
    assert_eq!((text.as_str(), outcome), ("not done: commands are not allowed in this session", Outcome::Failed));
    assert!(!project.path().join("x").exists());
    let workspace = workspace.with_approval(AllowAll);
    for (command, expected, outcome) in [
        ("pwd -P | tail -c 5; echo err >&2; echo out", None, Outcome::Done),
        ("true", Some("(no output)"), Outcome::Done),
        ("echo a; exit 3", Some("a\n[The command completed with exit code 3.]"), Outcome::Failed),
        ("kill -9 $$", Some("\n[ended by a signal]"), Outcome::Failed),
        ("cat", Some("(no output)"), Outcome::Done),
    ] {
        let (text, found) = output(&workspace, "execute_bash", json!({ "command": command })).await;
        assert_eq!(found, outcome, "{command}: {text}");
        match expected {
            Some(expected) => assert_eq!(text, expected),
            None => assert!(text.ends_with("err\nout\n"), "{text}"),
        }
    }
    let (text, outcome) = output(&workspace, "execute_bash", json!({ "command": "if" })).await;
    assert!(outcome == Outcome::Failed && text.contains("syntax error"), "{text}");
}

/// Whether a process is there.
fn is_running(id: &str) -> bool {
    let state = std::fs::read_to_string(format!("/proc/{}/stat", id.trim())).unwrap_or_default();
    !state.is_empty() && !state.contains(") Z ")
}

async fn until(mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < Duration::from_secs(60), "it never came to be");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_killed_with_all_that_it_started() {
    let project = project(&[]);
    let workspace = Workspace::open(project.path()).unwrap().with_approval(AllowAll);
    let command = "echo begun; sleep 600 & echo $! > child; wait";
    let (text, outcome) = output(&workspace, "execute_bash", json!({ "command": command, "timeout_seconds": 1 })).await;
    assert_eq!((text.as_str(), outcome), ("begun\n\n[killed after 1 seconds]", Outcome::Failed));
    let child = text_of(&project, "child");
    until(|| !is_running(&child)).await;
}

#[tokio::test]
async fn a_cancelled_command_is_killed_with_all_that_it_started() {
    let project = project(&[]);
    let workspace = Workspace::open(project.path()).unwrap().with_approval(AllowAll);
    let command = json!({ "command": "sleep 600 & echo $! > new; mv new child; wait" });
    let turn = tokio::spawn(async move { output(&workspace, "execute_bash", command).await });
    until(|| project.path().join("child").exists()).await;
    let child = text_of(&project, "child");
    assert!(is_running(&child));
    turn.abort();
    until(|| !is_running(&child)).await;
}

#[tokio::test]
async fn what_a_command_leaves_running_does_not_hold_the_turn() {
    let project = project(&[]);
    let workspace = Workspace::open(project.path()).unwrap().with_approval(AllowAll);
    let command = "sleep 600 & echo $! > child; echo started";
    let (text, _) = output(&workspace, "execute_bash", json!({ "command": command })).await;
    assert_eq!(text, "started\n");
    let child = text_of(&project, "child");
    assert!(is_running(&child));
    std::process::Command::new("kill").arg(child.trim()).status().unwrap();
}

/// Denies what a person would not want, and remembers what it was asked.
#[derive(Clone, Default)]
struct Person(Arc<Mutex<Vec<String>>>);

impl Approve for Person {
    fn approve<'a>(&'a self, action: ToolAction<'a>) -> BoxFuture<'a, Approval> {
        let asked = match action {
            ToolAction::Write { path, before, after } => format!("{path}: {before:?} to {after:?}"),
            ToolAction::Run { command } => command.to_owned(),
            _ => unreachable!("there are no others yet"),
        };
        let is_denied = asked.contains("no");
        self.0.lock().unwrap().push(asked);
        Box::pin(std::future::ready(match is_denied {
            true => Approval::Denied("the user said no".to_owned()),
            false => Approval::Allowed,
        }))
    }
}

#[tokio::test]
async fn a_person_is_asked_before_each_change() {
    let project = project(&[("a.txt", "one\n")]);
    let person = Person::default();
    let workspace = Workspace::open(project.path()).unwrap().with_approval(person.clone());
    let edit = |new: &str| json!({ "path": "a.txt", "old_string": "one", "new_string": new });
    let (text, outcome) = output(&workspace, "edit_file", edit("no")).await;
    assert_eq!((text.as_str(), outcome), ("not done: the user said no", Outcome::Failed));
    assert_eq!(output(&workspace, "edit_file", edit("two")).await.1, Outcome::Done);
    assert_eq!(text_of(&project, "a.txt"), "two\n");
    let asked = person.0.lock().unwrap().clone();
    assert_eq!(asked, ["a.txt: Some(\"one\\n\") to \"no\\n\"", "a.txt: Some(\"one\\n\") to \"two\\n\""]);
}

#[tokio::test]
async fn a_write_takes_place_wholly_or_not_at_all() {
    let project = project(&[("a.txt", "one\n")]);
    let files = LocalFs::open(project.path()).unwrap();
    let limits = ReadLimits { max_bytes: 1_000, follow_symlinks: false };
    let read = files.read("a.txt", limits).await.unwrap();
    let stamp = files.write("a.txt", "two\n", Expected::Unchanged(read.stamp)).await.unwrap();
    assert_eq!(text_of(&project, "a.txt"), "two\n");
    // The stamp of a write serves for the next one; that of the first text does not any more.
    let error = files.write("a.txt", "three\n", Expected::Unchanged(read.stamp)).await.unwrap_err();
    assert_eq!(error.code, FileErrorCode::Changed);
    files.write("a.txt", "three\n", Expected::Unchanged(stamp)).await.unwrap();
    let error = files.write("a.txt", "four\n", Expected::Missing).await.unwrap_err();
    assert_eq!(error.code, FileErrorCode::Changed);
    assert_eq!(text_of(&project, "a.txt"), "three\n");
    assert_eq!(leftovers(project.path()), Vec::<String>::new());
}

/// Many writers at once, each of whom adds a line to what it read: no line is lost, and no reader sees half a text.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_write_is_lost_between_writers() {
    let project = project(&[("count.txt", "")]);
    let files = LocalFs::open(project.path()).unwrap();
    let limits = ReadLimits { max_bytes: 1_000_000, follow_symlinks: false };
    let mut writers = Vec::new();
    for writer in 0..4 {
        let files = files.clone();
        writers.push(tokio::spawn(async move {
            let mut added = 0;
            while added < 25 {
                let read = files.read("count.txt", limits).await.unwrap();
                assert!(read.text.is_empty() || read.text.ends_with(";\n"), "half a text: {:?}", read.text);
                let text = format!("{}{writer}-{added};\n", read.text);
                match files.write("count.txt", &text, Expected::Unchanged(read.stamp)).await {
                    Ok(_) => added += 1,
                    Err(error) => assert_eq!(error.code, FileErrorCode::Changed, "{error}"),
                }
            }
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let lines: Vec<String> = text_of(&project, "count.txt").lines().map(str::to_owned).collect();
    let distinct: std::collections::HashSet<&String> = lines.iter().collect();
    assert_eq!((lines.len(), distinct.len()), (100, 100));
    assert_eq!(leftovers(project.path()), Vec::<String>::new());
}

/// What the tools print is what `file-history` understands: a view shows the file as it is after an edit.
#[tokio::test]
async fn file_history_understands_the_tools() {
    let lines: String = (1..=40).map(|line| format!("let value_{line} = {line};\n")).collect();
    let project = project(&[("src/a.rs", &lines)]);
    let workspace = Workspace::open(project.path()).unwrap();
    let mut model = ScriptedModel::new().calls("read_file", json!({ "path": "src/a.rs" }).to_string()).calls(
        "edit_file",
        json!({ "path": "src/a.rs", "old_string": "value_7 = 7", "new_string": "value_7 = seven" }).to_string(),
    );
    for turn in 0..40 {
        model = model.calls("list_files", json!({ "glob": format!("*.{turn}") }).to_string());
        model = model.says(format!("nothing there for {turn}, {}", "and a longer remark ".repeat(30)));
    }
    let builder = workspace.add_tools(engine(memory((FileHistory::default(),))).model(model.clone()));
    let engine =
        builder.policy(ProjectionPolicy { response_reserve: 0, ..ProjectionPolicy::new(4_000) }).build().unwrap();
    let mut execution = engine.execution("t").start().await.unwrap();
    for _ in 0..41 {
        execution.turn("go on with src/a.rs").await.unwrap();
    }
    let last = model.requests().pop().unwrap();
    let shown: Vec<String> = last.items.iter().filter_map(|item| Some(item.as_message()?.text())).collect();
    let view = shown
        .iter()
        .find(|text| text.contains("src/a.rs") && text.contains("let value_7"))
        .expect("a view of the file");
    assert!(view.contains("let value_7 = seven;"), "{view}");
    assert!(!view.contains("let value_7 = 7;"), "{view}");
}

/// An MCP server in a few lines of Python, with pages of tools, a failing one, one that never returns, and noise.
const SERVER: &str = r#"
import json, sys
def send(message):
    print(json.dumps(message), flush=True)
print("starting, this line is no message", flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        send({"jsonrpc": "2.0", "id": "server-1", "method": "ping"})
        send({"jsonrpc": "2.0", "id": id, "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}}})
    elif method == "tools/list" and not message["params"].get("cursor"):
        send({"jsonrpc": "2.0", "id": id, "result": {"nextCursor": "2", "tools": [{"name": "add", "description": "Adds.", "inputSchema": {"type": "object", "required": ["a", "b"]}}]}})
    elif method == "tools/list":
        send({"jsonrpc": "2.0", "id": id, "result": {"tools": [{"name": "fail"}, {"name": "exit"}, {"name": "picture"}]}})
    elif method == "tools/call":
        name, arguments = message["params"]["name"], message["params"]["arguments"]
        if name == "add":
            send({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "text", "text": str(arguments["a"] + arguments["b"])}]}})
        elif name == "fail":
            send({"jsonrpc": "2.0", "id": id, "result": {"isError": True, "content": [{"type": "text", "text": "no such thing"}]}})
        elif name == "picture":
            send({"jsonrpc": "2.0", "id": id, "result": {"content": [{"type": "image", "data": "AAAA"}]}})
        elif name == "exit":
            sys.exit(1)
"#;

#[tokio::test]
async fn tools_of_an_mcp_server_are_tools() {
    let project = project(&[("server.py", SERVER)]);
    let arguments = vec!["server.py".to_owned()];
    let server = McpServer::start("math", "python3", &arguments, &[], project.path()).await.unwrap();
    let model = ScriptedModel::new()
        .calls("math/add", r#"{"a": 1, "b": 2}"#)
        .calls("math/add", r#"{"a": 1}"#)
        .calls("math/fail", "{}")
        .calls("math/picture", "{}")
        .calls("math/exit", "{}")
        .calls("math/add", r#"{"a": 1, "b": 2}"#);
    let engine = server.add_tools(engine(memory(())).model(model)).build().unwrap();
    let mut execution = engine.execution("t").start().await.unwrap();
    execution.turn("go").await.unwrap();
    let outputs: Vec<String> =
        execution.log().iter().filter_map(|item| Some(item.as_output()?.output.clone())).collect();
    assert_eq!(outputs[0], "3");
    assert!(outputs[1].contains("`b`"), "{}", outputs[1]);
    assert_eq!(outputs[2], "no such thing");
    assert_eq!(outputs[3], "[image, which is not shown]");
    assert_eq!(outputs[4], "the MCP server `math` ended");
    assert_eq!(outputs[5], "the MCP server `math` ended");
}

#[tokio::test]
async fn an_mcp_server_that_does_not_start_is_named() {
    let start = async |command: &str| McpServer::start("broken", command, &[], &[], Path::new(".")).await.unwrap_err();
    assert_eq!(start("/nowhere/at/all").await.to_string(), "start the MCP server `broken`");
    assert_eq!(start("true").await.to_string(), "the MCP server `broken` ended");
}

/// A server that sends a line without an end, or two tools of one name.
const RUDE: &str = r#"
import json, sys
def send(id, result):
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        send(id, {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}})
    elif method == "tools/list":
        names = ["add", "add", "a.b", "a_b", "long"]
        send(id, {"tools": [{"name": name, "description": str(at)} for at, name in enumerate(names)]})
    elif method == "tools/call":
        try:
            while True:
                sys.stdout.write("x" * 1000000)
        except BrokenPipeError:
            sys.exit(0)
"#;

#[tokio::test]
async fn a_line_without_an_end_ends_the_server_and_two_tools_of_one_name_are_one() {
    let project = project(&[("server.py", RUDE)]);
    let arguments = vec!["server.py".to_owned()];
    let server = McpServer::start("rude", "python3", &arguments, &[], project.path()).await.unwrap();
    assert_eq!(server.repeated(), ["add", "a_b"]);
    let model = ScriptedModel::new().calls("rude/long", "{}").calls("rude/add", "{}");
    let engine = server.add_tools(engine(memory(())).model(model)).build().unwrap();
    assert_eq!(engine.tool_schemas().len(), 3);
    let mut execution = engine.execution("t").start().await.unwrap();
    execution.turn("go").await.unwrap();
    let outputs: Vec<String> =
        execution.log().iter().filter_map(|item| Some(item.as_output()?.output.clone())).collect();
    assert_eq!(outputs, ["the MCP server `rude` sent more than 8 MB in one message"; 2]);
}

/// A server of the revision without a handshake, which asks in its results, and one that ends on what it does not know.
const MODERN: &str = r#"
import json, sys
kind = sys.argv[1]
def send(id, result):
    result.setdefault("resultType", "complete")
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, id, params = message.get("method"), message.get("id"), message.get("params", {})
    if kind == "brittle":
        if method == "server/discover":
            sys.exit(1)
        if method == "initialize":
            send(id, {"protocolVersion": "2024-11-05", "capabilities": {}})
    elif kind == "future" and method == "initialize":
        send(id, {"protocolVersion": "2031-01-01", "capabilities": {}})
    elif method == "server/discover" and kind != "future":
        assert params["_meta"]["io.modelcontextprotocol/protocolVersion"] == "2026-07-28"
        send(id, {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
    if method == "tools/list":
        schema = {"type": "object", "required": ["n"]}
        names = ["ask", "again", "sample", "odd", "promise"]
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
        tools[4]["outputSchema"] = schema
        send(id, {"tools": tools})
    elif method == "tools/call":
        name, said = params["name"], params.get("inputResponses")
        form = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        if name == "ask" and not said:
            ask = {"method": "elicitation/create", "params": {"message": "How many?", "requestedSchema": form}}
            send(id, {"resultType": "input_required", "inputRequests": {"q": ask}, "requestState": "s"})
        elif name == "ask":
            send(id, {"content": [{"type": "text", "text": json.dumps([said, params["requestState"]])}]})
        elif name == "again":
            send(id, {"resultType": "input_required", "inputRequests": {
                "q": {"method": "elicitation/create", "params": {"message": "", "requestedSchema": form}}}})
        elif name == "sample":
            send(id, {"resultType": "input_required", "inputRequests": {"q": {"method": "sampling/createMessage"}}})
        elif name == "odd":
            send(id, {"resultType": "task"})
        elif name == "promise":
            send(id, {"content": [{"type": "text", "text": "no data"}]})
"#;

/// Says the same to every question.
struct Says(McpReply);

impl McpHost for Says {
    fn can_ask(&self) -> bool {
        true
    }

    fn ask(&self, question: McpQuestion) -> contexture::BoxFuture<'_, McpReply> {
        assert_eq!((question.server.as_str(), question.fields.len()), ("modern", 1));
        Box::pin(std::future::ready(self.0.clone()))
    }

    fn progress(&self, _: McpProgress) {}
}

async fn outputs_of_modern(reply: McpReply, calls: &[&str]) -> Vec<String> {
    let project = project(&[("server.py", MODERN)]);
    let (arguments, host) = (["server.py".to_owned(), "modern".to_owned()], std::sync::Arc::new(Says(reply)));
    let environment = contexture::host::ProgramEnvironment::of_process();
    let server =
        McpServer::start_for("modern", "python3", &arguments, &environment, project.path(), host).await.unwrap();
    assert!(server.is_stateless());
    let model = calls.iter().fold(ScriptedModel::new(), |model, call| model.calls(&format!("modern/{call}"), "{}"));
    let engine = server.add_tools(engine(memory(())).model(model)).build().unwrap();
    let mut execution = engine.execution("t").start().await.unwrap();
    execution.turn("go").await.unwrap();
    execution.log().iter().filter_map(|item| Some(item.as_output()?.output.clone())).collect()
}

#[tokio::test]
async fn a_server_without_a_handshake_asks_in_its_results() {
    let said = serde_json::json!({ "n": 3 }).as_object().unwrap().clone();
    let outputs = outputs_of_modern(McpReply::Accept(said), &["ask", "again", "sample", "odd", "promise"]).await;
    assert_eq!(outputs[0], r#"[{"q": {"action": "accept", "content": {"n": 3}}}, "s"]"#);
    assert!(outputs[1].contains("more than 10 times"), "{outputs:?}");
    assert!(outputs[2].contains("`sampling/createMessage`, which is not offered"), "{outputs:?}");
    assert!(outputs[3].contains("of the kind `task`"), "{outputs:?}");
    assert!(outputs[4].contains("no `structuredContent`"), "{outputs:?}");
    let outputs = outputs_of_modern(McpReply::Decline, &["ask"]).await;
    assert_eq!(outputs[0], r#"[{"q": {"action": "decline"}}, "s"]"#);
}

#[tokio::test]
async fn a_server_that_ends_on_what_it_does_not_know_is_started_again() {
    let project = project(&[("server.py", MODERN)]);
    let start = async |kind: &str| {
        let arguments = ["server.py".to_owned(), kind.to_owned()];
        McpServer::start("s", "python3", &arguments, &[], project.path()).await
    };
    let server = start("brittle").await.unwrap();
    assert!(!server.is_stateless() && server.tools().count() == 5);
    let error = start("future").await.unwrap_err().to_string();
    assert!(error.contains("speaks revision `2031-01-01`"), "{error}");
}

#[tokio::test]
async fn a_server_gets_no_variables_but_those_of_the_list_and_its_own() {
    let project = project(&[]);
    let code = "import os; open('env', 'w').write('\\n'.join(sorted(os.environ)))";
    let arguments = ["-c".to_owned(), code.to_owned()];
    let own = [("ITS_OWN".to_owned(), "x".to_owned())];
    McpServer::start("s", "python3", &arguments, &own, project.path()).await.unwrap_err();
    let names = std::fs::read_to_string(project.path().join("env")).unwrap();
    // Cargo sets this one for tests.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some() && !names.contains("CARGO_MANIFEST_DIR"), "{names}");
    assert!(names.contains("ITS_OWN") && names.contains("PATH"), "{names}");
}

/// An editor with texts that are not saved.
#[derive(Default)]
struct Editor {
    texts: Mutex<std::collections::BTreeMap<std::path::PathBuf, String>>,
    writes: bool,
    /// What it says to a text that it is to write.
    refuses: Option<&'static str>,
    asked: Mutex<Vec<std::path::PathBuf>>,
}

impl contexture::tools::OpenFiles for Editor {
    fn read<'a>(&'a self, path: &'a Path) -> BoxFuture<'a, Option<String>> {
        self.asked.lock().unwrap().push(path.to_owned());
        Box::pin(std::future::ready(self.texts.lock().unwrap().get(path).cloned()))
    }

    fn write<'a>(&'a self, path: &'a Path, text: &'a str) -> BoxFuture<'a, Option<Result<(), String>>> {
        let result = match self.refuses {
            Some(why) => Err(why.to_owned()),
            None => {
                self.texts.lock().unwrap().insert(path.to_owned(), text.to_owned());
                Ok(())
            }
        };
        Box::pin(std::future::ready(self.writes.then_some(result)))
    }
}

/// A workspace in which an editor has these texts open.
fn edited(project: &tempfile::TempDir, editor: Editor, open: &[(&str, &str)]) -> (Workspace, Arc<Editor>) {
    let directory = std::path::absolute(project.path()).unwrap();
    let texts = open.iter().map(|(path, text)| (directory.join(path), (*text).to_owned()));
    editor.texts.lock().unwrap().extend(texts);
    let editor = Arc::new(editor);
    (Workspace::open(&directory).unwrap().with_approval(AllowAll).with_open_files(editor.clone()), editor)
}

#[tokio::test]
async fn what_is_not_saved_counts_and_is_changed_in_the_editor() {
    let project = project(&[("a.txt", "saved\n"), ("b.txt", "plain\n")]);
    let writing = || Editor { writes: true, ..Editor::default() };
    let (workspace, editor) = edited(&project, writing(), &[("a.txt", "not saved\n"), ("new.txt", "only open\n")]);
    let calls = [
        ("read_file", json!({ "path": "a.txt" })),
        ("edit_file", json!({ "path": "a.txt", "old_string": "not saved", "new_string": "changed" })),
        ("read_file", json!({ "path": "b.txt" })),
        ("read_file", json!({ "path": "new.txt" })),
        ("edit_file", json!({ "path": "new.txt", "old_string": "only", "new_string": "still" })),
        ("write_file", json!({ "path": "fresh/c.txt", "content": "fresh\n" })),
    ];
    let outputs = outputs(&workspace, &calls).await;
    assert!(outputs.iter().all(|(_, outcome)| *outcome == Outcome::Done), "{outputs:?}");
    assert!(outputs[0].0.contains("not saved") && outputs[2].0.contains("plain"), "{outputs:?}");
    let texts = editor.texts.lock().unwrap().clone();
    let text = |path: &str| texts[&std::path::absolute(project.path()).unwrap().join(path)].clone();
    assert_eq!([text("a.txt"), text("new.txt"), text("fresh/c.txt")], ["changed\n", "still open\n", "fresh\n"]);
    assert_eq!(text_of(&project, "a.txt"), "saved\n", "saving is the editor's");
    let changes = workspace.take_changes();
    assert_eq!(changes[0].before.as_deref(), Some("not saved\n"));
}

/// What the tools may not read on the disk, they do not ask an editor for either.
#[tokio::test]
async fn an_editor_is_not_asked_for_what_is_elsewhere() {
    let (project, elsewhere) = (project(&[("a.txt", "saved\n")]), project(&[("secret", "s\n")]));
    symlink(elsewhere.path().join("secret"), project.path().join("link")).unwrap();
    symlink(elsewhere.path(), project.path().join("folder")).unwrap();
    let (workspace, editor) = edited(&project, Editor { writes: true, ..Editor::default() }, &[]);
    for path in ["../secret", "/etc/passwd", "link", "folder/secret", "folder/new"] {
        for (tool, arguments) in
            [("read_file", json!({ "path": path })), ("write_file", json!({ "path": path, "content": "x" }))]
        {
            let (said, outcome) = output(&workspace, tool, arguments).await;
            assert_eq!(outcome, Outcome::Failed, "{tool} {path}: {said}");
        }
    }
    assert!(editor.asked.lock().unwrap().is_empty() && editor.texts.lock().unwrap().is_empty());
    assert_eq!(text_of(&elsewhere, "secret"), "s\n");
}

#[tokio::test]
async fn an_editor_that_refuses_or_only_reads_is_respected() {
    let project = project(&[("a.txt", "saved\n")]);
    let refusing = Editor { writes: true, refuses: Some("it is read-only"), ..Editor::default() };
    let (workspace, _) = edited(&project, refusing, &[]);
    let edit = |from: &str| json!({ "path": "a.txt", "old_string": from, "new_string": "new" });
    let calls = [("read_file", json!({ "path": "a.txt" })), ("edit_file", edit("saved"))];
    let (said, outcome) = outputs(&workspace, &calls).await.remove(1);
    assert!(outcome == Outcome::Failed && said.contains("did not write `a.txt`: it is read-only"), "{said}");
    assert_eq!(text_of(&project, "a.txt"), "saved\n", "and nothing else is tried");
    let (workspace, _) = edited(&project, Editor::default(), &[]);
    assert_eq!(outputs(&workspace, &calls).await[1].1, Outcome::Done);
    assert_eq!(text_of(&project, "a.txt"), "new\n", "an editor that only reads sees the change on the disk");
}

/// A server that asks when nobody called it, asks twice at once, tells of progress that nobody waits for, and never ends
/// its lists.
const HOSTILE: &str = r#"
import json, sys
kind = sys.argv[1]
def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def ask(id):
    form = {"type": "object", "properties": {"n": {"type": "integer"}}}
    send({"id": id, "method": "elicitation/create", "params": {"message": "How many?", "requestedSchema": form}})
replies, call = {}, None
for line in sys.stdin:
    message = json.loads(line)
    method, id, params = message.get("method"), message.get("id"), message.get("params", {})
    if method == "server/discover":
        send({"id": id, "error": {"code": -32601, "message": "no"}})
    elif method == "initialize":
        send({"id": id, "result": {"protocolVersion": "2025-11-25", "capabilities": {}}})
        ask("early")
        send({"method": "notifications/progress", "params": {"progressToken": 99, "progress": 1}})
        send({"method": "notifications/progress", "params": "odd"})
        send({"id": {"an": "object"}, "result": {}})
        send({"id": "early", "result": {}})
        print("not JSON", flush=True)
        print("[" * 5000, flush=True)
    elif method == "tools/list" and kind == "endless":
        send({"id": id, "result": {"tools": [{"name": "t" + params.get("cursor", "0")}], "nextCursor": str(int(params.get("cursor", "0")) + 1)}})
    elif method == "tools/list" and kind == "wide":
        send({"id": id, "result": {"tools": [{"name": f"t{n}", "description": "x" * 1000000} for n in range(5)]}})
    elif method == "tools/list":
        send({"id": id, "result": {"tools": [{"name": "twice"}, {"name": "state"}, {"name": "odd"}, {"name": "many"}, {"name": "told"}]}})
    elif method == "tools/call":
        call, name = id, params["name"]
        if name == "twice":
            ask("one")
            ask("two")
        elif name == "state":
            send({"id": id, "result": {"resultType": "input_required", "requestState": "x" * (2 << 20)}})
        elif name == "odd":
            send({"id": id, "result": {"resultType": "input_required", "requestState": {"x": ["y" * (2 << 20)]}}})
        elif name == "many":
            requests = {str(n): {"method": "elicitation/create", "params": {}} for n in range(9)}
            send({"id": id, "result": {"resultType": "input_required", "inputRequests": requests}})
        else:
            for n in range(1000):
                send({"method": "notifications/progress", "params": {"progressToken": id, "progress": n, "message": "y" * 10000}})
            send({"id": id, "result": {"content": [{"type": "text", "text": json.dumps(replies)}]}})
    elif method is None:
        replies[id] = message.get("result", {}).get("action", "refused")
        if "one" in replies and "two" in replies:
            send({"id": call, "result": {"content": [{"type": "text", "text": json.dumps(replies)}]}})
"#;

/// Takes its time with every question, and keeps what it is told.
#[derive(Default)]
struct Slow(Mutex<Vec<McpProgress>>);

impl McpHost for Slow {
    fn can_ask(&self) -> bool {
        true
    }

    fn ask(&self, _: McpQuestion) -> BoxFuture<'_, McpReply> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            McpReply::Decline
        })
    }

    fn progress(&self, progress: McpProgress) {
        self.0.lock().unwrap().push(progress);
    }
}

#[tokio::test]
async fn a_hostile_server_asks_only_while_it_is_called_and_one_thing_at_a_time() {
    let project = project(&[("server.py", HOSTILE)]);
    let host = Arc::new(Slow::default());
    let environment = contexture::host::ProgramEnvironment::of_process();
    let start = async |kind: &str| {
        let arguments = ["server.py".to_owned(), kind.to_owned()];
        McpServer::start_for("rude", "python3", &arguments, &environment, project.path(), host.clone()).await
    };
    let server = start("rude").await.unwrap();
    let model = ["twice", "state", "odd", "many", "told"]
        .iter()
        .fold(ScriptedModel::new(), |model, call| model.calls(&format!("rude/{call}"), "{}"));
    let engine = server.add_tools(engine(memory(())).model(model)).build().unwrap();
    let mut execution = engine.execution("t").start().await.unwrap();
    execution.turn("go").await.unwrap();
    let outputs: Vec<String> =
        execution.log().iter().filter_map(|item| Some(item.as_output()?.output.clone())).collect();
    let replies: Value = serde_json::from_str(&outputs[0]).unwrap();
    assert_eq!(replies, json!({ "early": "cancel", "one": "decline", "two": "cancel" }));
    assert!(outputs[1].contains("told more than 1048576 bytes again"), "{}", outputs[1]);
    assert!(outputs[2].contains("again that is no text"), "{}", outputs[2]);
    assert!(outputs[3].contains("more than 8 things at once"), "{}", outputs[3]);
    assert!(outputs[4].contains("early"), "the server is still used: {}", outputs[4]);
    let told = std::mem::take(&mut *host.0.lock().unwrap());
    assert_eq!(told.len(), 1_000, "only progress of the call that runs is told");
    assert!(told.iter().all(|progress| format!("{progress:?}").len() < 5_000), "and not at length");
    assert_eq!(start("endless").await.unwrap().tools().count(), 100);
    let wide = start("wide").await.unwrap_err().to_string();
    assert_eq!(wide, "the MCP server `rude` sent more than 4 MB of tools");
}
