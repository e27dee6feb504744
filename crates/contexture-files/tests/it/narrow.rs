//! Doubt is as narrow as what is known allows, and not narrower: for each thing that is believed to stay there is one
//! beside it, which looks much the same, after which it must be in doubt.

use contexture_core::item::{FunctionCall, FunctionCallOutput, Item, Meta, Origin, Outcome, Role};
use contexture_files::model::{FileModel, Grade};
use contexture_files::observer::Observer;
use serde_json::{Value, json};

const A: &str = "/p/a.go";
const B: &str = "/p/b.py";

struct World {
    observer: Observer,
    model: FileModel,
    at: u32,
}

impl World {
    /// Two files were read, in a shell that is in the project.
    fn new() -> Self {
        let mut world = Self { observer: Observer::default(), model: FileModel::new(), at: 0 };
        world.run("cd /p", "");
        world.read(A, "one\ntwo\n\nthree\n");
        world.read(B, "one\ntwo\n\nthree\n");
        world
    }

    fn call(&mut self, tool: &str, arguments: Value, output: &str) {
        self.at += 1;
        let call = FunctionCall::new("c", tool, arguments.to_string());
        let seen = self.observer.observe(&call, &FunctionCallOutput::new("c", output, Outcome::Done));
        seen.observations.iter().for_each(|observation| self.model.apply(self.at, observation));
    }

    fn run(&mut self, command: &str, output: &str) {
        self.call("Bash", json!({"command": command}), output);
    }

    fn read(&mut self, path: &str, text: &str) {
        let numbered: String = text.lines().zip(1..).map(|(line, number)| format!("{number:6}→{line}\n")).collect();
        self.call("Read", json!({"file_path": path}), &numbered);
    }

    fn edit(&mut self, path: &str, old: &str, new: &str) {
        let arguments = json!({"file_path": path, "old_string": old, "new_string": new});
        self.call("Edit", arguments, &format!("The file {path} has been updated."));
    }

    fn say(&mut self, origin: Origin, text: &str) {
        self.at += 1;
        let item = Item::message(Role::User, text).with_meta(Meta { origin, ..Meta::default() });
        for observation in self.observer.hear(item.as_message().unwrap()) {
            self.model.apply(self.at, &observation);
        }
    }

    /// The grade of each known line of a file, by its first letter: `d`oubt, `p`resumed, `s`ure.
    fn grades(&self, path: &str) -> String {
        let file = self.model.place(path).unwrap();
        let segments = self.model.files()[file].segments.iter().enumerate();
        let mut known: Vec<(usize, char)> = Vec::new();
        for (place, segment) in segments {
            for line in 0..segment.lines.len() {
                let letter = match self.model.claim(file, place, line..line + 1).grade {
                    Grade::InDoubt => 'd',
                    Grade::Presumed => 'p',
                    _ => 's',
                };
                known.push((segment.likely_first().unwrap_or(1_000) + line, letter));
            }
        }
        known.sort_unstable();
        known.into_iter().map(|(_, letter)| letter).collect()
    }
}

/// What becomes of both files after a command.
fn after(command: &str, output: &str) -> (String, String) {
    let mut world = World::new();
    world.run(command, output);
    (world.grades(A), world.grades(B))
}

fn both(one: &str, other: &str) -> (String, String) {
    (one.to_owned(), other.to_owned())
}

#[test]
fn a_program_that_nobody_knows_reaches_what_it_names() {
    for command in
        ["mytool a.go", "mytool --out=/p/a.go", "mytool -oa.go", "mytool run ./a.go 2>&1", "/opt/x/bin/t a.go"]
    {
        assert_eq!(after(command, ""), both("dddd", "pppp"), "{command}");
    }
    for command in ["mytool list", "ngrok http 3000", "tmux kill-session -t '$209'", "/tmp/tool probe --json"] {
        assert_eq!(after(command, ""), both("pppp", "pppp"), "{command}");
    }
}

#[test]
fn a_program_that_may_reach_more_reaches_everything() {
    for command in [
        "mytool fix",
        "mytool --write",
        "mytool \"$f\"",
        "mytool $f",
        "mytool *",
        "mytool .",
        "mytool ..",
        "mytool ../p",
        "mytool /",
        "./mytool list",
        "bin/mytool",
        "codegen",
        "api-generate",
        "flock /tmp/l bash x.sh",
        "setsid python3 x.py",
        "every 5 'echo x > a.go'",
        "every 5 'make it'",
        "mytool -c 'x y'",
        "claude -p hello",
        "codex exec 'do it'",
        "go run ./tools/gen",
        "go run . migrate",
        "go run -exec ./x .",
        "cargo run -- fix",
        "$tool list",
        "PATH=/x mytool list",
        "mytool list | xargs rm",
        "mytool /proc/self/cwd/a.go",
        "eval mytool",
        "mytool restore",
        "mytool pull",
    ] {
        assert_eq!(after(command, ""), both("dddd", "dddd"), "{command}");
    }
}

/// A file in Go as a formatter leaves it.
const GO: &str = "package a\n\nimport (\n\t\"fmt\"\n)\n\ntype t struct {\n\tname  string\n\tcount int\n}\n\nfunc f(x t) {\n\ty := x.count\n\tif y == 1 {\n\t\tfmt.Println(x.name, y)\n\t}\n}\n";

#[test]
fn a_formatter_leaves_what_it_has_formatted() {
    let mut world = World::new();
    world.run("black b.py", "");
    assert_eq!(world.grades(B), "dddd", "the first time it may change everything");
    world.read(B, "one\ntwo\n\nthree\n");
    world.run("black b.py", "");
    assert_eq!(world.grades(B), "pppp");
    world.run("black .", "");
    assert_eq!(world.grades(B), "pppp");
    world.edit(B, "three", "four");
    world.run("black b.py", "");
    assert_eq!(world.grades(B), "pppd", "what was edited is looked at again");
}

#[test]
fn a_formatter_that_may_have_something_to_do_does_it() {
    let formatted = || {
        let mut world = World::new();
        world.run("black b.py", "");
        world.read(B, "one\ntwo\n\nthree\n");
        world
    };
    let mut world = formatted();
    world.run("yapf -i b.py", "");
    assert_eq!(world.grades(B), "dddd", "another formatter has another taste");
    let mut world = formatted();
    world.edit(B, "two\n", "");
    world.run("black b.py", "");
    assert_eq!(world.grades(B), "ddd", "nothing tells where a line was removed");
    let mut world = formatted();
    world.run("bash fix.sh", "");
    world.read(B, "one\nx\n\nthree\n");
    world.run("black b.py", "");
    assert_eq!(world.grades(B), "dddd", "what a script wrote was never formatted");
    let mut world = World::new();
    world.run("black b.py || true", "");
    world.read(B, "one\ntwo\n\nthree\n");
    world.run("black b.py", "");
    assert_eq!(world.grades(B), "dddd", "the first run may have failed");
    let mut world = formatted();
    world.edit(B, "three", "four");
    world.run("ruff check --fix b.py", "");
    assert_eq!(world.grades(B), "dddd", "one that removes imports does so anywhere");
}

#[test]
fn a_file_in_go_shows_whether_somebody_formats_it() {
    let formatted = |text: &str| {
        let mut world = World::new();
        world.read("/p/c.go", text);
        world.run("gofmt -w c.go", "");
        world.grades("/p/c.go")
    };
    assert!(formatted(GO).chars().all(|grade| grade == 'p'));
    for odd in [
        GO.replace("y := x", "y:=x"),
        GO.replace('\t', "    "),
        GO.replace("f(x t) {", "f(x t){"),
        GO.replace("x.name, y", "x.name,y"),
        GO.replace("count int", "count int "),
        GO.replace("}\n\nfunc", "}\n\n\nfunc"),
    ] {
        assert!(formatted(&odd).chars().all(|grade| grade == 'd'), "{odd}");
    }
    let mut world = World::new();
    world.read("/p/c.go", GO);
    world.edit("/p/c.go", "\tname  string\n", "\tname  string\n\tlonger string\n");
    world.run("gofmt -w c.go", "");
    assert_eq!(
        world.grades("/p/c.go"),
        "ppppppdddddd".to_owned() + "pppppp",
        "a field that is longer moves the others"
    );
}

#[test]
fn a_pattern_touches_lines_that_can_match_it() {
    let of = |command: &str| after(command, "").0;
    assert_eq!(of("sed -i 's/tw[a-z]/2/' a.go"), "sdss");
    assert_eq!(of("sed -i -E 's/(x|y)*thre+/3/g' a.go"), "sssd");
    assert_eq!(of("sed -i '/^tw.$/d' a.go"), "sdss");
    assert_eq!(of("perl -pi -e 's/\\btwo\\b/2/' a.go"), "pdpp");
    for all in [
        "sed -i 's/TW[a-z]/2/I' a.go",
        "sed -i 's/tw[o]\\|x/2/' a.go",
        "sed -i -E 's/two|x/2/' a.go",
        "sed -i 's/.*/2/' a.go",
        "sed -i 's/t[a-z]*/2/' a.go",
        "sed -i 's/\\(two\\)*/2/' a.go",
        "sed -i 'N;s/tw[a-z]/2/' a.go",
        "sed -i -z 's/tw[a-z]/2/' a.go",
        "perl -0pi -e 's/tw[a-z]/2/' a.go",
        "perl -pi -e 's/(?i)TW[a-z]/2/' a.go",
        "perl -pi -e 's/tw$x/2/' a.go",
        "perl -ni -e 's/tw[a-z]/2/' a.go",
    ] {
        assert_eq!(of(all), "dddd", "{all}");
    }
}

const MERGED: &str =
    "Updating 1a2b3c4..5d6e7f8\nFast-forward\n a.go | 2 +-\n 1 file changed, 1 insertion(+), 1 deletion(-)\n";

#[test]
fn git_says_what_it_changed() {
    assert_eq!(after("git pull", MERGED), both("dddd", "pppp"));
    assert_eq!(after("git merge --ff-only origin/main", MERGED), both("dddd", "pppp"));
    assert_eq!(after("git pull", "Already up to date.\n"), both("ssss", "ssss"));
    let all = both("dddd", "dddd");
    assert_eq!(after("git pull", &MERGED.replace("1 file", "2 files")), all, "one of the files is not told");
    assert_eq!(after("git pull | tail -1", " 1 file changed, 1 insertion(+)\n"), all);
    assert_eq!(after("git pull && git checkout x", MERGED), all);
    assert_eq!(after("git pull", "From x\n   1..2  main -> origin/main\n"), all);
    assert_eq!(after("git checkout -f main", "Already on 'main'\n"), all);
    assert_eq!(after("git stash drop stash@{0}", "Dropped stash@{0}\n"), both("pppp", "pppp"));
    assert_eq!(after("git checkout --ours a.go", "Updated 1 path from the index\n").0, "dddd");
}

#[test]
fn a_download_reaches_the_file_that_it_is_put_into() {
    assert_eq!(after("curl -s -o /dev/null -w '%{http_code}' http://x", "200"), both("pppp", "pppp"));
    assert_eq!(after("curl -sS -D - http://x", ""), both("pppp", "pppp"));
    assert_eq!(after("curl -so a.go http://x", ""), both("dddd", "pppp"));
    assert_eq!(after("curl -s --output a.go http://x", ""), both("dddd", "pppp"));
    for command in ["curl -OJ http://x/a.go", "curl -K x http://x", "curl --out a.go http://x", "curl -s http://x -o"] {
        assert_eq!(after(command, "").0, "dddd", "{command}");
    }
}

#[test]
fn a_night_is_no_change_and_a_rewind_is_one() {
    let harness = || Origin::Harness { kind: None, path: None };
    let mut world = World::new();
    world.say(harness(), "<environment_context>\n  <current_date>2026-04-12</current_date>\n</environment_context>");
    assert_eq!(world.grades(A), "pppp", "a person may have edited it meanwhile");
    world.say(harness(), "Note: /p/a.go was modified, either by the user or by a linter.");
    assert_eq!(world.grades(A), "dddd");
    for note in ["<command-name>/rewind</command-name>", "<command-name>/resume</command-name>", "Session resumed"] {
        let mut world = World::new();
        world.say(harness(), note);
        assert_eq!(world.grades(A), "dddd", "{note}");
    }
}

#[test]
fn a_commit_of_someone_else_is_a_change() {
    let mut world = World::new();
    world.run("git commit -m x", "[main 1a2b3c4] x\n 1 file changed\n");
    world.say(Origin::Said, "Look at commit 1a2b3c4 again.");
    assert_eq!(world.grades(A), "pppp");
    world.say(Origin::Said, "Review commit 9f8e7d6 on this branch.");
    assert_eq!(world.grades(A), "dddd");
}

#[test]
fn another_agent_reaches_what_it_reports() {
    let of = |arguments: Value, report: &str| {
        let mut world = World::new();
        world.call("Agent", arguments, report);
        (world.grades(A), world.grades(B))
    };
    let task = || json!({"description": "Fix lint", "prompt": "Fix all lint errors."});
    assert_eq!(of(task(), "Done. I changed /p/a.go only."), both("dddd", "pppp"));
    assert_eq!(of(task(), "All done."), both("dddd", "dddd"));
    let named = json!({"description": "Fix lint", "prompt": "Fix b.py, and what else needs it."});
    assert_eq!(of(named, "I changed a.go."), both("dddd", "dddd"));
    let review = json!({"description": "Code quality review", "prompt": "Look at the diff. See a.go."});
    assert_eq!(of(review, "Findings in a.go: none."), both("pppp", "pppp"));
    let both_words = json!({"description": "Review and fix lint", "prompt": "Go."});
    assert_eq!(of(both_words, "I changed a.go."), both("dddd", "pppp"));
}

#[test]
fn an_agent_that_was_only_to_look_may_say_that_it_did_more() {
    let of = |report: &str| {
        let mut world = World::new();
        world.run("git commit -m x", "[main 1a2b3c4] x\n 1 file changed\n");
        world.call(
            "spawn_agent",
            json!({"agent_type": "explorer", "message": "Review it."}),
            "{\"agent_id\":\"abc-1\"}",
        );
        assert_eq!(world.grades(A), "pppp");
        let note = format!(
            "<subagent_notification>\n{{\"agent_path\":\"abc-1\",\"status\":{{\"completed\":\"{report}\"}}}}\n</subagent_notification>"
        );
        // Some harnesses say it twice.
        world.say(Origin::Said, &note);
        world.say(Origin::Said, &note);
        world.grades(A)
    };
    assert_eq!(of("No findings."), "pppp");
    assert_eq!(of("Two steps landed, both committed."), "dddd");
    // What this agent committed itself is no news, but what it did not is.
    assert_eq!(of("It landed as `1a2b3c4`."), "pppp");
    assert_eq!(of("They landed as `1a2b3c4` and `9f8e7d6` in a.go."), "dddd");
    // Findings are about a file, and say nothing about who changed it.
    let long = "In a.go the result is rewritten and then dropped, which nobody would expect of it. ".repeat(6);
    assert_eq!(of(&format!("{long} Not since the user asked, but always.")), "pppp");
}

#[test]
fn a_long_text_says_of_a_file_what_its_own_sentence_says() {
    let of = |text: &str| {
        let mut world = World::new();
        world.say(Origin::Said, text);
        (world.grades(A), world.grades(B))
    };
    let rest = "the count is taken from the plan and nothing else is ever looked at before it is printed ".repeat(5);
    let text = format!("In a.go {rest} and is rewritten later. It is not shown to the user. In b.py all is well.");
    assert_eq!(of(&text), both("ssss", "ssss"));
    let text = format!("All of {rest}. The user has edited a.go in an editor meanwhile. In b.py all is well.");
    assert_eq!(of(&text), both("dddd", "ssss"));
    assert_eq!(of("a.go has other text now; it was modified outside."), both("dddd", "ssss"));
    assert_eq!(of("The linter changed a.go on save, is that ok?"), both("dddd", "ssss"));
}

#[test]
fn a_program_that_was_not_found_did_nothing() {
    let line = "env A=\"x 'p(\"$1\")'\" 1a2b3c4 fix a.go";
    let codex = |code: u8, said: &str| {
        format!("Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code {code}\nOutput:\n{said}\n")
    };
    let of = |line: &str, output: &str| {
        let mut world = World::new();
        world.call("exec_command", json!({"cmd": line, "workdir": "/p"}), output);
        (world.grades(A), world.grades(B))
    };
    let (ok, _) = of(line, &codex(127, "env: 1a2b3c4: No such file or directory"));
    assert_eq!(ok, "ssss");
    // A script may have come to the place where it fails in the same way.
    assert_eq!(of("env A=1 ./fix.sh", &codex(127, "env: node: No such file or directory")), both("dddd", "dddd"));
    assert_eq!(of("./fix.sh", &codex(127, "./fix.sh: line 3: node: command not found")), both("dddd", "dddd"));
    assert_eq!(of("./fix.sh", &codex(127, "zsh:1: no such file or directory: ./fix.sh")), both("ssss", "ssss"));
    let line = "perl -0pi -e \"s/`one\\.x` is `two`/it's/\" b.py";
    let said = "zsh:1: command not found: one.x\nzsh:1: command not found: two";
    assert_ne!(of(line, &codex(0, said)).0, "dddd");
}

#[test]
fn a_comment_of_python_does_not_hide_what_is_written() {
    let write = "import pathlib\n# it's one of these\nfor p in ['b.py']:\n    t = pathlib.Path(p).read_text()\n    pathlib.Path(p).write_text(t.upper())\n";
    assert_eq!(after(&format!("python3 <<'X'\n{write}X"), ""), both("pppp", "dddd"));
    let write = write.replace("'b.py'", "'b.py', \"a\" + '.go'");
    assert_eq!(after(&format!("python3 <<'X'\n{write}X"), ""), both("dddd", "dddd"));
}
