//! `contexture manual`: manual pages, which packages install.

use std::fs;
use std::path::PathBuf;

use clap::{Args, Command};

use crate::failure::Failure;

/// Write the manual pages of all commands into a directory
///
/// They are made from the same table as the help. Packages install them; `contexture help COMMAND` has the same text.
#[derive(Args)]
#[command(hide = true)]
pub struct Manual {
    /// The directory; it is made if it does not exist
    #[arg(value_name = "DIR")]
    directory: PathBuf,
}

/// Runs the command; `program` is the program to describe.
///
/// # Errors
/// The directory or a page cannot be written.
pub fn run(manual: &Manual, program: Command) -> Result<(), Failure> {
    let directory = &manual.directory;
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(program, directory))
        .map_err(|error| Failure::work(format!("write manual pages into `{}`: {error}", directory.display())))
}
