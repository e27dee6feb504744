//! Tests of the core at its doors.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod append;
mod children;
mod dependencies;
mod eventual;
mod kit;
mod lifecycle;
mod misbehaviour;
mod provides;
mod recall;
mod rerender;
mod specs;
mod state;
mod steering;
mod stores;
mod turn_resume;
mod typed_access;
