//! The whole of texts that decisions shorten, by which they can be shown again.

use contexture::fold::decision::Piece;
use contexture::fold::{FoldDecision, short_hash};
use contexture::item::Item;
use contexture::wire::{Request, read};

use crate::conversation::folder::ConversationFolder;

/// The full texts that were shortened, each with the hash by which the shortened text refers to it.
pub(crate) fn texts_of(
    request: &Request<'_>,
    folder: &ConversationFolder,
    decisions: &[FoldDecision],
) -> Vec<(String, String)> {
    let mut shortened: Vec<(usize, &str)> = Vec::new();
    let mut outputs: Vec<(String, String)> = Vec::new();
    for decision in decisions {
        match decision {
            FoldDecision::Shorten { position, text, .. } => shortened.push((*position, text)),
            FoldDecision::Fold(fold) => {
                shortened.extend(fold.shortened.iter().map(|(at, text)| (*at, &**text)));
                let cut = fold.cut_said.iter().chain(&fold.cut_told).chain(&fold.cut_records);
                shortened.extend(cut.map(|cut| (cut.position, cut.hash.as_str())));
                shortened.extend(fold.head.iter().filter_map(|piece| match piece {
                    Piece::Shortened(at, text) => Some((*at, &**text)),
                    Piece::Logged(_) | Piece::Made(_) | Piece::Records(_) => None,
                }));
                outputs.extend(fold.head.iter().flat_map(|piece| folder.recorded_outputs(piece)));
            }
            FoldDecision::BringBack(_) | FoldDecision::Cold { .. } | FoldDecision::Disk(_) => {}
        }
    }
    let text = |at: usize| {
        let (message, unit) = folder.place_of(at)?;
        let mut units = read(request.format(), request.messages().get(message)?, None).ok()?;
        match (unit < units.len()).then(|| units.swap_remove(unit))?.item {
            Item::Message(message) => Some(message.text()),
            Item::FunctionCallOutput(output) => Some(output.output),
            _ => None,
        }
    };
    let named = |(at, shown): (usize, &str)| {
        let text = text(at)?;
        let hash = short_hash(&text);
        // A text without a hash was only reformatted, so there is nothing to restore.
        shown.contains(&hash).then_some((hash, text))
    };
    shortened.into_iter().filter_map(named).chain(outputs).collect()
}
