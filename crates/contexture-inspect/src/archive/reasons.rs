//! Why blocks are in their state, from the decisions about requests.

use std::collections::HashMap;

use contexture_gateway::account::record::DecisionKind;
use contexture_gateway::write::StoreError;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::super::view::{BlockState, RequestLine};

/// Why blocks are in their state, from the decisions about requests.
pub struct Reasons<'a> {
    connection: &'a Connection,
    conversation: &'a str,
    read: HashMap<u64, Option<RequestLine>>,
}

impl<'a> Reasons<'a> {
    /// Reads the reasons for a conversation's blocks.
    pub fn new(connection: &'a Connection, conversation: &'a str) -> Self {
        Self { connection, conversation, read: HashMap::new() }
    }

    /// Why a block is in its state.
    pub fn of(&mut self, state: BlockState, since: u64, left: Option<u64>) -> Result<Option<String>, StoreError> {
        use DecisionKind::{BringBack, Disk, Fold, Memory, Reference, Shorten};
        Ok(match state {
            BlockState::Made => self.told(since, &[Fold, BringBack, Memory, Reference, Disk], "for")?,
            BlockState::Shortened => self.told(since, &[Shorten, Fold], "for")?,
            BlockState::LeftOut => match left {
                Some(left) => self.told(left, &[Fold], "since")?,
                None => None,
            },
            BlockState::Behind => Some("unchanged, but after a change".to_owned()),
            BlockState::Gone => match left {
                Some(left) => self.told(left, &[Fold], "since")?,
                None => None,
            },
            BlockState::Kept | BlockState::Same | BlockState::New => None,
        })
    }

    fn told(&mut self, n: u64, whats: &[DecisionKind], words: &str) -> Result<Option<String>, StoreError> {
        if !self.read.contains_key(&n) {
            let sql = "SELECT line FROM requests WHERE conversation = ?1 AND n = ?2";
            let mut statement = self.connection.prepare_cached(sql)?;
            let read = |row: &Row<'_>| row.get::<_, String>(0);
            let line = statement.query_row(params![self.conversation, n as i64], read).optional()?;
            self.read.insert(n, line.map(|line| serde_json::from_str(&line)).transpose()?);
        }
        let Some(line) = self.read.get(&n).and_then(Option::as_ref) else { return Ok(None) };
        let mut reasons: Vec<&str> = Vec::new();
        for what in whats {
            for note in line.record.decided.iter().filter(|note| note.what == *what) {
                if !reasons.contains(&note.reason.as_str()) {
                    reasons.push(&note.reason);
                }
            }
            if !reasons.is_empty() {
                break;
            }
        }
        Ok(Some(match reasons.is_empty() {
            true => format!("{words} request {n}"),
            false => format!("{words} request {n}: {}", reasons.join("; ")),
        }))
    }
}
