//! How far commands reach: which files they could write, which they leave alone, and whose lines they print.

use contexture_core::item::{FunctionCall, FunctionCallOutput, Outcome};
use contexture_files::model::FileModel;
use contexture_files::observer::Observer;
use serde_json::json;

use crate::told::{Told, told};

const FILES: [&str; 5] = ["/p/a.go", "/p/b.go", "/p/src/c.ts", "/p/-dash.txt", "/p/version"];

struct Known {
    observer: Observer,
    model: FileModel,
    at: u32,
}

impl Known {
    /// Every file was read, in a shell that is in the project.
    fn all() -> Self {
        let mut known = Self { observer: Observer::default(), model: FileModel::new(), at: 0 };
        known.call("Bash", json!({"command": "cd /p"}), "");
        for path in FILES {
            known.call("Read", json!({"file_path": path}), "     1→one\n     2→two\n     3→three\n");
        }
        known
    }

    fn call(&mut self, tool: &str, arguments: serde_json::Value, output: &str) {
        self.at += 1;
        let call = FunctionCall::new("c", tool, arguments.to_string());
        let seen = self.observer.observe(&call, &FunctionCallOutput::new("c", output, Outcome::Done));
        seen.observations.iter().for_each(|observation| self.model.apply(self.at, observation));
    }
}

/// The files that are not known as a whole after a command, by the beginnings of their names.
fn written(command: &str) -> Vec<&'static str> {
    let mut known = Known::all();
    known.call("Bash", json!({"command": command}), "");
    FILES.into_iter().filter(|path| told(&known.model, path) != Told::Whole).map(|path| &path[3..]).collect()
}

#[test]
fn what_names_a_file_and_certainly_wrote_it_changes_it() {
    let after = |command: &str| {
        let mut known = Known::all();
        known.call("Bash", json!({"command": command}), "");
        (told(&known.model, "/p/a.go"), told(&known.model, "/p/b.go"))
    };
    for command in
        ["sed -i 's/o.e/1/' a.go", "git checkout -- a.go", "make > a.go", "cp x.txt a.go", "truncate -s 3 a.go"]
    {
        let (named, other) = after(command);
        assert_eq!(named, Told::Changed, "{command}");
        assert!(other > Told::Changed, "{command}");
    }
    assert_eq!(after("sed -i 's/o.e/1/' a.go").1, Told::Whole, "it writes nothing else");
    assert_eq!(after("sed -i 's/one/1/' a.go"), (Told::Changed, Told::Whole), "it is not computed what became of them");
    assert_eq!(after("perl -pi -e 's/one/1/' a.go"), (Told::Changed, Told::Seen), "its code may do more");
    for command in ["gofmt -w a.go", "python3 fix.py a.go", "false && sed -i 's/o.e/1/' a.go || true", "mytool a.go"] {
        assert_eq!(after(command).0, Told::Seen, "{command}");
    }
}

#[test]
fn operands_behind_two_dashes_are_no_options() {
    for command in ["truncate -s 0 -- -dash.txt", "uniq -- a.go -dash.txt", "xxd -- a.go -dash.txt"] {
        assert!(written(command).contains(&"-dash.txt"), "{command}");
    }
}

#[test]
fn a_pattern_may_lead_up_again() {
    assert!(written("rm -f src/*.ts").contains(&"src/c.ts"));
    assert!(written("rm -f src/*/../../b.go").contains(&"b.go"));
}

#[test]
fn a_file_may_be_called_version() {
    for command in ["bash version", "patch version", "gzip version"] {
        assert!(written(command).contains(&"version"), "{command}");
    }
    assert!(written("git config -f version core.x y").contains(&"version"));
}

/// What is known of a file after a command printed something: the number of the first line, and the lines.
fn shown(command: &str, output: &str, path: &str) -> Option<Vec<(Option<usize>, String)>> {
    let mut known = Known { observer: Observer::default(), model: FileModel::new(), at: 0 };
    known.call("Bash", json!({"command": "cd /p"}), "");
    known.call("Bash", json!({"command": command}), output);
    let file = known.model.get(path)?;
    let seen = file.segments.iter().filter(|segment| segment.lines.iter().all(|line| !line.is_changed()));
    let told: Vec<_> = seen.map(|segment| (segment.first, segment.text())).collect();
    (!told.is_empty()).then_some(told)
}

#[test]
fn numbered_ranges_of_one_file_are_told_apart() {
    let output = "     2\ta\n     3\tb\n    20\tc\n";
    let both = Some(vec![(Some(2), "a\nb".to_owned()), (Some(20), "c".to_owned())]);
    assert_eq!(shown("nl -ba x.rs | sed -n '2,3p;20,30p'", output, "/p/x.rs"), both);
    assert_eq!(shown("nl -ba x.rs | sed -n '2,3p;21,30p'", output, "/p/x.rs"), None);
}

#[test]
fn where_numbers_leave_a_choice_nothing_is_learnt() {
    let choices = [
        // The first may have ended before the fifth line, or gone on.
        ("nl -ba x.rs | sed -n '3,9p'; nl -ba y.rs | sed -n '5,9p'", "     3\ta\n     4\tb\n     5\tc\n     6\td\n"),
        // One of them is empty.
        ("cat -n x.rs; cat -n z.rs; cat -n y.rs", "     1\ta\n     1\tc\n"),
        // The first one's last line has no end.
        ("cat -n x.rs; cat -n y.rs", "     1\ta\n     2\tb     1\tc\n     2\td\n"),
        // They may as well be the text of a file.
        ("cat x.rs; cat y.rs", "     1\ta\n     1\tb\n"),
    ];
    for (command, output) in choices {
        assert_eq!(shown(command, output, "/p/x.rs"), None, "{command}");
        assert_eq!(shown(command, output, "/p/y.rs"), None, "{command}");
    }
}

#[test]
fn nothing_printed_through_a_pipe_says_nothing_about_a_file() {
    let whole = |command: &str| {
        let mut known = Known { observer: Observer::default(), model: FileModel::new(), at: 0 };
        known.call("Bash", json!({"command": "cd /p && cat k.rs"}), "k\n");
        known.call("Bash", json!({"command": command}), "");
        let index = known.model.files().iter().position(|file| file.path == "/p/x.rs");
        index.is_some_and(|index| known.model.claim_whole(index).is_some())
    };
    assert!(whole("cat x.rs"));
    assert!(!whole("cat x.rs 2>/dev/null | cat"));
}

#[test]
fn hits_of_git_are_not_taken() {
    // Settings decide whether they have columns, and from where their paths are.
    assert_eq!(shown("git -C sub grep -n a", "x.rs:1:a\n", "/p/x.rs"), None);
    assert_eq!(shown("git grep -n a", "x.rs:1:a\n", "/p/x.rs"), None);
}
