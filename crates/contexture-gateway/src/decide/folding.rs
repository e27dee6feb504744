//! Brings the folder of a conversation up to a request.

use std::path::Path;
use std::sync::Arc;

use contexture::fold::{FoldDecision, Policy};
use contexture::fs::LocalFs;
use contexture::host::FsAdapter;
use contexture::wire::rules::binds_reasoning;
use contexture::wire::{Request, WireError, read};

use super::notes::references_note;
use super::referenced::referenced;
use crate::account::record::DecidedNote;
use crate::conversation::Conversation;
use crate::conversation::folder::{Bound, ConversationFolder, FolderSettings};
use crate::find::index::FoundConversation;
use crate::options::Options;
use crate::remember::recalled::RecallRequest;

/// Brings folders up to requests, and knows the files that they are about.
pub(crate) struct Folding {
    settings: FolderSettings,
    /// The working directory of the agent.
    disk: Option<LocalFs>,
}

/// A folder after all messages of a request.
pub(crate) struct CurrentFolder {
    /// The folder.
    pub folder: ConversationFolder,
    /// The text for files that the newest message names and for what is remembered, with its message.
    pub named: Vec<(usize, Arc<str>)>,
    /// What is said about it.
    pub notes: Vec<DecidedNote>,
}

impl Folding {
    /// Folders with the options of a gateway. `can_show` says whether shortened texts can be shown in full again.
    pub fn new(options: &Options, can_show: bool) -> Self {
        let disk = options.directory.as_deref().and_then(|directory| LocalFs::open(directory).ok());
        let settings = FolderSettings {
            dialects: options.dialects.clone(),
            directory: options.directory.clone(),
            can_show,
            counter: options.counter.clone(),
        };
        Self { settings, disk }
    }

    /// The files of the agent, if its directory is known.
    pub fn disk(&self) -> Option<&dyn FsAdapter> {
        self.disk.as_ref().map(|disk| disk as &dyn FsAdapter)
    }

    /// The folder after all messages of a request, from one in memory if there is any.
    ///
    /// # Errors
    /// A message has a part of an unknown kind.
    pub fn caught_up(
        &self,
        request: &Request<'_>,
        found: &FoundConversation,
        held: Option<ConversationFolder>,
        policy: &Policy,
        recall: Option<&RecallRequest<'_>>,
    ) -> Result<CurrentFolder, WireError> {
        // This request may be noted already.
        let mut folder = self.before(request, found, held, policy, request.messages().len())?;
        folder.bind(bound(request, &found.conversation));
        let newest = request.messages().len().saturating_sub(1);
        let files = self.named_files(request, &folder);
        let mut notes: Vec<DecidedNote> = files.iter().map(|_| references_note()).collect();
        let recalled = recall
            .filter(|_| folder.messages() < request.messages().len())
            .and_then(|recall| recall.recalled(request, folder.messages(), folder.log(), &*self.settings.counter));
        let memory = recalled.and_then(|recalled| {
            notes.push(recalled.note);
            recalled.text
        });
        let text: Option<Arc<str>> = match (files, memory) {
            (Some(files), Some(memory)) => Some(format!("{files}\n{memory}").into()),
            (files, memory) => files.or(memory),
        };
        let named: Vec<_> = text.map(|text| (newest, text)).into_iter().collect();
        for (message, text) in &named {
            folder.attach(*message, text.clone());
        }
        folder.catch_up(request.messages())?;
        Ok(CurrentFolder { folder, named, notes })
    }

    /// The folder after a request for which nothing was decided in time, although something would have been. It is built
    /// while nobody waits for it, so that the next request need not.
    pub fn undecided(
        &self,
        request: &Request<'_>,
        found: &FoundConversation,
        policy: &Policy,
    ) -> Option<ConversationFolder> {
        let mut folder = self.before(request, found, None, policy, request.messages().len() + 1).ok()?;
        folder.bind(bound(request, &found.conversation));
        Some(folder)
    }

    /// The text to send after the newest message for the files that it names.
    fn named_files(&self, request: &Request<'_>, folder: &ConversationFolder) -> Option<Arc<str>> {
        let directory = self.settings.directory.as_deref()?;
        let messages = request.messages();
        let newest = messages.last().filter(|raw| raw.get().contains('#') && folder.messages() < messages.len())?;
        let units = read(request.format(), newest, None).ok()?;
        referenced(Path::new(directory), &units, &*self.settings.counter).map(Arc::from)
    }

    /// The folder in its state after the last request with fewer messages than these.
    fn before(
        &self,
        request: &Request<'_>,
        found: &FoundConversation,
        held: Option<ConversationFolder>,
        policy: &Policy,
        messages: usize,
    ) -> Result<ConversationFolder, WireError> {
        let FoundConversation { conversation, rewrites, .. } = found;
        let beginning = conversation.beginning();
        let newest = {
            let state = conversation.state();
            let before = state.decisions().points().iter().rev().find(|point| **point < messages);
            before.copied().unwrap_or(beginning.lead)
        };
        // The usual case, for which nothing is copied.
        let held = match held {
            Some(held) if held.messages() == newest => return Ok(held),
            held => held,
        };
        let decisions = conversation.state().decisions().clone();
        let points: Vec<usize> = decisions.points().iter().copied().filter(|point| *point < messages).collect();
        let is_point = |messages: usize| points.contains(&messages);
        let held = held.filter(|held| is_point(held.messages()));
        let is_held = held.is_some();
        let new = || {
            let attached = decisions.attached().clone();
            ConversationFolder::new(beginning.format, beginning.lead, policy.clone(), &self.settings, attached)
                .after_rewrites(*rewrites)
        };
        let snapshot = decisions.snapshot().filter(|snapshot| is_point(snapshot.messages));
        let restored = || snapshot.and_then(|snapshot| new().restored(request.messages(), snapshot).ok());
        let mut folder = held.or_else(restored).unwrap_or_else(new);
        let known = folder.messages();
        if known == newest {
            return Ok(folder);
        }
        for (message, text) in decisions.attached().range(known..) {
            folder.attach(*message, text.clone());
        }
        let later: Vec<usize> = points.iter().copied().filter(|point| *point > known).collect();
        // A folder in memory has all decisions: each was made with it.
        let entries = decisions.entries().iter().filter(|entry| !is_held && entry.messages > known);
        let entries = entries.map(|entry| entry.decision.clone()).collect();
        folder.rebuilt(request.messages(), &later, entries)
    }
}

/// What the provider does with reasoning from before the folds of a conversation.
fn bound(request: &Request<'_>, conversation: &Conversation) -> Bound {
    let is_bound = binds_reasoning(request.format(), &request.model().unwrap_or_default());
    let state = conversation.state();
    let folds = state.decisions().entries().iter().filter(|entry| matches!(entry.decision, FoldDecision::Fold(_)));
    Bound { is_bound, messages: folds.map(|entry| entry.messages).max().unwrap_or(0) }
}
