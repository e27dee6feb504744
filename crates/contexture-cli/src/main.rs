//! The program `contexture`.

use clap::Parser;

/// Weaves the context window of an LLM agent out of memory layers.
#[derive(Parser)]
#[command(name = "contexture", version, about)]
struct Arguments {}

fn main() {
    let Arguments {} = Arguments::parse();
}
