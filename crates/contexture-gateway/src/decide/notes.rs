//! Decisions in plain words.

use std::collections::BTreeMap;

use contexture::files::disk::NotCompared;
use contexture::fold::{Fold, FoldDecision, FoldWhen};

use crate::account::record::{CutNote, DecidedNote, DecisionKind};

/// Describes a decision in plain words.
pub(crate) fn note_of(decision: &FoldDecision) -> DecidedNote {
    match decision {
        FoldDecision::Fold(fold) => DecidedNote {
            is_forced: fold.when == FoldWhen::Forced,
            before_tokens: fold.before_tokens,
            after_tokens: fold.after_tokens,
            cost: fold.cost,
            saves_per_request: fold.saves_per_request,
            left_out: fold.left_out.clone(),
            cut: cuts_of(fold),
            ..DecidedNote::new(DecisionKind::Fold, &*fold.reason)
        },
        FoldDecision::BringBack(_) => DecidedNote::new(DecisionKind::BringBack, "a file was touched or named again"),
        FoldDecision::Cold { .. } => DecidedNote::new(DecisionKind::Cold, "the provider's cache had expired"),
        FoldDecision::Disk(checked) => DecidedNote {
            not_compared: named(checked.not_compared()),
            ..DecidedNote::new(DecisionKind::Disk, checked.reason())
        },
        FoldDecision::Shorten { reason, .. } => DecidedNote::new(DecisionKind::Shorten, &**reason),
    }
}

/// Files that were not compared, by the reason in words.
fn named(reasons: BTreeMap<NotCompared, usize>) -> BTreeMap<String, usize> {
    reasons.into_iter().map(|(why, count)| (why.as_str().to_owned(), count)).collect()
}

/// What of the dialogue a fold had to cut.
fn cuts_of(fold: &Fold) -> Vec<CutNote> {
    let kinds = [("said", &fold.cut_said), ("told", &fold.cut_told), ("record", &fold.cut_records)];
    let mut cuts = Vec::new();
    for (what, list) in kinds {
        cuts.extend(list.iter().map(|cut| CutNote {
            what: what.to_owned(),
            hash: cut.hash.clone(),
            tokens: cut.tokens,
        }));
    }
    cuts
}

/// Says that a message names files, which were added, and what of them was not.
pub(crate) fn references_notes(hidden: usize, redacted: usize) -> Vec<DecidedNote> {
    let reasons = [
        (true, "a message names files"),
        (hidden > 0, "a file that a message names was not read: its name says that it holds secrets"),
        (redacted > 0, "secrets were taken out of a file that a message names"),
    ];
    let note = |(_, reason)| DecidedNote::new(DecisionKind::Reference, reason);
    reasons.into_iter().filter(|(is_so, _)| *is_so).map(note).collect()
}

/// Says that a message seems to name a file, and that nothing was added.
pub(crate) fn no_references_note() -> DecidedNote {
    DecidedNote::new(
        DecisionKind::Reference,
        "`#path` adds no file: which text a person types is not known of this agent; `--references typed` says that all \
         of a new message is typed",
    )
}

/// The note that the provider was not asked to edit the window, although the client asks for it.
pub(crate) fn edits_note() -> DecidedNote {
    let kind = DecisionKind::Other("options".to_owned());
    DecidedNote::new(
        kind,
        "what asks the provider to edit the window was taken out, as `gateway.context_management` says",
    )
}
