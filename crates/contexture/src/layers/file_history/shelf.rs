//! A cache of the folders of threads: the most recently used are in memory, others are serialised.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use contexture_core::ThreadId;
use contexture_core::decision::Decision;
use contexture_core::history::History;

use super::held::{Resting, ThreadFolder};
use crate::fold::Folder;

/// The limits of the cache. Folders beyond it are rebuilt from their log.
#[derive(Clone, Copy)]
pub(super) struct CacheBounds {
    /// The largest number of folders in memory: one of a long conversation takes megabytes.
    pub(super) awake: usize,
    /// The largest number of serialised folders.
    pub(super) resting: usize,
    /// Their largest total size: one of a long conversation takes a hundred kilobytes.
    pub(super) resting_bytes: usize,
}

impl Default for CacheBounds {
    fn default() -> Self {
        Self { awake: 32, resting: 4_096, resting_bytes: 64 << 20 }
    }
}

/// The folders of the threads that were used last.
///
/// A folder is taken out while it is used, so that threads do not wait for each other.
#[derive(Default)]
pub(super) struct FolderCache {
    bounds: CacheBounds,
    shelved: Mutex<Shelved>,
}

#[derive(Default)]
struct Shelved {
    awake: HashMap<ThreadId, (u64, ThreadFolder)>,
    resting: HashMap<ThreadId, (u64, Resting)>,
    resting_bytes: usize,
    /// Counts how often a folder was put back.
    uses: u64,
}

/// The cached folder of a thread.
pub(super) enum CachedFolder {
    Awake(Box<ThreadFolder>),
    Resting(Resting),
}

impl CachedFolder {
    /// Restores the folder, if it belongs to this log and these decisions.
    pub(super) fn wake(
        self,
        new_folder: impl FnOnce() -> Folder,
        history: &History,
        decisions: &[Decision],
    ) -> Option<ThreadFolder> {
        match self {
            CachedFolder::Awake(held) => Some(*held).filter(|held| held.is_of(history, decisions)),
            CachedFolder::Resting(resting) => resting.wake(new_folder(), history, decisions),
        }
    }
}

impl FolderCache {
    /// Takes the folder of a thread out.
    pub(super) fn take(&self, thread: &ThreadId) -> Option<CachedFolder> {
        let mut shelved = self.lock();
        let awake = shelved.awake.remove(thread).map(|(_, held)| CachedFolder::Awake(Box::new(held)));
        let resting = shelved.remove_resting(thread).map(CachedFolder::Resting);
        awake.or(resting)
    }

    /// Puts the folder of a thread back. If there are too many, the least recently used one is serialised.
    pub(super) fn put(&self, thread: ThreadId, held: ThreadFolder) {
        let mut shelved = self.lock();
        shelved.uses += 1;
        let uses = shelved.uses;
        // One that was serialised in the meantime is older.
        let stale = shelved.remove_resting(&thread);
        let replaced = shelved.awake.insert(thread, (uses, held));
        let is_full = shelved.awake.len() > self.bounds.awake;
        let tired = oldest(&shelved.awake).filter(|_| is_full);
        let tired = tired.and_then(|thread| shelved.awake.remove_entry(&thread));
        drop(shelved);
        // A folder may be large: the lock is not held while one is dropped or serialised.
        drop((stale, replaced));
        if let Some((thread, (used, held))) = tired
            && let Some(resting) = held.rest()
        {
            self.put_resting(thread, used, resting);
        }
    }

    fn put_resting(&self, thread: ThreadId, used: u64, resting: Resting) {
        let mut shelved = self.lock();
        if shelved.awake.contains_key(&thread) || resting.bytes() > self.bounds.resting_bytes {
            return;
        }
        // Another one of the same thread may have been put back in the meantime.
        let mut gone: Vec<Resting> = shelved.remove_resting(&thread).into_iter().collect();
        shelved.resting_bytes += resting.bytes();
        shelved.resting.insert(thread, (used, resting));
        while shelved.resting.len() > self.bounds.resting || shelved.resting_bytes > self.bounds.resting_bytes {
            let Some(thread) = oldest(&shelved.resting) else { break };
            gone.extend(shelved.remove_resting(&thread));
        }
        drop(shelved);
        drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, Shelved> {
        self.shelved.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shelved {
    fn remove_resting(&mut self, thread: &ThreadId) -> Option<Resting> {
        let (_, resting) = self.resting.remove(thread)?;
        self.resting_bytes -= resting.bytes();
        Some(resting)
    }
}

/// The least recently used thread.
fn oldest<T>(folders: &HashMap<ThreadId, (u64, T)>) -> Option<ThreadId> {
    folders.iter().min_by_key(|(_, (used, _))| *used).map(|(thread, _)| thread.clone())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use contexture_core::item::Item;
    use contexture_core::log::ItemLog;
    use contexture_core::tokens::Estimate;

    use super::*;
    use crate::fold::{Meter, Policy};

    fn new_folder() -> Folder {
        Folder::new(Policy::new(4_000), Meter::new(Arc::new(Estimate)))
    }

    /// The history of a thread that read a file with this many lines.
    fn history(lines: usize) -> History {
        let text: String = (1..=lines).map(|n| format!("{n}\tlet value_{n} = {n};\n")).collect();
        let mut log = ItemLog::new();
        for item in [
            Item::user("read it"),
            Item::call("1", "Read", r#"{"file_path": "/a.rs"}"#),
            Item::output("1", text),
            Item::assistant("Done."),
        ] {
            log.append(item, 10);
        }
        History::of(&log)
    }

    fn thread(number: usize) -> ThreadId {
        ThreadId::from(format!("thread-{number}").as_str())
    }

    fn put(shelf: &FolderCache, number: usize, history: &History) {
        let mut held = ThreadFolder::rebuild(new_folder(), history, &[]);
        held.catch_up(history);
        shelf.put(thread(number), held);
    }

    /// Which threads are in memory, and which are serialised.
    fn state(shelf: &FolderCache, count: usize) -> String {
        let shelved = shelf.lock();
        let bytes: usize = shelved.resting.values().map(|(_, resting)| resting.bytes()).sum();
        assert_eq!(bytes, shelved.resting_bytes);
        let one = |number: usize| match thread(number) {
            thread if shelved.awake.contains_key(&thread) => 'a',
            thread if shelved.resting.contains_key(&thread) => 'r',
            _ => '-',
        };
        (0..count).map(one).collect()
    }

    #[test]
    fn folders_used_longest_ago_rest_and_go_last() {
        let shelf = FolderCache {
            bounds: CacheBounds { awake: 2, resting: 2, resting_bytes: 1 << 20 },
            shelved: Mutex::default(),
        };
        let history = history(50);
        (0..3).for_each(|number| put(&shelf, number, &history));
        assert_eq!(state(&shelf, 3), "raa");
        put(&shelf, 1, &history);
        put(&shelf, 3, &history);
        assert_eq!(state(&shelf, 4), "rara");
        let woken = shelf.take(&thread(0)).unwrap();
        assert!(matches!(woken, CachedFolder::Resting(_)));
        let woken = woken.wake(new_folder, &history, &[]).unwrap();
        assert_eq!(state(&shelf, 4), "-ara");
        shelf.put(thread(0), woken);
        assert_eq!(state(&shelf, 4), "arra");
        put(&shelf, 4, &history);
        assert_eq!(state(&shelf, 5), "ar-ra", "of those at rest, thread 2 was used longest ago");
    }

    #[test]
    fn bytes_at_rest_are_bounded() {
        let history = history(50);
        let bytes = {
            let held = ThreadFolder::rebuild(new_folder(), &history, &[]);
            held.rest().unwrap().bytes()
        };
        let bounds = CacheBounds { awake: 1, resting: 100, resting_bytes: 3 * bytes + bytes / 2 };
        let shelf = FolderCache { bounds, shelved: Mutex::default() };
        (0..6).for_each(|number| put(&shelf, number, &history));
        assert_eq!(state(&shelf, 6), "--rrra");
        let tiny = CacheBounds { awake: 1, resting: 100, resting_bytes: bytes - 1 };
        let shelf = FolderCache { bounds: tiny, shelved: Mutex::default() };
        (0..3).for_each(|number| put(&shelf, number, &history));
        assert_eq!(state(&shelf, 3), "--a");
    }

    #[test]
    fn a_folder_at_rest_is_of_no_use_to_another_log_or_other_decisions() {
        let shelf =
            FolderCache { bounds: CacheBounds { awake: 1, ..CacheBounds::default() }, shelved: Mutex::default() };
        let own = history(50);
        let decision = Decision {
            number: 0,
            at: 0,
            layer: None,
            action: contexture_core::decision::Action::Layer(serde_json::Value::Null),
            reason: String::new(),
            price: None,
        };
        for (history, decisions, is_of_use) in
            [(&own, &[][..], true), (&history(51), &[], false), (&own, std::slice::from_ref(&decision), false)]
        {
            put(&shelf, 0, &own);
            put(&shelf, 1, &own);
            assert_eq!(state(&shelf, 2), "ra");
            let woken = shelf.take(&thread(0)).unwrap().wake(new_folder, history, decisions);
            assert_eq!(woken.is_some(), is_of_use);
        }
    }
}
