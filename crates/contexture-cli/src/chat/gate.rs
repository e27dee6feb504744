//! Decides what tools may do: everything, nothing, or what a person allows.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use contexture::BoxFuture;
use contexture::host::FsAdapter;
use contexture::item::FunctionCall;
use contexture::layers::Steering;
use contexture::tools::{Approval, Approve, ToolAction};
use serde_json::json;
use tokio::sync::oneshot;

pub(super) use super::happening::COMMAND_TOOL;
use super::happening::{FileEdit, Happening, Happenings, Intent, PermissionQuestion, PermissionReply};
use super::undo::UndoLog;

/// Who allows changes and commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Permission {
    /// They are all allowed.
    Everything,
    /// A person is asked.
    Ask,
    /// None is allowed.
    Nothing,
}

/// Decides what tools may do, and keeps what is needed to take a change back before it is made. Cheap to clone.
#[derive(Clone)]
pub(super) struct ToolGate {
    permission: Permission,
    happenings: Happenings,
    undo: UndoLog,
    /// The rules of the configuration: what they leave to a person is asked about every time.
    steering: Arc<Steering>,
    /// The files that commands may run.
    files: Arc<dyn FsAdapter>,
    /// The kinds of things that a person allowed for the rest of the session.
    allowed: Arc<Mutex<HashSet<AllowedKind>>>,
}

/// A kind of things that can be allowed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum AllowedKind {
    Writes,
    Commands,
    /// Calls of this tool.
    Calls(String),
}

impl AllowedKind {
    fn of(intent: &Intent) -> Self {
        match intent {
            Intent::Write(_) => AllowedKind::Writes,
            Intent::Run(_) => AllowedKind::Commands,
            Intent::Call(tool, _) => AllowedKind::Calls(tool.clone()),
        }
    }
}

impl ToolGate {
    pub(super) fn new(
        permission: Permission,
        happenings: Happenings,
        undo: UndoLog,
        steering: Steering,
        files: Arc<dyn FsAdapter>,
    ) -> Self {
        Self { permission, happenings, undo, steering: Arc::new(steering), files, allowed: Arc::default() }
    }

    /// Whether there is a person who can be asked.
    pub(super) fn can_ask(&self) -> bool {
        self.permission == Permission::Ask
    }

    /// Whether a call of a tool that is not understood may be what a rule is about, in a sentence.
    fn doubt(&self, tool: &str, arguments: &str) -> Option<String> {
        let call = FunctionCall::new("", tool, arguments);
        let rule = self.steering.doubt(tool, &call, &*self.files)?;
        Some(format!("It is not understood as a whole, and may be what your rule `{}` is about.", rule.name))
    }

    /// Whether something may be done.
    pub(super) async fn decide(&self, intent: Intent) -> Approval {
        let doubt = match &intent {
            Intent::Run(command) => self.doubt(COMMAND_TOOL, &json!({ "command": command }).to_string()),
            Intent::Call(tool, arguments) => self.doubt(tool, arguments),
            Intent::Write(_) => None,
        };
        let kind = AllowedKind::of(&intent);
        let is_allowed =
            || doubt.is_none() && self.allowed.lock().unwrap_or_else(PoisonError::into_inner).contains(&kind);
        match self.permission {
            Permission::Nothing => {
                let reason =
                    "nobody can be asked here, and the program was not started with --yes; say what you would do";
                return Approval::Denied(reason.to_owned());
            }
            Permission::Everything if doubt.is_some() => return Approval::Denied(doubt.unwrap_or_default()),
            Permission::Ask if !is_allowed() => match self.ask(intent.clone(), doubt.clone()).await {
                PermissionReply::No => return Approval::Denied("the user said no".to_owned()),
                PermissionReply::Instead(text) => {
                    return Approval::Denied(format!("the user said no, and to do this instead: {text}"));
                }
                PermissionReply::Interrupt => {
                    let reason = "the user did not allow it and interrupted the turn; it was not run";
                    return Approval::Denied(reason.to_owned());
                }
                // What is not understood is asked about again.
                PermissionReply::Always if doubt.is_some() => {}
                PermissionReply::Always => {
                    self.allowed.lock().unwrap_or_else(PoisonError::into_inner).insert(kind);
                }
                PermissionReply::Yes => {}
            },
            Permission::Ask | Permission::Everything => {
                if let Intent::Write(edit) = &intent {
                    // If nobody looks any more, the turn is about to be dropped.
                    let _ = self.happenings.send(Happening::Edited(edit.clone()));
                }
            }
        }
        let Intent::Write(edit) = &intent else { return Approval::Allowed };
        match self.undo.keep(edit).await {
            Ok(()) => Approval::Allowed,
            Err(error) => Approval::Denied(format!("the change could not be recorded first: {error}")),
        }
    }

    async fn ask(&self, intent: Intent, doubt: Option<String>) -> PermissionReply {
        if let Some(doubt) = doubt {
            // If nobody looks any more, nobody replies either.
            let _ = self.happenings.send(Happening::Fault(doubt));
        }
        let (reply, replied) = oneshot::channel();
        match self.happenings.send(Happening::Asked(PermissionQuestion { intent, reply })) {
            Ok(()) => replied.await.unwrap_or(PermissionReply::No),
            Err(_) => PermissionReply::No,
        }
    }
}

impl Approve for ToolGate {
    fn approve<'a>(&'a self, action: ToolAction<'a>) -> BoxFuture<'a, Approval> {
        let intent = match action {
            ToolAction::Write { path, before, after } => Intent::Write(FileEdit {
                path: path.to_owned(),
                before: before.map(str::to_owned),
                after: after.to_owned(),
            }),
            ToolAction::Run { command } => Intent::Run(command.to_owned()),
            _ => return Box::pin(std::future::ready(Approval::Denied("it is not known what this does".to_owned()))),
        };
        Box::pin(self.decide(intent))
    }
}
