//! Why a database cannot be used.

/// Why a database cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PostgresError {
    /// The address is not one of PostgreSQL. It is not shown, since it may hold a password.
    #[error(
        "the address is not one of PostgreSQL: {problem}\nhint: it looks like `postgres://user:password@host:5432/database`"
    )]
    Address {
        /// What is wrong with it.
        problem: String,
    },
    /// The database cannot be reached, or refused the login.
    #[error("connect to {database}")]
    Connect {
        /// Where, without the password.
        database: String,
        /// What stopped it.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Tables could not be made.
    #[error("make the tables of the store in {database}\nhint: the user needs the right to create tables there")]
    NoRights {
        /// Where.
        database: String,
        /// What stopped it.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The tables were made by a newer version of this library.
    #[error(
        "{database} has tables of format {found}, and this program knows up to format {known}\nhint: use a newer version of Contexture"
    )]
    NewerFormat {
        /// Where.
        database: String,
        /// The format of the tables.
        found: i64,
        /// The newest format that is known.
        known: i64,
    },
    /// There is a table of that name which this library did not make.
    #[error(
        "{database} has a table `contexture_meta` that is not of a Contexture store\nhint: use another database, or another schema in the search path"
    )]
    NotAStore {
        /// Where.
        database: String,
    },
}
