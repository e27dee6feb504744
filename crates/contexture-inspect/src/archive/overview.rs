//! A conversation at a glance, in a number of columns that does not grow with it.

use contexture_gateway::write::StoreError;
use rusqlite::params;

use super::super::view::{Overview, OverviewColumn, RequestLine};
use super::Archive;

/// How many times the usual bill a dear request has.
const DEAR_TIMES: f64 = 3.0;

impl Archive {
    /// The requests of a conversation, in at most this many columns.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn overview(&self, conversation: &str, columns: u64) -> Result<Overview, StoreError> {
        let connection = self.lock();
        let sql = "SELECT line FROM requests WHERE conversation = ?1 ORDER BY n";
        let mut statement = connection.prepare_cached(sql)?;
        let mut rows = statement.query(params![conversation])?;
        let total: i64 = connection
            .prepare_cached("SELECT count(*) FROM requests WHERE conversation = ?1")?
            .query_row(params![conversation], |row| row.get(0))?;
        let per_column = (total as u64).div_ceil(columns.max(1)).max(1);
        let mut overview = Overview::default();
        let mut bills = Vec::new();
        while let Some(row) = rows.next()? {
            let line: RequestLine = serde_json::from_str(row.get_ref(0)?.as_str().unwrap_or_default())?;
            bills.extend(line.record.bill.map(|bill| bill.billed));
            overview.budget = overview.budget.max(line.record.budget);
            overview.context = overview.context.max(line.record.context);
            let is_new = (line.n - 1).is_multiple_of(per_column) || overview.columns.is_empty();
            match overview.columns.last_mut().filter(|_| !is_new) {
                Some(column) => add(column, line),
                None => overview.columns.push(column_of(line)),
            }
        }
        bills.sort_by(f64::total_cmp);
        overview.usual = bills.get(bills.len() / 2).copied().unwrap_or(0.0);
        overview.dear = bills.iter().filter(|bill| **bill > DEAR_TIMES * overview.usual).count() as u64;
        Ok(overview)
    }
}

fn billed(line: &RequestLine) -> f64 {
    line.record.bill.map_or(0.0, |bill| bill.billed)
}

fn folds(line: &RequestLine) -> u64 {
    line.record.decided.iter().filter(|note| note.is_fold()).count() as u64
}

fn column_of(line: RequestLine) -> OverviewColumn {
    OverviewColumn {
        n: line.n,
        range: (line.n, line.n),
        turn: line.turn,
        begins: line.said.is_some(),
        billed: billed(&line),
        budget: line.record.budget,
        folds: folds(&line),
        sent: line.sent_tokens,
        came: line.came_tokens,
        sources: line.sources,
        verdicts: line.verdicts,
    }
}

/// Adds a request to a column, which shows the dearest.
fn add(column: &mut OverviewColumn, line: RequestLine) {
    let (first, folds, begins, turn) =
        (column.range.0, column.folds + folds(&line), column.begins || line.said.is_some(), line.turn);
    let last = line.n;
    if billed(&line) > column.billed {
        *column = column_of(line);
    }
    (column.range, column.folds, column.begins) = ((first, last), folds, begins);
    column.turn = turn;
}
