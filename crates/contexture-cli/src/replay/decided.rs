//! A summary of the decisions while a recording was played.

use contexture_text::numbers::counted;
use std::collections::{BTreeMap, BTreeSet};

use contexture::files::model::{FileModel, Grade};
use contexture::fold::{Fold, FoldDecision};
use serde::Serialize;

use contexture_measure::plot::short_count;
use contexture_terminal::harmless::on_one_line;
use contexture_terminal::screen::Screen;
use contexture_terminal::table::{Align, TextTable};

/// The largest number of folds in the table.
const MAX_FOLDS_SHOWN: usize = 12;

/// The largest number of files in the warning about files that did not fit.
const MAX_PATHS_SHOWN: usize = 10;

/// The decisions, without the texts.
#[derive(Clone, Debug, Default, Serialize)]
pub struct DecidedCounts {
    /// The folds, in order.
    pub folds: Vec<FoldRow>,
    /// Files with changes of the agent's own that a fold had no room for.
    left_out: BTreeSet<String>,
    /// Messages of people, by their position, that had to be cut.
    cut_said: BTreeSet<usize>,
    /// Messages of the agent, by their position, that had to be cut.
    cut_told: BTreeSet<usize>,
    /// How many records of calls had to be left out.
    cut_records: usize,
    /// How many lines of files the folds put into views, by how well they were known then.
    pub view_lines: GradedLines,
    /// How many outputs were shown shorter, by why.
    shortened: BTreeMap<String, usize>,
    /// How often known lines of a file were shown again because it was used or named.
    recalls: usize,
    /// Before how many requests the provider's cache had expired.
    cold_requests: usize,
}

impl DecidedCounts {
    /// Adds the decisions up to a step, with what is known of files then.
    pub fn note(&mut self, step: usize, decisions: Vec<FoldDecision>, model: &FileModel) {
        for decision in decisions {
            match decision {
                FoldDecision::Fold(fold) => {
                    self.view_lines.note(&fold, model);
                    self.folds.push(FoldRow {
                        step,
                        reason: fold.reason,
                        before_tokens: fold.before_tokens,
                        after_tokens: fold.after_tokens,
                        price: fold.cost,
                    });
                    self.left_out.extend(fold.left_out);
                    self.cut_said.extend(fold.cut_said.iter().map(|cut| cut.position));
                    self.cut_told.extend(fold.cut_told.iter().map(|cut| cut.position));
                    self.cut_records += fold.cut_records.len();
                }
                FoldDecision::Shorten { reason, .. } => *self.shortened.entry(reason).or_default() += 1,
                FoldDecision::BringBack(_) => self.recalls += 1,
                FoldDecision::Cold { .. } => self.cold_requests += 1,
                // A recording has no disk to compare with.
                FoldDecision::Disk(_) => {}
            }
        }
    }

    /// For people: the folds in a table, and a line for everything else.
    pub fn render(&self, screen: Screen) -> String {
        let mut text = match self.folds.len() {
            0 => "\nnothing was folded\n".to_owned(),
            count => format!("\nfolded {}\n", times(count)),
        };
        let columns = [("before", Align::Right), ("after", Align::Right), ("price", Align::Right)];
        let columns = [("step", Align::Right)].into_iter().chain(columns).chain([("why", Align::Name)]);
        let mut table = TextTable::new(columns);
        for fold in self.folds.iter().take(MAX_FOLDS_SHOWN) {
            let FoldRow { step, reason, before_tokens, after_tokens, price } = fold;
            let tokens = [*before_tokens, *after_tokens, price.round() as u64].map(short_count);
            table.row([step.to_string()].into_iter().chain(tokens).chain([short_reason(reason)]));
        }
        if !self.folds.is_empty() {
            text.push_str(&table.fit(screen));
        }
        for note in self.notes() {
            text.push_str(&format!("{}\n", screen.wrap(&note, 2)));
        }
        text
    }

    /// A line for everything that is not in the table of folds.
    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.folds.iter().take(MAX_FOLDS_SHOWN).any(|fold| short_reason(&fold.reason).ends_with(MORE_MARK)) {
            notes.push(MORE_NOTE.to_owned());
        }
        if self.folds.len() > MAX_FOLDS_SHOWN {
            let more = self.folds.len() - MAX_FOLDS_SHOWN;
            notes.push(format!("and {more} more: `--emit decisions` prints them all"));
        }
        if !self.left_out.is_empty() {
            let files = counted(self.left_out.len(), "file");
            notes.push(format!("WARNING: the agent's own changes in {files} did not fit:"));
            notes.extend(self.left_out.iter().take(MAX_PATHS_SHOWN).map(|path| format!("  {}", on_one_line(path))));
        }
        if !self.cut_said.is_empty() {
            let messages = counted(self.cut_said.len(), "message");
            notes.push(format!("WARNING: what people said did not fit: {messages} had to be cut"));
        }
        if !self.cut_told.is_empty() {
            let messages = counted(self.cut_told.len(), "message");
            notes.push(format!("what the agent said did not fit: {messages} had to be cut"));
        }
        if self.cut_records > 0 {
            notes.push(format!("records of {} did not fit", counted(self.cut_records, "call")));
        }
        if let Some(shares) = self.view_lines.shares() {
            let why = match self.view_lines.in_doubt {
                0 => "",
                _ => "; a recording has no disk to compare them with",
            };
            notes.push(format!("of the lines of files that folds showed, {shares}{why}"));
        }
        if self.cold_requests > 0 {
            let requests = counted(self.cold_requests, "request");
            notes.push(format!("the provider's cache had expired before {requests}"));
        }
        let shortened = self.shortened.iter();
        notes.extend(shortened.map(|(reason, count)| format!("{} shown shorter: {reason}", counted(*count, "output"))));
        if self.recalls > 0 {
            let recalls = times(self.recalls);
            notes.push(format!("known lines of a file that was used or named were shown again {recalls}"));
        }
        notes
    }
}

/// Lines of files that were put into views, by their grade at that moment.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct GradedLines {
    verified: usize,
    sure: usize,
    presumed: usize,
    in_doubt: usize,
}

impl GradedLines {
    fn note(&mut self, fold: &Fold, model: &FileModel) {
        for shown in fold.shown.iter().flatten() {
            let is_known = model.files().get(shown.file).is_some_and(|file| shown.segment < file.segments.len());
            if !is_known {
                continue;
            }
            for (region, claim) in model.claims(shown.file, shown.segment, shown.first..shown.first + shown.count) {
                *match claim.grade {
                    Grade::Verified => &mut self.verified,
                    Grade::Sure => &mut self.sure,
                    Grade::Presumed => &mut self.presumed,
                    Grade::InDoubt => &mut self.in_doubt,
                } += region.len();
            }
        }
    }

    /// For people: the share of each grade, if any line was shown.
    pub fn shares(&self) -> Option<String> {
        let Self { verified, sure, presumed, in_doubt } = *self;
        let all = verified + sure + presumed + in_doubt;
        let share = |count: usize| format!("{:.0} %", count as f64 / all as f64 * 100.0);
        let named = [(verified, "verified"), (sure, "sure"), (presumed, "presumed"), (in_doubt, "in doubt")];
        let some = named.iter().filter(|(count, _)| *count > 0);
        let shares: Vec<String> = some.map(|(count, name)| format!("{} are {name}", share(*count))).collect();
        (all > 0).then(|| shares.join(", "))
    }
}

impl std::ops::AddAssign for GradedLines {
    fn add_assign(&mut self, other: Self) {
        self.verified += other.verified;
        self.sure += other.sure;
        self.presumed += other.presumed;
        self.in_doubt += other.in_doubt;
    }
}

/// One fold.
#[derive(Clone, Debug, Serialize)]
pub struct FoldRow {
    step: usize,
    reason: String,
    before_tokens: u64,
    after_tokens: u64,
    /// What is billed again because of it, in tokens at the plain input price.
    price: f64,
}

/// The mark after a reason that the table shows only in part.
const MORE_MARK: &str = " *";

/// The line that says where the rest of such a reason is.
const MORE_NOTE: &str = "* more had to go than usual: `--emit decisions` says what";

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

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever names a file in a recording must not control the terminal of the one who reads the summary.
    #[test]
    fn the_name_of_a_file_is_written_out() {
        let left_out = BTreeSet::from(["a\x1b[2J\u{202e}\u{e0041}b".to_owned()]);
        let notes = DecidedCounts { left_out, ..DecidedCounts::default() }.notes().join("\n");
        assert!(notes.ends_with("  a\\u{1b}[2J\\u{202e}\\u{e0041}b"), "{notes}");
    }
}
