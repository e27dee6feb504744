//! Line numbers in front of lines, as tools print them.

pub use contexture_agents::Style;

/// Lines of a file as a tool printed them, with the number of the first if it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Passage {
    /// The number of the first line, from 1.
    pub first: Option<usize>,
    /// The lines, without numbers.
    pub lines: Vec<String>,
}

impl Passage {
    /// A block of plain text, with the number of its first line if that is known.
    pub fn plain(first: Option<usize>, text: &str) -> Self {
        Self { first, lines: split_lines(text).map(str::to_owned).collect() }
    }
}

/// All styles, the least ambiguous first.
const STYLES: [Style; 6] = [Style::Arrow, Style::Tab, Style::Bar, Style::Colon, Style::Dot, Style::Bare];

/// Finds numbered lines in what a tool printed and returns them as blocks of consecutive lines.
///
/// Returns `None` if the text is not numbered. Lines without a number (headings, notes of the tool) are left out.
///
/// ```
/// use contexture_files::numbering::numbered;
/// let blocks = numbered("<file>\n  7→fn main() {\n  8→}\n(end)").unwrap();
/// assert_eq!(blocks[0].first, Some(7));
/// assert_eq!(blocks[0].lines, ["fn main() {", "}"]);
/// assert_eq!(numbered("12 apples\n13 pears"), None);
/// ```
pub fn numbered(text: &str) -> Option<Vec<Passage>> {
    STYLES.into_iter().find_map(|style| numbered_as(text, style))
}

/// The share of lines between the first and the last number that must have a number for a text to count as numbered.
const LEAST_NUMBERED: f64 = 0.6;

fn numbered_as(text: &str, style: Style) -> Option<Vec<Passage>> {
    let mut blocks: Vec<Passage> = Vec::new();
    let mut next = 0;
    let (mut span, mut last_span, mut consecutive) = (0_usize, 0_usize, 0_usize);
    for (index, line) in split_lines(text).enumerate() {
        span += usize::from(!blocks.is_empty());
        let Some((number, rest)) = split_number(line, style) else {
            // If the first lines have no numbers, the rest is not worth reading.
            if index >= MAX_UNNUMBERED_LINES && consecutive == 0 {
                return None;
            }
            continue;
        };
        let follows = !blocks.is_empty() && number == next;
        (next, last_span) = (number + 1, span);
        consecutive += usize::from(follows);
        match blocks.last_mut() {
            Some(block) if follows => block.lines.push(rest.to_owned()),
            _ => blocks.push(Passage { first: Some(number), lines: vec![rest.to_owned()] }),
        }
    }
    let found: usize = blocks.iter().map(|block| block.lines.len()).sum();
    let is_sure = matches!(style, Style::Arrow | Style::Tab | Style::Bar);
    let is_single = found == 1 && is_sure && split_lines(text).count() <= MAX_WRAPPER_LINES;
    let enough = consecutive >= 1 && found as f64 >= (last_span + 1) as f64 * LEAST_NUMBERED;
    (enough || is_single).then_some(blocks)
}

/// After this many lines without a number, a text counts as unnumbered.
const MAX_UNNUMBERED_LINES: usize = 40;

/// Most lines that a tool puts around a single numbered line.
const MAX_WRAPPER_LINES: usize = 6;

/// Splits a line into its number and its text.
pub fn split_number(line: &str, style: Style) -> Option<(usize, &str)> {
    // A cheap test first: most lines begin with something else.
    let first = line.bytes().find(|byte| !matches!(byte, b' ' | b'\t'))?;
    if !first.is_ascii_digit() && first != b'<' {
        return None;
    }
    let bare = line.strip_prefix("<content>").or_else(|| line.strip_prefix("<file>")).unwrap_or(line);
    let bare = match style {
        Style::Arrow | Style::Tab | Style::Bar => bare.trim_start_matches([' ', '\t']),
        _ => bare,
    };
    let digits = bare.bytes().take_while(u8::is_ascii_digit).count();
    let number = line_number(&bare[..digits])?;
    let rest = &bare[digits..];
    let rest = match style {
        Style::Arrow => rest.strip_prefix('→')?,
        Style::Tab => rest.strip_prefix('\t')?,
        Style::Colon => rest.strip_prefix(": ").or_else(|| (rest == ":").then_some(""))?,
        Style::Bare => rest.strip_prefix(':')?,
        Style::Bar => {
            rest.trim_start_matches(' ').strip_prefix('|').map(|text| text.strip_prefix(' ').unwrap_or(text))?
        }
        Style::Dot => rest.strip_prefix(". ").or_else(|| (rest == ".").then_some(""))?,
    };
    Some((number, rest))
}

/// Returns the number, its style and the text of a line whose number cannot be mistaken for text.
pub fn split_surely_numbered(line: &str) -> Option<(usize, Style, &str)> {
    let sure = [Style::Arrow, Style::Tab, Style::Bar, Style::Colon];
    sure.into_iter().find_map(|style| split_number(line, style).map(|(number, rest)| (number, style, rest)))
}

/// Whether a line begins with what could be its number, in any style.
pub fn seems_numbered(line: &str) -> bool {
    STYLES.into_iter().any(|style| split_number(line, style).is_some())
}

/// The greatest line number, or count of lines, that is accepted. Sums of a few cannot overflow, and no file that an
/// agent reads has more lines.
pub const MAX_LINE_NUMBER: usize = 999_999_999;

/// Parses a number, if a line can have it.
///
/// ```
/// use contexture_files::numbering::line_number;
/// assert_eq!(line_number("12"), Some(12));
/// assert_eq!(line_number("18446744073709551615"), None);
/// ```
pub fn line_number(text: &str) -> Option<usize> {
    text.parse().ok().filter(|number| *number <= MAX_LINE_NUMBER)
}

/// Returns the lines of a text. A line feed at the end does not begin another line, and carriage returns before line
/// feeds are dropped.
pub fn split_lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines()
}
