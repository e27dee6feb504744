//! What a person said in a message, as titles show it.

pub use contexture_text::spoken::spoken;

/// Characters of a title.
pub const TITLE_CHARS: usize = 120;

/// What a person said in a message, on one line, as titles show it; `None` if nobody said anything.
pub fn title_of(text: &str) -> Option<String> {
    spoken(text).map(|said| super::text::first_line(said, TITLE_CHARS))
}
