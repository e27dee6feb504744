//! The policy of Contexture: the past is replaced by what the agent still needs.

use std::sync::Arc;

use contexture::transcript::{Record, Transcript};

use super::{MadeMessage, WindowChange, WindowEntry, WindowPolicy};
use crate::play::player::{Player, ReplayStep, SentMessage};
use crate::play::settings::PlaySettings;
use crate::recorded::RecordedSession;

/// The folder, as in `contexture replay`.
pub struct Own {
    /// The settings for playing recordings.
    pub settings: PlaySettings,
}

impl WindowPolicy for Own {
    fn name(&self) -> &str {
        "contexture"
    }

    fn requests<'a>(
        &'a self,
        transcript: &'a Transcript,
        _recorded: &'a RecordedSession<'a>,
        budget: f64,
    ) -> Box<dyn Iterator<Item = anyhow::Result<WindowChange>> + 'a> {
        let player = self.settings.clone().with_budget(budget as u64).play(transcript.records.iter().cloned());
        let mut own = PlayingTranscript { player, made: MadeMessages::new(transcript.records.len()) };
        Box::new(std::iter::from_fn(move || own.request().map(Ok)))
    }
}

/// A transcript that is being played, with the messages that were created so far.
struct PlayingTranscript<I> {
    player: Player<I>,
    made: MadeMessages,
}

impl<I: Iterator<Item = Record>> PlayingTranscript<I> {
    fn request(&mut self) -> Option<WindowChange> {
        let step = self.player.step()?;
        Some(self.made.change(step, self.player.window()))
    }
}

/// The messages of a transcript that were sent so far, each created once for the judge.
pub struct MadeMessages(Vec<Option<Arc<MadeMessage>>>);

impl MadeMessages {
    /// None yet, of so many messages.
    pub fn new(messages: usize) -> Self {
        Self(vec![None; messages])
    }

    /// A request, as its difference to the previous one.
    pub fn change(&mut self, step: ReplayStep, window: &[SentMessage]) -> WindowChange {
        let ReplayStep { before, keep, .. } = step;
        let added = window[keep..].iter().map(|sent| WindowEntry::Made(self.entry(sent)));
        WindowChange { before, keep, added: added.collect() }
    }

    /// A sent message as one that the policy wrote, so that it is measured like the output of any other program.
    fn entry(&mut self, sent: &SentMessage) -> Arc<MadeMessage> {
        match sent.position.filter(|_| sent.is_whole) {
            Some(at) => self.0[at].get_or_insert_with(|| MadeMessage::new(sent.record())).clone(),
            None => MadeMessage::new(sent.record()),
        }
    }
}
