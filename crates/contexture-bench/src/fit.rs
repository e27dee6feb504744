//! Fits the weights of need to recordings, and evaluates them on held-out recordings.
//!
//! In reading order: `options` says what to fit to, `recordings` reads the given files and determines their projects,
//! `sample` plays a recording and finds the known chunks that were needed, `regression` fits weights, `capture`
//! measures how much a ranking captures, `judge` compares rankings on held-out recordings, `report` prints the results.

mod options;
mod recordings;
mod sample;
mod regression;
mod capture;
mod judge;
mod report;

use contexture_cli::failure::Failure;

pub use capture::{Capture, FILLS};
pub use judge::{Baseline, Judgement, Tested, Variant};
pub use options::{DEFAULT_BUDGET, FitOptions};
pub use regression::Weights;
pub use report::{FitReport, RecordingCounts};

/// Plays all recordings, fits the weights and evaluates them.
///
/// # Errors
///
/// A weight is unknown, no recording can be read, or they contain too little to fit and evaluate.
pub fn run(options: &FitOptions) -> Result<FitReport, Failure> {
    let used = options.used()?;
    let played = recordings::play_all(options)?;
    let judgement = judge::judge(&played, &used);
    Ok(FitReport::new(options, &played, judgement))
}
