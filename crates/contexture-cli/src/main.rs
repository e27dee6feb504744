//! The program `contexture`.

use std::process::ExitCode;

fn main() -> ExitCode {
    contexture_cli::main()
}
