//! Where each block of the input is shown while an epoch lasts.

use super::epoch::{Place, Placed};
use super::input::Block;
use crate::layer::Placement;

/// Where one block of the input is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Seat {
    /// In the anchor band, held in the epoch under this index. `None`: the layer is new, and only told in updates.
    Anchor(Option<usize>),
    Live,
    LeftOut,
}

impl Seat {
    pub(super) fn of(index: usize, placed: &Placed) -> Seat {
        match placed.place {
            Place::Anchor(_) => Seat::Anchor(Some(index)),
            Place::Live => Seat::Live,
            Place::LeftOut => Seat::LeftOut,
        }
    }
}

/// Where each block is shown in an epoch that goes on; `None` if a pin is larger than its layer's budget by now, or
/// its layer is gone.
///
/// Layers and blocks are both in slot order, so that each block is found at the first look.
pub(super) fn seats(layers: &[Placed], blocks: &[Block]) -> Option<Vec<Seat>> {
    let mut seats = Vec::with_capacity(blocks.len());
    let (mut next, mut pins) = (0, 0);
    for block in blocks {
        let is_next = layers.get(next).is_some_and(|placed| placed.layer == block.layer);
        let found = if is_next { Some(next) } else { layers.iter().position(|placed| placed.layer == block.layer) };
        let Some(at) = found else {
            // Added since the epoch began: it has no pin, and all of it is an update.
            seats.push(if block.placement == Placement::Live { Seat::Live } else { Seat::Anchor(None) });
            continue;
        };
        next = at + 1;
        let pinned = layers[at].pin().map_or(0, |pin| pin.tokens);
        if pinned > block.allocated {
            return None;
        }
        pins += usize::from(pinned > 0);
        seats.push(Seat::of(at, &layers[at]));
    }
    let held = layers.iter().filter_map(Placed::pin).filter(|pin| pin.tokens > 0).count();
    (pins == held).then_some(seats)
}
