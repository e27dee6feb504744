//! The host's capabilities for the engine: time, names, and a shell.

mod environment;

use std::process::Stdio;

use contexture_core::id::IdSource;
use futures_util::future::BoxFuture;

pub use contexture_core::host::{
    Base, DirEntry, EntryKind, FileError, FileErrorCode, FileStamp, FileText, FsAdapter, MAX_PATH_BYTES, NoFiles,
    NoShell, ReadLimits, ShellAdapter, ShellError, ShellOutput, relative_path,
};
pub use contexture_store::SystemClock;
pub use environment::ProgramEnvironment;

/// The name of this machine, by which others can tell who holds a lease.
pub fn machine() -> String {
    #[cfg(unix)]
    return rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    "this machine".to_owned()
}

/// Random names that sort by the time at which they were made (UUID version 7).
#[derive(Clone, Copy, Debug, Default)]
pub struct UuidIds;

impl IdSource for UuidIds {
    fn fresh(&self) -> String {
        uuid::Uuid::now_v7().to_string()
    }
}

/// Runs commands with `sh -c` in one directory.
///
/// This is not a sandbox: a command can do whatever the program itself can do. It does not get the environment of the
/// program, but a [`ProgramEnvironment`].
#[derive(Clone, Debug)]
pub struct LocalShell {
    directory: std::path::PathBuf,
    environment: ProgramEnvironment,
}

impl LocalShell {
    /// A shell that works in `directory`.
    pub fn new(directory: impl Into<std::path::PathBuf>) -> Self {
        Self { directory: directory.into(), environment: ProgramEnvironment::of_process() }
    }

    /// The same with other environment variables.
    pub fn with_environment(mut self, environment: ProgramEnvironment) -> Self {
        self.environment = environment;
        self
    }
}

impl ShellAdapter for LocalShell {
    fn run<'a>(&'a self, command: &'a str) -> BoxFuture<'a, Result<ShellOutput, ShellError>> {
        Box::pin(async move {
            let output = tokio::process::Command::new("sh")
                .arg("-c")
                .arg(command)
                .env_clear()
                .envs(self.environment.variables())
                .current_dir(&self.directory)
                .stdin(Stdio::null())
                .kill_on_drop(true)
                .output()
                .await;
            match output {
                Ok(output) => {
                    Ok(ShellOutput { exit_code: output.status.code(), stdout: output.stdout, stderr: output.stderr })
                }
                Err(error) => Err(ShellError { command: command.to_owned(), message: error.to_string() }),
            }
        })
    }
}
