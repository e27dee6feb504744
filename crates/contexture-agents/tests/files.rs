//! The files of all agents: read, without doubles, and of one mind about tools that several of them have.

use std::collections::{BTreeMap, BTreeSet};

use contexture_agents::{Agent, Says, Tool, agents, argument_names, every, tool, tools};

/// Fails if something is there twice.
#[track_caller]
fn check_once<T: Ord + std::fmt::Debug>(what: &str, all: impl IntoIterator<Item = T>) {
    let mut seen = BTreeSet::new();
    for one in all {
        let told = format!("{what}: {one:?} is there twice");
        assert!(seen.insert(one), "{told}");
    }
}

#[test]
fn every_agent_is_there_once() {
    assert!(agents().len() > 15, "{} files", agents().len());
    check_once("names", agents().iter().map(Agent::name));
    check_once("places", agents().iter().filter_map(Agent::order));
    check_once("names for the program", agents().iter().filter_map(|agent| Some(agent.run()?.name())));
    check_once("names of threads", agents().iter().filter_map(|agent| Some(agent.recordings()?.id())));
    check_once("models", every(|agent| agent.models()));
    assert_eq!(agents().iter().filter(|agent| agent.arguments().is_some()).count(), 1);
    assert_eq!(argument_names().path().first(), Some(&"file_path"));
}

#[test]
fn phrases_are_there_once_and_say_something() {
    let lists: [(&str, Vec<&str>); 15] = [
        ("asks", every(|agent| agent.compaction().asks()).copied().collect()),
        ("instructs", every(|agent| agent.compaction().instructs()).copied().collect()),
        ("elsewhere", every(|agent| agent.output().elsewhere()).copied().collect()),
        ("hooked", every(|agent| agent.notes().hooked()).copied().collect()),
        ("interrupted", every(|agent| agent.notes().interrupted()).copied().collect()),
        ("modified_words", every(|agent| agent.notes().modified_words()).copied().collect()),
        ("not_in_file", every(|agent| agent.output().not_in_file()).copied().collect()),
        ("nothing", every(|agent| agent.output().nothing()).copied().collect()),
        ("notices", every(|agent| agent.notes().notices()).copied().collect()),
        ("remarks", every(|agent| agent.output().remarks()).copied().collect()),
        ("restored", every(|agent| agent.notes().restored()).copied().collect()),
        ("scripts", every(|agent| agent.output().scripts()).copied().collect()),
        ("stale", every(|agent| agent.output().stale()).copied().collect()),
        ("trailers", every(|agent| agent.output().trailers()).map(|trailer| trailer.starts()).collect()),
        ("untyped", every(|agent| agent.notes().untyped()).copied().collect()),
    ];
    for (what, list) in lists {
        assert!(list.iter().all(|phrase| !phrase.trim().is_empty()), "{what}");
        check_once(what, list);
    }
    for phrase in every(|agent| agent.output().not_in_file()).chain(every(|agent| agent.notes().restored())) {
        assert_eq!(*phrase, phrase.to_lowercase(), "it is compared in lower case");
    }
}

#[test]
fn files_agree_about_tools() {
    let mut known: BTreeMap<&str, (&str, &Tool)> = BTreeMap::new();
    for agent in agents() {
        for (name, tool) in agent.tools() {
            let (other, before) = *known.entry(name.text()).or_insert((agent.name(), tool));
            assert_eq!(before, tool, "{} and {other} disagree about `{}`", agent.name(), name.text());
        }
    }
    assert_eq!(tools().count(), known.len());
    for (name, (_, known)) in known {
        assert_eq!(tool(name), Some(known));
    }
}

/// The first form that fits decides, so none may hide one after it.
#[test]
fn forms_are_found() {
    for says in every(|agent| agent.says()) {
        assert!(!says.tools().is_empty());
        for (at, form) in Says::done(says).iter().enumerate() {
            let hides = |before: &&&str| form.starts_with(before.trim_end_matches(['*', '…']));
            assert_eq!(says.done()[..at].iter().find(hides), None, "it hides {form:?}");
        }
    }
}

#[test]
fn recordings_and_samples_are_complete() {
    for agent in agents() {
        if let Some(recordings) = agent.recordings() {
            assert!(!recordings.homes().is_empty() && !recordings.files().is_empty(), "{}", agent.name());
        }
        for sample in agent.samples() {
            assert!(!(sample.is_changed() && sample.after().is_some()), "{}: {}", agent.name(), sample.output());
        }
    }
}
