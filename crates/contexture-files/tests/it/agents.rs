//! The samples in the files of agents: each call and its output is understood as its file says.

use contexture_agents::{Sample, agents};
use contexture_core::item::{FunctionCall, FunctionCallOutput, Outcome};
use contexture_files::model::{Fact, FileModel};
use contexture_files::numbering::Passage;
use contexture_files::observation::Observation;
use contexture_files::observer::Observer;

/// What is known of the file after the call: its text, and whether no change of it is unknown. Nothing if it has no lines.
fn play(sample: &Sample) -> Option<(String, bool)> {
    let mut model = FileModel::new();
    if let Some(before) = sample.before() {
        let block = Passage::plain(Some(1), before);
        model.apply(1, &Observation::Read { path: sample.file().to_owned(), block, whole: true });
    }
    let call = FunctionCall::new("c", sample.tool(), sample.arguments());
    let output = FunctionCallOutput::new("c", sample.output(), Outcome::Unknown);
    let seen = Observer::default().observe(&call, &output);
    seen.observations.iter().for_each(|observation| model.apply(2, observation));
    let file = model.place(sample.file())?;
    let state = &model.files()[file];
    let fact = |at: usize| model.claim(file, at, 0..state.segments[at].lines.len()).fact;
    let worst = (0..state.segments.len()).map(fact).min()?;
    Some((state.text(), worst != Fact::Changed))
}

#[test]
fn calls_are_understood_as_the_files_of_agents_say() {
    for agent in agents() {
        for sample in agent.samples() {
            let told = format!("{}: `{}` returned {:?}", agent.name(), sample.tool(), sample.output());
            let arguments = serde_json::from_str::<serde_json::Value>(sample.arguments());
            assert!(arguments.is_ok_and(|arguments| arguments.is_object()), "{told}");
            match (play(sample), sample.is_changed()) {
                (found, true) => assert!(found.is_some_and(|(_, is_followed)| !is_followed), "{told}"),
                (found, false) => assert_eq!(found, sample.after().map(|after| (after.to_owned(), true)), "{told}"),
            }
        }
    }
}
