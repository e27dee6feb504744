//! What the window shows, and how much of it is cached.

mod rest;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use contexture_core::item::Item;

use super::conversation::{ConversationItems, replaced_text};
use super::decision::{Piece, ViewPart};
use contexture_files::model::Line;

/// One item of the window.
#[derive(Clone, Debug)]
pub struct ShownItem {
    /// The position in the log of the item that it shows, as it is or shortened; `None` for one that replaces others.
    pub position: Option<usize>,
    /// Whether it is the logged item as it is.
    pub is_logged: bool,
    /// The item as it is sent.
    pub item: Arc<Item>,
    /// Its tokens.
    pub tokens: u64,
}

impl ShownItem {
    /// Whether both look the same to a provider.
    fn is_same(&self, other: &ShownItem) -> bool {
        self.position == other.position && (Arc::ptr_eq(&self.item, &other.item) || self.item == other.item)
    }
}

/// The items of the window, and which lines of files are in them.
#[derive(Default)]
pub(super) struct WindowContents {
    items: Vec<ShownItem>,
    total: u64,
    /// How many items were sent with the last request: the provider has them in its cache.
    sent: usize,
    /// The first item that is shown in its own place; 0 before the first fold.
    start: usize,
    /// How many messages come before it.
    messages_before: u32,
    /// What the items are that the newest fold put before `start`, in order; empty before the first fold.
    head: Vec<HeadItem>,
    /// The parts of the view, oldest first.
    parts: Vec<ViewPart>,
    /// Marks of the views that are in the window.
    marks: Vec<u32>,
    newest_mark: u32,
    /// Items that are shown with another text.
    shortened: HashMap<usize, ShownItem>,
    /// Outputs that are shown as pointers to text in the window, by their moment.
    pointers: BTreeMap<u32, usize>,
}

impl WindowContents {
    /// The items, in order.
    pub(super) fn items(&self) -> &[ShownItem] {
        &self.items
    }

    /// The items that were sent with the last request.
    pub(super) fn sent_items(&self) -> &[ShownItem] {
        &self.items[..self.sent]
    }

    /// The tokens of all items.
    pub(super) fn tokens(&self) -> u64 {
        self.total
    }

    /// The tokens of the items that were sent with the last request.
    pub(super) fn cached_tokens(&self) -> u64 {
        self.items[..self.sent].iter().map(|item| item.tokens).sum()
    }

    /// The first item that is shown in its own place.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    /// Whether the past was folded before.
    pub(super) fn is_folded(&self) -> bool {
        self.start > 0
    }

    /// What the item at an index of the window is, if the newest fold put it there.
    pub(super) fn head(&self) -> &[HeadItem] {
        &self.head
    }

    /// The dialogue that the newest fold shows, in order, with the tokens of each piece.
    pub(super) fn dialogue(&self) -> impl Iterator<Item = (&Piece, u64)> {
        self.head.iter().zip(&self.items).filter_map(|(head, item)| match head {
            HeadItem::Dialogue(piece) => Some((piece, item.tokens)),
            HeadItem::Part | HeadItem::Note => None,
        })
    }

    /// The parts of the view, oldest first.
    pub(super) fn parts(&self) -> &[ViewPart] {
        &self.parts
    }

    /// The items of these parts, in order.
    pub(super) fn part_items(&self) -> impl Iterator<Item = &ShownItem> {
        self.part_indices().map(|index| &self.items[index])
    }

    /// The indices of these items in the window.
    pub(super) fn part_indices(&self) -> impl Iterator<Item = usize> {
        (0..self.head.len()).filter(|index| self.head[*index] == HeadItem::Part)
    }

    /// The mark that the next view gets.
    pub(super) fn next_mark(&self) -> u32 {
        self.newest_mark + 1
    }

    /// Returns how an item of the log is shown in its own place.
    pub(super) fn of_log(&self, at: usize, conversation: &ConversationItems) -> ShownItem {
        self.shortened.get(&at).cloned().unwrap_or_else(|| logged(at, conversation))
    }

    /// Returns how it would be shown after a fold, when what a pointer points to may be gone.
    pub(super) fn after_fold(&self, at: usize, conversation: &ConversationItems) -> ShownItem {
        match self.pointers.values().any(|pointer| *pointer == at) {
            true => logged(at, conversation),
            false => self.of_log(at, conversation),
        }
    }

    /// Adds an item at the end.
    pub(super) fn push(&mut self, item: ShownItem) {
        self.total += item.tokens;
        if let Some(at) = item.position.filter(|_| !item.is_logged) {
            self.shortened.insert(at, item.clone());
        }
        self.items.push(item);
    }

    /// Notes that an output is shown as a pointer.
    pub(super) fn note_pointer(&mut self, moment: u32, at: usize) {
        self.pointers.insert(moment, at);
    }

    /// Notes that all items were sent.
    pub(super) fn mark_sent(&mut self) {
        self.sent = self.items.len();
    }

    /// Notes that the provider's cache holds none of the items.
    pub(super) fn forget_sent(&mut self) {
        self.sent = 0;
    }

    /// Applies a fold: the first `keep` items are kept, then comes `head`, then everything from `start` on, with some
    /// items cut.
    pub(super) fn fold(&mut self, conversation: &ConversationItems, fold: ShownFold) {
        for at in std::mem::take(&mut self.pointers).into_values() {
            self.shortened.remove(&at);
        }
        let kept = self.items[..fold.keep.min(self.items.len())].to_vec();
        self.head = self.head_after(&kept, &fold);
        self.shortened.extend(fold.cut.into_iter().filter_map(|item| Some((item.position?, item))));
        let own = (fold.start..conversation.len()).map(|at| self.of_log(at, conversation));
        let items: Vec<ShownItem> = kept.into_iter().chain(fold.head).chain(own).collect();
        let same = self.items[..self.sent].iter().zip(&items).take_while(|(old, new)| old.is_same(new)).count();
        self.total = items.iter().map(|item| item.tokens).sum();
        (self.items, self.sent) = (items, same);
        self.start = fold.start;
        self.messages_before = conversation.messages_before(fold.start);
        self.shortened.retain(|at, _| *at >= fold.start);
        self.marks = fold.parts.iter().map(|part| part.mark).collect();
        self.parts = fold.parts;
    }

    /// What the items before `start` are after a fold. The first texts that it made are the parts of the view that are
    /// new.
    fn head_after(&self, kept: &[ShownItem], fold: &ShownFold) -> Vec<HeadItem> {
        let of_kept = |(index, item)| self.head.get(index).cloned().unwrap_or_else(|| HeadItem::of(item));
        let mut head: Vec<HeadItem> = kept.iter().enumerate().map(of_kept).collect();
        let mut new = fold.parts.len().saturating_sub(head.iter().filter(|head| **head == HeadItem::Part).count());
        for (piece, item) in fold.pieces.iter().zip(&fold.head) {
            head.push(match piece {
                Piece::Made(_) if new > 0 => {
                    new -= 1;
                    HeadItem::Part
                }
                Piece::Made(_) => HeadItem::Note,
                // It is no longer pinned, so it is not shown.
                Piece::Logged(_) | Piece::Shortened(..) if item.position.is_none() => HeadItem::Note,
                _ => HeadItem::Dialogue(piece.clone()),
            });
        }
        head
    }

    /// Takes the mark for a view that is being put into the window.
    pub(super) fn take_mark(&mut self) -> u32 {
        self.newest_mark += 1;
        self.newest_mark
    }

    /// Notes that the view with the newest mark is in the window besides the parts.
    pub(super) fn note_brought_back(&mut self) {
        self.marks.push(self.newest_mark);
    }

    /// Whether a line is in the window: in an item that is shown in its own place, or in a view.
    pub(super) fn shows(&self, line: &Line) -> bool {
        // A line that was computed is not in any item.
        (line.seen > self.messages_before && !line.is_computed) || (line.shown > 0 && self.marks.contains(&line.shown))
    }

    /// Returns where lines of a file are in the window, according to their marks.
    pub(super) fn place_of(&self, lines: &[Line]) -> Option<LinePlace> {
        let first = lines.first()?;
        let is_in_view = first.shown > 0 && self.marks.contains(&first.shown);
        if is_in_view && lines.iter().all(|line| line.shown == first.shown) {
            return Some(LinePlace::View);
        }
        let is_in_item = first.seen > self.messages_before && !self.pointers.contains_key(&first.seen);
        let is_same = |line: &Line| line.seen == first.seen && line.edited < line.seen && !line.is_computed;
        (is_in_item && lines.iter().all(is_same)).then_some(LinePlace::Item(first.seen))
    }

    /// Whether a view shows a text in one piece.
    pub(super) fn has_in_view(&self, text: &str) -> bool {
        let made = self.items.iter().filter(|item| item.position.is_none());
        made.filter_map(|item| item.item.as_message()).any(|message| message.text_cow().contains(text))
    }
}

/// What an item is that a fold put into the window.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum HeadItem {
    /// Something that was said, told or pinned, or records.
    Dialogue(Piece),
    /// A part of the view of files.
    Part,
    /// Anything else: it is written again at every fold.
    Note,
}

impl HeadItem {
    /// The same for an item that was there before the first fold.
    fn of(item: &ShownItem) -> Self {
        match (item.position, replaced_text(&item.item)) {
            (Some(at), _) if item.is_logged => HeadItem::Dialogue(Piece::Logged(at)),
            (Some(at), Some(text)) => HeadItem::Dialogue(Piece::Shortened(at, text.into())),
            _ => HeadItem::Note,
        }
    }
}

/// Where lines of a file are in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LinePlace {
    /// In a view.
    View,
    /// In the item of a moment, in its own place.
    Item(u32),
}

/// A fold as it is shown.
pub(super) struct ShownFold {
    /// How many items at the start stay as they are.
    pub(super) keep: usize,
    /// What follows them.
    pub(super) head: Vec<ShownItem>,
    /// The same as the decision stores it.
    pub(super) pieces: Vec<Piece>,
    /// The first item that is shown in its own place.
    pub(super) start: usize,
    /// Items from there on that are shown cut.
    pub(super) cut: Vec<ShownItem>,
    /// The parts of the view, oldest first.
    pub(super) parts: Vec<ViewPart>,
}

/// A logged item as it is.
pub(super) fn logged(at: usize, conversation: &ConversationItems) -> ShownItem {
    let (item, tokens) = (conversation.item(at).clone(), conversation.item_tokens(at));
    ShownItem { position: Some(at), is_logged: true, item, tokens }
}
