//! What Contexture does: the past is folded into what the agent still needs.

use std::sync::Arc;

use contexture::files::dialect::Dialects;
use contexture::fold::{Policy as FoldPolicy, Slot};
use contexture::tokens::Estimate;
use contexture::transcript::{Message, Transcript};

use super::{Entry, Made, Policy, Request};
use crate::recorded::Recorded;
use crate::replay::player::{Player, Step};

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
        let messages = transcript.messages.iter().cloned().map(Arc::new);
        let player = Player::new(FoldPolicy::new(budget as u64), Arc::new(Estimate), messages)
            .with_dialects(self.dialects.clone());
        let mut own = Playing { player, made: vec![None; transcript.messages.len()] };
        Box::new(std::iter::from_fn(move || own.request().map(Ok)))
    }
}

/// A transcript that is being played, with the messages that were made so far.
struct Playing<I> {
    player: Player<I>,
    /// Logged messages as they are judged, each made once.
    made: Vec<Option<Arc<Made>>>,
}

impl<I: Iterator<Item = Arc<Message>>> Playing<I> {
    fn request(&mut self) -> Option<Request> {
        let Step { before, keep } = self.player.step()?;
        let Self { player, made } = self;
        let added = player.window()[keep..].iter().map(|slot| Entry::Made(entry(player, slot, made)));
        Some(Request { before, keep, added: added.collect() })
    }
}

/// A slot as a message that the policy wrote: a program that prints its windows is judged in the same way.
fn entry<I: Iterator<Item = Arc<Message>>>(
    player: &Player<I>,
    slot: &Slot,
    made: &mut [Option<Arc<Made>>],
) -> Arc<Made> {
    match slot {
        Slot::Logged(at) => made[*at].get_or_insert_with(|| Made::new(player.render_slot(slot))).clone(),
        Slot::Shortened(..) | Slot::Made(_) => Made::new(player.render_slot(slot)),
    }
}
