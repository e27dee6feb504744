//! A request that compares files with the disk before it decides.

use std::collections::HashSet;

use super::decision::{Checked, FoldDecision};
use super::folder::Folder;
use super::plan;
use super::shown::ShownItem;
use contexture_files::disk::{NotCompared, OnDisk, Wanted};

/// Most rounds of looking at files before one decision. What is on the disk can make a view choose other files, which
/// are then looked at too. What is chosen after the last round is not compared.
const MOST_LOOKS: usize = 3;

/// A request of a [`Folder`] that compares what it is about to show with the disk.
///
/// Call [`wanted`](Self::wanted), look at the files it returns, and pass what is there to [`found`](Self::found), until
/// none is wanted; then call [`window`](Self::window). Deciding remains pure: what was found becomes a decision of its
/// own, so a [`Replay`](super::Replay) needs no disk.
///
/// ```
/// use std::sync::Arc;
/// use contexture_core::Item;
/// use contexture_files::disk::Gate;
/// use contexture_fold::{Asking, Folder, Meter, Policy};
/// use contexture_core::host::{FsAdapter, NoFiles};
/// use contexture_core::tokens::Estimate;
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let fs: Arc<dyn FsAdapter> = Arc::new(NoFiles);
/// let (mut folder, gate) = (Folder::new(Policy::new(8_000), Meter::new(Arc::new(Estimate))), Gate::default());
/// folder.push([(Arc::new(Item::user("hello")), 6)]);
/// let mut asking = Asking::new(&mut folder);
/// loop {
///     let wanted = asking.wanted();
///     if wanted.is_empty() {
///         break;
///     }
///     asking.found(gate.look(&fs, &wanted, std::future::pending()).await);
/// }
/// assert_eq!(asking.window().len(), 1);
/// # });
/// ```
pub struct Asking<'a> {
    folder: &'a mut Folder,
    /// How many of the steps before a request are done: decided, or found not to be needed.
    stage: usize,
    /// What was planned before files were looked at.
    planned: Option<FoldDecision>,
    looks: usize,
    /// Files that were looked at for this request.
    looked_at: HashSet<usize>,
}

impl<'a> Asking<'a> {
    /// Begins a request.
    pub fn new(folder: &'a mut Folder) -> Self {
        folder.begin_request();
        Self { folder, stage: 0, planned: None, looks: 0, looked_at: HashSet::new() }
    }

    /// Returns the files that are about to be shown and were not looked at yet. If there are none, everything is
    /// decided.
    pub fn wanted(&mut self) -> Vec<Wanted> {
        while let Some(decide) = plan::BEFORE_REQUEST.get(self.stage) {
            let Folder { settings, state, .. } = &mut *self.folder;
            let decision = self.planned.take().or_else(|| decide(settings, state));
            let Some(decision) = decision else {
                self.next_stage();
                continue;
            };
            let wanted = self.unseen(&decision);
            if wanted.is_empty() {
                self.folder.decide(decision);
                self.next_stage();
                continue;
            }
            self.looked_at.extend(wanted.iter().map(|wanted| wanted.file));
            self.planned = Some(decision);
            if self.looks < MOST_LOOKS {
                self.looks += 1;
                return wanted;
            }
            // Only where there is a disk do views that were compared choose other files.
            let unseen = wanted.iter().map(|wanted| (wanted.file, OnDisk::NotCompared(NotCompared::Late)));
            self.found(unseen.collect());
        }
        Vec::new()
    }

    fn next_stage(&mut self) {
        (self.stage, self.looks) = (self.stage + 1, 0);
    }

    /// Files of a decision that were not looked at.
    fn unseen(&self, decision: &FoldDecision) -> Vec<Wanted> {
        let mut wanted = self.folder.files_of(std::slice::from_ref(decision));
        wanted.retain(|wanted| !self.looked_at.contains(&wanted.file));
        wanted
    }

    /// Takes what is on the disk for the wanted files, as far as it is known.
    pub fn found(&mut self, found: Vec<(usize, OnDisk)>) {
        let checked = Checked::new(self.folder.len(), self.folder.model(), found);
        if !checked.files.is_empty() {
            // What was found may change the plan, so plan again.
            self.planned = None;
            self.folder.decide(FoldDecision::Disk(checked));
        }
    }

    /// Returns the window of this request. Files that are still wanted are shown with the grade that they have.
    pub fn window(mut self) -> &'a [ShownItem] {
        while !self.wanted().is_empty() {}
        self.folder.end_request()
    }
}
