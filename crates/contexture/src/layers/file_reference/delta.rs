//! How one message `# Referenced Files` differs from another, by file.

use std::collections::HashMap;

/// A correction is used only if it is at most this part of the whole: four fifths.
const WORTH: (usize, usize) = (4, 5);

const SAME: &str = "# Referenced Files: update\n\nThe files above are unchanged; only their order by priority is new.";

/// The text that tells a reader of `pinned` what `current` says. `None` if it is hardly shorter than `current`.
pub(super) fn delta(pinned: &str, current: &str) -> Option<String> {
    let (before, after) = (sections(pinned), sections(current));
    let known: HashMap<&str, &str> = before.iter().copied().collect();
    let present: HashMap<&str, &str> = after.iter().copied().collect();
    let mut text = String::new();
    for (key, section) in &after {
        if known.get(key) != Some(section) {
            text.push_str(section);
            text.push_str("\n\n");
        }
    }
    let mut removed: Vec<&str> = before.iter().map(|(key, _)| *key).filter(|key| !present.contains_key(key)).collect();
    removed.sort_unstable();
    for key in removed {
        let note = if key.starts_with("## `") { "no longer shown" } else { "no longer true" };
        text.push_str(&format!("- {}: {note}\n", key.trim_start_matches("## ")));
    }
    if text.is_empty() {
        return Some(SAME.to_owned());
    }
    let text =
        format!("# Referenced Files: update\n\nThe following replaces what stands above.\n\n{}", text.trim_end());
    (text.len() / WORTH.0 < current.len() / WORTH.1).then_some(text)
}

/// The sections of a message, each with its subject. Headings inside a fence are ignored.
fn sections(text: &str) -> Vec<(&str, &str)> {
    let mut starts = Vec::new();
    let mut fence: Option<&str> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end_matches('\n');
        match fence {
            Some(open) if bare == open => fence = None,
            Some(_) => {}
            None if bare.starts_with("## ") => starts.push((at, subject(bare))),
            None => fence = opened(bare),
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).map(|(start, _)| *start).chain([text.len()]);
    starts.iter().zip(ends).map(|((start, subject), end)| (*subject, text[*start..end].trim_end())).collect()
}

/// The fence that a line opens.
fn opened(line: &str) -> Option<&str> {
    let mark = line.chars().next().filter(|mark| matches!(mark, '`' | '~'))?;
    let length = line.len() - line.trim_start_matches(mark).len();
    (length >= 3).then(|| &line[..length])
}

/// The subject of a heading: the path in backticks, or all of it.
fn subject(heading: &str) -> &str {
    match heading.match_indices('`').nth(1) {
        Some((end, _)) => &heading[..=end],
        None => heading,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(files: &[(&str, &str)]) -> String {
        let mut text = "# Referenced Files\n\n".to_owned();
        for (path, body) in files {
            text.push_str(&format!("## `{path}` {{#x}}\n\n````rust\n{body}\n````\n\n"));
        }
        text.trim_end().to_owned()
    }

    #[test]
    fn one_changed_file_of_many_is_told_alone() {
        let body = "line\n".repeat(50);
        let pinned = message(&[("a.rs", &body), ("b.rs", "old"), ("c.rs", &body)]);
        let current = message(&[("a.rs", &body), ("b.rs", "new"), ("c.rs", &body)]);
        let delta = delta(&pinned, &current).unwrap();
        assert_eq!(
            delta,
            "# Referenced Files: update\n\nThe following replaces what stands above.\n\n## `b.rs` {#x}\n\n````rust\nnew\n````"
        );
    }

    #[test]
    fn files_that_are_gone_are_named() {
        let body = "line\n".repeat(50);
        let pinned = message(&[("a.rs", &body), ("b.rs", "old")]);
        let current = message(&[("a.rs", &body)]);
        assert!(delta(&pinned, &current).unwrap().ends_with("- `b.rs`: no longer shown"));
    }

    #[test]
    fn headings_in_fences_are_text() {
        let hostile = "x\n```\n## `b.rs` {#x}\n\n````\n".trim_end_matches("````\n");
        let body = "line\n".repeat(50);
        let pinned = message(&[("a.rs", hostile), ("b.rs", &body)]);
        assert_eq!(sections(&pinned).len(), 2);
        let current = message(&[("a.rs", hostile), ("b.rs", &body), ("c.rs", "new")]);
        assert!(delta(&pinned, &current).unwrap().contains("`c.rs`"));
        assert!(!delta(&pinned, &current).unwrap().contains("`a.rs`"));
    }

    #[test]
    fn only_a_new_order_is_a_short_word() {
        let body = "line\n".repeat(50);
        let pinned = message(&[("a.rs", &body), ("b.rs", &body)]);
        let current = message(&[("b.rs", &body), ("a.rs", &body)]);
        assert_eq!(delta(&pinned, &current).as_deref(), Some(SAME));
    }

    #[test]
    fn what_is_hardly_shorter_is_not_worth_it() {
        let pinned = message(&[("a.rs", "old")]);
        let current = message(&[("a.rs", "new")]);
        assert_eq!(delta(&pinned, &current), None);
    }
}
