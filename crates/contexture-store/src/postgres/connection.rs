//! Connections to the database, and retries.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use contexture_core::store::StoreError;
use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, PoolError, RecyclingMethod, Runtime};
use rustls::RootCertStore;
use tokio::sync::OnceCell;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres::error::SqlState;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Config, NoTls, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::error::PostgresError;
use super::pause::pause;
use super::schema;

/// Most connections in the pool.
const CONNECTIONS: usize = 8;

/// Timeout for connecting, and for waiting for a free connection.
const CONNECT: Duration = Duration::from_secs(5);
const WAIT: Duration = Duration::from_secs(30);

/// How often something is tried again: for about ten seconds in all, enough for a server that restarts.
const MAX_RETRIES: u32 = 9;

/// Values of a statement with their types, so that the server need not be asked for them.
pub(super) type Parameters<'a> = &'a [(&'a (dyn ToSql + Sync), Type)];

/// A database; cheap to clone.
#[derive(Clone)]
pub(super) struct Database {
    pool: Pool,
    /// Its address for messages, without the password.
    name: Arc<str>,
    is_ready: Arc<OnceCell<()>>,
    /// Whether missing tables are created.
    creates: bool,
}

impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl Database {
    pub(super) fn new(url: &str) -> Result<Self, PostgresError> {
        let address = |problem: String| PostgresError::Address { problem };
        if !url.starts_with("postgres://") && !url.starts_with("postgresql://") {
            return Err(address("it does not begin with `postgres://`".to_owned()));
        }
        // The error message repeats no part of the address.
        let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| address(error.to_string()))?;
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        config.application_name("contexture");
        let name: Arc<str> = name_of(&config).into();
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = match config.get_ssl_mode() {
            SslMode::Disable => Manager::from_config(config, NoTls, recycling),
            _ => Manager::from_config(config, tls(), recycling),
        };
        let pool = Pool::builder(manager)
            .max_size(CONNECTIONS)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(WAIT))
            .build()
            .map_err(|error| address(error.to_string()))?;
        Ok(Self { pool, name, is_ready: Arc::default(), creates: true })
    }

    /// Makes it an error if there are no tables.
    pub(super) fn existing(self) -> Self {
        Self { creates: false, ..self }
    }

    /// Connects, and creates the tables if they do not exist.
    pub(super) async fn check(&self) -> Result<(), PostgresError> {
        let client = self.pool.get().await.map_err(|error| self.unreachable(error))?;
        self.is_ready.get_or_try_init(|| schema::prepare(&client, &self.name, self.creates)).await?;
        Ok(())
    }

    fn unreachable(&self, error: PoolError) -> PostgresError {
        let state = match &error {
            PoolError::Backend(error) => error.code().cloned(),
            _ => None,
        };
        let (database, source) = (self.name.to_string(), plain(error));
        match state {
            Some(SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION) => {
                PostgresError::Login { database, source }
            }
            Some(SqlState::INVALID_CATALOG_NAME) => PostgresError::NoDatabase { database, source },
            _ => PostgresError::Connect { database, source },
        }
    }

    /// A connection to a database with its tables.
    pub(super) async fn client(&self) -> Result<Object, Trouble> {
        let client = self.pool.get().await.map_err(Trouble::Pool)?;
        let prepare = || schema::prepare(&client, &self.name, self.creates);
        self.is_ready.get_or_try_init(prepare).await.map_err(Trouble::Schema)?;
        Ok(client)
    }

    /// Runs one statement with retries. It must be safe to run it twice.
    pub(super) async fn query(
        &self,
        doing: impl Fn() -> String,
        sql: &str,
        parameters: Parameters<'_>,
    ) -> Result<Vec<Row>, StoreError> {
        let mut retries = Retries::default();
        loop {
            let done = match self.client().await {
                Ok(client) => client.query_typed(sql, parameters).await.map_err(Trouble::Query),
                Err(trouble) => Err(trouble),
            };
            match done {
                Ok(rows) => return Ok(rows),
                Err(trouble) => retries.after(trouble).await.map_err(|trouble| self.failed(doing(), trouble))?,
            }
        }
    }

    /// Converts a failure to an error of the store.
    pub(super) fn failed(&self, doing: String, trouble: Trouble) -> StoreError {
        StoreError::Io { doing: format!("{doing} in {}", self.name), source: trouble.into_source() }
    }
}

/// A connection with a transaction that has not ended. If it is dropped, as when a layer's time is up, the connection is
/// closed: the next one to use it would go on in the middle of the transaction.
pub(super) struct Unfinished(Option<Object>);

impl Unfinished {
    pub(super) fn new(client: Object) -> Self {
        Self(Some(client))
    }

    pub(super) fn client(&self) -> &Client {
        self.0.as_ref().expect("it is taken only at the end")
    }

    /// Returns the connection to the pool, after the transaction has ended.
    pub(super) fn finish(mut self) {
        drop(self.0.take());
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            // Taken out of the pool, it is closed when it is dropped.
            drop(Object::take(client));
        }
    }
}

/// Counts retries.
#[derive(Debug, Default)]
pub(super) struct Retries(u32);

impl Retries {
    /// Waits after a temporary failure.
    ///
    /// # Errors
    /// Returns the failure if it is permanent, or if there were too many retries.
    pub(super) async fn after(&mut self, trouble: Trouble) -> Result<(), Trouble> {
        if !trouble.is_passing() || self.0 >= MAX_RETRIES {
            return Err(trouble);
        }
        pause(self.0).await;
        self.0 += 1;
        Ok(())
    }
}

/// What went wrong.
#[derive(Debug)]
pub(super) enum Trouble {
    /// There is no connection.
    Pool(PoolError),
    /// The tables are missing or cannot be used.
    Schema(PostgresError),
    /// A statement failed.
    Query(tokio_postgres::Error),
}

impl Trouble {
    /// Whether it may be temporary.
    pub(super) fn is_passing(&self) -> bool {
        match self {
            Trouble::Pool(PoolError::Backend(error)) => is_passing(error),
            Trouble::Pool(PoolError::Timeout(_)) => false,
            Trouble::Pool(_) => false,
            Trouble::Schema(PostgresError::Connect { source, .. }) => {
                source.downcast_ref::<tokio_postgres::Error>().is_some_and(is_passing)
            }
            Trouble::Schema(_) => false,
            Trouble::Query(error) => is_passing(error),
        }
    }

    fn into_source(self) -> Box<dyn std::error::Error + Send + Sync> {
        match self {
            Trouble::Pool(error) => plain(error),
            Trouble::Schema(error) => error.into(),
            Trouble::Query(error) => described(error),
        }
    }
}

/// An error with the database's own message, which the client's `Display` leaves out.
fn described(error: tokio_postgres::Error) -> Box<dyn std::error::Error + Send + Sync> {
    match error.as_db_error() {
        Some(said) => format!("{} ({})", said.message(), said.code().code()).into(),
        None => error.into(),
    }
}

fn plain(error: PoolError) -> Box<dyn std::error::Error + Send + Sync> {
    match error {
        PoolError::Backend(error) => described(error),
        PoolError::Timeout(_) => "all connections are in use".into(),
        other => other.into(),
    }
}

/// Whether a failure may be temporary. The statement had no effect, or its outcome is unknown.
pub(super) fn is_passing(error: &tokio_postgres::Error) -> bool {
    if is_lost(error) {
        return true;
    }
    let Some(state) = error.code() else { return false };
    is_undone(error)
        || [
            SqlState::ADMIN_SHUTDOWN,
            SqlState::CRASH_SHUTDOWN,
            SqlState::CANNOT_CONNECT_NOW,
            SqlState::TOO_MANY_CONNECTIONS,
        ]
        .contains(state)
        || state.code().starts_with("08")
}

/// Whether the transaction was certainly rolled back and may succeed when retried.
pub(super) fn is_undone(error: &tokio_postgres::Error) -> bool {
    let undone = [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED];
    error.code().is_some_and(|state| undone.contains(state))
}

/// Whether the connection was lost, so that the outcome is unknown.
pub(super) fn is_lost(error: &tokio_postgres::Error) -> bool {
    let is_io = std::error::Error::source(error).is_some_and(|source| source.is::<std::io::Error>());
    error.is_closed() || is_io
}

/// The system's certificates; without any, only servers without TLS can be used.
fn tls() -> MakeRustlsConnect {
    let mut roots = RootCertStore::empty();
    for certificate in rustls_native_certs::load_native_certs().certs {
        // Certificates that cannot be parsed are skipped.
        let _ = roots.add(certificate);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider has the default versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    MakeRustlsConnect::new(config)
}

/// The address of a database, without the password.
fn name_of(config: &Config) -> String {
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(host)) => host.clone(),
        #[cfg(unix)]
        Some(Host::Unix(path)) => path.display().to_string(),
        None => "localhost".to_owned(),
    };
    let port = config.get_ports().first().copied().unwrap_or(5432);
    let database = config.get_dbname().or(config.get_user()).unwrap_or("postgres");
    format!("PostgreSQL `{database}` at {host}:{port}")
}
