//! Texts of the log that are shown shortened.

use std::sync::Arc;

use contexture_core::item::Item;
use contexture_core::window;

use crate::cap::cap;
use crate::compact::compact;
use crate::conversation::ItemSpeaker;
use crate::decision::FoldDecision;
use crate::settings::FoldSettings;
use crate::state::{ArrivedItem, ArrivedOutput, State};
use crate::stubs;
use contexture_files::observation::Seen;

/// Returns how a new item is shown from the first time that it is sent, if not as it is.
pub(crate) fn shorten(
    settings: &FoldSettings,
    state: &State,
    arrived: &ArrivedItem,
) -> Option<(Arc<str>, FoldDecision)> {
    let ArrivedOutput { tool, seen, repeats } = arrived.output.as_ref()?;
    let position = arrived.at;
    // Nothing is known of a call without a name.
    if tool.is_empty() || state.conversation.is_pinned(position) {
        return None;
    }
    let text = state.conversation.text(position);
    let (text, reason) = match repeats {
        true => (stubs::pointer(seen, &text), "the same text is shown above"),
        false => shorter(settings, tool, seen, &text)?,
    };
    let text: Arc<str> = text.into();
    Some((text.clone(), FoldDecision::Shorten { position, text, reason: reason.to_owned() }))
}

/// Returns what replaces an output, and why; `None` if it is sent as it is.
fn shorter(settings: &FoldSettings, tool: &str, seen: &Seen, text: &str) -> Option<(String, &'static str)> {
    let limit = settings.tuning.output_tokens;
    let compact = (!settings.policy.verbatim).then(|| compact(text, &seen.blocks())).flatten();
    let shown = compact.as_deref().unwrap_or(text);
    // What the output tool shows was asked for. If it were cut again, the model would keep asking for it.
    let can_cap = settings.output_tool.as_deref() != Some(tool) && stubs::can_cap(seen);
    if can_cap && settings.meter.text(shown) > limit {
        let capped = cap(settings.meter.counter(), text, limit, settings.output_tool.as_deref());
        return Some((capped, "too long to be worth sending whole"));
    }
    compact.map(|compact| (compact, "the same in fewer words"))
}

/// Returns the text of an item, cut to a number of tokens.
pub(super) fn shortened(settings: &FoldSettings, state: &State, at: usize, tokens: u64) -> Arc<str> {
    let text = state.conversation.text(at);
    let counter = settings.meter.counter();
    if is_shown_by_tool(settings, state, state.conversation.item(at)) {
        return cap(counter, &text, tokens, None).into();
    }
    match (state.conversation.speaker(at), settings.output_tool.as_deref()) {
        (ItemSpeaker::Tool, tool) | (_, tool @ Some(_)) => cap(counter, &text, tokens, tool).into(),
        _ => window::shorten(counter, &text, tokens).into(),
    }
}

/// Whether an item is an output of the output tool.
fn is_shown_by_tool(settings: &FoldSettings, state: &State, item: &Item) -> bool {
    let call = state.conversation.call_of(item);
    call.is_some_and(|made| settings.output_tool.as_deref() == Some(&*made.name))
}
