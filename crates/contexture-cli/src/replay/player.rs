//! Plays a recorded conversation through the folder, request by request.

use std::sync::Arc;
use std::time::Duration;

use contexture::fold::{Folder, Slot};
use contexture::transcript::{Message, Role};

/// A conversation that is being played: before every assistant message the folder is asked for a window.
pub struct Player<I> {
    folder: Folder,
    messages: I,
    /// The message that answers the last request, not taken in yet.
    answer: Option<Arc<Message>>,
    window: Vec<Slot>,
    cache_life: Option<Duration>,
    /// When the model last answered, and when something was last said to it, in milliseconds since the Unix epoch.
    answered_ms: Option<u64>,
    heard_ms: Option<u64>,
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
        Self {
            folder,
            messages: messages.into_iter(),
            answer: None,
            window: Vec::new(),
            cache_life: None,
            answered_ms: None,
            heard_ms: None,
        }
    }

    /// The same with a provider whose cache expires after a pause, where the recording says how long it was.
    pub fn with_cache_life(mut self, cache_life: Option<Duration>) -> Self {
        self.cache_life = cache_life;
        self
    }

    /// Goes on to the next request. There is none when all messages are taken in.
    pub fn step(&mut self) -> Option<Step> {
        if let Some(answer) = self.answer.take() {
            self.answered_ms = answer.time_ms.or(self.answered_ms);
            self.folder.push(answer);
        }
        for message in self.messages.by_ref() {
            if message.role == Role::Assistant {
                self.answer = Some(message);
                return Some(self.ask());
            }
            self.heard_ms = message.time_ms.or(self.heard_ms);
            self.folder.push(in_plain_role(message));
        }
        None
    }

    fn ask(&mut self) -> Step {
        let before = self.folder.messages().len();
        if self.has_expired() {
            self.folder.cache_is_cold();
        }
        let window = self.folder.request();
        let keep = self.window.iter().zip(window).take_while(|(old, new)| old == new).count();
        self.window.truncate(keep);
        self.window.extend_from_slice(&window[keep..]);
        Step { before, keep }
    }

    /// Whether so much time went by since the model answered that the provider has forgotten the last request.
    fn has_expired(&self) -> bool {
        let (Some(life), Some(answered), Some(heard)) = (self.cache_life, self.answered_ms, self.heard_ms) else {
            return false;
        };
        u128::from(heard.saturating_sub(answered)) > life.as_millis()
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
