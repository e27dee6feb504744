//! Recordings that are played through the folder.

pub mod player;
pub mod ruler;
pub mod settings;
pub mod system;
