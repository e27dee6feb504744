//! When `contexture serve` is asked to stop.

use std::io;

/// While it exists, what asks a program to stop is noticed instead of ending it.
pub(super) struct StopSignals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(windows)]
    interrupt: tokio::signal::windows::CtrlC,
    #[cfg(windows)]
    shutdown: tokio::signal::windows::CtrlShutdown,
}

impl StopSignals {
    /// Starts to notice them.
    ///
    /// # Errors
    /// The system does not allow it.
    pub(super) fn listen() -> io::Result<Self> {
        #[cfg(unix)]
        {
            use tokio::signal::unix::{SignalKind, signal};
            Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
        }
        #[cfg(windows)]
        {
            use tokio::signal::windows::{ctrl_c, ctrl_shutdown};
            Ok(Self { interrupt: ctrl_c()?, shutdown: ctrl_shutdown()? })
        }
    }

    /// Waits for the next one.
    pub(super) async fn next(&mut self) {
        #[cfg(unix)]
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
        #[cfg(windows)]
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.shutdown.recv() => {}
        }
    }
}
