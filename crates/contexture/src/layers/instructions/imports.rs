//! `@imports`: files that an instruction file brings with it.

/// How many imports of one file are followed.
const MAX_IMPORTS: usize = 64;

/// The imports of a text, in order: the paths after `@`, outside of code spans and fences.
pub(super) fn imports(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut fence: Option<&str> = None;
    for line in text.lines() {
        let trimmed = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| trimmed.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) => found.extend(imports_of_line(line)),
            _ => {}
        }
    }
    found.truncate(MAX_IMPORTS);
    found
}

fn imports_of_line(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    // Every second part between backticks is a code span, except after an unpaired backtick.
    let ticks = line.matches('`').count();
    for (index, part) in line.split('`').enumerate() {
        if index % 2 == 1 && index < ticks - ticks % 2 {
            continue;
        }
        let mut before = ' ';
        for (at, c) in part.char_indices() {
            if c == '@' && (before.is_whitespace() || matches!(before, '(' | '[' | '"' | '\'' | ':')) {
                found.extend(path_at(&part[at + 1..]));
            }
            before = c;
        }
    }
    found
}

/// The path at the start of a text, without the full stop after it.
fn path_at(text: &str) -> Option<&str> {
    let end =
        text.find(|c: char| c.is_whitespace() || matches!(c, ')' | ']' | '"' | '\'' | ',' | ';' | '<' | '>' | '*'));
    let path = text[..end.unwrap_or(text.len())].trim_end_matches(['.', ':', '!', '?']);
    (!path.is_empty() && !path.starts_with('@')).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(imports(text), expected, "{text}");
    }

    #[test]
    fn imports_are_found_where_people_write_them() {
        check("See @README for more, and @docs/style.md.", &["README", "docs/style.md"]);
        check("- @~/.claude/me.md\n@/etc/passwd @../up.md", &["~/.claude/me.md", "/etc/passwd", "../up.md"]);
        check("(@a.md) [@b.md] \"@c.md\"", &["a.md", "b.md", "c.md"]);
        check("me@example.com @@twice a@b", &[]);
        check("`@in/code.md` and @out.md `@again.md`", &["out.md"]);
        check("a lone ` before @x.md", &["x.md"]);
        check("```\n@in/fence.md\n```\n@after.md\n~~~\n@in/tilde.md\n```\n~~~\n@last.md", &["after.md", "last.md"]);
        check("```\n@never/closed.md", &[]);
    }
}
