//! Known models: their context windows and prices.

use std::time::Duration;

use contexture::fold::Prices;
use serde::{Deserialize, Serialize};

/// What somebody knows of a model; the fields are those of `[[model]]`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelEntry {
    /// How its name begins.
    pub name: String,
    /// Tokens that it takes, the answer included.
    pub context: Option<u64>,
    /// Dollars for a million tokens of input.
    pub input: Option<f64>,
    /// Dollars for a million tokens of output.
    pub output: Option<f64>,
    /// The share of the input price for reading from the cache.
    pub read: Option<f64>,
    /// The share for writing to the cache.
    pub write: Option<f64>,
    /// The share for writing to a cache that holds for an hour.
    pub write_hour: Option<f64>,
    /// The shortest prefix that is cached, in tokens.
    pub least: Option<u64>,
    /// How many seconds a prefix is held.
    pub life: Option<u64>,
}

/// The built-in table.
const TABLE: &str = include_str!("models.toml");

/// A model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The prefix of its name.
    pub name: String,
    /// Its context window in tokens, output included.
    pub context: u64,
    /// Dollars per million input tokens, if known.
    #[serde(default)]
    pub input: Option<f64>,
    /// Dollars per million output tokens, if known.
    #[serde(default)]
    pub output: Option<f64>,
    /// The price of reading from the cache, relative to input.
    pub read: f64,
    /// The price of writing to the cache, relative to input.
    pub write: f64,
    /// The price of writing to a cache that is kept for an hour, relative to input.
    pub write_hour: f64,
    /// The shortest prefix that is cached, in tokens.
    pub least: u64,
    /// How many seconds a prefix is cached.
    pub life: u64,
}

impl Model {
    /// Its prices for the caching that the client asks for.
    pub fn prices(&self, caching: Caching) -> Prices {
        let life = |seconds| Some(Duration::from_secs(seconds));
        match caching {
            Caching::None => Prices::NONE,
            Caching::Minutes => Prices { read: self.read, write: self.write, cache_life: life(self.life) },
            Caching::Hour => Prices { read: self.read, write: self.write_hour, cache_life: life(self.life.max(3_600)) },
        }
    }
}

/// How long a client asks the provider to cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Caching {
    /// Not at all.
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
    /// The built-in table.
    pub fn builtin() -> Self {
        toml::from_str(TABLE).expect("the table that comes with the program is well formed")
    }

    /// Adds entries, which take precedence over those of the same name.
    pub fn with(mut self, models: impl IntoIterator<Item = Model>) -> Self {
        for model in models {
            self.model.retain(|old| old.name != model.name);
            self.model.push(model);
        }
        self
    }

    /// Adds entries from the user's configuration. What an entry leaves out is taken from the table.
    ///
    /// ```
    ///     /// use contexture_server::models::Models;
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

    /// Returns the entry for a model, or a cautious default if it is unknown.
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
