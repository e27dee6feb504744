//! `contexture store`: copies and checks stores.

use std::env;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use contexture::host::UuidIds;
use contexture::id::IdSource;
use contexture::store::{self, Checked, Copied, OpenError, Place, SqliteStore};
use contexture_core::percent::{encoded, is_unreserved};
use contexture_gateway::CheckedFile;
use contexture_inspect::OwnFile;
use serde_json::json;

use crate::failure::Failure;
use contexture_terminal::progress::ProgressLine;
use contexture_terminal::screen::Screen;
use contexture_text::numbers::counted;

/// How often a store that somebody writes to is copied.
const MAX_COPIES: usize = 5;

/// Copy a store between a file and PostgreSQL, or look for damage in one
///
/// A store is a file, or a database: postgres://user@host/database. The password is taken from PGPASSWORD if the address
/// has none. docs/many-machines.md says when to move and how.
#[derive(Args)]
pub struct StoreCommand {
    #[command(subcommand)]
    work: StoreAction,
}

#[derive(Subcommand)]
enum StoreAction {
    /// Copy a store into an empty one, and compare both at the end
    ///
    /// Stop what uses them first. If it is interrupted, the same command goes on where it was. Nothing is deleted.
    Copy {
        /// The store to copy
        #[arg(value_name = "FROM", value_parser = place)]
        from: Place,
        /// An empty one: a new file, or an empty database
        #[arg(value_name = "TO", value_parser = place)]
        to: Place,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Look for damage in a store, name it, and change nothing
    ///
    /// Agents may go on meanwhile. The exit code is 1 if something is damaged.
    Check {
        /// The store
        #[arg(value_name = "STORE", value_parser = place)]
        store: Place,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Carries out the command.
///
/// # Errors
/// A store cannot be opened, read or written, or something in it is damaged.
pub fn run(command: &StoreCommand, screen: Screen) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    match &command.work {
        StoreAction::Copy { from: Place::File(from), to, json } if let Some(own) = OwnFile::at(from) => {
            copy_own(own, from, to, *json)
        }
        StoreAction::Check { store: Place::File(path), json } if let Some(own) = OwnFile::at(path) => {
            report_file("checked", own, &own.check(path).map_err(|error| Failure::of(&error))?, path, *json)
        }
        StoreAction::Copy { from, to, json } => {
            let mut line = ProgressLine::new();
            let copied = runtime.block_on(store::copy(from, to, &mut |at| {
                let doing = if at.is_checking { "comparing" } else { "copying" };
                line.show(&format!("{doing} {}/{}", at.done, at.total));
            }));
            drop(line);
            let copied = copied.map_err(|error| Failure::of(&error))?;
            Ok(io::stdout().write_all(as_copied(&copied, from, to, *json, screen).as_bytes())?)
        }
        StoreAction::Check { store, json } => {
            let mut line = ProgressLine::new();
            let checked = runtime
                .block_on(store::check(store, &mut |done, total| line.show(&format!("checking {done}/{total}"))));
            drop(line);
            let checked = checked.map_err(|error| Failure::of(&error))?;
            io::stdout().write_all(as_checked(&checked, store, *json).as_bytes())?;
            match checked.findings.len() as u64 + checked.more {
                0 => Ok(()),
                count => Err(Failure::work(format!("{} in `{store}`", counted(count as usize, "damaged place")))
                    .hint("restore it from a backup, or copy what can be read; nothing was changed")),
            }
        }
    }
}

/// Copies the file of the gateway or of its inspector.
fn copy_own(own: OwnFile, from: &Path, to: &Place, json: bool) -> Result<(), Failure> {
    let Place::File(to) = to else {
        let (from, whose) = (from.display(), own.whose());
        return Err(Failure::work(format!("`{from}` is a file of the {whose}, which is copied into a file only"))
            .hint("a gateway with a database begins with an empty one: contexture serve --store postgres://…"));
    };
    let copied = own.copy(from, to).map_err(|error| Failure::of(&error))?;
    report_file("copied", own, &copied, to, json)
}

/// Prints what is in the file of the gateway or of its inspector, and fails if something is damaged.
fn report_file(done: &str, own: OwnFile, checked: &CheckedFile, path: &Path, json: bool) -> Result<(), Failure> {
    let mut text = match json {
        true => serde_json::to_string(checked).unwrap_or_default(),
        false => {
            let (conversations, requests) = (checked.conversations as usize, checked.requests as usize);
            let mut lines = vec![format!(
                "{done} {} and {} of the {}",
                counted(conversations, "conversation"),
                counted(requests, "request"),
                own.whose()
            )];
            lines.extend(checked.findings.iter().map(|finding| format!("damaged: {finding}")));
            lines.join("\n")
        }
    };
    text.push('\n');
    io::stdout().write_all(text.as_bytes())?;
    match checked.findings.len() {
        0 => Ok(()),
        count => {
            Err(Failure::work(format!("{} in `{}`", counted(count, "damaged place"), path.display()))
                .hint(own.advice()))
        }
    }
}

/// A store that was named, with the password of the environment if the address has none.
///
/// # Errors
/// It is an address of something else than PostgreSQL.
pub fn place(text: &str) -> Result<Place, String> {
    match Place::new(text) {
        Place::Postgres(url) => Ok(Place::Postgres(with_password(url, env::var("PGPASSWORD").ok()))),
        Place::File(_) if text.contains("://") => {
            Err("a store is a file, or a database: postgres://user@host/database".to_owned())
        }
        Place::File(path) if path.as_os_str().is_empty() => Err("a store has a name".to_owned()),
        file => Ok(file),
    }
}

/// The same as a path, for the gateway's options.
pub fn path_of(place: &Place) -> PathBuf {
    match place {
        Place::File(path) => path.clone(),
        Place::Postgres(url) => PathBuf::from(url),
    }
}

/// A store that is only looked into.
pub struct Looked {
    path: PathBuf,
    /// The directory of a copy, which is removed in the end.
    copy: Option<PathBuf>,
}

impl Looked {
    /// Opens a file to look into it. What this user may read but not write is copied first, because SQLite writes beside
    /// a file also to read it.
    ///
    /// # Errors
    /// It cannot be read, or is no store.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        let error = match SqliteStore::open(path) {
            Ok(_) => return Ok(Self { path: path.to_owned(), copy: None }),
            Err(error) => error,
        };
        if !matches!(error, OpenError::Io { .. }) {
            return Err(Failure::of(&error));
        }
        let failed = |error: io::Error| {
            Failure::work(format!("read the store `{}`: {error}", path.display()))
                .hint("it must be readable, with the files beside it that end in -wal and -shm")
        };
        let copy = env::temp_dir().join(format!("contexture-{}-{}", std::process::id(), UuidIds.fresh()));
        #[cfg_attr(not(unix), allow(unused_mut))]
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&copy).map_err(failed)?;
        let looked = Self { path: copy.join("copy.db"), copy: Some(copy) };
        looked.fill(path).map_err(failed)?;
        SqliteStore::open(&looked.path).map_err(|error| Failure::of(&error))?;
        Ok(looked)
    }

    /// Copies the file with its write-ahead log, again if they changed meanwhile.
    fn fill(&self, path: &Path) -> io::Result<()> {
        let beside = |path: &Path, end: &str| PathBuf::from(format!("{}{end}", path.display()));
        let log = beside(path, "-wal");
        let state = || {
            let stamp = |path: &Path| fs::metadata(path).and_then(|file| Ok((file.len(), file.modified()?))).ok();
            (stamp(path), stamp(&log))
        };
        for _ in 0..MAX_COPIES {
            let before = state();
            write_copy(path, &self.path)?;
            if log.exists() {
                write_copy(&log, &beside(&self.path, "-wal"))?;
            }
            if state() == before {
                return Ok(());
            }
        }
        Err(io::Error::other("somebody goes on writing to it"))
    }

    /// Where it can be opened.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Copies the text of a file, but not its permissions.
fn write_copy(from: &Path, to: &Path) -> io::Result<()> {
    io::copy(&mut File::open(from)?, &mut File::create(to)?).map(drop)
}

impl Drop for Looked {
    fn drop(&mut self) {
        if let Some(copy) = &self.copy {
            // The system removes what is left in its temporary directory.
            let _ = fs::remove_dir_all(copy);
        }
    }
}

fn with_password(url: String, password: Option<String>) -> String {
    let login = url.split("://").nth(1).and_then(|rest| rest.rsplit_once('@')).map_or("", |(login, _)| login);
    let has_one = login.contains(':') || url.contains("password=");
    match password.filter(|password| !has_one && !password.is_empty()) {
        Some(password) => {
            let sign = if url.contains('?') { '&' } else { '?' };
            format!("{url}{sign}password={}", encoded(password.as_bytes(), is_unreserved))
        }
        None => url,
    }
}

fn as_copied(copied: &Copied, from: &Place, to: &Place, as_json: bool, screen: Screen) -> String {
    if as_json {
        return format!("{:#}\n", json!({ "from": from.to_string(), "to": to.to_string(), "copied": copied }));
    }
    let Copied { records, bytes, documents, already, digest, .. } = copied;
    let kept = if *already > 0 { format!(" ({already} were there already)") } else { String::new() };
    let what = format!(
        "copied {} of {bytes} bytes and {} of the search index from {from} to {to}{kept}",
        counted(*records, "record"),
        counted(*documents, "document")
    );
    let same = format!("both have the digest {digest}");
    let next = screen.next("start your agents with the new store; the old one is unchanged");
    format!("{}\n{same}\n{next}", screen.wrap(&what, 2))
}

fn as_checked(checked: &Checked, place: &Place, as_json: bool) -> String {
    if as_json {
        return format!("{:#}\n", json!({ "store": place.to_string(), "checked": checked }));
    }
    let Checked { records, bytes, threads, documents, findings, more, .. } = checked;
    let mut text = format!(
        "{place}: {} of {bytes} bytes, {}, {} of the search index\n",
        counted(*records as usize, "record"),
        counted(*threads as usize, "thread"),
        counted(*documents as usize, "document")
    );
    for finding in findings {
        text.push_str(&format!("  {}: {}\n", finding.subject.escape_debug(), finding.problem.escape_debug()));
    }
    if *more > 0 {
        text.push_str(&format!("  and {more} more\n"));
    }
    if findings.is_empty() {
        text.push_str("nothing is damaged\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::with_password;

    #[test]
    fn the_password_of_the_environment_is_added_where_there_is_none() {
        let added = |url: &str| with_password(url.to_owned(), Some("a b&c".to_owned()));
        assert_eq!(added("postgres://ann@host/db"), "postgres://ann@host/db?password=a%20b%26c");
        assert_eq!(
            added("postgres://ann@host/db?sslmode=disable"),
            "postgres://ann@host/db?sslmode=disable&password=a%20b%26c"
        );
        assert_eq!(added("postgres://ann:own@host/db"), "postgres://ann:own@host/db");
        assert_eq!(added("postgres://host/db?password=own"), "postgres://host/db?password=own");
        assert_eq!(with_password("postgres://host/db".to_owned(), None), "postgres://host/db");
    }
}
