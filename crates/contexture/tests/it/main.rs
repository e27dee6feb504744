//! What the crate `contexture` promises at its doors.

mod transcript;
