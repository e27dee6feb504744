//! Tests of the core through its public API.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod append;
mod children;
mod conversation;
mod crates;
mod dependencies;
mod durability;
mod eventual;
mod family;
mod family_scopes;
mod faults;
mod formats;
mod imports;
mod items;
mod keys;
mod kit;
mod leases;
mod lifecycle;
mod misbehaviour;
mod models;
mod processes;
mod provides;
mod recall;
mod rerender;
mod responses;
mod restore;
mod specs;
mod state;
mod states;
mod steering;
mod stores;
mod tool_context;
mod turn_resume;
mod two_executions;
mod type_names;
mod typed_access;
mod window;
mod window_engine;
