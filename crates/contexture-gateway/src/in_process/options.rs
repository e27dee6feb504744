//! The options of a folder in process.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use contexture::fold::Pins;
use contexture::fs::LocalFs;
use contexture::wire::Format;
use serde::{Deserialize, Serialize};

use crate::models::{ModelEntry, Models};
use crate::options::{LEAST_BUDGET, Options, References};

/// The options of a [`WireFolder`](super::WireFolder).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WireFolderOptions {
    /// The most tokens of a request; `None` uses the model's window.
    pub budget: Option<u64>,
    /// What is known of models, before the built-in table. An entry without a name is about all of them.
    pub models: Vec<ModelEntry>,
    /// What is never folded.
    pub pins: Pinned,
    /// The directory of the agent, beneath which files are read that messages name as `#path`; `None` reads none.
    pub base_dir: Option<PathBuf>,
    /// The format of all requests; `None` looks at each.
    pub format: Option<Format>,
}

/// What is never folded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pinned {
    /// Names of tools, whose calls and outputs stay as they are.
    pub tools: Vec<String>,
    /// Patterns of paths, of which everything that is known stays in view.
    pub paths: Vec<String>,
}

/// Why a folder cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// The budget is too small.
    #[error("a budget of {0} tokens is too small: it is at least {LEAST_BUDGET}")]
    Budget(u64),
    /// A price is negative or no number.
    #[error("the price `{0}` is a number that is not negative")]
    Price(&'static str),
    /// The base directory cannot be used.
    #[error("`{}` cannot be the base directory: {why}", path.display())]
    BaseDir {
        /// The directory.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// How long a folder may work on a request, since its caller waits for it anyway. Half of it is for comparing files.
const OWN_WORK: Duration = Duration::from_secs(1);

impl WireFolderOptions {
    /// The options of a gateway that decides the same.
    pub(super) fn gateway(&self) -> Result<Options, OptionsError> {
        if let Some(budget) = self.budget.filter(|budget| *budget < LEAST_BUDGET) {
            return Err(OptionsError::Budget(budget));
        }
        for entry in &self.models {
            let ModelEntry { input, output, read, write, write_hour, .. } = entry;
            let prices =
                [("input", input), ("output", output), ("read", read), ("write", write), ("write_hour", write_hour)];
            let is_wrong = |price: &Option<f64>| price.is_some_and(|price| !price.is_finite() || price < 0.0);
            if let Some((name, _)) = prices.into_iter().find(|(_, price)| is_wrong(price)) {
                return Err(OptionsError::Price(name));
            }
        }
        Ok(Options {
            budget: self.budget,
            models: Models::builtin().knowing(self.models.clone()),
            pins: self.pins.pins(),
            directory: self.base_dir.as_deref().map(directory).transpose()?,
            // Who names the directory says that files are named in messages.
            references: References::Typed,
            own_work: OWN_WORK,
            ..Options::default()
        })
    }
}

impl Pinned {
    fn pins(&self) -> Pins {
        let pins = self.tools.iter().fold(Pins::new(), Pins::tool);
        self.paths.iter().fold(pins, Pins::path)
    }
}

fn directory(path: &Path) -> Result<Arc<str>, OptionsError> {
    let fail = |why: String| OptionsError::BaseDir { path: path.to_owned(), why };
    let found = path.canonicalize().map_err(|error| fail(error.to_string()))?;
    let text = found.to_str().ok_or_else(|| fail("its path is not UTF-8".to_owned()))?;
    LocalFs::open(text).map_err(|error| fail(error.to_string()))?;
    Ok(Arc::from(text))
}
