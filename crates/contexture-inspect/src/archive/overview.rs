//! A conversation at a glance: as a picture, in a number of columns that does not grow with it, and by what happened.

use contexture_gateway::account::record::DecidedNote;
use contexture_gateway::write::StoreError;
use rusqlite::params;

use super::super::view::{ConversationEvent, Cost, Overview, OverviewColumn, RequestLine};
use super::Archive;

impl Archive {
    /// Calls a function with each request of a conversation, in order.
    fn each_line(&self, conversation: &str, mut each: impl FnMut(RequestLine)) -> Result<(), StoreError> {
        let connection = self.lock();
        let mut statement =
            connection.prepare_cached("SELECT line FROM requests WHERE conversation = ?1 ORDER BY n")?;
        let mut rows = statement.query(params![conversation])?;
        while let Some(row) = rows.next()? {
            each(serde_json::from_str(row.get_ref(0)?.as_str().unwrap_or_default())?);
        }
        Ok(())
    }

    /// The requests of a conversation, in at most this many columns.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn overview(&self, conversation: &str, columns: u64) -> Result<Overview, StoreError> {
        let total: i64 = self.lock().query_row(
            "SELECT count(*) FROM requests WHERE conversation = ?1",
            params![conversation],
            |row| row.get(0),
        )?;
        let per_column = (total as u64).div_ceil(columns.max(1)).max(1);
        let mut overview = Overview::default();
        self.each_line(conversation, |line| {
            let cost = Cost::of(&line.record);
            overview.cost = overview.cost.and(cost);
            if line.is_billed_again() {
                overview.again = overview.again.and(cost);
            }
            overview.budget = overview.budget.max(line.record.budget);
            let is_new = (line.n - 1).is_multiple_of(per_column) || overview.columns.is_empty();
            match overview.columns.last_mut().filter(|_| !is_new) {
                Some(column) => add(column, line),
                None => overview.columns.push(column_of(line)),
            }
        })?;
        Ok(overview)
    }

    /// The course of a conversation: its turns, what happened in them, and quiet requests together.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn events(&self, conversation: &str) -> Result<Vec<ConversationEvent>, StoreError> {
        let mut events: Vec<ConversationEvent> = Vec::new();
        let mut turn_at = None;
        self.each_line(conversation, |line| {
            let (cost, range) = (Cost::of(&line.record), (line.n, line.n));
            let verdict = line.verdicts.iter().find(|verdict| verdict.kind.is_listed()).cloned();
            let event = |said, verdict, cost| ConversationEvent { range, turn: line.turn, said, verdict, cost };
            if line.said.is_some() {
                turn_at = Some(events.len());
                events.push(event(line.said.clone(), None, Cost::default()));
            }
            if let Some(turn) = turn_at.and_then(|at| events.get_mut(at)) {
                (turn.cost, turn.range.1) = (turn.cost.and(cost), line.n);
            }
            let is_quiet = |event: &&mut ConversationEvent| event.said.is_none() && event.verdict.is_none();
            match events.last_mut().filter(is_quiet).filter(|_| verdict.is_none()) {
                Some(quiet) => (quiet.range.1, quiet.cost) = (line.n, quiet.cost.and(cost)),
                None => events.push(event(None, verdict, cost)),
            }
        })?;
        Ok(events)
    }
}

fn column_of(line: RequestLine) -> OverviewColumn {
    OverviewColumn {
        n: line.n,
        range: (line.n, line.n),
        turn: line.turn,
        begins: line.said.is_some(),
        cost: Cost::of(&line.record),
        is_billed_again: line.is_billed_again(),
        budget: line.record.budget,
        folds: line.record.decided.iter().filter(|note| DecidedNote::is_fold(note)).count() as u64,
        sent: line.sent_tokens,
        came: line.came_tokens,
        parts: line.parts,
        verdicts: line.verdicts,
    }
}

/// Adds a request to a column, which shows the dearest.
fn add(column: &mut OverviewColumn, line: RequestLine) {
    let (begins, turn, last) = (column.begins || line.said.is_some(), line.turn, line.n);
    let new = column_of(line);
    let (first, folds) = (column.range.0, column.folds + new.folds);
    if new.cost.billed > column.cost.billed {
        *column = new;
    }
    (column.range, column.folds, column.begins, column.turn) = ((first, last), folds, begins, turn);
}
