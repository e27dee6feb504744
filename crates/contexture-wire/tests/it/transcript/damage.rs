//! Recordings that are cut, mixed up, or no recordings at all.

use std::io::Read;

use contexture_wire::transcript::{MAX_LINE_BYTES, ReadError, Record, Transcript};
use proptest::prelude::*;

use super::{brief, check};

#[track_caller]
fn check_broken(recording: &[u8], broken: &[u64], messages: usize) {
    let (transcript, report) = Transcript::read(recording).expect("a known format");
    assert_eq!(report.broken.iter().map(|broken| broken.line).collect::<Vec<_>>(), broken);
    assert_eq!(report.broken_records, broken.len() as u64);
    assert_eq!(transcript.records.len(), messages);
}

const LINE: &str = r#"{"role":"user","text":"hello"}"#;

#[test]
fn broken_lines_are_reported_with_their_number_and_skipped() {
    check_broken(format!("{LINE}\n{{\"role\":\"us\n\n{LINE}\n[1]\n{LINE}").as_bytes(), &[2, 5], 3);
    check_broken(format!("{{\"broken\n{LINE}\n").as_bytes(), &[1], 1);
    check_broken(format!("{LINE}\r\n{LINE}\r\n").as_bytes(), &[], 2);
    check_broken(format!("\u{feff}{LINE}").as_bytes(), &[], 1);
}

#[test]
fn a_first_line_cut_anywhere_does_not_hide_the_rest() {
    let first = r#"{"role":"assistant","text":"a","tool_calls":[{"id":"c","name":"n","arguments":[1,{"x":2},"y"]}],"name":null}"#;
    for cut in 1..first.len() {
        let (transcript, report) =
            Transcript::read(format!("{}\n{LINE}\n{LINE}\n", &first[..cut]).as_bytes()).expect(first);
        assert_eq!((transcript.records.len(), report.broken[0].line), (2, 1), "cut at {cut}");
    }
    check_broken(format!("[INFO] started\n{LINE}").as_bytes(), &[1], 1);
}

#[test]
fn a_reason_names_the_column() {
    let (_, report) = Transcript::read(format!("{LINE}\n{{\"role\":").as_bytes()).expect("a known format");
    assert_eq!(report.broken[0].reason, "EOF while parsing a value (column 8)");
}

#[test]
fn broken_elements_of_a_document_are_skipped_too() {
    let recording =
        "[\n{\"role\":\"user\",\"content\":\"a\"},\n{\"role\":,},\n{\"role\":\"user\",\"content\":\"b\"},\n{\"role\"";
    check_broken(recording.as_bytes(), &[3, 5], 2);
    check_broken(b"{\"messages\": [{\"role\":\"user\",\"content\":\"a\"}], \"more\" 1}", &[1], 1);
    check_broken(b"{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}],\"system\":\"late\"}", &[1], 1);
}

#[test]
fn half_characters_and_bytes_that_are_no_text_are_replaced() {
    check(
        r#"{"role":"user","text":"cut \ud83d here, \ud83d\ude00 whole, \\ud83d text"}"#,
        "plain",
        r#"
        user: "cut � here, 😀 whole, \\ud83d text"
    "#,
    );
    let mut bytes = br#"{"role":"user","text":"a"#.to_vec();
    bytes.extend(b"\xff\xfeb\"}");
    check_broken(&bytes, &[], 1);
}

#[test]
fn what_is_no_recording_is_refused() {
    for bytes in ["", "\n\n", " \r\n\t"] {
        let result = Transcript::read(bytes.as_bytes());
        assert!(matches!(result, Err(ReadError::Empty)), "{bytes:?} gave {result:?}");
    }
    for bytes in ["hello", "{}", "[]", "[1,2]", "{\"messages\":[]}", "\u{0}\u{1}", "name,size\na,1\n"] {
        let result = Transcript::read(bytes.as_bytes());
        assert!(matches!(result, Err(ReadError::UnknownFormat)), "{bytes:?} gave {result:?}");
    }
}

#[test]
fn answers_that_come_late_stand_behind_their_call() {
    check(
        r#"
        {"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"c1","name":"a","input":{}},{"type":"tool_use","id":"c2","name":"b","input":{}}]}}
        {"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"1"}]}}
        {"type":"user","message":{"role":"user","content":"meanwhile"}}
        {"type":"assistant","message":{"id":"m2","content":[{"type":"tool_use","id":"c3","name":"c","input":{}}]}}
        {"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c2","content":"2"}]}}
        "#,
        "Claude Code",
        r#"
        assistant: "" +c1 a {} +c2 b {}
        tool: "1" =c1 a
        tool: "2" =c2 b
        user: "meanwhile"
        assistant: "" +c3 c {}
        tool: "" =c3 c
        "#,
    );
}

/// One recording of each format, with everything that can go wrong between calls and answers.
const RECORDINGS: [&str; 6] = [
    r#"{"type":"user","message":{"role":"user","content":"go ü"}}
{"type":"assistant","message":{"id":"m","content":[{"type":"text","text":"\ud83d"},{"type":"tool_use","id":"c","name":"Read","input":{"p":[1.5,null]}}]}}
{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"image"}]}]}}
{"type":"attachment","attachment":{"content":{"file":{"content":"x"}}}}
"#,
    r#"{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"go"}]}}
{"type":"response_item","payload":{"type":"function_call","name":"sh","arguments":"{}","call_id":"c"}}
{"type":"response_item","payload":{"type":"function_call_output","call_id":"c","output":"x"}}
"#,
    r#"{"info":{"id":"s"},"messages":[{"info":{"role":"user"},"parts":[{"type":"text","text":"go"}]},
{"info":{"role":"assistant"},"parts":[{"type":"tool","callID":"c","tool":"sh","state":{"input":{},"output":"x"}}]}]}"#,
    r#"{"type":"user.message","data":{"content":"go"}}
{"type":"assistant.message","data":{"messageId":"m","toolRequests":[{"toolCallId":"c","name":"sh"}]}}
{"type":"tool.execution_complete","data":{"toolCallId":"c","result":{"content":"x"}}}
"#,
    r#"{"system":"s","messages":[{"role":"user","content":"go"},
{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"sh","input":{}}]},
{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"x"}]}]}"#,
    r#"[{"role":"user","content":"go"},{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"sh","arguments":"{}"}}]},
{"role":"tool","tool_call_id":"c","content":"x"}]"#,
];

/// Every call has an id of its own and exactly one later answer, and every answer a call.
fn check_pairs(records: &[Record]) {
    let mut open = Vec::new();
    let mut seen = std::collections::HashSet::new();
    for record in records {
        for call in record.calls() {
            assert!(seen.insert(call.call_id.clone()), "`{}` is used twice", call.call_id);
            open.push(call.call_id.clone());
        }
        if let Some(output) = record.output() {
            let at = open.iter().position(|open| *open == output.call_id).expect("the call stands before its answer");
            open.remove(at);
        }
    }
    assert_eq!(open, Vec::<Box<str>>::new());
}

#[test]
fn recordings_cut_anywhere_are_used_up_to_the_cut() {
    for recording in RECORDINGS {
        let whole = Transcript::read(recording.as_bytes()).expect("a known format").0;
        check_pairs(&whole.records);
        for cut in 0..recording.len() {
            if let Ok((transcript, _)) = Transcript::read(&recording.as_bytes()[..cut]) {
                check_pairs(&transcript.records);
                assert!(transcript.records.len() <= whole.records.len(), "{}", brief(&transcript.records));
            }
        }
    }
}

/// A line of a recording in which calls and answers meet in any way.
fn event() -> impl Strategy<Value = String> {
    let id = prop_oneof!["[abc]", Just("c~2".to_owned())];
    let response = "[mno]";
    prop_oneof![
        (response, id.clone()).prop_map(|(response, id)| format!(
            r#"{{"type":"assistant","message":{{"id":"{response}","content":[{{"type":"tool_use","id":"{id}","name":"n","input":{{}}}}]}}}}"#
        )),
        (response, id.clone()).prop_map(|(response, id)| format!(
            r#"{{"type":"assistant","message":{{"id":"{response}","content":[{{"type":"text","text":"{id}"}}]}}}}"#
        )),
        id.prop_map(|id| format!(
            r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"{id}","content":"x"}}]}}}}"#
        )),
        Just(r#"{"type":"user","message":{"content":"u"}}"#.to_owned()),
        "[{}\"a:]{0,6}",
    ]
}

#[test]
fn numbers_come_back_as_they_were_when_a_recording_is_written_and_read() {
    let recording = r#"{"role":"assistant","text":"","tool_calls":[{"id":"c","name":"n","arguments":[222222222222222222222222,0.1,1e-300,-0]}]}"#;
    let (transcript, _) = Transcript::read(recording.as_bytes()).expect("the plain form");
    let mut written = Vec::new();
    contexture_wire::transcript::write(&mut written, &transcript.records[0]).expect("a vector takes all");
    assert_eq!(Transcript::read(&written[..]).expect("the plain form").0, transcript);
}

/// Every recording with one record a line.
fn line_recordings() -> impl Iterator<Item = &'static str> {
    RECORDINGS.into_iter().filter(|recording| recording.ends_with("}\n"))
}

#[test]
fn line_ends_marks_and_blank_lines_do_not_matter() {
    for recording in line_recordings() {
        let (expected, _) = Transcript::read(recording.as_bytes()).expect("a known format");
        let ends = recording.replace('\n', "\r\n");
        let blank = recording.replace('\n', "\n\n \t\n");
        for changed in [format!("\u{feff}{recording}"), format!("\u{feff}{ends}"), ends, blank] {
            let (transcript, report) = Transcript::read(changed.as_bytes()).expect("a known format");
            assert_eq!((transcript, report.broken_records), (expected.clone(), 0), "{changed:?}");
        }
    }
}

#[test]
fn records_of_unknown_kinds_and_broken_lines_change_nothing_else() {
    for recording in line_recordings() {
        let (expected, _) = Transcript::read(recording.as_bytes()).expect("a known format");
        let noise = [r#"{"type":"next.year","data":{"x":[1]},"payload":{"type":"new"}}"#, "{\"cut", "\u{0}\u{1}\u{2}"];
        let lines: Vec<&str> = recording.lines().collect();
        let noisy: String =
            lines.iter().flat_map(|line| [line].into_iter().chain(&noise)).map(|l| format!("{l}\n")).collect();
        let (transcript, report) = Transcript::read(noisy.as_bytes()).expect("a known format");
        assert_eq!(transcript, expected, "{noisy}");
        let broken: Vec<u64> = report.broken.iter().map(|broken| broken.line).collect();
        let expected: Vec<u64> = (0..lines.len() as u64).flat_map(|n| [4 * n + 3, 4 * n + 4]).collect();
        assert_eq!(broken, expected, "{noisy}");
    }
}

#[test]
fn only_broken_lines_are_no_recording() {
    let result = Transcript::read("{\"role\":\n".repeat(50).as_bytes());
    assert!(matches!(result, Err(ReadError::UnknownFormat)), "{result:?}");
}

#[test]
fn a_line_of_megabytes_is_read_and_one_beyond_the_bound_is_skipped() {
    let text = "x".repeat(5 << 20);
    let recording = format!("{LINE}\n{{\"role\":\"user\",\"text\":\"{text}\"}}\n{LINE}\n");
    check_broken(recording.as_bytes(), &[], 3);
    let beyond = std::io::repeat(b'x').take(MAX_LINE_BYTES as u64 + 1);
    let reader = format!("{LINE}\n\"").into_bytes();
    let reader = std::io::Cursor::new(reader).chain(beyond).chain(std::io::Cursor::new(format!("\"\n{LINE}\n")));
    let (transcript, report) = Transcript::read(std::io::BufReader::new(reader)).expect("a known format");
    assert_eq!((transcript.records.len(), report.broken_records, report.broken[0].line), (2, 1, 2));
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = Transcript::read(&bytes[..]);
    }

    #[test]
    fn any_text_of_json_characters_is_read_without_a_panic(text in r#"[\[\]{}",:a1\\ \n]{0,60}"#) {
        let _ = Transcript::read(text.as_bytes());
    }

    #[test]
    fn damaged_recordings_are_read_without_a_panic(
        which in 0..RECORDINGS.len(),
        at in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 0..4),
        removed in 0_usize..8,
    ) {
        let mut recording = RECORDINGS[which].as_bytes().to_vec();
        let start = at.index(recording.len());
        let end = (start + removed).min(recording.len());
        recording.splice(start..end, bytes);
        if let Ok((transcript, _)) = Transcript::read(&recording[..]) {
            check_pairs(&transcript.records);
        }
    }

    #[test]
    fn calls_and_answers_pair_up_whatever_comes(events in prop::collection::vec(event(), 0..80)) {
        if let Ok((transcript, report)) = Transcript::read(events.join("\n").as_bytes()) {
            check_pairs(&transcript.records);
            prop_assert_eq!(report.messages, transcript.records.len() as u64);
        }
    }

    #[test]
    fn how_a_file_is_read_in_pieces_does_not_matter(which in 0..RECORDINGS.len(), capacity in 1_usize..40) {
        let recording = RECORDINGS[which].as_bytes();
        let whole = Transcript::read(recording).expect("a known format");
        let pieces = Transcript::read(std::io::BufReader::with_capacity(capacity, recording)).expect("a known format");
        prop_assert_eq!(whole, pieces);
    }
}
