//! What Contexture does: the past is folded into what the agent still needs.

use std::sync::Arc;

use contexture::files::dialect::Dialects;
use contexture::fold::Policy as FoldPolicy;
use contexture::tokens::Estimate;
use contexture::transcript::{Record, Transcript};

use super::{Entry, Made, Policy, Request};
use crate::recorded::Recorded;
use crate::replay::player::{Player, Sent, Step};

/// The folder as `contexture replay` runs it, with its tokens counted in four bytes.
pub struct Own {
    /// What the tools of the recorded agents do.
    pub dialects: Dialects,
}

impl Policy for Own {
    fn name(&self) -> &str {
        "contexture"
    }

    fn requests<'a>(
        &'a self,
        transcript: &'a Transcript,
        _recorded: &'a Recorded<'a>,
        budget: f64,
    ) -> Box<dyn Iterator<Item = anyhow::Result<Request>> + 'a> {
        let records = transcript.records.iter().cloned();
        let player = Player::new(FoldPolicy::new(budget as u64), Arc::new(Estimate), records)
            .with_dialects(self.dialects.clone());
        let mut own = Playing { player, made: vec![None; transcript.records.len()] };
        Box::new(std::iter::from_fn(move || own.request().map(Ok)))
    }
}

/// A transcript that is being played, with the messages that were made so far.
struct Playing<I> {
    player: Player<I>,
    /// Recorded messages as they are judged, each made once.
    made: Vec<Option<Arc<Made>>>,
}

impl<I: Iterator<Item = Record>> Playing<I> {
    fn request(&mut self) -> Option<Request> {
        let Step { before, keep } = self.player.step()?;
        let Self { player, made } = self;
        let added = player.window()[keep..].iter().map(|sent| Entry::Made(entry(sent, made)));
        Some(Request { before, keep, added: added.collect() })
    }
}

/// A message that was sent as one that the policy wrote: a program that prints its windows is judged in the same way.
fn entry(sent: &Sent, made: &mut [Option<Arc<Made>>]) -> Arc<Made> {
    match sent.position.filter(|_| sent.is_whole) {
        Some(at) => made[at].get_or_insert_with(|| Made::new(sent.record())).clone(),
        None => Made::new(sent.record()),
    }
}
