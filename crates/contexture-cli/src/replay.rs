//! `contexture replay`: plays recorded work through the folder and shows what would have been sent.

use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use contexture::fold::{FoldDecision, Folder, Policy, Prices, Slot};
use contexture::tokens::{Estimate, TokenCounter};
use contexture::transcript::{Message, Role, Transcript};
use serde_json::json;

/// Plays recorded transcripts through the folder.
#[derive(Args)]
pub struct Replay {
    /// Transcripts, one message a line.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// The most tokens of a window.
    #[arg(long, default_value_t = 64_000, value_parser = clap::value_parser!(u64).range(1..))]
    budget: u64,
    /// How tokens are counted.
    #[arg(long, value_enum, default_value_t = Counter::Estimate)]
    counter: Counter,
    /// Whose cache prices are reckoned with.
    #[arg(long, value_enum, default_value_t = Provider::Anthropic)]
    provider: Provider,
    /// What is printed.
    #[arg(long, value_enum, default_value_t = Emit::Summary)]
    emit: Emit,
}

#[derive(Clone, Copy, ValueEnum)]
enum Counter {
    /// UTF-8 bytes / 4.
    Estimate,
}

#[derive(Clone, Copy, ValueEnum)]
enum Provider {
    Anthropic,
    Openai,
    None,
}

#[derive(Clone, Copy, ValueEnum)]
enum Emit {
    /// One paragraph for each transcript.
    Summary,
    /// Every request, as what it changes of the one before.
    Windows,
    /// Everything that was decided.
    Decisions,
}

impl Replay {
    /// Runs the command.
    ///
    /// # Errors
    /// If a transcript cannot be read, or the output cannot be written.
    pub fn run(&self) -> Result<()> {
        let mut out = io::BufWriter::new(io::stdout().lock());
        for file in &self.files {
            let transcript = load(file)?;
            self.play(file, &transcript, &mut out).with_context(|| format!("replay `{}`", file.display()))?;
        }
        out.flush()?;
        Ok(())
    }

    fn play(&self, file: &Path, transcript: &Transcript, out: &mut impl Write) -> Result<()> {
        let mut folder = Folder::new(self.policy(), self.counter());
        let mut previous: Vec<Slot> = Vec::new();
        let (mut requests, mut peak) = (0_u64, 0);
        for (before, message) in transcript.messages.iter().enumerate() {
            if message.role == Role::Assistant {
                let window = folder.request().to_vec();
                requests += 1;
                peak = peak.max(folder.tokens());
                if matches!(self.emit, Emit::Windows) {
                    write_window(out, before, &previous, &window, &folder)?;
                }
                previous = window;
            }
            folder.push(Arc::new(message.clone()));
        }
        match self.emit {
            Emit::Windows => Ok(()),
            Emit::Decisions => write_decisions(out, &folder),
            Emit::Summary => write_summary(out, file, &folder, requests, peak),
        }
    }

    fn policy(&self) -> Policy {
        Policy::new(self.budget).with_prices(match self.provider {
            Provider::Anthropic => Prices::ANTHROPIC,
            Provider::Openai => Prices::OPENAI,
            Provider::None => Prices::NONE,
        })
    }

    fn counter(&self) -> Arc<dyn TokenCounter> {
        match self.counter {
            Counter::Estimate => Arc::new(Estimate),
        }
    }
}

/// Reads a transcript in the plain form; a broken line is reported and skipped.
fn load(file: &Path) -> Result<Transcript> {
    let reader = std::fs::File::open(file).with_context(|| format!("open `{}`", file.display()))?;
    let mut messages: Vec<Message> = Vec::new();
    for (index, line) in io::BufReader::new(reader).lines().enumerate() {
        let line = line.with_context(|| format!("read `{}`", file.display()))?;
        if line.trim().is_empty() {
            continue;
        }
        match serde_json::from_str(&line) {
            Ok(message) => messages.push(message),
            Err(error) => eprintln!("{}:{}: {error}; the line is skipped", file.display(), index + 1),
        }
    }
    Ok(Transcript { messages })
}

fn write_window(
    out: &mut impl Write,
    before: usize,
    previous: &[Slot],
    window: &[Slot],
    folder: &Folder,
) -> Result<()> {
    let keep = previous.iter().zip(window).take_while(|(old, new)| old == new).count();
    let messages: Vec<Message> = folder.render(&window[keep..]).collect();
    serde_json::to_writer(&mut *out, &json!({ "before": before, "keep": keep, "messages": messages }))?;
    out.write_all(b"\n")?;
    Ok(())
}

fn write_decisions(out: &mut impl Write, folder: &Folder) -> Result<()> {
    for decision in folder.decisions() {
        serde_json::to_writer(&mut *out, decision)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

fn write_summary(out: &mut impl Write, file: &Path, folder: &Folder, requests: u64, peak: u64) -> Result<()> {
    let account = folder.account();
    let share = 100.0 * account.billed / account.passed_through.max(1.0);
    writeln!(out, "{}", file.display())?;
    writeln!(out, "  {requests} requests, largest {peak} tokens")?;
    writeln!(
        out,
        "  billed {:.0} of {:.0} tokens at the plain input price ({share:.0} %), at worst {:.0} above pass-through",
        account.billed, account.passed_through, account.worst_excess
    )?;
    for decision in folder.decisions() {
        if let FoldDecision::Fold(fold) = decision {
            writeln!(
                out,
                "  before message {}: folded {} into {} tokens, because {}",
                fold.at, fold.before_tokens, fold.after_tokens, fold.reason
            )?;
        }
    }
    Ok(())
}
