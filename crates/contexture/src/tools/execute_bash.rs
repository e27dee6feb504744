//! `execute_bash`: runs a command.

use std::fmt;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use contexture_core::error::BoxError;
use contexture_core::tool::{Tool, ToolContext};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::{Child, Command};
use tokio::time::{Instant, timeout_at};

use super::approve::ToolAction;
use super::arguments::{parse, schema_of};
use super::output::BoundedOutput;
use super::workspace::Workspace;

/// The default timeout of a command.
const DEFAULT_SECONDS: u64 = 120;

/// The longest timeout of a command.
const MAX_SECONDS: u64 = 1_800;

/// How long output is still read after a command ended: children that it left behind may keep the pipe open forever.
const LAST_OUTPUT: Duration = Duration::from_millis(200);

/// Runs a command with bash in the working directory, if that is allowed.
///
/// This is not a sandbox: a command can do whatever the program can do. When the call is cancelled or times out, the
/// command and everything it started in its process group are killed.
#[derive(Clone, Debug)]
pub struct ExecuteBash {
    workspace: Workspace,
    watch: Watch,
}

/// Is called with what a command prints.
type OutputListener = dyn Fn(&[u8]) + Send + Sync;

/// Is told what a command prints.
#[derive(Clone, Default)]
struct Watch(Option<Arc<OutputListener>>);

impl Watch {
    fn printed(&self, bytes: &[u8]) {
        if let Some(watch) = self.0.as_ref().filter(|_| !bytes.is_empty()) {
            watch(bytes);
        }
    }
}

impl fmt::Debug for Watch {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Watch").field("is_set", &self.0.is_some()).finish()
    }
}

#[derive(Deserialize, JsonSchema)]
struct ExecuteBashArguments {
    /// The command line.
    command: String,
    /// After how many seconds it is killed; 120 if left out, at most 1800.
    timeout_seconds: Option<u64>,
}

impl ExecuteBash {
    /// Creates the tool for a directory.
    pub fn new(workspace: Workspace) -> Self {
        Self { workspace, watch: Watch::default() }
    }

    /// Passes on what commands print, while they run, in the pieces in which it arrives.
    pub fn watched(mut self, watch: impl Fn(&[u8]) + Send + Sync + 'static) -> Self {
        self.watch = Watch(Some(Arc::new(watch)));
        self
    }
}

impl Tool for ExecuteBash {
    fn name(&self) -> &str {
        "execute_bash"
    }

    fn description(&self) -> &str {
        "Runs a command with bash in the working directory and returns what it prints. Each call starts a new shell."
    }

    fn parameters(&self) -> Value {
        schema_of::<ExecuteBashArguments>()
    }

    async fn call(&self, arguments: Value, _: ToolContext<'_>) -> Result<String, BoxError> {
        let ExecuteBashArguments { command, timeout_seconds } = parse(arguments)?;
        self.workspace.ask(ToolAction::Run { command: &command }).await?;
        let seconds = timeout_seconds.unwrap_or(DEFAULT_SECONDS).clamp(1, MAX_SECONDS);
        run(&command, self, Duration::from_secs(seconds)).await
    }
}

/// Runs a command to its end. An exit code other than 0 is an error that includes the output.
async fn run(command: &str, tool: &ExecuteBash, limit: Duration) -> Result<String, BoxError> {
    let workspace = &tool.workspace;
    let mut child = Command::new("bash")
        .env_clear()
        .envs(workspace.environment().variables())
        .arg("-c")
        // Both outputs in the order in which they were printed; messages of bash itself are separate.
        .arg(format!("exec 2>&1; {command}"))
        .current_dir(workspace.directory())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| format!("bash could not be started: {error}"))?;
    let mut group = ProcessGroup::of(&child);
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let deadline = Instant::now() + limit;
    let mut output = BoundedOutput::default();
    let heard = |bytes: &[u8]| {
        tool.watch.printed(bytes);
        output.push(bytes);
    };
    let ended = timeout_at(deadline, read_until_exit(&mut child, stdout, stderr, heard)).await;
    let code = match ended {
        Ok(status) => status?.code(),
        Err(_) => {
            group.kill();
            let text = output.into_text();
            return Err(format!("{text}\n[killed after {} seconds]", limit.as_secs()).into());
        }
    };
    // Processes that it started in the background keep running: servers are started that way.
    group.release();
    let text = output.into_text();
    match code {
        Some(0) if text.is_empty() => Ok("(no output)".to_owned()),
        Some(0) => Ok(text),
        Some(code) => {
            Err(format!("{}\n[The command completed with exit code {code}.]", text.trim_end_matches('\n')).into())
        }
        None => Err(format!("{}\n[ended by a signal]", text.trim_end_matches('\n')).into()),
    }
}

/// Reads what a command prints until it has ended.
async fn read_until_exit(
    child: &mut Child,
    stdout: Option<impl AsyncRead + Unpin>,
    stderr: Option<impl AsyncRead + Unpin>,
    mut heard: impl FnMut(&[u8]),
) -> std::io::Result<std::process::ExitStatus> {
    let (mut stdout, mut stderr) = (Pipe::new(stdout), Pipe::new(stderr));
    let mut status = None;
    let mut last = None;
    while !(stdout.is_closed() && stderr.is_closed()) {
        let silence = async {
            match last {
                Some(until) => tokio::time::sleep_until(until).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            read = stdout.read() => heard(&read?),
            read = stderr.read() => heard(&read?),
            ended = child.wait(), if status.is_none() => {
                status = Some(ended?);
                last = Some(Instant::now() + LAST_OUTPUT);
            }
            () = silence => break,
        }
    }
    match status {
        Some(status) => Ok(status),
        None => child.wait().await,
    }
}

/// One output of a command.
struct Pipe<R> {
    reader: Option<R>,
    buffer: Box<[u8]>,
}

impl<R: AsyncRead + Unpin> Pipe<R> {
    fn new(reader: Option<R>) -> Self {
        Self { reader, buffer: vec![0; 16 * 1024].into() }
    }

    fn is_closed(&self) -> bool {
        self.reader.is_none()
    }

    /// The next bytes; never returns once it is closed.
    async fn read(&mut self) -> std::io::Result<Vec<u8>> {
        let Some(reader) = &mut self.reader else { return std::future::pending().await };
        let count = reader.read(&mut self.buffer).await?;
        if count == 0 {
            self.reader = None;
        }
        Ok(self.buffer[..count].to_vec())
    }
}

/// The process group of a command, which is killed if it is dropped before the command has ended.
struct ProcessGroup(Option<rustix::process::Pid>);

impl ProcessGroup {
    fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(rustix::process::Pid::from_raw))
    }

    fn kill(&mut self) {
        if let Some(group) = self.0.take() {
            // An error means that all of them have ended.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }

    fn release(&mut self) {
        self.0 = None;
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        self.kill();
    }
}
