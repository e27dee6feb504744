//! The results of playing recordings, for people and as JSON.

use contexture::files::model::FileState;
use contexture::fold::Folder;
use contexture::item::Role;
use contexture::transcript::{Record, Report, Transcript};
use contexture_measure::play::player::{ReplayStep, SentMessage};
use contexture_measure::play::ruler::Ruler;
use contexture_measure::play::settings::PlaySettings;
use contexture_text::numbers::counted;
use serde::Serialize;
use serde_json::{Value, json};

use super::decided::{DecidedCounts, GradedLines};
use super::worth::{DollarSum, Dollars, WindowRetention};
use contexture_measure::bill::{ReplayBill, Sizes};
use contexture_measure::judge::{Measures, WindowJudge};
use contexture_measure::names::Names;
use contexture_measure::plot::{Series, plot, short_count};
use contexture_measure::policies::own::MadeMessages;
use contexture_measure::prefix_cache::PrefixCache;
use contexture_measure::recorded::RecordedSession;
use contexture_terminal::harmless::on_one_line;
use contexture_terminal::screen::{Screen, TextStyle};
use contexture_terminal::table::{Align, TextTable};

/// The widest plot.
const MAX_PLOT_WIDTH: usize = 100;

/// Rows of the plot.
const PLOT_HEIGHT: usize = 9;

/// How far two bills may differ and count as the same, as a share.
const MOST_DIFFERENCE: f64 = 0.02;

/// Shorter conversations are hardly cached, whatever is sent.
const LEAST_TOLD_TOKENS: u64 = 16_000;

/// The largest number of files that are shown, those used last.
const MAX_FILES: usize = 10;

/// The result of playing one recording.
#[derive(Clone, Debug, Serialize)]
pub struct ReplaySummary {
    file: String,
    format: String,
    messages: u64,
    broken: u64,
    requests: usize,
    /// The tokens of each window.
    window_tokens: Vec<u64>,
    /// What pass-through would have sent at each step.
    passed_through_tokens: Vec<u64>,
    bill: BilledTokens,
    /// The same as a provider bills it: what it really reads from its cache, up to a mark that it finds.
    provider_bill: BilledTokens,
    /// The same in dollars, if the price is known.
    dollars: Option<Dollars>,
    /// What the windows kept.
    kept: WindowRetention,
    #[serde(skip)]
    measures: Measures,
    #[serde(flatten)]
    decided: DecidedCounts,
    files_known: usize,
    /// The files used last, the newest first.
    files: Vec<FileRow>,
}

/// What was billed, in tokens at the plain input price.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct BilledTokens {
    billed: f64,
    passed_through: f64,
    /// The largest excess of the bill over pass-through.
    worst_excess: f64,
}

impl BilledTokens {
    fn add(&mut self, other: Self) {
        self.billed += other.billed;
        self.passed_through += other.passed_through;
        self.worst_excess = self.worst_excess.max(other.worst_excess);
    }
}

#[derive(Clone, Debug, Serialize)]
struct FileRow {
    path: String,
    lines: usize,
    is_whole: bool,
    reads: u32,
    edits: u32,
    last_step: usize,
}

impl ReplaySummary {
    /// Plays a recording to its end.
    pub fn new(file: String, report: &Report, transcript: Transcript, settings: &PlaySettings) -> Self {
        let mut counts = RequestSizes::new(&transcript, settings);
        let recorded = RecordedSession::new(&transcript);
        let mut judge = WindowJudge::new(&recorded, settings.policy.prices);
        let mut made = MadeMessages::new(transcript.records.len());
        let mut player = settings.play(transcript.records.iter().cloned());
        let mut steps = Vec::new();
        let mut decided = DecidedCounts::default();
        while let Some(step) = player.step() {
            steps.push(player.folded_records());
            let decisions = player.take_decisions();
            decided.note(steps.len(), decisions, player.folder().model());
            counts.note(step, player.window());
            judge.take(made.change(step, player.window()));
        }
        let decisions = player.take_decisions();
        let folder = player.folder();
        decided.note(steps.len(), decisions, folder.model());
        let [bill, provider_bill] = [&counts.bill, &counts.provider_bill].map(|bill| counts.billed(bill));
        let measures = judge.finish(settings.policy.budget as f64);
        Self {
            file,
            format: report.format.to_string(),
            messages: report.messages,
            broken: report.broken_records,
            requests: steps.len(),
            dollars: Dollars::new(
                report.model.as_deref(),
                [bill.billed, bill.passed_through],
                largest(&counts.passed_through_tokens),
            ),
            bill,
            provider_bill,
            kept: WindowRetention::from(&measures),
            measures,
            window_tokens: counts.window_tokens,
            passed_through_tokens: counts.passed_through_tokens,
            decided,
            files_known: folder.model().files().len(),
            files: files(folder, &steps),
        }
    }

    fn render(&self, budget: u64, screen: Screen) -> String {
        let Self { file, format, messages, .. } = self;
        let file = on_one_line(file);
        let heading = format!("{file}: {format}, {messages} messages, budget {} tokens", short_count(budget));
        let mut text = format!("{}\n\n", screen.wrap(&heading, 2));
        let before = Series { name: "pass-through: everything, every time", values: &self.passed_through_tokens };
        let after = Series { name: "contexture, tokens sent at each step", values: &self.window_tokens };
        let picture = plot(before, after, screen.columns.min(MAX_PLOT_WIDTH), PLOT_HEIGHT);
        text.push_str(&painted(&picture, screen));
        text.push('\n');
        text.push_str(&self.render_totals(screen));
        text.push_str(&self.decided.render(screen));
        text.push_str(&self.render_files(screen));
        text
    }

    fn render_totals(&self, screen: Screen) -> String {
        let mut table = TextTable::new([
            (counted(self.requests, "request").as_str(), Align::Left),
            ("contexture", Align::Right),
            ("pass-through", Align::Right),
            ("ratio", Align::Right),
        ]);
        let (sent, passed) = (sum(&self.window_tokens), sum(&self.passed_through_tokens));
        let (peak, passed_peak) = (largest(&self.window_tokens), largest(&self.passed_through_tokens));
        let BilledTokens { billed, passed_through, .. } = self.bill;
        let rows = [("largest window", peak, passed_peak), ("tokens sent", sent, passed)];
        for (title, ours, theirs) in rows.map(|(title, ours, theirs)| (title, ours as f64, theirs as f64)) {
            table.row([title.to_owned(), short(ours), short(theirs), ratio(ours, theirs)]);
        }
        let bill = [short(billed), short(passed_through), ratio(billed, passed_through)];
        table.row(["tokens billed".to_owned()].into_iter().chain(bill));
        let mut text = table.fit(screen);
        if let Some(dollars) = &self.dollars {
            text.push_str(&format!("{}\n", screen.wrap(&dollars.told(), 2)));
        }
        text.push_str(&self.kept.told(screen));
        text.push_str(&self.render_provider_bill(screen));
        if self.bill.worst_excess > 0.0 {
            let worst =
                format!("at worst the bill was {} tokens above that of pass-through", short(self.bill.worst_excess));
            text.push_str(&format!("{}\n", screen.wrap(&worst, 2)));
        }
        text
    }

    /// What a provider bills, if that is something else: it has to find in its cache what was sent before.
    fn render_provider_bill(&self, screen: Screen) -> String {
        let BilledTokens { billed, passed_through, .. } = self.provider_bill;
        let differs = |one: f64, two: f64| (one - two).abs() > MOST_DIFFERENCE * two;
        let is_same = !differs(billed, self.bill.billed) && !differs(passed_through, self.bill.passed_through);
        if is_same || largest(&self.passed_through_tokens) < LEAST_TOLD_TOKENS {
            return String::new();
        }
        let (ours, theirs, ratio) = (short(billed), short(passed_through), ratio(billed, passed_through));
        let told =
            format!("as the provider finds it in its cache: {ours} billed, pass-through {theirs}, ratio {ratio}");
        format!("{}\n", screen.wrap(&told, 2))
    }

    fn render_files(&self, screen: Screen) -> String {
        if self.files.is_empty() {
            return "\nno file was read or changed\n".to_owned();
        }
        let mut text = "\nfiles in use at the end\n".to_owned();
        let numbers = ["lines known", "reads", "edits", "last at step"].map(|title| (title, Align::Right));
        let mut table = TextTable::new([("file", Align::Name)].into_iter().chain(numbers));
        for FileRow { path, lines, is_whole, reads, edits, last_step } in &self.files {
            let lines = if *is_whole { format!("all {lines}") } else { lines.to_string() };
            table.row([path.clone(), lines, reads.to_string(), edits.to_string(), last_step.to_string()]);
        }
        text.push_str(&table.fit(screen));
        if self.files_known > self.files.len() {
            text.push_str(&format!("and {} more that were used earlier\n", self.files_known - self.files.len()));
        }
        text
    }
}

/// The sizes of a recording's requests.
struct RequestSizes<'a> {
    ruler: &'a Ruler,
    /// The sizes of all messages of the recording before each one, and of all of them last.
    recorded: Vec<u64>,
    /// The same for the messages of the last window.
    shown: Vec<u64>,
    bill: ReplayBill,
    provider_bill: ReplayBill,
    /// The provider's cache for what is sent, and for what pass-through would have sent.
    caches: [PrefixCache; 2],
    /// How many blocks each message of the recording is, and how many messages are instructions at its start.
    blocks: Vec<usize>,
    instructions: usize,
    /// How many messages pass-through has sent.
    passed: usize,
    /// How many messages of the last window were expected to stay.
    standing: usize,
    window_tokens: Vec<u64>,
    passed_through_tokens: Vec<u64>,
}

impl<'a> RequestSizes<'a> {
    fn new(transcript: &Transcript, settings: &'a PlaySettings) -> Self {
        let mut recorded = vec![0];
        for record in &transcript.records {
            recorded.push(recorded[recorded.len() - 1] + settings.ruler.size(record));
        }
        let (prices, ruler) = (settings.policy.prices, &settings.ruler);
        let is_instruction = |record: &&Record| record.role() == Some(Role::System);
        Self {
            ruler,
            recorded,
            shown: vec![0],
            bill: ReplayBill::new(prices),
            provider_bill: ReplayBill::new(prices),
            caches: [(); 2].map(|()| PrefixCache::new(&prices, ruler.token())),
            blocks: transcript.records.iter().map(|record| record.items().len()).collect(),
            instructions: transcript.records.iter().take_while(is_instruction).count(),
            passed: 0,
            standing: 0,
            window_tokens: Vec::new(),
            passed_through_tokens: Vec::new(),
        }
    }

    fn note(&mut self, step: ReplayStep, window: &[SentMessage]) {
        self.shown.truncate(step.keep + 1);
        let same = self.shown[step.keep];
        let mut sent = same;
        let mut new = Vec::new();
        for message in &window[step.keep..] {
            let size = self.ruler.size(&message.record());
            new.push((message.blocks(), size));
            sent += size;
            self.shown.push(sent);
        }
        let (passed_through, is_cold) = (self.recorded[step.before], step.is_cold);
        let came = (self.passed..step.before).map(|at| (self.blocks[at], self.recorded[at + 1] - self.recorded[at]));
        let [ours, theirs] = &mut self.caches;
        // What stayed of the last window is marked as well, so that it is found.
        let marks = [self.instructions, self.standing.min(step.keep), step.standing];
        let cached = ours.serve(step.keep, new, &marks, is_cold);
        self.standing = step.standing;
        let seen = theirs.serve(self.passed, came, &[self.instructions], is_cold);
        self.provider_bill.note(Sizes { cached, sent, passed_through, seen, is_cold });
        // Everything that was sent before.
        let (cached, seen) = (same, self.recorded[self.passed]);
        self.bill.note(Sizes { cached, sent, passed_through, seen, is_cold });
        self.passed = step.before;
        self.window_tokens.push(self.ruler.whole_tokens(sent));
        self.passed_through_tokens.push(self.ruler.whole_tokens(passed_through));
    }

    fn billed(&self, bill: &ReplayBill) -> BilledTokens {
        let account = bill.account();
        let [billed, passed_through, worst_excess] =
            [account.billed, account.passed_through, account.worst_excess].map(|size| self.ruler.tokens(size));
        BilledTokens { billed, passed_through, worst_excess }
    }
}

fn files(folder: &Folder, steps: &[usize]) -> Vec<FileRow> {
    let mut files: Vec<&FileState> = folder.model().files().iter().filter(|file| !file.deleted).collect();
    files.sort_by(|one, two| two.touched.cmp(&one.touched).then_with(|| one.path.cmp(&two.path)));
    let row = |file: &FileState| FileRow {
        path: file.path.clone(),
        lines: file.known_lines(),
        is_whole: file.whole,
        reads: file.reads,
        edits: file.edits,
        last_step: steps.partition_point(|before| *before < file.touched as usize),
    };
    files.into_iter().take(MAX_FILES).map(row).collect()
}

/// The results of playing all recordings.
pub struct Summaries {
    /// The most tokens of a window.
    pub budget: u64,
    /// One for each recording, in the order in which they were named.
    pub recordings: Vec<ReplaySummary>,
    /// Files that are not recordings.
    pub skipped: usize,
}

impl Summaries {
    /// For people: one recording in detail, with a plot; several in a table.
    pub fn render(&self, screen: Screen) -> String {
        match self.recordings.as_slice() {
            [summary] => summary.render(self.budget, screen),
            summaries => self.render_table(summaries, screen),
        }
    }

    fn render_table(&self, summaries: &[ReplaySummary], screen: Screen) -> String {
        let numbers = ["requests", "folds", "peak", "unfolded", "bill", "saved"];
        let numbers = numbers.map(|title| (title, Align::Right));
        let mut table = TextTable::new([("recording", Align::Name)].into_iter().chain(numbers));
        let names = Names::of(summaries.iter().map(|summary| summary.file.as_str()));
        for summary in summaries {
            table.row(ReplayTotals::of([summary]).cells(names.short(&summary.file)));
        }
        table.row(ReplayTotals::of(summaries).cells("all".to_owned()));
        table.strong();
        let mut heading = counted(summaries.len(), "recording");
        if let Some(folder) = names.folder() {
            heading.push_str(&format!(" in {folder}"));
        }
        heading.push_str(&format!(", budget {} tokens", short_count(self.budget)));
        if self.skipped > 0 {
            heading.push_str(&format!("; {} skipped", counted(self.skipped, "other file")));
        }
        let legend = "peak: the largest window, and what it would be if everything were sent every time; \
                      bill: the ratio to that of sending everything; saved: dollars";
        let totals = ReplayTotals::of(summaries);
        let mut text = format!("{}\n{}\n\n{}", screen.wrap(&heading, 2), screen.wrap(legend, 2), table.fit(screen));
        text.push_str(&format!("\n{}\n", screen.wrap(&totals.dollars.told(), 2)));
        text.push_str(&WindowRetention::from(&totals.measures).told(screen));
        text
    }

    /// The results as JSON, with the options.
    pub fn to_json(&self, mut chosen: Value) -> Value {
        chosen["budget"] = json!(self.budget);
        chosen["skipped"] = json!(self.skipped);
        let totals = ReplayTotals::of(&self.recordings);
        chosen["kept"] = json!(WindowRetention::from(&totals.measures));
        chosen["sum"] = json!(totals);
        chosen["recordings"] = json!(self.recordings);
        chosen
    }
}

/// The sums over recordings.
#[derive(Default, Serialize)]
struct ReplayTotals {
    requests: usize,
    folds: usize,
    peak_tokens: u64,
    passed_through_peak_tokens: u64,
    tokens: u64,
    passed_through_tokens: u64,
    bill: BilledTokens,
    provider_bill: BilledTokens,
    dollars: DollarSum,
    #[serde(skip)]
    measures: Measures,
    view_lines: GradedLines,
}

impl ReplayTotals {
    fn of<'a>(summaries: impl IntoIterator<Item = &'a ReplaySummary>) -> Self {
        let mut totals = Self::default();
        for summary in summaries {
            totals.requests += summary.requests;
            totals.folds += summary.decided.folds.len();
            totals.peak_tokens = totals.peak_tokens.max(largest(&summary.window_tokens));
            let passed_peak = largest(&summary.passed_through_tokens);
            totals.passed_through_peak_tokens = totals.passed_through_peak_tokens.max(passed_peak);
            totals.tokens += sum(&summary.window_tokens);
            totals.passed_through_tokens += sum(&summary.passed_through_tokens);
            totals.view_lines += summary.decided.view_lines;
            totals.bill.add(summary.bill);
            totals.provider_bill.add(summary.provider_bill);
            totals.dollars.add(summary.dollars.as_ref());
            totals.measures.add(&summary.measures);
        }
        totals
    }

    fn cells(&self, name: String) -> [String; 7] {
        [
            name,
            short_count(self.requests as u64),
            self.folds.to_string(),
            short_count(self.peak_tokens),
            short_count(self.passed_through_peak_tokens),
            ratio(self.bill.billed, self.bill.passed_through),
            self.dollars.saved_cell(),
        ]
    }
}

fn sum(tokens: &[u64]) -> u64 {
    tokens.iter().sum()
}

fn largest(tokens: &[u64]) -> u64 {
    tokens.iter().copied().max().unwrap_or(0)
}

/// A number of tokens for people.
fn short(tokens: f64) -> String {
    short_count(tokens.round() as u64)
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

/// A ratio for people; 1 if both are 0.
fn ratio(part: f64, whole: f64) -> String {
    format!("{:.3}", if whole == 0.0 { 1.0 } else { part / whole })
}
