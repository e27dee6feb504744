//! The pages in `docs/reference/layers`, made from the manual pages on top of the layers' files, and the table in `docs/library.md`.
//!
//! `UPDATE_DOCS=1 cargo test -p contexture --test it layer_docs` writes them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use contexture::engine::Execution;
use contexture::layer::BudgetConfig;
use contexture::layers::steering::Pattern;
use contexture::layers::*;
use contexture::memory::{MemoryConfig, memory};
use contexture::testing::{MemoryFs, ScriptedModel, engine};
use serde_json::{Value, json};

use crate::wait;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares a text with its file, or writes the file if that is asked for.
#[track_caller]
fn check_file(path: &str, text: &str) {
    let file = root().join(path);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
    }
    let kept = fs::read_to_string(&file).unwrap_or_default();
    assert!(
        text == kept,
        "{path} is not what it is made from; UPDATE_DOCS=1 cargo test -p contexture --test it layer_docs"
    );
}

/// The file of a layer: in the crate of what outlives a conversation, or in this one.
fn file_of(id: &str) -> String {
    let name = id.replace('-', "_");
    let files = ["contexture-memory", "contexture"].map(|of| format!("crates/{of}/src/layers/{name}.rs"));
    files.into_iter().find(|file| root().join(file).exists()).unwrap_or_else(|| panic!("`{id}` has no file"))
}

/// The manual page on top of a layer's file, as Markdown.
fn manual(id: &str) -> String {
    let source = fs::read_to_string(root().join(file_of(id))).unwrap();
    let lines: Vec<&str> = source.lines().map_while(|line| line.strip_prefix("//!")).collect();
    let mut page = String::new();
    for line in lines.iter().map(|line| line.strip_prefix(' ').unwrap_or(line)) {
        // Lines of an example that only its test needs.
        if !line.starts_with("# ") && line != "#" {
            page.push_str(line);
            page.push('\n');
        }
    }
    without_links(&page)
}

/// Links of rustdoc lead nowhere here: `[`X`](path)` and `[`X`]` become `X` in code.
fn without_links(page: &str) -> String {
    let mut text = String::new();
    let mut rest = page;
    while let Some(at) = rest.find("[") {
        let (before, link) = rest.split_at(at);
        text.push_str(before);
        let Some(end) = link.find(']').filter(|end| !link[..*end].contains('\n') && !link.starts_with("[[")) else {
            text.push('[');
            rest = &link[1..];
            continue;
        };
        let (name, after) = (&link[1..end], &link[end + 1..]);
        let target = after.strip_prefix('(').and_then(|target| target.split_once(')'));
        let is_rust =
            name.starts_with('`') || target.is_some_and(|(target, _)| target.contains("::") || target == "self");
        match (is_rust, target) {
            (true, Some((_, after))) => {
                text.push_str(name);
                rest = after;
            }
            (true, None) => {
                text.push_str(name);
                rest = after;
            }
            (false, _) => {
                text.push('[');
                rest = &link[1..];
            }
        }
    }
    text.push_str(rest);
    text
}

/// A layer with something to show, and the calls that make it so.
struct Shown {
    id: &'static str,
    add: fn(MemoryConfig<()>) -> MemoryConfig<()>,
    calls: fn() -> Vec<(&'static str, Value)>,
}

const SHOWN: &[Shown] = &[
    Shown {
        id: "reminder",
        add: |memory| {
            let every = Duration::from_secs(3_600);
            memory.with_layer(
                Reminder::new()
                    .every_turns("tests", 1, "Run the tests before you go on.")
                    .every("break", every, "Rest."),
            )
        },
        calls: Vec::new,
    },
    Shown {
        id: "temporal",
        add: |memory| memory.with_layer(Temporal::new()),
        calls: || vec![("temporal/add", json!({ "text": "The release is planned", "at": "2026-01-09" }))],
    },
    Shown {
        id: "steering",
        add: |memory| {
            let push = Pattern::deny("push", "Ask the user first.").command("git push*");
            let style = Pattern::guide("lock", "Run `cargo update` instead.").path("Cargo.lock");
            memory.with_layer(Steering::new().pattern(push).pattern(style))
        },
        calls: Vec::new,
    },
    Shown {
        id: "working-memory",
        add: |memory| memory.with_layer(WorkingMemory::new()),
        calls: || vec![("working-memory/update", json!({ "text": "The user is Ada. She wants short answers." }))],
    },
    Shown { id: "instructions", add: |memory| memory.with_layer(Instructions::new()), calls: Vec::new },
    Shown {
        id: "task-state",
        add: |memory| memory.with_layer(TaskState::new()),
        calls: || {
            vec![
                ("task-state/checkpoint", json!({ "name": "the parser works", "note": "next is the printer" })),
                (
                    "task-state/record_artifact",
                    json!({ "name": "report", "location": "docs/report.md", "note": "a draft" }),
                ),
                ("task-state/set_task_data", json!({ "set": { "port": 8080 } })),
            ]
        },
    },
    Shown {
        id: "tool-memory",
        add: |memory| memory.with_layer(ToolMemory::new()),
        calls: || {
            let text = "# What I learnt\n- The tests need a database.\n";
            vec![(
                "tool-memory/memory",
                json!({ "command": "create", "path": "/memories/notes.md", "file_text": text }),
            )]
        },
    },
    Shown {
        id: "plan",
        add: |memory| memory.with_layer(Plan::new()),
        calls: || {
            let steps = json!([
                { "text": "Find why the login fails" }, { "text": "Mend it", "after": ["1"] },
                { "text": "Write a test first", "under": "2" }, { "text": "Release", "after": ["2"] },
            ]);
            vec![
                ("plan/propose", json!({ "goal": "The login works again", "steps": steps })),
                ("plan/approve", json!({})),
                ("plan/update", json!({ "step": "1", "status": "done", "note": "the cookie has expired" })),
            ]
        },
    },
    Shown {
        id: "entity",
        add: |memory| memory.with_layer(Entity::new()),
        calls: || {
            vec![
                (
                    "entity/remember",
                    json!({ "text": "Ada lives in Paris.", "entity": "user", "attribute": "lives in", "value": "Paris" }),
                ),
                ("entity/remember", json!({ "text": "The app uses SQLite.", "entity": "project" })),
            ]
        },
    },
    Shown {
        id: "observations",
        add: |memory| memory.with_layer(Observations::new()),
        calls: || {
            let text = "The release was moved to May, because the tests were slow.";
            vec![("observations/remember", json!({ "text": text, "entity": "project" }))]
        },
    },
    Shown {
        id: "procedural",
        add: |memory| memory.with_layer(Procedural::new()),
        calls: || vec![("procedural/open", json!({ "name": "release" }))],
    },
];

fn files() -> Arc<MemoryFs> {
    let fs = MemoryFs::new();
    fs.set("AGENTS.md", "- Run `make check` before you commit.\n- No new dependencies.\n");
    fs.set("CLAUDE.md", "See @docs/style.md.\n");
    fs.set("docs/style.md", "Short functions, plain words.\n");
    fs.set(".claude/skills/release/SKILL.md", "---\nname: release\ndescription: How a release is made. Use it before tagging.\n---\n1. Update the changelog.\n2. Tag it.\n");
    fs.set(".claude/plugins/db/skills/query/SKILL.md", "---\nname: query\ndescription: Asks the database.\n---\n");
    fs.set(".claude/skills/pdf/SKILL.md", "---\nname: pdf\ndescription: Fills in forms.\n---\nUse `fill`.\n");
    Arc::new(fs)
}

/// The block of a layer as a model would read it.
fn block(shown: &Shown) -> String {
    wait(async {
        let model = ScriptedModel::new();
        let engine = engine((shown.add)(memory(()))).model(model.clone()).fs(files()).build().unwrap();
        let mut execution: Execution<()> = engine.execution("thread").start().await.unwrap();
        for (function, input) in (shown.calls)() {
            execution.memory().call_json(function, input).await.unwrap();
        }
        execution.turn("Go on.").await.unwrap();
        let texts = model.last_texts();
        texts
            .into_iter()
            .find(|text| text.starts_with("<memory"))
            .unwrap_or_else(|| panic!("{} shows nothing", shown.id))
    })
}

fn page(layer: &BuiltIn) -> String {
    let id = layer.id.as_str();
    let manual = manual(id);
    let (_, rest) = manual.split_once('\n').unwrap();
    let mut page = format!("# `{id}`\n\nThis page is made from the top of `{}`; a test says how.\n\n", file_of(id));
    page.push_str(&format!("{}\n{rest}", sentence(layer.says)));
    if let Some(shown) = SHOWN.iter().find(|shown| shown.id == id) {
        page.push_str(&format!("\n## What the model reads\n\n````text\n{}\n````\n", block(shown)));
    }
    page
}

fn sentence(says: &str) -> String {
    let (first, rest) = says.split_at(1);
    format!("{}{rest}.", first.to_uppercase())
}

#[test]
fn every_layer_has_a_page() {
    for layer in built_in() {
        check_file(&format!("docs/reference/layers/{}.md", layer.id), &page(&layer));
    }
    let files = fs::read_dir(root().join("docs/reference/layers")).unwrap().count();
    assert_eq!(files, built_in().len(), "a page of a layer that is gone");
}

#[test]
fn every_manual_page_says_what_the_layer_says() {
    for layer in built_in().iter().filter(|layer| SHOWN.iter().any(|shown| shown.id == layer.id.as_str())) {
        let manual = manual(layer.id.as_str());
        assert!(manual.starts_with(&format!("`{}`: {}.\n", layer.id, layer.says)), "{}", layer.id);
        assert!(manual.contains(&format!("| slot | {}", layer.slot.0)), "{}", layer.id);
        assert!(manual.contains(&format!("| scope | {}", layer.scope.as_str())), "{}", layer.id);
        if let Some(max) = layer.budget.max() {
            let digits = max.to_string();
            let spaced = match digits.len() {
                0..=3 => digits,
                len => format!("{} {}", &digits[..len - 3], &digits[len - 3..]),
            };
            assert!(manual.contains(&format!("{spaced} tokens")), "{} says another budget than {spaced}", layer.id);
        }
        for tool in &layer.tools {
            assert!(manual.contains(&format!("`{tool}`")), "{} does not name {tool}", layer.id);
        }
    }
}

fn budget(budget: BudgetConfig) -> String {
    match budget {
        BudgetConfig::Cap(0) => "–".to_owned(),
        BudgetConfig::Cap(max) | BudgetConfig::Range { min: 0, max } => format!("at most {max}"),
        BudgetConfig::Range { min, max } => format!("{min} to {max}"),
        BudgetConfig::Auto => "auto".to_owned(),
    }
}

#[test]
fn the_readme_lists_every_layer() {
    let mut table = "| layer | slot | scope | budget | what it is |\n| --- | --- | --- | --- | --- |\n".to_owned();
    for layer in built_in() {
        let id = &layer.id;
        let row = format!(
            "| [`{id}`](reference/layers/{id}.md) | {} | {} | {} | {} |\n",
            layer.slot.0,
            layer.scope.as_str(),
            budget(layer.budget),
            layer.says
        );
        table.push_str(&row);
    }
    check_table("docs/library.md", "layers", &table);
}

/// Compares a table with what is between two marks on a page, or writes it there.
#[track_caller]
fn check_table(path: &str, mark: &str, table: &str) {
    let page = fs::read_to_string(root().join(path)).unwrap();
    let (begin, end) = (format!("<!-- {mark} -->\n"), format!("<!-- /{mark} -->"));
    let (before, rest) = page.split_once(&begin).expect("a mark before the table");
    let (_, after) = rest.split_once(&end).expect("a mark after the table");
    check_file(path, &format!("{before}{begin}{table}{end}{after}"));
}

/// A field of a struct: its name, its type, and the first sentence about it.
type Field = (String, String, String);

/// The public fields of a struct, from its source.
fn fields_of(source: &str, name: &str) -> Vec<Field> {
    let start = source.find(&format!("pub struct {name}")).unwrap_or_else(|| panic!("there is no `{name}`"));
    let body = &source[start..];
    let body = &body[body.find(" {\n").unwrap() + 3..body.find("\n}").unwrap()];
    let (mut fields, mut about) = (Vec::new(), String::new());
    for line in body.lines().map(str::trim) {
        if let Some(said) = line.strip_prefix("///") {
            about.push_str(said);
        } else if let Some((name, of)) = line.strip_prefix("pub ").and_then(|field| field.split_once(": ")) {
            let said = without_links(about.trim()).replace('|', "\\|").trim().to_owned();
            fields.push((name.to_owned(), of.trim_end_matches(',').to_owned(), said));
            about.clear();
        }
    }
    assert!(!fields.is_empty(), "`{name}` has no fields");
    fields
}

/// The hooks in the order in which a conversation meets them, each with its parameters.
const HOOKS: [(&str, &str); 11] = [
    ("init", "life/InitParams"),
    ("on_item_append", "append/OnItemAppendParams"),
    ("recall", "recall/RecallParams"),
    ("project_history", "history/ProjectHistoryParams"),
    ("after_model_call", "steering/AfterModelCallParams"),
    ("store", "life/StoreParams"),
    ("before_tool_call", "steering/BeforeToolCallParams"),
    ("on_spawn", "children/SpawnParams"),
    ("on_return", "children/ReturnParams"),
    ("on_complete", "life/CompleteParams"),
    ("dispose", "life/DisposeParams"),
];

fn core(path: &str) -> String {
    fs::read_to_string(root().join("crates/contexture-core/src/layer").join(path)).unwrap()
}

#[test]
fn the_guide_lists_what_every_hook_gets() {
    let mut table = "| hook | field | type | what it is |\n| --- | --- | --- | --- |\n".to_owned();
    for (hook, of) in HOOKS {
        let (file, name) = of.split_once('/').unwrap();
        for (at, (field, of, about)) in fields_of(&core(&format!("hooks/{file}.rs")), name).into_iter().enumerate() {
            let hook = if at == 0 { format!("`{hook}`") } else { String::new() };
            table.push_str(&format!("| {hook} | `{field}` | `{of}` | {about} |\n"));
        }
    }
    check_table("docs/reference/hooks.md", "hooks", &table);
    // No hook is missing.
    let all: usize = fs::read_dir(root().join("crates/contexture-core/src/layer/hooks"))
        .unwrap()
        .map(|file| fs::read_to_string(file.unwrap().path()).unwrap())
        .map(|source| source.lines().filter(|line| line.starts_with("pub struct ") && line.contains("Params<")).count())
        .sum();
    assert_eq!(all, HOOKS.len());
}

#[test]
fn the_guide_lists_the_context_of_hooks() {
    let mut table = "| field of `ctx` | type | what it is |\n| --- | --- | --- |\n".to_owned();
    let source = core("context.rs");
    for (field, of, about) in ["ContextData", "ExecutionContext"].iter().flat_map(|name| fields_of(&source, name)) {
        table.push_str(&format!("| `{field}` | `{of}` | {about} |\n"));
    }
    check_table("docs/reference/hooks.md", "context", &table);
}
