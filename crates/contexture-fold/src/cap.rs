//! Shortens long outputs by leaving out their middle, and says how to get the whole text.

use std::ops::Range;

use super::rows::Rows;
use contexture_core::tokens::TokenCounter;
use contexture_text::fit::{Made, fit};

/// Hexadecimal digits of the hash by which a text can be asked for.
const HASH_DIGITS: usize = 12;

/// Fewest digits by which a text is recognised.
const LEAST_HASH_DIGITS: usize = 8;

/// Rows with errors that are kept from the middle.
const MAX_KEPT_ROWS: usize = 12;

/// Longest row with an error that is kept.
const MAX_KEPT_ROW_BYTES: usize = 300;

/// Rows kept before and after one with an error: a compiler names the place after the error.
const CONTEXT_ROWS: (usize, usize) = (1, 2);

/// One part in this many of what is kept may be errors from the middle.
const ERRORS_SHARE: usize = 3;

/// Of what is kept besides errors, one part in this many is the start and the rest is the end.
const HEAD_SHARE: usize = 3;

/// Bytes reserved for the note that something was left out.
const MARKER_BYTES: usize = 60;

/// A shorter gap is shown, since a note that it is left out would be as long.
const LEAST_GAP_BYTES: usize = 100;

/// If fewer bytes than this would be kept, only the note remains.
const LEAST_KEPT_BYTES: usize = 32;

/// The short hash by which a text of the log can be asked for.
///
/// ```
/// use contexture_fold::cap::short_hash;
/// assert_eq!(short_hash("a long output").len(), 12);
/// ```
pub fn short_hash(text: &str) -> String {
    let mut hash = blake3::hash(text.as_bytes()).to_hex().to_string();
    hash.truncate(HASH_DIGITS);
    hash
}

/// Whether a hash, or enough of its start, is that of a text.
pub fn has_hash(text: &str, hash: &str) -> bool {
    hash.len() >= LEAST_HASH_DIGITS && blake3::hash(text.as_bytes()).to_hex().starts_with(hash)
}

/// Cuts a text to a number of tokens: its start, its end, and rows with errors or exit codes from the middle.
///
/// What is kept stays in order, and every gap says which lines it leaves out. `tool` is the tool that shows them by
/// hash; without one, the gaps do not say how to see them.
pub fn cap(counter: &dyn TokenCounter, text: &str, tokens: u64, tool: Option<&str>) -> String {
    if counter.count(text) <= tokens {
        return text.to_owned();
    }
    let rows = Rows::new(text);
    let recovery = tool.map(|tool| Recovery { tool, hash: short_hash(text) });
    let bytes = usize::try_from(tokens).unwrap_or(usize::MAX).saturating_mul(4).min(text.len());
    let make = |bytes: usize| {
        let capped = render(&rows, &kept_pieces(&rows, bytes), recovery.as_ref());
        let tokens = counter.count(&capped);
        Made { made: capped, bytes, tokens }
    };
    let least = || Some(make(0)).filter(|least| least.tokens <= tokens).map(|least| least.made);
    fit(tokens, bytes, make).or_else(least).unwrap_or_default()
}

/// How to get the whole text.
struct Recovery<'a> {
    tool: &'a str,
    hash: String,
}

/// Returns the pieces of a text to keep within a number of bytes, in order and not touching one another.
fn kept_pieces(rows: &Rows<'_>, bytes: usize) -> Vec<Range<usize>> {
    let bytes = bytes.saturating_sub(MARKER_BYTES * 2);
    if bytes < LEAST_KEPT_BYTES {
        return Vec::new();
    }
    let [head, tail] = ends(rows, bytes - bytes / ERRORS_SHARE);
    let errors = errors(rows, head.end..tail.start, bytes / ERRORS_SHARE);
    let taken: usize = errors.iter().map(|piece| piece.len() + MARKER_BYTES).sum();
    let [head, tail] = ends(rows, bytes.saturating_sub(taken));
    let mut pieces = errors;
    pieces.extend([head, tail]);
    pieces.retain(|piece| !piece.is_empty());
    join(pieces)
}

/// Returns the start and the end of a text, cut between rows where that loses little.
fn ends(rows: &Rows<'_>, bytes: usize) -> [Range<usize>; 2] {
    let text = rows.text();
    let (head, tail) = (bytes / HEAD_SHARE, bytes - bytes / HEAD_SHARE);
    let whole_head = rows.bytes(0..rows.at(head)).end;
    let head = if whole_head * 2 > head { whole_head } else { text.floor_char_boundary(head) };
    let first = text.len().saturating_sub(tail);
    let whole_tail = rows.bytes(0..rows.at(first.saturating_sub(1)) + 1).end;
    let is_near = (text.len() - whole_tail) * 2 > tail;
    let tail = if is_near { whole_tail } else { text.ceil_char_boundary(first) };
    [0..head, tail.max(head)..text.len()]
}

/// Returns the rows between two places that report errors, with their neighbours: the first ones, as many as fit.
fn errors(rows: &Rows<'_>, between: Range<usize>, bytes: usize) -> Vec<Range<usize>> {
    let middle = rows.at(between.start)..rows.at(between.end.saturating_sub(1)) + 1;
    let is_kept = |row: &usize| {
        let text = rows.get(*row..*row + 1);
        text.len() <= MAX_KEPT_ROW_BYTES && (says_error(text) || says_status(text))
    };
    let mut left = bytes;
    let mut pieces: Vec<Range<usize>> = Vec::new();
    for row in middle.clone().filter(is_kept).take(MAX_KEPT_ROWS) {
        let first = row.saturating_sub(CONTEXT_ROWS.0).max(middle.start);
        let last = (row + CONTEXT_ROWS.1 + 1).min(middle.end);
        let behind = pieces.last().map_or(0, |piece| piece.end);
        let around = rows.bytes(first..last);
        let alone = rows.bytes(row..row + 1);
        let fits = |piece: &Range<usize>| piece.len() + MARKER_BYTES <= left;
        let Some(piece) = [around, alone].into_iter().find(fits) else { break };
        let piece = piece.start.max(behind)..piece.end.max(behind);
        left = left.saturating_sub(piece.len() + MARKER_BYTES);
        pieces.push(piece);
    }
    pieces
}

/// Whether a line of output reports an error.
pub fn says_error(line: &str) -> bool {
    const MARKS: &[&str] =
        &["error:", "Error:", "error[", "FAIL", "panicked at", "Traceback", "fatal:", "✗", "undefined:"];
    MARKS.iter().any(|mark| line.contains(mark))
}

/// Whether a row says how a command ended.
fn says_status(row: &str) -> bool {
    const MARKS: &[&str] = &["exit code", "exit status", "exited with", "exit_code"];
    let row = row.to_ascii_lowercase();
    MARKS.iter().any(|mark| row.contains(mark))
}

/// Sorts pieces and joins those that nearly touch.
fn join(mut pieces: Vec<Range<usize>>) -> Vec<Range<usize>> {
    pieces.sort_by_key(|piece| piece.start);
    let mut joined: Vec<Range<usize>> = Vec::new();
    for piece in pieces {
        match joined.last_mut() {
            Some(last) if piece.start < last.end + LEAST_GAP_BYTES => last.end = last.end.max(piece.end),
            _ => joined.push(piece),
        }
    }
    joined
}

/// Writes the pieces with notes on what is missing between them.
fn render(rows: &Rows<'_>, pieces: &[Range<usize>], recovery: Option<&Recovery<'_>>) -> String {
    let mut text = String::new();
    let mut recovery = recovery;
    let mut at = 0;
    let end = rows.text().len();
    for piece in pieces.iter().cloned().chain(std::iter::once(end..end)) {
        if piece.start > at {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&gap(rows, at..piece.start, recovery.take()));
            text.push('\n');
        }
        text.push_str(&rows.text()[piece.clone()]);
        at = piece.end;
    }
    text
}

/// Returns the note that replaces bytes that are left out. The first gap says how to see them.
fn gap(rows: &Rows<'_>, bytes: Range<usize>, recovery: Option<&Recovery<'_>>) -> String {
    let (first, last) = (rows.at(bytes.start) + 1, rows.at(bytes.end - 1) + 1);
    let lines = if first == last { format!("line {first}") } else { format!("lines {first}-{last}") };
    let shows = recovery.map_or(String::new(), |Recovery { tool, hash }| {
        format!("; {tool} {{\"hash\":\"{hash}\",\"from_line\":{first}}} shows them")
    });
    format!("[… {lines} ({} bytes) left out{shows} …]", bytes.len())
}
