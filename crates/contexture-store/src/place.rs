//! Where a store is.

use std::fmt;
use std::path::{Path, PathBuf};

/// How addresses of PostgreSQL begin.
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

/// Where a store is: a file of this machine, or a database.
#[derive(Clone, PartialEq, Eq)]
pub enum Place {
    /// A SQLite file.
    File(PathBuf),
    /// The address of a database. It may contain a password, which is never shown.
    Postgres(String),
}

impl Place {
    /// A text that begins with `postgres://` or `postgresql://` is the address of a database; all others are paths.
    pub fn new(text: impl AsRef<Path>) -> Self {
        let path = text.as_ref();
        match path.to_str() {
            Some(url) if SCHEMES.iter().any(|scheme| url.starts_with(scheme)) => Place::Postgres(url.to_owned()),
            _ => Place::File(path.to_owned()),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::File(path) => write!(f, "{}", path.display()),
            Place::Postgres(url) => f.write_str(&without_password(url)),
        }
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The address without its password and without its options, which may have one too.
fn without_password(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    // A password may contain anything, so everything up to the last `@` is the user and the password.
    let (login, host) = rest.rsplit_once('@').unwrap_or(("", rest));
    match login.split(':').next() {
        Some(user) if !user.is_empty() => format!("{scheme}://{user}@{host}"),
        _ => format!("{scheme}://{host}"),
    }
}

#[cfg(test)]
mod tests {
    use super::Place;

    #[track_caller]
    fn check(text: &str, shown: &str) {
        let place = Place::new(text);
        assert_eq!(place.to_string(), shown);
        assert_eq!(format!("{place:?}"), shown);
    }

    #[test]
    fn a_password_is_not_shown() {
        check("postgres://ann:word@host:5432/db", "postgres://ann@host:5432/db");
        check("postgresql://ann:w@rd/x@host/db?password=word", "postgresql://ann@host/db");
        check("postgres://host/db?user=ann&password=word", "postgres://host/db");
        check("postgres://:word@host/db", "postgres://host/db");
        check("postgres://", "postgres://");
        check("/var/agent.db", "/var/agent.db");
    }

    #[test]
    fn an_address_is_known_by_its_beginning() {
        assert!(matches!(Place::new("postgres://x"), Place::Postgres(_)));
        assert!(matches!(Place::new("./postgres:/x"), Place::File(_)));
        assert!(matches!(Place::new("mysql://x/y"), Place::File(_)));
    }
}
