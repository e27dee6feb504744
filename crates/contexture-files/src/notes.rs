//! What harnesses and people say about files that no call of the agent changed.

use contexture_agents::every;

use super::model::named_places;
use super::observation::{Observation, Who};

/// The reason given for a file that a harness says was changed.
pub(crate) const SOMEONE: &str = "a change by someone else";

/// The files of which a text of a harness says that someone else changed them.
pub(crate) fn modified(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    // Most texts say none of it, which is found out much faster by words than by sentences.
    if !every(|agent| agent.notes().modified_words()).any(|word| text.contains(word)) {
        return found;
    }
    for around in every(|agent| agent.notes().modified()) {
        for (at, _) in text.match_indices(around.after()) {
            let line = text[..at].rsplit('\n').next().unwrap_or_default();
            let Some((_, path)) = line.rsplit_once(around.before()) else { continue };
            let path = path.trim().trim_matches(['`', '"', '\'']);
            if !path.is_empty() && !found.contains(&path) {
                found.push(path);
            }
        }
    }
    found
}

/// A file that someone else changed.
pub(crate) fn changed_by_someone(path: &str) -> Observation {
    Observation::Changed { path: path.to_owned(), by: SOMEONE.to_owned(), who: Who::Other }
}

/// What a text tells that no tool printed: files that a harness says were changed, a state that was restored, hooks that
/// ran, and the files that it names, which whoever wrote it may have changed.
pub(crate) fn of_text(text: &str) -> Vec<Observation> {
    let mut told: Vec<Observation> = named_places(text).map(|place| named(place.path)).collect();
    told.extend(modified(text).into_iter().map(changed_by_someone));
    let bare = text.trim_start();
    let bare = bare.strip_prefix("<system-reminder>").unwrap_or(bare).trim_start();
    let could_write = if every(|agent| agent.notes().hooked()).any(|event| bare.starts_with(event)) {
        Some("a hook")
    } else if is_restored(text) {
        Some("a change of the session")
    } else {
        is_another_day(bare).then_some("a night between two messages")
    };
    told.extend(could_write.map(|by| Observation::could_write(by.to_owned())));
    told
}

/// A file that somebody named, who may have changed it.
fn named(path: &str) -> Observation {
    Observation::CouldWrite { path: Some(path.to_owned()), by: "whoever named it".to_owned() }
}

/// Whether a text says that files were put back, or that the session went on after a while.
fn is_restored(text: &str) -> bool {
    let lower = text.to_lowercase();
    every(|agent| agent.notes().restored()).any(|phrase| lower.contains(phrase))
}

/// Whether a harness says that it is another day: it tells what has changed of the surroundings, and names no directory.
fn is_another_day(text: &str) -> bool {
    text.starts_with("<environment_context>") && text.contains("<current_date>") && !text.contains("<cwd>")
}

/// Tags of messages in which a harness says how a command or an agent fares.
pub(crate) fn notices() -> impl Iterator<Item = &'static str> {
    every(|agent| agent.notes().notices()).copied()
}

/// The command line that a person ran beside the agent.
pub(crate) fn own_command(text: &str) -> Option<&str> {
    every(|agent| agent.notes().own_commands()).find_map(|around| {
        let (_, rest) = text.split_once(around.before())?;
        rest.split_once(around.after()).map(|(line, _)| line.trim())
    })
}

/// Whether a tool says that somebody else changed the file that it was to change.
pub(crate) fn is_stale(output: &str) -> bool {
    let head = &output[..output.floor_char_boundary(STALE_BYTES)];
    every(|agent| agent.output().stale()).any(|phrase| head.contains(phrase))
}

/// How many bytes at the start of an output are examined for that.
const STALE_BYTES: usize = 400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_in_every_sentence() {
        for (before, after) in every(|agent| agent.notes().modified()).map(|around| (around.before(), around.after())) {
            let text = format!("x\n{before}src/a.rs{after}.\n");
            assert_eq!(modified(&text), ["src/a.rs"], "{text}");
        }
    }

    #[test]
    fn harnesses_and_people_name_files() {
        let note = "<system-reminder>\nNote: /p/a b.rs was modified, either by the user or by a linter. This change was intentional.\n</system-reminder>";
        assert_eq!(modified(note), ["/p/a b.rs"]);
        assert!(of_text(note).contains(&changed_by_someone("/p/a b.rs")));
        assert_eq!(of_text("I have been at src/a.rs."), [named("src/a.rs")]);
        let any =
            |text: &str| of_text(text).iter().any(|told| matches!(told, Observation::CouldWrite { path: None, .. }));
        assert!(any("<command-name>/rewind</command-name>"));
        assert!(any("PostToolUse hook: prettier formatted it"));
        assert!(!any("The test failed."));
        assert_eq!(own_command("<bash-input>git pull</bash-input>"), Some("git pull"));
    }
}
