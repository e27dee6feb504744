//! The memory tool and the states of tools, at their door.

use contexture_core::engine::Execution;
use contexture_core::memory;
use contexture_core::testing::{ScriptedModel, engine, layer_conformance};

use super::*;

async fn started(layer: ToolMemory, model: &ScriptedModel) -> Execution<(ToolMemory,)> {
    let engine = engine(memory((layer,))).model(model.clone()).build().unwrap();
    engine.execution("thread").resource("ada").start().await.unwrap()
}

async fn call(execution: &Execution<(ToolMemory,)>, name: &str, input: Value) -> Result<String, String> {
    let called = execution.memory().call_json(&format!("tool-memory/{name}"), input).await;
    called.map(|called| called.result.as_str().unwrap_or_default().to_owned()).map_err(|error| match error {
        contexture_core::Error::Function(contexture_core::error::FunctionError::Failed { source, .. }) => {
            source.to_string()
        }
        other => other.to_string(),
    })
}

#[tokio::test]
async fn conforms() {
    layer_conformance(ToolMemory::new).await;
    layer_conformance(|| ToolMemory::new().with_scope(MemoryScope::Execution)).await;
}

#[tokio::test]
async fn the_six_commands_do_what_models_expect() {
    let execution = started(ToolMemory::new(), &ScriptedModel::new()).await;
    let steps = [
        (
            json!({ "command": "create", "path": "/memories/a.md", "file_text": "one\ntwo\nthree\n" }),
            "File created successfully at: /memories/a.md",
        ),
        (
            json!({ "command": "view", "path": "/memories/a.md" }),
            "Here's the content of /memories/a.md with line numbers:\n     1\tone\n     2\ttwo\n     3\tthree",
        ),
        (
            json!({ "command": "view", "path": "/memories/a.md", "view_range": [2, -1] }),
            "Here's the content of /memories/a.md with line numbers:\n     2\ttwo\n     3\tthree",
        ),
        (
            json!({ "command": "str_replace", "path": "/memories/a.md", "old_str": "two", "new_str": "2" }),
            "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n     1\tone\n     \
             2\t2\n     3\tthree",
        ),
        (
            json!({ "command": "insert", "path": "/memories/a.md", "insert_line": 0, "insert_text": "zero" }),
            "The file /memories/a.md has been edited.",
        ),
        (
            json!({ "command": "rename", "old_path": "/memories/a.md", "new_path": "/memories/b/c.md" }),
            "Successfully renamed /memories/a.md to /memories/b/c.md",
        ),
        (
            json!({ "command": "view", "path": "/memories" }),
            "Here're the files and directories up to 2 levels deep in /memories:\n17B\t/memories\n17B\t/memories/b\n\
             17B\t/memories/b/c.md",
        ),
        (json!({ "command": "delete", "path": "/memories/b" }), "Successfully deleted /memories/b"),
        (
            json!({ "command": "view", "path": "/memories/" }),
            "Here're the files and directories up to 2 levels deep in /memories:\n0B\t/memories",
        ),
    ];
    for (input, expected) in steps {
        assert_eq!(call(&execution, "memory", input.clone()).await.as_deref(), Ok(expected), "{input}");
    }
}

#[tokio::test]
async fn what_is_wrong_is_refused_and_changes_nothing() {
    let execution = started(ToolMemory::new(), &ScriptedModel::new()).await;
    call(&execution, "memory", json!({ "command": "create", "path": "/memories/a", "file_text": "x x" }))
        .await
        .unwrap();
    let refused = [
        (json!({ "command": "view", "path": "/etc/passwd" }), "must be `/memories` or begin with"),
        (json!({ "command": "view", "path": "/memories/../etc" }), "not allowed"),
        (json!({ "command": "view", "path": "/memoriesx" }), "must be `/memories`"),
        (json!({ "command": "create", "path": "/memories/%2e%2e/x", "file_text": "" }), "not allowed"),
        (json!({ "command": "create", "path": "/memories", "file_text": "" }), "the directory itself"),
        (json!({ "command": "create", "path": "/memories/a", "file_text": "" }), "File /memories/a already exists"),
        (json!({ "command": "create", "path": "/memories//a", "file_text": "" }), "File /memories/a already exists"),
        (json!({ "command": "create", "path": "/memories/a/b", "file_text": "" }), "/memories/a is a file"),
        (
            json!({ "command": "create", "path": "/memories/big", "file_text": "x".repeat(MAX_FILE_BYTES + 1) }),
            "bytes, more than",
        ),
        (json!({ "command": "str_replace", "path": "/memories/a", "old_str": "x", "new_str": "" }), "more than once"),
        (json!({ "command": "str_replace", "path": "/memories/a", "old_str": "y", "new_str": "" }), "verbatim"),
        (json!({ "command": "insert", "path": "/memories/a", "insert_line": 9, "insert_text": "" }), "within 0 to 1"),
        (json!({ "command": "delete", "path": "/memories/none" }), "does not exist"),
        (json!({ "command": "rename", "old_path": "/memories/a", "new_path": "/memories/a" }), "already exists"),
        (json!({ "command": "dance" }), "command"),
        (json!({ "command": "view" }), "path"),
    ];
    for (input, expected) in refused {
        let told = call(&execution, "memory", input.clone()).await.unwrap_err();
        assert!(told.contains(expected), "{input}: {told}");
    }
    assert_eq!(json!(execution.memory().read(ToolMemory::FILES)), json!({ "/memories/a": "x x" }));
}

#[tokio::test]
async fn tools_keep_states_which_the_model_sees_and_cannot_set() {
    let schema = json!({ "type": "object", "properties": { "page": { "type": "integer" } } });
    let layer = ToolMemory::new().declare("browser", &schema).unwrap();
    let model = ScriptedModel::new()
        .calls("tool-memory/set_state", r#"{"tool":"browser","state":{"page":9}}"#)
        .calls("tool-memory/memory", r#"{"command":"create","path":"/memories/n.md","file_text":"hi"}"#)
        .says("ok");
    let mut execution = started(layer, &model).await;
    call(&execution, "set_state", json!({ "tool": "browser", "state": { "page": 3 } })).await.unwrap();
    let refused =
        call(&execution, "set_state", json!({ "tool": "browser", "state": { "page": "x" } })).await.unwrap_err();
    assert_eq!(refused, "`page` is a string, expected an integer");
    assert!(
        call(&execution, "set_state", json!({ "tool": "other", "state": 1 })).await.unwrap_err().contains("declared")
    );
    execution.turn("Go").await.unwrap();
    execution.turn("On").await.unwrap();
    let shown = model.last_texts().join("\n");
    assert!(
        shown.contains("- state of `browser`: {\"page\":3}") && shown.contains("- `/memories/n.md` (2 bytes)"),
        "{shown}"
    );
    assert!(shown.contains("the states of tools are set by the tools"), "{shown}");
}

#[tokio::test]
async fn children_bring_back_their_own_files() {
    let create =
        |name: &str, text: &str| json!({ "command": "create", "path": format!("/memories/{name}"), "file_text": text });
    for scope in [MemoryScope::Execution, MemoryScope::Resource] {
        let mut parent = started(ToolMemory::new().with_scope(scope), &ScriptedModel::new()).await;
        call(&parent, "memory", create("shared", "0")).await.unwrap();
        let (one, two) = (parent.spawn().await.unwrap(), parent.spawn().await.unwrap());
        call(&one, "memory", create("one", "1")).await.unwrap();
        let change = json!({ "command": "str_replace", "path": "/memories/shared", "old_str": "0", "new_str": "2" });
        call(&two, "memory", change).await.unwrap();
        parent.join(two, Value::Null).await.unwrap();
        parent.join(one, Value::Null).await.unwrap();
        let files = json!(parent.memory().read(ToolMemory::FILES));
        assert_eq!(files, json!({ "/memories/one": "1", "/memories/shared": "2" }), "{scope:?}");
    }
}

#[tokio::test]
async fn secrets_are_not_kept_and_the_model_is_told() {
    let execution = started(ToolMemory::new(), &ScriptedModel::new()).await;
    let key = format!("ghp_{}", "a1B2".repeat(9));
    for input in [
        json!({ "command": "create", "path": "/memories/a", "file_text": format!("one {key}\ntwo\n") }),
        json!({ "command": "str_replace", "path": "/memories/a", "old_str": "two", "new_str": format!("2 {key}") }),
        json!({ "command": "insert", "path": "/memories/a", "insert_line": 0, "insert_text": key }),
    ] {
        let told = call(&execution, "memory", input).await.unwrap();
        assert!(told.ends_with("since keys and passwords are not kept."), "{told}");
    }
    let told = call(&execution, "memory", json!({ "command": "view", "path": "/memories/a" })).await.unwrap();
    assert!(!told.contains("ghp_") && told.matches("[redacted: GitHub token]").count() == 3, "{told}");
}

/// Two processes that edit one file: what was acknowledged to either is there in the end.
#[tokio::test]
async fn two_processes_lose_no_edit_of_a_file() {
    let store: Arc<dyn contexture_core::StorageAdapter> = Arc::new(contexture_core::MemoryStore::new());
    let engine = || engine(memory((ToolMemory::new(),))).store(store.clone()).build().unwrap();
    let (one, two) = (engine(), engine());
    let start = async |engine: &contexture_core::engine::Engine<(ToolMemory,)>, thread: &'static str| {
        engine.execution(thread).resource("ada").start().await.unwrap()
    };
    let first = start(&one, "one").await;
    let lines = json!({ "command": "create", "path": "/memories/a", "file_text": "start\nend\n" });
    call(&first, "memory", lines).await.unwrap();
    first.complete().await.unwrap();
    for round in 0..10 {
        // Both are open before either writes, so that one of them always meets a conflict.
        let (ours, theirs) = (start(&one, "one").await, start(&two, "two").await);
        for (execution, by) in [(&ours, "ours"), (&theirs, "theirs")] {
            let text = format!("{by} {round}");
            let insert = json!({ "command": "insert", "path": "/memories/a", "insert_line": 0, "insert_text": text });
            call(execution, "memory", insert).await.unwrap();
            let new = format!("{by} {round}\nend");
            let replace = json!({ "command": "str_replace", "path": "/memories/a", "old_str": "end", "new_str": new });
            call(execution, "memory", replace).await.unwrap();
        }
        theirs.complete().await.unwrap();
        ours.complete().await.unwrap();
    }
    let last = start(&two, "two").await;
    let told = call(&last, "memory", json!({ "command": "view", "path": "/memories/a" })).await.unwrap();
    for line in (0..10).flat_map(|round| ["ours", "theirs"].map(|by| format!("{by} {round}"))) {
        assert_eq!(told.lines().filter(|other| other.ends_with(&format!("\t{line}"))).count(), 2, "{line}: {told}");
    }
}
