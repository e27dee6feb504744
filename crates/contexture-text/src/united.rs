//! One text of two that were edited at the same time, from the one that both were made of.

use std::collections::HashMap;

/// The text with what both writers changed, line by line.
///
/// Where both changed the same lines, every line that either added is kept, and what either removed is gone.
///
/// ```text
/// base   ours   theirs   united
/// a      a      b1       b1
/// b      b      b        b
/// c      c1     c        c1
/// ```
pub fn united(base: &str, ours: &str, theirs: &str) -> String {
    let (base_lines, our_lines, their_lines): (Vec<&str>, Vec<&str>, Vec<&str>) =
        (base.lines().collect(), ours.lines().collect(), theirs.lines().collect());
    let (our, their) = (WriterChange::of(&base_lines, &our_lines), WriterChange::of(&base_lines, &their_lines));
    let (first, second) = if our.start <= their.start { (&our, &their) } else { (&their, &our) };
    let is_apart = first.end <= second.start && first.start < second.end;
    let lines = match is_apart {
        true => [
            &base_lines[..first.start],
            first.lines,
            &base_lines[first.end..second.start],
            second.lines,
            &base_lines[second.end..],
        ]
        .concat(),
        false => {
            let (start, end) = (first.start, our.end.max(their.end));
            let (ours, theirs) = (our.widened(&base_lines, start, end), their.widened(&base_lines, start, end));
            let middle = united_lines(&base_lines[start..end], &ours, &theirs);
            [&base_lines[..start], middle.as_slice(), &base_lines[end..]].concat()
        }
    };
    let end = if lines.is_empty() || !(ours.ends_with('\n') || theirs.ends_with('\n')) { "" } else { "\n" };
    format!("{}{end}", lines.join("\n"))
}

/// What a writer changed: lines of the base, from the first changed to the last, and what is there instead.
struct WriterChange<'a> {
    start: usize,
    end: usize,
    lines: &'a [&'a str],
}

impl<'a> WriterChange<'a> {
    fn of(base: &[&str], changed: &'a [&'a str]) -> Self {
        let start = base.iter().zip(changed).take_while(|(one, other)| one == other).count();
        let most = base.len().min(changed.len()) - start;
        let same =
            base.iter().rev().zip(changed.iter().rev()).take(most).take_while(|(one, other)| one == other).count();
        Self { start, end: base.len() - same, lines: &changed[start..changed.len() - same] }
    }

    /// The same lines, with those of the base around them.
    fn widened(&self, base: &[&'a str], start: usize, end: usize) -> Vec<&'a str> {
        [&base[start..self.start], self.lines, &base[self.end..end]].concat()
    }
}

/// Lines that both changed: theirs, without those that we removed, and with those that we added where we have them.
fn united_lines<'a>(base: &[&'a str], ours: &[&'a str], theirs: &[&'a str]) -> Vec<&'a str> {
    let (mut removed, mut added) = (surplus(base, ours), surplus(ours, base));
    let mut lines: Vec<&str> = theirs.iter().copied().filter(|line| !take(&mut removed, line)).collect();
    // What both added is one line.
    for line in surplus(theirs, base).into_keys() {
        added.remove(line);
    }
    let mut at = 0;
    for line in ours {
        if take(&mut added, line) {
            lines.insert(at, line);
            at += 1;
        } else if let Some(found) = lines[at..].iter().position(|other| other == line) {
            at += found + 1;
        }
    }
    lines
}

/// How many more of each line there are in one list than in the other.
fn surplus<'a>(lines: &[&'a str], other: &[&str]) -> HashMap<&'a str, usize> {
    let mut surplus: HashMap<&str, usize> = HashMap::new();
    for line in lines {
        *surplus.entry(line).or_default() += 1;
    }
    for line in other {
        take(&mut surplus, line);
    }
    surplus.retain(|_, count| *count > 0);
    surplus
}

/// Takes a line away; `false` if there is none.
fn take(counts: &mut HashMap<&str, usize>, line: &str) -> bool {
    match counts.get_mut(line) {
        Some(count) if *count > 0 => {
            *count -= 1;
            true
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(base: &str, ours: &str, theirs: &str, expected: &str) {
        let text = |words: &str| words.split_whitespace().map(|word| format!("{word}\n")).collect::<String>();
        assert_eq!(united(&text(base), &text(ours), &text(theirs)), text(expected));
    }

    #[test]
    fn both_edits_are_made() {
        check("a b c", "a b c1", "b1 b c", "b1 b c1");
        check("a b c", "x a b c", "y a b c", "x y a b c");
        check("a b c", "a b c x", "a b c y", "a b c x y");
        check("a b c", "a c", "a b c d", "a c d");
        check("a b c", "a x c", "a y c", "a x y c");
        check("", "x", "y", "x y");
        check("a b", "", "a b c", "c");
        check("a b c d", "a1 b c d1", "a b x c d", "a1 b x c d1");
        check("a", "a x", "a x", "a x");
    }

    proptest! {
        #[test]
        fn no_line_that_either_added_is_lost(
            base in proptest::collection::vec("[a-c]", 0..8),
            ours in proptest::collection::vec("[a-c1-3]", 0..8),
            theirs in proptest::collection::vec("[a-c4-6]", 0..8),
        ) {
            let text = |lines: &[String]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
            let united = united(&text(&base), &text(&ours), &text(&theirs));
            for line in ours.iter().chain(&theirs).filter(|line| "123456".contains(line.as_str())) {
                prop_assert!(united.lines().any(|other| other == line), "`{}` is lost in {:?}", line, united);
            }
        }

        #[test]
        fn a_text_that_only_one_changed_is_that_one(base in "([ab]\n){0,6}", ours in "([abc]\n){0,6}") {
            prop_assert_eq!(united(&base, &ours, &base), ours.clone());
            prop_assert_eq!(united(&base, &base, &ours), ours);
        }
    }
}
