//! Replays a conversation with the decisions that were made about it.

use std::collections::VecDeque;
use std::sync::Arc;

use contexture_core::item::Item;

use super::conversation::text_of;
use super::decision::FoldDecision;
use super::folder::Folder;
use super::shown::ShownItem;

/// A shortened text has never this many times the bytes of the text that it was made of.
const LONGEST: usize = 2;

/// Replays a conversation without deciding anything again.
///
/// Push the same messages and make the same requests again, and the windows are those that were sent, byte for byte.
/// [`go_on`](Self::go_on) returns the folder, which continues from there.
pub struct Replay {
    folder: Folder,
    decisions: VecDeque<FoldDecision>,
}

impl Replay {
    /// Begins with an empty folder and the decisions, oldest first.
    pub fn new(folder: Folder, decisions: Vec<FoldDecision>) -> Self {
        Self { folder, decisions: decisions.into() }
    }

    /// Takes in the items of one message, as [`Folder::push`] did.
    pub fn push(&mut self, message: impl IntoIterator<Item = (Arc<Item>, u64)>) {
        let Folder { settings, state, decisions } = &mut self.folder;
        state.begin_message();
        for (item, tokens) in message {
            let bytes = text_of(&item).map_or(0, |text| text.len());
            let arrived = state.take_in(settings, item, tokens);
            let shorter = self.decisions.pop_front_if(
                |decision| matches!(decision, FoldDecision::Shorten { position, .. } if *position == arrived.at),
            );
            let text = match &shorter {
                // A client may have replaced it by a note since then, which is shown instead.
                Some(FoldDecision::Shorten { text, .. }) if text.len() <= LONGEST * bytes => Some(text),
                _ => None,
            };
            state.show(settings, arrived, text);
            decisions.extend(shorter);
        }
    }

    /// The window of the request that was made here.
    pub fn request(&mut self) -> &[ShownItem] {
        self.folder.begin_request();
        let now = self.folder.len();
        while let Some(decision) = self.decisions.pop_front_if(|decision| decision.is_at_request(now)) {
            self.folder.decide(decision);
        }
        self.folder.end_request()
    }

    /// The folder, for instance for what was billed so far.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }

    /// Ends the replay and returns the folder, which decides by itself from here on.
    pub fn go_on(self) -> Folder {
        self.folder
    }
}
