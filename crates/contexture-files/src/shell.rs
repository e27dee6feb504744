//! A parser for shell command lines that recognises what it does not understand.
//!
//! [`parse`] returns a [`Script`] only if it followed every quote, substitution and here-document to its end. If it
//! cannot follow something (functions, `case`, arithmetic commands, unbalanced quotes), it refuses the whole line. It
//! does not expand anything: a word that the shell would change is marked as not plain.

mod constants;
mod parse;
mod whole;
mod word;

/// A word of a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// Its text without quotes; as written where it is not plain.
    pub text: String,
    /// How the shell changes it.
    pub expands: Expands,
    /// Whether any of it is quoted.
    pub is_quoted: bool,
    /// Whether it has braces outside of quotes, from which the shell may make several words.
    pub has_braces: bool,
}

/// How the shell changes a word before the command gets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expands {
    /// Not at all: the command gets exactly this text.
    #[default]
    Never,
    /// Into the names of files that match a pattern; directories that are written out before it stay as they are.
    ToNames,
    /// Into anything.
    ToAnything,
}

impl Word {
    /// The exact text that the command gets, if the word is plain.
    pub fn plain(&self) -> Option<&str> {
        (self.expands == Expands::Never).then_some(self.text.as_str())
    }

    /// Whether it has a command in a subscript, such as `a[$(date)]`, which runs where a number or the name of a
    /// variable is expected, even if the word is quoted.
    pub fn has_subscript_command(&self) -> bool {
        // Substitutions that run anyway are written as `$()` and two back quotes.
        let inside = self.text.split_once('[').map_or(String::new(), |(_, inside)| inside.replace("$()", ""));
        inside.contains("$(") || inside.replace("``", "").contains('`')
    }
}

/// A redirection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Redirect {
    /// Output replaces a file: `> f`.
    Write(Word),
    /// Output is added to a file: `>> f`.
    Append(Word),
    /// Only error messages go into a file: `2> f`.
    Errors(Word),
    /// Output and error messages go into a file: `&> f`.
    Both(Word),
    /// Another descriptor leads to a file: `3> f`.
    Other(Word),
    /// Error messages go where output goes: `2>&1`.
    ErrorsToOutput,
    /// Another copy of a descriptor, such as `>&2`, or a text that is the input of another descriptor.
    Copy,
    /// Input comes from a file.
    Read(Word),
    /// Input is written out in the script.
    Document {
        /// The text.
        text: String,
        /// Whether the shell passes it on exactly as it is.
        is_plain: bool,
    },
}

/// One simple command: a program with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Simple {
    /// The words; the first one is the program.
    pub words: Vec<Word>,
    /// The names of variables that are set before it.
    pub assigns: Vec<String>,
    /// The assignments before it that have a value, as in `NAME=value`.
    pub assigned: Vec<Word>,
    /// The redirections, in order.
    pub redirects: Vec<Redirect>,
    /// Whether it runs in a subshell, so that it cannot change the directory of later commands.
    pub is_apart: bool,
}

/// How a pipeline is joined to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joint {
    /// The next one runs only if this one succeeds.
    And,
    /// The next one runs in any case.
    Then,
}

/// Commands connected by pipes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// The commands.
    pub commands: Vec<Simple>,
    /// The commands of substitutions in their words, which may run before, between and after them.
    pub inner: Vec<Simple>,
    /// How the next pipeline follows.
    pub joint: Joint,
}

/// A parsed command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// The pipelines, one after the other. Empty if the script is not straight.
    pub pipelines: Vec<Pipeline>,
    /// Commands that may or may not run, once or several times, at any point: those of conditionals, loops, subshells,
    /// lists joined by `||`, and substitutions in these. Empty if the script is straight.
    pub others: Vec<Simple>,
    /// Whether it is a plain list of pipelines joined by `;`, line feeds and `&&`.
    pub is_straight: bool,
}

impl Script {
    /// The same commands, of which it is unknown which of them run, and when.
    pub(crate) fn branching(mut self) -> Self {
        let pipelines = std::mem::take(&mut self.pipelines).into_iter();
        let straight = pipelines.flat_map(|pipeline| pipeline.commands.into_iter().chain(pipeline.inner));
        self.others = straight.chain(std::mem::take(&mut self.others)).collect();
        self.is_straight = false;
        self
    }

    /// All commands.
    pub fn commands(&self) -> impl Iterator<Item = &Simple> {
        self.pipelines.iter().flat_map(|pipeline| pipeline.commands.iter().chain(&pipeline.inner)).chain(&self.others)
    }
}

impl Simple {
    /// The program's name without its directory, if the word is plain.
    pub fn program(&self) -> Option<&str> {
        let word = self.words.first()?.plain()?;
        // A program in the project is not the one that its name suggests.
        match word.rsplit_once('/') {
            Some(("/bin" | "/usr/bin" | "/usr/local/bin" | "/opt/homebrew/bin", name)) => Some(name),
            Some(_) => None,
            None => Some(word),
        }
    }

    /// The arguments.
    pub fn arguments(&self) -> &[Word] {
        self.words.get(1..).unwrap_or_default()
    }

    /// The arguments as text, if all of them are plain.
    pub fn plain_arguments(&self) -> Option<Vec<&str>> {
        self.arguments().iter().map(Word::plain).collect()
    }
}

/// Longest command line that is parsed, in bytes.
pub const MAX_COMMAND_BYTES: usize = 1 << 20;

/// Reads a command line; `None` if it is not understood.
///
/// ```
/// use contexture_files::shell::{Joint, parse};
/// let script = parse("cd src && sed -n '1,20p' main.rs | head -5 > out.txt").unwrap();
/// assert!(script.is_straight);
/// assert_eq!(script.pipelines[0].joint, Joint::And);
/// assert_eq!(script.pipelines[1].commands[0].plain_arguments().unwrap(), ["-n", "1,20p", "main.rs"]);
/// assert!(!parse("test -f a || rm b").unwrap().is_straight);
/// assert!(parse("cat 'a").is_none());
/// ```
pub fn parse(line: &str) -> Option<Script> {
    if line.len() > MAX_COMMAND_BYTES || line.contains(['\r', '\0']) {
        return None;
    }
    parse::script(line, false)
}

/// Reads a command line to find every command in it, also those of functions, of `case` and in the background; `None` if
/// it is not understood. What such a line does is not known from it.
pub fn parse_all(line: &str) -> Option<Script> {
    if line.len() > MAX_COMMAND_BYTES || line.contains(['\r', '\0']) {
        return None;
    }
    parse::script(line, true)
}
