//! Replaces a piece of a text, exactly.

/// Why a piece was not replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ReplaceError {
    /// There is nothing to search for.
    Empty,
    /// The old and the new text are the same.
    Same,
    /// The piece is not in the text.
    Missing,
    /// The piece occurs several times, at these lines.
    Several(Vec<usize>),
}

/// A text in which a piece was replaced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReplacedText {
    pub(super) text: String,
    /// The lines at which the new pieces begin, in the new text.
    pub(super) lines: Vec<usize>,
}

/// Replaces `old` in `text`, where it must occur once, or every occurrence if `all`. If all lines of the text end in
/// `\r\n`, line feeds in `old` and `new` match those.
pub(super) fn replace(text: &str, old: &str, new: &str, all: bool) -> Result<ReplacedText, ReplaceError> {
    if old.is_empty() {
        return Err(ReplaceError::Empty);
    }
    let (old, new) = (with_line_ends_of(text, old), with_line_ends_of(text, new));
    if old == new {
        return Err(ReplaceError::Same);
    }
    let places = occurrences(text, &old);
    match places.len() {
        0 => return Err(ReplaceError::Missing),
        1 => {}
        // Overlapping occurrences count too: it is not known which one was meant.
        _ if !all => return Err(ReplaceError::Several(places.iter().map(|at| line_at(text, *at)).collect())),
        _ => {}
    }
    let (mut result, mut lines, mut end) = (String::with_capacity(text.len() + new.len()), Vec::new(), 0);
    for at in places {
        if at < end {
            continue;
        }
        result.push_str(&text[end..at]);
        lines.push(line_at(&result, result.len()));
        result.push_str(&new);
        end = at + old.len();
    }
    result.push_str(&text[end..]);
    Ok(ReplacedText { text: result, lines })
}

/// Every position at which a piece begins, including overlapping ones.
fn occurrences(text: &str, piece: &str) -> Vec<usize> {
    let (mut places, mut from) = (Vec::new(), 0);
    while let Some(found) = text[from..].find(piece) {
        places.push(from + found);
        let step = text[from + found..].chars().next().map_or(1, char::len_utf8);
        from += found + step;
    }
    places
}

/// The line number of a position.
fn line_at(text: &str, at: usize) -> usize {
    text[..at].matches('\n').count() + 1
}

/// A text with the line ends of another one, if those are all `\r\n` and the text has none of its own.
pub(super) fn with_line_ends_of(model: &str, text: &str) -> String {
    let feeds = model.matches('\n').count();
    let is_crlf = feeds > 0 && model.matches("\r\n").count() == feeds;
    match is_crlf && !text.contains('\r') {
        true => text.replace('\n', "\r\n"),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, old: &str, new: &str, all: bool, expected: Result<&str, ReplaceError>) {
        assert_eq!(replace(text, old, new, all).map(|replaced| replaced.text), expected.map(str::to_owned));
    }

    #[test]
    fn a_piece_is_replaced_when_it_is_there_once() {
        use ReplaceError::*;
        check("one two", "two", "three", false, Ok("one three"));
        check("a\nb\nc", "b", "", false, Ok("a\n\nc"));
        check("a\nb", "c", "d", false, Err(Missing));
        check("a\nb\na", "a", "d", false, Err(Several(vec![1, 3])));
        check("a\nb\na", "a", "d", true, Ok("d\nb\nd"));
        check("a", "", "d", false, Err(Empty));
        check("a", "a", "a", false, Err(Same));
        check("", "a", "b", false, Err(Missing));
        check("aaa", "aa", "b", false, Err(Several(vec![1, 1])));
        check("aaa", "aa", "b", true, Ok("ba"));
        check("日本語", "本", "x", false, Ok("日x語"));
        check("no end", "end", "end\n", false, Ok("no end\n"));
    }

    #[test]
    fn line_ends_stay_as_they_are() {
        check("a\r\nb\r\n", "a\nb", "c\nd", false, Ok("c\r\nd\r\n"));
        check("a\r\nb\r\n", "a\r\nb", "c\r\nd", false, Ok("c\r\nd\r\n"));
        // A file with both kinds is not converted.
        check("a\r\nb\n", "a\nb", "c", false, Err(ReplaceError::Missing));
        check("a\nb\n", "a", "x\ny", false, Ok("x\ny\nb\n"));
    }

    #[test]
    fn the_line_of_each_change_is_known() {
        assert_eq!(replace("a\nb\na\n", "a", "x\ny", true).unwrap().lines, [1, 4]);
    }

    proptest! {
        /// What is not replaced keeps its bytes, with both kinds of line ends.
        #[test]
        fn replacing_is_exact(before in "[ab\n日]{0,12}", old in "[cd\n]{1,4}", new in "[xy\n]{0,4}", after in "[ab\n日]{0,12}") {
            let text = format!("{before}{old}{after}");
            let replaced = replace(&text, &old, &new, false);
            match &replaced {
                Ok(replaced) => prop_assert_eq!(&replaced.text, &text.replacen(&old, &new, 1)),
                Err(ReplaceError::Several(lines)) => prop_assert!(lines.len() > 1 && text.matches(&old).count() > 0),
                Err(ReplaceError::Same) => prop_assert_eq!(&old, &new),
                Err(error) => prop_assert!(false, "{:?}", error),
            }
            let windows = replace(&text.replace('\n', "\r\n"), &old, &new, false);
            let expected = replaced.map(|replaced| replaced.text.replace('\n', "\r\n"));
            // Without a line end in the text, those of the new piece are not changed.
            if text.contains('\n') {
                prop_assert_eq!(windows.map(|replaced| replaced.text), expected);
            }
        }
    }
}
