//! What a patch says about files.

use super::observation::{Observation, Who};
use super::patch::{FilePatch, Hunk, SearchBlock, parse_begin_patch, parse_unified, search_blocks};

/// What a patch says about files; `path` is the file of a patch that names none.
pub(crate) fn observe_patch(text: &str, path: Option<String>) -> Vec<Observation> {
    if text.contains("*** Begin Patch") {
        return parse_begin_patch(text).into_iter().flat_map(observe_file_patch).collect();
    }
    if let Some(path) = &path {
        let blocks = search_blocks(text);
        if !blocks.is_empty() {
            let hunks = blocks.iter().map(hunk_of).collect();
            return vec![Observation::Patch { path: path.clone(), hunks }];
        }
    }
    // How far from its place a diff may apply depends on the program that applies it.
    let changed = |patch: FilePatch| Observation::Changed {
        path: patch.path().to_owned(),
        by: "a patch".to_owned(),
        who: Who::Agent,
    };
    parse_unified(text).into_iter().map(changed).collect()
}

/// Converts a search-and-replace block to lines. The first occurrence of the old lines is replaced.
fn hunk_of(block: &SearchBlock) -> Hunk {
    let lines = |text: &str| -> Vec<String> {
        if text.is_empty() { Vec::new() } else { text.split('\n').map(str::to_owned).collect() }
    };
    let new = lines(&block.replace);
    Hunk { old: lines(&block.search), added: vec![true; new.len()], new, first: block.first, ..Hunk::default() }
}

fn observe_file_patch(patch: FilePatch) -> Vec<Observation> {
    match patch {
        FilePatch::Add { path, text } => vec![Observation::Write { path, text }],
        FilePatch::Delete { path } => vec![Observation::Delete { path }],
        FilePatch::Update { path, moved, hunks } => {
            let mut observations = vec![Observation::Patch { path: path.clone(), hunks }];
            observations.extend(moved.map(|to| Observation::Move { from: path, to }));
            observations
        }
    }
}
