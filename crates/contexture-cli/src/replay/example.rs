//! The recording that is part of the program: what is played where no other is named.

use std::io::{BufReader, Read};

use contexture::transcript::{self, Report, Transcript};
use contexture_gateway::simulate::played::Played;
use contexture_terminal::screen::Screen;

/// A session of work on the inspector's page, in the form of Claude Code. `docs/evidence.md` says how it was made.
const PACKED: &[u8] = include_bytes!("example.jsonl.zst");

/// The name of the recording.
pub const NAME: &str = "the built-in session";

/// The agent in whose form it is.
pub const AGENT: &str = "Claude Code";

/// The introduction of its summary.
const INTRODUCTION: &str = "No file was named, so this is the session of `contexture demo`: work on this program's own \
                            page. Its figures are those of one sample.";

/// The introduction of any output about the recording.
pub fn introduction(screen: Screen) -> String {
    format!("{}\n\n", screen.wrap(INTRODUCTION, 0))
}

/// Reads the recording.
pub fn transcript() -> (Transcript, Report) {
    let mut text = Vec::new();
    let decoder = ruzstd::decoding::StreamingDecoder::new(PACKED);
    let mut decoder = decoder.expect("the recording is part of the program, and packed as this reads it");
    decoder.read_to_end(&mut text).expect("the recording is whole");
    let mut transcript = Transcript::default();
    let report = transcript::read(BufReader::new(&*text), &mut |record| transcript.records.push(record));
    (transcript, report.expect("the recording is in a known form"))
}

/// The same player with the agent of the recording.
pub fn played(played: Played) -> Played {
    played.with_agent(AGENT)
}
