//! Opens the gateway's file beside others that use it. One that is damaged is put aside, and what is whole in it goes on.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::Path;
use std::time::Duration;

use contexture_store::database::{self, FileContent, LOOKED_THROUGH, Syncing, put_aside};
use rusqlite::{Connection, OpenFlags};

use super::damage::{damage_of, look_through, mark_of};
use super::repair::carry_over;
use super::tables::{self, KNOWN_BY, KNOWN_BY_BYTES, VERSION};
use super::writer::patiently;
use crate::write::error::StoreError;

/// How long a write waits for another process. Requests do not wait for so long.
const BUSY: Duration = Duration::from_secs(2);

/// How long a start waits for other processes.
const STARTING: Duration = Duration::from_secs(20);

/// How much of a file is searched for the words of the schema.
const HEAD: usize = 256 << 10;

/// What to do with a store that is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::write) enum DamagePolicy {
    /// Rename it, and begin a new one with what is whole in it.
    PutAside,
    /// Fail.
    Fail,
}

/// A file that was opened.
pub(in crate::write) struct OpenedFile {
    /// For writing.
    pub(super) writing: Connection,
    /// For moving the write-ahead log into the file.
    pub(super) moving: Connection,
    /// For reading.
    pub(super) reading: Connection,
    /// That a damaged store was put aside.
    pub(super) note: Option<String>,
    /// Whether all of it was looked at.
    pub(super) is_looked_through: bool,
}

/// Opens a file.
pub(super) fn open(path: &Path, damaged: DamagePolicy) -> Result<OpenedFile, StoreError> {
    match begin(path) {
        Err(error) => {
            let Some(damage) = damage_of(&error).filter(|_| damaged == DamagePolicy::PutAside) else {
                return Err(error);
            };
            let failed = |source| StoreError::Open { path: path.to_owned(), source };
            let aside = put_aside(path).map_err(failed)?;
            let mut opened = begin(path)?;
            let carried = match carry_over(&aside, &mut opened.writing) {
                Ok(carried) => carried.to_string(),
                Err(error) => format!("nothing of it could be read ({error}), so a new one was begun"),
            };
            let (path, aside) = (path.display(), aside.display());
            let note = format!("the store `{path}` was damaged ({damage}): it is kept as `{aside}`; {carried}");
            tracing::warn!("{note}");
            Ok(OpenedFile { note: Some(note), ..opened })
        }
        opened => opened,
    }
}

fn begin(path: &Path) -> Result<OpenedFile, StoreError> {
    let fail = |source| StoreError::Open { path: path.to_owned(), source };
    match FileContent::of(path, KNOWN_BY) {
        FileContent::Other if was_own(path) => {
            return Err(StoreError::Damaged("it is no database any more".to_owned()));
        }
        FileContent::Other => return Err(StoreError::Foreign(path.to_owned())),
        FileContent::Nothing | FileContent::Own => {}
    }
    if let Some(directory) = path.parent() {
        make_directory(directory).map_err(fail)?;
    }
    make_file(path).map_err(fail)?;
    let mut writing = connection(path)?;
    patiently(STARTING, || prepare(&mut writing))?;
    let (size, mark) = (fs::metadata(path).map_or(0, |file| file.len()), mark_of(path));
    // A larger one is looked through while it is used, unless damage was found before.
    let is_looked_through = size <= LOOKED_THROUGH || mark.exists();
    if is_looked_through {
        look_through(&writing)?;
        match fs::remove_file(mark) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
            _ => {}
        }
    }
    Ok(OpenedFile { writing, moving: connection(path)?, reading: connection(path)?, note: None, is_looked_through })
}

/// Makes a connection ready for writing, and the file if it is empty. A file that is ready is not written to, so that
/// another process that is writing does not matter.
fn prepare(connection: &mut Connection) -> Result<(), StoreError> {
    let version = database::version(connection)?;
    if version > VERSION {
        return Err(StoreError::Newer(version));
    }
    if version == 0 {
        connection.pragma_update(None, "auto_vacuum", "INCREMENTAL")?;
    }
    // What has to outlast an end of the machine is synced after its commit.
    database::prepare_to_write(connection, Syncing::Normal)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    if version < VERSION {
        tables::create(connection)?;
    }
    Ok(())
}

/// A connection to a file that exists.
pub(super) fn connection(path: &Path) -> Result<Connection, StoreError> {
    let connection = Connection::open(path)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(64);
    Ok(connection)
}

/// A connection that only reads. Where a file is alone, what is beside it is not looked at.
pub(super) fn reading(path: &Path, is_alone: bool) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = match is_alone {
        true => Connection::open_with_flags(alone(path), flags | OpenFlags::SQLITE_OPEN_URI)?,
        false => Connection::open_with_flags(path, flags)?,
    };
    connection.busy_timeout(BUSY)?;
    Ok(connection)
}

/// A file as an address that says that nobody changes it.
fn alone(path: &Path) -> String {
    let shown = path.to_string_lossy().replace('%', "%25").replace('?', "%3f").replace('#', "%23");
    format!("file:{shown}?immutable=1")
}

/// Whether a file is where nothing can be written, so that it can only be read as one that nobody changes.
///
/// # Errors
/// It cannot be read, or what was written last is beside it and cannot be read there.
pub(super) fn is_alone(path: &Path) -> Result<bool, StoreError> {
    let look = |is_alone| -> Result<i64, StoreError> {
        let connection = reading(path, is_alone)?;
        Ok(connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?)
    };
    let Err(error) = look(false) else { return Ok(false) };
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    if fs::metadata(log).is_ok_and(|log| log.len() > 0) {
        return Err(error);
    }
    look(true).map(|_| true)
}

/// Whether a file that is no database was a store of the gateway.
fn was_own(path: &Path) -> bool {
    use std::io::Read;
    let mut head = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(HEAD as u64).read_to_end(&mut head));
    read.is_ok() && head.windows(KNOWN_BY_BYTES.len()).any(|words| words == KNOWN_BY_BYTES)
}

fn make_directory(directory: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

/// Creates the file before the database does, so that nobody else can ever read it.
pub(in crate::write) fn make_file(path: &Path) -> io::Result<()> {
    let file = database::for_owner(OpenOptions::new().create(true).append(true)).open(path)?;
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    drop(file);
    Ok(())
}
