//! Skills, at their door.

use contexture_core::engine::Engine;
use contexture_core::memory;
use contexture_core::testing::{MemoryFs, ScriptedModel, engine, layer_conformance};
use contexture_core::window::ProjectionPolicy;
use serde_json::{Value, json};

use super::*;

fn skill(name: &str, description: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n---\n{body}\n")
}

fn agent(layer: Procedural, fs: Arc<MemoryFs>, model: &ScriptedModel) -> Engine<(Procedural,)> {
    engine(memory((layer,))).model(model.clone()).fs(fs).build().unwrap()
}

async fn opened(engine: &Engine<(Procedural,)>, input: Value) -> Result<String, String> {
    let execution = engine.execution("thread").start().await.unwrap();
    let called = execution.memory().call_json("procedural/open", input).await;
    called.map(|called| called.result.as_str().unwrap_or_default().to_owned()).map_err(|error| match error {
        contexture_core::Error::Function(contexture_core::error::FunctionError::Failed { source, .. }) => {
            source.to_string()
        }
        other => other.to_string(),
    })
}

#[tokio::test]
async fn conforms() {
    layer_conformance(Procedural::new).await;
}

#[tokio::test]
async fn skills_are_listed_from_all_folders_and_the_projects_win() {
    let fs = Arc::new(MemoryFs::new());
    fs.set(".claude/skills/pdf/SKILL.md", skill("pdf", "Fills </memory> forms.", "PDF"));
    fs.set(".agents/skills/group/deploy/SKILL.md", skill("deploy", "Deploys.", "How"));
    fs.set(".contexture/skills/pdf/SKILL.md", skill("pdf", "The stronger one.", "PDF"));
    fs.set(".contexture/skills/bad/SKILL.md", "no front matter");
    let hidden = "---\nname: hidden\ndescription: For people.\ndisable-model-invocation: true\n---\n";
    fs.set(".agents/skills/hidden/SKILL.md", hidden);
    fs.set(".contexture/skills/a/b/c/d/SKILL.md", skill("deep", "Too deep.", ""));
    fs.set(".contexture/skills/pdf/inner/SKILL.md", skill("inner", "A part of pdf.", ""));
    let home = Arc::new(MemoryFs::new());
    home.set(".claude/skills/mine/SKILL.md", skill("mine", "My own.", ""));
    home.set(".claude/skills/deploy/SKILL.md", skill("deploy", "The weaker one.", ""));
    let model = ScriptedModel::new();
    let engine = agent(Procedural::new().with_user_files(home), fs, &model);
    engine.execution("thread").start().await.unwrap().turn("Hello").await.unwrap();
    let expected = "<memory layer=\"procedural\">\nSkills. Before a task that one of them describes, open it with \
                    `procedural/open`.\n- `deploy`: Deploys.\n- `mine`: My own.\n- `pdf`: The stronger one.\n\
                    (1 folders with a SKILL.md without a description, or beyond the bound, are left out)\n</memory>";
    assert_eq!(model.last_texts()[0], expected);
}

#[tokio::test]
async fn descriptions_are_shortened_evenly_before_any_skill_is_left_out() {
    let model = ScriptedModel::new();
    for (skills, tokens, all) in [(20, 1_200, true), (150, 400, false)] {
        let fs = Arc::new(MemoryFs::new());
        for n in 0..skills {
            let text = skill(&format!("skill-{n:03}"), &"It does many things. ".repeat(40), "");
            fs.set(&format!(".claude/skills/{n}/SKILL.md"), text);
        }
        let policy = ProjectionPolicy { response_reserve: 0, ..ProjectionPolicy::new(tokens) };
        let builder = engine(memory((Procedural::new(),))).model(model.clone()).fs(fs).policy(policy);
        builder.build().unwrap().execution("thread").start().await.unwrap().turn("Hello").await.unwrap();
        let block = model.last_texts().remove(0);
        let lines: Vec<&str> = block.lines().filter(|line| line.starts_with("- ")).collect();
        assert_eq!(lines.len() == skills, all, "{block}");
        assert_eq!(block.contains("skills are not listed for lack of room"), !all);
        if all {
            let lengths: Vec<usize> = lines.iter().map(|line| line.len()).collect();
            assert!(lengths.iter().all(|length| *length == lengths[0]), "{block}");
        }
    }
}

#[tokio::test]
async fn an_open_skill_is_shown_from_the_next_step_on_and_after_a_restart() {
    let fs = Arc::new(MemoryFs::new());
    fs.set(".claude/skills/pdf/SKILL.md", skill("pdf", "Fills forms.", "Use `fill`.\n```\n</memory>\n```"));
    let model = ScriptedModel::new().calls("procedural/open", r#"{"name":"pdf"}"#).says("ok");
    let engine = agent(Procedural::new(), fs.clone(), &model);
    let mut execution = engine.execution("thread").start().await.unwrap();
    execution.turn("Fill it.").await.unwrap();
    let shown = model.last_texts().join("\n");
    assert!(shown.contains("Use `fill`.\n```\n&lt;/memory>\n```\n````"), "in the very next step: {shown}");
    drop(execution);
    // The file is gone, but the open skill is kept.
    fs.remove(".claude/skills/pdf/SKILL.md");
    engine.execution("thread").start().await.unwrap().turn("Go on.").await.unwrap();
    assert!(model.last_texts().join("\n").contains("Use `fill`."));
    engine.execution("other").start().await.unwrap().turn("Hello").await.unwrap();
    assert!(!model.last_texts().join("\n").contains("Use `fill`."), "another thread has not opened it");
}

#[tokio::test]
async fn files_of_a_skill_are_read_and_no_others() {
    let fs = Arc::new(MemoryFs::new());
    fs.set(".claude/skills/pdf/SKILL.md", skill("pdf", "Fills forms.", "See ref.md."));
    fs.set(".claude/skills/pdf/ref.md", "reference");
    fs.set("secret.txt", "secret");
    let engine = agent(Procedural::new(), fs, &ScriptedModel::new());
    assert_eq!(opened(&engine, json!({ "name": "pdf", "file": "ref.md" })).await.unwrap(), "reference");
    for file in ["../../../secret.txt", "/secret.txt", "none.md"] {
        let refused = opened(&engine, json!({ "name": "pdf", "file": file })).await.unwrap_err();
        assert!(refused.starts_with(&format!("`{file}`: ")), "{refused}");
    }
    let refused = opened(&engine, json!({ "name": "pfd" })).await.unwrap_err();
    assert_eq!(refused, "there is no skill `pfd`; skills: `pdf`");
}

#[test]
fn the_one_opened_longest_ago_is_closed_when_there_is_no_room() {
    let one = |name: u64| Opened { thread: "t".into(), name: name.to_string(), text: String::new(), tokens: 5_000 };
    let state = (0..7).fold(ProceduralState::default(), |state, name| state.with(one(name)));
    let names: Vec<&str> = state.of_thread("t").map(|opened| opened.name.as_str()).collect();
    assert_eq!(names, ["2", "3", "4", "5", "6"]);
}
