//! What is known of models: how much they take, and what that costs.

use std::time::Duration;

use contexture::config::keys::ModelEntry;
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

    /// The same with what somebody knows better; what an entry leaves out is taken from the table.
    ///
    /// ```
    /// use contexture::config::keys::ModelEntry;
    /// use contexture_server::models::Models;
    /// let entry = ModelEntry { name: "gpt-5-pro".to_owned(), input: Some(15.0), ..ModelEntry::default() };
    /// let models = Models::builtin().knowing([entry]);
    /// let model = models.get("openai/gpt-5-pro-2026");
    /// assert_eq!((model.input, model.context), (Some(15.0), 272_000));
    /// ```
    pub fn knowing(self, entries: impl IntoIterator<Item = ModelEntry>) -> Self {
        entries.into_iter().fold(self, |models, entry| {
            let old = models.get(&entry.name).clone();
            let model = Model {
                name: entry.name.rsplit('/').next().unwrap_or_default().to_ascii_lowercase(),
                context: entry.context.unwrap_or(old.context),
                input: entry.input.or(old.input),
                output: entry.output.or(old.output),
                read: entry.read.unwrap_or(old.read),
                write: entry.write.unwrap_or(old.write),
                write_hour: entry.write_hour.unwrap_or(old.write_hour),
                least: entry.least.unwrap_or(old.least),
                life: entry.life.unwrap_or(old.life),
            };
            models.with([model])
        })
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
