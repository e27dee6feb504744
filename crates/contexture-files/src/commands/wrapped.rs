//! Commands that only run another one: `timeout 60 go test`, `nohup make`, `bash -c '…'`.

use super::table::Deed;
use crate::shell::{Simple, Word};

/// What a command runs.
pub(super) enum WrappedCommand {
    /// A command as it is written.
    Command(Simple),
    /// A command line.
    Line(String),
}

/// What a command runs, if it is one that runs another and its own options are understood.
pub(super) fn inner(wrapper: Deed, command: &Simple) -> Option<WrappedCommand> {
    let is_option = |word: &Word| word.text.starts_with('-');
    let rest = |words: &[Word]| {
        let inner = Simple { words: words.to_vec(), redirects: Vec::new(), ..command.clone() };
        (!words.is_empty()).then_some(WrappedCommand::Command(inner))
    };
    match (wrapper, command.arguments()) {
        (Deed::AfterDuration, [duration, words @ ..]) if !is_option(duration) => rest(words),
        (Deed::Rest | Deed::Command, words) if !words.first().is_some_and(is_option) => rest(words),
        // It only says what it would run.
        (Deed::Command, [option, ..]) if matches!(option.text.as_str(), "-v" | "-V") => {
            rest(&[Word { text: "true".into(), ..Word::default() }])
        }
        (Deed::Line, [flags, line])
            if is_option(flags)
                && flags.text.ends_with('c')
                && flags.text.chars().skip(1).all(|c| "lceu".contains(c)) =>
        {
            Some(WrappedCommand::Line(line.plain()?.to_owned()))
        }
        _ => None,
    }
}
