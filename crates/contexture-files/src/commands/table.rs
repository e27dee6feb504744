//! What is known of programs, one row each: what one changes, prints, runs, takes, and does to the shell that starts it.

mod arguments;
mod tools;
mod utilities;

pub use arguments::{ArgumentUse, LeadingOptions, Prefix};

/// A program.
#[derive(Clone, Copy)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// Other names of it.
    pub others: &'static [&'static str],
    /// What it changes by itself.
    pub changes: Changes,
    /// What it changes when it is told to do something, by the words after its name.
    pub actions: &'static [Action],
    /// What it prints.
    pub prints: Output,
    /// What it leaves of what is piped into it.
    pub filters: Filter,
    /// What it does with what it is given.
    pub runs: Runs,
    /// Whether it sets variables of the shell.
    pub sets: Sets,
    /// What its arguments are.
    pub takes: ArgumentUse,
    /// The options before its subcommand.
    pub options: LeadingOptions,
    /// The files of a project that say what its tasks run, the first that is there counts.
    pub tasks: &'static [&'static str],
    traits: &'static [Trait],
}

/// What a program changes by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Changes {
    /// Only its actions are known, or nothing.
    Unknown,
    /// Nothing: it is a command of the shell that has nothing to do with files.
    Never,
    /// Nothing, with exceptions.
    Reads(Reading),
    /// `find`: the same, and what `-exec` names.
    Searches(Reading),
    /// `set`
    Settings,
    /// `sed`
    Sed,
    /// `awk`
    Awk,
    /// `git`
    Git,
    /// `make`, presumed to leave sources alone with these targets, or with none.
    Make {
        /// The targets.
        targets: &'static [&'static str],
    },
    /// `curl`
    Curl,
    /// `touch`
    Touch,
    /// `rm`
    Remove,
    /// `cp`
    Copy,
    /// `mv`
    Move,
    /// `ln`
    Link,
    /// `tee`
    Tee,
    /// `truncate`
    Truncate,
    /// `apply_patch`
    Patch,
    /// What another command does that it runs.
    Inner(Wrapper),
    /// What a program does that it is given on the command line.
    Code(Language),
}

/// How far a program only reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Reading {
    /// Options with which it may change files; with any of them nothing is certain.
    pub unless: &'static [&'static str],
    /// The greatest number of operands, if it would write to further ones.
    pub most_operands: Option<usize>,
}

impl Reading {
    /// Whether no argument changes this.
    pub(super) fn is_whatever_it_is_given(&self) -> bool {
        self.unless.is_empty() && self.most_operands.is_none()
    }
}

/// How a program is told which command to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Wrapper {
    /// `timeout 60 go test`
    AfterDuration,
    /// `nohup make`
    Rest,
    /// `command ls`, `command -v ls`
    Command,
    /// `env A=b make`
    Environment,
    /// `xargs wc`
    Fed,
    /// `bash -c '…'`
    Line,
}

/// A language whose programs are given on the command line.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// `python3 -c '…'`
    Python,
    /// `node -e '…'`
    JavaScript,
    /// `ruby -e '…'`
    Ruby,
    /// `perl -e '…'`
    Perl,
}

/// What a program prints.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// Anything.
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
    /// What `git` prints.
    Git,
    /// Nothing, or a directory.
    Directory,
    /// Nothing, or the settings of the shell.
    Settings,
    /// Nothing, or the variables of the shell.
    Variables,
}

/// What a program leaves of what is piped into it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// Anything.
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

/// What a program does with what it is given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Runs {
    /// What its row says.
    Nothing,
    /// It runs it, or writes where it is told to: a word after it is a script or a file.
    Anything,
    /// It runs the task of the project that has this name.
    Tasks,
    /// It does something to files when another program runs it.
    Work,
    /// It lets another agent work, which may change any file.
    Agent,
}

/// Whether a command of the shell sets the variables that its arguments name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sets {
    /// It sets none.
    Never,
    /// It sets those that are named.
    Always,
    /// It sets the one after `-v`.
    AfterOption,
}

/// What else is known of a program.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Trait {
    /// It changes what later commands mean, or whether they run.
    AltersShell,
    /// Nothing runs after it.
    Ends,
    /// It takes names of variables or numbers, and runs commands in their subscripts.
    Evaluates,
    /// It hands an option to a script that may do anything with it.
    HandsOnOptions,
    /// Variables that only tell `git` something do not concern it.
    IgnoresGit,
    /// It may change the directory of the shell that runs it.
    Moves,
    /// Every error message begins with its name.
    NamesItself,
    /// It may end with the status of what it runs.
    PassesOnStatus,
    /// `-v` alone asks for its version.
    ShortVersion,
    /// Its operands are files that it shows something of.
    ShowsOperands,
}

/// What a program does when it is told to.
#[derive(Clone, Copy)]
pub struct Action {
    /// The words after the program's name, with spaces between them; empty for the program alone.
    pub words: &'static str,
    /// Options of which one is required; empty if none is.
    pub needs: &'static [&'static str],
    /// How options begin with which it may do something else.
    pub unless: &'static [&'static str],
    /// What it does.
    pub does: ActionEffect,
}

/// What an action does to files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ActionEffect {
    /// It changes none, and nothing that matters to one.
    Reads,
    /// It changes the repository and no file of the work tree, and runs no hook that could.
    ChangesRepository,
    /// It runs nothing of the project and writes no source.
    StaysApart,
    /// It is presumed not to change sources.
    LeavesSources,
    /// It installs or resolves packages and notes that in files with these extensions; it is presumed to leave all others
    /// alone.
    Installs(&'static [&'static str]),
    /// It rewrites files.
    Formats(Formatting),
    /// It makes the file that is named next, of files that it only reads.
    Makes,
    /// It only starts the program that is named next.
    Starts,
}

/// How a formatter rewrites files.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Formatting {
    /// The extensions of the files that it rewrites by default; empty for all.
    pub extensions: &'static [&'static str],
    /// Whether it rewrites only the files that are named, if any are.
    pub only_named: bool,
    /// Whether what it changes is near to what it dislikes, as with one that only lays out the text.
    pub is_local: bool,
}

/// All rows.
pub fn rows() -> impl Iterator<Item = &'static Program> {
    utilities::ROWS.iter().chain(tools::ROWS)
}

/// The row of a program that no table has.
static UNKNOWN: Program = program("");

/// The row of a program.
pub fn row(name: &str) -> &'static Program {
    let own = |rows: &'static [Program]| Some(&rows[rows.binary_search_by(|program| program.name.cmp(name)).ok()?]);
    own(utilities::ROWS)
        .or_else(|| own(tools::ROWS))
        .or_else(|| rows().find(|program| program.others.contains(&name)))
        .unwrap_or(&UNKNOWN)
}

/// Whether a command line has an action that does something of one kind.
pub(super) fn acts(words: &[&str], does: ActionEffect) -> bool {
    action(words, |action| action.does == does).is_some()
}

/// Whether a command line has an action that is presumed not to change sources, or does not, told in another way.
pub(super) fn leaves_sources(words: &[&str]) -> bool {
    let Some((program, arguments)) = words.split_first() else { return false };
    let row = row(program);
    row.actions.iter().any(|action| match action.does {
        ActionEffect::LeavesSources => action.is_of(arguments),
        // With another option it may run what it is given.
        ActionEffect::StaysApart if row.runs == Runs::Anything => action.is_of(arguments),
        ActionEffect::StaysApart => action.begins(arguments),
        _ => false,
    })
}

/// The first action of a command line that does what is wanted.
pub(super) fn action(words: &[&str], is_wanted: impl Fn(&Action) -> bool) -> Option<&'static Action> {
    let (program, arguments) = words.split_first()?;
    row(program).actions.iter().find(|action| is_wanted(action) && action.is_of(arguments))
}

impl Program {
    /// Whether a trait is its own.
    pub fn has(&self, wanted: Trait) -> bool {
        self.traits.contains(&wanted)
    }

    /// How far it only reads, if it does.
    pub fn reading(&self) -> Option<Reading> {
        match self.changes {
            Changes::Reads(reading) | Changes::Searches(reading) => Some(reading),
            _ => None,
        }
    }

    const fn also(self, others: &'static [&'static str]) -> Self {
        Self { others, ..self }
    }

    const fn reads(self) -> Self {
        self.reads_unless(&[])
    }

    const fn reads_unless(self, unless: &'static [&'static str]) -> Self {
        self.does(Changes::Reads(Reading { unless, most_operands: None }))
    }

    /// It reads its first operand and writes to the second one.
    const fn reads_one(self, unless: &'static [&'static str]) -> Self {
        self.does(Changes::Reads(Reading { unless, most_operands: Some(1) }))
    }

    const fn searches_unless(self, unless: &'static [&'static str]) -> Self {
        self.does(Changes::Searches(Reading { unless, most_operands: None }))
    }

    const fn does(self, changes: Changes) -> Self {
        Self { changes, ..self }
    }

    const fn actions(self, actions: &'static [Action]) -> Self {
        Self { actions, ..self }
    }

    const fn prints(self, prints: Output) -> Self {
        Self { prints, ..self }
    }

    const fn filters(self, filters: Filter) -> Self {
        Self { filters, ..self }
    }

    const fn runs(self, runs: Runs) -> Self {
        Self { runs, ..self }
    }

    const fn sets(self, sets: Sets) -> Self {
        Self { sets, ..self }
    }

    const fn takes(self, takes: ArgumentUse) -> Self {
        Self { takes, ..self }
    }

    /// Its arguments are only text, except the values of these options.
    const fn text(self, lines: &'static [&'static str]) -> Self {
        self.takes(ArgumentUse::Text(lines))
    }

    const fn options(self, options: LeadingOptions) -> Self {
        Self { options, ..self }
    }

    /// It runs the tasks that one of these files names.
    const fn tasks(self, files: &'static [&'static str]) -> Self {
        Self { tasks: files, ..self.runs(Runs::Tasks) }
    }

    const fn is(self, traits: &'static [Trait]) -> Self {
        Self { traits, ..self }
    }
}

impl Action {
    /// Whether it is at least presumed not to change sources.
    pub(super) fn leaves_sources(&self) -> bool {
        matches!(self.does, ActionEffect::LeavesSources | ActionEffect::StaysApart)
    }

    /// Whether the words after a program's name ask for it.
    fn is_of(&self, arguments: &[&str]) -> bool {
        let has_needed = self.needs.is_empty() || arguments.iter().any(|word| self.needs.contains(word));
        let has_other = || arguments.iter().any(|word| self.unless.iter().any(|option| word.starts_with(option)));
        self.begins(arguments) && has_needed && !has_other()
    }

    /// Whether the words after a program's name begin with its words.
    fn begins(&self, arguments: &[&str]) -> bool {
        let mut rest = arguments.iter();
        self.words.split_whitespace().all(|word| rest.next() == Some(&word))
    }

    /// How many words it has.
    pub(super) fn len(&self) -> usize {
        self.words.split_whitespace().count()
    }
}

const fn program(name: &'static str) -> Program {
    Program {
        name,
        others: &[],
        changes: Changes::Unknown,
        actions: &[],
        prints: Output::Unknown,
        filters: Filter::Unknown,
        runs: Runs::Nothing,
        sets: Sets::Never,
        takes: ArgumentUse::Unknown,
        options: arguments::NO_OPTIONS,
        tasks: &[],
        traits: &[],
    }
}

const fn act(words: &'static str, does: ActionEffect) -> Action {
    Action { words, needs: &[], unless: &[], does }
}

const fn reads(words: &'static str) -> Action {
    act(words, ActionEffect::Reads)
}

const fn repository(words: &'static str) -> Action {
    act(words, ActionEffect::ChangesRepository)
}

const fn apart(words: &'static str) -> Action {
    act(words, ActionEffect::StaysApart)
}

const fn apart_unless(words: &'static str, unless: &'static [&'static str]) -> Action {
    Action { unless, ..apart(words) }
}

const fn presumed(words: &'static str) -> Action {
    act(words, ActionEffect::LeavesSources)
}

const fn presumed_with(words: &'static str, needs: &'static [&'static str]) -> Action {
    Action { needs, ..presumed(words) }
}

const fn installs(words: &'static str, extensions: &'static [&'static str]) -> Action {
    act(words, ActionEffect::Installs(extensions))
}

/// It makes the file that is named after these words.
const fn makes(words: &'static str, unless: &'static [&'static str]) -> Action {
    Action { unless, ..act(words, ActionEffect::Makes) }
}

const fn starts(words: &'static str) -> Action {
    act(words, ActionEffect::Starts)
}

/// A formatter that rewrites the files that are named.
const fn formats(words: &'static str, needs: &'static [&'static str], extensions: &'static [&'static str]) -> Action {
    Action { needs, ..act(words, ActionEffect::Formats(Formatting { extensions, only_named: true, is_local: true })) }
}

/// One that also changes what the text means, anywhere in a file.
const fn fixes(words: &'static str, needs: &'static [&'static str], extensions: &'static [&'static str]) -> Action {
    Action { needs, ..act(words, ActionEffect::Formats(Formatting { extensions, only_named: true, is_local: false })) }
}

/// A formatter that follows references from file to file, or takes packages.
const fn roams(words: &'static str, extensions: &'static [&'static str]) -> Action {
    act(words, ActionEffect::Formats(Formatting { extensions, only_named: false, is_local: true }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found_by_each_of_its_names_alone() {
        let names =
            rows().flat_map(|program| program.others.iter().chain([&program.name]).map(move |name| (name, program)));
        for (name, program) in names {
            assert!(std::ptr::eq(row(name), program), "{name} is in two rows, or a row is not in order");
        }
        assert_eq!(row("nobody-has-this").name, "");
    }
}
