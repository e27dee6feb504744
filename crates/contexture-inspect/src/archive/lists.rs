//! Windows as lists of blocks, stored as differences from the previous list.

use rusqlite::{Connection, Row, params};

use contexture_gateway::write::StoreError;

/// Requests after which a list is stored whole.
pub const REQUESTS_PER_WHOLE: u64 = 64;

/// The blocks of a request, as received and as sent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lists {
    /// As received.
    pub came: Vec<u32>,
    /// As it was sent.
    pub sent: Vec<u32>,
}

impl Lists {
    /// Makes them those of the next request: from how many blocks stay, and those that follow, of both lists.
    fn change(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        take(&mut self.came, row.get::<_, i64>(0)? as usize, row.get_ref(1)?.as_blob().unwrap_or_default());
        take(&mut self.sent, row.get::<_, i64>(2)? as usize, row.get_ref(3)?.as_blob().unwrap_or_default());
        Ok(())
    }
}

/// How many leading blocks two lists share.
pub fn shared(one: &[u32], other: &[u32]) -> usize {
    one.iter().zip(other).take_while(|(one, other)| one == other).count()
}

/// Encodes blocks as bytes.
pub fn bytes(blocks: &[u32]) -> Vec<u8> {
    blocks.iter().flat_map(|block| block.to_le_bytes()).collect()
}

fn take(list: &mut Vec<u32>, keep: usize, bytes: &[u8]) {
    list.truncate(keep);
    list.extend(bytes.as_chunks::<4>().0.iter().map(|block| u32::from_le_bytes(*block)));
}

/// Calls a function with the lists of each request of a conversation, in order.
pub fn each(
    connection: &Connection,
    conversation: &str,
    mut each: impl FnMut(&Lists) -> Result<(), StoreError>,
) -> Result<(), StoreError> {
    let sql = "SELECT came_keep, came, sent_keep, sent FROM requests WHERE conversation = ?1 ORDER BY n";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![conversation])?;
    let mut lists = Lists::default();
    while let Some(row) = rows.next()? {
        lists.change(row)?;
        each(&lists)?;
    }
    Ok(())
}

/// The lists of a request; empty if there is no such request.
pub fn read(connection: &Connection, conversation: &str, n: u64) -> Result<Lists, StoreError> {
    let sql = "SELECT came_keep, came, sent_keep, sent FROM requests WHERE conversation = ?1 AND n <= ?2 AND n >=
               (SELECT base FROM requests WHERE conversation = ?1 AND n = ?2) ORDER BY n";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![conversation, n as i64])?;
    let mut lists = Lists::default();
    while let Some(row) = rows.next()? {
        lists.change(row)?;
    }
    Ok(lists)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_of_a_list_gives_the_list() {
        let (before, after) = (vec![1, 2, 3, 4], vec![1, 2, 9]);
        let keep = shared(&before, &after);
        let mut list = before;
        take(&mut list, keep, &bytes(&after[keep..]));
        assert_eq!(list, after);
    }
}
