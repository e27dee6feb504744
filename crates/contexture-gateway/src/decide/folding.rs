//! Brings the folder of a conversation up to a request.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use contexture::files::disk::{Gate, RelativePaths};
use contexture::fold::{FoldDecision, Policy};
use contexture::fs::LocalFs;
use contexture::host::FsAdapter;
use contexture::wire::rules::binds_reasoning;
use contexture::wire::{Request, WireError};

use serde_json::value::RawValue;

use super::notes::no_references_note;
use super::referenced::{Referenced, referenced, references_of};
use super::typed::{Typed, typed};
use crate::account::record::DecidedNote;
use crate::conversation::Conversation;
use crate::conversation::directory::of_instructions;
use crate::conversation::folder::{Bound, ConversationFolder, Disk, FolderSettings};
use crate::find::index::FoundConversation;
use crate::options::{Options, References};
use crate::remember::recalled::RecallRequest;

/// Brings folders up to requests, and knows the files that they are about.
pub(crate) struct Folding {
    settings: FolderSettings,
    /// The directory in which the agent was started, if that is known.
    directory: Option<Arc<str>>,
    /// The files beneath it.
    disk: Option<Arc<dyn FsAdapter>>,
    /// How long the files of a request may be compared with the disk.
    comparing: Duration,
    references: References,
    /// Whether it was said that nothing is added for files that messages name.
    is_told: AtomicBool,
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
        let disk = disk.map(|disk| Arc::new(disk) as Arc<dyn FsAdapter>);
        let settings = FolderSettings {
            dialects: options.dialects.clone(),
            can_show,
            counter: options.counter.clone(),
            gate: Gate::default().with_relative_paths(RelativePaths::Unknown),
        };
        // The rest of its own time is for what follows.
        let comparing = options.own_work / 2;
        Self {
            settings,
            directory: options.directory.clone(),
            disk,
            comparing,
            references: options.references,
            is_told: AtomicBool::new(false),
        }
    }

    /// The files of the agent, if its directory is known, for a request that begins now.
    pub fn disk(&self) -> Option<Disk<'_>> {
        self.disk.as_ref().map(|files| Disk { files, until: Instant::now() + self.comparing })
    }

    /// Looks at the files that a folder has in use, while no request waits.
    pub fn warm(&self, folder: &ConversationFolder) {
        self.disk.iter().for_each(|disk| folder.warm(disk));
    }

    /// The folder after all messages of a request, from one in memory if there is any. `is_of_person` says whether a
    /// person may have typed something in it.
    ///
    /// # Errors
    /// A message has a part of an unknown kind.
    pub fn caught_up(
        &self,
        request: &Request<'_>,
        found: &FoundConversation,
        held: Option<ConversationFolder>,
        policy: &Policy,
        is_of_person: bool,
        recall: Option<&RecallRequest<'_>>,
    ) -> Result<CurrentFolder, WireError> {
        // This request may be noted already.
        let mut folder = self.before(request, found, held, policy, request.messages().len())?;
        folder.bind(bound(request, &found.conversation));
        let newest = request.messages().len().saturating_sub(1);
        let (files, mut notes) = if is_of_person { self.named_files(request, &folder) } else { Default::default() };
        let recalled = recall
            .filter(|_| folder.messages() < request.messages().len())
            .and_then(|recall| recall.recalled(request, folder.messages(), folder.log(), &self.settings.counter));
        let memory = recalled.and_then(|recalled| {
            notes.push(recalled.note);
            recalled.text
        });
        let text: Option<Arc<str>> = match (files, memory) {
            (Some(files), Some(memory)) => Some(format!("{files}\n{memory}").into()),
            (files, memory) => files.map(Arc::from).or(memory),
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

    /// The text to send after the newest message for the files that a person names in it, and what is said about it.
    fn named_files(&self, request: &Request<'_>, folder: &ConversationFolder) -> (Option<String>, Vec<DecidedNote>) {
        let is_named = |message: &&RawValue| message.get().contains('#');
        let new = request.messages().get(folder.messages()..).unwrap_or_default();
        let Some(directory) = self.directory.as_deref().filter(|_| new.iter().any(is_named)) else {
            return (None, Vec::new());
        };
        match typed(request, folder.messages(), self.references) {
            Typed::Text(text) => {
                let found = referenced(Path::new(directory), &text, &*self.settings.counter);
                found.map_or_else(Default::default, |Referenced { text, notes }| (Some(text), notes))
            }
            Typed::Unknown(text) => {
                let is_told = references_of(&text).is_empty() || self.is_told.swap(true, Ordering::Relaxed);
                (None, if is_told { Vec::new() } else { vec![no_references_note()] })
            }
            Typed::Nothing => (None, Vec::new()),
        }
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
            let directory = of_instructions(request, beginning.lead);
            let (format, lead) = (beginning.format, beginning.lead);
            ConversationFolder::new(format, lead, policy.clone(), &self.settings, directory, attached)
                .telling_in_thoughts(request.tells_in_thoughts())
                .sparing(conversation.state().health().spared().to_vec())
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
