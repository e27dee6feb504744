//! Snapshots of a folder in process: what was decided, so that another process goes on with the same bytes.

use std::sync::Arc;

use contexture::fold::FoldDecision;
use contexture::wire::{Digest, Format};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::options::OptionsError;
use crate::account::bill::Account;
use crate::conversation::billed::Billed;
use crate::conversation::decisions::{DecisionEntry, Decisions};
use crate::conversation::health::StopReason;
use crate::conversation::plan_history::PlanStep;
use crate::conversation::reading::Attached;
use crate::conversation::seen::SeenMessages;
use crate::conversation::state::ConversationState;
use crate::conversation::{Beginning, Conversation};
use crate::decide::decider::Decider;

/// The newest format of snapshots that is known, and the one that is written.
const FORMAT: u32 = 1;

/// Why a snapshot cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SnapshotError {
    /// The options are wrong.
    #[error(transparent)]
    Options(#[from] OptionsError),
    /// It is something else.
    #[error("this is no snapshot of a folder")]
    Other(#[source] serde_json::Error),
    /// It is from a newer version.
    #[error("this snapshot is of the format {0}, and up to {FORMAT} is known")]
    Newer(u32),
    /// A part of it is damaged.
    #[error("a part of this snapshot cannot be read: {0}")]
    Damaged(String),
}

#[derive(Serialize, Deserialize)]
struct ConversationsSnapshot {
    contexture_folder: u32,
    /// The conversation and its branches, least recently used first.
    conversations: Vec<StoredConversation>,
}

#[derive(Serialize, Deserialize)]
struct StoredConversation {
    id: String,
    key: Digest,
    scope: Digest,
    parent: Option<String>,
    format: Format,
    lead: usize,
    /// A digest of each message, in hexadecimal digits.
    seen: String,
    points: Vec<usize>,
    steps: Vec<PlanStep>,
    decisions: Vec<SnapshotDecision>,
    attached: Vec<(usize, String)>,
    account: Account,
    stopped: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct SnapshotDecision {
    messages: usize,
    decision: Value,
}

/// The snapshot of what a decider knows.
pub(super) fn write(decider: &Decider) -> String {
    let conversations = decider.conversations().iter().map(|conversation| stored(conversation)).collect();
    let snapshot = ConversationsSnapshot { contexture_folder: FORMAT, conversations };
    serde_json::to_string(&snapshot).expect("a snapshot is made of texts and finite numbers")
}

fn stored(conversation: &Conversation) -> StoredConversation {
    let (beginning, state) = (conversation.beginning(), conversation.state());
    let decisions = state.decisions();
    let decided =
        |entry: &DecisionEntry| SnapshotDecision { messages: entry.messages, decision: entry.decision.to_stored() };
    StoredConversation {
        id: beginning.id.to_string(),
        key: beginning.key,
        scope: beginning.scope,
        parent: beginning.parent.as_deref().map(str::to_owned),
        format: beginning.format,
        lead: beginning.lead,
        seen: state.seen().to_bytes().iter().map(|byte| format!("{byte:02x}")).collect(),
        points: decisions.points().to_vec(),
        steps: decisions.steps().to_vec(),
        decisions: decisions.entries().iter().map(decided).collect(),
        attached: decisions.attached().iter().map(|(message, text)| (*message, text.to_string())).collect(),
        account: *state.billed().account(),
        stopped: state.health().stopped().map(ToString::to_string),
    }
}

/// Adds the conversations of a snapshot to a decider.
pub(super) fn read(decider: &Decider, text: &str) -> Result<(), SnapshotError> {
    #[derive(Deserialize)]
    struct SnapshotVersion {
        contexture_folder: u32,
    }
    let version: SnapshotVersion = serde_json::from_str(text).map_err(SnapshotError::Other)?;
    if version.contexture_folder > FORMAT {
        return Err(SnapshotError::Newer(version.contexture_folder));
    }
    let snapshot: ConversationsSnapshot = serde_json::from_str(text).map_err(SnapshotError::Other)?;
    let read: Result<Vec<_>, _> = snapshot.conversations.into_iter().map(restored).collect();
    for conversation in read? {
        decider.insert(conversation);
    }
    Ok(())
}

fn restored(stored: StoredConversation) -> Result<Conversation, SnapshotError> {
    let damaged = |what: &str| SnapshotError::Damaged(what.to_owned());
    let seen = bytes_of(&stored.seen).ok_or_else(|| damaged("the digests of messages"))?;
    let messages = seen.len() / 16;
    let decided = |entry: SnapshotDecision| match FoldDecision::from_stored(&entry.decision) {
        Ok(decision) => Ok(DecisionEntry { messages: entry.messages, decision }),
        Err(error) => Err(damaged(&error.to_string())),
    };
    let entries = stored.decisions.into_iter().map(decided).collect::<Result<Vec<_>, _>>()?;
    if !stored.points.is_sorted() || stored.points.last().is_some_and(|last| *last > messages) {
        return Err(damaged("which requests were sent"));
    }
    if stored.steps.iter().any(|step| step.messages > messages || step.covered > messages) {
        return Err(damaged("the changes of the plan"));
    }
    let attached: Attached = stored.attached.into_iter().map(|(message, text)| (message, Arc::from(text))).collect();
    let beginning = Beginning {
        id: stored.id.into(),
        key: stored.key,
        scope: stored.scope,
        parent: stored.parent.map(Arc::from),
        format: stored.format,
        lead: stored.lead,
        is_held_out: false,
    };
    let decisions = Decisions::restored(stored.points, stored.steps, entries, attached);
    let stopped = stored.stopped.map(StopReason::from_text);
    let (seen, billed) = (SeenMessages::from_bytes(&seen), Billed::restored(stored.account));
    Ok(Conversation::new(beginning, ConversationState::restored(seen, decisions, billed, stopped, 0)))
}

fn bytes_of(digits: &str) -> Option<Vec<u8>> {
    if !digits.is_ascii() || !digits.len().is_multiple_of(32) {
        return None;
    }
    let pairs = digits.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}
