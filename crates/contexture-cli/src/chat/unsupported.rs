//! `contexture chat` where there is none: its tools open files by handle, and its editor reads the keys of a Unix terminal.

use clap::Args;

use crate::failure::Failure;
use contexture_terminal::screen::Screen;

/// Talk to a model in the terminal (on Linux and macOS only)
#[derive(Args)]
pub struct Chat {
    /// They are not looked at: the sentence is the same for all.
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    _arguments: Vec<String>,
}

/// Says what to do instead.
///
/// # Errors
/// Always.
pub fn run(_: &Chat, _: Screen) -> Result<(), Failure> {
    let failure = Failure::usage("`contexture chat` is not there on this system");
    Err(failure
        .hint("it runs on Linux and macOS, and in the Windows Subsystem for Linux; `contexture run` runs agents here"))
}
