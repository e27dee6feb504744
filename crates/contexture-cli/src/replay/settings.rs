//! The settings for playing recordings, from the configuration.

use contexture::fold::{Policy, Prices};
use contexture_measure::play::settings::PlaySettings;

use crate::settings::Config;
use crate::settings::keys::{Counter, PriceProvider};

/// The settings of a configuration, with a budget and a counter; the same for `replay` and `compare`.
pub fn settings_of(config: &Config, budget: u64, counter: Counter) -> PlaySettings {
    let prices = match config.provider() {
        PriceProvider::Anthropic => Prices::ANTHROPIC,
        PriceProvider::Openai => Prices::OPENAI,
        PriceProvider::None => Prices::NONE,
    };
    let policy = Policy::new(budget).with_prices(prices).with_pins(config.pins()).when(config.fold());
    let policy = if config.verbatim() { policy.verbatim() } else { policy };
    match counter {
        Counter::O200k => PlaySettings::exact(policy, config.dialects()),
        Counter::Estimate => PlaySettings::estimated(policy, config.dialects()),
    }
}
