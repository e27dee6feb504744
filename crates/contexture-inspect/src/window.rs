//! Determines the state of each block of a window.

use std::collections::{HashMap, HashSet};

use super::block::BlockKind;
use super::view::{BlockState, WindowForm};

/// A block with its state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShownBlock {
    /// The block.
    pub id: u32,
    /// Its state.
    pub state: BlockState,
    /// The block that it replaces, or that replaces it.
    pub other: Option<u32>,
}

/// The lists that a window is made from.
pub struct ComparedWindow<'a> {
    /// The request as received.
    pub came: &'a [u32],
    /// The request as sent.
    pub sent: &'a [u32],
    /// The previous request as sent.
    pub before: &'a [u32],
    /// Calls and outputs, by block: which of the two it is, and the id of the call.
    pub steps: &'a HashMap<u32, (BlockKind, String)>,
}

impl ComparedWindow<'_> {
    /// The blocks of a form, in order.
    pub fn shown(&self, form: WindowForm) -> Vec<ShownBlock> {
        match form {
            WindowForm::Sent => self.against(self.sent, self.came, BlockState::Made),
            WindowForm::Came => self.against(self.came, self.sent, BlockState::LeftOut),
            WindowForm::Before => self.against_before(),
        }
    }

    fn against(&self, list: &[u32], others: &[u32], alone: BlockState) -> Vec<ShownBlock> {
        let known: HashSet<u32> = others.iter().copied().collect();
        let by_step: HashMap<&(BlockKind, String), u32> =
            others.iter().filter_map(|id| Some((self.steps.get(id)?, *id))).collect();
        let shown = |id: &u32| {
            if known.contains(id) {
                return ShownBlock { id: *id, state: BlockState::Kept, other: None };
            }
            let other = self.steps.get(id).and_then(|step| by_step.get(step)).copied();
            ShownBlock { id: *id, state: if other.is_some() { BlockState::Shortened } else { alone }, other }
        };
        list.iter().map(shown).collect()
    }

    fn against_before(&self) -> Vec<ShownBlock> {
        let shared = self.sent.iter().zip(self.before).take_while(|(now, before)| now == before).count();
        let (now, before) = (&self.sent[shared..], &self.before[shared..]);
        let was: HashSet<u32> = before.iter().copied().collect();
        let is: HashSet<u32> = now.iter().copied().collect();
        let shown = |state| move |id: &u32| ShownBlock { id: *id, state, other: None };
        let mut all: Vec<ShownBlock> = self.sent[..shared].iter().map(shown(BlockState::Same)).collect();
        all.extend(before.iter().filter(|id| !is.contains(id)).map(shown(BlockState::Gone)));
        all.extend(now.iter().map(|id| shown(if was.contains(id) { BlockState::Behind } else { BlockState::New })(id)));
        all
    }
}

/// How the tokens of blocks by our own count become those of a request as its provider counts them.
#[derive(Clone, Copy)]
pub struct TokenScale(f64);

impl TokenScale {
    /// The scale at which our own count of a whole becomes another one.
    pub fn new(total: u64, own: u64) -> Self {
        Self(if total > 0 && own > 0 { total as f64 / own as f64 } else { 1.0 })
    }

    /// Tokens of our own count in the other one.
    pub fn of(self, own: u64) -> u64 {
        (own as f64 * self.0).round() as u64
    }
}

/// The index of the first block of what is newest in a list: of what came since the model's last answer.
pub fn newest_from(list: &[u32], is_of_model: impl Fn(&u32) -> bool) -> usize {
    list.iter().rposition(is_of_model).map_or(0, |last| last + 1)
}

/// The index of the first block that differs from what the form is compared with.
pub fn first_difference(shown: &[ShownBlock]) -> Option<usize> {
    shown.iter().position(|shown| !matches!(shown.state, BlockState::Kept | BlockState::Same))
}

/// The index of the first block after `cached` tokens; removed blocks count as none.
pub fn boundary(shown: &[ShownBlock], tokens: impl Fn(u32) -> u64, cached: u64) -> usize {
    let mut sum = 0;
    for (place, block) in shown.iter().enumerate() {
        let size = if block.state == BlockState::Gone { 0 } else { tokens(block.id) };
        // Counts differ a little from the provider's, so a block counts as read if most of it is.
        if sum + size / 2 >= cached && size > 0 {
            return place;
        }
        sum += size;
    }
    shown.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(
        came: &[u32],
        sent: &[u32],
        before: &[u32],
        form: WindowForm,
        expected: &[(u32, BlockState)],
        first: Option<usize>,
    ) {
        let step = |kind| (kind, "call".to_owned());
        let (call, output) = (step(BlockKind::Call), step(BlockKind::Output));
        let steps = HashMap::from([(4, call.clone()), (40, call), (5, output.clone()), (50, output)]);
        let shown = ComparedWindow { came, sent, before, steps: &steps }.shown(form);
        assert_eq!(shown.iter().map(|shown| (shown.id, shown.state)).collect::<Vec<_>>(), expected);
        assert_eq!(first_difference(&shown), first);
    }

    #[test]
    fn each_form_says_what_became_of_blocks() {
        use BlockState::{Behind, Gone, Kept, LeftOut, Made, New, Same, Shortened};
        let (came, sent) = (&[1, 2, 3, 5][..], &[1, 9, 50][..]);
        check(came, sent, &[], WindowForm::Sent, &[(1, Kept), (9, Made), (50, Shortened)], Some(1));
        check(came, sent, &[], WindowForm::Came, &[(1, Kept), (2, LeftOut), (3, LeftOut), (5, Shortened)], Some(1));
        check(came, sent, &[1, 2, 50], WindowForm::Before, &[(1, Same), (2, Gone), (9, New), (50, Behind)], Some(1));
        let (both, brief) = (&[1, 4, 5][..], &[1, 40, 50][..]);
        check(both, brief, &[], WindowForm::Sent, &[(1, Kept), (40, Shortened), (50, Shortened)], Some(1));
        check(both, brief, &[], WindowForm::Came, &[(1, Kept), (4, Shortened), (5, Shortened)], Some(1));
        check(came, came, came, WindowForm::Sent, &[(1, Kept), (2, Kept), (3, Kept), (5, Kept)], None);
        check(came, came, came, WindowForm::Before, &[(1, Same), (2, Same), (3, Same), (5, Same)], None);
        check(&[], &[], &[], WindowForm::Before, &[], None);
    }

    #[test]
    fn the_boundary_is_behind_what_was_cached() {
        let shown: Vec<ShownBlock> =
            [1, 2, 3].map(|id| ShownBlock { id, state: BlockState::Same, other: None }).to_vec();
        assert_eq!(boundary(&shown, |_| 100, 0), 0);
        assert_eq!(boundary(&shown, |_| 100, 195), 2);
        assert_eq!(boundary(&shown, |_| 100, 300), 3);
    }
}
