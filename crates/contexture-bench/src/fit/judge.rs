//! Compares rankings of chunks on recordings that the weights were not fitted to.

use std::collections::BTreeSet;

use contexture_fold::fitting::{WEIGHT_COUNT, WEIGHTS};
use contexture_measure::work::in_parallel;
use contexture_terminal::progress::ProgressCounter;

use super::capture::Capture;
use super::recordings::PlayedRecording;
use super::regression::{self, Weights};
use super::sample::{ChunkSample, RequestSample};
use contexture_measure::interval::Resamples;
use contexture_measure::random::Rng;

/// Number of groups of recordings that are held out in turn if all are of one project.
const FOLDS_OF_ONE_PROJECT: usize = 5;

/// The number of bootstrap draws.
const DRAWS: usize = 1_000;

/// The seed of the draws.
const DRAW_SEED: u64 = 7;

/// The noise is this many standard deviations of a difference between draws, which chance exceeds one time in twenty.
const NOISE_DEVIATIONS: f64 = 1.64;

/// A ranking that needs no weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Baseline {
    /// The most recently seen chunk comes first.
    Newest,
    /// The most recently touched file comes first.
    File,
}

/// A ranking of chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variant {
    /// By the current weights of the repository.
    Current,
    /// By weights fitted to all recordings except those being evaluated.
    Refitted,
    /// The same without one weight.
    Without(usize),
    /// Without any weight.
    Baseline(Baseline),
}

/// How much a ranking captured of held-out recordings.
#[derive(Clone, Debug, PartialEq)]
pub struct Tested {
    /// The ranking.
    pub variant: Variant,
    /// Of all recordings together.
    pub capture: Capture,
    /// Of each group that was held out.
    pub by_group: Vec<Capture>,
    /// How much less it captures than the refitted weights, as a mean share.
    pub loss: f64,
    /// The loss that chance alone would cause.
    pub noise: f64,
}

/// The result of fitting and evaluating.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The groups that were held out in turn.
    pub groups: Vec<String>,
    /// The weights fitted to all recordings.
    pub fitted: Weights,
    /// The weights fitted without each group.
    pub fitted_without: Vec<Weights>,
    /// The current weights, the refitted ones, those without one weight each, and the baselines.
    pub tested: Vec<Tested>,
}

impl Variant {
    /// All rankings to compare, for the weights that are used.
    fn all(used: &UsedWeights) -> Vec<Self> {
        let without = (0..WEIGHT_COUNT).filter(|weight| used[*weight]).map(Self::Without);
        let baselines = [Self::Baseline(Baseline::Newest), Self::Baseline(Baseline::File)];
        [Self::Current, Self::Refitted].into_iter().chain(without).chain(baselines).collect()
    }

    /// Its display name.
    pub fn name(&self) -> String {
        match self {
            Self::Current => "weights of the repository".into(),
            Self::Refitted => "refitted".into(),
            Self::Without(weight) => format!("refitted without {}", WEIGHTS[*weight].0),
            Self::Baseline(Baseline::Newest) => "newest first".into(),
            Self::Baseline(Baseline::File) => "file touched last first".into(),
        }
    }
}

/// For each weight, whether it is used.
type UsedWeights = [bool; WEIGHT_COUNT];

/// Recordings in groups, each of which is held out in turn.
struct RecordingGroups<'a> {
    names: Vec<String>,
    recordings: Vec<(usize, &'a PlayedRecording)>,
}

impl<'a> RecordingGroups<'a> {
    /// Groups by project, or round-robin if there is only one.
    fn new(played: &'a [PlayedRecording]) -> Self {
        let useful: Vec<&PlayedRecording> = played.iter().filter(|recording| !recording.requests.is_empty()).collect();
        let projects: Vec<&str> =
            useful.iter().map(|recording| recording.project.as_str()).collect::<BTreeSet<_>>().into_iter().collect();
        if projects.len() > 1 {
            let group = |recording: &&'a PlayedRecording| {
                (projects.partition_point(|name| **name < *recording.project), *recording)
            };
            let recordings = useful.iter().map(group).collect();
            return Self { names: projects.into_iter().map(str::to_owned).collect(), recordings };
        }
        let count = FOLDS_OF_ONE_PROJECT.min(useful.len());
        let names = (1..=count).map(|group| format!("group {group}")).collect();
        Self { names, recordings: useful.into_iter().enumerate().map(|(n, one)| (n % count, one)).collect() }
    }

    /// The requests of all groups except one.
    fn without(&self, held_out: Option<usize>) -> impl Iterator<Item = &'a RequestSample> + Clone {
        let recordings = self.recordings.iter().filter(move |(group, _)| Some(*group) != held_out);
        recordings.flat_map(|(_, recording)| &recording.requests)
    }
}

/// Fits the weights without each group in turn, and evaluates them on that group.
pub(super) fn judge(played: &[PlayedRecording], used: &UsedWeights) -> Judgement {
    let groups = RecordingGroups::new(played);
    let current = std::array::from_fn(|weight| if used[weight] { WEIGHTS[weight].1 } else { 0.0 });
    let fitted = regression::fit(groups.without(None), used, &current);
    let held_out: Vec<Option<usize>> = (0..groups.names.len()).map(Some).collect();
    let fitted_without = in_parallel(&held_out, |group| regression::fit(groups.without(*group), used, &fitted));
    let variants = Variant::all(used);
    let progress = ProgressCounter::new("judging", variants.len());
    let captures = in_parallel(&variants, |variant| {
        let captures = captures(&groups, *variant, used, &current, &fitted_without);
        progress.advance();
        captures
    });
    let refitted = &captures[variants.iter().position(|variant| *variant == Variant::Refitted).unwrap_or(0)];
    let tested = variants.iter().zip(&captures).map(|(variant, own)| tested(&groups, *variant, own, refitted));
    Judgement { tested: tested.collect(), groups: groups.names, fitted, fitted_without }
}

/// How much a ranking captures of each recording.
fn captures(
    groups: &RecordingGroups<'_>,
    variant: Variant,
    used: &UsedWeights,
    current: &Weights,
    refitted: &[Weights],
) -> Vec<Capture> {
    let weights: Vec<Weights> = match variant {
        Variant::Refitted => refitted.to_vec(),
        Variant::Without(left_out) => {
            let used = std::array::from_fn(|weight| used[weight] && weight != left_out);
            let fit = |(group, start)| regression::fit(groups.without(Some(group)), &used, start);
            refitted.iter().enumerate().map(fit).collect()
        }
        Variant::Current | Variant::Baseline(_) => vec![*current; groups.names.len()],
    };
    let score = |group: usize, chunk: &ChunkSample| match variant {
        Variant::Baseline(Baseline::Newest) => f64::from(-chunk.seen_age),
        Variant::Baseline(Baseline::File) => f64::from(chunk.touched),
        _ => regression::need(&chunk.terms, &weights[group]),
    };
    let of_recording = |(group, recording): &(usize, &PlayedRecording)| {
        let mut capture = Capture::default();
        recording.requests.iter().for_each(|request| capture.add_request(request, |chunk| score(*group, chunk)));
        capture
    };
    groups.recordings.iter().map(of_recording).collect()
}

fn tested(groups: &RecordingGroups<'_>, variant: Variant, own: &[Capture], refitted: &[Capture]) -> Tested {
    let mut by_group = vec![Capture::default(); groups.names.len()];
    for ((group, _), capture) in groups.recordings.iter().zip(own) {
        by_group[*group].add(capture);
    }
    let capture = sum(own.iter());
    let loss = sum(refitted.iter()).mean() - capture.mean();
    Tested { variant, capture, by_group, loss, noise: noise(own, refitted) }
}

fn sum<'a>(captures: impl Iterator<Item = &'a Capture>) -> Capture {
    captures.fold(Capture::default(), |mut sum, capture| {
        sum.add(capture);
        sum
    })
}

/// How much two rankings differ by chance: recordings are drawn with replacement, the same ones for both.
fn noise(own: &[Capture], refitted: &[Capture]) -> f64 {
    let mut rng = Rng::new(DRAW_SEED);
    let mut differences = Vec::with_capacity(DRAWS);
    for [drawn] in Resamples::draw(DRAWS, [own.len()], |size| rng.below(size)).iter() {
        let mean = |captures: &[Capture]| sum(drawn.iter().map(|index| &captures[*index])).mean();
        differences.push(mean(refitted) - mean(own));
    }
    let mean = differences.iter().sum::<f64>() / DRAWS as f64;
    let variance = differences.iter().map(|difference| (difference - mean).powi(2)).sum::<f64>() / DRAWS as f64;
    NOISE_DEVIATIONS * variance.sqrt()
}
