//! What a terminal shows: text in columns, tables, Markdown, code in colours, and nothing that acts on it.

pub mod code;
pub mod harmless;
pub mod markdown;
pub mod progress;
pub mod screen;
pub mod table;
