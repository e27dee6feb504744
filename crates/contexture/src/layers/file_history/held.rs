//! The folder of a thread after the last request, in memory or serialised.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use contexture_core::decision::Decision;
use contexture_core::history::History;
use contexture_core::host::FsAdapter;
use contexture_core::item::Item;
use contexture_core::layer::NewDecision;
use contexture_core::log::ItemLog;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use super::{new_decision, read_decision};
use crate::files::disk::Gate;
use crate::fold::{Asking, Folder, Replay, Rest, ShownItem};

/// The folder of a thread.
pub(super) struct ThreadFolder {
    folder: Folder,
    /// The files of its thread as they were last seen on the disk.
    gate: Gate,
    /// The log of its items, which is needed to serialise the folder. The items are shared with other owners of the
    /// log.
    log: ItemLog,
    /// Its last item.
    newest: Option<Arc<Item>>,
    /// The number of decisions that led to it, including unreadable ones.
    decided: usize,
    unreadable: usize,
}

impl ThreadFolder {
    /// The folder after the last request that the model responded to.
    ///
    /// A request is assumed before every run of items that the model produced, and wherever there was a
    /// decision.
    pub(super) fn rebuild(folder: Folder, history: &History, decisions: &[Decision]) -> Self {
        let read: Vec<_> = decisions.iter().filter_map(read_decision).collect();
        let unreadable = decisions.len() - read.len();
        let mut replay = Replay::new(folder, read);
        let log = history.log();
        let covered = log.range(0..log.len()).rev().find(|(_, entry)| entry.item.is_of_model());
        let requests: HashSet<usize> = decisions.iter().map(|decision| decision.at).collect();
        for message in messages(log, 0..covered.map_or(0, |(position, _)| position + 1), &requests) {
            if message[0].0.is_of_model() {
                replay.request();
            }
            replay.push(message);
        }
        let mut folder = replay.go_on();
        let newest = newest_of(&folder, history).cloned();
        let decided = folder.take_decisions().len() + unreadable;
        Self { folder, log: log.clone(), gate: Gate::default(), newest, decided, unreadable }
    }

    /// Whether it belongs to this log: another process may have put items before those it has.
    pub(super) fn is_of(&self, history: &History, decisions: &[Decision]) -> bool {
        self.decided == decisions.len() && newest_of(&self.folder, history) == self.newest.as_ref()
    }

    /// Adds the items of the log that the folder does not have.
    pub(super) fn catch_up(&mut self, history: &History) -> &mut Folder {
        let log = history.log();
        for message in messages(log, self.folder.len()..log.len(), &HashSet::new()) {
            self.newest = message.last().map(|(item, _)| item.clone());
            self.folder.push(message);
        }
        self.log = log.clone();
        &mut self.folder
    }

    /// The folder itself.
    pub(super) fn folder_mut(&mut self) -> &mut Folder {
        &mut self.folder
    }

    /// The window of the next request, compared with the disk if there is one.
    ///
    /// Looking at the disk ends when `until` completes.
    pub(super) async fn request(
        &mut self,
        disk: Option<&Arc<dyn FsAdapter>>,
        until: BoxFuture<'static, ()>,
    ) -> &[ShownItem] {
        let Some(disk) = disk else { return self.folder.request() };
        let until = until.shared();
        let mut asking = Asking::new(&mut self.folder);
        loop {
            let wanted = asking.wanted();
            if wanted.is_empty() {
                return asking.window();
            }
            asking.found(self.gate.look(disk, &wanted, until.clone()).await);
        }
    }

    /// The new decisions of the last request.
    pub(super) fn new_decisions(&mut self, known: usize) -> Vec<NewDecision> {
        let (before, made) = (self.decided, self.folder.take_decisions());
        self.decided += made.len();
        made.iter().skip(known.saturating_sub(before)).map(new_decision).collect()
    }

    /// How many decisions of the thread cannot be read.
    pub(super) fn unreadable(&self) -> usize {
        self.unreadable
    }
}

/// The serialised folder of a thread.
pub(super) struct Resting {
    rest: Rest,
    decided: usize,
    unreadable: usize,
}

impl ThreadFolder {
    /// Serialises the folder; its decisions must have been taken. The log is released.
    pub(super) fn rest(self) -> Option<Resting> {
        let Self { folder, log, gate: _, newest: _, decided, unreadable } = self;
        let rest = folder.rest(&counted(&log, folder.len())).ok()?;
        Some(Resting { rest, decided, unreadable })
    }
}

impl Resting {
    /// How many bytes it takes.
    pub(super) fn bytes(&self) -> usize {
        self.rest.as_bytes().len()
    }

    /// Restores the folder, if it belongs to this log and these decisions.
    pub(super) fn wake(self, folder: Folder, history: &History, decisions: &[Decision]) -> Option<ThreadFolder> {
        let Self { rest, decided, unreadable } = self;
        if decided != decisions.len() {
            return None;
        }
        let log = history.log();
        let folder = folder.wake(&rest, &counted(log, rest.len())).ok()?;
        let newest = newest_of(&folder, history).cloned();
        Some(ThreadFolder { folder, log: log.clone(), gate: Gate::default(), newest, decided, unreadable })
    }
}

/// The first items of a log with their tokens.
fn counted(log: &ItemLog, len: usize) -> Vec<(Arc<Item>, u64)> {
    log.range(0..len).map(|(_, entry)| (entry.item.clone(), entry.tokens)).collect()
}

/// The last item of a log that a folder has.
fn newest_of<'a>(folder: &Folder, history: &'a History) -> Option<&'a Arc<Item>> {
    Some(&history.log().get(folder.len().checked_sub(1)?)?.item)
}

/// The messages of a part of a log: consecutive items of the model form one, unless there was a request in between.
fn messages(log: &ItemLog, part: Range<usize>, requests: &HashSet<usize>) -> Vec<Vec<(Arc<Item>, u64)>> {
    let mut messages: Vec<Vec<(Arc<Item>, u64)>> = Vec::new();
    for (position, entry) in log.range(part) {
        let item = (entry.item.clone(), entry.tokens);
        let goes_on = entry.item.is_of_model() && !requests.contains(&position);
        match messages.last_mut() {
            Some(message) if goes_on && message[0].0.is_of_model() => message.push(item),
            _ => messages.push(vec![item]),
        }
    }
    messages
}
