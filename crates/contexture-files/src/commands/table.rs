//! What is known of programs: what one reads, changes and prints, what its arguments are, and what it does to the shell.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use serde::{Deserialize, Deserializer};

/// A list of words that is kept for as long as the program runs.
type Words = &'static [&'static str];

/// A program.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Program {
    /// Other names of it.
    #[serde(deserialize_with = "words")]
    also: Words,
    /// What it changes by itself; without it and without `reads`, it could write any file.
    pub(crate) does: Option<Deed>,
    /// How far it only reads, if it does.
    pub(crate) reads: Option<Reading>,
    /// The actions of `git` that change no file of the work tree.
    #[serde(deserialize_with = "words")]
    pub(crate) reading: Words,
    /// What it prints.
    pub(crate) prints: Output,
    /// What it leaves of what is piped into it.
    pub(crate) filters: Filter,
    /// Whether it sets variables of the shell.
    pub(crate) sets: Sets,
    /// What its arguments are.
    pub takes: ArgumentUse,
    /// The options before its subcommand.
    pub options: LeadingOptions,
    /// What else is known of it.
    #[serde(deserialize_with = "traits")]
    is: &'static [Trait],
}

/// What a program changes by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Deed {
    /// It is a command of the shell that has nothing to do with files.
    Nothing,
    /// `set`
    Settings,
    Sed,
    Awk,
    Git,
    Touch,
    /// `rm`
    Remove,
    /// `cp`
    Copy,
    /// `mv`
    Move,
    /// `ln`
    Link,
    Tee,
    Truncate,
    /// `perl`, with `-i`.
    InPlace,
    /// `apply_patch`
    Patch,
    /// `timeout 60 go test`
    AfterDuration,
    /// `nohup make`
    Rest,
    /// `command ls`, `command -v ls`
    Command,
    /// `bash -c '…'`
    Line,
}

/// How far a program only reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Reading {
    /// Options with which it could write files.
    #[serde(deserialize_with = "words")]
    pub(crate) unless: Words,
    /// The greatest number of operands, if it would write to further ones.
    pub(crate) most_operands: Option<usize>,
}

/// What a program prints.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Output {
    /// Anything.
    #[default]
    Unknown,
    /// Nothing if it succeeds, unless an option asks for it.
    Nothing,
    /// Whole files.
    Whole,
    /// The first or the last lines of a file.
    Ends,
    /// The lines that its script says.
    Sed,
    /// The lines that match.
    Hits,
    /// Nothing, or a directory.
    Directory,
    /// Nothing, or the settings of the shell.
    Settings,
    /// Nothing, or the variables of the shell.
    Variables,
}

/// What a program leaves of what is piped into it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Filter {
    /// Anything.
    #[default]
    Unknown,
    /// All of it.
    Passes,
    /// All lines in another order.
    Sorts,
    /// The first or the last lines.
    Ends,
    /// The lines that its script says.
    Sed,
    /// The lines that match.
    Greps,
}

/// Whether a command of the shell sets the variables that its arguments name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Sets {
    /// It sets none.
    #[default]
    Never,
    /// It sets those that are named.
    Always,
    /// It sets the one after `-v`.
    AfterOption,
}

/// What else is known of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trait {
    /// It changes what later commands mean, or whether they run.
    AltersShell,
    /// Nothing runs after it.
    Ends,
    /// It takes names of variables or numbers, and runs commands in their subscripts.
    Evaluates,
    /// It may change the directory of the shell that runs it.
    Moves,
    /// Every error message begins with its name.
    NamesItself,
    /// Its operands are files that it shows something of.
    ShowsOperands,
}

/// What a program does with its arguments.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArgumentUse {
    /// Anything.
    #[default]
    Unknown,
    /// They are only text, names or patterns, except the values of these options, which are command lines.
    #[serde(deserialize_with = "words")]
    Text(&'static [&'static str]),
    /// They are another command, after options.
    #[serde(deserialize_with = "prefix")]
    Command(&'static Prefix),
    /// They are such a command, and it gets more arguments from what is read.
    #[serde(deserialize_with = "prefix")]
    Fed(&'static Prefix),
    /// Commands are between them.
    Between,
    /// They are options of a shell, a script, or a line.
    Shell,
    /// They are joined to a command line.
    Line,
    /// Commands come from elsewhere.
    Elsewhere,
    /// Some options name a command that is run later.
    Callbacks,
    /// They set variables.
    Variables,
    /// They give commands other names.
    Aliases,
    /// They are files that get other names.
    Files,
    /// They are a program in another language, or name one.
    Code,
    /// They are those of `git`.
    Git,
    /// What is read is run later.
    Later,
}

/// How a program is told which command to run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Prefix {
    /// The options that take the next word as their value.
    #[serde(deserialize_with = "words")]
    pub values: &'static [&'static str],
    /// The options whose value is a command line.
    #[serde(deserialize_with = "words")]
    pub lines: &'static [&'static str],
    /// The options with which nothing runs.
    #[serde(deserialize_with = "words")]
    pub looks: &'static [&'static str],
    /// How many words come before the command.
    pub before: usize,
    /// Whether variables may be set before the command.
    pub has_assignments: bool,
    /// Whether it starts a shell if there is no command.
    pub starts_shells: bool,
}

/// The options before a subcommand.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LeadingOptions {
    /// Those that take the next word as their value.
    #[serde(deserialize_with = "words")]
    pub values: &'static [&'static str],
    /// Those that take none.
    #[serde(deserialize_with = "words")]
    pub switches: &'static [&'static str],
}

/// The rows by all names, read when one is needed for the first time.
static ROWS: LazyLock<HashMap<&'static str, Program>> = LazyLock::new(|| {
    let read: Result<BTreeMap<String, Program>, _> = toml::from_str(include_str!("programs.toml"));
    let rows = read.unwrap_or_else(|error| panic!("programs.toml, which comes with the program: {error}"));
    let named = rows.into_iter().map(|(name, row)| (&*name.leak(), row));
    named.flat_map(|(name, row)| row.also.iter().copied().chain([name]).map(move |name| (name, row))).collect()
});

/// The row of a program.
pub fn row(name: &str) -> &'static Program {
    /// The row of a program that the table does not have.
    static UNKNOWN: LazyLock<Program> = LazyLock::new(Program::default);
    ROWS.get(name).unwrap_or(&UNKNOWN)
}

/// The programs that only read, each with all its names and the options with which it could write, in order.
pub fn readers() -> impl Iterator<Item = (Vec<&'static str>, &'static [&'static str])> {
    let mut names: Vec<&'static str> = ROWS.keys().copied().collect();
    names.sort_unstable();
    let is_first = |name: &&str| row(name).reads.is_some() && !ROWS.values().any(|row| row.also.contains(name));
    names.into_iter().filter(is_first).map(|name| {
        let row = row(name);
        let unless = row.reads.map_or(&[][..], |reading| reading.unless);
        ([name].into_iter().chain(row.also.iter().copied()).collect(), unless)
    })
}

impl Program {
    /// Whether a trait is its own.
    pub fn has(&self, wanted: Trait) -> bool {
        self.is.contains(&wanted)
    }

    /// Whether it changes no file, whatever it is given.
    pub(crate) fn only_reads(&self) -> bool {
        self.reads == Some(Reading::default()) && self.does.is_none()
    }
}

fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Words, D::Error> {
    let words = Vec::<String>::deserialize(deserializer)?;
    Ok(words.into_iter().map(|word| &*word.leak()).collect::<Vec<_>>().leak())
}

fn traits<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'static [Trait], D::Error> {
    Ok(Vec::<Trait>::deserialize(deserializer)?.leak())
}

fn prefix<'de, D: Deserializer<'de>>(deserializer: D) -> Result<&'static Prefix, D::Error> {
    Ok(Box::leak(Box::new(Prefix::deserialize(deserializer)?)))
}
