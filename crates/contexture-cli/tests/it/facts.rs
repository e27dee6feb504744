//! `contexture memory` over facts: show, why, edit, undo, forget, stats, export and import.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use contexture::facts::{Edit, Place, Remembered};
use contexture::item::Item;
use contexture::layers::{Entity, Observations};
use contexture::memory::memory;
use contexture::store::SqliteStore;
use contexture::testing::ScriptedModel;
use serde_json::{Value, json};
use tempfile::{TempDir, tempdir};

use crate::program::{Run, run_in};
use crate::snapshots::{check_file, told};

/// 2026-01-01.
const NEW_YEAR_MS: u64 = 1_767_225_600_000;

fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("it works").block_on(work)
}

fn remembered(place: &Path) -> Remembered {
    Remembered::new(Arc::new(SqliteStore::open(place.join("agent.db")).expect("it works")))
}

/// A store with facts of a user and of a project, told by hand at the beginning of 2026.
pub(crate) fn store() -> TempDir {
    let place = tempdir().expect("it works");
    wait(async {
        let remembered = remembered(place.path());
        let ada = Place::new("entity", "resource", "ada");
        let app = Place::new("entity-project", "resource.project", "/srv/app");
        let tell = async |place: &Place, day: u64, text: &str, entity: &str, attribute: &str, value: &str| {
            let edit = Edit {
                text: Some(text.to_owned()),
                entity: Some(entity.to_owned()),
                attribute: Some(attribute.to_owned()),
                value: Some(value.to_owned()),
            };
            let at_ms = NEW_YEAR_MS + day * 86_400_000;
            remembered.change(place, |facts| facts.tell(edit.clone(), at_ms)).await.expect("it works");
        };
        tell(&ada, 0, "Ada lives in Paris.", "user", "lives in", "Paris").await;
        tell(&ada, 3, "Ada lives in Lisbon.", "user", "lives in", "Lisbon").await;
        tell(&ada, 4, "Ada likes \u{1b}[31mgreen tea.", "user", "likes", "green tea").await;
        tell(&app, 5, "The app uses SQLite.", "project", "database", "SQLite").await;
    });
    place
}

fn memory_run(place: &TempDir, arguments: &[&str]) -> Run {
    let all: Vec<&str> = ["memory"].iter().chain(arguments).chain(&["--store", "agent.db"]).copied().collect();
    run_in(place.path(), &all, "")
}

/// Everything that the files of a store have, also what was deleted and not overwritten.
pub(crate) fn on_disk(place: &Path, store: &str) -> String {
    let files = ["", "-wal", "-shm"].map(|end| fs::read(place.join(format!("{store}{end}"))).unwrap_or_default());
    String::from_utf8_lossy(&files.concat()).into_owned()
}

#[track_caller]
fn good(place: &TempDir, arguments: &[&str]) -> String {
    let run = memory_run(place, arguments);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{arguments:?}");
    run.stdout
}

fn parsed(place: &TempDir, arguments: &[&str]) -> Value {
    serde_json::from_str(&good(place, arguments)).expect("it works")
}

/// The current fact that says so.
fn id_of(place: &TempDir, text: &str) -> String {
    let shown = parsed(place, &["show", "--json"]);
    let facts = shown["places"]
        .as_array()
        .expect("it works")
        .iter()
        .flat_map(|place| place["facts"].as_array().expect("it works").clone());
    let found: Vec<Value> = facts.filter(|fact| fact["text"].as_str().expect("it works").contains(text)).collect();
    let [fact] = found.as_slice() else { panic!("{text}: {found:?}") };
    fact["id"].as_str().expect("it works").to_owned()
}

#[test]
fn outputs_are_as_kept() {
    let place = store();
    let id = id_of(&place, "Lisbon");
    let mut text = String::new();
    for arguments in [&["show"][..], &["show", "--all", "--resource", "ada"], &["why", &id], &["stats"]] {
        let run = memory_run(&place, arguments);
        let all: Vec<&str> = ["memory"].iter().chain(arguments).copied().collect();
        text.push_str(&format!("{}\n", told(&all, &run)));
    }
    check_file("memory", &text);
}

#[test]
fn facts_are_shown_for_everyone_or_for_one() {
    let place = store();
    let all = good(&place, &["show"]);
    assert!(all.contains("entity of user ada") && all.contains("entity-project of project /srv/app"), "{all}");
    assert!(all.contains("2026-01-04") && !all.contains("Paris") && !all.contains('\u{1b}'), "{all}");
    assert!(good(&place, &["show", "--all"]).contains("2026-01-01 to 2026-01-04"));
    let one = good(&place, &["show", "--resource", "/srv/app", "--kind", "project"]);
    assert!(one.contains("SQLite") && !one.contains("Lisbon"), "{one}");
    assert_eq!(good(&place, &["show", "--resource", "bob"]), "nothing is remembered\n");
    assert_eq!(good(&place, &["show", "--thread", "ada"]), "nothing is remembered\n");
}

#[test]
fn a_fact_is_edited_undone_and_forgotten() {
    let place = store();
    let lisbon = id_of(&place, "Lisbon");
    let told = good(&place, &["edit", &lisbon[..5], "--text", "Ada lives in Porto.", "--value", "Porto"]);
    assert!(told.starts_with(&format!("{lisbon} is now ")), "{told}");
    let why = good(&place, &["why", &id_of(&place, "Porto")]);
    assert!(why.contains("replaced: Ada lives in Lisbon.") && why.contains("confirmed: yes"), "{why}");
    assert!(good(&place, &["undo"]).starts_with(&format!("undone: changed {lisbon} to ")));
    assert_eq!(id_of(&place, "Lisbon"), lisbon);
    assert_eq!(good(&place, &["forget", &lisbon]), "forgot 2 facts\n", "Paris was an older value");
    let json = good(&place, &["export", "--json"]);
    assert!(!json.contains("Lisbon") && !json.contains("Paris"), "{json}");
    let stored = on_disk(place.path(), "agent.db");
    assert!(stored.contains("green tea") && !stored.contains("Lisbon") && !stored.contains("Paris"));
    let stats = parsed(&place, &["stats", "--json", "--resource", "ada"]);
    assert_eq!((&stats["places"][0]["forgotten"], &stats["places"][0]["current"]), (&json!(2), &json!(1)));
}

#[test]
fn moving_a_fact_needs_a_confirmation() {
    let place = store();
    let sqlite = id_of(&place, "SQLite");
    let refused = memory_run(&place, &["edit", &sqlite, "--move-to", "ada"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("needs a confirmation\nhint: add --yes"), "{}", refused.stderr);
    let told = good(&place, &["edit", &sqlite, "--move-to", "ada", "--yes"]);
    assert!(told.ends_with(", entity of user ada\n"), "{told}");
    assert_eq!(good(&place, &["show", "--resource", "/srv/app"]), "nothing is remembered\n");
    assert!(good(&place, &["show", "--resource", "ada"]).contains("SQLite"));
}

#[test]
fn the_mirror_is_edited_with_an_editor_and_taken_over() {
    let place = store();
    let whose = ["--resource", "ada", "--layer", "entity"];
    let with = |words: &[&str]| good(&place, &words.iter().chain(&whose).copied().collect::<Vec<_>>());
    assert_eq!(with(&["export", "mirror"]), "2 facts in mirror\n");
    let folder = place.path().join("mirror");
    assert!(fs::read_to_string(folder.join("index.md")).unwrap().contains("[Ada lives in Lisbon.]("));
    let lisbon = folder.join(format!("{}.md", id_of(&place, "Lisbon")));
    let text = fs::read_to_string(&lisbon).unwrap();
    fs::write(&lisbon, text.replacen("'Lisbon'", "'Porto'", 1).replacen("in Lisbon.", "in Porto.", 1)).unwrap();
    fs::remove_file(folder.join(format!("{}.md", id_of(&place, "green tea")))).unwrap();
    fs::write(folder.join("cat.md"), "Ada has a cat.\n").unwrap();
    let told = with(&["import", "mirror"]);
    let kept = "1 fact without a file kept; --forget-missing forgets those that were exported\n";
    assert_eq!(told, format!("entity of user ada: 1 added, 1 changed, 0 forgotten\n{kept}"));
    let repeated = format!(
        "entity of user ada: 0 added, 0 changed, 0 forgotten\n{kept}2 facts kept that changed after the export\n"
    );
    assert_eq!(with(&["import", "mirror"]), repeated);
    assert!(!id_of(&place, "Porto").is_empty() && !id_of(&place, "cat").is_empty());
    assert_eq!(with(&["export", "mirror"]), "3 facts in mirror\n");
    assert!(!lisbon.exists(), "files of facts that are no longer true go");
    fs::remove_file(folder.join(format!("{}.md", id_of(&place, "cat")))).unwrap();
    fs::remove_file(folder.join("cat.md")).unwrap();
    let told = with(&["import", "mirror", "--forget-missing"]);
    assert_eq!(told, "entity of user ada: 0 added, 0 changed, 1 forgotten\n");
}

#[test]
fn mistakes_get_one_sentence_and_a_hint() {
    let place = store();
    fs::create_dir(place.path().join("other")).unwrap();
    fs::write(place.path().join("other/a.txt"), "x").unwrap();
    let cases: &[(&[&str], i32, &str, &str)] = &[
        (&["why", "zzz"], 1, "there is no fact `zzz`", "`contexture memory show` lists them"),
        (&["forget", "zzz"], 1, "there is no fact `zzz`", "`contexture memory show` lists them"),
        (&["why", ""], 2, "the name of the fact is empty", "`contexture memory show` lists them"),
        (&["forget", ""], 2, "the name of the fact is empty", "`contexture memory show` lists them"),
        (&["forget", " [] "], 2, "the name of the fact is empty", "`contexture memory show` lists them"),
        (&["edit", "", "--text", "x"], 2, "the name of the fact is empty", "`contexture memory show` lists them"),
        (&["undo", ""], 2, "the name of the fact is empty", "`contexture memory show` lists them"),
        (&["forget", "/memories/none"], 1, "there is no `/memories/none`", "`contexture memory show` lists them"),
        (&["edit", "zzz"], 2, "nothing is to be changed", "give --text"),
        (&["export", "out"], 2, "a folder is for one of them", "choose with --layer"),
        (&["export", "other", "--resource", "ada"], 2, "`other` holds something else", "name an empty folder"),
        (&["export", "out", "--resource", "bob"], 1, "nothing is remembered there", ""),
    ];
    for (arguments, code, sentence, hint) in cases {
        let run = memory_run(&place, arguments);
        assert_eq!((run.code, run.stdout.as_str()), (*code, ""), "{arguments:?}");
        assert!(run.stderr.contains(sentence) && run.stderr.contains(hint), "{arguments:?}: {}", run.stderr);
        assert!(run.stderr.lines().count() <= 2, "{}", run.stderr);
    }
    let none = run_in(place.path(), &["memory", "show", "--store", "none.db"], "");
    assert_eq!(none.code, 1);
    assert!(none.stderr.starts_with("error: there is no store `none.db`\nhint: "), "{}", none.stderr);
    fs::write(place.path().join("bad.db"), "no database").unwrap();
    let bad = run_in(place.path(), &["memory", "show", "--store", "bad.db"], "");
    assert_eq!(bad.code, 1);
    assert!(bad.stderr.contains("hint: name the store of your agent with --store"), "{}", bad.stderr);
}

/// What an agent remembers, the command shows with the words around the quote, and what the command forgets, the agent
/// does not know any more.
#[test]
fn the_agent_and_the_commands_share_what_is_remembered() {
    let place = tempdir().unwrap();
    let path = place.path().join("agent.db");
    let fact = json!({ "text": "Ada plays the cello.", "entity": "user", "quote": "I play the cello" }).to_string();
    let start = async |thread: &'static str, model: ScriptedModel| {
        let layers = memory((Entity::new(), Observations::new()));
        let engine = contexture::open(&path, layers).unwrap().model(model).build().unwrap();
        engine.execution(thread).resource("ada").start().await.unwrap()
    };
    wait(async {
        let mut execution =
            start("one", ScriptedModel::new().calls("entity/remember", fact.clone()).says("Nice.")).await;
        execution.turn("On Sundays I play the cello with Bob.").await.unwrap();
        execution.complete().await.unwrap();
    });
    let id = id_of(&place, "cello");
    let why = good(&place, &["why", &id]);
    assert!(why.contains("from: thread one, item 0"), "{why}");
    assert!(why.contains("On Sundays I play the cello with Bob."), "{why}");
    assert_eq!(good(&place, &["forget", &id]), "forgot 1 fact\n");
    wait(async {
        let model = ScriptedModel::new().calls("entity/remember", fact).says("No.");
        let mut execution = start("one", model.clone()).await;
        execution.turn("What do I play?").await.unwrap();
        let refused = execution.log().iter().filter_map(Item::as_output).next_back().unwrap().output.clone();
        assert!(refused.contains("forgotten"), "{refused}");
        assert!(!model.last_texts().iter().any(|text| text.contains("<memory")), "{:?}", model.last_texts());
    });
}

#[test]
fn an_import_with_refused_files_does_the_rest_and_fails() {
    let place = store();
    let whose = ["--resource", "ada", "--layer", "entity"];
    let with = |words: &[&str]| memory_run(&place, &words.iter().chain(&whose).copied().collect::<Vec<_>>());
    assert_eq!(with(&["export", "mirror"]).code, 0);
    let folder = place.path().join("mirror");
    let lisbon = folder.join(format!("{}.md", id_of(&place, "Lisbon")));
    fs::write(&lisbon, fs::read_to_string(&lisbon).unwrap().replacen("---", "--", 1)).unwrap();
    fs::write(folder.join("cat.md"), "Ada has a cat.\n").unwrap();
    let run = with(&["import", "mirror", "--forget-missing"]);
    assert_eq!((run.code, run.stderr.as_str()), (1, "error: 1 file was not taken over\n"));
    assert!(run.stdout.starts_with("entity of user ada: 1 added, 0 changed, 0 forgotten\n"), "{}", run.stdout);
    assert!(!id_of(&place, "Lisbon").is_empty() && !id_of(&place, "cat").is_empty());
    fs::create_dir(place.path().join("empty")).unwrap();
    let run = with(&["import", "empty", "--forget-missing"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(!id_of(&place, "green tea").is_empty());
}

#[test]
fn an_export_overwrites_nothing_that_is_not_its_own() {
    let place = store();
    let whose = ["--resource", "ada", "--layer", "entity"];
    let with = |words: &[&str]| memory_run(&place, &words.iter().chain(&whose).copied().collect::<Vec<_>>());
    let site = place.path().join("site");
    fs::create_dir(&site).unwrap();
    fs::write(site.join("index.md"), "# My site\n").unwrap();
    for arguments in [&["export", "site"][..], &["export", "site", "--force"]] {
        assert_eq!(with(arguments).code, 2);
        assert_eq!(fs::read_to_string(site.join("index.md")).unwrap(), "# My site\n");
    }
    assert_eq!(with(&["export", "mirror"]).code, 0);
    assert_eq!(with(&["export", "mirror"]).code, 0);
    let folder = place.path().join("mirror");
    let lisbon = folder.join(format!("{}.md", id_of(&place, "Lisbon")));
    let text = fs::read_to_string(&lisbon).unwrap();
    let edited = text.replacen("in Lisbon.", "in Porto.", 1);
    fs::write(&lisbon, &edited).unwrap();
    let run = with(&["export", "mirror"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("was changed after it was exported\nhint: take it over"), "{}", run.stderr);
    assert_eq!(fs::read_to_string(&lisbon).unwrap(), edited);
    assert_eq!(with(&["export", "mirror", "--force"]).code, 0);
    assert_eq!(fs::read_to_string(&lisbon).unwrap(), text);
    #[cfg(unix)]
    for name in ["index.md", lisbon.file_name().unwrap().to_str().unwrap()] {
        let (victim, link) = (place.path().join("victim.txt"), folder.join(name));
        // With the text of an export, so that only the link is in the way.
        fs::write(&victim, fs::read_to_string(&link).unwrap()).unwrap();
        let before = fs::read_to_string(&victim).unwrap();
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("../victim.txt", &link).unwrap();
        let run = with(&["export", "mirror", "--force"]);
        assert_eq!(run.code, 2, "{}", run.stdout);
        assert!(run.stderr.contains("is a link or no file"), "{}", run.stderr);
        assert_eq!(fs::read_to_string(&victim).unwrap(), before);
        fs::remove_file(&link).unwrap();
        fs::write(&link, before).unwrap();
    }
}

/// What an agent keeps beneath /memories and in its notes is shown too, and a person can delete it.
#[test]
fn files_and_notes_of_models_are_shown_and_files_are_forgotten() {
    let place = tempdir().unwrap();
    let path = place.path().join("agent.db");
    wait(async {
        let layers = memory((contexture::layers::ToolMemory::new(), contexture::layers::WorkingMemory::new()));
        let engine = contexture::open(&path, layers).unwrap().build().unwrap();
        let execution = engine.execution("one").resource("ada").start().await.unwrap();
        for (file, text) in [("diary/monday.md", "The heron came."), ("keys.md", "Keys are in the drawer.")] {
            let input = json!({ "command": "create", "path": format!("/memories/{file}"), "file_text": text });
            execution.memory().call_json("tool-memory/memory", input).await.unwrap();
        }
        let notes = json!({ "text": "Speak slowly." });
        execution.memory().call_json("working-memory/update", notes).await.unwrap();
        execution.complete().await.unwrap();
    });
    let shown = good(&place, &["show"]);
    for words in ["tool-memory of user ada", "/memories/diary/monday.md", "The heron came.", "Speak slowly."] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(good(&place, &["stats"]).contains("tool-memory of user ada"));
    let notes = parsed(&place, &["show", "--json", "--resource", "ada"])["notes"].clone();
    assert_eq!((notes.as_array().unwrap().len(), &notes[0]["bytes"]), (2, &json!(15)), "{notes}");
    assert_eq!(memory_run(&place, &["forget", "/memories"]).code, 2);
    assert_eq!(good(&place, &["forget", "/memories/diary"]), "forgot 1 path\n");
    let shown = good(&place, &["show"]);
    assert!(!shown.contains("heron") && shown.contains("drawer"), "{shown}");
    assert!(!on_disk(place.path(), "agent.db").contains("heron"));
}

/// A conversation that was imported for a user is found by what that user has, although no layer keeps anything there.
#[test]
fn a_forgotten_fact_leaves_the_search_of_an_imported_conversation() {
    let place = tempdir().unwrap();
    let path = place.path().join("agent.db");
    let lines = json!({ "id": 1, "role": "user", "text": "I play the cello on Sundays." }).to_string();
    for whose in [&["--resource", "ada"][..], &[]] {
        let import = ["memory", "import", "-", "--thread", "one", "--store", "agent.db"];
        let run = run_in(place.path(), &import.iter().chain(whose).copied().collect::<Vec<_>>(), &lines);
        assert_eq!(run.code, 0, "{}", run.stderr);
    }
    wait(async {
        let fact = json!({ "text": "Ada plays the cello.", "entity": "user", "quote": "I play the cello" });
        let layers = memory((Entity::of_project(),));
        let model = ScriptedModel::new().calls("entity-project/remember", fact.to_string()).says("Nice.");
        let engine = contexture::open(&path, layers).unwrap().model(model).build().unwrap();
        let mut execution = engine.execution("one").resource_of("project", "app").start().await.unwrap();
        execution.turn("Remember that.").await.unwrap();
        execution.complete().await.unwrap();
    });
    let search = |whose: &[&str]| {
        let words = ["search", "cello", "--thread", "one"];
        let run = memory_run(&place, &words.iter().chain(whose).copied().collect::<Vec<_>>());
        (run.code, run.stdout)
    };
    assert!(search(&[]).1.contains("cello") && search(&["--resource", "ada"]).1.contains("cello"));
    good(&place, &["forget", &id_of(&place, "cello")]);
    for whose in [&["--resource", "ada"][..], &[]] {
        assert_eq!(search(whose), (1, "nothing was found\n".to_owned()), "{whose:?}");
    }
}
