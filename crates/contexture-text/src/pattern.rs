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

/// Whether names match, where `**` is any number of names. Each pair is looked at once.
fn names_match(wanted: &[String], given: &[String]) -> bool {
    let mut can_match = vec![false; given.len() + 1];
    can_match[given.len()] = true;
    for pattern in wanted.iter().rev() {
        let mut next = vec![false; given.len() + 1];
        for at in (0..=given.len()).rev() {
            next[at] = match pattern.as_str() {
                "**" => can_match[at] || next.get(at + 1).copied().unwrap_or(false),
                pattern => at < given.len() && can_match[at + 1] && name_matches(pattern, &given[at]),
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
