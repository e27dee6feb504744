//! The results as tables and as JSON.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use contexture_fold::fitting::WEIGHTS;
use contexture_terminal::table::{Align, TextTable};
use serde_json::{Value, json};

use super::capture::{Capture, FILLS};
use super::judge::{Judgement, Tested, Variant};
use super::options::FitOptions;
use super::recordings::PlayedRecording;
use super::sample::HORIZON_REQUESTS;

/// Statistics of the recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordingCounts {
    /// Readable recordings.
    pub recordings: usize,
    /// Recordings in which something was needed.
    pub useful_recordings: usize,
    /// Projects of those recordings.
    pub projects: usize,
    /// Sampled requests.
    pub requests: usize,
    /// Requests at which something was needed.
    pub useful_requests: usize,
    /// Chunks kept of those requests.
    pub chunks: usize,
    /// Chunks that were needed.
    pub needed_chunks: usize,
}

/// The report.
#[derive(Clone, Debug, PartialEq)]
pub struct FitReport {
    /// The budget above which requests were sampled.
    pub budget: u64,
    /// Statistics of the recordings.
    pub counts: RecordingCounts,
    /// The results of fitting and evaluating.
    pub judgement: Judgement,
}

impl FitReport {
    pub(super) fn new(options: &FitOptions, played: &[PlayedRecording], judgement: Judgement) -> Self {
        let useful: Vec<&PlayedRecording> = played.iter().filter(|recording| !recording.requests.is_empty()).collect();
        let requests = || useful.iter().flat_map(|recording| &recording.requests);
        let chunks = || requests().flat_map(|request| &request.chunks);
        let counts = RecordingCounts {
            recordings: played.len(),
            useful_recordings: useful.len(),
            projects: useful.iter().map(|recording| &recording.project).collect::<BTreeSet<_>>().len(),
            requests: played.iter().map(|recording| recording.sampled).sum(),
            useful_requests: requests().count(),
            chunks: chunks().count(),
            needed_chunks: chunks().filter(|chunk| chunk.is_needed).count(),
        };
        Self { budget: options.budget, counts, judgement }
    }

    /// How much a ranking captured of held-out recordings.
    pub fn tested(&self, variant: Variant) -> Option<&Tested> {
        self.judgement.tested.iter().find(|tested| tested.variant == variant)
    }

    /// The report for people.
    pub fn text(&self) -> String {
        let counts = &self.counts;
        let mut text = format!(
            "{} recordings, {} of them useful, of {} projects; {} requests beyond {} tokens, {} of them useful; \
             {} chunks, {} of them needed.\n",
            counts.recordings,
            counts.useful_recordings,
            counts.projects,
            counts.requests,
            self.budget,
            counts.useful_requests,
            counts.chunks,
            counts.needed_chunks,
        );
        let _ = writeln!(text, "Useful is what an edit of known text follows within {HORIZON_REQUESTS} requests.");
        let _ = write!(text, "\nWeights\n\n{}", self.weights());
        let _ = write!(text, "\nNeeded bytes captured, of recordings that weights were not fitted to\n\n");
        let _ = write!(text, "{}", self.captured());
        let _ = write!(text, "\nMean share captured of each group that was held out\n\n{}", self.groups());
        text
    }

    fn weights(&self) -> String {
        let titles = ["now", "refitted", "least", "greatest", "loss without", "noise"];
        let titles = titles.map(|title| (title, Align::Right));
        let mut table = TextTable::new([("weight", Align::Left)].into_iter().chain(titles).chain([("", Align::Left)]));
        for (index, (name, now)) in WEIGHTS.into_iter().enumerate() {
            let without = || self.judgement.fitted_without.iter().map(|weights| weights[index]);
            let Some(tested) = self.tested(Variant::Without(index)) else { continue };
            table.row([
                name.to_owned(),
                format!("{now:.2}"),
                format!("{:.3}", self.judgement.fitted[index]),
                format!("{:.3}", without().fold(f64::INFINITY, f64::min)),
                format!("{:.3}", without().fold(f64::NEG_INFINITY, f64::max)),
                percent(tested.loss),
                percent(tested.noise),
                if tested.pays() { "pays" } else { "does not pay" }.to_owned(),
            ]);
        }
        table.render()
    }

    fn captured(&self) -> String {
        let fills = FILLS.map(|fill| format!("{:.0} kB", fill / 1_000.0));
        let titles = fills.iter().map(String::as_str).chain(["mean", "loss", "noise"]);
        let titles = titles.map(|title| (title, Align::Right));
        let mut table = TextTable::new([("chunks ranked by", Align::Left)].into_iter().chain(titles));
        for tested in &self.judgement.tested {
            let shares = tested.capture.shares().map(|share| share.map_or("-".into(), percent));
            let rest = [tested.capture.mean(), tested.loss, tested.noise].map(percent);
            table.row([tested.variant.name()].into_iter().chain(shares).chain(rest));
        }
        table.render()
    }

    fn groups(&self) -> String {
        let groups = self.judgement.groups.iter().map(|name| (name.as_str(), Align::Right));
        let mut table = TextTable::new([("chunks ranked by", Align::Left)].into_iter().chain(groups));
        for tested in &self.judgement.tested {
            let means = tested.by_group.iter().map(Capture::mean).map(percent);
            table.row([tested.variant.name()].into_iter().chain(means));
        }
        table.render()
    }

    /// The report for programs.
    pub fn json(&self) -> Value {
        let counts = &self.counts;
        let weights = WEIGHTS.into_iter().enumerate().map(|(index, (name, now))| {
            let without: Vec<f64> = self.judgement.fitted_without.iter().map(|weights| weights[index]).collect();
            json!({ "name": name, "now": now, "refitted": self.judgement.fitted[index], "refitted_without": without })
        });
        let tested = self.judgement.tested.iter().map(|tested| {
            json!({
                "ranked_by": tested.variant.name(),
                "captured": tested.capture.shares(),
                "mean": tested.capture.mean(),
                "loss": tested.loss,
                "noise": tested.noise,
                "by_group": tested.by_group.iter().map(Capture::mean).collect::<Vec<_>>(),
            })
        });
        json!({
            "budget": self.budget,
            "recordings": counts.recordings,
            "useful_recordings": counts.useful_recordings,
            "projects": counts.projects,
            "requests": counts.requests,
            "useful_requests": counts.useful_requests,
            "chunks": counts.chunks,
            "needed_chunks": counts.needed_chunks,
            "fill_bytes": FILLS,
            "groups": self.judgement.groups,
            "weights": weights.collect::<Vec<_>>(),
            "tested": tested.collect::<Vec<_>>(),
        })
    }
}

impl Tested {
    /// Whether what the ranking leaves out matters more than chance.
    pub fn pays(&self) -> bool {
        self.loss > self.noise
    }
}

/// A share as a percentage.
fn percent(share: f64) -> String {
    format!("{:.2}", share * 100.0)
}
