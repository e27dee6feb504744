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
    /// The database cannot be reached.
    #[error("connect to {database}\nhint: check the address, and that the server takes connections from this machine")]
    Connect {
        /// Where, without the password.
        database: String,
        /// What stopped it.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server refused the login.
    #[error("log in to {database}\nhint: check the user and the password")]
    Login {
        /// Where, without the password.
        database: String,
        /// What the server said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The server has no such database.
    #[error("{database} does not exist\nhint: create it with `createdb`, or name another one")]
    NoDatabase {
        /// Where.
        database: String,
        /// What the server said.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// There is no store in the database, and none is to be made.
    #[error("{database} has no Contexture store\nhint: name a database that an agent or a gateway has used")]
    NoStore {
        /// Where.
        database: String,
    },
    /// Tables could not be made, or may not be read.
    #[error(
        "use the tables of the store in {database}\nhint: the user needs the right to create tables there, or to use those that are there"
    )]
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
