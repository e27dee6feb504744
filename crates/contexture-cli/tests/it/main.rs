//! What the program promises: its commands as a person runs them.

mod accounts;
mod gateway;
#[cfg(unix)]
mod strangers;
#[cfg(unix)]
mod for_parent;
#[cfg(unix)]
mod chat;
mod compare;
mod config;
mod embedder;
mod facts;
mod frame;
mod guide;
mod import;
mod inspect;
#[cfg(unix)]
mod install;
mod mcp;
mod memory;
mod own_memory;
mod program;
mod manual;
mod replay;
#[cfg(unix)]
mod serve;
mod unreadable;
mod snapshots;
#[cfg(unix)]
mod store;
mod window;
