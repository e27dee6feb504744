//! Approval of what tools do.

use futures_util::future::BoxFuture;

/// An action that a tool is about to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolAction<'a> {
    /// Writes a file.
    Write {
        /// The file, relative to the directory.
        path: &'a str,
        /// Its current text; `None` if it does not exist.
        before: Option<&'a str>,
        /// Its new text.
        after: &'a str,
    },
    /// Runs a command.
    Run {
        /// The command line.
        command: &'a str,
    },
}

/// The decision about an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Approval {
    /// It is allowed.
    Allowed,
    /// It is denied; the model is told why.
    Denied(String),
}

/// Decides what tools may do. Called before every change and every command, each time just before it happens.
pub trait Approve: Send + Sync + 'static {
    /// Decides about an action. It may take as long as a user needs; the future is dropped if the turn is cancelled.
    fn approve<'a>(&'a self, action: ToolAction<'a>) -> BoxFuture<'a, Approval>;
}

/// Allows changes of files but no commands. The default.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCommands;

impl Approve for NoCommands {
    fn approve<'a>(&'a self, action: ToolAction<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(std::future::ready(match action {
            ToolAction::Write { .. } => Approval::Allowed,
            ToolAction::Run { .. } => Approval::Denied("commands are not allowed in this session".to_owned()),
        }))
    }
}

/// Allows everything, including commands: for disposable machines.
#[derive(Clone, Copy, Debug, Default)]
pub struct AllowAll;

impl Approve for AllowAll {
    fn approve<'a>(&'a self, _: ToolAction<'a>) -> BoxFuture<'a, Approval> {
        Box::pin(std::future::ready(Approval::Allowed))
    }
}
