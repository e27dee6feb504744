//! The documents that have a term, packed in runs.
//!
//! A run has postings of one term in the order of their documents. For each it has the distance to the document before,
//! how often the term occurs and the length of the document, as numbers of seven bits a byte. Packed, the postings of a
//! large index fit in few pages: a batch changes fewer of them, and a search reads fewer.

use contexture_core::search::Posting;
use rusqlite::{CachedStatement, Connection, OptionalExtension, Transaction, params};

pub(super) const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS search_runs (
        term INTEGER NOT NULL,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        postings BLOB NOT NULL,
        PRIMARY KEY (term, first)
    ) STRICT, WITHOUT ROWID;
";

/// A longer run gets no further postings. SQLite keeps rows of up to about 1 000 bytes within their page.
const FULL_BYTES: usize = 900;

const SAVE: &str = "INSERT OR REPLACE INTO search_runs VALUES (?1, ?2, ?3, ?4)";

/// A row.
#[derive(Clone, Debug, Default, PartialEq)]
struct RunRow {
    /// What distances are counted from; the first document of the run when it was begun.
    first: i64,
    /// Its last document.
    last: i64,
    bytes: Vec<u8>,
}

impl RunRow {
    fn new(first: i64) -> Self {
        Self { first, last: first, bytes: Vec::new() }
    }

    /// Adds a posting of a later document, or of the first.
    fn push(&mut self, posting: &Posting<i64>) {
        write_number(&mut self.bytes, posting.document.abs_diff(self.last));
        write_number(&mut self.bytes, posting.count.into());
        write_number(&mut self.bytes, posting.length.into());
        self.last = posting.document;
    }

    fn is_full(&self) -> bool {
        self.bytes.len() >= FULL_BYTES
    }

    /// Adds its postings to those of other runs.
    fn read_into(&self, postings: &mut Vec<Posting<i64>>) -> Option<()> {
        let (mut rest, mut document) = (self.bytes.as_slice(), self.first);
        while !rest.is_empty() {
            document = document.checked_add_unsigned(read_number(&mut rest)?)?;
            let (count, length) = (read_number(&mut rest)?, read_number(&mut rest)?);
            postings.push(Posting { document, count: count.try_into().ok()?, length: length.try_into().ok()? });
        }
        Some(())
    }

    fn postings(&self) -> rusqlite::Result<Vec<Posting<i64>>> {
        let mut postings = Vec::new();
        self.read_into(&mut postings).ok_or_else(damaged)?;
        Ok(postings)
    }

    /// Saves it with the statement [`SAVE`].
    fn save(&self, save: &mut CachedStatement<'_>, term: i64) -> rusqlite::Result<()> {
        save.execute(params![term, self.first, self.last, self.bytes]).map(|_| ())
    }
}

fn damaged() -> rusqlite::Error {
    rusqlite::Error::InvalidColumnType(3, "postings".to_owned(), rusqlite::types::Type::Blob)
}

fn write_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

fn read_number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7F) << shift;
        if *byte < 0x80 {
            return Some(number);
        }
    }
    None
}

/// Adds postings to the runs of many terms.
pub(super) struct Appender<'a> {
    find_last: CachedStatement<'a>,
    save: CachedStatement<'a>,
}

impl<'a> Appender<'a> {
    pub(super) fn new(transaction: &'a Transaction<'_>) -> rusqlite::Result<Self> {
        let sql = "SELECT first, last, postings FROM search_runs WHERE term = ?1 ORDER BY first DESC LIMIT 1";
        Ok(Self { find_last: transaction.prepare_cached(sql)?, save: transaction.prepare_cached(SAVE)? })
    }

    /// Adds postings of documents that are later than all before, in their order.
    pub(super) fn append(&mut self, term: i64, postings: &[Posting<i64>]) -> rusqlite::Result<()> {
        let mut last = self.find_last.query_row([term], run).optional()?.filter(|run| !run.is_full());
        for posting in postings {
            let current = last.get_or_insert_with(|| RunRow::new(posting.document));
            current.push(posting);
            if current.is_full() {
                current.save(&mut self.save, term)?;
                last = None;
            }
        }
        last.map_or(Ok(()), |run| run.save(&mut self.save, term))
    }
}

/// Removes a posting; returns whether the term has others.
pub(super) fn remove(transaction: &Transaction<'_>, term: i64, document: i64) -> rusqlite::Result<bool> {
    if let Some(run) = with_document(transaction, term, document)? {
        let mut shorter = RunRow::new(run.first);
        run.postings()?.iter().filter(|posting| posting.document != document).for_each(|posting| shorter.push(posting));
        if shorter.bytes.is_empty() {
            let mut delete = transaction.prepare_cached("DELETE FROM search_runs WHERE term = ?1 AND first = ?2")?;
            delete.execute([term, run.first])?;
        } else {
            shorter.save(&mut transaction.prepare_cached(SAVE)?, term)?;
        }
    }
    transaction.prepare_cached("SELECT 1 FROM search_runs WHERE term = ?1 LIMIT 1")?.exists([term])
}

/// All postings of a term, in the order of their documents.
pub(super) fn read(connection: &Connection, term: i64) -> rusqlite::Result<Vec<Posting<i64>>> {
    let sql = "SELECT first, last, postings FROM search_runs WHERE term = ?1 ORDER BY first";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([term])?;
    let mut postings = Vec::new();
    while let Some(row) = rows.next()? {
        run(row)?.read_into(&mut postings).ok_or_else(damaged)?;
    }
    Ok(postings)
}

/// How often a document has a term, if it does.
#[cfg(feature = "postgres")]
pub(super) fn count_in(connection: &Connection, term: i64, document: i64) -> rusqlite::Result<Option<u32>> {
    let Some(run) = with_document(connection, term, document)? else { return Ok(None) };
    Ok(run.postings()?.iter().find(|posting| posting.document == document).map(|posting| posting.count))
}

/// The number of all postings.
#[cfg(feature = "postgres")]
pub(super) fn count_all(connection: &Connection) -> rusqlite::Result<usize> {
    let mut statement = connection.prepare("SELECT first, last, postings FROM search_runs")?;
    let mut rows = statement.query([])?;
    let mut count = 0;
    while let Some(row) = rows.next()? {
        count += run(row)?.postings()?.len();
    }
    Ok(count)
}

/// The run in which a document would be.
fn with_document(connection: &Connection, term: i64, document: i64) -> rusqlite::Result<Option<RunRow>> {
    let sql =
        "SELECT first, last, postings FROM search_runs WHERE term = ?1 AND first <= ?2 ORDER BY first DESC LIMIT 1";
    let found = connection.prepare_cached(sql)?.query_row([term, document], run).optional()?;
    Ok(found.filter(|run| run.last >= document))
}

fn run(row: &rusqlite::Row<'_>) -> rusqlite::Result<RunRow> {
    Ok(RunRow { first: row.get(0)?, last: row.get(1)?, bytes: row.get(2)? })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_appended_in_parts_is_read_and_removed(
            steps in prop::collection::vec((1_i64..1 << 20, 1_u32..300, 0_u32..70_000), 1..900),
            parts in 1_usize..9,
            removed in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        ) {
            let mut connection = Connection::open_in_memory().unwrap();
            connection.execute_batch(SCHEMA).unwrap();
            let transaction = connection.transaction().unwrap();
            let mut document = 0;
            let mut expected: Vec<Posting<i64>> = Vec::new();
            for (step, count, length) in steps {
                document += step;
                expected.push(Posting { document, count, length });
            }
            for part in expected.chunks(expected.len().div_ceil(parts)) {
                let mut appender = Appender::new(&transaction).unwrap();
                appender.append(1, part).unwrap();
                appender.append(2, &part[..1]).unwrap();
            }
            prop_assert_eq!(&read(&transaction, 1).unwrap(), &expected);
            for index in removed {
                if expected.is_empty() {
                    break;
                }
                let gone = expected.remove(index.index(expected.len()));
                let has_others = remove(&transaction, 1, gone.document).unwrap();
                prop_assert_eq!(has_others, !expected.is_empty());
                remove(&transaction, 1, gone.document + (1 << 40)).unwrap();
            }
            prop_assert_eq!(&read(&transaction, 1).unwrap(), &expected);
        }

        #[test]
        fn damaged_runs_are_told(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let mut postings = Vec::new();
            let read = RunRow { first: i64::MAX - 5, last: 0, bytes: bytes.clone() }.read_into(&mut postings);
            prop_assert!(read.is_none() || bytes.is_empty() || !postings.is_empty());
        }
    }
}
