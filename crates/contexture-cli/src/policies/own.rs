//! The policy of Contexture: the past is replaced by what the agent still needs.

use std::sync::Arc;

use contexture::transcript::{Record, Transcript};

use super::{MadeMessage, WindowChange, WindowEntry, WindowPolicy};
use crate::recorded::RecordedSession;
use crate::replay::player::{Player, ReplayStep, SentMessage};
use crate::replay::settings::Settings;

/// The folder, as in `contexture replay`.
pub struct Own {
    /// The settings for playing recordings.
    pub settings: Settings,
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
        let mut own = Playing { player, made: vec![None; transcript.records.len()] };
        Box::new(std::iter::from_fn(move || own.request().map(Ok)))
    }
}

/// A transcript that is being played, with the messages that were created so far.
struct Playing<I> {
    player: Player<I>,
    /// RecordedSession messages for the judge, each created once.
    made: Vec<Option<Arc<MadeMessage>>>,
}

impl<I: Iterator<Item = Record>> Playing<I> {
    fn request(&mut self) -> Option<WindowChange> {
        let ReplayStep { before, keep, .. } = self.player.step()?;
        let Self { player, made } = self;
        let added = player.window()[keep..].iter().map(|sent| WindowEntry::Made(entry(sent, made)));
        Some(WindowChange { before, keep, added: added.collect() })
    }
}

/// A sent message as one that the policy wrote, so that it is measured like the output of any other program.
fn entry(sent: &SentMessage, made: &mut [Option<Arc<MadeMessage>>]) -> Arc<MadeMessage> {
    match sent.position.filter(|_| sent.is_whole) {
        Some(at) => made[at].get_or_insert_with(|| MadeMessage::new(sent.record())).clone(),
        None => MadeMessage::new(sent.record()),
    }
}
