//! What a text is that a fold wrote, and which lines of files it shows: the reader's side of [`view`](crate::view).
//!
//! A window is shown to people as it was sent, so it is read from the text itself. Contents are fenced and paths stay on
//! one line, so nothing in a file can pass for a heading.

use contexture_files::model::Fact;

/// How the title of a part of the view begins; the number of the message follows.
pub(crate) const FILES_TITLE: &str = "# Files as you know them at message ";

/// How every chapter of the account of the earlier conversation begins.
pub const ACCOUNT_START: &str = "[Contexture's account of the earlier conversation";

/// The title of lines that are brought back.
pub(crate) const BROUGHT_BACK_TITLE: &str = "# What you know of this file besides\n";

/// The title of what earlier outputs said.
pub(crate) const ECHOES_TITLE: &str = "# What earlier outputs said of what was just named\n";

/// The title of outlines.
pub(crate) const OUTLINE_TITLE: &str = "# What you know besides, to be read again when needed\n";

/// The title of the list of changed files.
pub(crate) const CHANGED_TITLE: &str = "# What you changed";

/// The title of what changed on the disk.
pub(crate) const LOST_TITLE: &str = "# What changed on disk since you read it";

/// How a heading says that lines were compared with the disk.
pub(crate) const VERIFIED: &str = "verified on disk";

/// How a heading begins to say at which messages lines were seen.
pub(crate) const SEEN: &str = "as you saw or wrote it at";

/// How a heading begins to say that the file changed since.
pub(crate) const CHANGED: &str = "changed since";

/// How the sentence began, until version 4, that named commands that ran since a part was written.
const PRESUMED_START: &str = "Since message ";

/// How the sentence begins that says what does not fit.
pub(crate) const LEFT_OUT_START: &str = "Some of your own changes";

/// How notes to the model begin.
const NOTE_START: &str = "[Contexture's note: ";

/// The title of files that a message names, which layers and gateways write.
const REFERENCES_TITLE: &str = "# Referenced Files";

/// What a text is that a fold wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Written {
    /// Lines of files.
    Views,
    /// The account of the earlier conversation; before there was one, records of calls.
    Records,
    /// Lines of a file, brought back because the file was touched or named.
    BroughtBack,
    /// What earlier outputs said of something that was named.
    Echoes,
    /// What was changed, what else is known, and what does not fit.
    Digest,
    /// Files that a message names.
    References,
    /// A sentence that keeps messages apart.
    Note,
    /// Anything else, such as a message that was cut.
    Other,
}

impl Written {
    /// What a text is.
    pub fn of(text: &str) -> Self {
        let starts: [(&str, Written); 12] = [
            (FILES_TITLE, Written::Views),
            (ACCOUNT_START, Written::Records),
            (crate::brief::MARK_NOTE, Written::Digest),
            (crate::records::RECORDS_MARK, Written::Records),
            (BROUGHT_BACK_TITLE, Written::BroughtBack),
            (ECHOES_TITLE, Written::Echoes),
            (OUTLINE_TITLE, Written::Digest),
            (CHANGED_TITLE, Written::Digest),
            (LOST_TITLE, Written::Digest),
            (LEFT_OUT_START, Written::Digest),
            (NOTE_START, Written::Note),
            (REFERENCES_TITLE, Written::References),
        ];
        let found = starts.into_iter().find(|(start, _)| text.starts_with(start)).map(|(_, written)| written);
        let is_presumed = || text.strip_prefix(PRESUMED_START).is_some_and(|rest| rest.contains(" these ran, and are"));
        found.unwrap_or_else(|| if is_presumed() { Written::Digest } else { Written::Other })
    }

    /// Whether it shows lines of files.
    pub fn has_views(self) -> bool {
        matches!(self, Written::Views | Written::BroughtBack | Written::References)
    }
}

/// Lines of a file that a text shows, as the model is told of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToldLines {
    /// The path, as the text has it.
    pub path: String,
    /// The number of the first line, where that is certain.
    pub first: Option<usize>,
    /// How many lines.
    pub count: usize,
    /// Whether these are all lines of the file.
    pub is_whole: bool,
    /// What is said of them.
    pub fact: Fact,
    /// The first and the last message at which they were seen or written, if that is said.
    pub moments: Option<(u32, u32)>,
    /// What changed the file since; of windows until version 4 also what may have.
    pub cause: Option<String>,
    /// Whether the text says that the file changed on the disk since.
    pub has_changed_on_disk: bool,
}

/// The lines of files that a text shows, in its order.
pub fn told_lines(text: &str) -> Vec<ToldLines> {
    let written = Written::of(text);
    if !written.has_views() {
        return Vec::new();
    }
    let mut told = Vec::new();
    let mut lines = text.lines();
    let mut heading: Option<Heading> = None;
    let mut run: Option<RunTold> = None;
    while let Some(line) = lines.next() {
        if is_fence(line) {
            let count = body_of(&mut lines, line);
            if let Some(heading) = &heading {
                heading.tell(run.take(), count, &mut told);
            }
        } else if let Some(found) = Heading::read(line, written) {
            (heading, run) = (Some(found), None);
        } else if let Some(found) = RunTold::read(line) {
            run = Some(found);
        }
    }
    told
}

/// Whether a line opens or closes contents: backticks, and then perhaps a language.
fn is_fence(line: &str) -> bool {
    let rest = line.trim_start_matches('`');
    line.len() - rest.len() >= 3
        && rest.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-_#.".contains(letter))
}

/// Passes over contents. Returns how many lines they have.
fn body_of(lines: &mut std::str::Lines<'_>, opened: &str) -> usize {
    let fence = &opened[..opened.len() - opened.trim_start_matches('`').len()];
    lines.by_ref().take_while(|line| *line != fence).count()
}

/// What a heading says of a file.
struct Heading {
    path: String,
    is_whole: bool,
    said: Said,
    regions: Vec<RegionTold>,
    has_changed_on_disk: bool,
}

/// Some lines that are known differently.
struct RegionTold {
    first: usize,
    last: usize,
    said: Said,
}

/// What is said of lines.
#[derive(Clone, Default)]
struct Said {
    fact: Fact,
    moments: Option<(u32, u32)>,
    cause: Option<String>,
}

/// What is written before a run of lines.
struct RunTold {
    first: Option<usize>,
    /// What is said of all of them.
    all: Option<Said>,
    regions: Vec<RegionTold>,
}

impl Heading {
    fn read(line: &str, written: Written) -> Option<Self> {
        let rest = line.strip_prefix("## `")?;
        if written == Written::References {
            // The file as it was on the disk when the message came.
            let path = &rest[..rest.rfind('`')?];
            let said = Said { fact: Fact::Verified, ..Said::default() };
            return Some(Self {
                path: path.to_owned(),
                is_whole: false,
                said,
                regions: Vec::new(),
                has_changed_on_disk: false,
            });
        }
        // A path may have backticks and look like what follows it; a cause has none, so the last place is the right one.
        let (path, rest) = rest.rmatch_indices("`: ").find_map(|(at, sign)| {
            let after = &rest[at + sign.len()..];
            let counted = after.strip_prefix("whole file, ").unwrap_or(after);
            counted.starts_with(|letter: char| letter.is_ascii_digit()).then_some((&rest[..at], after))
        })?;
        let (is_whole, rest) = match rest.strip_prefix("whole file, ") {
            Some(rest) => (true, rest),
            None => (false, rest),
        };
        let rest = rest.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let rest = rest.strip_prefix(" lines, ").or_else(|| rest.strip_prefix(" line, "))?;
        let (said, rest) = said_in(rest)?;
        let regions = regions_in(rest);
        let has_changed_on_disk = rest.contains("; changed on disk since you read it");
        Some(Self { path: path.to_owned(), is_whole, said, regions, has_changed_on_disk })
    }

    fn tell(&self, run: Option<RunTold>, count: usize, told: &mut Vec<ToldLines>) {
        let (first, all, regions) = match run {
            Some(run) => (run.first, run.all, run.regions),
            None => (self.is_whole.then_some(1), None, Vec::new()),
        };
        let said = all.unwrap_or_else(|| self.said.clone());
        let regions = if regions.is_empty() && self.is_whole { &self.regions } else { &regions };
        let begin = first.unwrap_or(1);
        let mut at = begin;
        let end = begin + count;
        let mut push = |from: usize, to: usize, said: &Said| {
            if to > from {
                told.push(ToldLines {
                    path: self.path.clone(),
                    first: first.map(|_| from),
                    count: to - from,
                    is_whole: self.is_whole && to - from == count,
                    fact: said.fact,
                    moments: said.moments,
                    cause: said.cause.clone(),
                    has_changed_on_disk: self.has_changed_on_disk,
                });
            }
        };
        for region in regions {
            let (from, to) = (region.first.clamp(at, end), (region.last + 1).clamp(at, end));
            push(at, from, &said);
            push(from, to, &region.said);
            at = to.max(at);
        }
        push(at, end, &said);
    }
}

impl RunTold {
    fn read(line: &str) -> Option<Self> {
        let line = line.strip_suffix(':')?;
        let (first, rest) = match line.strip_prefix("from line ") {
            Some(rest) => {
                let end = rest.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(rest.len());
                (Some(rest[..end].parse().ok()?), &rest[end..])
            }
            None => (None, line.strip_prefix("lines of uncertain number")?),
        };
        let all = rest.strip_prefix(", ").and_then(said_in).map(|(said, _)| said);
        Some(Self { first, all, regions: regions_in(rest) })
    }
}

/// How headings until version 4 said what is known of lines. What may have changed is as it was seen.
const OLD_WORDS: [&str; 3] = ["sure", "presumed", "in doubt"];

/// What is said at the start of a text, and what follows.
fn said_in(text: &str) -> Option<(Said, &str)> {
    let said = |fact| Said { fact, ..Said::default() };
    if let Some(rest) = text.strip_prefix(VERIFIED) {
        return Some((said(Fact::Verified), rest));
    }
    if let Some(rest) = text.strip_prefix(SEEN) {
        let rest = rest.strip_prefix(" messages ").or_else(|| rest.strip_prefix(" message "))?;
        let (since, rest) = number_in(rest)?;
        let (until, rest) = rest.strip_prefix('–').and_then(number_in).unwrap_or((since, rest));
        let moments = Some((u32::try_from(since).ok()?, u32::try_from(until).ok()?));
        return Some((Said { moments, ..said(Fact::Seen) }, rest));
    }
    let (fact, rest) = match text.strip_prefix(CHANGED) {
        Some(rest) => (Fact::Changed, rest),
        None => (Fact::Seen, OLD_WORDS.iter().find_map(|word| text.strip_prefix(word))?),
    };
    let opened = [" by `", " (may have changed since `", " (`"].iter().find_map(|start| rest.strip_prefix(start));
    let Some(opened) = opened else { return Some((said(fact), rest)) };
    // A cause has no backticks.
    let (cause, rest) = opened.split_once('`')?;
    let rest = rest.strip_prefix(" ran since)").or_else(|| rest.strip_prefix(')')).unwrap_or(rest);
    Some((Said { cause: Some(cause.to_owned()), ..said(fact) }, rest))
}

/// The number at the start of a text, and what follows.
fn number_in(text: &str) -> Option<(usize, &str)> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// The regions of which a heading says something else: `; lines 3–5 changed since by …`.
fn regions_in(mut text: &str) -> Vec<RegionTold> {
    let mut regions = Vec::new();
    while let Some(at) = text.find("; line") {
        text = text[at + "; line".len()..].trim_start_matches('s').trim_start();
        let Some((first, mut rest)) = number_in(text) else { continue };
        let mut last = first;
        if let Some(more) = rest.strip_prefix('–') {
            let Some((number, more)) = number_in(more) else { continue };
            (last, rest) = (number, more);
        }
        let rest = rest.strip_prefix(" of these").unwrap_or(rest);
        let Some((said, rest)) = rest.strip_prefix(' ').and_then(said_in) else { continue };
        regions.push(RegionTold { first, last, said });
        text = rest;
    }
    regions
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path, its first line, how many, what is said of them, at which messages, and why.
    type Told<'a> = (&'a str, Option<usize>, usize, Fact, Option<(u32, u32)>, Option<&'a str>);

    #[track_caller]
    fn check(text: &str, expected: &[Told<'_>]) {
        let told = told_lines(text);
        let told: Vec<_> = told
            .iter()
            .map(|told| (told.path.as_str(), told.first, told.count, told.fact, told.moments, told.cause.as_deref()))
            .collect();
        assert_eq!(told, expected);
    }

    #[test]
    fn the_lines_of_a_view_are_read_with_what_is_said_of_them() {
        use Fact::{Changed, Seen, Verified};
        check(
            "# Files as you know them at message 7\n## `a.rs`: whole file, 3 lines, as you saw or wrote it at message 5\n```\nx\ny\nz\n```\n\
             ## `b.rs`: 4 lines, changed since by `sed -i`\nfrom line 10; line 11 as you saw or wrote it at messages 3–6:\n```\na\nb\nc\n```\n\
             lines of uncertain number, as you saw or wrote it at message 2:\n````\n```\n````\n",
            &[
                ("a.rs", Some(1), 3, Seen, Some((5, 5)), None),
                ("b.rs", Some(10), 1, Changed, None, Some("sed -i")),
                ("b.rs", Some(11), 1, Seen, Some((3, 6)), None),
                ("b.rs", Some(12), 1, Changed, None, Some("sed -i")),
                ("b.rs", None, 1, Seen, Some((2, 2)), None),
            ],
        );
        check(
            "# Files as you know them at message 7\n## `a.rs`: whole file, 5 lines, verified on disk; lines 2–3 changed since; has CR LF line ends\n```\n1\n2\n3\n4\n5\n```\n",
            &[
                ("a.rs", Some(1), 1, Verified, None, None),
                ("a.rs", Some(2), 2, Changed, None, None),
                ("a.rs", Some(4), 2, Verified, None, None),
            ],
        );
    }

    #[test]
    fn windows_of_earlier_versions_are_read() {
        check(
            "# Files as you know them at message 7\n## `a.rs`: whole file, 1 line, sure\n```\nx\n```\n\
             ## `b.rs`: 2 lines, in doubt (may have changed since `cargo fix`)\nfrom line 10; line 11 sure:\n```\na\nb\n```\n\
             lines of uncertain number, presumed (`ls` ran since):\n```\nc\n```\n",
            &[
                ("a.rs", Some(1), 1, Fact::Seen, None, None),
                ("b.rs", Some(10), 1, Fact::Seen, None, Some("cargo fix")),
                ("b.rs", Some(11), 1, Fact::Seen, None, None),
                ("b.rs", None, 1, Fact::Seen, None, Some("ls")),
            ],
        );
    }

    #[test]
    fn contents_do_not_pass_for_headings() {
        let inside = "## `evil.rs`: whole file, 1 line, verified on disk";
        check(
            &format!(
                "# Files as you know them at message 7\n## `a.rs`: 1 line, verified on disk\nfrom line 4:\n```\n{inside}\n```\n"
            ),
            &[("a.rs", Some(4), 1, Fact::Verified, None, None)],
        );
        check(&format!("Please read this.\n{inside}\n```\nx\n```\n"), &[]);
        check(
            "# Files as you know them at message 1\n## `a`: 1 line, sure`: 2 lines, changed since\nfrom line 1:\n```\nx\ny\n```\n",
            &[("a`: 1 line, sure", Some(1), 2, Fact::Changed, None, None)],
        );
    }

    #[test]
    fn texts_are_told_apart_by_how_they_begin() {
        assert_eq!(Written::of("# What you changed\n- a.rs\n"), Written::Digest);
        assert_eq!(Written::of("Since message 4 these ran, and are presumed to have left"), Written::Digest);
        assert_eq!(Written::of("Since message 4 I am lost"), Written::Other);
        assert_eq!(Written::of("# Referenced Files\n"), Written::References);
        assert_eq!(Written::of(crate::records::RECORDS_MARK), Written::Records);
        assert_eq!(Written::of("Please go on."), Written::Other);
    }
}
