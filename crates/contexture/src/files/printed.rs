//! What shell commands printed and changed, told apart by file.

use super::mentions::{Place, places};
use super::observation::Observation;
use super::shell::{Command, parse};

mod attribute;
mod changes;
mod formatters;
mod found;
mod git;
mod loops;
mod prints;
mod sed;

pub(crate) use found::observe_search;

/// What one pipeline of a command line prints.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Prints {
    /// Nothing.
    Nothing,
    /// A known line of text.
    Text(String),
    /// Lines of a file.
    File(Printed),
    /// Lines of several files, one after the other.
    Files(Vec<String>),
    /// Lines of several files, each behind a line that names it.
    Headed(Headed),
    /// Lines that a search found; the file, if it searched only one.
    Matches(Option<String>),
    /// A diff.
    Diff(Version),
    /// Every line of a file with who wrote it.
    Blame(String, Version),
    /// Something else.
    Anything,
}

/// Which version of a file is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// As it is on disk.
    Current,
    /// As it was, or as it is somewhere else.
    Other,
}

/// Which lines of a file are printed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Printed {
    path: String,
    /// The first line, if it is known.
    first: Option<usize>,
    /// How many lines at most.
    count: Option<usize>,
    /// More ranges behind the first, as first line and count.
    more: Vec<(usize, Option<usize>)>,
    /// Whether line numbers are printed.
    numbered: bool,
}

impl Printed {
    /// The whole of a file, as it is on disk.
    fn whole(path: String) -> Self {
        Self { path, first: Some(1), count: None, more: Vec::new(), numbered: false }
    }
}

/// Files that are printed each behind a line that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Headed {
    /// What stands before the name.
    prefix: String,
    /// What stands behind it.
    suffix: String,
    /// Where names are seen from.
    directory: Option<String>,
    /// Which lines of each are printed; the path is empty.
    each: Printed,
}

/// One pipeline of a command line: what it changed and what it prints.
struct Step {
    changed: Vec<Observation>,
    prints: Prints,
}

/// Looks into a command line and what it printed.
pub(crate) fn observe_shell(line: &str, result: &str, workdir: Option<&str>, failed: bool) -> Vec<Observation> {
    let output = strip_harness(result);
    let mut directory = workdir.map(str::to_owned);
    let steps = steps(&parse(line), &mut directory, output, failed);
    let told = attribute::attribute(steps.iter().map(|step| &step.prints), output);
    let says_more = steps.iter().any(|step| step.prints == Prints::Anything);
    let mut observations: Vec<Observation> =
        steps.into_iter().zip(told).flat_map(|(step, told)| step.changed.into_iter().chain(told)).collect();
    if says_more {
        observations.extend(observe_mentions(output, directory.as_deref()));
    }
    observations
}

/// Goes through the pipelines of a command line in order; `directory` is where it ends.
fn steps(commands: &[Command], directory: &mut Option<String>, output: &str, failed: bool) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut start = 0;
    let mut is_certain = true;
    while start < commands.len() {
        if let Some((prints, len)) = loops::of_loop(&commands[start..], directory.as_deref()) {
            steps.push(Step { changed: Vec::new(), prints });
            start += len;
            continue;
        }
        let len = 1 + commands[start + 1..].iter().take_while(|command| command.piped).count();
        let pipeline = &commands[start..start + len];
        start += len;
        if let ("cd", Some(to)) = (pipeline[0].program(), pipeline[0].arguments().first()) {
            *directory = Some(join(directory.as_deref(), to));
            continue;
        }
        let mut changed = changes::of_pipeline(pipeline, directory.as_deref(), output);
        // A command line that failed ran up to some command; only what can hardly fail is taken to be done.
        is_certain &= changes::hardly_fails(pipeline);
        if failed && !(is_certain && start < commands.len()) {
            changed = changed.into_iter().filter_map(|change| changes::in_doubt(change, pipeline)).collect();
        }
        let place = |path: &str| join(directory.as_deref(), path);
        steps.push(Step { changed, prints: prints::of_pipeline(pipeline, &place) });
    }
    steps
}

/// The places that an output names. A bare name is seen from the directory; longer ones are as often relative to
/// the project, and the model finds them by their ends.
pub(crate) fn observe_mentions(output: &str, directory: Option<&str>) -> Vec<Observation> {
    let mentioned = |place: Place<'_>| {
        let path = if place.path.contains('/') { place.path.to_owned() } else { join(directory, place.path) };
        Observation::Mentioned { path, line: place.line }
    };
    places(output).into_iter().map(mentioned).collect()
}

/// A path seen from a directory.
fn join(directory: Option<&str>, path: &str) -> String {
    match directory {
        Some(directory) if !path.starts_with(['/', '~', '$']) => {
            format!("{}/{path}", directory.trim_end_matches('/'))
        }
        _ => path.to_owned(),
    }
}

/// What the harness puts around a command's output, taken off.
pub(crate) fn strip_harness(result: &str) -> &str {
    let mut body = result;
    if ["Command:", "Chunk ID:", "Exit code:", "Wall time:"].iter().any(|start| body.starts_with(start)) {
        body = body.split_once("\nOutput:\n").map_or("", |(_, output)| output);
    }
    if let Some(at) = body.find("\n<system-reminder>") {
        body = &body[..at];
    }
    for mark in ["\n<shellId:", "\n[The command completed", "\n<exited with exit code"] {
        if let Some(at) = body.rfind(mark) {
            body = &body[..at];
        }
    }
    body
}
