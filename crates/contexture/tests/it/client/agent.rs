//! The example of a coding agent, against a provider over a real socket.

use std::path::Path;
use std::process::Output;

use serde_json::json;

use super::provider::{Provider, Reply};
use crate::examples::path_of;

/// Runs the example in a project, while the provider goes on.
async fn run(project: &Path, provider: &Provider, task: &str) -> Output {
    let mut command = tokio::process::Command::new(path_of("coding_agent"));
    command.arg(task).current_dir(project).env("CONTEXTURE_CHAT_URL", format!("{}/v1", provider.url));
    for name in ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "CONTEXTURE_MODEL"] {
        command.env_remove(name);
    }
    command.output().await.unwrap()
}

#[tokio::test]
async fn the_example_does_a_task_and_goes_on_in_the_next_run() {
    let project = tempfile::tempdir().unwrap();
    std::fs::create_dir(project.path().join("src")).unwrap();
    std::fs::write(project.path().join("AGENTS.md"), "Be kind to whales.\n").unwrap();
    std::fs::write(project.path().join("src/lib.rs"), "pub fn one() -> u32 {\n    2\n}\n").unwrap();
    let edit = json!({ "path": "src/lib.rs", "old_string": "    2", "new_string": "    1" });
    let provider = Provider::start(vec![
        Reply::calls(&[("c1", "read_file", json!({ "path": "src/lib.rs" }))]),
        Reply::calls(&[
            ("c2", "edit_file", edit),
            ("c3", "execute_bash", json!({ "command": "grep -c '    1' src/lib.rs" })),
        ]),
        Reply::says("Fixed."),
        Reply::says("As I said."),
    ])
    .await;
    let first = run(project.path(), &provider, "fix #src/lib.rs").await;
    let (shown, errors) = (String::from_utf8_lossy(&first.stdout), String::from_utf8_lossy(&first.stderr));
    assert!(first.status.success(), "{errors}");
    for part in ["[read_file]", "[edit_file]", "[execute_bash]", "Fixed.", "tokens in"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(
        std::fs::read_to_string(project.path().join("src/lib.rs")).unwrap(),
        "pub fn one() -> u32 {\n    1\n}\n"
    );
    let bodies = provider.bodies();
    let began = bodies[0].to_string();
    assert!(began.contains("Be kind to whales.") && began.contains("pub fn one()"), "{began}");
    for tool in ["plan__do", "working-memory__update", "execute_bash"] {
        assert!(began.contains(&format!("\"{tool}\"")), "{tool}: {}", bodies[0]["tools"]);
    }
    let second = run(project.path(), &provider, "what did you do?").await;
    assert!(second.status.success(), "{}", String::from_utf8_lossy(&second.stderr));
    let last = provider.bodies().pop().unwrap().to_string();
    assert!(last.contains("Fixed.") && last.contains("what did you do?"), "{last}");
}
