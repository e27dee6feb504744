//! What of a request its provider can still have in its cache after the client has changed its own past.

use contexture::wire::prefix_cache::LOOK_BACK;
use contexture::wire::{Format, Plan, Request, read};

use super::text_bytes::text_bytes;
use crate::account::growth::BodyBytes;
use crate::account::sent_request::Rewritten;
use crate::find::index::FoundConversation;

/// How the client has changed what it had sent before, if it did. `plan` is what was decided before this request.
pub(crate) fn rewritten(request: &Request<'_>, found: &FoundConversation, plan: &Plan) -> Option<Rewritten> {
    let first = *found.rewritten.first()?;
    let sent = found.rewritten.iter().find(|message| plan.shows(**message));
    Some(Rewritten {
        same: bytes_before(request, if is_found(request, first) { first } else { 0 }),
        sent_same: sent.map(|sent| bytes_before(request, *sent)),
    })
}

/// Bytes of a request before a message, with everything that is no message.
fn bytes_before(request: &Request<'_>, message: usize) -> BodyBytes {
    let later = request.messages().iter().skip(message).map(|message| text_bytes(message.get().as_bytes()));
    later.fold(text_bytes(request.body().as_bytes()), |bytes, message| bytes.without(&message))
}

/// Whether the provider searches as far back as the message before this one. Without marks, whatever prefix is the same is
/// found; with marks there is one at the end, and what is too far before it is not found.
fn is_found(request: &Request<'_>, message: usize) -> bool {
    let blocks = |at: usize| read(request.format(), request.messages()[at], None).map_or(1, |units| units.len());
    request.format() != Format::Messages || (message..request.messages().len()).map(blocks).sum::<usize>() < LOOK_BACK
}
