//! Plays a recorded conversation through the folder, request by request.

use std::sync::Arc;

use contexture::fold::{Folder, Slot};
use contexture::transcript::{Message, Role};

/// A conversation that is being played: before every assistant message the folder is asked for a window.
pub struct Player<I> {
    folder: Folder,
    messages: I,
    /// The message that answers the last request, not taken in yet.
    answer: Option<Arc<Message>>,
    window: Vec<Slot>,
}

/// One request, told by what it has in common with the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The position of the assistant message that answers it.
    pub before: usize,
    /// How many leading messages of the last request it begins with.
    pub keep: usize,
}

impl<I: Iterator<Item = Arc<Message>>> Player<I> {
    /// Begins with an empty window.
    pub fn new(folder: Folder, messages: impl IntoIterator<Item = Arc<Message>, IntoIter = I>) -> Self {
        Self { folder, messages: messages.into_iter(), answer: None, window: Vec::new() }
    }

    /// Goes on to the next request. There is none when all messages are taken in.
    pub fn step(&mut self) -> Option<Step> {
        if let Some(answer) = self.answer.take() {
            self.folder.push(answer);
        }
        for message in self.messages.by_ref() {
            if message.role == Role::Assistant {
                self.answer = Some(message);
                return Some(self.ask());
            }
            self.folder.push(in_plain_role(message));
        }
        None
    }

    fn ask(&mut self) -> Step {
        let before = self.folder.messages().len();
        let window = self.folder.request();
        let keep = self.window.iter().zip(window).take_while(|(old, new)| old == new).count();
        self.window.truncate(keep);
        self.window.extend_from_slice(&window[keep..]);
        Step { before, keep }
    }

    /// The window of the last request.
    pub fn window(&self) -> &[Slot] {
        &self.window
    }

    /// The folder, with all that was taken in so far.
    pub fn folder(&self) -> &Folder {
        &self.folder
    }
}

/// The program that runs an agent speaks as the user, as it does in the plain form and to most models.
fn in_plain_role(mut message: Arc<Message>) -> Arc<Message> {
    if message.role == Role::System {
        Arc::make_mut(&mut message).role = Role::User;
    }
    message
}
