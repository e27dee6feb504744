//! What command lines of PowerShell tell about files: held against its documentation, since it is not at hand here.

use contexture_core::item::{FunctionCall, FunctionCallOutput, Outcome};
use contexture_files::dialect::Dialects;
use contexture_files::model::FileModel;
use contexture_files::numbering::Passage;
use contexture_files::observation::Observation;
use contexture_files::observer::Observer;
use serde_json::json;

fn observe(command: &str, output: &str) -> Vec<Observation> {
    let call = FunctionCall::new("1", "powershell", json!({"command": command}).to_string());
    Dialects::builtin().observe(&call, &FunctionCallOutput::new("1", output, Outcome::Done)).observations
}

fn read(path: &str, first: Option<usize>, lines: &[&str], whole: bool) -> Vec<Observation> {
    let lines = lines.iter().map(|line| (*line).to_owned()).collect();
    vec![Observation::Read { path: path.to_owned(), block: Passage { first, lines }, whole }]
}

#[test]
fn files_are_shown_under_all_names_of_the_command() {
    for name in ["Get-Content", "gc", "cat", "type", "GET-CONTENT", "Get-Content -Path", "gc -LiteralPath"] {
        assert_eq!(
            observe(&format!("{name} D:\\a.txt"), "x\ny\n"),
            read("D:/a.txt", Some(1), &["x", "y"], true),
            "{name}"
        );
    }
    assert_eq!(observe("gc a.txt -TotalCount 2", "x\ny\n"), read("a.txt", Some(1), &["x", "y"], false));
    assert_eq!(observe("gc a.txt -TotalCount 3", "x\ny\n"), read("a.txt", Some(1), &["x", "y"], true));
    assert_eq!(observe("gc a.txt -Tail 2", "x\ny\n"), read("a.txt", None, &["x", "y"], false));
    // One line feed more is printed than the file has.
    assert_eq!(observe("gc -Raw a.txt", "x\ny\n\n"), read("a.txt", Some(1), &["x", "y"], false));
}

#[test]
fn what_is_not_certain_teaches_nothing() {
    let silent = [
        "gc a.txt, b.txt",
        "gc a.txt b.txt",
        "gc *.txt",
        "gc $file",
        "gc a.txt -Encoding Byte",
        "gc Env:PATH",
        "gc ~/a.txt",
        "gc a.txt | Select-Object -First 3",
        "gc a.txt; gc b.txt",
        "Select-String -Path a.txt -Pattern x",
        "gc a.txt -ReadCount 0",
    ];
    for command in silent {
        let seen = observe(command, "x\ny\n");
        assert!(!seen.iter().any(|seen| matches!(seen, Observation::Read { .. })), "{command}: {seen:?}");
    }
    let complaint = "Get-Content: Cannot find path 'D:\\a.txt' because it does not exist.\n";
    assert!(observe("gc D:\\a.txt", complaint).is_empty());
}

#[test]
fn changes_are_certain_only_if_nothing_complains() {
    assert_eq!(observe("del a.txt", ""), [Observation::Delete { path: "a.txt".to_owned() }]);
    let could_write = |seen: &Observation| matches!(seen, Observation::CouldWrite { .. });
    for command in ["Remove-Item a.txt", "ri a.txt -Recurse", "Set-Content a.txt x"] {
        let seen = observe(command, "Remove-Item: Access to the path is denied.\n");
        assert!(matches!(seen.as_slice(), [only] if could_write(only)), "{command}: {seen:?}");
    }
    for command in [
        "ri a.txt, b.txt",
        "ri a.txt -WhatIf",
        "'x' > a.txt",
        "'x' | Out-File a.txt",
        "gci | ri",
        "ri Env:X",
        "Move-Item a.txt b.txt",
        "./build.ps1",
    ] {
        assert!(observe(command, "").iter().any(could_write), "{command}");
    }
    for command in ["Set-Content a.txt x", "Add-Content -Path a.txt -Value x", "Out-File -FilePath a.txt"] {
        assert!(
            matches!(observe(command, "").as_slice(), [Observation::Changed { path, .. }] if path == "a.txt"),
            "{command}"
        );
    }
}

#[test]
fn a_file_on_a_drive_is_one_under_all_its_names() {
    let mut observer = Observer::new(Dialects::builtin());
    let mut model = FileModel::new();
    let mut run = |name: &str, command: &str, output: &str| {
        let call = FunctionCall::new("1", name, json!({"command": command}).to_string());
        let seen = observer.observe(&call, &FunctionCallOutput::new("1", output, Outcome::Done));
        seen.observations.iter().for_each(|seen| model.apply(1, seen));
        model.clone()
    };
    run("pwsh", "gc D:\\a\\b.txt", "x\n");
    for path in ["D:\\a\\b.txt", "d:/a/b.txt", "/d/a/b.txt", "/mnt/d/a/b.txt", "D:\\A\\B.TXT"] {
        let after = run("pwsh", "gc D:\\a\\b.txt", "x\n");
        assert_eq!(after.get(path).map(|file| file.text()), Some("x".to_owned()), "{path}");
    }
    let after = run("Bash", "echo y > /mnt/d/a/b.txt", "");
    assert_eq!(after.get("D:\\a\\b.txt").map(|file| file.text()), Some("y".to_owned()));
}
