//! `contexture chat`: one turn in a pipe, and a conversation in a pseudo-terminal, with a provider over a real socket.

mod provider;
mod configured;
mod keys;
mod line_mode;
mod picture;
mod remembering;
mod screen;
mod steering;
mod terminal;
mod hands;
mod shown;
