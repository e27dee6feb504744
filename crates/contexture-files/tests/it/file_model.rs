//! What is known of a file after reads and changes.

use contexture_files::model::{Fact, FileModel, MAX_MENTIONS, Mention, Who};
use contexture_files::numbering::Passage;
use contexture_files::observation::Observation;
use contexture_files::patch::{FilePatch, parse_begin_patch};

fn read(path: &str, first: usize, text: &str) -> Observation {
    Observation::Read { path: path.into(), block: Passage::plain(Some(first), text), whole: false }
}

fn edit(old: &str, new: &str) -> Observation {
    Observation::Edit { path: "a.rs".into(), old: old.into(), new: new.into(), all: false, takes_feed: false }
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
    check(&observations, &[(Some(1), "alpha beta"), (None, "epsilon"), (None, "changed text")]);
}

#[test]
fn replacing_all_line_feeds_comes_to_an_end() {
    let edit =
        Observation::Edit { path: "a.rs".into(), old: "\n".into(), new: "".into(), all: true, takes_feed: false };
    let model = model_of(&[read("a.rs", 1, "one\ntwo\n\nthree"), edit]);
    assert_eq!(model.get("a.rs").unwrap().text(), "onetwothree");
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
fn names_that_may_mean_one_file_stay_apart() {
    let mut model = model_of(&[read("/home/ada/app/src/a.rs", 1, "line one"), read("src/a.rs", 2, "line two")]);
    assert_eq!(model.files().len(), 2);
    model.apply(3, &Observation::Write { path: "src/a.rs".into(), text: "new\n".into() });
    let whole = |path: &str| model.claim_whole(model.place(path).unwrap()).is_some();
    assert!(whole("src/a.rs") && !whole("/home/ada/app/src/a.rs"));
}

#[test]
fn names_on_drives_are_one_file_in_any_spelling() {
    let mut model = model_of(&[read("D:\\app\\A.rs", 1, "line one")]);
    for (at, path) in ["D:/app/A.rs", "/d/app/a.rs", "/mnt/d/app/A.rs", "d:\\app\\.\\a.rs"].iter().enumerate() {
        model.apply(at as u32 + 2, &read(path, at + 2, "more"));
    }
    assert_eq!(model.files().len(), 1);
    assert_eq!(model.files()[0].known_lines(), 5);
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

/// A segment's number and its lines, each with whether it is sure.
type Trusts = (Option<usize>, Vec<(String, bool)>);

fn trusts(model: &FileModel, path: &str) -> Vec<Trusts> {
    let file = model.get(path).expect("the file was observed");
    let lines = |lines: &[contexture_files::model::Line]| -> Vec<(String, bool)> {
        lines.iter().map(|line| (line.text.to_string(), !line.is_changed())).collect()
    };
    file.segments.iter().map(|segment| (segment.first, lines(&segment.lines))).collect()
}

#[test]
fn what_could_be_written_is_as_it_was_seen_until_it_is_read_again() {
    let whole = |model: &FileModel| model.claim_whole(0).is_some();
    let all = |at| Observation::Read { path: "a.rs".into(), block: Passage::plain(Some(1), at), whole: true };
    let mut model = model_of(&[all("line one\nline two")]);
    assert!(whole(&model));
    model.apply(2, &Observation::CouldWrite { path: None, by: "`make`".into() });
    let claim = model.claim(0, 0, 0..2);
    assert_eq!((claim.fact, claim.since, claim.until, claim.first, claim.by), (Fact::Seen, 1, 1, Some(1), None));
    assert!(!whole(&model));
    // What is read of it now is placed anew, and the rest only where it lies beside that.
    model.apply(3, &read("a.rs", 2, "line two\nline three"));
    let known = &model.files()[0].segments;
    let texts: Vec<String> = known.iter().map(|segment| segment.text()).collect();
    assert_eq!(texts, ["line one", "line two\nline three"]);
    model.apply(4, &all("line one\nline two"));
    assert!(whole(&model));
    model.apply(5, &Observation::Changed { path: "a.rs".into(), by: "`x`".into(), who: Who::Agent });
    assert_eq!(model.claim(0, 0, 0..2).fact, Fact::Changed);
    assert_eq!(model.claim(0, 0, 0..2).by.map(|cause| cause.by), Some("`x`".to_owned()));
    model.apply(6, &all("line one\nline two"));
    assert_eq!(model.claim(0, 0, 0..2).fact, Fact::Seen);
    assert!(whole(&model) && model.files()[0].changes.is_empty());
}

#[test]
fn a_read_that_contradicts_makes_the_rest_unsure() {
    let model = model_of(&[
        read("a.rs", 1, "line one\nline two\nline three\nline four"),
        read("a.rs", 2, "line 2\nline three"),
    ]);
    let file = model.get("a.rs").unwrap();
    assert_eq!((file.changed_by, file.changed_elsewhere), (Some(Who::Other), true));
    let sure: Vec<String> = trusts(&model, "a.rs")
        .into_iter()
        .flat_map(|(_, lines)| lines)
        .filter(|line| line.1)
        .map(|line| line.0)
        .collect();
    assert_eq!(sure, ["line 2", "line three"]);
}

#[test]
fn a_move_over_a_file_replaces_it() {
    let mv = |from: &str, to: &str| Observation::Move { from: from.into(), to: to.into() };
    let write = Observation::Write { path: "b.rs".into(), text: "new\n".into() };
    check(&[read("a.rs", 1, "old"), write, mv("b.rs", "a.rs")], &[(Some(1), "new")]);
    let model = model_of(&[read("a.rs", 1, "old"), mv("unknown.rs", "a.rs")]);
    assert_eq!(trusts(&model, "a.rs"), [(None, vec![("old".into(), false)])]);
}

#[test]
fn a_file_knows_who_changed_and_who_named_it() {
    let mut model = FileModel::new();
    model.name(1, "src/a.rs", Who::User);
    model.name(2, "b.rs", Who::Agent);
    model.apply(3, &read("/p/src/a.rs", 1, "one"));
    model.apply(3, &read("/p/src/b.rs", 1, "one"));
    model.name(4, "b.rs", Who::User);
    let named = |path: &str| model.get(path).map(|file| (file.named, file.named_by_agent, file.changed_by)).unwrap();
    assert_eq!(named("/p/src/a.rs"), (1, 0, None));
    assert_eq!(named("/p/src/b.rs"), (4, 2, None));
    model.apply(5, &Observation::Write { path: "/p/src/a.rs".into(), text: "two\n".into() });
    assert_eq!(model.get("/p/src/a.rs").unwrap().changed_by, Some(Who::Agent));
}

#[test]
fn a_removal_that_may_take_a_line_with_it_leaves_no_number_certain() {
    let edit = Observation::Edit {
        path: "a.rs".into(),
        old: "line three".into(),
        new: String::new(),
        all: false,
        takes_feed: true,
    };
    let model = model_of(&[read("a.rs", 7, "line seven\nline eight"), edit]);
    let segment = &model.get("a.rs").unwrap().segments[0];
    let sure: Vec<bool> = segment.lines.iter().map(|line| !line.is_changed()).collect();
    assert_eq!((segment.first, sure), (None, vec![false, true]));
}

#[test]
fn a_line_that_a_patch_removed_somewhere_joins_no_lines_for_certain() {
    let patch = "*** Begin Patch\n*** Update File: a.rs\n@@\n-\n*** End Patch";
    let Some(FilePatch::Update { path, hunks, .. }) = parse_begin_patch(patch).into_iter().next() else { panic!() };
    let model = model_of(&[read("a.rs", 5, "# Head\n\nthe text"), Observation::Patch { path, hunks }]);
    let lines = model.get("a.rs").unwrap().segments.iter().flat_map(|segment| &segment.lines);
    assert!(lines.into_iter().all(|line| line.is_changed()));
}
