//! The table, and what comes out of every mixture of sources.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::kind::Field;
use super::page::page_of;
use super::resolved::resolve_with;
use super::*;
use contexture_gateway::models::ModelEntry;

/// A table with kinds and rules that the real one does not have yet.
static OTHERS: &[SettingRow] = &[
    SettingRow {
        name: "pin.roles",
        kind: ValueKind::Texts,
        default: || json!([]),
        used_by: &[Command::Replay],
        example: r#"["user"]"#,
        ..SettingRow::EMPTY
    },
    SettingRow {
        name: "pin.tools",
        kind: ValueKind::Texts,
        default: || json!(["Read"]),
        used_by: &[Command::Replay],
        example: r#"["Read"]"#,
        ..SettingRow::EMPTY
    },
    SettingRow {
        name: "gateway.upstream",
        kind: ValueKind::Name,
        is_user_only: true,
        has_flag: true,
        used_by: &[Command::Replay],
        example: r#""https://example.com""#,
        ..SettingRow::EMPTY
    },
];
static PIN_ROLES: &SettingRow = &OTHERS[0];
static PIN_TOOLS: &SettingRow = &OTHERS[1];
static UPSTREAM: &SettingRow = &OTHERS[2];

fn file(text: &str) -> Option<ConfigFile> {
    Some(ConfigFile::new("contexture.toml", text))
}

fn user(text: &str) -> Option<ConfigFile> {
    Some(ConfigFile::new("config.toml", text))
}

/// Resolves a project's file and returns the sentence and the hint of what is wrong with it.
#[track_caller]
fn refused(rows: &'static [SettingRow], text: &str) -> (String, String) {
    let sources = SettingSources { project: file(text), ..SettingSources::default() };
    let error = resolve_with(rows, &sources).expect_err(text);
    (error.to_string(), error.hint().to_owned())
}

#[track_caller]
fn check_refused(text: &str, sentence: &str, hint: &str) {
    let (found, found_hint) = refused(keys::ALL, text);
    assert_eq!((found.as_str(), found_hint.as_str()), (&*format!("`contexture.toml`, {sentence}"), hint));
}

#[test]
fn unknown_keys_name_the_nearest_key() {
    check_refused("buget = 1\n", "line 1: unknown key `buget`", "did you mean `budget`?");
    check_refused("\n\nBudget = 1\n", "line 3: unknown key `Budget`", "did you mean `budget`?");
    check_refused(
        "[file_reference]\nslot = 1\n",
        "line 1: unknown key `file_reference`",
        "did you mean `file-reference`?",
    );
    check_refused(
        "[file-reference]\nmax_file_sise = 1\n",
        "line 2: unknown key `max_file_sise` in [file-reference]",
        "did you mean `max_file_size`?",
    );
    check_refused(
        "max_file_size = 1\n",
        "line 1: unknown key `max_file_size`",
        "write `max_file_size` below `[file-reference]`",
    );
    check_refused(
        "[working-memory]\ntext = \"x\"\nbudget = 1\n",
        "line 3: unknown key `budget` in [working-memory]",
        "`budget` is in no table: write it above the first line in brackets",
    );
    check_refused("upstream = 1\n", "line 1: unknown key `upstream`", "`contexture config --no-config` lists all keys");
    // The first mistake of the text is told, not the first of the alphabet.
    check_refused(
        "zzzz = 1\naaaa = 2\n",
        "line 1: unknown key `zzzz`",
        "`contexture config --no-config` lists all keys",
    );
}

#[test]
fn bad_values_say_what_was_found_and_what_is_wanted() {
    let tokens = "a whole number of tokens from 1 to 1099511627776";
    for (found, value) in [("`\"many\"`", "\"many\""), ("`0`", "0"), ("`-5`", "-5"), ("`1.5`", "1.5"), ("`[1]`", "[1]")]
    {
        let sentence = format!("line 1: `budget` is {found}, but must be {tokens}");
        check_refused(&format!("budget = {value}\n"), &sentence, "write it as `budget = 32000`");
    }
    check_refused(
        "[budget]\nx = 1\n",
        &format!("line 1: `budget` is a table, but must be {tokens}"),
        "write it as `budget = 32000`",
    );
    check_refused(
        "\ncounter = \"o20k\"\n",
        "line 2: `counter` is `\"o20k\"`, but must be `o200k` or `estimate`",
        "did you mean `o200k`?",
    );
    check_refused(
        "[file-reference]\nfollow_symlinks = \"yes\"\n",
        "line 2: `file-reference.follow_symlinks` is `\"yes\"`, but must be `true` or `false`",
        "write it as `follow_symlinks = true` below `[file-reference]`",
    );
    check_refused(
        "[file-reference]\nallowed_extensions = []\n",
        "line 2: `file-reference.allowed_extensions` is empty, so no file could ever be read",
        "write it as `allowed_extensions = [\"rs\", \"toml\", \"Dockerfile\"]` below `[file-reference]`",
    );
    check_refused(
        "working-memory = 1\n",
        "line 1: `working-memory` is `1`, but must be a table",
        "begin it with `[working-memory]`",
    );
}

#[test]
fn long_values_are_shown_in_part() {
    let (sentence, _) = refused(keys::ALL, &format!("budget = \"\"\"first\n{}\"\"\"\n", "x".repeat(500)));
    assert!(sentence.contains("`budget` is `\"\"\"first…`, but must be"), "{sentence}");
    let (sentence, _) = refused(keys::ALL, &format!("budget = \"{}\"\n", "ü".repeat(500)));
    assert!(sentence.chars().count() < 160, "{sentence}");
}

#[test]
fn text_that_is_not_toml_has_a_line() {
    let (sentence, hint) = refused(keys::ALL, "budget = 1\nbudget =\n");
    assert!(sentence.starts_with("`contexture.toml`, line 2: "), "{sentence}");
    assert_eq!(hint, "a configuration file is TOML: see https://toml.io");
    let (sentence, _) = refused(keys::ALL, "budget = 1\nbudget = 2\n");
    assert!(sentence.starts_with("`contexture.toml`, line 2: duplicate key"), "{sentence}");
}

#[test]
fn messages_hold_no_control_characters() {
    // They would reach the terminal of someone who runs the program in a foreign checkout.
    check_refused(
        "\"\\u001b[31m\\n\" = 1\n",
        "line 1: unknown key `\\u{1b}[31m\\u{a}`",
        "`contexture config --no-config` lists all keys",
    );
    let sources = SettingSources { project: file("instructions = \"\\u009b31m\""), ..SettingSources::default() };
    assert_eq!(resolve(&sources).unwrap().lines()[0][1], "\"\\u{9b}31m\"");
}

#[test]
fn entries_are_checked_field_by_field() {
    let does = "`read`, `write`, `append`, `edit`, `insert`, `patch`, `editor`, `search`, `run`, `rework`, `delete`, `move`, `anything`, `unclear`, `delegate`, `wrap`, `hear` or `nothing`";
    check_refused("[[tool]]\nname = \"x\"\n", "line 1: [[tool]] has no `does`", &format!("`does` must be {does}"));
    check_refused(
        "[[tool]]\nname = \"x\"\ndoes = \"reads\"\n",
        &format!("line 3: `does` of [[tool]] is `\"reads\"`, but must be {does}"),
        "did you mean `read`?",
    );
    check_refused(
        "[[tool]]\nname = \"x\"\ndoes = \"read\"\npaht = \"y\"\n",
        "line 4: unknown key `paht` in [[tool]]",
        "did you mean `path`?",
    );
    check_refused(
        "[[tool]]\nname = \" \"\ndoes = \"read\"\n",
        "line 2: `name` of [[tool]] is `\" \"`, but must be a text in quotes that is not blank",
        "`name`: The tool's name.",
    );
    check_refused(
        "[[tool]]\nname = \"x\"\ndoes = \"read\"\n\n[[tool]]\nname = \"x\"\ndoes = \"run\"\n",
        "line 5: [[tool]] describes \"x\" twice",
        "the other one is on line 1; remove one of them",
    );
    for text in ["[tool]\nname = \"x\"\n", "tool = 1\n", "tool = [1]\n"] {
        let sentence = "line 1: `tool` must be a list of tables, each under a line `[[tool]]`";
        check_refused(text, sentence, "write two brackets: `[[tool]]`");
    }
}

#[test]
fn bad_variables_are_named() {
    let refused = |name: &str, text: &str| {
        let variables = vec![(name.to_owned(), text.to_owned())];
        let error = resolve(&SettingSources { variables, ..SettingSources::default() }).expect_err(text);
        (error.to_string(), error.hint().to_owned())
    };
    assert_eq!(
        refused("CONTEXTURE_BUDGET", "32k"),
        (
            "variable `CONTEXTURE_BUDGET`: `budget` is `32k`, but must be a whole number of tokens from 1 to \
             1099511627776"
                .to_owned(),
            "write it as `CONTEXTURE_BUDGET=32000`".to_owned()
        )
    );
    assert_eq!(
        refused("CONTEXTURE_COUNTER", "estimates"),
        (
            "variable `CONTEXTURE_COUNTER`: `counter` is `estimates`, but must be `o200k` or `estimate`".to_owned(),
            "did you mean `estimate`?".to_owned()
        )
    );
}

#[test]
fn variables_of_no_key_are_told_and_empty_ones_are_not_set() {
    let pairs = [("CONTEXTURE_BUGET", "1"), ("CONTEXTURE_BUDGET", ""), ("CONTEXTURE_CONFIG", "x"), ("HOME", "/")];
    let variables = pairs.map(|(name, text)| (name.to_owned(), text.to_owned())).to_vec();
    let resolved = resolve(&SettingSources { variables, ..SettingSources::default() }).unwrap();
    assert_eq!(resolved.unknown_variables(), [("CONTEXTURE_BUGET".to_owned(), Some("CONTEXTURE_BUDGET".to_owned()))]);
    assert_eq!(resolved.settings(keys::row("budget")), []);
}

#[test]
fn a_project_cannot_set_what_is_the_user_s() {
    let text = "\n[gateway]\nupstream = \"https://evil.example\"\n";
    assert_eq!(
        refused(OTHERS, text),
        (
            "`contexture.toml`, line 3: `gateway.upstream` cannot be set by a project, whose file may be somebody else's"
                .to_owned(),
            "set it in your own file, in the variable `CONTEXTURE_GATEWAY_UPSTREAM`, with `--gateway-upstream`; \
             `contexture config --path` says where your own file is"
                .to_owned()
        )
    );
    let own = "[gateway]\nupstream = \"https://example.com\"\n";
    let variables = vec![("CONTEXTURE_GATEWAY_UPSTREAM".to_owned(), "https://example.org".to_owned())];
    let flags = vec![Flag::new(UPSTREAM, json!("https://example.net"))];
    for (sources, expected) in [
        (SettingSources { user: user(own), ..SettingSources::default() }, "https://example.com"),
        (SettingSources { variables, ..SettingSources::default() }, "https://example.org"),
        (SettingSources { flags, ..SettingSources::default() }, "https://example.net"),
    ] {
        assert_eq!(resolve_with(OTHERS, &sources).unwrap().value(UPSTREAM), json!(expected));
    }
    assert!(page_of(OTHERS).contains("| set by | your own file, the variable or the flag; not a project's file |"));
}

#[test]
fn the_gateway_s_keys_are_checked_and_its_addresses_are_the_user_s() {
    check_refused(
        "[gateway]\nbudget = 100\n",
        "line 2: `gateway.budget` is `100`, but must be a whole number of tokens from 4000 to 1099511627776",
        "write it as `budget = 100000` below `[gateway]`",
    );
    check_refused(
        "[gateway]\nholdout = 1.5\n",
        "line 2: `gateway.holdout` is `1.5`, but must be a number from 0 to 1",
        "write it as `holdout = 0.1` below `[gateway]`",
    );
    check_refused(
        "[[model]]\nname = \"m\"\nread = \"a tenth\"\n",
        "line 3: `read` of [[model]] is `\"a tenth\"`, but must be a number from 0 to 100",
        "`read`: The share of the input price for reading from the cache.",
    );
    let (sentence, _) = refused(keys::ALL, "[gateway.upstream]\nopenai = \"https://evil.example\"\n");
    assert!(sentence.contains("cannot be set by a project"), "{sentence}");
    for (key, value) in [("upstream.openai", "example.com"), ("upstream.chat", "https://"), ("listen", "localhost")] {
        let sources =
            SettingSources { user: user(&format!("[gateway]\n{key} = \"{value}\"\n")), ..SettingSources::default() };
        let error = resolve(&sources).expect_err(value).to_string();
        assert!(error.starts_with(&format!("`config.toml`, line 2: `gateway.{key}` must be ")), "{error}");
    }
    let text = "[gateway]\nholdout = 1\n[[model]]\nname = \"m\"\nread = 0.25\nlife = 60\n";
    let config =
        resolve(&SettingSources { user: user(text), ..SettingSources::default() }).unwrap().for_command(Command::Run);
    assert_eq!(config.gateway_holdout(), 1.0);
    let expected = ModelEntry { name: "m".to_owned(), read: Some(0.25), life: Some(60), ..Default::default() };
    assert_eq!(config.model(), [expected]);
}

#[test]
fn lists_of_texts_in_a_table_replace_each_other_key_by_key() {
    let sources = SettingSources {
        user: user("[pin]\nroles = [\"user\", \"system\"]\ntools = [\"Bash\"]\n"),
        project: file("[pin]\nroles = [\n  \"assistant\",\n]\n"),
        ..SettingSources::default()
    };
    let resolved = resolve_with(OTHERS, &sources).unwrap();
    let line = |owner, name: &str, line| SettingOrigin::File { owner, name: name.to_owned(), line };
    assert_eq!(resolved.settings(PIN_ROLES)[0].origin, line(ConfigOwner::Project, "contexture.toml", 2));
    assert_eq!(resolved.settings(PIN_TOOLS)[0].origin, line(ConfigOwner::User, "config.toml", 3));
    assert_eq!((resolved.value(PIN_ROLES), resolved.value(PIN_TOOLS)), (json!(["assistant"]), json!(["Bash"])));
    let resolved = resolve_with(OTHERS, &SettingSources::default()).unwrap();
    assert_eq!((resolved.value(PIN_ROLES), resolved.value(PIN_TOOLS)), (json!([]), json!(["Read"])));
    let (sentence, _) = refused(OTHERS, "[pin]\nroles = [1]\n");
    assert_eq!(
        sentence,
        "`contexture.toml`, line 2: `pin.roles` is `[1]`, but must be a list of texts, as in `[\"a\", \"b\"]`"
    );
}

#[test]
fn entries_of_different_names_are_all_kept() {
    let entry = |name: &str, does: &str| format!("[[tool]]\nname = \"{name}\"\ndoes = \"{does}\"\n");
    let sources = SettingSources {
        user: user(&(entry("peek", "read") + &entry("poke", "write"))),
        project: file(&(entry("poke", "edit") + &entry("go", "run"))),
        ..SettingSources::default()
    };
    let resolved = resolve(&sources).unwrap();
    let found: Vec<String> = resolved
        .settings(keys::row("tool"))
        .iter()
        .map(|Setting { value, origin }| format!("{} {} {origin}", value["name"], value["does"]))
        .collect();
    assert_eq!(
        found,
        [
            "\"peek\" \"read\" user file, line 1",
            "\"poke\" \"edit\" project file, line 1",
            "\"go\" \"run\" project file, line 4"
        ]
    );
}

/// Two values of a key, different from each other, as they are written in a file.
fn two_values(row: &SettingRow) -> [String; 2] {
    match row.kind {
        // Some names are checked further, and are still right with another digit.
        ValueKind::Text | ValueKind::Name | ValueKind::Secret => {
            [row.example.to_owned(), format!("{}2\"", &row.example[..row.example.len() - 1])]
        }
        ValueKind::Switch => ["true", "false"].map(str::to_owned),
        ValueKind::Whole { min, .. } => [min.max(7), min.max(7) + 1].map(|number| number.to_string()),
        ValueKind::Number { min, max } => [min, max].map(|number| format!("{number:?}")),
        ValueKind::Choice(choices) => [0, 1].map(|index| format!("\"{}\"", choices[index].name)),
        ValueKind::Texts if row.name == keys::row("pin.roles").name => {
            ["[\"user\"]", "[\"assistant\"]"].map(str::to_owned)
        }
        ValueKind::Texts | ValueKind::Variables => ["[\"one\"]", "[\"two\"]"].map(str::to_owned),
        ValueKind::Entries(fields) => {
            // What else some tables need.
            let has = |name: &str| fields.iter().any(|field| field.name == name);
            let rest = match (has("every_turns"), has("action")) {
                (true, _) => ", every_turns = 3",
                (_, true) => ", tool = \"y\", message = \"z\"",
                _ => "",
            };
            let entry = |second: &str| format!("[{{ name = \"x\", {second}{rest} }}]");
            // A server is a program or an address, so neither is required.
            let is_needed = |field: &&Field| field.is_required || field.name == "command";
            match fields.iter().filter(is_needed).find(|field| field.name != "name") {
                Some(Field { name, kind: ValueKind::Choice(choices), .. }) => {
                    [0, 1].map(|index| entry(&format!("{name} = \"{}\"", choices[index].name)))
                }
                Some(Field { name, .. }) => ["one", "two"].map(|text| entry(&format!("{name} = \"{text}\""))),
                None => [1_000, 2_000].map(|context| entry(&format!("context = {context}"))),
            }
        }
    }
}

/// The value that a text of [`two_values`] stands for.
fn value_of(row: &'static SettingRow, text: &str) -> Value {
    let sources = SettingSources { user: user(&format!("{} = {text}", row.name)), ..SettingSources::default() };
    resolve(&sources).unwrap().settings(row)[0].value.clone()
}

/// Sources in which a key is set by those of the subset, weakest first: user, project, variable, flag. The stronger
/// half has other values than the weaker half, and neighbours differ as well.
fn subset_sources(row: &'static SettingRow, subset: [bool; 4], values: &[String; 4]) -> SettingSources {
    let text = |index: usize| format!("{} = {}", row.name, values[index]);
    let variable = row.variable().filter(|_| subset[2]);
    SettingSources {
        user: subset[0].then(|| text(0)).and_then(|text| user(&text)),
        project: subset[1].then(|| text(1)).and_then(|text| file(&text)),
        variables: variable.map(|name| (name, values[2].trim_matches('"').to_owned())).into_iter().collect(),
        flags: subset[3].then(|| Flag::new(row, value_of(row, &values[3]))).into_iter().collect(),
    }
}

#[test]
fn for_every_key_and_every_subset_of_sources_the_strongest_wins() {
    for row in keys::ALL {
        let [one, two] = two_values(row);
        let values = [one.clone(), two.clone(), one, two];
        for bits in 0..16_u8 {
            let is_settable = [true, !row.is_user_only, row.variable().is_some(), row.has_flag];
            let subset = [0, 1, 2, 3].map(|index| bits & (1 << index) != 0 && is_settable[index]);
            let resolved = resolve(&subset_sources(row, subset, &values)).unwrap();
            let winner = (0..4).rev().find(|&index| subset[index]);
            let found =
                resolved.settings(row).first().map(|Setting { value, origin }| (value.clone(), origin.to_string()));
            let expected = winner.map(|index| {
                let origin = [
                    "user file, line 1".to_owned(),
                    "project file, line 1".to_owned(),
                    row.variable().unwrap_or_default(),
                    row.flag().unwrap_or_default(),
                ];
                (value_of(row, &values[index]), origin[index].clone())
            });
            assert_eq!(found, expected, "{} {subset:?}", row.name);
            let others = keys::ALL.iter().filter(|other| other.name != row.name);
            assert!(others.into_iter().all(|other| resolved.settings(other).is_empty()), "only `{}` is set", row.name);
        }
    }
}

#[test]
fn every_row_is_complete_and_no_two_share_a_name() {
    let mut names = std::collections::HashSet::from([FILE_VARIABLE.to_owned()]);
    for row in keys::ALL {
        let SettingRow { name, says, .. } = row;
        assert!(!row.used_by.is_empty() && says.ends_with('.') && !row.example.is_empty(), "{name}");
        assert!(names.insert((*name).to_owned()), "{name} is declared twice");
        assert!(row.variable().is_none_or(|variable| names.insert(variable)), "{name} shares its variable");
        for other in keys::ALL {
            assert!(!other.name.starts_with(&format!("{name}.")), "`{name}` is a key and a table");
        }
    }
}

#[test]
fn every_default_and_example_has_the_type_of_its_key() {
    for row in keys::ALL {
        assert!((row.fits)(&(row.default)()), "the default of `{}`", row.name);
        let text = match (row.kind, row.place()) {
            (ValueKind::Entries(_), _) => format!("[[{}]]\n{}", row.name, row.example),
            _ => format!("{} = {}", row.name, row.example),
        };
        let resolved = resolve(&SettingSources { user: user(&text), ..SettingSources::default() }).expect(row.name);
        assert_eq!(resolved.settings(row).len(), 1, "{}", row.name);
    }
}

/// The names in backquotes that serde lists when a value is none of them.
fn known_to_serde(message: &str) -> Vec<String> {
    message.split('`').skip(3).step_by(2).map(str::to_owned).collect()
}

#[test]
fn choices_are_those_of_their_types() {
    let names = |choices: &[Choice]| choices.iter().map(|choice| choice.name.to_owned()).collect::<Vec<_>>();
    let none = json!("?");
    let message = |error: serde_json::Error| known_to_serde(&error.to_string());
    let of = |row: &SettingRow| names(row.kind.choices());
    assert_eq!(of(keys::row("counter")), message(serde_json::from_value::<keys::Counter>(none.clone()).unwrap_err()));
    assert_eq!(
        of(keys::row("provider")),
        message(serde_json::from_value::<keys::PriceProvider>(none.clone()).unwrap_err())
    );
    assert_eq!(
        of(keys::row("overflow")),
        message(serde_json::from_value::<contexture::window::Overflow>(none.clone()).unwrap_err())
    );
    assert_eq!(
        of(keys::row("gateway.context_management")),
        message(serde_json::from_value::<contexture_gateway::WindowEditor>(none.clone()).unwrap_err())
    );
    let ValueKind::Entries(fields) = keys::row("tool").kind else { panic!("tools are entries") };
    let does = fields.iter().find(|field| field.name == "does").unwrap();
    let known = serde_json::from_value::<contexture::files::dialect::Does>(none).unwrap_err();
    assert_eq!(names(does.kind.choices()), message(known));
    let unknown = serde_json::from_value::<contexture::files::dialect::ToolEntry>(json!({"?": 1})).unwrap_err();
    assert_eq!(fields.iter().map(|field| field.name.to_owned()).collect::<Vec<_>>(), message(unknown));
    let ValueKind::Entries(fields) = keys::row("model").kind else { panic!("models are entries") };
    let unknown = serde_json::from_value::<ModelEntry>(json!({"?": 1})).unwrap_err();
    assert_eq!(fields.iter().map(|field| field.name.to_owned()).collect::<Vec<_>>(), message(unknown));
}

#[test]
fn all_commands_have_the_same_default_budget() {
    let budget = |command| resolve(&SettingSources::default()).unwrap().for_command(command).budget();
    assert_eq!([Command::Window, Command::Replay].map(budget), [112_000; 2]);
    let lines = resolve(&SettingSources::default()).unwrap().lines();
    assert_eq!(lines[1], ["budget", "112000", "default"]);
}

#[test]
#[should_panic(expected = "the row of `counter` does not list `config window`")]
fn a_command_reads_only_keys_that_list_it() {
    resolve(&SettingSources::default()).unwrap().for_command(Command::Window).counter();
}

#[test]
fn numbers_are_read_as_toml_writes_them() {
    for (text, expected) in [("32_000", 32_000), ("0x10", 16), ("+5", 5), ("0b11", 3)] {
        let sources =
            SettingSources { project: file(&format!("\u{feff}budget = {text}\r\n")), ..SettingSources::default() };
        assert_eq!(resolve(&sources).unwrap().for_command(Command::Window).budget(), expected, "{text}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC*", lines in "([a-z\\-]{1,12}(\\.[a-z]{1,4})? ?= ?[\\[\\]{}\"a-z0-9.]{0,6}\n){0,4}") {
        for text in [text, lines] {
            let variables = vec![("CONTEXTURE_BUDGET".to_owned(), text.clone())];
            for sources in [
                SettingSources { project: file(&text), ..SettingSources::default() },
                SettingSources { user: user(&format!("[[tool]]\n{text}")), ..SettingSources::default() },
                SettingSources { variables, ..SettingSources::default() },
            ] {
                if let Err(error) = resolve(&sources) {
                    prop_assert!(!error.to_string().contains('\n') && !error.hint().contains('\n'), "{error}");
                }
            }
        }
    }
}

#[test]
fn secrets_are_never_shown() {
    const SECRET: &str = "sk-never-shown";
    let text = format!(
        "[chat]\nurl = \"http://a/v1\"\nkey = \"{SECRET}\"\n[[mcp]]\nname = \"m\"\ncommand = \"c\"\nenv = [\"TOKEN={SECRET}\"]\n"
    );
    let sources = SettingSources { user: user(&text), ..SettingSources::default() };
    let resolved = resolve(&sources).unwrap();
    let shown = format!("{sources:?} {resolved:?} {:?} {}", resolved.lines(), resolved.to_json());
    assert!(shown.contains("(not shown)") && shown.contains("TOKEN="), "{shown}");
    assert!(!shown.contains(SECRET), "{shown}");
    let config = resolved.for_command(Command::Chat);
    assert_eq!(config.chat_key().as_deref(), Some(SECRET));
    assert_eq!(config.mcp()[0].env, [format!("TOKEN={SECRET}")]);

    let variables = vec![("CONTEXTURE_CHAT_KEY".to_owned(), SECRET.to_owned())];
    let sources = SettingSources { variables, ..SettingSources::default() };
    let shown = format!("{sources:?} {}", resolve(&sources).unwrap().to_json());
    assert!(!shown.contains(SECRET), "{shown}");

    let wrong =
        ["chat = \"S\"", "[chat]\nkey = [\"S\"]", "[chat]\nkey = \"S", "[chat]\nkey = S", "[[mcp]]\nenv = \"S\""];
    for text in wrong.map(|text| text.replace('S', SECRET)) {
        for sources in [
            SettingSources { user: user(&text), ..SettingSources::default() },
            SettingSources { project: file(&text), ..SettingSources::default() },
        ] {
            let error = resolve(&sources).expect_err(&text);
            assert!(!format!("{error} {error:?} {}", error.hint()).contains(SECRET), "{error}");
        }
    }
}
