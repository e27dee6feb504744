//! Where each block of the input is shown during an epoch.

use super::epoch::{LayerPlace, WindowPlace};
use super::input::Block;
use crate::layer::Placement;

/// Where one block of the input is shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum BlockPlace {
    /// In the anchor band, pinned under this index. `None`: the layer is new, and only shown in updates.
    Anchor(Option<usize>),
    Live,
    LeftOut,
}

impl BlockPlace {
    pub(super) fn of(index: usize, placed: &LayerPlace) -> BlockPlace {
        match placed.place {
            WindowPlace::Anchor(_) => BlockPlace::Anchor(Some(index)),
            WindowPlace::Live => BlockPlace::Live,
            WindowPlace::LeftOut => BlockPlace::LeftOut,
        }
    }
}

/// Where each block is shown if the epoch continues; `None` if a pinned block is now larger than its layer's budget, or
/// its layer no longer exists.
///
/// Layers and blocks are both in slot order, so each block is found with the first comparison.
pub(super) fn places(layers: &[LayerPlace], blocks: &[Block]) -> Option<Vec<BlockPlace>> {
    let mut places = Vec::with_capacity(blocks.len());
    let (mut next, mut pins) = (0, 0);
    for block in blocks {
        let is_next = layers.get(next).is_some_and(|placed| placed.layer == block.layer);
        let found = if is_next { Some(next) } else { layers.iter().position(|placed| placed.layer == block.layer) };
        let Some(at) = found else {
            // Added after the epoch began: it is not pinned, and all of it is an update.
            places.push(if block.placement == Placement::Live { BlockPlace::Live } else { BlockPlace::Anchor(None) });
            continue;
        };
        next = at + 1;
        let pinned = layers[at].pin().map_or(0, |pin| pin.tokens);
        if pinned > block.allocated {
            return None;
        }
        pins += usize::from(pinned > 0);
        places.push(BlockPlace::of(at, &layers[at]));
    }
    let held = layers.iter().filter_map(LayerPlace::pin).filter(|pin| pin.tokens > 0).count();
    (pins == held).then_some(places)
}
