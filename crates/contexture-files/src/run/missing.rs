//! Commands in back quotes of which the shell says that there is no such program.

use std::borrow::Cow;
use std::ops::Range;

/// A command line without the commands in back quotes that were not found: they did nothing, and printed nothing.
///
/// The shell must have said it as often as the line has them, so that no text that was printed is taken for it.
pub(super) fn without_missing<'a>(line: &'a str, output: &str) -> Cow<'a, str> {
    let missing: Vec<&str> = match line.contains('`') {
        true => output.lines().filter_map(not_found).collect(),
        false => Vec::new(),
    };
    let spans = if missing.is_empty() { None } else { substitutions(line) };
    let Some(spans) = spans else { return Cow::Borrowed(line) };
    let program = |span: &Range<usize>| program(&line[span.start + 1..span.end - 1]);
    let is_missing = |span: &Range<usize>| {
        program(span).is_some_and(|name| {
            let said = missing.iter().filter(|known| **known == name).count();
            let run = spans.iter().filter(|other| program(other).as_deref() == Some(&*name)).count();
            said >= run
        })
    };
    let mut left = String::with_capacity(line.len());
    let mut at = 0;
    for span in spans.iter().filter(|span| is_missing(span)) {
        left.push_str(&line[at..span.start]);
        at = span.end;
    }
    left.push_str(&line[at..]);
    Cow::Owned(left)
}

/// The program that a line of a shell says is missing.
pub(super) fn not_found(line: &str) -> Option<&str> {
    let (shell, said) = line.trim().split_once(':')?;
    let shell = shell.rsplit('/').next().unwrap_or(shell);
    if !matches!(shell, "bash" | "dash" | "sh" | "zsh" | "(eval)") {
        return None;
    }
    for phrase in [" command not found: ", " no such file or directory: "] {
        if let Some((_, name)) = said.split_once(phrase) {
            return Some(name);
        }
    }
    let phrases = ["command not found", "No such file or directory", "not found"];
    let before = phrases.iter().find_map(|phrase| said.strip_suffix(phrase)?.strip_suffix(": "))?;
    before.rsplit(": ").next().map(str::trim)
}

/// The program of a command in back quotes, if it is a plain one.
fn program(inner: &str) -> Option<String> {
    let is_plain = !inner.contains([';', '|', '&', '<', '>', '$', '(', '{', '\n', '\'', '"']);
    let word = inner.split_whitespace().next().filter(|_| is_plain)?;
    Some(word.replace('\\', ""))
}

/// Where a line has commands in back quotes, with the quotes; `None` where that is not certain.
fn substitutions(line: &str) -> Option<Vec<Range<usize>>> {
    let mut found = Vec::new();
    let mut in_quotes = false;
    let mut at = 0;
    // What a document contains is quoted in another way, and so is what begins with a dollar sign.
    if line.contains("<<") || line.contains("$'") {
        return None;
    }
    while let Some(next) = line[at..].find(['\\', '\'', '"', '`', '#']) {
        at += next;
        match line.as_bytes()[at] {
            b'\\' => at += 1 + line[at + 1..].chars().next()?.len_utf8(),
            b'\'' if !in_quotes => at += 2 + line[at + 1..].find('\'')?,
            b'"' => {
                in_quotes = !in_quotes;
                at += 1;
            }
            b'`' => {
                let inner = &line[at + 1..];
                let len = inner.find('`').filter(|len| !inner[..*len].ends_with('\\'))?;
                found.push(at..at + len + 2);
                at += len + 2;
            }
            // What follows may be a comment.
            b'#' if !in_quotes => return None,
            _ => at += 1,
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_that_were_not_found_are_empty() {
        let line = r#"perl -pi -e "s/`a\.b` is `c`/don't/" x.md"#;
        let output = "zsh:1: command not found: a.b\nzsh:1: command not found: c\n";
        assert_eq!(without_missing(line, output), r#"perl -pi -e "s/ is /don't/" x.md"#);
        let output = "bash: line 1: a.b: command not found\nsh: 1: c: not found\n";
        assert_eq!(without_missing(line, output), r#"perl -pi -e "s/ is /don't/" x.md"#);
        let line = r#"gh pr create --body "see `ssh://`""#;
        assert_eq!(
            without_missing(line, "zsh:1: no such file or directory: ssh://\nhttps://x/1\n"),
            r#"gh pr create --body "see ""#
        );
    }

    #[test]
    fn what_may_have_run_stays() {
        for (line, output) in [
            // Of two, one was found, or the text is another one's.
            ("echo `fixall` `fixall -n`", "zsh:1: command not found: fixall\n"),
            ("echo `fixall`", "make: fixall: command not found\n"),
            ("echo `fixall`", "x\n"),
            // It is a text, not a command.
            ("echo '`fixall`'", "zsh:1: command not found: fixall\n"),
            ("cat <<'X'\n`fixall`\nX", "zsh:1: command not found: fixall\n"),
            ("echo `fixall; rm x`", "zsh:1: command not found: fixall\n"),
            ("echo x # `fixall`", "zsh:1: command not found: fixall\n"),
        ] {
            assert_eq!(without_missing(line, output), line);
        }
    }
}
