//! Comparing what is known of a file with the disk: what is still there is verified, and nothing is learnt.

use contexture_files::disk::NotCompared;
use contexture_files::model::{Compared, Fact, FileModel, Found, Verified};
use contexture_files::numbering::Passage;
use contexture_files::observation::Observation;
use proptest::prelude::*;

fn read(path: &str, first: usize, text: &str, whole: bool) -> Observation {
    Observation::Read { path: path.into(), block: Passage::plain(Some(first), text), whole }
}

/// A model that has read a file whole, or lines of it.
fn model_of(text: &str, lines: Option<std::ops::Range<usize>>) -> FileModel {
    let mut model = FileModel::new();
    let all: Vec<&str> = text.lines().collect();
    match lines {
        None => model.apply(1, &read("a", 1, text, true)),
        Some(lines) => model.apply(1, &read("a", lines.start + 1, &all[lines].join("\n"), false)),
    }
    model
}

fn known(model: &FileModel) -> Vec<(Option<usize>, String)> {
    model.files()[0].segments.iter().map(|segment| (segment.first, segment.text())).collect()
}

#[test]
fn a_file_that_moved_as_a_whole_is_the_same_at_other_numbers() {
    let mut model = model_of("1\n2\nalpha\nbeta\n5", Some(2..4));
    assert_eq!(model.verify(2, "a", Some("0\n1\n2\nalpha\nbeta\n5\n")), Verified::Same);
    assert_eq!(known(&model), [(Some(4), "alpha\nbeta".to_owned())]);
    assert_eq!(model.files()[0].disk_change, None);
}

#[test]
fn a_change_is_remembered_until_the_agent_reads_or_changes_the_file() {
    for observation in [read("a", 1, "a\nx\nc\n", true), Observation::Write { path: "a".into(), text: "a\n".into() }] {
        let mut model = model_of("a\nb\nc\n", None);
        assert_eq!(model.verify(2, "a", Some("a\nx\nc\n")), Verified::Differed);
        let change = model.files()[0].disk_change.clone().unwrap();
        assert_eq!((change.at, change.lost, change.differ), (2, 1, vec![(2, 2)]));
        model.apply(3, &observation);
        assert_eq!(model.files()[0].disk_change, None);
    }
}

#[test]
fn a_file_that_was_emptied_is_known_to_be_empty_and_nothing_is_known_once_it_has_lines_again() {
    let mut model = model_of("a\nb\nc\n", None);
    assert_eq!(model.verify(2, "a", Some("")), Verified::Differed);
    assert!(model.claim_whole(0).is_some());
    assert_eq!(model.verify(3, "a", Some("a\nb\n")), Verified::Differed);
    assert_eq!(known(&model), []);
    assert!(model.claim_whole(0).is_none());
}

#[test]
fn what_a_person_put_into_a_file_is_not_learnt() {
    // A template that the agent wrote, filled in; a value that a harness hid; a file that gained a line; a write that
    // was refused, of a file that was never read.
    for (known_text, on_disk, remains) in [
        ("A=1\nKEY=\nB=2\n", "A=1\nKEY=sk-secret\nB=2\n", &[(Some(1), "A=1"), (Some(3), "B=2")][..]),
        ("A=1\nKEY=[REDACTED]\n", "A=1\nKEY=sk-secret\n", &[(Some(1), "A=1")]),
        ("A=1\nB=2\n", "A=1\nB=2\nKEY=sk-secret\n", &[(Some(1), "A=1\nB=2")]),
        ("MODE=test\n", "KEY=sk-secret\nOTHER=sk-secret\n", &[]),
    ] {
        let mut model = model_of(known_text, None);
        assert_eq!(model.verify(2, "a", Some(on_disk)), Verified::Differed, "{on_disk}");
        let remains: Vec<_> = remains.iter().map(|(first, text)| (*first, (*text).to_owned())).collect();
        assert_eq!(known(&model), remains);
        assert!(model.claim_whole(0).is_none(), "{on_disk}");
        let stored = serde_json::to_string(&model_of(known_text, None).compare(0, Some(on_disk))).unwrap();
        assert!(!stored.contains("secret"), "{stored}");
    }
}

#[test]
fn a_file_that_is_not_compared_is_as_it_was_seen_and_says_why() {
    let mut model = model_of("a\nb\n", None);
    let compared = model.not_compared(0, NotCompared::Link).unwrap();
    let stored: Compared = serde_json::from_str(&serde_json::to_string(&compared).unwrap()).unwrap();
    assert_eq!(model.take_over(2, &stored), Verified::NotCompared);
    assert_eq!(model.claim(0, 0, 0..2).fact, Fact::Seen);
    assert_eq!(model.files()[0].not_compared, Some(NotCompared::Link));
    assert!(model.claim_whole(0).is_none() && !model.is_as_compared(0));
    assert_eq!(model.not_compared(0, NotCompared::Link), None, "it is known already");
    assert!(model.not_compared(0, NotCompared::Late).is_some());
    assert_eq!(model.verify(3, "a", Some("a\nb\n")), Verified::Same);
    assert_eq!(model.claim(0, 0, 0..2).fact, Fact::Verified);
    assert_eq!(model.files()[0].not_compared, None);
}

#[test]
fn a_comparison_that_does_not_fit_verifies_and_learns_nothing() {
    let compared = model_of("a\nb\nc\n", None).compare(0, Some("a\nx\nc\n")).unwrap();
    let mut other = model_of("a\nother\nc\n", None);
    assert_eq!(other.take_over(2, &compared), Verified::Unknown);
    assert_eq!(other.claim(0, 0, 0..3).fact, Fact::Seen);
    assert_eq!(other.files()[0].text(), "a\nother\nc");
    let unchanged = Compared { file: 0, found: Found::Unchanged };
    let mut never_compared = model_of("a\n", None);
    assert_eq!(never_compared.take_over(2, &unchanged), Verified::Unknown);
    assert_eq!(never_compared.claim(0, 0, 0..1).fact, Fact::Seen);
    assert_eq!(never_compared.take_over(2, &Compared { file: 9, found: Found::Gone }), Verified::Unknown);
}

#[test]
fn what_ran_since_no_longer_matters_once_a_file_is_compared_again() {
    let mut model = model_of("a\nb\n", None);
    model.verify(2, "a", Some("a\nb\n"));
    model.apply(3, &Observation::CouldWrite { path: None, by: "make".into() });
    assert_eq!(model.claim(0, 0, 0..2).fact, Fact::Seen);
    assert!(model.is_as_compared(0), "what only may have changed is still known as it was compared");
    assert_eq!(model.take_over(4, &Compared { file: 0, found: Found::Unchanged }), Verified::Same);
    assert_eq!(model.claim(0, 0, 0..2).fact, Fact::Verified);
    model.apply(5, &read("a", 1, "a\nb\nc\n", true));
    assert!(!model.is_as_compared(0));
}

/// What somebody does to a file. Places are shares of its length, so that they always exist.
#[derive(Clone, Debug)]
enum Deed {
    Put(usize, String),
    Take(usize),
    Replace(usize, String),
    Move(usize, usize),
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let line = || prop_oneof![Just("}".to_owned()), Just(String::new()), "new [a-z]{1,6}"];
    let deed = prop_oneof![
        (0..1_000_usize, line()).prop_map(|(at, line)| Deed::Put(at, line)),
        (0..1_000_usize).prop_map(Deed::Take),
        (0..1_000_usize, line()).prop_map(|(at, line)| Deed::Replace(at, line)),
        (0..1_000_usize, 0..1_000_usize).prop_map(|(from, to)| Deed::Move(from, to)),
    ];
    proptest::collection::vec(deed, 0..12)
}

fn done(mut lines: Vec<String>, deeds: &[Deed]) -> Vec<String> {
    for deed in deeds {
        let len = lines.len().max(1);
        match deed {
            Deed::Put(at, line) => lines.insert(at % (lines.len() + 1), line.clone()),
            _ if lines.is_empty() => {}
            Deed::Take(at) => drop(lines.remove(at % len)),
            Deed::Replace(at, line) => lines[at % len] = line.clone(),
            Deed::Move(from, to) => {
                let line = lines.remove(from % len);
                lines.insert(to % (lines.len() + 1), line);
            }
        }
    }
    lines
}

fn file(lines: usize) -> Vec<String> {
    let line = |line: usize| match line % 5 {
        0 => "}".to_owned(),
        1 => String::new(),
        _ => format!("line {line}"),
    };
    (0..lines).map(line).collect()
}

proptest! {
    /// Whatever happened to a file, what is known of it afterwards is what it has, at its place; and what was found
    /// does the same again when it was stored.
    #[test]
    fn what_is_known_after_a_comparison_is_on_the_disk(
        lines in 1..60_usize,
        reads in proptest::collection::vec((0..60_usize, 1..20_usize), 0..4),
        first in deeds(),
        second in deeds(),
    ) {
        let text = file(lines);
        let mut model = FileModel::new();
        match reads.as_slice() {
            [] => model.apply(1, &read("a", 1, &(text.join("\n") + "\n"), true)),
            reads => for (start, count) in reads {
                let start = start % lines;
                let some = &text[start..(start + count).min(lines)];
                model.apply(1, &read("a", start + 1, &some.join("\n"), false));
            },
        }
        let mut again = model.clone();
        let read_lines: std::collections::HashSet<String> = text.iter().cloned().collect();
        let mut disk = text;
        for (at, deeds) in [(2, &first), (3, &second)] {
            disk = done(disk, deeds);
            let on_disk = if disk.is_empty() { String::new() } else { disk.join("\n") + "\n" };
            let Some(compared) = model.compare(0, Some(&on_disk)) else { break };
            let stored: Compared = serde_json::from_str(&serde_json::to_string(&compared).unwrap()).unwrap();
            model.take_over(at, &compared);
            prop_assert_ne!(again.take_over(at, &stored), Verified::Unknown);
            prop_assert_eq!(&again.files()[0], &model.files()[0]);
            for (index, segment) in model.files()[0].segments.iter().enumerate() {
                let start = segment.first.unwrap() - 1;
                let known: Vec<&str> = segment.lines.iter().map(|line| &*line.text).collect();
                prop_assert_eq!(&known[..], &disk[start..start + known.len()]);
                prop_assert!(known.iter().all(|line| read_lines.contains(*line)), "{known:?} was never read");
                if !known.is_empty() {
                    prop_assert_eq!(model.claim(0, index, 0..known.len()).fact, Fact::Verified);
                }
            }
            if let Some(claim) = model.claim_whole(0) {
                prop_assert_eq!(claim.first, Some(1));
                prop_assert_eq!(model.files()[0].known_lines(), disk.len());
            }
        }
    }

    /// The agent has read the middle of a file. Changes above and below it, and within it, never make it know a line
    /// of what it has not read.
    #[test]
    fn nothing_is_learnt_of_what_was_never_read(
        above in 0..30_usize,
        middle in 1..30_usize,
        below in 0..30_usize,
        deeds_above in deeds(),
        deeds_within in deeds(),
        deeds_below in deeds(),
    ) {
        let hidden = |part: &str, lines: usize| -> Vec<String> {
            (0..lines).map(|line| if line % 4 == 0 { "}".into() } else { format!("hidden {part} {line}") }).collect()
        };
        let hide = |lines: Vec<String>| -> Vec<String> {
            lines.into_iter().map(|line| line.replace("new", "hidden")).collect()
        };
        let (top, open, end) = (hidden("top", above), file(middle), hidden("end", below));
        let text = [top.clone(), open.clone(), end.clone()].concat();
        let mut model = model_of(&(text.join("\n") + "\n"), Some(above..above + middle));
        let now = [hide(done(top, &deeds_above)), done(open, &deeds_within), hide(done(end, &deeds_below))].concat();
        model.verify(2, "a", Some(&(now.join("\n") + "\n")));
        let known = model.files()[0].text();
        prop_assert!(!known.contains("hidden") && !known.contains("new"), "{known}\n--\n{}", now.join("\n"));
    }
}
