//! Patterns with `*` and `?`, of names and of paths.

/// Whether a pattern matches a path: `*` and `?` within one name, `**` for any number of names. A pattern that does not
/// begin with `/` matches beneath any directory.
pub fn path_matches(pattern: &str, path: &str) -> bool {
    let names = |text: &str| -> Vec<String> {
        text.split(['/', '\\']).filter(|name| !matches!(*name, "" | ".")).map(str::to_owned).collect()
    };
    let (wanted, given) = (names(pattern), names(path));
    if wanted.is_empty() {
        return false;
    }
    let is_rooted = pattern.starts_with('/');
    let starts = if is_rooted { 0..=0 } else { 0..=given.len() };
    starts.into_iter().any(|start| names_match(&wanted, &given[start..]))
}

/// Whether a path that a pattern matches could be one of those that a shell makes of another pattern, which may have
/// `[…]` and `{…}` too.
///
/// ```
/// use contexture_text::pattern::patterns_meet;
/// assert!(patterns_meet("**/.env", "sub/.e*"));
/// assert!(!patterns_meet("**/.env", "*"), "a shell leaves out names that begin with a dot");
/// assert!(!patterns_meet("*.sql", "src/*.rs"));
/// ```
pub fn patterns_meet(pattern: &str, given: &str) -> bool {
    let given = with_signs_for_sets(given);
    let names = |text: &str| -> Vec<String> {
        text.split(['/', '\\']).filter(|name| !matches!(*name, "" | ".")).map(str::to_owned).collect()
    };
    let (wanted, names) = (names(pattern), names(&given));
    let starts = if pattern.starts_with('/') { 0..=0 } else { 0..=names.len() };
    !wanted.is_empty() && starts.into_iter().any(|start| all_meet(&wanted, &names[start..], names_meet))
}

/// A pattern with `?` for each `[…]`, and `*` for each `{…}`.
fn with_signs_for_sets(pattern: &str) -> String {
    let (mut plain, mut rest) = (String::new(), pattern);
    while let Some(at) = rest.find(['[', '{']) {
        let is_list = rest[at..].starts_with('{');
        let close = if is_list { '}' } else { ']' };
        let Some(end) = rest[at + 1..].find(close) else { break };
        plain.push_str(&rest[..at]);
        plain.push(if is_list { '*' } else { '?' });
        rest = &rest[at + 1 + end + 1..];
    }
    plain + rest
}

/// Whether some name matches both patterns. The second is a shell's, which finds no name with a dot before it unless the
/// dot is written.
fn names_meet(wanted: &str, given: &str) -> bool {
    if wanted.starts_with('.') && given.starts_with(['*', '?']) {
        return false;
    }
    let (wanted, given): (Vec<char>, Vec<char>) = (wanted.chars().collect(), given.chars().collect());
    let mut meets = vec![vec![false; given.len() + 1]; wanted.len() + 1];
    for one in (0..=wanted.len()).rev() {
        for other in (0..=given.len()).rev() {
            let (this, that) = (wanted.get(one), given.get(other));
            meets[one][other] = match (this, that) {
                (None, None) => true,
                (Some('*'), _) if meets[one + 1][other] => true,
                (_, Some('*')) if meets[one][other + 1] => true,
                (Some('*'), Some(_)) => meets[one][other + 1],
                (Some(_), Some('*')) => meets[one + 1][other],
                (Some(this), Some(that)) => (this == that || *this == '?' || *that == '?') && meets[one + 1][other + 1],
                _ => false,
            };
        }
    }
    meets[0][0]
}

/// Whether names match, where `**` is any number of names. Each pair is looked at once.
fn names_match(wanted: &[String], given: &[String]) -> bool {
    all_meet(wanted, given, name_matches)
}

fn all_meet(wanted: &[String], given: &[String], is_like: fn(&str, &str) -> bool) -> bool {
    let mut can_match = vec![false; given.len() + 1];
    can_match[given.len()] = true;
    for pattern in wanted.iter().rev() {
        let mut next = vec![false; given.len() + 1];
        for at in (0..=given.len()).rev() {
            next[at] = match pattern.as_str() {
                "**" => can_match[at] || next.get(at + 1).copied().unwrap_or(false),
                pattern => at < given.len() && can_match[at + 1] && is_like(pattern, &given[at]),
            };
        }
        can_match = next;
    }
    can_match[0]
}

/// Whether a whole text matches, where `*` is any number of characters and `?` is one.
pub fn name_matches(pattern: &str, name: &str) -> bool {
    let name: Vec<char> = name.chars().collect();
    let mut can_match = vec![false; name.len() + 1];
    can_match[0] = true;
    for character in pattern.chars() {
        let mut next = vec![false; name.len() + 1];
        for at in 0..=name.len() {
            next[at] = match character {
                '*' => can_match[at] || (at > 0 && next[at - 1]),
                character => at > 0 && can_match[at - 1] && (character == '?' || character == name[at - 1]),
            };
        }
        can_match = next;
    }
    can_match[name.len()]
}

#[cfg(test)]
mod tests {
    use super::path_matches;

    #[test]
    fn patterns_match_whole_names_beneath_any_directory() {
        let cases = [
            ("PLAN.md", "docs/PLAN.md", true),
            ("docs/PLAN.md", "/home/me/app/docs/PLAN.md", true),
            ("docs/PLAN.md", "/home/me/mydocs/PLAN.md", false),
            ("*.sql", "schema/a.sql", true),
            ("schema/*.sql", "schema/old/a.sql", false),
            ("schema/**/*.sql", "schema/old/a.sql", true),
            ("schema/**/*.sql", "schema/a.sql", true),
            ("schema/**", "x/schema/a/b", true),
            ("/etc/*", "/etc/hosts", true),
            ("/etc/*", "/srv/etc/hosts", false),
            ("a?.rs", "ab.rs", true),
            ("a?.rs", "a.rs", false),
            ("**", "anything/at/all", true),
            ("./src/lib.rs", "src/lib.rs", true),
            ("src\\lib.rs", "d:/app/src/lib.rs", true),
            ("", "a", false),
            ("/", "a", false),
        ];
        for (pattern, path, is_match) in cases {
            assert_eq!(path_matches(pattern, path), is_match, "{pattern} on {path}");
        }
    }
}
