//! Tests of the core at its doors.

mod append;
mod eventual;
mod kit;
mod lifecycle;
mod recall;
mod rerender;
mod steering;
mod stores;
