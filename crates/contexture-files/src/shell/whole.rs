//! Syntax that is followed only to find every command of a line, and not to know what the line does: what runs in the
//! background, functions, `case`, arithmetic, arrays and process substitutions.

use super::parse::Parser;
use super::{Expands, Simple, Word};

impl Parser<'_> {
    /// `<(…)` or `>(…)`, whose commands are noted: a word whose text is not known.
    pub(super) fn process_substitution(&mut self) -> Option<Word> {
        self.advance(2);
        self.substitution()?;
        Some(Word { text: "<()".to_owned(), expands: Expands::ToAnything, is_quoted: true, ..Word::default() })
    }

    /// `$((…))` or `((…))`, from its parentheses on. Nothing in it runs, or it is not followed: where the parentheses do
    /// not end together, it is a subshell.
    pub(super) fn arithmetic(&mut self) -> Option<()> {
        let inner = &self.rest()[2..];
        let mut depth = 0;
        let len = inner.char_indices().find_map(|(at, character)| {
            match character {
                '(' => depth += 1,
                ')' if depth == 0 => return Some(at),
                ')' => depth -= 1,
                _ => {}
            }
            None
        })?;
        let (text, end) = inner.split_at(len);
        if text.contains(['`', '[', '\n', '"', '\'', '\\', ';']) || text.contains("$(") || !end.starts_with("))") {
            return None;
        }
        self.advance(2 + len + 2);
        Some(())
    }

    /// The body of a function, after its name; its commands are noted as if they ran.
    pub(super) fn function_body(&mut self) -> Option<Simple> {
        self.skip_lines()?;
        let body = self.command()?;
        let name = Word { text: ":".to_owned(), ..Word::default() };
        Some(body.unwrap_or(Simple { words: vec![name], ..Simple::default() }))
    }

    /// `function name { … }`, after its first word.
    pub(super) fn named_function(&mut self) -> Option<Simple> {
        self.skip_blanks();
        self.word()?;
        self.skip_blanks();
        if self.rest().starts_with("()") {
            self.advance(2);
        }
        self.function_body()
    }

    /// The elements of an array, from the parenthesis on.
    pub(super) fn array(&mut self) -> Option<()> {
        self.advance(1);
        loop {
            self.skip_lines()?;
            if self.peek()? == ')' {
                self.advance(1);
                return Some(());
            }
            self.some_word()?;
        }
    }

    /// `case … esac`, after its first word.
    pub(super) fn cases(&mut self) -> Option<()> {
        self.skip_blanks();
        self.some_word()?;
        self.skip_lines()?;
        self.expect("in")?;
        loop {
            self.skip_lines()?;
            if self.reserved() == Some("esac") {
                return self.expect("esac");
            }
            if self.peek()? == '(' {
                self.advance(1);
            }
            loop {
                self.skip_blanks();
                self.some_word()?;
                self.skip_blanks();
                match self.peek()? {
                    '|' => self.advance(1),
                    ')' => break self.advance(1),
                    _ => return None,
                }
            }
            self.compound(&["esac"])?;
            self.skip_blanks();
            let rest = self.rest();
            if let Some(end) = [";;&", ";;", ";&"].into_iter().find(|end| rest.starts_with(end)) {
                self.advance(end.len());
            }
        }
    }

    /// A word that must be there.
    fn some_word(&mut self) -> Option<Word> {
        let before = self.rest().len();
        self.word().filter(|_| self.rest().len() < before)
    }
}
