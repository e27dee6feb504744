//! What windows keep of recorded sessions, and what they cost, without calling a model.
//!
//! [`play`] plays a recording through the folder; [`policies`] are what other tools would send in its place; the
//! [`judge`] measures either.

pub mod bill;
pub mod interval;
pub mod judge;
pub mod names;
pub mod pauses;
pub mod play;
pub mod plot;
pub mod policies;
pub mod prefix_cache;
pub mod random;
pub mod record_text;
pub mod recorded;
pub mod said;
pub mod told;
pub mod work;
