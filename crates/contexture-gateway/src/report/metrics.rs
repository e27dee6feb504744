//! Metrics for Prometheus.

use std::fmt::Write;

use crate::options::Options;
use crate::report::receipt::Receipt;

/// The metrics of a run in the text format of Prometheus.
pub(crate) fn metrics(receipt: &Receipt, options: &Options) -> String {
    let watched = if options.observe { "observed" } else { "sent" };
    let mut text = String::new();
    let mut add = |name: &str, help: &str, value: f64| {
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "# HELP contexture_{name} {help}\n# TYPE contexture_{name} counter\ncontexture_{name}{{mode=\"{watched}\"}} {value}\n"
        );
    };
    add("requests_total", "Requests that passed through.", receipt.requests as f64);
    add("changed_requests_total", "Requests that were sent otherwise than they came.", receipt.changed as f64);
    add("sent_tokens_total", "Input tokens that were sent.", receipt.sent as f64);
    add("came_tokens_total", "Input tokens that pass-through would have sent.", receipt.came as f64);
    add("billed_tokens_total", "Input billed, in tokens at the plain input price.", receipt.billed);
    add("passed_through_tokens_total", "What pass-through would have been billed.", receipt.passed_through);
    add("cache_read_tokens_total", "Input tokens read from the provider's cache.", receipt.cache_read as f64);
    add("output_tokens_total", "Output tokens.", receipt.output as f64);
    add("folds_total", "Folds of the past.", receipt.fold_count() as f64);
    text
}
