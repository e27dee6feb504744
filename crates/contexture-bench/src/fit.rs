//! Fits the weights of need to recordings, and judges them on recordings that they were not fitted to.
//!
//! In reading order: `options` says what to fit to, `recordings` reads what a person names and tells projects apart,
//! `sample` plays a recording and says which known chunks were needed, `regression` fits weights, `capture` says how
//! much a ranking captures, `judge` compares rankings on held-out recordings, `report` prints what came out.

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
pub use options::{DEFAULT_BUDGET, Options};
pub use regression::Weights;
pub use report::{Counts, Report};

/// Plays all recordings, fits the weights and judges them.
///
/// # Errors
///
/// When a weight is not known, when no recording can be read, or when they hold too little to fit and judge.
pub fn run(options: &Options) -> Result<Report, Failure> {
    let used = options.used()?;
    let played = recordings::play_all(options)?;
    let judgement = judge::judge(&played, &used);
    Ok(Report::new(options, &played, judgement))
}
