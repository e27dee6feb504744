//! Receipts as people read them.

use contexture_gateway::Receipt;
use contexture_gateway::account::receipt::ModelNote;

/// A receipt of some lines; without requests it says that nothing was seen.
pub(super) fn receipt(receipt: &Receipt, is_watching: bool) -> String {
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
    }
    if !receipt.diagnosed.is_empty() {
        lines.push(format!("  diagnosed  by the provider: {}", reasons(&receipt.diagnosed)));
    }
    for (name, value) in &receipt.quota {
        lines.push(format!("  quota      {name}: {value}"));
    }
    lines.push(String::new());
    lines.join("\n")
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
pub(super) fn less_or_more(share: f64) -> String {
    // What rounds to nothing is not called more.
    if share > -0.005 { format!("{} less", percent(share.max(0.0))) } else { format!("{} more", percent(-share)) }
}

/// A number in groups of three digits.
pub(super) fn thousands(number: u64) -> String {
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
