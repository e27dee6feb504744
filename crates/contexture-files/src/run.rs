//! A command line and its output: what certainly happened, what may have happened, and which files were printed.

use super::commands::prints::{Prints, looked_at, of_pipeline};
use super::commands::table::{Trait, row};
use super::commands::{
    Effects, bare, changes_shell, command_label, could_link, effects, effects_in_any_order, in_short, moves,
    set_options, text,
};
use super::completion::Completion;
use super::framing::Framed;
use super::mentions::observe_mentions;
use super::numbering::Passage;
use super::observation::Observation;
use super::path::{Directory, is_device};
use super::shell::{Joint, Pipeline, Redirect, Script, Simple, Word, parse, parse_all};

mod attribute;

/// What a command line tells.
pub(crate) struct CommandLineReport {
    /// What it tells about files, in the order in which it happened.
    pub(crate) observations: Vec<Observation>,
    /// The shell's directory after it.
    pub(crate) directory: Directory,
    /// Whether it certainly printed nothing of its own, or only what its own words say.
    pub(crate) is_silent: bool,
}

/// Examines a command line that ran in a directory.
pub(crate) fn observe(
    line: &str,
    output: &Framed<'_>,
    completion: Completion,
    directory: Directory,
) -> CommandLineReport {
    if completion == Completion::Undone {
        return CommandLineReport { observations: Vec::new(), directory, is_silent: false };
    }
    // Of functions, `case` and what runs in the background it is only known which commands there are.
    let Some(script) = parse(line).or_else(|| parse_all(line).map(Script::branching)) else {
        if is_unreadable(line, output) {
            return CommandLineReport { observations: Vec::new(), directory, is_silent: false };
        }
        let mut observations = vec![Observation::could_write(in_short(line))];
        observations.extend(could_link(line).then_some(Observation::Linked));
        observations.extend(observe_mentions(&output.text, None));
        return CommandLineReport { observations, directory: Directory::Lost, is_silent: false };
    };
    match !script.is_straight || output.is_running || script.commands().any(changes_shell) {
        true => branching(&script, output, directory),
        false => straight(&script, output, completion, directory),
    }
}

/// What shells say of a line that they cannot read.
const UNREADABLE: [&str; 5] = [
    "unexpected EOF while looking for matching",
    "syntax error near unexpected token",
    "syntax error: unexpected end of file",
    "zsh:1: unmatched ",
    "zsh:1: parse error near",
];

/// Whether a shell refused a line as a whole, so that nothing of it ran. Of several lines, it runs those before.
fn is_unreadable(line: &str, output: &Framed<'_>) -> bool {
    let says = |text: &str| UNREADABLE.iter().any(|phrase| text.contains(phrase));
    let mut lines = output.text.lines().filter(|line| !line.trim().is_empty());
    let is_short = output.text.lines().count() <= 3;
    !line.trim().contains('\n') && output.exit != Some(0) && is_short && lines.next().is_some_and(says)
}

/// A script of which it is unknown which commands ran.
fn branching(script: &Script, output: &Framed<'_>, directory: Directory) -> CommandLineReport {
    let mut observations = effect_observations(effects_in_any_order(script, &directory));
    let is_moved = script.commands().any(|command| !command.is_apart && moves(command));
    let inner = if script.commands().any(moves) { Directory::Lost } else { directory.clone() };
    let looked: Vec<String> = script.commands().flat_map(|command| looked_at(command, &inner)).collect();
    observations.extend(printed(looked, &output.text));
    observations.extend(observe_mentions(&output.text, base(&inner)));
    CommandLineReport { observations, directory: if is_moved { Directory::Lost } else { directory }, is_silent: false }
}

fn base(directory: &Directory) -> Option<&str> {
    match directory {
        Directory::At(path) => Some(path),
        _ => None,
    }
}

/// Converts effects to observations: what could be written first, since changes of the same command are certain.
fn effect_observations(effects: Effects) -> Vec<Observation> {
    effects.could_write.into_iter().chain(effects.changes).collect()
}

/// How many printed lines are worth keeping as printed: fewer say little, and more are not likely a look at files.
const PRINTED_LINES: std::ops::Range<usize> = 6..800;

/// Observes lines that may be those of some files, in some form.
fn printed(mut paths: Vec<String>, text: &str) -> Option<Observation> {
    paths.sort_unstable();
    paths.dedup();
    let block = Passage::plain(None, text);
    let is_kept = !paths.is_empty() && PRINTED_LINES.contains(&block.lines.len());
    is_kept.then_some(Observation::Printed { paths, block })
}

/// A plain list of pipelines.
fn straight(script: &Script, output: &Framed<'_>, completion: Completion, directory: Directory) -> CommandLineReport {
    let proven = proven(&script.pipelines, completion);
    let mut walk = ScriptDirectories {
        reading: directory.clone(),
        read_after: directory.clone(),
        directory: directory.clone(),
        after: directory,
    };
    let mut steps = Vec::with_capacity(script.pipelines.len());
    let mut observations = Vec::new();
    for (pipeline, is_proven) in script.pipelines.iter().zip(&proven) {
        if let [command] = pipeline.commands.as_slice()
            && moves(command)
        {
            walk.change(command, *is_proven);
        }
        let outcome = match completion {
            _ if *is_proven => PipelineOutcome::Proven,
            Completion::Failed => PipelineOutcome::Failed,
            _ => PipelineOutcome::Probable,
        };
        let changed = of_pipeline_effects(pipeline, outcome, &walk.directory);
        let prints = of_pipeline(&pipeline.commands, &walk.reading);
        let is_mixed = !changed.is_empty() && matches!(prints, Prints::File(_) | Prints::Hits(_));
        let prints = if is_mixed { Prints::Unknown } else { prints };
        let looked = pipeline.commands.iter().flat_map(|command| looked_at(command, &walk.reading)).collect();
        let is_single = pipeline.commands.len() == 1;
        steps.push(attribute::PipelineEffects { prints, is_proven: *is_proven, is_single, looked, changed });
        walk.end(pipeline.joint);
    }
    let is_failed = completion == Completion::Failed;
    let programs: Vec<&str> = script.commands().filter_map(Simple::program).collect();
    let says_more = steps.iter().any(|step| matches!(step.prints, Prints::Unknown));
    let is_silent = steps.iter().all(|step| step.prints == Prints::Nothing);
    observations.extend(attribute::attribute(steps, output, &programs, is_failed, &walk.reading));
    if says_more {
        observations.extend(observe_mentions(&output.text, base(&walk.directory)));
    }
    let moved = script.pipelines.iter().flat_map(|pipeline| &pipeline.commands).any(moves);
    let directory = if is_failed && moved { Directory::Lost } else { walk.after };
    CommandLineReport { observations, directory, is_silent }
}

/// Returns which pipelines certainly succeeded, given the outcome of the whole.
fn proven(pipelines: &[Pipeline], completion: Completion) -> Vec<bool> {
    let mut proven = vec![false; pipelines.len()];
    if completion != Completion::Done {
        return proven;
    }
    let stops = pipelines.iter().position(|pipeline| sets(pipeline, '-', "errexit"));
    let stops = stops.filter(|_| !pipelines.iter().any(|pipeline| sets(pipeline, '+', "errexit")));
    // After `&&` it may not have run.
    let stops = stops.filter(|at| *at == 0 || pipelines[at - 1].joint == Joint::Then);
    let is_alone = |index: usize| {
        pipelines[index].joint == Joint::Then && (index == 0 || pipelines[index - 1].joint == Joint::Then)
    };
    for index in (0..pipelines.len()).rev() {
        let is_last = index + 1 == pipelines.len();
        let leads = pipelines[index].joint == Joint::And && proven.get(index + 1) == Some(&true);
        proven[index] = is_last || leads || (stops.is_some_and(|stops| stops < index) && is_alone(index));
    }
    // Nothing runs after `exit`, and it determines the outcome.
    let exits = |pipeline: &Pipeline| {
        pipeline
            .commands
            .iter()
            .any(|command| bare(command).program().is_some_and(|program| row(program).has(Trait::Ends)))
    };
    if pipelines.iter().any(exits) {
        proven.fill(false);
    }
    proven
}

/// Whether a pipeline is `set -e`, or `set +e`.
fn sets(pipeline: &Pipeline, sign: char, option: &str) -> bool {
    let [command] = pipeline.commands.as_slice() else { return false };
    let command = bare(command);
    let is_set = command.program() == Some("set");
    is_set && set_options(&command).is_some_and(|options| options.contains(&(sign, option)))
}

/// What is known of the outcome of a pipeline.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PipelineOutcome {
    /// It certainly succeeded.
    Proven,
    /// It may not have run.
    Probable,
    /// It, or something beside it, failed.
    Failed,
}

/// What the commands of a pipeline do. The pipeline's success only proves that of the last command.
///
/// Commands of a pipeline run at the same time, and substitutions before or after the redirections of a command. So
/// what any of them could write is told before what the last command did, and again after it.
fn of_pipeline_effects(pipeline: &Pipeline, outcome: PipelineOutcome, directory: &Directory) -> Vec<Observation> {
    let last = pipeline.commands.len() - 1;
    let inner = Script { others: pipeline.inner.clone(), ..Script::default() };
    let mut observations = effect_observations(effects_in_any_order(&inner, directory));
    let mut others: Vec<Observation> = observations.clone();
    for (index, command) in pipeline.commands.iter().enumerate() {
        let by = command_label(command);
        let mut own = effects(command, directory);
        if command.program() == Some("tee") {
            written_by_tee(&mut own, command, index.checked_sub(1).map(|before| &pipeline.commands[before]));
        }
        if outcome != PipelineOutcome::Proven || index != last {
            // What was probably done is shown, but could have been written otherwise.
            let shown = own.changes.iter().filter(|_| outcome != PipelineOutcome::Failed);
            observations.extend(shown.filter_map(probable));
            own = own.unproven(&by);
        }
        let told = effect_observations(own);
        if index != last {
            others.extend(told.iter().cloned());
        }
        observations.extend(told);
    }
    let is_certain = |told: &Observation| !matches!(told, Observation::CouldWrite { .. } | Observation::Linked);
    if observations.iter().any(is_certain) {
        observations.extend(others);
    }
    observations
}

/// A change whose result is worth showing even if it is uncertain that it was made.
fn probable(change: &Observation) -> Option<Observation> {
    match change {
        Observation::Write { .. } | Observation::Append { .. } | Observation::Copy { .. } => Some(change.clone()),
        Observation::Move { from, to } => Some(Observation::Copy { from: from.clone(), to: to.clone(), into: true }),
        _ => None,
    }
}

/// Sets what `tee` writes to its input, if the command line contains that.
fn written_by_tee(effects: &mut Effects, command: &Simple, before: Option<&Simple>) {
    // Input may come from elsewhere than the pipe, and what is redirected is written in addition.
    let is_away = |word: &Word| word.plain().is_some_and(is_device);
    let is_plain = command.redirects.iter().all(|redirect| match redirect {
        Redirect::Write(word) | Redirect::Append(word) | Redirect::Errors(word) => is_away(word),
        Redirect::ErrorsToOutput => true,
        Redirect::Document { .. } => before.is_none(),
        _ => false,
    });
    if !is_plain {
        return;
    }
    let fed = match before {
        Some(before) if before.redirects.iter().all(|redirect| matches!(redirect, Redirect::Document { .. })) => {
            text::printed(before)
        }
        Some(_) => None,
        None => text::document(command),
    };
    let options: Vec<&str> =
        command.arguments().iter().map(|word| word.text.as_str()).filter(|word| word.starts_with('-')).collect();
    let append = match options.as_slice() {
        [] => false,
        ["-a"] => true,
        _ => return,
    };
    let Some(text) = fed else { return };
    for change in &mut effects.changes {
        if let Observation::Changed { path, .. } = change {
            let (path, text) = (path.clone(), text.clone());
            *change = if append { Observation::Append { path, text } } else { Observation::Write { path, text } };
        }
    }
}

/// The directory at each point of a script.
struct ScriptDirectories {
    /// Where the next command of this list runs, if it runs.
    directory: Directory,
    /// Where the shell is after the list so far, even if commands failed.
    after: Directory,
    /// The same if no error is printed: changing to a directory that exists succeeds.
    reading: Directory,
    read_after: Directory,
}

impl ScriptDirectories {
    fn change(&mut self, command: &Simple, is_proven: bool) {
        let arguments = command.plain_arguments();
        let target = match (command.program(), arguments.as_deref()) {
            (Some("cd" | "pushd"), Some([target] | ["--", target]))
                if !target.starts_with(['-', '+']) && !target.is_empty() =>
            {
                self.directory.place(target).filter(|path| !path.starts_with('~'))
            }
            _ => None,
        };
        let target = target.map_or(Directory::Lost, Directory::At);
        let is_same = match (&target, &self.after) {
            (Directory::At(new), Directory::At(old)) => super::path::normalize(new) == super::path::normalize(old),
            _ => false,
        };
        // If errors are shown, an output without one says that the directory is there.
        let complains = !command.redirects.iter().any(|redirect| !matches!(redirect, Redirect::Write(_)));
        let exists = matches!(&target, Directory::At(_)) && complains;
        self.read_after = match () {
            () if is_proven || exists || is_same => target.clone(),
            () => Directory::Lost,
        };
        self.reading = target.clone();
        if is_proven {
            self.after = target.clone();
        } else if !is_same {
            self.after = Directory::Lost;
        }
        self.directory = target;
    }

    fn end(&mut self, joint: Joint) {
        if joint == Joint::Then {
            self.directory = self.after.clone();
            self.reading = self.read_after.clone();
        }
    }
}
