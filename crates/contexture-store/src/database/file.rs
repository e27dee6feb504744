//! The file of a database: how it is created and made ready for writing, and what is done when it is damaged.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rusqlite::{Connection, ErrorCode, Transaction, TransactionBehavior};

/// The largest file that is looked through when it is opened, which takes about a tenth of a second.
pub const LOOKED_THROUGH: u64 = 32 << 20;

/// The pauses while waiting for the lock of another process, up to ten seconds in total.
const QUICK_LOOKS: u32 = 200;
const QUICK_PAUSE: Duration = Duration::from_micros(200);
const SLOW_PAUSE: Duration = Duration::from_millis(2);
const MAX_LOOKS: u32 = QUICK_LOOKS + 5_000;

/// What a commit survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syncing {
    /// An end of the machine: each commit is synced.
    Full,
    /// An end of the program.
    Normal,
}

/// The same options, for a file that only its owner can read and write if it is created. SQLite gives the files next to
/// it the same permissions.
pub fn for_owner(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Makes a connection ready for writing: with a write-ahead log, so that readers and a writer do not wait for each other,
/// and so that what is deleted or replaced is overwritten with zeros.
///
/// # Errors
/// The database cannot be written.
pub fn prepare_to_write(connection: &Connection, syncing: Syncing) -> rusqlite::Result<()> {
    use_write_ahead_log(connection)?;
    connection.pragma_update(None, "synchronous", if syncing == Syncing::Full { "FULL" } else { "NORMAL" })?;
    // In a benchmark of commits it made no difference that could be told from noise: the pages are written anyway.
    connection.pragma_update(None, "secure_delete", true)
}

/// Switches the file to the write-ahead log, which happens once.
///
/// SQLite does not wait for the lock that this needs, since two who both wait for it would never get it.
fn use_write_ahead_log(connection: &Connection) -> rusqlite::Result<()> {
    let mut looks = 0;
    loop {
        match connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())) {
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy) && wait_for_lock(looks) => {
                looks += 1;
            }
            done => return done,
        }
    }
}

/// Waits a moment for a lock that another process holds; `false` once the time is up.
///
/// SQLite's own waiting soon pauses for 100 ms, far longer than a commit takes, and would lose every race
/// against a process that writes without a break.
pub(crate) fn wait_for_lock(looks: i32) -> bool {
    let looks = looks.unsigned_abs();
    std::thread::sleep(if looks < QUICK_LOOKS { QUICK_PAUSE } else { SLOW_PAUSE });
    looks < MAX_LOOKS
}

/// The version of the tables of a file; 0 if it has none.
///
/// # Errors
/// The database cannot be read.
pub fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// Changes the tables of an older version to the newest one, all or nothing, unless another program has done so. `change`
/// gets the version that is there.
///
/// # Errors
/// The database cannot be written, or what `change` returns. Then nothing is changed.
pub fn migrate<E: From<rusqlite::Error>>(
    connection: &Connection,
    newest: i64,
    change: impl FnOnce(&Transaction<'_>, i64) -> Result<(), E>,
) -> Result<(), E> {
    let transaction = Transaction::new_unchecked(connection, TransactionBehavior::Immediate)?;
    let found = version(&transaction)?;
    if found < newest {
        change(&transaction, found)?;
        transaction.pragma_update(None, "user_version", newest)?;
        transaction.commit()?;
    }
    Ok(())
}

/// The bytes of a file that are in use.
///
/// # Errors
/// The database cannot be read.
pub fn used_bytes(connection: &Connection) -> rusqlite::Result<u64> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
    Ok((number("page_count")? - number("freelist_count")?).max(0) as u64 * number("page_size")?.max(0) as u64)
}

/// Whether an error means that the file is damaged.
pub fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// Whether an error means that another program writes to the file.
pub fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Looks through the pages of a file. Returns what is wrong first, if something is.
///
/// # Errors
/// The database cannot be read.
pub fn quick_check(connection: &Connection) -> rusqlite::Result<Option<String>> {
    let found: String = connection.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    Ok(Some(found).filter(|found| found != "ok"))
}

/// Renames a database that is damaged, with what belongs to it. Programs that use it go on with it. Returns its new name.
///
/// # Errors
/// It cannot be renamed.
pub fn put_aside(path: &Path) -> io::Result<PathBuf> {
    let beside = |path: &Path, end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let seconds = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let names = (0..).map(|n| beside(path, &format!(".damaged-{}", seconds + n)));
    let aside = names.into_iter().find(|name| !name.exists()).unwrap_or_else(|| beside(path, ".damaged"));
    fs::rename(path, &aside)?;
    for end in ["-wal", "-shm", "-damaged"] {
        match fs::rename(beside(path, end), beside(&aside, end)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    Ok(aside)
}
