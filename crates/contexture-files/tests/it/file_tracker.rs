//! Truncation by age spares files in use.

use contexture_core::item::{FunctionCall, Item};
use contexture_files::dialect::Dialects;
use contexture_files::tracker::{
    FileTracker, TruncationConfig, TruncationPriority, file_stub, truncate_with_file_awareness, truncated_file_hint,
    truncation_priority,
};
use serde_json::json;

fn call(name: &str, arguments: serde_json::Value) -> FunctionCall {
    FunctionCall::new("call", name, arguments.to_string())
}

/// One call with a long answer, and ten steps after it.
fn old_call(call: FunctionCall) -> Vec<Item> {
    let answer = Item::output("call", "a line of the answer\n".repeat(40));
    let later = (0..10).flat_map(|_| [Item::user("go on"), Item::assistant("going on")]);
    [call.into(), answer].into_iter().chain(later).collect()
}

#[track_caller]
fn answer_after_ten_steps(call: FunctionCall, tracker: &FileTracker) -> String {
    let items = old_call(call);
    let kept = truncate_with_file_awareness(&items, tracker, &Dialects::builtin(), &TruncationConfig::default());
    assert_eq!(kept.len(), items.len());
    kept[1].as_output().expect("the answer stays in its place").output.clone()
}

#[test]
fn recently_modified_files_are_kept() {
    let mut tracker = FileTracker::new();
    tracker.track_file_modification("/app/config.ts", 1);
    let text = answer_after_ten_steps(call("read_file", json!({"path": "/app/config.ts"})), &tracker);
    assert!(!text.contains("truncated"));
}

#[test]
fn stale_file_reads_are_truncated() {
    let mut tracker = FileTracker::new();
    tracker.track_file_access("/app/config.ts", 1, 0, "a line of the answer\n");
    let text = answer_after_ten_steps(call("read_file", json!({"path": "/app/config.ts"})), &tracker);
    let stub = "[File: /app/config.ts (40 lines) - content truncated, use read_file to re-read]";
    let hint = "[File content truncated. To see current content, call read_file again.\nPath: /app/config.ts\nLast read: 10 steps ago\nLines: 40]";
    assert_eq!(text, format!("{stub}\n{hint}"));
}

#[test]
fn a_file_accessed_elsewhere_since_is_kept() {
    let mut tracker = FileTracker::new();
    tracker.track_file_access("/app/config.ts", 9, 0, "");
    let text = answer_after_ten_steps(call("read_file", json!({"path": "/app/config.ts"})), &tracker);
    assert!(!text.contains("truncated"));
}

#[test]
fn a_stub_names_the_tool_that_this_agent_used() {
    let text = answer_after_ten_steps(call("Read", json!({"file_path": "/a.rs"})), &FileTracker::new());
    assert!(text.starts_with("[File: /a.rs (40 lines) - content truncated, use Read to re-read]"));
}

#[test]
fn shell_output_goes_first() {
    let text = answer_after_ten_steps(call("Bash", json!({"command": "cargo test"})), &FileTracker::new());
    assert_eq!(text, "[Output of Bash truncated (40 lines)]");
}

#[test]
fn priorities_follow_who_wrote_and_who_named() {
    let mut tracker = FileTracker::new();
    tracker.track_file_modification("written.rs", 1);
    tracker.track_user_reference("named.rs", 1);
    tracker.track_file_access("read.rs", 1, 0, "");
    let dialects = Dialects::builtin();
    let priority = |name: &str, arguments| truncation_priority(&call(name, arguments), &dialects, &tracker);
    assert_eq!(priority("edit_file", json!({"path": "x"})), TruncationPriority::Never);
    assert_eq!(priority("create_file", json!({"path": "x", "content": ""})), TruncationPriority::Never);
    assert_eq!(priority("read_file", json!({"path": "written.rs"})), TruncationPriority::Never);
    assert_eq!(priority("read_file", json!({"path": "named.rs"})), TruncationPriority::Longer);
    assert_eq!(priority("read_file", json!({"path": "read.rs"})), TruncationPriority::Standard);
    assert_eq!(priority("search_files", json!({"pattern": "x"})), TruncationPriority::Aggressive);
    assert_eq!(priority("execute_bash", json!({"command": "ls"})), TruncationPriority::Aggressive);
    assert!(TruncationPriority::Never > TruncationPriority::Longer);
}

#[test]
fn a_file_is_the_same_under_all_its_names() {
    let mut tracker = FileTracker::new();
    tracker.track_file_modification("./src/config.ts", 1);
    let text = answer_after_ten_steps(call("read_file", json!({"path": "src/config.ts"})), &tracker);
    assert!(!text.contains("truncated"), "{text}");
    tracker.track_user_reference("D:\\app\\main.rs", 0);
    let read = call("read_file", json!({"path": "/d/app/main.rs"}));
    assert_eq!(truncation_priority(&read, &Dialects::builtin(), &tracker), TruncationPriority::Longer);
}

/// At which age each of the four is truncated: an output of a search or a command, of a file that was read, of one that
/// a person named, of one that the agent wrote.
#[test]
fn the_priorities_are_four_different_levels() {
    let mut tracker = FileTracker::new();
    tracker.track_file_access("/read.rs", 0, 0, "text");
    tracker.track_user_reference("/named.rs", 0);
    tracker.track_file_modification("/written.rs", 0);
    let read = |path: &str| call("read_file", json!({ "path": path }));
    let calls =
        [call("execute_bash", json!({"command": "ls"})), read("/read.rs"), read("/named.rs"), read("/written.rs")];
    let (dialects, config) = (Dialects::builtin(), TruncationConfig::default());
    let last_kept = |call: &FunctionCall| {
        let is_cut = |age: &u64| {
            let later = (0..*age).flat_map(|_| [Item::user("go on"), Item::assistant("going on")]);
            let answer = Item::output("call", "a line of the answer\n".repeat(40));
            let items: Vec<Item> = [call.clone().into(), answer].into_iter().chain(later).collect();
            truncate_with_file_awareness(&items, &tracker, &dialects, &config)[1] != items[1]
        };
        (0..200).find(is_cut)
    };
    assert_eq!(calls.each_ref().map(last_kept), [Some(4), Some(9), Some(31), None]);
    let priorities = calls.each_ref().map(|call| truncation_priority(call, &dialects, &tracker));
    assert!(priorities.is_sorted_by(|a, b| a < b), "{priorities:?}");
}

#[test]
fn files_that_the_user_named_are_kept_longer() {
    let mut tracker = FileTracker::new();
    tracker.track_user_reference("/app/named.ts", 1);
    let read = call("read_file", json!({"path": "/app/named.ts"}));
    assert!(!answer_after_ten_steps(read.clone(), &tracker).contains("truncated"));
    let config = TruncationConfig { longer_age: 9, ..TruncationConfig::default() };
    let kept = truncate_with_file_awareness(&old_call(read), &tracker, &Dialects::builtin(), &config);
    let text = &kept[1].as_output().expect("the answer stays in its place").output;
    assert!(text.starts_with("[File: /app/named.ts (40 lines) - content truncated"), "{text}");
}

#[test]
fn what_this_agent_wrote_is_never_truncated() {
    let write = call("create_file", json!({"path": "a.rs", "content": "x"}));
    assert!(!answer_after_ten_steps(write, &FileTracker::new()).contains("truncated"));
}

#[test]
fn an_answer_shorter_than_its_stub_stays() {
    let read = call("read_file", json!({"path": "a.rs"}));
    let mut items = old_call(read);
    items[1] = Item::output("call", "x\n");
    let kept =
        truncate_with_file_awareness(&items, &FileTracker::new(), &Dialects::builtin(), &TruncationConfig::default());
    assert_eq!(kept, items);
}

#[test]
fn the_last_access_is_the_newest_whatever_the_order() {
    let mut tracker = FileTracker::new();
    tracker.track_file_access("a.rs", 7, 70, "new");
    tracker.track_file_modification("a.rs", 3);
    let file = tracker.get("a.rs").unwrap();
    assert_eq!((file.last_access_step, file.was_modified), (7, true));
    assert!(tracker.was_modified("a.rs") && !tracker.was_modified("b.rs"));
    assert!(tracker.is_file_stale("b.rs", 0, 100));
}

#[test]
fn recent_files_are_listed_newest_first() {
    let mut tracker = FileTracker::new();
    tracker.track_file_access("old.rs", 1, 0, "");
    tracker.track_file_access("b.rs", 6, 0, "");
    tracker.track_file_access("a.rs", 6, 0, "");
    tracker.track_file_modification("new.rs", 8);
    let paths: Vec<String> = tracker.recent_files(9, 5).into_iter().map(|file| file.path).collect();
    assert_eq!(paths, ["new.rs", "a.rs", "b.rs"]);
}

#[test]
fn a_reference_keeps_a_preview_and_counts_lines() {
    let mut tracker = FileTracker::new();
    tracker.track_file_access("a.rs", 2, 77, &"é\n".repeat(300));
    let file = tracker.get("a.rs").unwrap();
    assert_eq!((file.content_preview.chars().count(), file.line_count), (200, 300));
    assert_eq!((file.last_access_step, file.last_access_time_ms, file.was_modified), (2, 77, false));
}

#[test]
fn stub_and_hint_read_as_agreed() {
    assert_eq!(
        file_stub("a.rs", 3, "read_file"),
        "[File: a.rs (3 lines) - content truncated, use read_file to re-read]"
    );
    assert!(truncated_file_hint("a.rs", 4, 3, "view").contains("Last read: 4 steps ago"));
}
