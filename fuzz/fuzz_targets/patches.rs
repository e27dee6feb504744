//! Any patch in any grammar, applied to a file with known lines: what is known stays a subset of what can be.

#![no_main]

use std::collections::HashSet;

use arbitrary::Arbitrary;
use contexture::files::dialect::Dialects;
use contexture::files::model::FileModel;
use contexture::files::numbering::Passage;
use contexture::files::observation::Observation;
use contexture::files::patch::{parse_begin_patch, parse_search_replace, parse_unified};
use contexture::item::{FunctionCall, FunctionCallOutput, Outcome};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

const PATH: &str = "src/main.rs";

/// Lines that patches are likely to name, so that they apply often.
const LINES: [&str; 8] =
    ["fn main() {", "    let a = 1;", "    let b = 2;", "", "}", "    call(a, b);", "    // é", "x"];

/// One line of a patch.
#[derive(Arbitrary, Debug)]
enum PatchLine {
    Keep(u8),
    Add(u8),
    Remove(u8),
    Frame(u8),
    Raw(String),
}

/// What stands around hunks in the three grammars.
const FRAMES: [&str; 18] = [
    "*** Begin Patch",
    "*** Update File: src/main.rs",
    "*** Add File: b.rs",
    "*** Delete File: src/main.rs",
    "*** Move to: c.rs",
    "*** End Patch",
    "*** End of File",
    "@@",
    "@@ -1,3 +1,4 @@",
    "@@ -99999999999999999999 +0,0 @@",
    "@@ -18446744073709551615,2 +18446744073709551615,3 @@",
    "@@ -2,4294967295 +4294967295,18446744073709551615 @@",
    "--- a/src/main.rs",
    "+++ b/src/main.rs",
    "<<<<<<< SEARCH",
    "=======",
    ">>>>>>> REPLACE",
    "+++ /dev/null",
];

#[derive(Arbitrary, Debug)]
struct Input {
    /// The lines that are known, and from which number on.
    known: Vec<u8>,
    first: Option<u8>,
    patches: Vec<(u8, Vec<PatchLine>)>,
}

fn line(at: u8) -> &'static str {
    LINES[usize::from(at) % LINES.len()]
}

fn text_of(patch: &[PatchLine]) -> String {
    let lines = patch.iter().take(64).map(|part| match part {
        PatchLine::Keep(at) => format!(" {}", line(*at)),
        PatchLine::Add(at) => format!("+{}", line(*at)),
        PatchLine::Remove(at) => format!("-{}", line(*at)),
        PatchLine::Frame(at) => FRAMES[usize::from(*at) % FRAMES.len()].to_owned(),
        PatchLine::Raw(text) => text.clone(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Ways in which a patch is given to a tool.
const GRAMMARS: u8 = 5;

/// The way with search-and-replace blocks.
const SEARCH_REPLACE: u8 = 3;

/// The call that would make a patch, in one of the grammars.
fn call(grammar: u8, text: &str) -> FunctionCall {
    let (name, arguments) = match grammar % GRAMMARS {
        0 => ("apply_patch", json!({ "input": text })),
        1 => return FunctionCall::new("c", "apply_patch", text),
        2 => ("shell", json!({ "command": format!("git apply <<'EOF'\n{text}\nEOF") })),
        SEARCH_REPLACE => ("replace_in_file", json!({ "path": PATH, "diff": text })),
        _ => ("shell", json!({ "command": ["bash", "-lc", format!("apply_patch <<'EOF'\n{text}\nEOF")] })),
    };
    FunctionCall::new("c", name, arguments.to_string())
}

fuzz_target!(|input: Input| {
    let dialects = Dialects::builtin();
    let output = FunctionCallOutput::new("c", "Done!", Outcome::Done);
    let mut model = FileModel::new();
    let known: Vec<String> = input.known.iter().take(200).map(|at| line(*at).to_owned()).collect();
    let mut sayable: HashSet<String> = known.iter().cloned().collect();
    let block = Passage { first: input.first.map(|first| usize::from(first) + 1), lines: known };
    model.apply(1, &Observation::Read { path: PATH.into(), block, whole: input.first == Some(0) });
    for (at, (grammar, patch)) in input.patches.iter().take(16).enumerate() {
        let text = text_of(patch);
        parse_begin_patch(&text);
        parse_unified(&text);
        parse_search_replace(&text);
        // What a patch brings is one of its lines, with or without its mark.
        for line in text.lines() {
            sayable.insert(line.to_owned());
            sayable.extend(line.strip_prefix(['+', ' ', '-']).map(str::to_owned));
        }
        sayable.extend(text.split('\n').map(str::to_owned));
        let seen = dialects.observe(&call(*grammar, &text), &output);
        for observation in &seen.observations {
            model.apply(at as u32 + 2, observation);
        }
    }
    // Search-and-replace blocks may change a part of a line.
    let is_by_lines = input.patches.iter().take(16).all(|(grammar, _)| grammar % GRAMMARS != SEARCH_REPLACE);
    for file in model.files() {
        assert_eq!(file.known_lines(), file.segments.iter().map(|segment| segment.lines.len()).sum::<usize>());
        for line in file.segments.iter().flat_map(|segment| &segment.lines) {
            assert!(!is_by_lines || sayable.contains(&*line.text), "{:?} was never seen or written", line.text);
        }
    }
});
