//! One word of a command line: quotes, escapes and what the shell would expand.

use super::parse::Parser;
use super::{Expands, Word};

impl Parser<'_> {
    /// Reads a word, which is empty if none begins here. `None` if a quote or a substitution does not end.
    pub(super) fn word(&mut self) -> Option<Word> {
        let mut word = Word::default();
        while let Some(next) = self.peek() {
            match next {
                ' ' | '\t' | '\n' | ';' | '|' | '&' | '<' | '>' | '(' | ')' => break,
                '\'' => self.single_quoted(&mut word)?,
                '"' => self.double_quoted(&mut word)?,
                '$' => self.dollar(&mut word, false)?,
                '`' => self.backquoted(&mut word)?,
                '\\' => self.escaped(&mut word)?,
                _ => {
                    let at_start = word.text.is_empty() && !word.is_quoted;
                    word.expands = word.expands.max(expansion(next, at_start, self.rest()));
                    word.has_braces |= next == '{' && !self.rest().starts_with("{}");
                    word.text.push(next);
                    self.advance(next.len_utf8());
                }
            }
        }
        // A bracket alone is the command that tests, or its end.
        if matches!(word.text.as_str(), "[" | "]") && word.expands == Expands::ToNames {
            word.expands = Expands::Never;
        }
        // A tilde is also expanded after `=` or `:`.
        if !word.is_quoted && (word.text.contains("=~") || word.text.contains(":~")) {
            word.expands = Expands::ToAnything;
        }
        Some(word)
    }

    fn single_quoted(&mut self, word: &mut Word) -> Option<()> {
        let inner = &self.rest()[1..];
        let len = inner.find('\'')?;
        word.text.push_str(&inner[..len]);
        word.is_quoted = true;
        self.advance(len + 2);
        Some(())
    }

    fn escaped(&mut self, word: &mut Word) -> Option<()> {
        let escaped = self.rest()[1..].chars().next()?;
        self.advance(1 + escaped.len_utf8());
        if escaped != '\n' {
            word.text.push(escaped);
            word.is_quoted = true;
        }
        Some(())
    }

    fn double_quoted(&mut self, word: &mut Word) -> Option<()> {
        word.is_quoted = true;
        self.advance(1);
        loop {
            let next = self.peek()?;
            match next {
                '"' => {
                    self.advance(1);
                    return Some(());
                }
                '\\' => {
                    let escaped = self.rest()[1..].chars().next()?;
                    match escaped {
                        '"' | '\\' | '$' | '`' => word.text.push(escaped),
                        '\n' => {}
                        other => {
                            word.text.push('\\');
                            word.text.push(other);
                        }
                    }
                    self.advance(1 + escaped.len_utf8());
                }
                '$' => self.dollar(word, true)?,
                '`' => self.backquoted(word)?,
                _ => {
                    word.text.push(next);
                    self.advance(next.len_utf8());
                }
            }
        }
    }

    /// Something that begins with a dollar sign.
    fn dollar(&mut self, word: &mut Word, in_quotes: bool) -> Option<()> {
        let rest = self.rest();
        let after = rest[1..].chars().next();
        match after {
            Some('(') if rest.starts_with("$((") => {
                if !self.finds_all {
                    return None;
                }
                self.advance(1);
                self.arithmetic()?;
                word.text.push_str("$(())");
            }
            Some('(') => {
                self.advance(2);
                self.substitution()?;
                word.text.push_str("$()");
            }
            Some('{') => return self.braced(word, in_quotes),
            Some('\'') if !in_quotes => {
                let mut chars = rest[2..].char_indices();
                let len = loop {
                    match chars.next()? {
                        (index, '\'') => break index,
                        (_, '\\') => drop(chars.next()?),
                        _ => {}
                    }
                };
                word.text.push_str(&rest[..len + 3]);
                self.advance(len + 3);
            }
            Some('"') if !in_quotes => return None,
            Some('[') => return None,
            Some(c) if c.is_ascii_alphanumeric() || "_@*#?$!-".contains(c) => {
                let end = rest[1..].find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len() - 1);
                if self.put_value(word, &rest[1..=end], 1 + end, in_quotes) {
                    return Some(());
                }
                word.text.push('$');
                self.advance(1);
            }
            // A lone dollar sign is itself.
            _ => {
                word.text.push('$');
                self.advance(1);
                return Some(());
            }
        }
        word.expands = Expands::ToAnything;
        Some(())
    }

    /// A variable in braces.
    fn braced(&mut self, word: &mut Word, in_quotes: bool) -> Option<()> {
        let rest = self.rest();
        let len = rest.find('}')?;
        let inner = &rest[2..len];
        // Anything besides a name may contain quotes, commands and braces.
        let more = if self.finds_all { "[]~ " } else { "" };
        let is_simple = |c: char| c.is_ascii_alphanumeric() || "_@*#?!-:.,/%^+=".contains(c) || more.contains(c);
        // With `@P` the value is expanded as a prompt, which may run commands.
        if !inner.chars().all(is_simple) || inner.ends_with("@P") {
            return None;
        }
        if !self.put_value(word, inner, len + 1, in_quotes) {
            word.text.push_str(&rest[..=len]);
            self.advance(len + 1);
            word.expands = Expands::ToAnything;
        }
        Some(())
    }

    /// Puts the value of a variable in the place of what names it, if that is known.
    fn put_value(&mut self, word: &mut Word, name: &str, len: usize, in_quotes: bool) -> bool {
        let Some(value) = self.constants.value(name, in_quotes) else { return false };
        word.text.push_str(value);
        self.advance(len);
        true
    }

    /// A command in back quotes; one that contains escapes is not followed.
    fn backquoted(&mut self, word: &mut Word) -> Option<()> {
        let inner = &self.rest()[1..];
        let len = inner.find('`')?;
        let line = &inner[..len];
        let is_unescaped = ['`', '$', '\\', '"'].iter().any(|next| line.contains(&format!("\\{next}")));
        if line.contains(['"', '\'']) || is_unescaped || line.ends_with('\\') {
            return None;
        }
        self.advance(len + 2);
        // What begins with an operator is no command: the shell complains and puts in nothing.
        if !line.trim_start().starts_with(['|', '&', ';', ')']) {
            self.nested(line)?;
        }
        word.text.push_str("``");
        word.expands = Expands::ToAnything;
        Some(())
    }
}

/// Returns how the shell expands a word because of an unquoted character.
fn expansion(next: char, at_start: bool, rest: &str) -> Expands {
    match next {
        '*' | '?' | '[' | ']' => Expands::ToNames,
        '{' if rest.starts_with("{}") => Expands::Never,
        '{' => Expands::ToAnything,
        // A tilde is a home directory, an equals sign the place of a program in some shells.
        '~' | '=' if at_start => Expands::ToAnything,
        // Patterns of shells that have additional ones.
        '^' | '#' if at_start => Expands::ToAnything,
        _ => Expands::Never,
    }
}
