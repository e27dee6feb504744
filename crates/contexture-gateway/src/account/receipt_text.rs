//! Receipts as people read them.

use super::cap::{CapAmounts, CapUse, Spent};
use super::receipt::{ModelNote, Receipt};
use super::signals::SignalCounts;

/// Most requests that are named because they could not be written.
const MOST_NAMED: usize = 10;

/// A receipt of some lines; without requests it says that nothing was seen.
pub fn receipt(receipt: &Receipt, is_watching: bool) -> String {
    if receipt.requests == 0 {
        return "contexture: no request was seen: nothing passed through the gateway\n".to_owned();
    }
    let mut lines = vec![format!(
        "contexture: {} in {} passed through",
        count(receipt.requests, "request"),
        count(receipt.conversations, "conversation")
    )];
    lines.extend(tokens(receipt, is_watching));
    lines.extend(folds(receipt, is_watching));
    lines.extend(receipt.provider_edits.iter().map(|(kind, edits)| {
        let cleared = if edits.cleared > 0 {
            format!(", {} cleared", count(edits.cleared as usize, "part"))
        } else {
            String::new()
        };
        format!(
            "  provider   {kind} in {}{cleared}, {} tokens that the model did not see",
            count(edits.requests, "request"),
            thousands(edits.cleared_tokens)
        )
    }));
    lines.extend(memory(receipt));
    let passed: usize = receipt.passed.values().sum();
    if passed > 0 {
        lines.push(format!(
            "  passed     {} with nothing new decided: {}",
            count(passed, "request"),
            reasons(&receipt.passed)
        ));
    }
    if !receipt.failed.is_empty() {
        let failed: Vec<String> =
            receipt.failed.iter().map(|(status, count)| format!("{count} with status {status}")).collect();
        lines.push(format!("  failed     {}", failed.join(", ")));
    }
    let (median, worst) = receipt.own_us;
    lines.push(format!("  own work   {} ms at the median, {} ms at the 99th percentile", ms(median), ms(worst)));
    if !receipt.dependent.is_empty() {
        lines.push(format!(
            "  warning    {} no longer fit without the gateway; the agent's own compaction ends that",
            count(receipt.dependent.len(), "conversation")
        ));
    }
    if receipt.unsaved > 0 {
        lines.push(format!(
            "  warning    {} could not be written to the store; after a restart other bytes may be sent",
            count(receipt.unsaved, "request")
        ));
        lines.extend(unsaved(receipt));
    }
    if receipt.open > 0 {
        lines.push(format!(
            "  unended    {}: under way, or the gateway was killed before the response had ended",
            count(receipt.open, "request")
        ));
    }
    lines.extend(signals(receipt));
    lines.extend(receipt.cap.iter().flat_map(cap));
    lines.extend(receipt.notes.iter().map(|note| format!("  warning    {note}")));
    if !receipt.diagnosed.is_empty() {
        lines.push(format!("  diagnosed  by the provider: {}", reasons(&receipt.diagnosed)));
    }
    for (name, value) in &receipt.quota {
        lines.push(format!("  quota      {name}: {value}"));
    }
    lines.push(String::new());
    lines.join("\n")
}

/// Signals of harm, beside those of the conversations that were held out.
fn signals(receipt: &Receipt) -> Vec<String> {
    let said = |signals: &SignalCounts| {
        format!(
            "{} again, {} not found, {}, in {}",
            count(signals.repeated_reads as usize, "read"),
            count(signals.failed_edits as usize, "edit"),
            count(signals.repeated_instructions as usize, "repeated instruction"),
            count(signals.turns as usize, "turn")
        )
    };
    let mut lines = Vec::new();
    if receipt.held_out > 0 || receipt.signals.harm() > 0 {
        lines.push(format!("  signals    {}", said(&receipt.signals)));
    }
    if receipt.held_out > 0 {
        let held_out = said(&receipt.held_out_signals);
        lines.push(format!("  held out   {}: {held_out}", count(receipt.held_out, "conversation")));
    }
    lines
}

/// How much of the cap is used.
fn cap(cap: &CapUse) -> Vec<String> {
    let mut lines = Vec::new();
    if !cap.day.is_none() {
        lines.push(format!("  cap        today {}", used(&cap.day, &cap.day_spent)));
    }
    if !cap.conversation.is_none() {
        let spent = used(&cap.conversation, &cap.conversation_spent);
        lines.push(format!("  cap        the conversation that spent the most {spent}"));
    }
    if cap.refused > 0 {
        lines.push(format!("  cap        {} refused", count(cap.refused as usize, "request")));
    }
    if !cap.day.is_none() && cap.is_day_incomplete {
        lines.push("  warning    the store cannot be read, so the cap lacks what was spent before".to_owned());
    }
    let is_in_dollars = cap.day.dollars.or(cap.conversation.dollars).is_some();
    let unpriced = cap.day_spent.unpriced.max(cap.conversation_spent.unpriced);
    if is_in_dollars && unpriced > 0 {
        lines.push(format!(
            "  warning    the cap in dollars lacks {} to models without a known price; [[model]] sets one",
            count(unpriced as usize, "request")
        ));
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

/// What memory added.
fn memory(receipt: &Receipt) -> Vec<String> {
    let memory = &receipt.memory;
    let mut lines = Vec::new();
    if memory.added > 0 {
        lines.push(format!(
            "  memory     {} added {} times, {} tokens; with every later request again, about {} tokens at the plain input \
             price in all",
            count(memory.memories, "passage"),
            memory.added,
            thousands(memory.tokens),
            thousands(memory.cost as u64)
        ));
    }
    if memory.late > 0 {
        lines.push(format!("  memory     nothing was added {} times, since it took too long", memory.late));
    }
    lines
}

/// The requests that could not be written, by conversation and time.
fn unsaved(receipt: &Receipt) -> Vec<String> {
    let named = receipt.unsaved_requests.iter().take(MOST_NAMED).map(|request| {
        let conversation = request.conversation.as_deref().unwrap_or("none");
        format!("             in conversation {conversation} at {}", moment(request.time_ms))
    });
    let more = receipt.unsaved.saturating_sub(MOST_NAMED);
    let more = (more > 0).then(|| format!("             and {more} more; --json lists them"));
    named.chain(more).collect()
}

/// A time of the day in UTC.
fn moment(time_ms: u64) -> String {
    let seconds = time_ms / 1_000 % 86_400;
    format!("{:02}:{:02}:{:02} UTC", seconds / 3_600, seconds / 60 % 60, seconds % 60)
}

fn tokens(receipt: &Receipt, is_watching: bool) -> Vec<String> {
    if receipt.with_usage == 0 {
        let why = match receipt.without_usage {
            0 => "nothing: no model answered in a format that is read",
            _ => "unknown: no response reported its usage",
        };
        return vec![format!("  billed     {why}")];
    }
    let mut lines = Vec::new();
    let unsent = receipt.came.saturating_sub(receipt.sent);
    lines.push(format!(
        "  sent       {} tokens of {} that came; {} not sent ({})",
        thousands(receipt.sent),
        thousands(receipt.came),
        thousands(unsent),
        percent(unsent as f64 / receipt.came.max(1) as f64)
    ));
    if let Some(would) = receipt.would_send.filter(|_| is_watching) {
        lines.push(format!("  would send {} tokens by our own count, if it did more than watch", thousands(would)));
    }
    let less = less_or_more(receipt.saved_share());
    let dollars = receipt
        .dollars
        .map_or(String::new(), |(paid, through)| format!("; ${paid:.2} against ${through:.2}, output included"));
    let dollars = if receipt.has_guessed_prices() && !dollars.is_empty() {
        format!("{dollars}, by guessed prices")
    } else {
        dollars
    };
    lines.push(format!(
        "  billed     {} tokens at the plain input price, pass-through {} ({less}){dollars}",
        thousands(receipt.billed as u64),
        thousands(receipt.passed_through as u64)
    ));
    lines.push(format!(
        "  cached     {} of what was sent was read from the provider's cache",
        percent(receipt.cache_read as f64 / receipt.sent.max(1) as f64)
    ));
    lines.extend(receipt.models.iter().map(|(name, model)| model_line(name, model)));
    if receipt.without_usage > 0 {
        lines.push(format!("  unknown    {} said nothing of what they took", count(receipt.without_usage, "answer")));
    }
    lines
}

/// What the figures about a model rest on.
fn model_line(name: &str, model: &ModelNote) -> String {
    let window = format!("{} tokens ({})", thousands(model.context), model.context_from);
    let price = match model.dollars {
        Some((input, output)) => format!("${input} and ${output} a million ({})", model.dollars_from),
        None => "price not known; [[model]] in contexture.toml sets it".to_owned(),
    };
    format!("  model      {name}: {window}, {price}")
}

fn folds(receipt: &Receipt, is_watching: bool) -> Vec<String> {
    let would = if is_watching { "would fold" } else { "folded" };
    let mut lines: Vec<String> = Vec::new();
    for fold in &receipt.folds {
        lines.push(format!(
            "  {would:<10} {} tokens to {}: {}",
            thousands(fold.before_tokens),
            thousands(fold.after_tokens),
            fold.reason
        ));
    }
    if receipt.folds.is_empty() {
        lines.push(format!("  {would:<10} nothing"));
    }
    if receipt.more_folds > 0 {
        lines.push(format!("  {would:<10} {} more times", receipt.more_folds));
    }
    if !receipt.decided.is_empty() {
        lines.push(format!("  also       {}", reasons(&receipt.decided)));
    }
    lines
}

fn reasons(reasons: &std::collections::BTreeMap<String, usize>) -> String {
    let all: Vec<String> = reasons.iter().map(|(why, count)| format!("{why} ({count})")).collect();
    all.join("; ")
}

fn count(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

fn percent(share: f64) -> String {
    format!("{:.0} %", share * 100.0)
}

fn ms(us: u64) -> String {
    format!("{:.1}", us as f64 / 1_000.0)
}

/// What is saved, as a share of pass-through's bill, in words.
pub fn less_or_more(share: f64) -> String {
    // What rounds to nothing is not called more.
    if share > -0.005 { format!("{} less", percent(share.max(0.0))) } else { format!("{} more", percent(-share)) }
}

/// A number in groups of three digits.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(' ');
        }
        text.push(digit);
    }
    text
}
