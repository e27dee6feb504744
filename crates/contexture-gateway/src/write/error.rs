//! Why the store cannot be used.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why the store cannot be used.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file or its directory cannot be created.
    #[error("open the store `{path}`")]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// There is something else in the file, which is not changed.
    #[error("`{}` is no store of the gateway but something else, so it is left as it is", .0.display())]
    Foreign(PathBuf),
    /// It was written by a newer version of the program.
    #[error("the store was written by a newer version ({0}) of the program")]
    Newer(i64),
    /// The database returned an error.
    #[error("the store: {0}")]
    Database(#[from] rusqlite::Error),
    /// Something in it cannot be read.
    #[error("something in the store cannot be read")]
    Unreadable(#[from] serde_json::Error),
    /// Another gateway continued the conversation.
    #[error("another gateway went on with the conversation")]
    Conflict,
    /// The conversation was deleted meanwhile, so all of it has to be written.
    #[error("the conversation was deleted from the store")]
    Gone,
    /// It is not written yet.
    #[error("the store could not be written in time")]
    NotInTime,
    /// It was opened to be read.
    #[error("the store can only be read here")]
    OnlyRead,
    /// So much waits to be written that there is no room for more.
    #[error("the store cannot be written as fast as requests come")]
    Full,
    /// It was written, but may be lost if the machine ends.
    #[error("write the store through to the disk: {0}")]
    NotSynced(String),
    /// What was written together with it failed.
    #[error("{0}")]
    Together(String),
    /// The store is closed, or what writes to it has ended.
    #[error("nothing is written to the store any more")]
    Closed,
    /// Something in it is not what was written.
    #[error("the store is damaged: {0}")]
    Damaged(String),
    /// An address of PostgreSQL was given to a program without it.
    #[error("this program was built without PostgreSQL\nhint: build it with the feature `postgres`")]
    WithoutPostgres,
    /// The shared database cannot be used.
    #[cfg(feature = "postgres")]
    #[error(transparent)]
    Postgres(#[from] contexture::store::PostgresError),
    /// An operation of the shared database failed.
    #[error(transparent)]
    Shared(#[from] contexture::store::StoreError),
    /// The shared database did not respond in time.
    #[error("the store's database does not respond")]
    Away,
    /// The runtime for the shared database could not be started.
    #[error("start what waits for the store's database")]
    Waiting(#[source] io::Error),
}

impl StoreError {
    /// Whether the store is there, or could be, but this user or this system cannot write to it.
    pub fn is_unwritable(&self) -> bool {
        use io::ErrorKind::{AlreadyExists, NotADirectory, PermissionDenied, ReadOnlyFilesystem, StorageFull};
        use rusqlite::ErrorCode::{CannotOpen, DiskFull, PermissionDenied as NotPermitted, ReadOnly, SystemIoFailure};
        match self {
            Self::Open { source, .. } => {
                matches!(
                    source.kind(),
                    AlreadyExists | NotADirectory | PermissionDenied | ReadOnlyFilesystem | StorageFull
                )
            }
            Self::Database(error) => matches!(
                error.sqlite_error_code(),
                Some(CannotOpen | DiskFull | NotPermitted | ReadOnly | SystemIoFailure)
            ),
            Self::OnlyRead => true,
            _ => false,
        }
    }

    /// The same error, for another one who waits for the same write.
    pub(super) fn again(&self) -> Self {
        match self {
            Self::Conflict => Self::Conflict,
            Self::Gone => Self::Gone,
            Self::NotInTime => Self::NotInTime,
            Self::Full => Self::Full,
            Self::Closed => Self::Closed,
            Self::OnlyRead => Self::OnlyRead,
            other => Self::Together(other.to_string()),
        }
    }

    /// What stopped it, in the words of the system.
    pub(crate) fn cause(&self) -> String {
        match self {
            Self::Open { source, .. } => source.to_string(),
            error => error.to_string(),
        }
    }
}
