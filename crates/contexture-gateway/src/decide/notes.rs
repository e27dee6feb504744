//! Decisions in plain words.

use contexture::fold::{FoldDecision, FoldWhen};

use crate::account::record::{DecidedNote, DecisionKind};

/// Describes a decision in plain words.
pub fn note_of(decision: &FoldDecision) -> DecidedNote {
    match decision {
        FoldDecision::Fold(fold) => DecidedNote {
            is_forced: fold.when == FoldWhen::Forced,
            before_tokens: fold.before_tokens,
            after_tokens: fold.after_tokens,
            cost: fold.cost,
            saves_per_request: fold.saves_per_request,
            ..DecidedNote::new(DecisionKind::Fold, &*fold.reason)
        },
        FoldDecision::BringBack(_) => DecidedNote::new(DecisionKind::BringBack, "a file was touched or named again"),
        FoldDecision::Cold { .. } => DecidedNote::new(DecisionKind::Cold, "the provider's cache had expired"),
        FoldDecision::Disk(checked) => DecidedNote::new(DecisionKind::Disk, checked.reason()),
        FoldDecision::Shorten { reason, .. } => DecidedNote::new(DecisionKind::Shorten, &**reason),
    }
}

/// Says that a message names files, which were added.
pub fn references_note() -> DecidedNote {
    DecidedNote::new(DecisionKind::Reference, "a message names files")
}
