//! What `make` or `just` is asked for, by its arguments.

use crate::files::shell::Word;

/// Which program reads the file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RecipeProgram {
    Make,
    Just,
}

impl RecipeProgram {
    /// The files that it looks for.
    pub(super) fn files(self) -> &'static [&'static str] {
        match self {
            RecipeProgram::Make => &["GNUmakefile", "makefile", "Makefile"],
            RecipeProgram::Just => &["justfile", "Justfile", ".justfile"],
        }
    }
}

/// What the program is asked for.
pub(super) struct RecipeRequest<'a> {
    pub(super) file: Option<&'a str>,
    pub(super) directory: Option<&'a str>,
    /// `None`: it is not known which.
    pub(super) goals: Option<Vec<&'a str>>,
    /// Variables that are set; `None` if it is not known to what.
    pub(super) variables: Vec<(&'a str, Option<&'a str>)>,
    /// Whether no recipe is run.
    pub(super) only_shows: bool,
}

/// Long options that change nothing about what is run. Others may be short for one that does.
const HARMLESS: [&str; 23] = [
    "--silent",
    "--quiet",
    "--verbose",
    "--keep-going",
    "--no-keep-going",
    "--always-make",
    "--print-directory",
    "--no-print-directory",
    "--trace",
    "--debug",
    "--ignore-errors",
    "--no-builtin-rules",
    "--no-builtin-variables",
    "--output-sync",
    "--warn-undefined-variables",
    "--jobs",
    "--load-average",
    "--touch",
    "--stop",
    "--yes",
    "--no-deps",
    "--unstable",
    "--color",
];

impl<'a> RecipeRequest<'a> {
    /// Reads the arguments, and the variables that are set before the program; `None` if they hold rules themselves, or
    /// are not understood.
    pub(super) fn read(writing: RecipeProgram, arguments: &'a [Word], assigned: &'a [Word]) -> Option<Self> {
        let (goals, variables) = (Some(Vec::new()), Vec::new());
        let mut asked = Self { file: None, directory: None, goals, variables, only_shows: false };
        assigned.iter().for_each(|word| asked.word(&word.text, word.plain()));
        // More arguments; only those that change nothing about what is run are understood.
        let is_simple = |flags: &str| flags.chars().all(|c| c.is_ascii_digit() || "-jksB ".contains(c));
        let is_doubtful = |(name, value): &(&str, Option<&str>)| {
            matches!(*name, "MAKEFLAGS" | "GNUMAKEFLAGS") && !value.is_some_and(is_simple)
        };
        if asked.variables.iter().any(is_doubtful) {
            return None;
        }
        let mut rest = arguments.iter();
        while let Some(word) = rest.next() {
            let text = word.text.as_str();
            if text.starts_with("--") && text.len() > 2 {
                asked.long(word, &mut rest)?;
            } else if text.starts_with('-') && text.len() > 1 {
                asked.short(writing, word, &mut rest)?;
            } else {
                asked.word(text, word.plain());
            }
        }
        Some(asked)
    }

    fn long(&mut self, word: &'a Word, rest: &mut std::slice::Iter<'a, Word>) -> Option<()> {
        let (name, attached) =
            word.text.split_once('=').map_or((word.text.as_str(), None), |(name, at)| (name, Some(at)));
        let mut value = || match attached {
            Some(value) => word.plain().map(|_| value),
            None => rest.next()?.plain(),
        };
        match name {
            "--file" | "--makefile" | "--justfile" => self.file = Some(value()?),
            "--directory" | "--working-directory" => self.directory = Some(value()?),
            "--just-print" | "--dry-run" | "--recon" | "--question" | "--list" | "--summary" | "--show" | "--dump"
            | "--evaluate" => self.only_shows = true,
            "--include-dir" | "--old-file" | "--assume-old" | "--what-if" | "--assume-new" | "--new-file" => {
                value()?;
            }
            "--set" => {
                let (name, value) = (rest.next()?, rest.next()?);
                self.variables.push((name.plain()?, value.plain()));
            }
            name if HARMLESS.contains(&name) => {}
            _ => return None,
        }
        Some(())
    }

    /// Options of one letter, of which the last may have a value.
    fn short(&mut self, writing: RecipeProgram, word: &'a Word, rest: &mut std::slice::Iter<'a, Word>) -> Option<()> {
        let letters = &word.text[1..];
        let takes_value = |letter: char| match writing {
            RecipeProgram::Make => "fCIEoWjlO".contains(letter),
            RecipeProgram::Just => "fdcs".contains(letter),
        };
        for (at, letter) in letters.char_indices() {
            if !takes_value(letter) {
                self.only_shows |= letter == 'n' || letter == if writing == RecipeProgram::Make { 'q' } else { 'l' };
                continue;
            }
            let attached = &letters[at + letter.len_utf8()..];
            // The number of `-j` may be missing, and one that is a word of its own is no goal.
            if "jlO".contains(letter) && writing == RecipeProgram::Make {
                return Some(());
            }
            let value = if attached.is_empty() { rest.next()?.plain() } else { word.plain().map(|_| attached) };
            match letter {
                'f' => self.file = Some(value?),
                'C' | 'd' => self.directory = Some(value?),
                'I' | 'o' | 'W' | 's' => {}
                _ => return None,
            }
            return Some(());
        }
        Some(())
    }

    /// A goal, or a variable.
    fn word(&mut self, text: &'a str, plain: Option<&'a str>) {
        let is_name = |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c));
        match (text.split_once('='), plain, &mut self.goals) {
            (Some((name, value)), _, _) if is_name(name.trim_end_matches([':', '+', '?'])) => {
                self.variables.push((name.trim_end_matches([':', '+', '?']), plain.map(|_| value)));
            }
            (_, Some(goal), Some(goals)) if !goal.chars().all(|c| c.is_ascii_digit()) => goals.push(goal),
            // The number after `-j`.
            (_, Some(_), _) => {}
            (_, None, goals) => *goals = None,
        }
    }

    /// A name for what is asked.
    pub(super) fn part(&self) -> String {
        format!("{:?} {:?} {}", self.goals, self.variables, self.only_shows)
    }
}
