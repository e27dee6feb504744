//! The parameters and results of the hooks, one file for each occasion.

mod life;
mod append;
mod recall;
mod history;
mod steering;
mod children;

pub use append::*;
pub use children::*;
pub use history::*;
pub use life::*;
pub use recall::*;
pub use steering::*;
