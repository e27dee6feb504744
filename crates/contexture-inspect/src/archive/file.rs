//! The archive's file as a whole: checked, copied, and put aside if it is damaged.

use std::path::Path;

use contexture_gateway::CheckedFile;
use contexture_gateway::write::{StoreError, check_database, copy_database};
use contexture_store::database::{self, FileContent, LOOKED_THROUGH, put_aside, quick_check};
use rusqlite::Connection;

use super::super::block::text_hash;
use super::super::view::RequestLine;
use super::{Archive, tables};

/// Whether a file is an archive of the inspector. The file is not changed.
pub fn is_archive(path: &Path) -> bool {
    FileContent::of(path, tables::KNOWN_BY) == FileContent::Own
}

/// Looks for damage in an archive: in the database, in every text, and in every request. The file is not changed, and
/// inspectors may go on meanwhile.
///
/// # Errors
/// The file cannot be read at all.
pub fn check_archive_file(path: &Path) -> Result<CheckedFile, StoreError> {
    check_database(path, tables::VERSION, damaged_rows)
}

/// Copies an archive into a new file, as of one moment; inspectors may go on meanwhile. Returns what the copy has.
///
/// # Errors
/// There is something at the target already, the file cannot be read, or the copy cannot be written.
pub fn copy_archive_file(from: &Path, to: &Path) -> Result<CheckedFile, StoreError> {
    copy_database(from, to, tables::VERSION, damaged_rows)
}

/// Texts that are not what was written, and requests that cannot be read.
fn damaged_rows(connection: &Connection, most: usize) -> Result<(u64, Vec<String>), StoreError> {
    let (mut count, mut found) = (0, Vec::new());
    let mut statement = connection.prepare("SELECT id, hash, source, kind, role, name, call, text FROM blocks")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        count += 1;
        let mut parts = [&[][..]; 6];
        for (at, part) in parts.iter_mut().enumerate() {
            *part = row.get_ref(at + 2)?.as_bytes().unwrap_or_default();
        }
        let is_whole = row.get_ref(1)?.as_bytes().is_ok_and(|hash| hash == text_hash(parts));
        if !is_whole && found.len() < most {
            found.push(format!("the text of block {} is not what was written", row.get::<_, i64>(0)?));
        }
    }
    let mut statement = connection.prepare("SELECT conversation, n, line FROM requests")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        count += 1;
        let line = row.get_ref(2)?.as_bytes().unwrap_or_default();
        if serde_json::from_slice::<RequestLine>(line).is_err() && found.len() < most {
            let (conversation, n): (String, i64) = (row.get(0)?, row.get(1)?);
            found.push(format!("request {n} of `{conversation}` cannot be read"));
        }
    }
    Ok((count, found))
}

/// Opens the archive of a gateway, which must never keep it from starting: one that is damaged is put aside, and where
/// none can be written, one is kept until the gateway ends. Returns it with what readers must know.
///
/// # Errors
/// Not even a temporary archive can be created.
pub fn open_or_begin(path: &Path) -> Result<(Archive, Option<String>), StoreError> {
    let error = match Archive::open(path).and_then(|archive| looked_through(archive, path)) {
        Ok(archive) => return Ok((archive, None)),
        Err(error) => error,
    };
    let file = path.display();
    if is_damage(&error)
        && let Ok(aside) = put_aside(path)
        && let Ok(archive) = Archive::open(path)
    {
        let aside = aside.display();
        return Ok((archive, Some(format!("`{file}` was damaged: it is kept as `{aside}`, and a new one was begun"))));
    }
    let note = format!("what is shown is kept only until the gateway ends, because `{file}` cannot be used: {error}");
    Ok((Archive::temporary()?, Some(note)))
}

fn looked_through(archive: Archive, path: &Path) -> Result<Archive, StoreError> {
    if std::fs::metadata(path).is_ok_and(|file| file.len() <= LOOKED_THROUGH)
        && let Some(found) = quick_check(&archive.lock())?
    {
        return Err(StoreError::Damaged(found));
    }
    Ok(archive)
}

fn is_damage(error: &StoreError) -> bool {
    match error {
        StoreError::Damaged(_) => true,
        StoreError::Database(error) => database::is_damage(error),
        _ => false,
    }
}
