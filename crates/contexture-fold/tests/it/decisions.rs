//! Decisions of a folder as they are stored, by this version and those before it.

use std::error::Error;

use contexture_files::disk::NotCompared;
use contexture_files::model::{Compared, Found, Piece, Region, There};
use contexture_fold::decision::{self, BringBack, Checked, CutSaid, DecisionError, ShownLines, ViewPart};
use contexture_fold::{Fold, FoldDecision, FoldWhen};
use serde_json::{Value, json};

fn fold() -> Fold {
    Fold {
        at: 9,
        keep: 1,
        head: vec![
            decision::Piece::Logged(0),
            decision::Piece::Made("x".into()),
            decision::Piece::Shortened(1, "y".into()),
        ],
        start: 6,
        shortened: vec![(7, "z".into())],
        parts: vec![ViewPart { mark: 1, lines: 2, bytes: 30, message: 0, claims: Vec::new() }],
        shown: vec![vec![ShownLines { file: 0, segment: 1, first: 2, count: 2 }]],
        cut_said: Vec::new(),
        cut_told: Vec::new(),
        cut_records: Vec::new(),
        left_out: vec!["a.rs".into()],
        when: FoldWhen::Pays,
        reason: "the window is full".into(),
        before_tokens: 900,
        after_tokens: 300,
        cost: 12.5,
        saves_per_request: 0.25,
    }
}

fn decisions() -> [FoldDecision; 4] {
    [
        FoldDecision::Fold(fold()),
        FoldDecision::BringBack(BringBack { at: 3, text: "x".into(), shown: Vec::new() }),
        FoldDecision::Cold { at: 5 },
        FoldDecision::Shorten { position: 4, text: "short".into(), reason: "too long".into() },
    ]
}

/// The same decisions as version 0.1 stored them.
fn stored_by_version_0_1() -> [Value; 4] {
    [
        json!({
            "decision": "fold",
            "at": 9,
            "keep": 1,
            "head": [{"logged": 0}, {"made": "x"}, {"shortened": [1, "y"]}],
            "start": 6,
            "shortened": [[7, "z"]],
            "parts": [{"mark": 1, "lines": 2, "bytes": 30}],
            "shown": [[{"file": 0, "segment": 1, "first": 2, "count": 2}]],
            "left_out": ["a.rs"],
            "reason": "the window is full",
            "before_tokens": 900,
            "after_tokens": 300,
            "cost": 12.5,
            "saves_per_request": 0.25,
        }),
        json!({"decision": "recall", "at": 3, "text": "x", "shown": []}),
        json!({"decision": "cold", "at": 5}),
        json!({"decision": "shorten", "position": 4, "text": "short", "reason": "too long"}),
    ]
}

#[test]
fn decisions_without_a_version_are_read_as_version_0_1_wrote_them() {
    for (stored, decision) in stored_by_version_0_1().iter().zip(decisions()) {
        assert_eq!(FoldDecision::from_stored(stored).unwrap(), decision);
    }
    let mut nothing_left_out = stored_by_version_0_1()[0].clone();
    nothing_left_out.as_object_mut().unwrap().remove("left_out");
    let expected = FoldDecision::Fold(Fold { left_out: Vec::new(), ..fold() });
    assert_eq!(FoldDecision::from_stored(&nothing_left_out).unwrap(), expected);
}

#[test]
fn what_is_stored_names_its_version_and_is_read_again() {
    for (mut stored, decision) in stored_by_version_0_1().into_iter().zip(decisions()) {
        stored["version"] = 5.into();
        if let Some(part) = stored.get_mut("parts").and_then(|parts| parts.get_mut(0)) {
            part["message"] = 0.into();
        }
        assert_eq!(decision.to_stored(), stored, "this is what is on disks");
        assert_eq!(FoldDecision::from_stored(&stored).unwrap(), decision);
        // Version 4 stored the same, version 3 without calls and outputs, and version 2 without the dialogue.
        for version in [4, 3, 2] {
            stored["version"] = version.into();
            assert_eq!(FoldDecision::from_stored(&stored).unwrap(), decision);
        }
    }
}

#[test]
fn records_and_what_was_cut_of_the_dialogue_are_stored() {
    let cut = |position: usize| CutSaid { position, hash: "0123456789ab".into(), tokens: 7 };
    let records = decision::Records { from: 2, to: 5, text: "z".into() };
    let fold = Fold {
        head: vec![decision::Piece::Records(records)],
        cut_told: vec![cut(3)],
        cut_records: vec![cut(4)],
        ..fold()
    };
    let stored = FoldDecision::Fold(fold.clone()).to_stored();
    let cut = |position: usize| json!([{"position": position, "hash": "0123456789ab", "tokens": 7}]);
    assert_eq!(stored["head"], json!([{"records": {"from": 2, "to": 5, "text": "z"}}]), "this is what is on disks");
    assert_eq!((&stored["cut_told"], &stored["cut_records"]), (&cut(3), &cut(4)), "this is what is on disks");
    assert_eq!(FoldDecision::from_stored(&stored).unwrap(), FoldDecision::Fold(fold));
}

#[test]
fn what_was_found_on_the_disk_is_stored_by_what_was_known() {
    let made_of = vec![Piece::Known(0, 3), Piece::Unseen(2), Piece::Known(4, 2)];
    let regions = vec![Region { segment: 0, start: 9, made_of }, Region { segment: 1, start: 20, made_of: Vec::new() }];
    let files = vec![
        Compared { file: 4, found: Found::Unchanged },
        Compared { file: 5, found: Found::Gone },
        Compared { file: 7, found: Found::NotCompared(NotCompared::UnknownDirectory) },
        // As earlier versions stored it.
        Compared { file: 8, found: Found::Unreadable },
        Compared {
            file: 6,
            found: Found::There(There { known: 7, lines: 30, is_open: false, has_returns: false, regions }),
        },
    ];
    let decision = FoldDecision::Disk(Checked { at: 12, files });
    let stored = json!({
        "decision": "disk",
        "version": 5,
        "at": 12,
        "files": [
            {"file": 4, "found": "unchanged"},
            {"file": 5, "found": "gone"},
            {"file": 7, "found": {"not_compared": "unknown_directory"}},
            {"file": 8, "found": "unreadable"},
            {"file": 6, "found": {"there": {"known": 7, "lines": 30, "regions": [
                {"segment": 0, "start": 9, "made_of": [[0, 3], 2, [4, 2]]},
                {"segment": 1, "start": 20},
            ]}}},
        ],
    });
    assert_eq!(decision.to_stored(), stored, "this is what is on disks");
    assert_eq!(FoldDecision::from_stored(&stored).unwrap(), decision);
}

#[test]
fn texts_that_earlier_versions_took_from_the_disk_are_only_counted() {
    let stored = json!({
        "decision": "disk", "version": 2, "at": 1,
        "files": [{"file": 0, "found": {"there": {"known": 7, "lines": 4, "regions": [
            {"segment": 0, "start": 0, "made_of": [[0, 2], "API_KEY=secret", [3, 1]]},
        ]}}}],
    });
    let decision = FoldDecision::from_stored(&stored).unwrap();
    assert!(!format!("{decision:?}{}", decision.to_stored()).contains("secret"));
    let FoldDecision::Disk(Checked { files, .. }) = decision else { panic!("{decision:?}") };
    let Found::There(there) = &files[0].found else { panic!("{files:?}") };
    assert_eq!(there.regions[0].made_of, [Piece::Known(0, 2), Piece::Unseen(1), Piece::Known(3, 1)]);
}

#[test]
fn a_decision_of_a_newer_version_is_refused() {
    for mut stored in stored_by_version_0_1() {
        stored["version"] = 99.into();
        let error = FoldDecision::from_stored(&stored).unwrap_err();
        assert!(matches!(error, DecisionError::Newer(99)), "{error:?}");
        assert_eq!(error.to_string(), "the decision is stored in version 99, and this program knows versions up to 5");
    }
}

#[test]
fn what_is_no_decision_is_refused() {
    let incomplete = json!({"decision": "recall", "at": 3, "shown": []});
    for stored in [incomplete, json!({"decision": "unheard of"}), json!({}), json!([]), Value::Null] {
        let error = FoldDecision::from_stored(&stored).unwrap_err();
        assert_eq!(error.to_string(), "the stored decision cannot be read");
        assert!(error.source().is_some(), "the cause is told");
    }
}
