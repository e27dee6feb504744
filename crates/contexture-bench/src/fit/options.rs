//! What to fit to.

use std::path::PathBuf;

use contexture_cli::failure::Failure;
use contexture_fold::fitting::{WEIGHT_COUNT, WEIGHTS};

/// The default budget in tokens.
pub const DEFAULT_BUDGET: u64 = 32_000;

/// What to fit to.
#[derive(Clone, Debug)]
pub struct FitOptions {
    /// Files and directories with recordings.
    pub paths: Vec<PathBuf>,
    /// Only requests of conversations longer than this many tokens are sampled: only there is anything chosen.
    pub budget: u64,
    /// The names of weights that are not used at all.
    pub without: Vec<String>,
}

impl FitOptions {
    /// For each weight, whether it is used.
    pub(super) fn used(&self) -> Result<[bool; WEIGHT_COUNT], Failure> {
        let names = WEIGHTS.map(|(name, _)| name);
        if let Some(unknown) = self.without.iter().find(|name| !names.contains(&name.as_str())) {
            return Err(Failure::usage(format!("there is no weight `{unknown}`"))
                .hint(format!("the weights are {}", names.join(", "))));
        }
        Ok(names.map(|name| !self.without.iter().any(|left_out| left_out == name)))
    }
}
