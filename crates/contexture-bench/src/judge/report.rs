//! What was measured, as a table for people, as Markdown and as JSON.

use std::fmt::Write as _;

use contexture_measure::judge::Measures;
use contexture_terminal::screen::Screen;
use contexture_terminal::table::{Align, TextTable};
use contexture_text::numbers::counted;
use serde_json::{Value, json};

use super::tool::MissingTool;
use contexture_measure::interval::{Draws, Interval};

/// One policy with what was measured on each recording.
#[derive(Clone, Debug)]
pub struct JudgedPolicy {
    /// Its name.
    pub name: String,
    /// The version of a tool.
    pub version: Option<String>,
    /// What it does, or how it was called.
    pub settings: String,
    /// The measures of each recording, or why there are none.
    pub recordings: Vec<Result<Measures, String>>,
}

/// Everything that was measured.
#[derive(Clone, Debug)]
pub struct JudgeReport {
    /// The most tokens of a window.
    pub budget: u64,
    /// The policies, in the order of the table.
    pub judged: Vec<JudgedPolicy>,
    /// Tools that could not be called.
    pub missing: Vec<MissingTool>,
}

/// A column: its title, its value, and whether it counts recordings.
struct Column {
    title: &'static str,
    value: fn(&Measures) -> f64,
    is_count: bool,
}

const COLUMNS: [Column; 8] = [
    Column { title: "recall", value: Measures::recall, is_count: false },
    Column { title: "said", value: Measures::said_share, is_count: false },
    Column { title: "told", value: Measures::told_share, is_count: false },
    Column { title: "used", value: Measures::used_share, is_count: false },
    Column { title: "stale", value: Measures::stale, is_count: false },
    Column { title: "cost", value: Measures::cost_ratio, is_count: false },
    Column { title: "dearer", value: |sums| sums.costlier as f64, is_count: true },
    Column { title: "over", value: |sums| sums.over as f64, is_count: true },
];

impl Column {
    fn number(&self, value: f64) -> String {
        if self.is_count { format!("{value:.0}") } else { format!("{value:.3}") }
    }

    fn range(&self, estimate: Interval) -> String {
        format!("[{}, {}]", self.number(estimate.low), self.number(estimate.high))
    }
}

impl JudgedPolicy {
    fn draws(&self) -> Draws {
        let measured: Vec<Measures> = self.recordings.iter().filter_map(|row| row.as_ref().ok().cloned()).collect();
        Draws::of(&measured)
    }

    /// The recordings on which it failed, and why the first time.
    fn failure(&self) -> Option<(usize, &str)> {
        let mut failures = self.recordings.iter().filter_map(|row| row.as_ref().err());
        let first = failures.next()?;
        Some((1 + failures.count(), first))
    }

    fn title(&self) -> String {
        match &self.version {
            Some(version) => format!("{} {version}", self.name),
            None => self.name.clone(),
        }
    }
}

impl JudgeReport {
    fn recordings(&self) -> usize {
        self.judged.first().map_or(0, |judged| judged.recordings.len())
    }

    /// The first line: what was compared.
    pub fn heading(&self) -> String {
        let requests = self.judged.iter().map(|judged| judged.draws().all().requests).max().unwrap_or(0);
        let recordings = counted(self.recordings(), "recording");
        format!("{recordings}, {requests} requests, budget {} tokens, 95 % intervals by recording", self.budget)
    }

    /// For people: values, and beneath them their intervals.
    pub fn text(&self, screen: Screen) -> String {
        let titles = COLUMNS.iter().map(|column| (column.title, Align::Right));
        let mut table = TextTable::new([("policy", Align::Left)].into_iter().chain(titles));
        for judged in &self.judged {
            let draws = judged.draws();
            let estimates = COLUMNS.iter().map(|column| (column, draws.estimate(column.value)));
            let (values, ranges): (Vec<String>, Vec<String>) =
                estimates.map(|(column, estimate)| (column.number(estimate.value), column.range(estimate))).unzip();
            table.row([judged.title()].into_iter().chain(values));
            table.row([String::new()].into_iter().chain(ranges));
        }
        let mut text = format!("{}\n\n{}\n", screen.wrap(&self.heading(), 0), table.fit(screen));
        for note in self.notes() {
            let _ = writeln!(text, "{}", screen.wrap(&note, 2));
        }
        text
    }

    /// As a table for a page.
    pub fn markdown(&self) -> String {
        let mut text = format!("{}\n\n| policy |", self.heading());
        COLUMNS.iter().for_each(|column| {
            let _ = write!(text, " {} |", column.title);
        });
        let _ = writeln!(text, "\n| --- |{}", " --- |".repeat(COLUMNS.len()));
        for judged in &self.judged {
            let draws = judged.draws();
            let _ = write!(text, "| {} |", judged.title());
            for column in &COLUMNS {
                let estimate = draws.estimate(column.value);
                let _ = write!(text, " {} {} |", column.number(estimate.value), column.range(estimate));
            }
            text.push('\n');
        }
        text.push('\n');
        self.notes().for_each(|note| {
            let _ = writeln!(text, "- {note}");
        });
        text
    }

    /// What each policy is, what failed, and what is missing.
    fn notes(&self) -> impl Iterator<Item = String> {
        let policies = self.judged.iter().map(|judged| format!("{}: {}", judged.title(), judged.settings));
        let failures = self.judged.iter().filter_map(|judged| {
            let (count, why) = judged.failure()?;
            let recordings = counted(count, "recording");
            Some(format!("{} has no value for {recordings}, and its row is without them: {why}", judged.title()))
        });
        let missing = self.missing.iter().map(|missing| format!("MISSING {}: {}", missing.name, missing.why));
        policies.chain(failures).chain(missing)
    }

    /// Everything, for programs.
    pub fn json(&self) -> Value {
        let policies = self.judged.iter().map(|judged| {
            let draws = judged.draws();
            let values = COLUMNS.iter().map(|column| {
                let Interval { value, low, high } = draws.estimate(column.value);
                (column.title.to_owned(), json!({ "value": value, "low": low, "high": high }))
            });
            json!({
                "policy": judged.name,
                "version": judged.version,
                "settings": judged.settings,
                "recordings": judged.recordings.iter().filter(|row| row.is_ok()).count(),
                "failed": judged.recordings.iter().filter(|row| row.is_err()).count(),
                "values": values.collect::<serde_json::Map<_, _>>(),
                "sums": draws.all(),
            })
        });
        json!({
            "recordings": self.recordings(),
            "budget": self.budget,
            "policies": policies.collect::<Vec<_>>(),
            "missing": self.missing.iter().map(|missing| json!({ "name": missing.name, "why": missing.why })).collect::<Vec<_>>(),
        })
    }
}
