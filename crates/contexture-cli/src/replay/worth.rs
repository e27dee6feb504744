//! What recordings would have cost in dollars, and what the windows kept of them.

use contexture_gateway::models::Models;
use contexture_gateway::simulate::played::ASSUMED_MODEL;
use serde::Serialize;

use contexture_measure::judge::Measures;
use contexture_terminal::screen::Screen;

/// What the input of requests costs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Dollars {
    /// With folds.
    pub billed: f64,
    /// If everything were sent every time.
    pub passed_through: f64,
    /// The model, and the dollars for a million of its input tokens.
    pub model: String,
    /// The price of a million tokens.
    pub per_million: f64,
    /// Whether the recording does not name its model, or the price is that of a similar one.
    pub is_guess: bool,
    /// Whether the model would have refused to be sent everything, for lack of room.
    pub is_refused: bool,
}

impl Dollars {
    /// What tokens at the plain input price cost with a model, whose largest request would have had so many tokens;
    /// `None` if its price is not known.
    pub fn new(model: Option<&str>, [billed, passed_through]: [f64; 2], largest: u64) -> Option<Self> {
        let name = model.unwrap_or(ASSUMED_MODEL);
        let known = Models::builtin().find(name);
        let (per_million, _) = known.model.dollars(0)?;
        let is_guess = model.is_none() || known.price.is_guess();
        let of = |tokens: f64| tokens * per_million / 1e6;
        Some(Self {
            billed: of(billed),
            passed_through: of(passed_through),
            model: name.to_owned(),
            per_million,
            is_guess,
            is_refused: largest > known.model.context,
        })
    }

    /// How much is saved, and which part of the bill that is.
    fn saved(&self) -> (f64, f64) {
        let saved = self.passed_through - self.billed;
        (saved, if self.passed_through > 0.0 { saved / self.passed_through } else { 0.0 })
    }

    /// A sentence about it, for people.
    pub fn told(&self) -> String {
        let (saved, share) = self.saved();
        let change = if saved < 0.0 { "more" } else { "less" };
        let guess = if self.is_guess { ", a guess" } else { "" };
        let refused = if self.is_refused { "; everything at once would not have fit in its window" } else { "" };
        format!(
            "input for {} instead of {}: {} or {:.0} % {change} ({}, ${} a million{guess}); output costs the same{refused}",
            dollars(self.billed),
            dollars(self.passed_through),
            dollars(saved.abs()),
            share.abs() * 100.0,
            self.model,
            self.per_million,
        )
    }
}

/// The sum over recordings, whose models may differ.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct DollarSum {
    billed: f64,
    passed_through: f64,
    /// Recordings with a guessed model or price.
    guessed: usize,
    /// Recordings that would not have fit in their model's window.
    refused: usize,
    /// Recordings without a known price, which are not in the sum.
    unpriced: usize,
}

impl DollarSum {
    /// Adds a recording.
    pub fn add(&mut self, dollars: Option<&Dollars>) {
        match dollars {
            Some(dollars) => {
                self.billed += dollars.billed;
                self.passed_through += dollars.passed_through;
                self.guessed += usize::from(dollars.is_guess);
                self.refused += usize::from(dollars.is_refused);
            }
            None => self.unpriced += 1,
        }
    }

    /// What is saved, for a table.
    pub fn saved_cell(&self) -> String {
        let saved = self.passed_through - self.billed;
        let sign = if saved < 0.0 { "-" } else { "" };
        match self.passed_through > 0.0 {
            true => format!("{sign}{}", dollars(saved.abs())),
            false => "?".to_owned(),
        }
    }

    /// A sentence about it, for people.
    pub fn told(&self) -> String {
        let sum = Dollars { billed: self.billed, passed_through: self.passed_through, ..Dollars::default() };
        let (saved, share) = sum.saved();
        let change = if saved < 0.0 { "more" } else { "less" };
        let mut text = format!(
            "input for {} instead of {}: {} or {:.0} % {change}; output costs the same",
            dollars(self.billed),
            dollars(self.passed_through),
            dollars(saved.abs()),
            share.abs() * 100.0,
        );
        if self.guessed > 0 {
            text.push_str(&format!("; the price is a guess for {} of them", self.guessed));
        }
        if self.refused > 0 {
            text.push_str(&format!("; {} of them would not have fit in their model's window at once", self.refused));
        }
        if self.unpriced > 0 {
            text.push_str(&format!("; without {} whose price is not known", self.unpriced));
        }
        text
    }
}

/// Dollars for people: with cents, or more digits where there are no cents.
pub fn dollars(amount: f64) -> String {
    if amount >= 0.1 || amount == 0.0 { format!("${amount:.2}") } else { format!("${amount:.4}") }
}

/// What the windows kept, on average over the requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WindowRetention {
    /// Of what people said.
    pub said: f64,
    /// Of what the agent said.
    pub told: f64,
    /// Of the rare words that the agent drew on next.
    pub used: f64,
    /// Edits that replaced a text of the past.
    pub edits: u64,
    /// Of those, edits whose text was in the window.
    pub edits_seen: u64,
}

impl From<&Measures> for WindowRetention {
    fn from(measures: &Measures) -> Self {
        Self {
            said: measures.said_share(),
            told: measures.told_share(),
            used: measures.used_share(),
            edits: measures.targets,
            edits_seen: measures.hits,
        }
    }
}

impl WindowRetention {
    /// A sentence about it, for people.
    pub fn told(&self, screen: Screen) -> String {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        let mut text = format!(
            "the windows had {} of what people said, {} of what the agent said",
            percent(self.said),
            percent(self.told)
        );
        match self.edits {
            0 => {}
            edits => text.push_str(&format!(
                ", and the text that {} of the {edits} edits that followed replaced",
                self.edits_seen
            )),
        }
        screen.wrap(&text, 2) + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_those_of_the_recordings_own_model() {
        let own = Dollars::new(Some("claude-opus-4-8"), [1e6, 2e6], 1000).unwrap();
        assert_eq!((own.billed, own.passed_through, own.is_guess), (5.0, 10.0, false));
        assert_eq!(
            own.told(),
            "input for $5.00 instead of $10.00: $5.00 or 50 % less (claude-opus-4-8, $5 a million); output costs the same"
        );
        let assumed = Dollars::new(None, [1e6, 1e6], 2_000_000).unwrap();
        assert!(
            assumed.is_guess
                && assumed
                    .told()
                    .ends_with("a guess); output costs the same; everything at once would not have fit in its window"),
            "{}",
            assumed.told()
        );
        assert_eq!(
            Dollars::new(Some("a model that nobody knows"), [1.0, 1.0], 1).map(|dollars| dollars.is_guess),
            None
        );
    }

    #[test]
    fn a_dearer_bill_is_said_to_be_more() {
        let mut sum = DollarSum::default();
        sum.add(Dollars::new(Some("claude-opus-4-8"), [2e6, 1e6], 1000).as_ref());
        sum.add(None);
        assert_eq!(
            sum.told(),
            "input for $10.00 instead of $5.00: $5.00 or 100 % more; output costs the same; without 1 whose price is not known"
        );
    }
}
