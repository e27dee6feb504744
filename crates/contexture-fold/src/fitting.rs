//! Access for the tool that fits the weights of [`need`](super::view::need). Not covered by any stability promise.

use super::folder::Folder;
use super::tuning::weight;
use super::view::{Chunk, Signs};

/// How many weights there are.
pub const WEIGHT_COUNT: usize = 11;

/// The weights with their names, in the order of [`terms`].
pub const WEIGHTS: [(&str, f64); WEIGHT_COUNT] = [
    ("seen", weight::SEEN),
    ("hit", weight::HIT),
    ("edit-age", weight::EDIT_AGE),
    ("file-edited", weight::FILE_EDITED),
    ("named", weight::NAMED),
    ("pending", weight::PENDING),
    ("pointed-at", weight::POINTED_AT),
    ("talk-words", weight::TALK_WORDS),
    ("span", weight::SPAN),
    ("asks", weight::ASKS),
    ("changed", weight::IN_DOUBT),
];

/// The values that the weights are multiplied by; the sum of the products is the need.
pub fn terms(signs: &Signs) -> [f64; WEIGHT_COUNT] {
    let seen = signs.seen_age.ln_1p();
    let flag = |is_set: bool| f64::from(u8::from(is_set));
    [
        seen * seen,
        flag(signs.is_hit) * seen,
        signs.edit_age.map_or(0.0, f64::ln_1p),
        flag(signs.is_file_edited),
        flag(signs.is_named),
        flag(signs.is_pending),
        flag(signs.is_pointed_at),
        signs.talk_words,
        f64::from(signs.span).ln_1p() - weight::MIDDLE_SPAN,
        (signs.asks as f64).ln_1p(),
        flag(signs.is_changed),
    ]
}

impl Folder {
    /// All known chunks with their signs for the next request.
    pub fn known_chunks(&mut self) -> Vec<Chunk> {
        let knowledge = &mut self.state.knowledge;
        knowledge.cut_all();
        knowledge.chunks(&knowledge.all_files(), self.state.conversation.now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::view::need;

    const NOTHING: Signs = Signs {
        seen_age: 0.0,
        edit_age: None,
        is_file_edited: false,
        edit_distance: None,
        is_hit: false,
        is_pinned: false,
        span: 0,
        asks: 0,
        is_named: false,
        is_pending: false,
        is_pointed_at: false,
        talk_words: 0.0,
        is_changed: false,
    };

    #[track_caller]
    fn check(signs: Signs) {
        let sum: f64 = terms(&signs).iter().zip(WEIGHTS).map(|(term, (_, weight))| term * weight).sum();
        assert!((sum - need(&signs)).abs() < 1e-9, "{sum} is not {} for {signs:?}", need(&signs));
    }

    #[test]
    fn terms_with_the_weights_sum_up_to_the_need() {
        check(NOTHING);
        check(Signs { seen_age: 9.0, is_hit: true, ..NOTHING });
        check(Signs { edit_age: Some(7.0), is_file_edited: true, edit_distance: Some(0), ..NOTHING });
        check(Signs { is_named: true, asks: 3, span: 80, ..NOTHING });
        check(Signs { is_pending: true, ..NOTHING });
        check(Signs { is_changed: true, ..NOTHING });
        check(Signs { is_pointed_at: true, talk_words: 0.5, ..NOTHING });
    }
}
