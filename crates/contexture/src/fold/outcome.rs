//! How a call ended, in few words.

use super::cap::says_error;
use crate::files::observation::{Kind, Seen};

/// How a call ended; empty if there is nothing to tell.
pub(super) fn outcome(seen: &Seen, result: &str) -> String {
    if seen.failed {
        let first = result.lines().map(str::trim).find(|line| !line.is_empty());
        return format!("failed: {}", first.unwrap_or("no output"));
    }
    if seen.kind != Kind::Run {
        return String::new();
    }
    result.lines().find(|line| says_error(line)).map(|line| line.trim().to_owned()).unwrap_or_default()
}
