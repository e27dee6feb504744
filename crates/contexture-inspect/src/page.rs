//! The web page, built from `inspector/` into `inspector/dist`.

/// The document.
pub const DOCUMENT: &str = include_str!("../inspector/dist/index.html");

/// Its icon.
pub const ICON: &str = include_str!("../inspector/dist/icon.svg");

/// Its script.
pub const SCRIPT: &str = include_str!("../inspector/dist/app.js");

/// Its style.
pub const STYLE: &str = include_str!("../inspector/dist/app.css");

/// The hashes of the script and the style, by which a page that embeds them allows them.
const HASHES: &str = include_str!("../inspector/dist/hashes.txt");

/// The hashes of the script and of the style.
pub fn hashes() -> (&'static str, &'static str) {
    let mut lines = HASHES.lines();
    (lines.next().unwrap_or_default(), lines.next().unwrap_or_default())
}
