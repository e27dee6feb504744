//! The recording that the program carries, so that it can show something at once.

use contexture::transcript::{Report, Transcript};

use crate::terminal::Screen;

/// A made-up session of an agent that mends a small program which computes tides.
const RECORDING: &str = include_str!("example.jsonl");

/// What the recording is called.
pub const NAME: &str = "the built-in example";

/// A budget that is small enough for the recording to outgrow it.
pub const BUDGET: u64 = 2_400;

/// What is said before its summary.
const INTRODUCTION: &str =
    "No file was named, so this is the built-in example: a made-up session of an agent at work on a small program.";

/// What is said before anything about the recording.
pub fn introduction(screen: Screen) -> String {
    format!("{}\n\n", screen.wrap(INTRODUCTION, 0))
}

/// Reads the recording.
pub fn transcript() -> (Transcript, Report) {
    Transcript::read(RECORDING.as_bytes()).expect("the recording is part of the program and in the plain form")
}
