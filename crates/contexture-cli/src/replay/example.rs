//! The built-in recording.

use contexture::transcript::{Report, Transcript};

use contexture_terminal::screen::Screen;

/// An invented session of an agent that repairs a small program that computes tides.
const RECORDING: &str = include_str!("example.jsonl");

/// The name of the recording.
pub const NAME: &str = "the built-in example";

/// A budget that the recording exceeds.
pub const BUDGET: u64 = 2_400;

/// The introduction of its summary.
const INTRODUCTION: &str =
    "No file was named, so this is the built-in example: a made-up session of an agent at work on a small program.";

/// The introduction of any output about the recording.
pub fn introduction(screen: Screen) -> String {
    format!("{}\n\n", screen.wrap(INTRODUCTION, 0))
}

/// Reads the recording.
pub fn transcript() -> (Transcript, Report) {
    Transcript::read(RECORDING.as_bytes()).expect("the recording is part of the program and in the plain form")
}
