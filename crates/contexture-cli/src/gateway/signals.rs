//! The signals that `contexture run` handles while an agent runs.

use std::process::ExitStatus;

use tokio::process::Child;

/// While it exists, no signal of the terminal or of a user ends this program: the agent decides what they mean.
pub(super) struct Signals {
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
    /// The terminal sends it to the agent too.
    #[cfg(unix)]
    _quit: tokio::signal::unix::Signal,
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    hang_up: tokio::signal::unix::Signal,
    #[cfg(windows)]
    _interrupts: tokio::signal::windows::CtrlC,
}

/// A signal to pass on to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(unix), allow(dead_code))]
pub(super) enum ProcessSignal {
    /// Only Ctrl-C reaches the agent by itself: the terminal sends it to every program in it.
    Interrupt,
    /// It is asked to end.
    Terminate,
    /// Its terminal is gone.
    HangUp,
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
            Ok(Self {
                interrupt: signal(SignalKind::interrupt())?,
                _quit: signal(SignalKind::quit())?,
                terminate: signal(SignalKind::terminate())?,
                hang_up: signal(SignalKind::hangup())?,
            })
        }
        #[cfg(windows)]
        {
            Ok(Self { _interrupts: tokio::signal::windows::ctrl_c()? })
        }
    }

    /// Waits for the next signal. Only Unix has them; elsewhere this never returns.
    pub(super) async fn next(&mut self) -> ProcessSignal {
        #[cfg(unix)]
        {
            tokio::select! {
                _ = self.interrupt.recv() => ProcessSignal::Interrupt,
                _ = self.terminate.recv() => ProcessSignal::Terminate,
                _ = self.hang_up.recv() => ProcessSignal::HangUp,
            }
        }
        #[cfg(not(unix))]
        std::future::pending().await
    }
}

impl ProcessSignal {
    /// Passes it on to an agent. One that has ended already is left alone.
    #[cfg(unix)]
    pub(super) fn pass_on(self, agent: &Child) {
        use rustix::process::{Pid, kill_process};
        // With a terminal, Ctrl-C reaches the agent too; twice could mean something else to it.
        if self == ProcessSignal::Interrupt && std::io::IsTerminal::is_terminal(&std::io::stdin()) {
            return;
        }
        let signal = match self {
            ProcessSignal::Interrupt => rustix::process::Signal::INT,
            ProcessSignal::Terminate => rustix::process::Signal::TERM,
            ProcessSignal::HangUp => rustix::process::Signal::HUP,
        };
        let pid = agent.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid {
            // An error means that it has ended meanwhile.
            let _ = kill_process(pid, signal);
        }
    }

    /// Only Unix has signals.
    #[cfg(not(unix))]
    pub(super) fn pass_on(self, _: &Child) {}
}

/// The exit code of an agent, with that of shells for one that a signal ended.
pub(super) fn exit_code(status: ExitStatus) -> i32 {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or(0);
    #[cfg(not(unix))]
    let signal = 0;
    status.code().unwrap_or(128 + signal)
}
