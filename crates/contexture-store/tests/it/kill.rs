//! Child processes that a test starts, listens to, and kills.
//!
//! A child is this test program itself, told to run one ignored test. That test calls [`as_child`], which does
//! nothing unless a parent started it, so running all ignored tests by hand is harmless.

use std::fmt::Display;
use std::io::{BufRead, BufReader, Lines};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// Whether there is time for everything: to kill as often as it takes to meet every moment, and for whole rigs.
pub const IS_LONG: bool = cfg!(feature = "long-tests");

/// Tells a child on which path to work.
const PATH_VARIABLE: &str = "CONTEXTURE_TEST_CHILD_PATH";

/// Tells the lines that a child means for its parent from those of the test harness.
const MARK: &str = "told:";

/// Runs `work` on the path that the parent gave, if this process is a child.
pub fn as_child(work: impl AsyncFnOnce(PathBuf)) {
    let Some(path) = std::env::var_os(PATH_VARIABLE) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(work(path.into()));
}

/// Tells the parent something, in one line.
pub fn tell(what: impl Display) {
    // Standard output is flushed at the end of every line, also into a pipe. The mark begins a new line, because
    // the test harness may have left one unfinished.
    println!("\n{MARK}{what}");
}

/// Runs the ignored test with this full name, to work on `path`.
pub fn command(test: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("the path of this program"));
    command.args([test, "--exact", "--ignored", "--nocapture"]).env(PATH_VARIABLE, path);
    command
}

/// A running child. Dropping it kills it.
pub struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    /// Starts the ignored test with this full name, to work on `path`.
    pub fn start(test: &str, path: &Path) -> Self {
        let mut child = command(test, path).stdout(Stdio::piped()).spawn().expect("start a child process");
        let stdout = child.stdout.take().expect("it was just piped");
        Process { child, lines: BufReader::new(stdout).lines() }
    }

    /// Waits for the next thing that the child tells; `None` when it has ended.
    pub fn next_told(&mut self) -> Option<String> {
        loop {
            let line = self.lines.next()?.expect("the child's output can be read");
            if let Some(told) = line.strip_prefix(MARK) {
                return Some(told.to_owned());
            }
        }
    }

    /// Kills the child without warning (SIGKILL), and answers what it had told and nobody had heard yet.
    pub fn kill(mut self) -> Vec<String> {
        self.child.kill().expect("kill the child");
        self.child.wait().expect("wait for the child");
        std::iter::from_fn(|| self.next_told()).collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A child that has ended already cannot be killed, and need not be.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Numbers that look random and are the same in every run (SplitMix64).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % bound
    }

    /// Does nothing for a moment, so that a kill hits any part of what the child is doing.
    pub fn pause(&mut self) {
        for _ in 0..self.below(400_000) {
            std::hint::spin_loop();
        }
    }
}
