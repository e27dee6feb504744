//! Names of commands and flags as they were: they work for one version, and a line on standard error says the new ones.

use std::ffi::OsString;
use std::io::{self, Write};

use clap::ArgMatches;
use clap::parser::ValueSource;

/// The commands that have another name now, with the words that take their place.
const COMMANDS: [(&str, &[&str]); 6] = [
    ("compare", &["replay", "--compare"]),
    ("import", &["replay", "--emit", "plain"]),
    ("resume", &["pause", "--off"]),
    ("layers", &["config", "layers"]),
    ("models", &["config", "models"]),
    ("window", &["config", "window"]),
];

/// The flags in place of which there is another one now, by their ids.
const FLAGS: [(&str, &str); 4] = [
    ("cap_day_dollars", "--cap 5$/day"),
    ("cap_day_tokens", "--cap 5Mtokens/day"),
    ("cap_conversation_dollars", "--cap 5$/conversation"),
    ("cap_conversation_tokens", "--cap 5Mtokens/conversation"),
];

/// The command line with new names.
pub(crate) fn renewed(words: Vec<OsString>) -> Vec<OsString> {
    let at = if words.get(1).is_some_and(|word| word == "help") { 2 } else { 1 };
    let Some((old, new)) = words.get(at).and_then(|word| COMMANDS.iter().find(|(old, _)| word == old)) else {
        return words;
    };
    note(&format!("contexture {old}"), &format!("contexture {}", new.join(" ")));
    // The help of a flag is that of its command.
    let new = new.iter().take_while(|word| at == 1 || !word.starts_with('-')).map(OsString::from);
    words[..at].iter().cloned().chain(new).chain(words[at + 1..].iter().cloned()).collect()
}

/// Says what takes the place of flags that were given.
pub(crate) fn tell_flags(matches: &ArgMatches) {
    let Some((_, matches)) = matches.subcommand() else { return };
    let is_given =
        |id: &str| matches.try_contains_id(id).is_ok() && matches.value_source(id) == Some(ValueSource::CommandLine);
    for (id, new) in FLAGS.iter().filter(|(id, _)| is_given(id)) {
        note(&format!("--{}", id.replace('_', "-")), new);
    }
}

fn note(old: &str, new: &str) {
    // Nobody may be listening any more.
    let _ = writeln!(io::stderr(), "note: `{old}` is `{new}` now; the old name works until the next version");
}
