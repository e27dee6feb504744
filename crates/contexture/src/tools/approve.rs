//! Who decides whether a tool may change something.

use futures_util::future::BoxFuture;

/// What a tool is about to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action<'a> {
    /// Gives a file a text.
    Write {
        /// The file, relative to the directory.
        path: &'a str,
        /// Its text; `None` if it is not there.
        before: Option<&'a str>,
        /// What its text will be.
        after: &'a str,
    },
    /// Runs a command.
    Run {
        /// The command line.
        command: &'a str,
    },
}

/// Whether a tool may do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approval {
    /// It may.
    Allowed,
    /// It may not; the model is told why.
    Denied(String),
}

/// Decides what tools may do. Asked before every change and every command, each time just before it happens.
pub trait Approve: Send + Sync + 'static {
    /// Whether a tool may do something. It may take as long as a person needs; dropping the future means that the turn
    /// was cancelled.
    fn approve<'a>(&'a self, action: Action<'a>) -> BoxFuture<'a, Approval>;
}

/// Allows changes of files and no commands. The default.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCommands;

impl Approve for NoCommands {
    fn approve<'a>(&'a self, action: Action<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(std::future::ready(match action {
            Action::Write { .. } => Approval::Allowed,
            Action::Run { .. } => Approval::Denied("commands are not allowed in this session".to_owned()),
        }))
    }
}

/// Allows everything, commands too: for machines that nothing can happen to.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllowAll;

impl Approve for AllowAll {
    fn approve<'a>(&'a self, _: Action<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(std::future::ready(Approval::Allowed))
    }
}
