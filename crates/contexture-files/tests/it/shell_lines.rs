//! Command lines are read as the shell reads them, or not at all.

use std::process::{Command, Stdio};

use contexture_files::shell::parse;
use proptest::prelude::*;

/// What bash makes of the words of a line that is plain to the parser.
fn words_of_bash(line: &str) -> Vec<String> {
    let script = format!("printf '%s\\0' {line}\n");
    let output = Command::new("bash").args(["-c", &script]).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_terminator('\0').map(str::to_owned).collect()
}

fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z./_-]{1,6}",
        2 => "[ -~]{0,6}",
        1 => prop::sample::select(vec!["'", "\"", "\\", " ", "$", "`", "*", "~", "#", ";", "&", "|", "(", ")", "{", "}", "<", ">", "\n", "!", "=", "é"])
            .prop_map(str::to_owned),
    ]
}

fn line() -> impl Strategy<Value = String> {
    prop::collection::vec(piece(), 0..14).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_line_makes_the_parser_fail(line in line()) {
        let _ = parse(&line);
    }

    #[test]
    fn keywords_in_any_order_make_no_trouble(words in prop::collection::vec(prop::sample::select(vec![
        "if", "then", "else", "fi", "for", "in", "do", "done", "while", "case", "esac", "{", "}", "(", ")", ";", "&&", "||",
        "|", "\n", "a", "'b c'", "<<E", "E", ">", "f", "$(", "`", "[[", "]]", "!", "#", "x=1", "time", "$((", "<<'E'",
    ]), 0..24)) {
        let _ = parse(&words.join(" "));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn quoted_words_come_back_as_they_were(words in prop::collection::vec("[ -~]{1,12}", 1..5)) {
        let output = Command::new("bash")
            .args(["-c", "printf '%q ' \"$@\"", "quote"])
            .args(&words)
            .output()
            .unwrap();
        let quoted = String::from_utf8(output.stdout).unwrap();
        let script = parse(&format!("echo {quoted}")).expect("quoted words are understood");
        // Some shells expand words that begin like these, so they are never plain.
        let is_odd = |word: &String| word.starts_with(['=', '^', '#']) || word.contains("=~") || word.contains(":~");
        match script.pipelines[0].commands[0].plain_arguments() {
            Some(arguments) => prop_assert_eq!(arguments, words.iter().map(String::as_str).collect::<Vec<_>>()),
            None => prop_assert!(words.iter().any(is_odd)),
        }
    }

    #[test]
    fn plain_words_are_what_the_shell_hands_over(line in line()) {
        // Only lines that the parser calls one plain command are run, as arguments of `printf`.
        let Some(script) = parse(&format!("printf {line}")) else { return Ok(()) };
        let [pipeline] = script.pipelines.as_slice() else { return Ok(()) };
        let [command] = pipeline.commands.as_slice() else { return Ok(()) };
        let is_alone = script.is_straight && script.others.is_empty() && command.redirects.is_empty();
        let (true, Some(words)) = (is_alone, command.plain_arguments()) else { return Ok(()) };
        if words.is_empty() {
            return Ok(());
        }
        prop_assert_eq!(words_of_bash(&line), words);
    }
}
