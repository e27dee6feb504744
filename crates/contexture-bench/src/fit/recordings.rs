//! The recordings that weights are fitted to, each with its project.

use contexture::transcript::Record;
use contexture_cli::failure::Failure;
use contexture_cli::source::{self, RecordingSource};
use contexture_measure::work::in_parallel;
use contexture_terminal::progress::ProgressCounter;

use super::options::FitOptions;
use super::sample::{self, Sampling};

/// Most recordings that are played; of more, this many are chosen evenly.
const MOST_RECORDINGS: usize = 2_000;

/// Most sampled requests of all recordings together. With [`sample::MOST_CHUNKS`] it bounds the memory.
const MOST_REQUESTS: usize = 4_000;

/// Most sampled requests of one recording.
const MOST_REQUESTS_OF_ONE: usize = 30;

/// What separates the project from the rest in the name of a recording.
const PROJECT_MARK: &str = "__";

/// A recording that was played.
pub(super) struct PlayedRecording {
    pub(super) project: String,
    /// The sampled requests at which something known was needed later.
    pub(super) requests: Vec<sample::RequestSample>,
    /// How many requests were sampled.
    pub(super) sampled: usize,
}

/// Plays all given recordings.
pub(super) fn play_all(options: &FitOptions) -> Result<Vec<PlayedRecording>, Failure> {
    let sources = evenly(source::find(&options.paths)?, MOST_RECORDINGS);
    let requests = (MOST_REQUESTS / sources.len()).clamp(1, MOST_REQUESTS_OF_ONE);
    let progress = ProgressCounter::new("playing recordings", sources.len());
    let indexed: Vec<(usize, RecordingSource)> = sources.into_iter().enumerate().collect();
    let played = in_parallel(&indexed, |(index, source)| {
        let sampling = Sampling { budget: options.budget, requests, seed: *index as u64 };
        let played = play(source, &sampling);
        progress.advance();
        played
    });
    drop(progress);
    let played: Vec<PlayedRecording> = played.into_iter().flatten().collect();
    if played.is_empty() {
        return Err(source::none_read());
    }
    let recordings = played.iter().filter(|recording| !recording.requests.is_empty()).count();
    if recordings < 2 {
        let sentence = format!(
            "{recordings} of {} recordings {} an edit of known text beyond {} tokens, and two are the least to fit and judge",
            played.len(),
            if recordings == 1 { "has" } else { "have" },
            options.budget
        );
        return Err(Failure::work(sentence).hint("name more recordings, or a smaller --budget"));
    }
    Ok(played)
}

fn play(source: &RecordingSource, sampling: &Sampling) -> Option<PlayedRecording> {
    let transcript = match source.transcript() {
        Ok((transcript, _)) => transcript,
        Err(unread) => {
            source.tell_unread(&unread);
            return None;
        }
    };
    let project = project_of(source, &transcript.records);
    let (requests, sampled) = sample::play(&transcript.records, sampling);
    Some(PlayedRecording { project, requests, sampled })
}

/// The project of a recording: from its name, or else the working directory of the agent.
fn project_of(source: &RecordingSource, records: &[Record]) -> String {
    let name = source.short.file_name().unwrap_or_default().to_string_lossy();
    if let Some((project, _)) = name.split_once(PROJECT_MARK) {
        return project.to_owned();
    }
    let items = records.iter().flat_map(|record| record.items());
    let mut directories = items.filter_map(|item| item.meta()?.directory.as_deref());
    directories.next().unwrap_or("unknown").to_owned()
}

/// Chooses some of the elements, evenly spread.
fn evenly<T>(all: Vec<T>, most: usize) -> Vec<T> {
    let (count, most) = (all.len(), most.max(1));
    let is_taken = |index: usize| count <= most || index * most / count != (index + 1) * most / count;
    all.into_iter().enumerate().filter(|(index, _)| is_taken(*index)).map(|(_, one)| one).collect()
}
