//! Any command line in any shell with any output in any frame: nothing is known that was neither printed nor written.

#![no_main]

use arbitrary::Arbitrary;
use contexture::files::dialect::Dialects;
use contexture::files::model::FileModel;
use contexture::files::observer::Observer;
use contexture::item::{FunctionCall, FunctionCallOutput, Outcome};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

/// Tools with shells of their own and frames of their own.
const TOOLS: [&str; 8] =
    ["Bash", "bash", "exec_command", "shell", "execute_bash", "run_terminal_cmd", "powershell", "pwsh"];

/// Parts of command lines in both kinds of shells.
const WORDS: [&str; 64] = [
    "cat ",
    "cat -n ",
    "nl -ba ",
    "head -3 ",
    "tail -n +2 ",
    "sed -n '2,4p' ",
    "sed -i 's/a/b/' ",
    "sed -i 2d ",
    "echo ",
    "printf '%s\\n' ",
    "grep -n a ",
    "rm ",
    "cp ",
    "mv ",
    "touch ",
    "tee ",
    "cd ",
    "git checkout -- ",
    "a.txt ",
    "b.txt ",
    "sub/a.txt ",
    "'with space.txt' ",
    "$X ",
    "*.txt ",
    "> ",
    ">> ",
    "2>&1 ",
    "2>/dev/null ",
    "| ",
    "&& ",
    "|| ",
    "; ",
    "\n",
    "& ",
    "( ",
    ") ",
    "{ ",
    "} ",
    "if ",
    "then ",
    "fi ",
    "for f in ",
    "do ",
    "done ",
    "<<'E'\n",
    "<<-E\n",
    "E\n",
    "<<< ",
    "$( ",
    "` ",
    "\" ",
    "' ",
    "\\",
    "#",
    "Get-Content ",
    "gc -Raw ",
    "Set-Content -Path ",
    "-Value 'x' ",
    "Select-String a ",
    "-TotalCount 3 ",
    "D:\\a.txt ",
    "@'\n",
    "'@ ",
    "Remove-Item ",
];

/// Parts of outputs, with what harnesses put around them.
const LINES: [&str; 24] = [
    "alpha\n",
    "beta\n",
    "\n",
    "     1\talpha\n",
    "     2\tbeta\n",
    "1:alpha\n",
    "a.txt:2:beta\n",
    "---\n",
    "==> a.txt <==\n",
    "Output:\n",
    "Chunk ID: 1\n",
    "Wall time: 1 s\n",
    "Process exited with code 0\n",
    "Exit code: 1\n",
    "Process running with session ID 7\n",
    "Total output lines: 9\n",
    "[The command completed with exit code 0.]",
    "[Current working directory: /x]\n",
    "... [9 characters truncated] ...\n",
    "<system-reminder>\n",
    "cat: a.txt: No such file or directory\n",
    "bash: x: command not found\n",
    "{\"output\": \"a\\n\"}",
    "alpha\r\n",
];

#[derive(Arbitrary, Debug)]
enum Piece {
    Known(u8),
    Text(String),
}

#[derive(Arbitrary, Debug)]
struct Call {
    tool: u8,
    is_list: bool,
    line: Vec<Piece>,
    output: Vec<Piece>,
    outcome: u8,
}

fn text(pieces: &[Piece], known: &[&str]) -> String {
    let part = |piece: &Piece| match piece {
        Piece::Known(at) => known[usize::from(*at) % known.len()].to_owned(),
        Piece::Text(text) => text.clone(),
    };
    pieces.iter().take(64).map(part).collect()
}

const OUTCOMES: [Outcome; 4] = [Outcome::Done, Outcome::Failed, Outcome::Denied, Outcome::Interrupted];

fuzz_target!(|calls: Vec<Call>| {
    let mut observer = Observer::new(Dialects::builtin());
    let mut model = FileModel::new();
    let mut said = String::new();
    for (at, step) in calls.iter().take(24).enumerate() {
        let (line, output) = (text(&step.line, &WORDS), text(&step.output, &LINES));
        let arguments = match step.is_list {
            true => json!({ "command": ["bash", "-lc", line] }),
            false => json!({ "command": line, "cmd": line }),
        };
        let tool = TOOLS[usize::from(step.tool) % TOOLS.len()];
        let call = FunctionCall::new("c", tool, arguments.to_string());
        let outcome = OUTCOMES[usize::from(step.outcome) % OUTCOMES.len()];
        let seen = observer.observe(&call, &FunctionCallOutput::new("c", output.as_str(), outcome));
        for observation in &seen.observations {
            model.apply(at as u32 + 1, observation);
        }
        said.push_str(&line);
        said.push_str(&output);
    }
    for (index, file) in model.files().iter().enumerate() {
        assert_eq!(file.known_lines(), file.segments.iter().map(|segment| segment.lines.len()).sum::<usize>());
        if let Some(claim) = model.claim_whole(index) {
            assert!(!file.deleted && file.segments.len() <= 1, "{claim:?} of {}", file.path);
        }
        let mut next = 1;
        for segment in &file.segments {
            if let Some(first) = segment.first {
                assert!(first >= next, "{} overlaps at {first}", file.path);
                next = first + segment.lines.len();
            }
            assert!(segment.lines.iter().all(|line| !line.text.contains('\n')));
        }
    }
});
