//! What is known of models: how much they take, and what that costs.

use std::time::Duration;

use contexture::fold::Prices;
use serde::{Deserialize, Serialize};

/// The table as it comes with the program.
const TABLE: &str = include_str!("models.toml");

/// What is known of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// How its name begins.
    pub name: String,
    /// Tokens that it takes, the answer included.
    pub context: u64,
    /// Dollars for a million tokens of input, if known.
    #[serde(default)]
    pub input: Option<f64>,
    /// Dollars for a million tokens of output, if known.
    #[serde(default)]
    pub output: Option<f64>,
    /// The share of the input price for reading from the cache.
    pub read: f64,
    /// The share for writing to the cache.
    pub write: f64,
    /// The share for writing to a cache that holds for an hour.
    pub write_hour: f64,
    /// The shortest prefix that is cached, in tokens.
    pub least: u64,
    /// How many seconds a prefix is held.
    pub life: u64,
}

impl Model {
    /// Its prices, where the client asks for caching for five minutes or an hour, or not at all.
    pub fn prices(&self, caching: Caching) -> Prices {
        let life = |seconds| Some(Duration::from_secs(seconds));
        match caching {
            Caching::None => Prices::NONE,
            Caching::Minutes => Prices { read: self.read, write: self.write, cache_life: life(self.life) },
            Caching::Hour => Prices { read: self.read, write: self.write_hour, cache_life: life(self.life.max(3_600)) },
        }
    }
}

/// What a client asks the provider to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Caching {
    /// Nothing.
    None,
    /// For some minutes.
    Minutes,
    /// For an hour.
    Hour,
}

/// The table of models.
#[derive(Clone, Debug, Deserialize)]
pub struct Models {
    model: Vec<Model>,
}

impl Models {
    /// The table that comes with the program.
    pub fn builtin() -> Self {
        toml::from_str(TABLE).expect("the table that comes with the program is well formed")
    }

    /// The same with other entries, which come before those of the same name.
    pub fn with(mut self, models: impl IntoIterator<Item = Model>) -> Self {
        for model in models {
            self.model.retain(|old| old.name != model.name);
            self.model.push(model);
        }
        self
    }

    /// What is known of a model; careful figures if nothing is.
    ///
    /// ```
    /// use contexture_server::models::Models;
    /// let models = Models::builtin();
    /// assert_eq!(models.get("anthropic/claude-sonnet-4-5-20250929").input, Some(3.0));
    /// assert_eq!((models.get("what-is-this").context, models.get("what-is-this").input), (128_000, None));
    /// ```
    pub fn get(&self, name: &str) -> &Model {
        let name = name.rsplit('/').next().unwrap_or(name).to_ascii_lowercase();
        let known = self.model.iter().filter(|model| name.starts_with(&model.name));
        known.max_by_key(|model| model.name.len()).expect("the table has an entry for all names")
    }
}

impl Default for Models {
    fn default() -> Self {
        Self::builtin()
    }
}
