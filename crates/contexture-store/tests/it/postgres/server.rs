//! A PostgreSQL server of the tests' own, in a folder of its own.

// Other crates use parts of it too.
#![allow(dead_code, clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Set where the server must be there, so that nothing is left out silently.
const REQUIRED: &str = "CONTEXTURE_REQUIRE_POSTGRES";

/// Who runs the server when the tests are run by root, whom it refuses: `nobody`.
const NOBODY: u32 = 65_534;

#[path = "installed.rs"]
mod installed;

pub struct Server {
    directory: tempfile::TempDir,
    binaries: PathBuf,
    pub port: u16,
    process: Child,
    databases: AtomicU64,
}

impl Server {
    /// Starts a server; `None`, with a line that says so, where PostgreSQL is not installed.
    pub fn start() -> Option<Self> {
        let Some(binaries) = installed::binaries() else {
            assert!(std::env::var_os(REQUIRED).is_none(), "PostgreSQL is not installed, and {REQUIRED} is set");
            eprintln!("left out: PostgreSQL is not installed (Debian: `apt-get install postgresql`)");
            return None;
        };
        let directory = tempfile::tempdir().unwrap();
        give_away(directory.path());
        let data = directory.path().join("data");
        let mut init = Command::new(binaries.join("initdb"));
        init.args(["-U", "tester", "-A", "scram-sha-256", "--pwfile"]).arg(password_file(directory.path()));
        let status = as_nobody(init.arg("-D").arg(&data).stdout(Stdio::null())).status().unwrap();
        assert!(status.success(), "initdb failed");
        let port = free_port();
        let process = start(&binaries, directory.path(), port);
        let mut server = Self { directory, binaries, port, process, databases: AtomicU64::new(0) };
        server.wait();
        Some(server)
    }

    /// The address of a database.
    pub fn url(&self, database: &str) -> String {
        self.url_at(self.port, "tester", "secret-word", database)
    }

    pub fn url_at(&self, port: u16, user: &str, password: &str, database: &str) -> String {
        format!("postgres://{user}:{password}@127.0.0.1:{port}/{database}?sslmode=disable")
    }

    /// Makes a database and returns its name.
    pub fn make_database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.run("postgres", &format!("CREATE DATABASE {name}"));
        name
    }

    /// Runs SQL with `psql`.
    pub fn run(&self, database: &str, sql: &str) -> String {
        let mut psql = Command::new(self.binaries.join("psql"));
        let output = psql.args(["-qAt", "-v", "ON_ERROR_STOP=1", "-c", sql, &self.url(database)]).output().unwrap();
        assert!(output.status.success(), "{sql}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Kills the server as a power cut would, and starts it again.
    pub fn restart_hard(&mut self) {
        kill(&mut self.process);
        self.process = start(&self.binaries, self.directory.path(), self.port);
        self.wait();
    }

    /// Stops all processes of the server, so that it accepts connections and says nothing.
    pub fn pause(&mut self) {
        self.signal(rustix::process::Signal::STOP);
    }

    /// Ends a pause.
    pub fn go_on(&mut self) {
        self.signal(rustix::process::Signal::CONT);
    }

    fn signal(&self, signal: rustix::process::Signal) {
        let parent = self.process.id();
        let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap();
        let children = children.split_whitespace().filter_map(|id| id.parse().ok());
        for id in children.chain([parent.cast_signed()]) {
            let id = rustix::process::Pid::from_raw(id).unwrap();
            // A child may have ended meanwhile.
            let _ = rustix::process::kill_process(id, signal);
        }
    }

    fn wait(&mut self) {
        let begun = Instant::now();
        loop {
            // A server refuses to start while children of the one before still use its memory.
            if self.process.try_wait().unwrap().is_some() {
                self.process = start(&self.binaries, self.directory.path(), self.port);
            }
            let mut ready = Command::new(self.binaries.join("pg_isready"));
            let ready = ready.args(["-q", "-h", "127.0.0.1", "-p", &self.port.to_string()]).status().unwrap();
            if ready.success() {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(120), "PostgreSQL did not start");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        kill(&mut self.process);
    }
}

/// Kills the server and its children, which notice by themselves.
fn kill(process: &mut Child) {
    let _ = process.kill();
    let _ = process.wait();
}

fn start(binaries: &Path, directory: &Path, port: u16) -> Child {
    let _ = std::fs::remove_file(directory.join("data/postmaster.pid"));
    let mut server = Command::new(binaries.join("postgres"));
    server.arg("-D").arg(directory.join("data")).arg("-k").arg(directory);
    server.args(["-p", &port.to_string(), "-c", "listen_addresses=127.0.0.1", "-c", "max_connections=200"]);
    let log = std::fs::File::create(directory.join("log")).unwrap();
    as_nobody(server.stdout(Stdio::null()).stderr(log).stdin(Stdio::null())).spawn().unwrap()
}

fn is_root() -> bool {
    rustix::process::getuid().is_root()
}

fn as_nobody(command: &mut Command) -> &mut Command {
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command.current_dir("/")
}

fn give_away(path: &Path) {
    if is_root() {
        std::os::unix::fs::chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
}

fn password_file(directory: &Path) -> PathBuf {
    let path = directory.join("password");
    std::fs::write(&path, "secret-word\n").unwrap();
    give_away(&path);
    path
}

fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
