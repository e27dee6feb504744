//! Why a store cannot be opened.

/// Why a store could not be opened. The file, if there is one, is unchanged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The directory of the file does not exist.
    #[error("open store `{path}`: the directory `{directory}` does not exist\nhint: create it first")]
    NoDirectory {
        /// The file.
        path: String,
        /// The directory.
        directory: String,
    },
    /// The file, or whatever has that name, is not a store.
    #[error("open store `{path}`: this is not a Contexture store")]
    NotAStore {
        /// The file.
        path: String,
    },
    /// The file was written by a newer version of this library.
    #[error("open store `{path}`: it has format {found}, and this program reads up to format {known}")]
    NewerFormat {
        /// The file.
        path: String,
        /// The format that it has.
        found: i32,
        /// The newest format that this program reads.
        known: i32,
    },
    /// The file is ours but was damaged.
    #[error("open store `{path}`: the file is damaged\nhint: restore it from a copy, or move it away")]
    Damaged {
        /// The file.
        path: String,
        /// What was found to be wrong.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The disk or the system failed.
    #[error("open store `{path}`")]
    Io {
        /// The file.
        path: String,
        /// What stopped it.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// It is an address of PostgreSQL that cannot be used.
    #[cfg(feature = "postgres")]
    #[error(transparent)]
    Postgres(#[from] super::PostgresError),
    /// It is an address of PostgreSQL, and this program was built without it.
    #[error(
        "open store `{place}`: this program was built without PostgreSQL\nhint: enable the feature `postgres` of the crate `contexture`"
    )]
    WithoutPostgres {
        /// The address, without the password.
        place: String,
    },
    /// It is a file, and this program was built without SQLite.
    #[error(
        "open store `{path}`: this program was built without SQLite\nhint: enable the feature `sqlite` of the crate `contexture`"
    )]
    WithoutSqlite {
        /// The file.
        path: String,
    },
}
