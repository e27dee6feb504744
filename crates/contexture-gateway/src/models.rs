//! Known models: their context windows and prices, and where each of these was learnt.

mod name;
pub(crate) mod said;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use contexture::fold::Prices;
use serde::{Deserialize, Serialize};

use name::plain;
pub(crate) use name::plain as plain_name;

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

/// Most windows that are kept of what providers say.
const MAX_SAID: usize = 10_000;

/// The built-in table.
const TABLE: &str = include_str!("models/models.toml");

/// A model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// The name of the row that it is from.
    pub name: String,
    /// Its context window in tokens, output included.
    pub context: u64,
    /// Dollars per million input tokens, if known.
    #[serde(default)]
    pub input: Option<f64>,
    /// Dollars per million output tokens, if known.
    #[serde(default)]
    pub output: Option<f64>,
    /// What a large request costs.
    #[serde(default)]
    pub above: Option<Above>,
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

/// The prices of a request above some size.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Above {
    /// Input tokens.
    pub tokens: u64,
    /// Dollars per million input tokens.
    pub input: f64,
    /// Dollars per million output tokens.
    pub output: f64,
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

    /// Dollars per million input and output tokens, for a request with so many input tokens.
    pub fn dollars(&self, tokens: u64) -> Option<(f64, f64)> {
        match self.above.filter(|above| tokens > above.tokens) {
            Some(above) => Some((above.input, above.output)),
            None => self.input.zip(self.output),
        }
    }
}

/// Where something about a model was learnt, from the surest to the least sure.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The user's configuration.
    Configured,
    /// The request: this value of `anthropic-beta`.
    Asked(String),
    /// The provider's list of models, or a refusal of a larger request.
    Provider,
    /// The built-in table, of this day.
    Table(String),
    /// The newest model of the same family in the table of this day.
    Guess(String, String),
    /// Nothing is known.
    #[default]
    Nothing,
}

impl Source {
    /// Whether it is no more than a guess.
    pub fn is_guess(&self) -> bool {
        matches!(self, Source::Guess(..) | Source::Nothing)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Configured => f.write_str("by [[model]] of the configuration"),
            Source::Asked(beta) => write!(f, "by `{beta}` of the request"),
            Source::Provider => f.write_str("by the provider"),
            Source::Table(day) => write!(f, "by the table of {day}"),
            Source::Guess(name, day) => write!(f, "a guess: like {name} in the table of {day}"),
            Source::Nothing => f.write_str("not known"),
        }
    }
}

/// A model, and where its window and its prices were learnt.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    /// The model.
    pub model: Model,
    /// Where its window was learnt.
    pub window: Source,
    /// Where its prices were learnt.
    pub price: Source,
    /// The window with a beta, or with a login.
    by_request: ByRequest,
}

/// How a window depends on the request.
#[derive(Clone, Debug, Default, PartialEq)]
struct ByRequest {
    beta: Option<(String, u64)>,
    login: Option<u64>,
}

/// What a request says about the window, beside its model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asks {
    /// Its values of `anthropic-beta`.
    pub betas: Vec<String>,
    /// Whether it comes with a login instead of a key.
    pub is_login: bool,
}

impl Known {
    /// Its window, unless that is only guessed.
    pub fn known_window(&self) -> Option<u64> {
        (!self.window.is_guess()).then_some(self.model.context)
    }

    /// The same, with what a request and its provider say about the window.
    pub(crate) fn asked(mut self, asks: &Asks) -> Self {
        if self.window == Source::Configured {
            return self;
        }
        let beta = self.by_request.beta.take().filter(|(beta, _)| asks.betas.contains(beta));
        match (beta, self.by_request.login.filter(|_| asks.is_login && self.window != Source::Provider)) {
            (Some((beta, context)), _) => (self.model.context, self.window) = (context, Source::Asked(beta)),
            (None, Some(context)) => self.model.context = context,
            (None, None) => {}
        }
        self
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

/// A row of the table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ModelRow {
    name: String,
    family: String,
    #[serde(default)]
    also: Vec<String>,
    context: Option<u64>,
    beta: Option<String>,
    beta_context: Option<u64>,
    login_context: Option<u64>,
    input: Option<f64>,
    output: Option<f64>,
    above: Option<u64>,
    above_input: Option<f64>,
    above_output: Option<f64>,
    read: Option<f64>,
    write: Option<f64>,
    write_hour: Option<f64>,
    least: Option<u64>,
    life: Option<u64>,
}

/// What the models of a family have in common.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Family {
    name: String,
    context: u64,
    read: f64,
    write: f64,
    write_hour: f64,
    least: u64,
    life: u64,
}

impl Family {
    /// A model of it of which nothing else is known.
    fn any(&self) -> Model {
        Model {
            name: self.name.clone(),
            context: self.context,
            input: None,
            output: None,
            above: None,
            read: self.read,
            write: self.write,
            write_hour: self.write_hour,
            least: self.least,
            life: self.life,
        }
    }
}

/// The table of models.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Models {
    checked: String,
    family: Vec<Family>,
    model: Vec<ModelRow>,
    /// What the user's configuration says.
    #[serde(skip)]
    configured: Vec<ModelEntry>,
    /// Windows that providers have said since the program started, by name.
    #[serde(skip)]
    said: Arc<Mutex<HashMap<String, u64>>>,
}

impl Models {
    /// The built-in table.
    pub fn builtin() -> Self {
        toml::from_str(TABLE).unwrap_or_else(|error| panic!("models.toml, which comes with the program: {error}"))
    }

    /// The day on which the table was compared with what providers publish.
    pub fn checked(&self) -> &str {
        &self.checked
    }

    /// Adds entries from the user's configuration. What an entry leaves out is taken from the table.
    ///
    /// ```
    /// use contexture_gateway::models::{ModelEntry, Models};
    /// let entry = ModelEntry { name: "gpt-5-pro".to_owned(), input: Some(15.0), ..ModelEntry::default() };
    /// let models = Models::builtin().knowing([entry]);
    /// let model = models.get("openai/gpt-5-pro-2026-10-01");
    /// assert_eq!((model.input, model.context), (Some(15.0), 272_000));
    /// ```
    pub fn knowing(mut self, entries: impl IntoIterator<Item = ModelEntry>) -> Self {
        let plain = |entry: ModelEntry| ModelEntry { name: plain(&entry.name), ..entry };
        self.configured.extend(entries.into_iter().map(plain));
        // The longest name is applied last.
        self.configured.sort_by_key(|entry| entry.name.len());
        self
    }

    /// Returns a model, or a careful default if it is unknown.
    pub fn get(&self, name: &str) -> Model {
        self.find(name).model
    }

    /// Returns a model by its name, and where what is known of it was learnt.
    ///
    /// ```
    /// use contexture_gateway::models::{Models, Source};
    /// let models = Models::builtin();
    /// let known = models.find("anthropic/claude-sonnet-4-5-20250929");
    /// assert_eq!((known.model.input, known.price.is_guess()), (Some(3.0), false));
    /// let unknown = models.find("what-is-this");
    /// assert_eq!((unknown.model.context, unknown.model.input, unknown.price), (128_000, None, Source::Nothing));
    /// ```
    pub fn find(&self, name: &str) -> Known {
        let name = plain(name);
        let mut known = self.in_table(&name);
        if let Some(window) = self.said.lock().unwrap_or_else(PoisonError::into_inner).get(&name) {
            (known.model.context, known.window) = (*window, Source::Provider);
        }
        for entry in self.configured.iter().filter(|entry| name.starts_with(&entry.name)) {
            configure(&mut known, entry);
        }
        known
    }

    /// Notes the window of a model as its provider says it.
    pub fn note_window(&self, name: &str, tokens: u64) {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        if said.len() < MAX_SAID || said.contains_key(&plain(name)) {
            said.insert(plain(name), tokens);
        }
    }

    fn in_table(&self, name: &str) -> Known {
        let is_it = |row: &&ModelRow| row.name == name || row.also.iter().any(|also| also == name);
        if let Some(row) = self.model.iter().find(is_it) {
            return self.known(row, || Source::Table(self.checked.clone()));
        }
        let families = self.family.iter().filter(|family| name.starts_with(&family.name));
        let family = families.max_by_key(|family| family.name.len()).expect("the table has a family for all names");
        match self.model.iter().rev().find(|row| row.family == family.name) {
            Some(row) => self.known(row, || Source::Guess(row.name.clone(), self.checked.clone())),
            None => {
                let (window, price) = (Source::Nothing, Source::Nothing);
                Known { model: family.any(), window, price, by_request: ByRequest::default() }
            }
        }
    }

    fn known(&self, row: &ModelRow, source: impl Fn() -> Source) -> Known {
        let family = self.family.iter().find(|family| family.name == row.family).expect("every row has its family");
        let any = family.any();
        let above = row.above.zip(row.above_input.zip(row.above_output));
        let model = Model {
            name: row.name.clone(),
            context: row.context.unwrap_or(any.context),
            input: row.input,
            output: row.output,
            above: above.map(|(tokens, (input, output))| Above { tokens, input, output }),
            read: row.read.unwrap_or(any.read),
            write: row.write.unwrap_or(any.write),
            write_hour: row.write_hour.unwrap_or(any.write_hour),
            least: row.least.unwrap_or(any.least),
            life: row.life.unwrap_or(any.life),
        };
        let price = if model.input.is_some() { source() } else { Source::Nothing };
        let window = if row.context.is_some() { source() } else { Source::Nothing };
        let by_request = ByRequest { beta: row.beta.clone().zip(row.beta_context), login: row.login_context };
        Known { model, window, price, by_request }
    }

    /// The names that agents know of which the table has no row, or no price; each with what is missing.
    pub fn gaps<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> Vec<(String, &'static str)> {
        let gap = |name: &str| {
            let known = self.find(name);
            match () {
                () if known.window.is_guess() => Some((name.to_owned(), "no row")),
                () if known.price.is_guess() => Some((name.to_owned(), "no price")),
                () => None,
            }
        };
        names.into_iter().filter_map(gap).collect()
    }

    /// The names of the table's rows, in its order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.model.iter().map(|row| row.name.as_str())
    }
}

impl Default for Models {
    fn default() -> Self {
        Self::builtin()
    }
}

/// The names that agents know.
pub fn agent_models() -> impl Iterator<Item = &'static str> {
    contexture_agents::every(|agent| agent.models()).copied()
}

/// The names in a list: the first word of each line that is no comment.
pub fn names_in(list: &str) -> impl Iterator<Item = &str> {
    let lines = list.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.filter_map(|line| line.split_whitespace().next())
}

fn configure(known: &mut Known, entry: &ModelEntry) {
    let Known { model, window, price, .. } = known;
    if let Some(context) = entry.context {
        (model.context, *window) = (context, Source::Configured);
    }
    if entry.input.is_some() || entry.output.is_some() {
        (model.input, model.output, model.above) = (entry.input.or(model.input), entry.output.or(model.output), None);
        *price = Source::Configured;
    }
    model.read = entry.read.unwrap_or(model.read);
    model.write = entry.write.unwrap_or(model.write);
    model.write_hour = entry.write_hour.unwrap_or(model.write_hour);
    model.least = entry.least.unwrap_or(model.least);
    model.life = entry.life.unwrap_or(model.life);
}

#[cfg(test)]
mod tests;
