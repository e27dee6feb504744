//! What a fold shows is held against the disk: in an engine, with a real directory that others change.

use std::fs;
use std::sync::Arc;

use contexture::layers::FileHistory;
use contexture::prelude::*;
use serde_json::{Value, json};

use crate::disk_project::{Project, Viewed, made_in, views_in};

const BUDGET: u64 = 6_000;

/// A file of numbered lines that occur nowhere else.
fn text_of(name: &str, lines: usize) -> String {
    (1..=lines).map(|line| format!("let {name}_{line} = compute({line});\n")).collect()
}

fn with_line(text: &str, line: usize, new: &str) -> String {
    let lines = text.lines().enumerate().map(|(at, old)| if at + 1 == line { new } else { old });
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// What the last window shows of a file.
#[track_caller]
fn view_of(project: &Project, path: &str) -> Viewed {
    let views = views_in(&project.made());
    let found = views.iter().rev().find(|view| view.path == path);
    found.unwrap_or_else(|| panic!("`{path}` is not shown:\n{}", project.made())).clone()
}

fn without_line(text: &str, line: usize) -> Vec<String> {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.remove(line - 1);
    lines
}

#[tokio::test]
async fn what_is_as_it_was_read_is_confirmed() {
    let mut project = Project::new(BUDGET);
    project.write("src/a.rs", &text_of("a", 40));
    project.read(&["src/a.rs"]).await;
    // Nobody knows what this does, so that all of it is known is not said without a look at the disk.
    project.turn("Go.", &[("Bash", json!({ "command": "./unknown.sh || true" }))]).await;
    project.fill().await;
    let view = view_of(&project, "src/a.rs");
    assert_eq!((view.told.as_str(), view.lines.len()), ("whole file, 40 lines, verified on disk", 40));
    assert_eq!(project.recorder.faults(), []);
}

#[tokio::test]
async fn what_changed_is_left_out_and_said_so() {
    let mut project = Project::new(BUDGET);
    project.write("src/a.rs", &text_of("a", 40));
    project.read(&["src/a.rs"]).await;
    let now = with_line(&text_of("a", 40), 7, "let other = 1;");
    project.write("src/a.rs", &now);
    project.fill().await;
    let view = view_of(&project, "src/a.rs");
    let told = "39 lines, verified on disk; changed on disk since you read it, line 7 differs: read it again\
                from line 1:from line 8:";
    assert_eq!(view.told, told);
    assert_eq!(view.lines, without_line(&now, 7));
}

#[tokio::test]
async fn a_view_that_stays_is_held_against_the_disk_at_the_next_fold() {
    let mut project = Project::new(BUDGET);
    project.write("src/a.rs", &text_of("a", 40));
    project.read(&["src/a.rs"]).await;
    project.fill().await;
    let now = with_line(&text_of("a", 40), 7, "let other = 1;");
    project.write("src/a.rs", &now);
    project.fill().await;
    assert_eq!(view_of(&project, "src/a.rs").lines, without_line(&now, 7));
}

#[tokio::test]
async fn a_file_that_is_gone_is_said_to_be_and_not_shown() {
    for spoil in [
        (|path| fs::remove_file(path).unwrap()) as fn(&std::path::Path),
        |path| {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        },
        |path| {
            fs::remove_file(path).unwrap();
            let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
            assert!(made.success());
        },
    ] {
        let mut project = Project::new(BUDGET);
        project.write("src/a.rs", &text_of("a", 40));
        project.read(&["src/a.rs"]).await;
        spoil(&project.base.join("src/a.rs"));
        project.fill().await;
        assert!(project.made().contains("- `src/a.rs` is gone from the disk\n"), "{}", project.made());
        assert!(!project.made().contains("## `src/a.rs`"), "{}", project.made());
        assert_eq!(project.recorder.faults(), []);
    }
}

#[tokio::test]
async fn a_file_that_can_no_longer_be_compared_says_why() {
    let mut project = Project::new(BUDGET);
    project.write("a.rs", &text_of("a", 30));
    project.write("b.rs", &text_of("b", 30));
    project.read(&["a.rs", "b.rs"]).await;
    fs::write(project.base.join("a.rs"), [0xff, 0xfe, 0, 1]).unwrap();
    // A link may lead to a file that the agent has never read.
    project.write("secret.rs", "let secret = 1;\n");
    fs::remove_file(project.base.join("b.rs")).unwrap();
    std::os::unix::fs::symlink("secret.rs", project.base.join("b.rs")).unwrap();
    project.fill().await;
    for (path, why) in [("a.rs", "it is too large or no text"), ("b.rs", "it is a link")] {
        let told = view_of(&project, path).told;
        assert!(told.contains(&format!("not compared ({why}), as seen at message ")), "{told}");
    }
    assert!(!project.watched.opened.lock().unwrap().contains(&"b.rs".to_owned()));
}

#[tokio::test]
async fn only_regions_that_the_agent_has_read_are_ever_shown() {
    let mut project = Project::new(BUDGET);
    let lines = |line: usize| match line {
        10..=40 => format!("let open_{line} = 1;\n"),
        _ => format!("let hidden_{line} = 1;\n"),
    };
    let text: String = (1..=80).map(lines).collect();
    project.write("a.rs", &text);
    project.turn("Look.", &[("Read", json!({ "file_path": "a.rs", "offset": 10, "limit": 31 }))]).await;
    // Lines are put in above, within and below; the first that was read is replaced, and the last moved away.
    let mut now: Vec<String> = text.lines().map(str::to_owned).collect();
    let last = now.remove(39);
    now.insert(70, last);
    now.insert(19, "let within = 1;".to_owned());
    now[9] = "let hidden_too = 1;".to_owned();
    now.splice(2..2, (0..5).map(|line| format!("let hidden_above_{line} = 1;")));
    project.write("a.rs", &(now.join("\n") + "\n"));
    project.fill().await;
    let made = project.made();
    assert!(!made.contains("hidden"), "{made}");
    assert!(!made.contains("within"), "{made}");
    let view = view_of(&project, "a.rs");
    let told =
        "changed on disk since you read it, line 25 differs: read it againfrom line 16:from line 26:from line 77:";
    assert!(view.told.ends_with(told), "{}", view.told);
    assert!(made.contains("- `a.rs` changed on disk: 1 line that you knew is not there any more\n"), "{made}");
    let stored = project.decisions("disk").iter().map(|it| format!("{:?}", it.action)).collect::<String>();
    assert!(!stored.contains("within") && !stored.contains("hidden"), "{stored}");
}

#[tokio::test]
async fn nothing_is_opened_that_the_agent_has_not_read() {
    let mut project = Project::new(BUDGET);
    let outside = project.base.parent().unwrap().join("outside.rs");
    fs::write(&outside, text_of("outside", 20)).unwrap();
    for name in ["a.rs", "b.rs", ".env", "secret.rs"] {
        project.write(name, &text_of("x", 20));
    }
    let outside = outside.to_str().unwrap().to_owned();
    project.read(&["a.rs", &outside, "../outside.rs"]).await;
    // Naming, listing and searching a file's name is not reading it.
    let listed = json!({ "command": "ls -a; echo secret.rs .env" });
    project.turn("What about secret.rs, b.rs and .env?", &[("Bash", listed)]).await;
    project.fill().await;
    let opened = project.watched.opened.lock().unwrap().clone();
    let looked_at = project.watched.looked_at.lock().unwrap().clone();
    assert_eq!((opened, looked_at), (vec!["a.rs".to_owned()], vec!["a.rs".to_owned()]));
}

#[tokio::test]
async fn absolute_paths_beneath_the_base_are_mapped() {
    let mut project = Project::new(BUDGET);
    project.write("src/a.rs", &text_of("a", 40));
    let path = project.base.join("src/a.rs").to_str().unwrap().to_owned();
    project.read(&[&path]).await;
    let now = with_line(&text_of("a", 40), 7, "let other = 1;");
    project.write("src/a.rs", &now);
    project.fill().await;
    assert_eq!(view_of(&project, &path).lines, without_line(&now, 7));
}

#[tokio::test]
async fn a_request_that_shows_nothing_anew_looks_at_nothing() {
    let mut project = Project::new(60_000);
    for file in 0..10 {
        let path = format!("src/{file}.rs");
        project.write(&path, &text_of("a", 40));
        project.read(&[&path]).await;
    }
    assert_eq!((project.folds(), project.watched.counts()), (0, (0, 0)));
}

#[tokio::test]
async fn unchanged_files_are_read_once_and_then_only_looked_at() {
    let mut project = Project::new(BUDGET);
    project.write("src/a.rs", &text_of("a", 40));
    project.read(&["src/a.rs"]).await;
    // A file that was changed just now could change again without a trace.
    std::thread::sleep(std::time::Duration::from_millis(60));
    for _ in 0..3 {
        project.fill().await;
        assert_eq!(view_of(&project, "src/a.rs").told, "whole file, 40 lines, verified on disk");
    }
    let count =
        |paths: &std::sync::Mutex<Vec<String>>| paths.lock().unwrap().iter().filter(|path| *path == "src/a.rs").count();
    assert!(count(&project.watched.looked_at) >= 3);
    assert_eq!(count(&project.watched.opened), 1);
}

#[tokio::test]
async fn what_is_brought_back_is_held_against_the_disk() {
    let mut project = Project::new(BUDGET);
    project.write("src/old.rs", &text_of("old", 90));
    project.read(&["src/old.rs"]).await;
    // Much is read since, so that there is no room for it in the view.
    for file in 0..12 {
        let path = format!("src/big_{file}.rs");
        project.write(&path, &text_of(&format!("big_{file}"), 90));
        project.read(&[&path]).await;
    }
    let now = with_line(&text_of("old", 90), 7, "let other = 1;");
    project.write("src/old.rs", &now);
    let before = project.decisions("recall").len();
    project.turn("Now mend src/old.rs at src/old.rs:7.", &[]).await;
    assert!(project.decisions("recall").len() > before, "nothing was brought back: {}", project.made());
    let view = view_of(&project, "src/old.rs");
    assert!(!view.lines.contains(&"let other = 1;".to_owned()), "{view:?}");
    let told = "verified on disk; changed on disk since you read it, line 7 differs: read it again";
    assert!(view.told.contains(told), "{view:?}");

    fs::remove_file(project.base.join("src/big_0.rs")).unwrap();
    project.turn("Now mend src/big_0.rs at src/big_0.rs:7.", &[]).await;
    let made = project.made();
    let (_, newest) = made.rsplit_once("# What you know of this file besides\n").unwrap();
    assert_eq!(newest, "- `src/big_0.rs` is gone from the disk\n");
}

#[tokio::test]
async fn a_restart_replays_byte_for_byte_without_the_disk() {
    let said = |windows: Vec<Vec<Arc<Item>>>| windows.last().unwrap().clone();
    let mut project = Project::new(BUDGET);
    for name in ["a", "b", "c"] {
        project.write(&format!("src/{name}.rs"), &text_of(name, 40));
        project.read(&[&format!("src/{name}.rs")]).await;
    }
    project.write("src/a.rs", &with_line(&text_of("a", 40), 7, "let other = 1;"));
    fs::remove_file(project.base.join("src/b.rs")).unwrap();
    project.fill().await;
    project.fill().await;
    let before = said(project.windows());
    assert!(made_in(&before).contains("line 7 differs"), "{}", made_in(&before));
    project.restart();
    fs::remove_dir_all(&project.base).unwrap();
    let folds = project.folds();
    project.turn("Go on.", &[]).await;
    let after = said(project.windows());
    assert_eq!(project.folds(), folds, "nothing new was decided");
    assert_eq!(after[..before.len()], before[..]);
}

#[tokio::test]
async fn without_the_disk_nothing_is_looked_at() {
    let mut project = Project::new(BUDGET).with_layer(|| FileHistory::default().without_disk());
    project.write("a.rs", &text_of("a", 40));
    project.read(&["a.rs"]).await;
    project.fill().await;
    assert_eq!(view_of(&project, "a.rs").told, "whole file, 40 lines, as you saw or wrote it at message 3");
    assert_eq!(project.watched.counts(), (0, 0));
}

#[tokio::test]
async fn what_was_found_is_stored_in_few_bytes() {
    let mut project = Project::new(BUDGET);
    project.write("a.rs", &text_of("a", 60));
    project.read(&["a.rs"]).await;
    project.fill().await;
    let decisions = project.decisions("disk");
    let contexture::decision::Action::Layer(what) = &decisions[0].action else { panic!("a layer's decision") };
    let of_a: &Value = what["files"].as_array().unwrap().iter().find(|file| file["file"] == 0).unwrap();
    assert!(of_a.to_string().len() < 120, "{of_a}");
    assert_eq!(decisions[0].reason, "files were compared with the disk, and none had changed");
}
