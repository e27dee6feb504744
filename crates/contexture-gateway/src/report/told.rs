//! A receipt in words: one sentence, what a person has to know, and the rest by subject.

use std::collections::{BTreeMap, BTreeSet};

use contexture_text::date;
use contexture_text::numbers::{counted, thousands};

use super::quota::shortest;
use super::receipt::{ModelNote, Receipt};
use crate::account::cap::{CapAmounts, CapUse, Spent, dollars};
use crate::account::signals::SignalCounts;

/// Most requests that are named because they could not be written.
const MOST_NAMED: usize = 10;

/// Most folds that have a line of their own.
const MOST_FOLDS: usize = 100;

/// The share of the bill of unchanged requests from which on more is called dearer: what is estimated is not exact.
const LEAST_DEARER: f64 = 0.02;

/// A line of a receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldLine {
    /// Its subject, in one or two words.
    pub subject: &'static str,
    /// What is said about it, on one line.
    pub text: String,
    /// Whether it is told without being asked for.
    pub is_urgent: bool,
}

impl ToldLine {
    fn new(subject: &'static str, text: impl Into<String>) -> Self {
        Self { subject, text: text.into(), is_urgent: false }
    }

    fn urgent(subject: &'static str, text: impl Into<String>) -> Self {
        Self { is_urgent: true, ..Self::new(subject, text) }
    }
}

impl Receipt {
    /// The receipt in one sentence. `is_watching` says that nothing was to be changed.
    pub fn told(&self, is_watching: bool) -> String {
        if self.requests == 0 {
            return "no request was seen: nothing passed through the gateway".to_owned();
        }
        let what = format!("{}, {}", counted(self.requests, "request"), counted(self.conversations, "conversation"));
        if self.with_usage == 0 {
            return format!("{what}; {}", self.why_unbilled());
        }
        if self.on_plan == self.with_usage && self.changed > 0 {
            return format!("{}, {what}", self.quota_told());
        }
        let paid = self.amounts().0;
        let guessed = if self.dollars.is_some() && self.has_guessed_prices() { ", by guessed prices" } else { "" };
        match self.would_send.filter(|_| is_watching) {
            Some(would) => {
                let share = 1.0 - would as f64 / self.came.max(1) as f64;
                format!("{paid}{guessed}, {what}; would have sent {}", less_or_more(share))
            }
            None if self.changed == 0 && self.lean.tools > 0 => {
                format!("{paid}{guessed}, {what}; nothing was changed but tools")
            }
            None if self.changed == 0 => format!("{paid}{guessed}, {what}; nothing was changed"),
            None => format!("{}{guessed}, {what}", self.saved()),
        }
    }

    /// What was paid, and what unchanged requests would have cost: in dollars, or in tokens where a price is not known.
    pub fn amounts(&self) -> (String, String) {
        match self.dollars {
            Some((paid, through)) => (dollars(paid), dollars(through)),
            None => (tokens(self.billed), tokens(self.passed_through)),
        }
    }

    /// What was used of the quota of a plan, and what it would have been if the plan counts as prices do.
    fn quota_told(&self) -> String {
        let less = less_or_more(self.saved_share());
        let share = |share: f64| if share > 0.0 && share < 0.01 { "under 1 %".to_owned() } else { percent(share) };
        match shortest(&self.quota_used) {
            Some(quota) => {
                let would = quota.used / (1.0 - self.saved_share()).max(f64::EPSILON);
                format!(
                    "{} of the {} quota instead of about {} ({less})",
                    share(quota.used),
                    quota.length,
                    share(would)
                )
            }
            None => format!("what was used of the quota is not known; {less} by prices"),
        }
    }

    /// Both, and how much less was paid.
    pub fn saved(&self) -> String {
        let (paid, through) = self.amounts();
        format!("{paid} instead of {through} ({})", less_or_more(self.saved_share()))
    }

    fn why_unbilled(&self) -> &'static str {
        let is_unreached = self.failed.get(&502).is_some_and(|count| *count == self.requests);
        match self.without_usage {
            0 if is_unreached => "the provider could not be reached",
            0 => "no model answered in a format that is read",
            _ => "no response reported its usage",
        }
    }

    /// Everything about it, line by line.
    pub fn details(&self, is_watching: bool) -> Vec<ToldLine> {
        if self.requests == 0 {
            return Vec::new();
        }
        let mut lines = self.tokens_told(is_watching);
        lines.extend(self.folds_told(is_watching));
        lines.extend(self.dearer_told().filter(|_| !is_watching));
        lines.extend(self.provider_edits.iter().map(|(kind, edits)| {
            let cleared = match edits.cleared {
                0 => String::new(),
                cleared => format!(", {} cleared", counted(cleared as usize, "part")),
            };
            let (requests, tokens) = (counted(edits.requests, "request"), thousands(edits.cleared_tokens));
            ToldLine::new(
                "provider",
                format!("{kind} in {requests}{cleared}, {tokens} tokens that the model did not see"),
            )
        }));
        lines.extend(self.memory_told());
        lines.extend(self.lean_told());
        let passed: usize = self.passed.values().sum();
        if passed > 0 {
            let told = format!("{} with nothing new decided: {}", counted(passed, "request"), reasons(&self.passed));
            lines.push(ToldLine::new("unchanged", told));
        }
        if !self.failed.is_empty() {
            let failed: Vec<String> =
                self.failed.iter().map(|(status, count)| format!("{count} with status {status}")).collect();
            lines.push(ToldLine::urgent("failed", failed.join(", ")));
        }
        let (median, worst) = self.own_us;
        let told = format!("{} ms at the median, {} ms at the 99th percentile", ms(median), ms(worst));
        lines.push(ToldLine::new("own work", told));
        lines.extend(self.begun_told());
        lines.extend(self.warnings());
        lines.extend(self.signals_told());
        lines.extend(self.cap.iter().flat_map(cap_told));
        lines.extend(self.notes.iter().map(|note| ToldLine::urgent("warning", note.clone())));
        if !self.diagnosed.is_empty() {
            lines.push(ToldLine::new("diagnosed", format!("by the provider: {}", reasons(&self.diagnosed))));
        }
        lines.extend(self.quota.iter().map(|(name, value)| ToldLine::new("quota", format!("{name}: {value}"))));
        lines
    }

    /// How long answers took to begin, beside those to unchanged requests.
    fn begun_told(&self) -> Option<ToldLine> {
        let seconds = |ms: u64| format!("{:.1} s", ms as f64 / 1_000.0);
        let unchanged = match self.held_out_begun_ms {
            Some(ms) => format!("{} in conversations that were held out", seconds(ms)),
            None => "unchanged is not known, --holdout compares".to_owned(),
        };
        let told = format!("answers began after {} at the median; {unchanged}", seconds(self.begun_ms?));
        Some(ToldLine::new("first byte", told))
    }

    /// Why more was paid than unchanged requests would have cost, if it was.
    fn dearer_told(&self) -> Option<ToldLine> {
        let share = -self.saved_share();
        let forced = self.folds.iter().filter(|fold| fold.is_forced).count();
        let why = match (forced, self.folds.len()) {
            (0, 0) => return None,
            (0, _) => "what folds save has not paid for them".to_owned(),
            _ => format!("{} made because the window was full; a larger budget needs fewer", counted(forced, "fold")),
        };
        (share > LEAST_DEARER).then(|| ToldLine::urgent("dearer", format!("{}: {why}", less_or_more(-share))))
    }

    fn warnings(&self) -> Vec<ToldLine> {
        let mut lines = Vec::new();
        if !self.dependent.is_empty() {
            let count = counted(self.dependent.len(), "conversation");
            let fit = if self.dependent.len() == 1 { "fits" } else { "fit" };
            let told = format!("{count} no longer {fit} without the gateway; the agent's own compaction ends that");
            lines.push(ToldLine::urgent("warning", told));
        }
        if self.unsaved > 0 {
            let count = counted(self.unsaved, "request");
            let told = format!("{count} lost: not in the store, so other bytes may be sent after a restart");
            lines.push(ToldLine::urgent("warning", told));
            lines.extend(self.unsaved_told());
        }
        if self.unknown > 0 {
            let count = counted(self.unknown, "request");
            let told =
                format!("{count} answered before a start are not in the store: what was sent for them is not known");
            lines.push(ToldLine::urgent("warning", told));
        }
        if self.late > 0 {
            lines.push(ToldLine::new("late", format!("{} not in the store yet", counted(self.late, "request"))));
        }
        if self.open > 0 {
            let count = counted(self.open, "request");
            let told = format!("{count}: under way, or the gateway was killed before the response had ended");
            lines.push(ToldLine::urgent("unended", told));
        }
        lines
    }

    /// The requests that could not be written, by conversation and time.
    fn unsaved_told(&self) -> Vec<ToldLine> {
        let named = self.unsaved_requests.iter().take(MOST_NAMED).map(|request| {
            let conversation = request.conversation.as_deref().unwrap_or("none");
            let moment = date::minute(std::time::Duration::from_millis(request.time_ms));
            ToldLine::new("", format!("in conversation {conversation} at {moment} UTC"))
        });
        let more = self.unsaved.saturating_sub(MOST_NAMED);
        let more = (more > 0).then(|| ToldLine::new("", format!("and {more} more; --json lists them")));
        named.chain(more).collect()
    }

    fn tokens_told(&self, is_watching: bool) -> Vec<ToldLine> {
        if self.with_usage == 0 {
            return vec![ToldLine::new("paid", format!("not known: {}", self.why_unbilled()))];
        }
        let (sent, came) = (thousands(self.sent), thousands(self.came));
        let mut lines = vec![ToldLine::new("sent", format!("{sent} of the {came} tokens that the agent wrote"))];
        if let Some(would) = self.would_send.filter(|_| is_watching) {
            let told = format!("about {} tokens, if it did more than watch", thousands(would));
            lines.push(ToldLine::new("would send", told));
        }
        if let Some((paid, through)) = self.dollars {
            let guessed = if self.has_guessed_prices() { ", by guessed prices" } else { "" };
            let (paid, through) = (dollars(paid), dollars(through));
            let told = format!("{paid} with what the model wrote; unchanged it would be about {through}{guessed}");
            lines.push(ToldLine::new("paid", told));
        }
        let (billed, through) = (thousands(self.billed as u64), thousands(self.passed_through as u64));
        let told = format!("{billed} tokens at the plain input price; unchanged it would be about {through}");
        lines.push(ToldLine::new("billed", told));
        if self.beyond > 0 && !is_watching {
            let told = format!(
                "{} came after the agent would have summarised its conversation: nothing of them counts as saved",
                counted(self.beyond, "request")
            );
            lines.push(ToldLine::new("compared", told));
        }
        let share = percent(self.cache_read as f64 / self.sent.max(1) as f64);
        lines.push(ToldLine::new("cached", format!("{share} of what was sent was read from the provider's cache")));
        lines.extend(self.models.iter().map(|(name, model)| ToldLine::new("model", model_told(name, model))));
        if self.without_usage > 0 {
            let told = format!("{} did not report their usage", counted(self.without_usage, "response"));
            lines.push(ToldLine::new("unknown", told));
        }
        lines
    }

    fn folds_told(&self, is_watching: bool) -> Vec<ToldLine> {
        let subject = if is_watching { "would fold" } else { "folded" };
        let mut lines: Vec<ToldLine> = Vec::new();
        for fold in self.folds.iter().take(MOST_FOLDS) {
            let (before, after) = (thousands(fold.before_tokens), thousands(fold.after_tokens));
            let view = fold
                .in_view
                .map(|share| format!("; {} of what was last read of files in use is in view", percent(share)));
            let told = format!("{before} tokens to {after}: {}{}", fold.reason, view.unwrap_or_default());
            lines.push(ToldLine::new(subject, told));
        }
        let unseen: BTreeSet<&String> = self.folds.iter().flat_map(|fold| &fold.unseen).collect();
        if !unseen.is_empty() {
            let names: Vec<String> = unseen.into_iter().take(MOST_FOLDS).map(|path| format!("`{path}`")).collect();
            let told =
                format!("after a fold nothing was in view of files that the agent worked on: {}", names.join(", "));
            lines.push(ToldLine::new("warning", told));
        }
        if self.folds.is_empty() {
            lines.push(ToldLine::new(subject, "nothing"));
        }
        let more = self.folds.len().saturating_sub(MOST_FOLDS) + self.more_folds;
        if more > 0 {
            lines.push(ToldLine::new(subject, format!("{more} more times")));
        }
        if !self.decided.is_empty() {
            lines.push(ToldLine::new("also", reasons(&self.decided)));
        }
        if !self.not_compared.is_empty() {
            let told = format!("files as they were seen, not compared with the disk: {}", reasons(&self.not_compared));
            lines.push(ToldLine::new("not compared", told));
        }
        lines
    }

    /// What memory added, or that it was late: somebody asked for it.
    fn memory_told(&self) -> Vec<ToldLine> {
        let memory = &self.memory;
        let mut lines = Vec::new();
        if memory.added > 0 {
            let told = format!(
                "{} added {}, {} tokens; with every later request again, about {} tokens at the plain input price in all",
                counted(memory.memories, "passage"),
                times(memory.added),
                thousands(memory.tokens),
                thousands(memory.cost as u64)
            );
            lines.push(ToldLine::urgent("memory", told));
        }
        if memory.late > 0 {
            let told = format!("was late {}: what it finds then goes with the next request", times(memory.late));
            lines.push(ToldLine::urgent("memory", told));
        }
        lines
    }

    /// What was left out of tools, and what of that was called: somebody asked for it.
    fn lean_told(&self) -> Vec<ToldLine> {
        let lean = &self.lean;
        let mut lines = Vec::new();
        if lean.tools > 0 {
            let told = format!(
                "{} left out of {}, about {} tokens of all requests, which do not count as saved",
                counted(lean.tools, "declaration"),
                counted(lean.conversations, "conversation"),
                thousands(lean.tokens)
            );
            lines.push(ToldLine::urgent("tools", told));
        }
        if !lean.missed.is_empty() {
            let told =
                format!("called although left out, and there in the next conversation: {}", reasons(&lean.missed));
            lines.push(ToldLine::urgent("tools", told));
        }
        if lean.whole > 0 {
            let count = counted(lean.whole, "conversation");
            let told = format!("the provider refused {count} without some tools, so all are sent there");
            lines.push(ToldLine::urgent("tools", told));
        }
        lines
    }

    /// Signals of harm, beside those of the conversations that were held out.
    fn signals_told(&self) -> Vec<ToldLine> {
        let said = |signals: &SignalCounts| {
            format!(
                "{} again, {} not found, {}, in {}",
                counted(signals.repeated_reads as usize, "read"),
                counted(signals.failed_edits as usize, "edit"),
                counted(signals.repeated_instructions as usize, "repeated instruction"),
                counted(signals.turns as usize, "turn")
            )
        };
        let mut lines = Vec::new();
        if self.held_out > 0 || self.signals.harm() > 0 {
            lines.push(ToldLine::new("signals", said(&self.signals)));
        }
        if self.held_out > 0 {
            let held_out = said(&self.held_out_signals);
            let told = format!("{}: {held_out}", counted(self.held_out, "conversation"));
            lines.push(ToldLine::new("held out", told));
        }
        lines
    }
}

/// How much of the cap is used.
fn cap_told(cap: &CapUse) -> Vec<ToldLine> {
    let mut lines = Vec::new();
    if !cap.day.is_none() {
        lines.push(ToldLine::urgent("cap", format!("today {}", used(&cap.day, &cap.day_spent))));
    }
    if !cap.conversation.is_none() {
        let spent = used(&cap.conversation, &cap.conversation_spent);
        lines.push(ToldLine::new("cap", format!("the conversation that spent the most {spent}")));
    }
    if cap.refused > 0 {
        lines.push(ToldLine::urgent("cap", format!("{} refused", counted(cap.refused as usize, "request"))));
    }
    if !cap.day.is_none() && cap.is_day_incomplete {
        lines.push(ToldLine::urgent("warning", "the store cannot be read, so the cap lacks what was spent before"));
    }
    let is_in_dollars = cap.day.dollars.or(cap.conversation.dollars).is_some();
    let unpriced = cap.day_spent.unpriced.max(cap.conversation_spent.unpriced);
    if is_in_dollars && unpriced > 0 {
        let count = counted(unpriced as usize, "request");
        let told = format!("the cap in dollars lacks {count} to models without a known price; [[model]] sets one");
        lines.push(ToldLine::urgent("warning", told));
    }
    lines
}

/// What is used of a cap, in words.
pub fn used(cap: &CapAmounts, spent: &Spent) -> String {
    let guessed = if spent.is_guessed { " by guessed prices" } else { "" };
    let dollars = cap.dollars.map(|cap| format!("${:.2} of ${cap:.2}{guessed}", spent.dollars));
    let tokens = cap.tokens.map(|cap| format!("{} of {} tokens", thousands(spent.tokens), thousands(cap)));
    dollars.into_iter().chain(tokens).collect::<Vec<_>>().join(", ")
}

/// What the figures about a model rest on.
fn model_told(name: &str, model: &ModelNote) -> String {
    let window = format!("{} tokens ({})", thousands(model.context), model.context_from);
    let price = match model.dollars {
        Some((input, output)) => format!("${input} and ${output} a million ({})", model.dollars_from),
        None => "price not known; [[model]] in contexture.toml sets it".to_owned(),
    };
    format!("{name}: {window}, {price}")
}

/// What is saved, as a share of what unchanged requests would have cost, in words.
pub fn less_or_more(share: f64) -> String {
    // What rounds to nothing is not called more.
    if share > -0.005 { format!("{} less", percent(share.max(0.0))) } else { format!("{} more", percent(-share)) }
}

fn reasons(reasons: &BTreeMap<String, usize>) -> String {
    let all: Vec<String> = reasons.iter().map(|(why, count)| format!("{why} ({count})")).collect();
    all.join("; ")
}

fn times(count: usize) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn tokens(billed: f64) -> String {
    format!("{} tokens", thousands(billed as u64))
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn ms(us: u64) -> String {
    format!("{:.1}", us as f64 / 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::account::record::{DecidedNote, DecisionKind};

    fn receipt() -> Receipt {
        Receipt {
            requests: 41,
            conversations: 3,
            with_usage: 41,
            changed: 30,
            sent: 1_200_000,
            came: 2_900_000,
            billed: 612_000.0,
            passed_through: 1_270_000.0,
            dollars: Some((0.61, 1.27)),
            ..Receipt::default()
        }
    }

    #[track_caller]
    fn check(receipt: &Receipt, is_watching: bool, expected: &str) {
        let told = receipt.told(is_watching);
        assert_eq!(told, expected);
        assert!("contexture: ".len() + told.chars().count() <= 80, "it fits on a line of 80 columns");
    }

    #[test]
    fn one_sentence_says_what_was_paid_and_what_it_would_have_been() {
        check(&receipt(), false, "$0.61 instead of $1.27 (52 % less), 41 requests, 3 conversations");
        // What the model wrote costs the same, so less is saved of all than of the input.
        let with_output = Receipt { dollars: Some((1.61, 2.27)), ..receipt() };
        check(&with_output, false, "$1.61 instead of $2.27 (29 % less), 41 requests, 3 conversations");
        let unpriced = Receipt { dollars: None, ..receipt() };
        let told = unpriced.told(false);
        assert!(told.starts_with("612 000 tokens instead of 1 270 000 tokens (52 % less), 41 requests"), "{told}");
        let one = Receipt { requests: 1, conversations: 1, changed: 0, dollars: Some((0.0042, 0.0042)), ..receipt() };
        check(&one, false, "$0.0042, 1 request, 1 conversation; nothing was changed");
        let watched = Receipt { changed: 0, would_send: Some(1_450_000), ..receipt() };
        check(&watched, true, "$0.61, 41 requests, 3 conversations; would have sent 50 % less");
        check(&Receipt::default(), false, "no request was seen: nothing passed through the gateway");
        let unread = Receipt { with_usage: 0, without_usage: 2, ..one };
        check(&unread, false, "1 request, 1 conversation; no response reported its usage");
    }

    #[test]
    fn on_a_plan_the_share_of_the_quota_comes_first() {
        use crate::report::quota::QuotaUse;
        let plan = Receipt { on_plan: 41, ..receipt() };
        let unknown = "what was used of the quota is not known; 52 % less by prices, 41 requests, 3 conversations";
        assert_eq!(plan.told(false), unknown);
        let used = |used: f64| {
            let quota = QuotaUse { length: "5-hour".to_owned(), first: 0.1, now: 0.1 + used, used };
            let quota_used = BTreeMap::from([("anthropic-ratelimit-unified-5h-utilization".to_owned(), quota)]);
            Receipt { quota_used, ..plan.clone() }
        };
        let told = "12 % of the 5-hour quota instead of about 25 % (52 % less), 41 requests, 3 conversations";
        assert_eq!(used(0.12).told(false), told);
        let told = "under 1 % of the 5-hour quota instead of about under 1 % (52 % less), 41 requests, 3 conversations";
        assert_eq!(used(0.004).told(false), told);
        let some = Receipt { on_plan: 40, ..used(0.12) };
        check(&some, false, "$0.61 instead of $1.27 (52 % less), 41 requests, 3 conversations");
    }

    #[test]
    fn what_memory_did_is_told_without_being_asked_for() {
        let mut with_memory = receipt();
        let told = |receipt: &Receipt| {
            let lines = receipt.details(false).into_iter().filter(|line| line.is_urgent);
            lines.map(|line| format!("{}: {}", line.subject, line.text)).collect::<Vec<_>>()
        };
        with_memory.memory.late = 1;
        let late = "memory: was late once: what it finds then goes with the next request";
        assert_eq!(told(&with_memory), [late]);
        (with_memory.memory.added, with_memory.memory.memories, with_memory.memory.tokens) = (1, 3, 412);
        let [added, _] = &told(&with_memory)[..] else { panic!("{:?}", told(&with_memory)) };
        assert!(added.starts_with("memory: 3 passages added once, 412 tokens"), "{added}");
    }

    #[test]
    fn only_what_a_person_has_to_know_is_urgent() {
        let urgent = |receipt: &Receipt| {
            let lines = receipt.details(false).into_iter().filter(|line| line.is_urgent);
            lines.map(|line| line.text).collect::<Vec<_>>()
        };
        assert_eq!(urgent(&receipt()), Vec::<String>::new());
        let fold = |is_forced: bool| DecidedNote {
            is_forced,
            ..DecidedNote::new(DecisionKind::Fold, if is_forced { "the window is full" } else { "it pays" })
        };
        let dearer = |folds: Vec<DecidedNote>| urgent(&Receipt { dollars: Some((1.4, 1.27)), folds, ..receipt() });
        let told = "10 % more: 2 folds made because the window was full; a larger budget needs fewer";
        assert_eq!(dearer(vec![fold(true), fold(false), fold(true)]), [told]);
        assert_eq!(dearer(vec![fold(false)]), ["10 % more: what folds save has not paid for them"]);
        assert_eq!(dearer(Vec::new()), Vec::<String>::new());
        let bad = Receipt { failed: BTreeMap::from([(529, 2)]), dependent: vec!["c".to_owned()], ..receipt() };
        let told = [
            "2 with status 529",
            "1 conversation no longer fits without the gateway; the agent's own compaction ends that",
        ];
        assert_eq!(urgent(&bad), told);
    }
}
