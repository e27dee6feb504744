//! The folder: it takes in what happens, and decides before every request what of the past is sent.

use std::sync::Arc;

use contexture_core::item::Item;

use super::decision::{Checked, FoldDecision};
use super::meter::Meter;
use super::plan;
use super::policy::Policy;
use super::price::Account;
use super::settings::FoldSettings;
use super::shown::{HeadItem, ShownItem};
use super::state::State;
use contexture_files::dialect::Dialects;
use contexture_files::disk::{OnDisk, Wanted};
use contexture_files::model::FileModel;

/// Folds a conversation as it grows.
///
/// It holds what is known of files and what may still be shown, not the whole log. Pass it every message in order with
/// [`push`](Self::push) and get the window before every request with [`request`](Self::request). It is pure: the same
/// items, requests and policy give the same windows. Between two folds the window only grows at its end, so the
/// provider's cache remains valid.
///
/// ```
/// use std::sync::Arc;
/// use contexture_core::Item;
/// use contexture_fold::{Folder, Meter, Policy};
/// use contexture_core::tokens::Estimate;
///
/// let mut folder = Folder::new(Policy::new(8_000), Meter::new(Arc::new(Estimate)));
/// folder.push([(Arc::new(Item::user("hello")), 6)]);
/// let window = folder.request();
/// assert_eq!((window.len(), window[0].position), (1, Some(0)));
/// ```
pub struct Folder {
    pub(super) settings: FoldSettings,
    pub(super) state: State,
    pub(super) decisions: Vec<FoldDecision>,
}

impl Folder {
    /// A folder for an empty conversation.
    pub fn new(policy: Policy, meter: Meter) -> Self {
        Self { settings: FoldSettings::new(policy, meter), state: State::default(), decisions: Vec::new() }
    }

    /// The same with other dialects.
    pub fn with_dialects(mut self, dialects: Dialects) -> Self {
        self.state.knowledge.set_dialects(dialects);
        self
    }

    /// The same with a function that says what an item sets for everything after it, by names: of each name the newest
    /// item, with its step, stays in every window.
    pub fn with_settings(mut self, sets: impl Fn(&Item) -> Vec<Box<str>> + Send + Sync + 'static) -> Self {
        self.settings.sets = Arc::new(sets);
        self
    }

    /// The same with a tool that shows the whole of a shortened text, which the model is told about.
    ///
    /// The tool is given a `hash` and a `from_line`, and returns the newest text in the log that
    /// [`has_hash`](crate::cap::has_hash). Without a tool, the model is not told how to see the rest.
    pub fn with_output_tool(mut self, name: impl Into<Arc<str>>) -> Self {
        let name = name.into();
        self.state.ledger.set_output_tool(name.clone());
        self.settings.output_tool = Some(name);
        self
    }

    /// Sets the policy from now on, for instance because the budget changed. What is shown does not change until the
    /// next fold.
    pub fn set_policy(&mut self, policy: Policy) {
        self.settings.set_policy(policy);
    }

    /// Notes that the provider's cache holds nothing of the next request: it has expired, or was missed.
    ///
    /// The next [`request`](Self::request) is then billed in full, as it would be with pass-through. A fold costs
    /// nothing extra, and is made if it shrinks the window by a worthwhile share of its budget.
    pub fn cache_is_cold(&mut self) {
        self.state.billing.set_cold();
    }

    /// Takes in the items of one message, each with its tokens: something said, one response of the model, or one
    /// output.
    pub fn push(&mut self, message: impl IntoIterator<Item = (Arc<Item>, u64)>) {
        self.state.begin_message();
        for (item, tokens) in message {
            let arrived = self.state.take_in(&self.settings, item, tokens);
            let shorter = plan::shorten(&self.settings, &self.state, &arrived);
            self.state.show(&self.settings, arrived, shorter.as_ref().map(|(text, _)| text));
            self.decisions.extend(shorter.map(|(_, decision)| decision));
        }
    }

    /// Returns the window of the current request without looking at the disk; [`Asking`](super::Asking) looks at it.
    pub fn request(&mut self) -> &[ShownItem] {
        self.begin_request();
        for decide in plan::BEFORE_REQUEST {
            if let Some(decision) = decide(&self.settings, &mut self.state) {
                self.decide(decision);
            }
        }
        self.end_request()
    }

    pub(super) fn begin_request(&mut self) {
        let Self { settings, state, .. } = self;
        let size = state.fold_size(settings);
        state.billing.begin_request(&settings.policy.prices, state.shown.tokens(), size);
    }

    /// Applies a decision and records it.
    pub(super) fn decide(&mut self, decision: FoldDecision) {
        self.state.apply(&self.settings, &decision);
        self.decisions.push(decision);
    }

    pub(super) fn end_request(&mut self) -> &[ShownItem] {
        self.state.end_request(&self.settings);
        self.state.shown.items()
    }

    /// What was billed so far, and what pass-through would have been billed.
    pub fn account(&self) -> &Account {
        self.state.billing.account()
    }

    /// What is known of files.
    pub fn model(&self) -> &FileModel {
        self.state.knowledge.model()
    }

    /// The decisions since the last [`take_decisions`](Self::take_decisions), oldest first.
    pub fn decisions(&self) -> &[FoldDecision] {
        &self.decisions
    }

    /// Takes the decisions since the last call. Store them to be able to replay the conversation; the folder does not
    /// need them.
    pub fn take_decisions(&mut self) -> Vec<FoldDecision> {
        std::mem::take(&mut self.decisions)
    }

    /// The files of which decisions show lines, to be looked at on the disk.
    pub fn files_of(&self, decisions: &[FoldDecision]) -> Vec<Wanted> {
        let mut files: Vec<usize> = decisions.iter().flat_map(FoldDecision::files).collect();
        files.sort_unstable();
        files.dedup();
        files.into_iter().filter_map(|file| self.wanted(file)).collect()
    }

    fn wanted(&self, file: usize) -> Option<Wanted> {
        let model = self.model();
        let path = model.files().get(file)?.path.clone();
        // Printed lines have an entry with a name, but are not a file.
        let is_file = model.place(&path) == Some(file);
        is_file.then(|| Wanted { file, path, is_as_compared: model.is_as_compared(file) })
    }

    /// The files that were touched last, which a decision may be about to show.
    pub fn files_in_use(&self, most: usize) -> Vec<Wanted> {
        let files = self.model().files();
        let mut newest: Vec<usize> = (0..files.len()).filter(|file| files[*file].known_lines() > 0).collect();
        newest.sort_by_key(|file| std::cmp::Reverse(files[*file].touched));
        newest.truncate(most);
        newest.into_iter().filter_map(|file| self.wanted(file)).collect()
    }

    /// Whether files on the disk differ from what is known of them, or may differ.
    pub fn differs(&self, found: Vec<(usize, OnDisk)>) -> bool {
        let checked = Checked::new(self.len(), self.model(), found);
        checked.differences() != (0, 0) || !checked.not_compared().is_empty()
    }

    /// How many items it took in.
    pub fn len(&self) -> usize {
        self.state.conversation.len()
    }

    /// How many items at the start of the window will probably stay with the next fold: all that the newest one put
    /// there, but for the views and notes at its end, which the next one writes anew.
    pub fn standing(&self) -> usize {
        let head = self.state.shown.head();
        let is_said = |head: &HeadItem| matches!(head, HeadItem::Dialogue(_));
        head.iter().rposition(is_said).map_or(0, |last| last + 1)
    }

    /// The first item that is shown in its own place; everything before it is folded.
    pub fn start(&self) -> usize {
        self.state.shown.start()
    }

    /// Whether it took in nothing yet.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The window as it is now.
    pub fn window(&self) -> &[ShownItem] {
        self.state.shown.items()
    }

    /// The tokens of the window as it is now.
    pub fn tokens(&self) -> u64 {
        self.state.shown.tokens()
    }

    /// The tokens of all items so far, which pass-through would send.
    pub fn passed_through_tokens(&self) -> u64 {
        self.state.conversation.tokens()
    }
}
