//! `contexture completions`: completion scripts for shells.

use std::io::{self, Write};

use clap::{Args, Command, ValueEnum};
use clap_complete::{Shell, generate};

use crate::failure::Failure;

/// Print a completion script for a shell
///
/// For bash: contexture completions bash > ~/.local/share/bash-completion/completions/contexture
/// For zsh: contexture completions zsh > a file `_contexture` in a directory of $fpath
/// For fish: contexture completions fish > ~/.config/fish/completions/contexture.fish
#[derive(Args)]
#[command(hide = true, verbatim_doc_comment)]
pub struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: CompletionShell,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CompletionShell {
    Bash,
    Zsh,
    Fish,
}

/// Runs the command; `program` is the program to complete.
pub fn run(completions: &Completions, mut program: Command) -> Result<(), Failure> {
    let shell = match completions.shell {
        CompletionShell::Bash => Shell::Bash,
        CompletionShell::Zsh => Shell::Zsh,
        CompletionShell::Fish => Shell::Fish,
    };
    let name = program.get_name().to_owned();
    // Written to memory first: a closed pipe must not cause a panic.
    let mut script = Vec::new();
    generate(shell, &mut program, name, &mut script);
    Ok(io::stdout().write_all(&script)?)
}
