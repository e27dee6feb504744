//! What is known of a file after reads and changes.

use contexture::files::model::{FileModel, MAX_MENTIONS, Mention};
use contexture::files::numbering::Block;
use contexture::files::observation::Observation;
use contexture::files::patch::{FilePatch, parse_begin_patch};

fn read(path: &str, first: usize, text: &str) -> Observation {
    Observation::Read { path: path.into(), block: Block::plain(Some(first), text), whole: false }
}

fn edit(old: &str, new: &str) -> Observation {
    Observation::Edit { path: "a.rs".into(), old: old.into(), new: new.into(), all: false }
}

fn model_of(observations: &[Observation]) -> FileModel {
    let mut model = FileModel::new();
    for (at, observation) in observations.iter().enumerate() {
        model.apply(at as u32 + 1, observation);
    }
    model
}

#[track_caller]
fn check(observations: &[Observation], expected: &[(Option<usize>, &str)]) {
    let model = model_of(observations);
    let file = model.get("a.rs").expect("the file was observed");
    let known: Vec<(Option<usize>, String)> =
        file.segments.iter().map(|segment| (segment.first, segment.text())).collect();
    let expected: Vec<(Option<usize>, String)> =
        expected.iter().map(|(first, text)| (*first, (*text).to_owned())).collect();
    assert_eq!(known, expected);
}

#[test]
fn reads_that_touch_become_one() {
    check(
        &[read("a.rs", 1, "line one\nline two"), read("a.rs", 3, "line three")],
        &[(Some(1), "line one\nline two\nline three")],
    );
    check(
        &[read("a.rs", 2, "line two\nline three"), read("a.rs", 1, "line one\nline two")],
        &[(Some(1), "line one\nline two\nline three")],
    );
    check(
        &[read("a.rs", 1, "line one"), read("a.rs", 5, "line five")],
        &[(Some(1), "line one"), (Some(5), "line five")],
    );
}

#[test]
fn edits_change_what_is_known_and_move_what_follows() {
    let reads = [read("a.rs", 1, "line one\nline two"), read("a.rs", 9, "line nine")];
    let observations = [&reads[..], &[edit("two", "two\nline two and a half")]].concat();
    check(&observations, &[(Some(1), "line one\nline two\nline two and a half"), (Some(10), "line nine")]);
}

#[test]
fn an_edit_that_does_not_fit_takes_away_what_it_contradicts() {
    let observations =
        [read("a.rs", 1, "alpha beta\ngamma delta\nepsilon"), edit("gamma delta\nsomething unseen", "changed text")];
    check(&observations, &[(None, "alpha beta"), (None, "epsilon"), (None, "changed text")]);
}

#[test]
fn a_write_replaces_everything() {
    let write = Observation::Write { path: "a.rs".into(), text: "new\n".into() };
    check(&[read("a.rs", 1, "old one\nold two"), write], &[(Some(1), "new")]);
}

#[test]
fn a_read_after_a_change_elsewhere_wins() {
    check(&[read("a.rs", 1, "first version"), read("a.rs", 1, "second version")], &[(Some(1), "second version")]);
}

#[test]
fn patches_apply_to_known_lines() {
    let patch = "*** Begin Patch\n*** Update File: a.rs\n@@\n line one\n-line two\n+line 2\n*** End Patch";
    let Some(FilePatch::Update { path, hunks, .. }) = parse_begin_patch(patch).pop() else { panic!("an update") };
    let observations = [read("a.rs", 1, "line one\nline two\nline three"), Observation::Patch { path, hunks }];
    check(&observations, &[(Some(1), "line one\nline 2\nline three")]);
}

#[test]
fn one_file_under_several_names_is_one_file() {
    let model = model_of(&[read("/home/ada/app/src/a.rs", 1, "line one"), read("src/a.rs", 2, "line two")]);
    assert_eq!(model.files().len(), 1);
    assert_eq!(model.get("/home/ada/app/src/a.rs").unwrap().text(), "line one\nline two");
}

#[test]
fn files_of_one_name_in_two_directories_stay_apart() {
    let model = model_of(&[read("/p/client.rs", 1, "this one"), read("/p/sub/client.rs", 1, "that one")]);
    assert_eq!(model.files().len(), 2);
}

#[test]
fn a_known_file_remembers_where_outputs_named_it() {
    let mention = |path: &str, line| Observation::Mentioned { path: path.into(), line };
    let model = model_of(&[
        read("src/a.rs", 1, "line one"),
        mention("src/a.rs", Some(7)),
        mention("/p/src/a.rs", None),
        mention("src/a.rs", Some(7)),
        mention("src/unknown.rs", Some(1)),
    ]);
    let file = model.get("src/a.rs").unwrap();
    assert_eq!((file.mentioned, file.touched, file.text().as_str()), (4, 1, "line one"));
    assert_eq!(file.mentions(), [Mention { at: 4, line: Some(7) }, Mention { at: 3, line: None }]);
    assert_eq!(model.files().len(), 1);
}

#[test]
fn old_mentions_give_way() {
    let mut model = model_of(&[read("a.rs", 1, "line one")]);
    for line in 1..=2 * MAX_MENTIONS {
        model.apply(9, &Observation::Mentioned { path: "a.rs".into(), line: Some(line) });
    }
    let file = model.get("a.rs").unwrap();
    assert_eq!((file.mentions().len(), file.mentions()[0].line), (MAX_MENTIONS, Some(2 * MAX_MENTIONS)));
}
