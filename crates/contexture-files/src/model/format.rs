//! What a formatter leaves as it was.
//!
//! A formatter changes nothing that it has formatted before. So what was seen after its last run and not edited since
//! stays, and only the lines around later edits are in doubt. Before its first run that is known only of files whose
//! lines show that somebody formats them.

use super::grade::note_doubt;
use super::state::End;
use super::{FileState, Grade, Line, Now, Segment};

/// A formatter's last run over a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LastFormatting {
    /// The formatter.
    pub(super) by: String,
    /// When it ran.
    pub(super) at: u32,
}

/// A run of a formatter.
#[derive(Clone, Copy)]
pub(super) struct FormatterRun<'a> {
    /// The formatter, by a name that is the same for all ways to start it.
    pub(super) formatter: &'a str,
    /// Whether what it changes is near to what it dislikes.
    pub(super) is_local: bool,
    /// Whether it certainly ran and succeeded.
    pub(super) is_proven: bool,
    /// The command, in short.
    pub(super) by: &'a str,
}

impl FileState {
    /// Takes in that a formatter ran over the file.
    pub(super) fn format(&mut self, now: Now, run: FormatterRun<'_>) {
        let before = self.formatted.take().filter(|before| before.by == run.formatter);
        let is_formatted = before.is_some() || looks_formatted(run.formatter, &self.segments);
        let since = before.as_ref().map_or(0, |before| before.at);
        let is_edited = |line: &Line| line.edited >= since.max(1);
        let is_layout = layout_is_known(run.formatter);
        let all = || self.segments.iter().flat_map(|segment| &segment.lines);
        let has_edits = all().any(is_edited);
        // What the agent wrote itself can be looked at line by line.
        let is_own = is_layout && all().all(|line| line.edited > 0 || !line.is_sure());
        if !(is_formatted || is_own) || (self.is_cut && !is_layout) {
            self.raise_doubt(now, run.by);
        } else if has_edits {
            // What follows from a change elsewhere in a file is what it imports.
            let reaches = |block: &[Line]| !run.is_local && block.iter().any(|line| imports(&line.text));
            let is_odd =
                |block: &[Line]| reaches(block) || block.iter().any(is_edited) && !(is_layout && is_laid_out(block));
            self.doubt_blocks(now, run.by, &is_odd);
        }
        if run.is_proven {
            self.is_cut = false;
            self.formatted = Some(LastFormatting { by: run.formatter.to_owned(), at: now.at });
        } else if !self.is_all_in_doubt() {
            self.formatted = before;
        }
    }

    /// Puts some blocks of lines in doubt, and all numbers after them.
    fn doubt_blocks(&mut self, now: Now, by: &str, is_odd: &dyn Fn(&[Line]) -> bool) {
        let mut is_moved = false;
        let mut segments = Vec::with_capacity(self.segments.len() + 1);
        for mut segment in std::mem::take(&mut self.segments) {
            if is_moved {
                segment.distrust();
            }
            let Some(first) = mark_blocks(&mut segment.lines, is_odd) else {
                segments.push(segment);
                continue;
            };
            is_moved = true;
            let (place, is_hit) = (segment.place(), segment.is_hit);
            let tail = segment.lines.split_off(first);
            if !segment.lines.is_empty() {
                segments.push(segment);
            }
            segments.push(Segment { first: None, guess: place.map(|place| place + first), lines: tail, is_hit });
        }
        // Lines without numbers come last.
        segments.sort_by_key(|segment| segment.first.is_none());
        self.segments = segments;
        if !is_moved {
            return;
        }
        self.whole = false;
        self.end = End::Unknown;
        note_doubt(&mut self.doubts, now, by);
    }

    /// Notes an edit that may leave no line that tells where it was.
    pub(super) fn note_cut(&mut self, old: &[&str], new: &[&str]) {
        let mut rest = old.iter();
        let is_cut = new.len() < old.len() && new.iter().all(|line| rest.any(|old| old == line));
        self.is_cut |= is_cut;
    }
}

/// Puts some of the blocks between blank lines in doubt. Returns where the first of them begins.
fn mark_blocks(lines: &mut [Line], is_odd: &dyn Fn(&[Line]) -> bool) -> Option<usize> {
    let mut first = None;
    let mut start = 0;
    while start < lines.len() {
        let is_blank = |line: &Line| line.text.trim().is_empty();
        let length = lines[start..].iter().position(is_blank).map_or(lines.len() - start, |at| at + 1);
        // The blank line at the end belongs to the block: formatters remove some.
        let block = &mut lines[start..start + length];
        if is_odd(block) {
            block.iter_mut().for_each(|line| line.grade = Grade::InDoubt);
            first = first.or(Some(start));
        }
        start += length;
    }
    first
}

/// The fewest lines that show that a file is formatted.
const LEAST_LINES: usize = 12;

/// Whether it is known how a formatter lays out lines.
fn layout_is_known(formatter: &str) -> bool {
    formatter == "gofmt"
}

/// Whether a line names what a file uses of others, in any language.
fn imports(line: &str) -> bool {
    let first = line.trim_start().split([' ', '(', '\t', '"']).next().unwrap_or_default();
    matches!(first, "import" | "from" | "use" | "using" | "#include" | "extern")
        || line.contains("require(")
        || (first == "export" && line.contains(" from "))
}

/// Whether the lines that nobody edited are such as a formatter leaves them. How one lays out lines is known of one
/// language; of the others only what no formatter leaves.
fn looks_formatted(formatter: &str, segments: &[Segment]) -> bool {
    let is_odd_line = if layout_is_known(formatter) { is_odd_go } else { is_untidy };
    let mut count = 0;
    for segment in segments {
        let mut in_text = false;
        let mut was_blank = false;
        for line in &segment.lines {
            let text = &*line.text;
            let is_quoted = in_text || text.contains('`');
            in_text ^= text.matches('`').count() % 2 == 1;
            let is_blank = text.is_empty();
            let is_odd = !is_quoted && (is_odd_line(text) || (is_blank && was_blank));
            was_blank = is_blank;
            if line.edited > 0 || !line.is_sure() {
                continue;
            }
            if is_odd {
                return false;
            }
            count += usize::from(!is_blank);
        }
    }
    count >= LEAST_LINES
}

/// Whether a block between blank lines is such as a formatter of Go leaves it: each line by itself, and what is aligned.
fn is_laid_out(block: &[Line]) -> bool {
    let mut before: Option<AlignedColumns> = None;
    for line in block {
        let text = &*line.text;
        // A text in quotes that goes on is not followed.
        if text.matches('`').count() % 2 == 1 || is_odd_go(text) {
            return false;
        }
        let now = AlignedColumns::of(text);
        if before.as_ref().is_some_and(|before| !before.agrees(&now)) {
            return false;
        }
        before = Some(now);
    }
    let is_blank = |line: &Line| line.text.trim().is_empty();
    // Blank lines at the edges of a body are removed.
    let opens = block.iter().rev().find(|line| !is_blank(line)).is_some_and(|line| line.text.ends_with(['{', '(']));
    let closes = block.iter().find(|line| !is_blank(line)).is_some_and(|line| line.text.trim().starts_with(['}', ')']));
    !(closes || opens && block.iter().any(is_blank))
}

/// Where the parts of a line begin that are aligned with those of the lines beside it.
#[derive(Debug, PartialEq, Eq)]
struct AlignedColumns {
    indent: usize,
    /// After `key:`, or after a name in a list of names.
    value: Option<usize>,
    /// Of a comment after code.
    comment: Option<usize>,
}

/// Words with which a statement begins, so that what follows is not aligned.
const KEYWORDS: [&str; 24] = [
    "break",
    "case",
    "chan",
    "const",
    "continue",
    "default",
    "defer",
    "else",
    "fallthrough",
    "for",
    "func",
    "go",
    "goto",
    "if",
    "import",
    "interface",
    "map",
    "package",
    "range",
    "return",
    "select",
    "struct",
    "switch",
    "type",
];

/// Signs after a name in a statement.
const SIGNS: [char; 12] = [':', '+', '-', '<', '>', '!', '|', '&', '*', '/', '=', '%'];

impl AlignedColumns {
    fn of(line: &str) -> Self {
        let bare = line.trim_start_matches('\t');
        let indent = line.len() - bare.len();
        let code = code_of(bare);
        let first = bare.find([' ', ':', ',', '(', '.', '[', '{', '=']).unwrap_or(bare.len());
        let (name, rest) = bare.split_at(first);
        let is_name = !name.is_empty() && !KEYWORDS.contains(&name) && name != "var";
        let after = |rest: &str, from: usize| from + rest.len() - rest.trim_start_matches(' ').len();
        let value = match rest.chars().next() {
            Some(':') if is_name && rest[1..].starts_with(' ') => Some(after(&rest[1..], first + 1)),
            // A name and its type. One space before a sign is no alignment.
            Some(' ') if is_name && !rest.trim_start().starts_with(SIGNS) => Some(after(rest, first)),
            Some(' ') if is_name && rest.starts_with("  ") && rest.trim_start().starts_with("= ") => {
                Some(after(rest, first))
            }
            _ => None,
        };
        let has_comment = bare.contains("//") && !code.trim().is_empty() && code.len() < bare.len();
        let comment = bare.rfind("//").filter(|_| has_comment && !bare.starts_with("//"));
        Self { indent, value, comment }
    }

    /// Whether two lines that follow each other are aligned, as far as they should be.
    fn agrees(&self, next: &AlignedColumns) -> bool {
        let agree = |one: Option<usize>, other: Option<usize>| one.is_none() || other.is_none() || one == other;
        self.indent != next.indent || (agree(self.value, next.value) && agree(self.comment, next.comment))
    }
}

/// Whether a formatter of Go would change a line by itself.
fn is_odd_go(line: &str) -> bool {
    let code = code_of(line);
    let bare = code.trim_start_matches('\t');
    let is_comment = line.trim_start().starts_with(['*', '/']);
    let has = |parts: &[&str]| parts.iter().any(|part| code.contains(part));
    // An assignment or a comma without spaces, or a brace or a keyword without one before it.
    let lacks_space = code.as_bytes().windows(3).any(|three| {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'"';
        match three {
            [one, b'=', _] => is_name(*one),
            [one, b':', b'='] => *one != b' ',
            [_, b',', other] => is_name(*other),
            _ => false,
        }
    });
    let is_odd = bare.starts_with(' ') || has(&["){", "}else", "else{", "if(", "for(", "switch("]) || lacks_space;
    !is_comment && (is_odd || line.ends_with([' ', '\t']))
}

/// Whether a line is such as no formatter of any language leaves it.
fn is_untidy(line: &str) -> bool {
    let code = code_of(line);
    let indent = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
    let is_mixed = indent.contains(' ') && (indent.contains('\t') || indent.len() % 2 == 1);
    let is_comment = line.trim_start().starts_with(['*', '/', '#']);
    let lacks_space = code.as_bytes().windows(2).any(|two| two[0] == b',' && two[1].is_ascii_alphanumeric());
    let has = |parts: &[&str]| parts.iter().any(|part| code.contains(part));
    let is_odd =
        is_mixed || lacks_space || has(&["){", "}else", "else{", "if(", "for(", "while(", "switch(", " ;", " ,"]);
    line.ends_with([' ', '\t']) || (!is_comment && is_odd)
}

/// A line without what is in quotes or in a comment.
fn code_of(line: &str) -> String {
    let mut code = String::with_capacity(line.len());
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' | '\'' => {
                code.push('"');
                while let Some(next) = chars.next() {
                    match next {
                        '\\' => drop(chars.next()),
                        next if next == c => break,
                        _ => {}
                    }
                }
                code.push('"');
            }
            '/' if chars.peek() == Some(&'/') => break,
            c => code.push(c),
        }
    }
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laid_out(text: &str) -> bool {
        let now = Now { at: 1, count: 1 };
        is_laid_out(&text.lines().map(|line| Line::new(line, now, 1, 1)).collect::<Vec<_>>())
    }

    #[test]
    fn blocks_that_a_formatter_of_go_would_align_are_told() {
        assert!(laid_out(
            "func f(a int) error {\n\tx := g(a)\n\tif x == nil {\n\t\treturn nil\n\t}\n\treturn x.err\n}"
        ));
        assert!(laid_out("type t struct {\n\tname  string\n\tcount int\n}"));
        assert!(!laid_out("type t struct {\n\tname string\n\tcount int\n}"));
        assert!(laid_out("\tx := T{\n\t\tName:  \"a\",\n\t\tCount: 1,\n\t}"));
        assert!(!laid_out("\tx := T{\n\t\tName: \"a\",\n\t\tCount: 1,\n\t}"));
        assert!(laid_out("\ta() // one\n\tb() // two"));
        assert!(!laid_out("\ta() // one\n\tbcd() // two"));
        assert!(!laid_out("func f(){\n}"));
        assert!(!laid_out("\tx := `a"));
    }

    #[test]
    fn lines_that_a_formatter_of_go_would_change_are_told() {
        for line in [
            "func main() {",
            "\tx := map[string]int{\"a\": 1, \"b\": 2}",
            "\tif a == b && c != d {",
            "\t\tName  string `json:\"name\"`",
            "\t// a  comment, with=signs",
            "\ts := \"a,b=c\"",
            "\tfor i := range 3 {",
            " * in a comment",
            "\tx = f(a, b)[1:2]",
            "",
        ] {
            assert!(!is_odd_go(line), "{line}");
        }
        for line in [
            "    x := 1",
            "\tx:=1",
            "\tx=1",
            "func main(){",
            "\t}else {",
            "\tf(a,b)",
            "\tif(a) {",
            "\tx := 1 ",
            "\tf(1,2)",
        ] {
            assert!(is_odd_go(line), "{line}");
        }
    }
}
