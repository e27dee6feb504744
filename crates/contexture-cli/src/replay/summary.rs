//! The results of playing recordings through the gateway's decisions, for people and as JSON.

use std::collections::BTreeSet;

use contexture::transcript::{Report, Transcript};
use contexture_gateway::account::record::{DecidedNote, RequestRecord};
use contexture_gateway::report::receipt::Receipt;
use contexture_gateway::simulate::played::{PROMPT_TOKENS, Played};
use contexture_text::numbers::{counted, thousands};
use serde::Serialize;
use serde_json::{Value, json};

use contexture_measure::names::Names;
use contexture_measure::plot::{Series, plot, short_count};
use contexture_terminal::harmless::on_one_line;
use contexture_terminal::screen::{Screen, TextStyle};
use contexture_terminal::table::{Align, TextTable};

/// The widest plot.
const MAX_PLOT_WIDTH: usize = 100;

/// Rows of the plot.
const PLOT_HEIGHT: usize = 9;

/// The largest number of folds in the table.
const MAX_FOLDS_SHOWN: usize = 12;

/// The largest number of files in the warning about files that did not fit.
const MAX_PATHS_SHOWN: usize = 10;

/// The result of playing one recording.
#[derive(Debug, Serialize)]
pub struct ReplaySummary {
    file: String,
    format: String,
    messages: u64,
    broken: u64,
    /// The tokens of each request.
    window_tokens: Vec<u64>,
    /// What pass-through would have sent with each.
    passed_through_tokens: Vec<u64>,
    folds: Vec<FoldRow>,
    /// Its account, as the gateway makes it.
    receipt: Receipt,
    #[serde(skip)]
    records: Vec<RequestRecord>,
}

/// One fold.
#[derive(Debug, Serialize)]
struct FoldRow {
    step: usize,
    #[serde(flatten)]
    note: DecidedNote,
}

impl ReplaySummary {
    /// Plays a recording to its end.
    pub fn new(file: String, report: &Report, transcript: &Transcript, played: &Played) -> Self {
        let mut records = Vec::new();
        played.play(&file, &transcript.records, &mut |request| records.push(request.record));
        let bills = records.iter().filter_map(|record| record.bill);
        let (window_tokens, passed_through_tokens) = bills.map(|bill| (bill.sent, bill.came)).unzip();
        let folds = records.iter().enumerate().flat_map(|(at, record)| {
            let folds = record.decided.iter().filter(|note| note.is_fold());
            folds.map(move |note| FoldRow { step: at + 1, note: note.clone() })
        });
        Self {
            file,
            format: report.format.to_string(),
            messages: report.messages,
            broken: report.broken_records,
            window_tokens,
            passed_through_tokens,
            folds: folds.collect(),
            receipt: Receipt::of(&records),
            records,
        }
    }

    fn render(&self, budget: u64, screen: Screen) -> String {
        let Self { file, format, messages, .. } = self;
        let file = on_one_line(file);
        let heading = format!("{file}: {format}, {messages} messages, budget {} tokens", short_count(budget));
        let mut text = format!("{}\n\n", screen.wrap(&heading, 2));
        text.push_str(&drawn(&self.records, screen));
        text.push('\n');
        text.push_str(&told(&self.receipt, screen));
        text.push_str(&self.render_folds(screen));
        text
    }

    fn render_folds(&self, screen: Screen) -> String {
        if self.folds.is_empty() {
            return "\nnothing was folded\n".to_owned();
        }
        let columns = [("step", Align::Right), ("before", Align::Right), ("after", Align::Right)];
        let mut table = TextTable::new(columns.into_iter().chain([("price", Align::Right), ("why", Align::Name)]));
        for FoldRow { step, note } in self.folds.iter().take(MAX_FOLDS_SHOWN) {
            let tokens = [note.before_tokens, note.after_tokens, note.cost.round() as u64].map(short_count);
            table.row([step.to_string()].into_iter().chain(tokens).chain([short_reason(&note.reason)]));
        }
        let mut text = format!("\nfolded {}\n{}", times(self.folds.len()), table.fit(screen));
        for line in self.fold_notes() {
            text.push_str(&format!("{}\n", screen.wrap(&line, 2)));
        }
        text
    }

    /// What there is to say about folds besides the table.
    fn fold_notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let shown = self.folds.iter().take(MAX_FOLDS_SHOWN);
        if shown.clone().any(|fold| short_reason(&fold.note.reason).ends_with(MORE_MARK)) {
            notes.push(MORE_NOTE.to_owned());
        }
        let more = self.folds.len() - shown.count();
        if more > 0 {
            notes.push(format!("and {more} more: `--json` has them all"));
        }
        let left_out: BTreeSet<&String> = self.folds.iter().flat_map(|fold| &fold.note.left_out).collect();
        if !left_out.is_empty() {
            let files = counted(left_out.len(), "file");
            notes.push(format!("WARNING: the agent's own changes in {files} did not fit:"));
            notes.extend(left_out.iter().take(MAX_PATHS_SHOWN).map(|path| format!("  {}", on_one_line(path))));
        }
        let cut: BTreeSet<(&String, &String)> =
            self.folds.iter().flat_map(|fold| &fold.note.cut).map(|cut| (&cut.what, &cut.hash)).collect();
        for (what, who) in [("said", "WARNING: what people said"), ("told", "what the agent said")] {
            let count = cut.iter().filter(|(kind, _)| *kind == what).count();
            if count > 0 {
                notes.push(format!("{who} did not fit: {} had to be cut", counted(count, "message")));
            }
        }
        notes
    }
}

/// The account of requests, for people: the sentence of the receipt, and what it rests on.
fn told(receipt: &Receipt, screen: Screen) -> String {
    let sent = format!("sent {} of {} tokens", thousands(receipt.sent), thousands(receipt.came));
    let rests = format!(
        "{sent}; simulated: the provider's cache, and at least {} tokens of the agent's own prompt in every request",
        short_count(PROMPT_TOKENS)
    );
    let mut lines = vec![receipt.told(false), rests];
    lines.extend(receipt.details(false).into_iter().filter(|line| line.subject == "compared").map(|line| line.text));
    let mut text: String = lines.iter().map(|line| format!("{}\n", screen.wrap(line, 2))).collect();
    let decided = receipt.decided.iter().map(|(reason, count)| format!("{}: {reason}\n", times(*count)));
    text.extend(decided.map(|line| screen.wrap(line.trim_end(), 2) + "\n"));
    text
}

/// The results of playing all recordings.
pub struct Summaries {
    /// The most tokens of a request.
    pub budget: u64,
    /// One for each recording, in the order in which they were named.
    pub recordings: Vec<ReplaySummary>,
    /// Files that are not recordings.
    pub skipped: usize,
}

impl Summaries {
    /// For people: one recording in detail, with a plot; several in a table, which may be wider than the screen.
    pub fn render(&self, screen: Screen, table_columns: usize) -> String {
        match self.recordings.as_slice() {
            [summary] => summary.render(self.budget, screen),
            summaries => self.render_table(summaries, screen, table_columns),
        }
    }

    /// The account of all recordings.
    fn total(&self) -> Receipt {
        Receipt::of(self.recordings.iter().flat_map(|summary| &summary.records))
    }

    fn render_table(&self, summaries: &[ReplaySummary], screen: Screen, table_columns: usize) -> String {
        let numbers = ["requests", "folds", "peak", "unfolded", "paid", "unchanged"];
        let numbers = numbers.map(|title| (title, Align::Right));
        let mut table = TextTable::new([("recording", Align::Name)].into_iter().chain(numbers));
        let names = Names::of(summaries.iter().map(|summary| summary.file.as_str()));
        let total = self.total();
        table.row(cells("all".to_owned(), &total, summaries));
        table.strong();
        for summary in summaries {
            table.row(cells(names.short(&summary.file), &summary.receipt, std::slice::from_ref(summary)));
        }
        let mut heading = counted(summaries.len(), "recording");
        if let Some(folder) = names.folder() {
            heading.push_str(&format!(" in {folder}"));
        }
        heading.push_str(&format!(", budget {} tokens", short_count(self.budget)));
        if self.skipped > 0 {
            heading.push_str(&format!("; {} skipped", counted(self.skipped, "other file")));
        }
        let legend = "peak: the largest request, and what it would be if everything were sent every time; \
                      unchanged: what would have been paid then";
        let table = table.fit(Screen { columns: table_columns, ..screen });
        let mut text = format!("{}\n{}\n\n{table}\n", screen.wrap(&heading, 2), screen.wrap(legend, 2));
        text.push_str(&told(&total, screen));
        if let Some(median) = median_share(summaries) {
            let told = format!("the median recording: {median}");
            text.push_str(&format!("{}\n", screen.wrap(&told, 2)));
        }
        text
    }

    /// The results as JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "budget": self.budget,
            "skipped": self.skipped,
            "sum": self.total(),
            "recordings": self.recordings,
        })
    }
}

/// How much less the median recording costs, in words; `None` where no price is known.
fn median_share(summaries: &[ReplaySummary]) -> Option<String> {
    let share = |summary: &ReplaySummary| {
        let (paid, through) = summary.receipt.dollars?;
        (through > 0.0).then(|| 1.0 - paid / through)
    };
    let mut shares: Vec<f64> = summaries.iter().filter_map(share).collect();
    shares.sort_by(f64::total_cmp);
    shares.get(shares.len() / 2).map(|share| contexture_gateway::report::told::less_or_more(*share))
}

fn cells(name: String, receipt: &Receipt, summaries: &[ReplaySummary]) -> [String; 7] {
    let peak = |of: fn(&ReplaySummary) -> &[u64]| summaries.iter().flat_map(of).copied().max().unwrap_or(0);
    let (paid, through) = receipt.amounts();
    [
        name,
        short_count(receipt.requests as u64),
        receipt.fold_count().to_string(),
        short_count(peak(|summary| &summary.window_tokens)),
        short_count(peak(|summary| &summary.passed_through_tokens)),
        paid,
        through,
    ]
}

/// The mark after a reason that the table shows only in part.
const MORE_MARK: &str = " *";

/// The line that says where the rest of such a reason is.
const MORE_NOTE: &str = "* more had to go than usual: `--json` says what";

/// Why a fold was made, without the list of what it had to leave out.
fn short_reason(reason: &str) -> String {
    match reason.split_once("; ") {
        Some((why, _)) => format!("{why}{MORE_MARK}"),
        None => reason.to_owned(),
    }
}

fn times(count: usize) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// The tokens of each request, as a plot.
pub fn drawn(records: &[RequestRecord], screen: Screen) -> String {
    let bills = records.iter().filter_map(|record| record.bill);
    let (sent, came): (Vec<u64>, Vec<u64>) = bills.map(|bill| (bill.sent, bill.came)).unzip();
    let before = Series { name: "pass-through: everything, every time", values: &came };
    let after = Series { name: "contexture, tokens sent at each step", values: &sent };
    painted(&plot(before, after, screen.columns.min(MAX_PLOT_WIDTH), PLOT_HEIGHT), screen)
}

/// A plot with its areas in different colours.
fn painted(picture: &str, screen: Screen) -> String {
    if !screen.has_colours {
        return picture.to_owned();
    }
    let style = |cell: char| match cell {
        '░' => Some(TextStyle::Dim),
        '▁'..='█' => Some(TextStyle::Own),
        _ => None,
    };
    let cells: Vec<char> = picture.chars().collect();
    let runs = cells.chunk_by(|one, two| style(*one) == style(*two));
    let painted = runs.map(|run| {
        let text: String = run.iter().collect();
        style(run[0]).map_or_else(|| text.clone(), |style| screen.paint(style, &text))
    });
    painted.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever names a file in a recording must not control the terminal of the one who reads the summary.
    #[test]
    fn the_name_of_a_file_is_written_out() {
        let mut note = DecidedNote::new(contexture_gateway::account::record::DecisionKind::Fold, "the window is full");
        note.left_out = vec!["a\x1b[2J\u{202e}\u{e0041}b".to_owned()];
        let summary = ReplaySummary {
            file: String::new(),
            format: String::new(),
            messages: 1,
            broken: 0,
            window_tokens: Vec::new(),
            passed_through_tokens: Vec::new(),
            folds: vec![FoldRow { step: 1, note }],
            receipt: Receipt::default(),
            records: Vec::new(),
        };
        let notes = summary.fold_notes().join("\n");
        assert!(notes.ends_with("  a\\u{1b}[2J\\u{202e}\\u{e0041}b"), "{notes}");
    }
}
