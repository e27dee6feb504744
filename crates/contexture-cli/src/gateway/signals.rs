//! The signals that `contexture run` handles while an agent runs.

use std::process::ExitStatus;

/// While it exists, Ctrl-C does not end this program: the terminal sends it to the agent too, which decides what it
/// means.
pub(super) struct Signals {
    #[cfg(unix)]
    _interrupts: [tokio::signal::unix::Signal; 2],
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(windows)]
    _interrupts: tokio::signal::windows::CtrlC,
}

impl Signals {
    /// Starts to handle the signals.
    ///
    /// # Errors
    /// The system does not allow it.
    pub(super) fn listen() -> std::io::Result<Self> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            let interrupts = [signal(SignalKind::interrupt())?, signal(SignalKind::quit())?];
            Ok(Self { _interrupts: interrupts, terminate: signal(SignalKind::terminate())? })
        }
        #[cfg(windows)]
        {
            Ok(Self { _interrupts: tokio::signal::windows::ctrl_c()? })
        }
    }

    /// Waits for a request to end this program. Only Unix has one; elsewhere this never returns.
    pub(super) async fn terminated(&mut self) {
        #[cfg(unix)]
        self.terminate.recv().await;
        #[cfg(not(unix))]
        std::future::pending::<()>().await;
    }
}

/// The exit code of an agent, with that of shells for one that a signal ended.
pub(super) fn exit_code(status: ExitStatus) -> i32 {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or(0);
    #[cfg(not(unix))]
    let signal = 0;
    status.code().unwrap_or(128 + signal)
}
