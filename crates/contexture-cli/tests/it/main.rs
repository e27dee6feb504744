//! What the program promises: its commands as a person runs them, and the measures behind them.

mod gateway;
#[cfg(unix)]
mod strangers;
#[cfg(unix)]
mod chat;
mod compare;
mod config;
mod facts;
mod frame;
mod guide;
mod import;
mod inspect;
#[cfg(unix)]
mod install;
mod judge;
mod mcp;
mod memory;
mod plot;
mod policies;
mod program;
mod replay;
mod said;
mod snapshots;
#[cfg(unix)]
mod store;
mod window;
