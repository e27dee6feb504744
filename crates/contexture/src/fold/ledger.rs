//! What was done, in short lines.

use crate::files::observation::{Kind, Seen};
use crate::transcript::ToolCall;

/// One line for every call that is worth one.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    entries: Vec<(usize, String)>,
}

impl Ledger {
    /// Notes a finished call.
    pub fn note(&mut self, at: usize, call: &ToolCall, seen: &Seen, _result: &str) {
        let outcome = if seen.failed { " (failed)" } else { "" };
        let line = match (seen.kind, &seen.command, seen.paths.first()) {
            (Kind::Run, Some(command), _) => {
                let first: String = command.lines().next().unwrap_or_default().chars().take(100).collect();
                format!("ran `{first}`{outcome}")
            }
            (Kind::Read, _, Some(path)) => format!("read {path}{outcome}"),
            (Kind::Edit, _, Some(path)) => format!("edited {path}{outcome}"),
            (Kind::Write, _, Some(path)) => format!("wrote {path}{outcome}"),
            _ => format!("called {}{outcome}", call.name),
        };
        self.entries.push((at, line));
    }

    /// The newest lines before a message that fit.
    pub fn render(&self, before: usize, bytes: usize) -> String {
        let mut left = bytes;
        let mut lines: Vec<&str> = Vec::new();
        for (_, line) in self.entries.iter().rev().filter(|(at, _)| *at < before) {
            if line.len() + 1 > left {
                break;
            }
            if lines.last() == Some(&line.as_str()) {
                continue;
            }
            left -= line.len() + 1;
            lines.push(line);
        }
        lines.reverse();
        lines.join("\n")
    }
}
