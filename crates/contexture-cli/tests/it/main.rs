//! What the program promises: its commands as a person runs them.

mod frame;
mod import;
mod program;
