//! The work of the layer's hooks, given a host and a state.
//!
//! It is separate from the hooks, so that it can be tested with any files, model and clock.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use contexture_core::host::{FileError, FileErrorCode, FileText, FsAdapter};
use contexture_core::layer::{OnItemAppendResult, Rerender, RerenderTiming};
use contexture_core::tokens::TokenCounter;
use contexture_core::{Item, ItemLog, ThreadId};
use futures_util::StreamExt;
use futures_util::stream;

use super::contents::{Contents, SketchedText};
use super::draft::{FileCheck, FileReadResult, ReferencesDraft, judge};
use super::mentions::{self, MessageFiles};
use super::options::ValidOptions;
use super::render::{Page, Rendering, Visibility, rank};
use super::score::{self, Scorer, Sleep};
use super::state::{ContentHash, FileReferences, FileStatus, TrackedFile};
use super::words::QueryWords;
use contexture_text::counts::{Counts, KeptCounts};

/// How many of the files named in one message are scored by a model; the rest is estimated.
const MAX_SCORED: usize = 64;

/// Timeout for scoring all of them, so that a slow model does not use up the time of the hook.
const SCORING_PATIENCE: Duration = Duration::from_secs(20);

/// How many files that were not named are scored again by a model for one message.
const MAX_RESCORED: usize = 8;

/// How many times texts are loaded for one rendering. Each round loads all that the previous one lacked.
const MAX_ROUNDS: usize = 8;

/// The number of threads whose last rendering is kept.
const MAX_PAGES: usize = 256;

/// The layer's access to files, model and counter.
#[derive(Clone, Copy)]
pub(super) struct LayerHost<'a> {
    pub(super) fs: &'a dyn FsAdapter,
    /// The model, if there is one.
    pub(super) scorer: Option<&'a dyn Scorer>,
    pub(super) sleep: Sleep<'a>,
}

/// The limits of the message.
#[derive(Clone, Copy)]
pub(super) struct MessageRoom<'a> {
    pub(super) budget: u64,
    pub(super) counter: &'a dyn TokenCounter,
}

/// The implementation of the layer's hooks.
pub(super) struct Tracker {
    pub(super) settings: ValidOptions,
    contents: Contents,
    counts: Mutex<KeptCounts>,
    pages: Mutex<HashMap<ThreadId, Arc<LastPage>>>,
}

/// The last rendering for a thread, and its inputs.
pub(super) struct LastPage {
    state: Arc<FileReferences>,
    turn: u64,
    /// The last turn in which no further file will have aged.
    last_turn: u64,
    ageing_turns: u64,
    budget: u64,
    rendering: Rendering,
}

/// The result of `recall`.
pub(super) struct RecalledPage {
    pub(super) page: Arc<LastPage>,
    /// The new state, if a file turned out to have changed.
    pub(super) state: Option<FileReferences>,
}

impl Tracker {
    pub(super) fn new(settings: ValidOptions) -> Self {
        Self { settings, contents: Contents::default(), counts: Mutex::default(), pages: Mutex::default() }
    }

    /// Processes items: finds named files, checks all tracked ones, scores them, and turns references into links.
    pub(super) async fn take_in(
        &self,
        host: LayerHost<'_>,
        thread_id: &ThreadId,
        state: &Arc<FileReferences>,
        mut items: Vec<Item>,
        log: &ItemLog,
        room: MessageRoom<'_>,
    ) -> OnItemAppendResult<FileReferences> {
        let mut found = MessageFiles::of(&items, &self.settings.allow_list);
        let turn = log.user_messages() + found.user_messages;
        let mut draft = ReferencesDraft::new(state);
        draft.touch(mentions::touched(&items, log, state), turn, self.settings.ageing_turns);
        let named = draft.name(std::mem::take(&mut found.mentions), turn);
        self.refresh(host, &mut draft, turn).await;
        if found.user_messages > 0 {
            self.score(host, &mut draft, &found, &named, turn, room).await;
        }
        if !named.is_empty() {
            mentions::link(&mut items, draft.state(), &self.settings.allow_list);
        }
        // A function may have changed the state since the last rendering.
        let outdated = self.page(thread_id).is_some_and(|page| !page.shows(state));
        let visible = draft.visible || outdated;
        let rerender = Rerender { timing: Some(RerenderTiming::Immediate), ..Rerender::default() };
        OnItemAppendResult { items, state: draft.into_changed(), rerender: visible.then_some(rerender) }
    }

    /// Checks all tracked files and reads those that may have changed.
    async fn refresh(&self, host: LayerHost<'_>, draft: &mut ReferencesDraft<'_>, turn: u64) {
        let files = &draft.state().files;
        let mut to_read: Vec<usize> =
            (0..files.len()).filter(|index| files[*index].status == FileStatus::Unread).collect();
        let watched: Vec<usize> = (0..files.len()).filter(|index| is_watched(&files[*index])).collect();
        let paths: Vec<&str> = watched.iter().map(|index| &*files[*index].path).collect();
        let looked = if paths.is_empty() { Vec::new() } else { host.fs.stat_many(&paths, self.settings.limits).await };
        let mut statuses = Vec::new();
        for (index, looked) in watched.into_iter().zip(looked) {
            match judge(&files[index].status, &looked) {
                FileCheck::Same => {}
                FileCheck::Read => to_read.push(index),
                FileCheck::Now(status) => statuses.push((index, status)),
            }
        }
        for (index, status) in statuses {
            draft.find(index, status, turn);
        }
        self.read(host, draft, to_read, turn).await;
    }

    /// Reads files concurrently.
    async fn read(&self, host: LayerHost<'_>, draft: &mut ReferencesDraft<'_>, indices: Vec<usize>, turn: u64) {
        let jobs: Vec<(usize, String)> =
            indices.into_iter().map(|index| (index, draft.state().files[index].path.clone())).collect();
        let reading = stream::iter(jobs).map(|(index, path)| async move { (index, self.examine(host, &path).await) });
        let mut outcomes = reading.buffer_unordered(self.settings.read_concurrency);
        while let Some((index, outcome)) = outcomes.next().await {
            draft.read(index, outcome, turn);
        }
    }

    async fn examine(&self, host: LayerHost<'_>, path: &str) -> FileReadResult {
        let limits = self.settings.limits;
        match host.fs.read(path, limits).await {
            Ok(FileText { linked_name: Some(name), stamp, .. }) if !self.settings.allow_list.allows(&name) => {
                let message = "it is a link to a file of a kind that is not read";
                FileReadResult::Refused(FileError::new(FileErrorCode::SymlinkRejected, path, message), Some(stamp))
            }
            Ok(FileText { text, stamp, .. }) => {
                FileReadResult::Text(self.contents.keep(SketchedText::of(text).await), stamp)
            }
            Err(error) => {
                let seen = matches!(error.code, FileErrorCode::NotText | FileErrorCode::PermissionDenied);
                let stamp = if seen { host.fs.stat(path, limits).await.ok() } else { None };
                FileReadResult::Refused(error, stamp)
            }
        }
    }

    /// Scores the files against the user's message, if it is about any of them.
    async fn score(
        &self,
        host: LayerHost<'_>,
        draft: &mut ReferencesDraft<'_>,
        found: &MessageFiles,
        named: &[usize],
        turn: u64,
        room: MessageRoom<'_>,
    ) {
        let query = QueryWords::of(&found.bare_query);
        let is_related = |file: &TrackedFile| !query.is_empty() && score::is_related(file, &query);
        if named.is_empty() && !draft.state().files().any(is_related) {
            return;
        }
        let scorer = match host.scorer.filter(|_| self.settings.scoring) {
            Some(scorer) if !self.all_fit(host, draft, turn, room).await => Some(scorer),
            _ => None,
        };
        let files = &draft.state().files;
        let mut scores: Vec<u8> = files.iter().map(|file| score::by_reckoning(file, &query, turn)).collect();
        if let Some(scorer) = scorer {
            let named: BTreeSet<usize> = named.iter().copied().take(MAX_SCORED).collect();
            let others = (0..files.len()).filter(|index| !named.contains(index));
            let related = others.filter(|index| is_related(&files[*index])).take(MAX_RESCORED);
            let asked: Vec<usize> = named.iter().copied().chain(related).collect();
            for (index, score) in self.ask(host, scorer, files, asked, &found.query).await {
                scores[index] = score;
            }
        }
        if named.is_empty() && !reorders(files, &scores) {
            return;
        }
        draft.visible = true;
        for (index, score) in scores.into_iter().enumerate() {
            if draft.state().files[index].priority != score {
                draft.update(index, |file| file.priority = score);
            }
        }
    }

    /// Whether every file in use is shown whole, so that their order does not matter. A single file needs no order.
    async fn all_fit(
        &self,
        host: LayerHost<'_>,
        draft: &mut ReferencesDraft<'_>,
        turn: u64,
        room: MessageRoom<'_>,
    ) -> bool {
        let ageing_turns = self.settings.ageing_turns;
        let is_in_use =
            |file: &TrackedFile| matches!(file.status, FileStatus::Present { .. }) && file.age(turn) <= ageing_turns;
        if draft.state().files().filter(|file| is_in_use(file)).nth(1).is_none() {
            return true;
        }
        let rendering = self.render_all(host, draft, turn, room).await;
        let mut shown = draft.state().files().zip(&rendering.visibilities);
        shown.all(|(file, visibility)| !is_in_use(file) || matches!(visibility, Visibility::Whole(_)))
    }

    /// Scores files with a model, concurrently. Files without text, failures and late responses are left out.
    async fn ask(
        &self,
        host: LayerHost<'_>,
        scorer: &dyn Scorer,
        files: &[Arc<TrackedFile>],
        indices: Vec<usize>,
        query: &str,
    ) -> Vec<(usize, u8)> {
        let asking = stream::iter(indices).map(|index| async move {
            let file = &files[index];
            let FileStatus::Present { hash, .. } = &file.status else { return None };
            let content = self.content(host, hash, &file.path).await?;
            let model = &self.settings.scoring_model;
            Some((index, score::by_model(scorer, model, query, &file.path, &content.text).await?))
        });
        let scored = asking.buffer_unordered(self.settings.read_concurrency).take_until((host.sleep)(SCORING_PATIENCE));
        scored.filter_map(|scored| async move { scored }).collect().await
    }

    /// Returns a text from memory, or from its file if that still has it.
    async fn content(&self, host: LayerHost<'_>, hash: &ContentHash, path: &str) -> Option<Arc<SketchedText>> {
        if let Some(content) = self.contents.get(hash) {
            return Some(content);
        }
        match self.examine(host, path).await {
            FileReadResult::Text(content, _) if content.hash == *hash => Some(content),
            _ => None,
        }
    }

    /// Returns the message for the model. Texts that are not in memory are read again.
    pub(super) async fn recall(
        &self,
        host: LayerHost<'_>,
        thread_id: &ThreadId,
        state: &Arc<FileReferences>,
        turn: u64,
        room: MessageRoom<'_>,
    ) -> RecalledPage {
        let MessageRoom { budget, counter } = room;
        if let Some(page) = self.page(thread_id)
            && page.holds(state, turn, budget)
            && self.counts_as_before(counter)
        {
            return RecalledPage { page, state: None };
        }
        let mut draft = ReferencesDraft::new(state);
        let rendering = self.render_all(host, &mut draft, turn, room).await;
        let changed = draft.into_changed();
        let shown = changed.clone().map_or_else(|| state.clone(), Arc::new);
        let page = Arc::new(LastPage::new(shown, turn, self.settings.ageing_turns, budget, rendering));
        self.keep_page(thread_id, page.clone());
        RecalledPage { page, state: changed }
    }

    /// Renders the message. Texts that are not in memory are read again.
    async fn render_all(
        &self,
        host: LayerHost<'_>,
        draft: &mut ReferencesDraft<'_>,
        turn: u64,
        room: MessageRoom<'_>,
    ) -> Rendering {
        let mut rendering = self.render(draft.state(), turn, room);
        for _ in 0..MAX_ROUNDS {
            if rendering.missing.is_empty() {
                break;
            }
            self.read(host, draft, std::mem::take(&mut rendering.missing), turn).await;
            rendering = self.render(draft.state(), turn, room);
        }
        rendering
    }

    fn render(&self, state: &FileReferences, turn: u64, room: MessageRoom<'_>) -> Rendering {
        let contents = |hash: &ContentHash| self.contents.get(hash);
        let ageing_turns = self.settings.ageing_turns;
        let page = Page { state, turn, ageing_turns, budget: room.budget, contents: &contents };
        page.render(&mut Counts::new(room.counter, &mut lock(&self.counts)))
    }

    /// Whether the counter still gives the same result as for the last rendering.
    fn counts_as_before(&self, counter: &dyn TokenCounter) -> bool {
        lock(&self.counts).is_of(counter)
    }

    /// The last rendering for a thread.
    pub(super) fn page(&self, thread_id: &ThreadId) -> Option<Arc<LastPage>> {
        lock(&self.pages).get(thread_id).cloned()
    }

    fn keep_page(&self, thread_id: &ThreadId, page: Arc<LastPage>) {
        let mut pages = lock(&self.pages);
        if pages.len() >= MAX_PAGES && !pages.contains_key(thread_id) {
            pages.clear();
        }
        pages.insert(thread_id.clone(), page);
    }
}

impl LastPage {
    fn new(state: Arc<FileReferences>, turn: u64, ageing_turns: u64, budget: u64, rendering: Rendering) -> Self {
        let in_use = state.files().filter(|file| file.age(turn) <= ageing_turns);
        let last_turn = in_use.map(|file| file.active_turn.saturating_add(ageing_turns)).min().unwrap_or(u64::MAX);
        Self { state, turn, last_turn, ageing_turns, budget, rendering }
    }

    /// The text of the message.
    pub(super) fn text(&self) -> Option<&str> {
        self.rendering.text.as_deref()
    }

    /// Its tokens, including those of the message around it.
    pub(super) fn tokens(&self) -> u64 {
        self.rendering.tokens
    }

    /// The files of the message, each with how it appears.
    pub(super) fn files(&self) -> impl Iterator<Item = (&TrackedFile, Visibility)> {
        self.state.files().zip(self.rendering.visibilities.iter().copied())
    }

    /// Whether a file was not used for so long that it is only listed by name.
    pub(super) fn is_aged(&self, file: &TrackedFile) -> bool {
        file.age(self.turn) > self.ageing_turns
    }

    /// Whether the rendering can be reused.
    ///
    /// Budgets vary from turn to turn with the other layers. A message that still fits is kept until the budget is a
    /// quarter larger than the one it was made for, because any other text would invalidate the provider's cache.
    fn holds(&self, state: &Arc<FileReferences>, turn: u64, budget: u64) -> bool {
        let all_shown = self.rendering.visibilities.iter().all(|visibility| matches!(visibility, Visibility::Whole(_)));
        let fits = match self.rendering.text {
            Some(_) => self.tokens() <= budget && (all_shown || budget <= self.budget + self.budget / 4),
            None => budget == self.budget,
        };
        fits && (self.turn..=self.last_turn).contains(&turn) && self.shows(state)
    }

    /// Whether a state would look the same in the message as the rendered one.
    fn shows(&self, state: &Arc<FileReferences>) -> bool {
        if Arc::ptr_eq(&self.state, state) {
            return true;
        }
        let mut pairs = self.state.files.iter().zip(&state.files).zip(&self.rendering.visibilities);
        self.state.files.len() == state.files.len()
            && pairs.all(|((old, new), visibility)| {
                Arc::ptr_eq(old, new)
                    || (self.is_aged(old) == self.is_aged(new) && self.looks_same(old, new, *visibility))
            })
    }

    /// Whether the change of a file from `old` to `new` is invisible in the message.
    fn looks_same(&self, old: &TrackedFile, new: &TrackedFile, visibility: Visibility) -> bool {
        fn key(file: &TrackedFile) -> impl PartialEq {
            (&file.path, &file.anchor, &file.lines, file.priority, file.mentions)
        }
        let unseen = matches!(visibility, Visibility::Named | Visibility::Left) && new.lines.is_empty();
        key(old) == key(new)
            && match (&old.status, &new.status) {
                (FileStatus::Present { hash: a, .. }, FileStatus::Present { hash: b, .. }) if a == b => true,
                (FileStatus::Present { .. }, FileStatus::Present { stamp, .. }) => {
                    unseen && (self.is_aged(new) || self.rendering.has_no_room_for(stamp.size))
                }
                (old, new) => same_error(old, new),
            }
    }
}

/// Whether two errors have the same message.
fn same_error(old: &FileStatus, new: &FileStatus) -> bool {
    match (old, new) {
        (FileStatus::Refused { code: a, message: m, .. }, FileStatus::Refused { code: b, message: n, .. }) => {
            a == b && m == n
        }
        (old, new) => old == new,
    }
}

/// Whether a file is checked again: all except those refused by their name, and those not read yet.
fn is_watched(file: &TrackedFile) -> bool {
    match &file.status {
        FileStatus::Unread => false,
        FileStatus::Refused { code, .. } => {
            !matches!(code, FileErrorCode::DisallowedExtension | FileErrorCode::AbsolutePath)
        }
        _ => true,
    }
}

/// Whether new scores change the order of the files.
fn reorders(files: &[Arc<TrackedFile>], scores: &[u8]) -> bool {
    let mut order: Vec<usize> = (0..files.len()).collect();
    order.sort_unstable_by_key(|index| rank(files[*index].priority, &files[*index], *index));
    !order.is_sorted_by_key(|index| rank(scores[*index], &files[*index], *index))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
