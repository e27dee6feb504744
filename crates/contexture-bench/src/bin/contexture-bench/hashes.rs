//! Hashes of everything that would be sent for recordings: `cargo run --release -p contexture-bench -- hashes DIR`.
//!
//! Two trees that print the same lines make the same windows and send the same bytes, so a change that should alter
//! neither is checked by comparing its lines with those of the tree before it.

use contexture::files::dialect::Dialects;
use contexture::fold::Policy;
use contexture::transcript::Transcript;
use contexture::wire::Format;
use contexture_cli::failure::Failure;
use contexture_cli::source;
use contexture_gateway::in_process::{WireFolder, WireFolderOptions};
use contexture_gateway::testing::cache::Cache;
use contexture_gateway::testing::recorded::RecordedSession;
use contexture_measure::play::settings::PlaySettings;

/// The formats of the bodies that are hashed.
const FORMATS: [(Format, &str); 4] = [
    (Format::Messages, "messages"),
    (Format::Chat, "chat"),
    (Format::Responses, "responses"),
    (Format::Gemini, "gemini"),
];

/// Print hashes of all windows of recordings, and of all bodies that the gateway would send for them.
#[derive(clap::Args)]
pub struct HashesCommand {
    /// Files or directories with recordings
    #[arg(required = true)]
    paths: Vec<std::path::PathBuf>,
    /// The budgets of the windows, in tokens
    #[arg(long, value_delimiter = ',', default_value = "32000,64000,200000")]
    budgets: Vec<u64>,
    /// The budget of the bodies, in tokens
    #[arg(long, default_value_t = 64_000)]
    body_budget: u64,
    /// Hash the bodies of every n-th recording only; 0 for none
    #[arg(long, default_value_t = 8)]
    bodies_every: usize,
}

pub fn print(command: &HashesCommand) -> Result<(), Failure> {
    for (number, source) in source::find(&command.paths)?.into_iter().enumerate() {
        let Ok((transcript, _)) = source.transcript() else {
            println!("{source} unread");
            continue;
        };
        for budget in &command.budgets {
            let (requests, hash) = windows(&transcript, *budget);
            println!("{source} windows {budget} {requests} {hash}");
        }
        if command.bodies_every > 0 && number % command.bodies_every == 0 {
            for (format, name) in FORMATS {
                let (requests, hash) = bodies(&transcript, format, command.body_budget)?;
                println!("{source} {name} {} {requests} {hash}", command.body_budget);
            }
        }
    }
    Ok(())
}

/// The number of requests of a recording, and the hash of their windows.
fn windows(transcript: &Transcript, budget: u64) -> (usize, blake3::Hash) {
    let settings = PlaySettings::estimated(Policy::new(budget), Dialects::builtin());
    let mut player = settings.play(transcript.records.iter().cloned());
    let (mut hasher, mut requests) = (blake3::Hasher::new(), 0);
    while let Some(step) = player.step() {
        requests += 1;
        hasher.update(format!("request {} {} {}\n", step.before, step.keep, step.standing).as_bytes());
        for sent in player.window() {
            hasher.update(format!("{:?} {}\n", sent.position, sent.is_whole).as_bytes());
            for item in sent.record().items() {
                hasher.update(&serde_json::to_vec(item).expect("an item can be written"));
            }
        }
    }
    (requests, hasher.finalize())
}

/// The number of requests of a recording in one format, and the hash of the bodies that are sent for them.
fn bodies(transcript: &Transcript, format: Format, budget: u64) -> Result<(usize, blake3::Hash), Failure> {
    let recorded = RecordedSession::new(format, &transcript.records);
    let options = WireFolderOptions { budget: Some(budget), format: Some(format), ..WireFolderOptions::default() };
    let folder = WireFolder::new(options).map_err(|error| Failure::usage(error.to_string()))?;
    let mut cache = Cache::with_life(u64::MAX);
    let usage_name = if format == Format::Gemini { "usageMetadata" } else { "usage" };
    let mut hasher = blake3::Hasher::new();
    for number in 0..recorded.len() {
        match folder.request(recorded.request(number).as_bytes()) {
            Ok(folded) => {
                hasher.update(&folded.body);
                let took = cache.serve(format, &String::from_utf8_lossy(&folded.body), 0);
                let usage = serde_json::json!({usage_name: took.usage(format, 10)});
                folder.usage(None, usage.to_string().as_bytes()).expect("it is the usage of the last request");
            }
            Err(error) => {
                hasher.update(error.to_string().as_bytes());
            }
        }
        hasher.update(b"\n");
    }
    Ok((recorded.len(), hasher.finalize()))
}
