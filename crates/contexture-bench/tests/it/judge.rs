//! Judges policies on the made recordings, with tools that are shell scripts.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use contexture_bench::judge::report::{JudgeReport, JudgedPolicy};
use contexture_bench::judge::{JudgeOptions, run};
use contexture_cli::source;
use contexture_measure::judge::Measures;
use serde_json::{Value, json};

/// A budget that the made recordings exceed. After a fold, 6 700 tokens of it are in use.
const BUDGET: u64 = 10_000;

fn recordings() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("judge/recordings")
}

fn options(tools: Option<PathBuf>) -> JudgeOptions {
    let limit = Duration::from_secs(60);
    JudgeOptions { paths: vec![recordings()], budget: BUDGET, tools, only: Vec::new(), sample: None, seed: 1, limit }
}

fn policy<'a>(report: &'a JudgeReport, name: &str) -> &'a JudgedPolicy {
    report.judged.iter().find(|judged| judged.name == name).unwrap()
}

fn measures(judged: &JudgedPolicy) -> Vec<Measures> {
    judged.recordings.iter().map(|row| row.clone().unwrap()).collect()
}

/// A tool that prints what is in a file, whatever it is given.
fn printing(name: &str, file: &Path) -> Value {
    let script = format!("cat > /dev/null; cat '{}'", file.display());
    json!({ "name": name, "version": "1", "settings": "made", "command": ["sh", "-c", script] })
}

/// Writes a list of tools.
fn listed(directory: &Path, tools: &[Value]) -> PathBuf {
    let path = directory.join("tools.json");
    std::fs::write(&path, serde_json::to_string(tools).unwrap()).unwrap();
    path
}

/// Windows that send the whole past of one recording every time.
fn everything(file: &Path) -> String {
    let (transcript, _) = source::find(&[file.to_owned()]).unwrap()[0].transcript().unwrap();
    let mut lines = String::new();
    let mut sent = 0;
    for (at, _) in transcript.records.iter().enumerate().filter(|(_, record)| record.is_response()) {
        let messages: Vec<Value> = (sent..at).map(|index| json!({ "at": index })).collect();
        let _ = writeln!(lines, "{}", json!({ "before": at, "keep": sent, "messages": messages }));
        sent = at;
    }
    lines
}

#[test]
fn built_in_policies_are_measured_with_intervals() {
    let report = run(&options(None)).unwrap();
    let everything = measures(policy(&report, "pass-through"));
    assert_eq!(everything.len(), 3);
    assert!(everything.iter().all(|one| one.hits == one.targets && one.targets > 10 && one.over == 1));
    let own = measures(policy(&report, "contexture"));
    assert!(own.iter().all(|one| one.over == 0 && one.said_share() == 1.0));
    // So small a budget cannot save anything here, so nothing that the agent needs may be lost for it.
    let (hits, targets) = own.iter().fold((0, 0), |(hits, targets), one| (hits + one.hits, targets + one.targets));
    assert!(hits * 10 >= targets * 7, "{hits} of {targets}");
    let text = report.json();
    for row in text["policies"].as_array().unwrap() {
        for (name, value) in row["values"].as_object().unwrap() {
            let [low, middle, high] = ["low", "value", "high"].map(|end| value[end].as_f64().unwrap());
            assert!(low <= middle && middle <= high, "{name} of {}: {value}", row["policy"]);
        }
    }
}

#[test]
fn a_tool_that_sends_everything_is_measured_as_sending_everything() {
    let directory = tempfile::tempdir().unwrap();
    let file = recordings().join("limits-raised.jsonl");
    let windows = directory.path().join("windows");
    std::fs::write(&windows, everything(&file)).unwrap();
    let tools = listed(directory.path(), &[printing("all", &windows)]);
    let report = run(&JudgeOptions { paths: vec![file], ..options(Some(tools)) }).unwrap();
    assert_eq!(measures(policy(&report, "all")), measures(policy(&report, "pass-through")));
}

#[test]
fn a_tool_that_drops_what_an_edit_needs_has_less_recall() {
    let directory = tempfile::tempdir().unwrap();
    let file = recordings().join("limits-raised.jsonl");
    let windows = directory.path().join("windows");
    // The first read is message 2: it is never sent, and one message less is there from then on.
    let lines = everything(&file);
    let dropped = lines.lines().map(|line| {
        let mut request: Value = serde_json::from_str(line).unwrap();
        let keep = request["keep"].as_u64().unwrap();
        request["keep"] = json!(if keep > 2 { keep - 1 } else { keep });
        request["messages"].as_array_mut().unwrap().retain(|message| message["at"] != 2);
        format!("{request}\n")
    });
    std::fs::write(&windows, dropped.collect::<String>()).unwrap();
    let tools = listed(directory.path(), &[printing("less", &windows)]);
    let report = run(&JudgeOptions { paths: vec![file], ..options(Some(tools)) }).unwrap();
    let (less, all) = (measures(policy(&report, "less")), measures(policy(&report, "pass-through")));
    assert_eq!(less[0].targets, all[0].targets);
    assert!(less[0].hits < all[0].hits, "{:?}", less[0]);
    assert!(less[0].bytes < all[0].bytes);
}

#[test]
fn tools_that_fail_or_are_missing_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = recordings().join("limits-raised.jsonl");
    let windows = directory.path().join("windows");
    let text = everything(&file);
    std::fs::write(&windows, text.lines().next().unwrap()).unwrap();
    let script = |name: &str, script: &str| json!({ "name": name, "command": ["sh", "-c", script] });
    let tools = listed(
        directory.path(),
        &[
            printing("ends early", &windows),
            script("fails", "cat > /dev/null; exit 3"),
            script("talks", "cat > /dev/null; echo hello"),
            script("hangs", "exec sleep 600"),
            json!({ "name": "absent", "missing": "no such package" }),
        ],
    );
    let limit = Duration::from_millis(300);
    let asked = JudgeOptions { paths: vec![file], limit, ..options(Some(tools)) };
    // A recording on which the only policy failed is not left out.
    let alone = run(&JudgeOptions { only: vec!["fails".to_owned()], ..asked.clone() }).unwrap().markdown();
    assert!(alone.contains("1 recording,") && alone.contains("exit status: 3"), "{alone}");
    let text = run(&asked).unwrap().markdown();
    for expected in ["there is no request before message", "exit status: 3", "no JSON", "took too long"] {
        assert!(text.contains(expected), "{expected} is not in\n{text}");
    }
    assert!(text.contains("MISSING absent: no such package"), "{text}");
}

#[test]
fn a_sample_is_the_same_for_the_same_seed() {
    let drawn = |seed| {
        let report = run(&JudgeOptions { sample: Some(2), seed, ..options(None) }).unwrap();
        measures(policy(&report, "pass-through"))
    };
    assert_eq!(drawn(4), drawn(4));
    assert_eq!(drawn(4).len(), 2);
    let seeds: Vec<_> = (0..6).map(drawn).collect();
    assert!(seeds.iter().any(|one| *one != seeds[0]), "every seed draws the same");
}

#[test]
fn an_unknown_policy_is_an_error_that_lists_the_known_ones() {
    let asked = JudgeOptions { only: vec!["best".to_owned()], ..options(None) };
    let error = run(&asked).unwrap_err();
    assert!(format!("{error:?}").contains("half-window drop"), "{error:?}");
}

#[test]
fn the_scripts_that_replay_agents_pass_their_own_tests() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents");
    let ran =
        std::process::Command::new("python3").args(["-B", "-m", "unittest", "discover", "-s"]).arg(directory).output();
    let ran = ran.unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}
