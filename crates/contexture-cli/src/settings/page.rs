//! The page `docs/reference/configuration.md`, made from the table of keys.

use super::keys;
use super::kind::{Field, ValueKind};
use super::resolved::default_in_words;
use super::row::SettingRow;

/// What the page says before it lists the keys.
const INTRODUCTION: &str = r#"# Configuration

This page is made from the table of keys in `crates/contexture-cli/src/settings/keys.rs`; a test says how to make it again.

Everything has a default, so no file is needed.
A value comes from the first of these that has one:

1. a flag of the command line, such as `--budget 16000`;
2. an environment variable, such as `CONTEXTURE_BUDGET=16000`; an empty one counts as not set;
3. the project's file: `contexture.toml` in the working directory or the nearest parent that has one; for a command with `--base DIR`, the search starts in that directory;
4. your own file: `$XDG_CONFIG_HOME/contexture/config.toml`, or `~/.config/contexture/config.toml` if that variable is not set; on Windows `%APPDATA%\contexture\config.toml`;
5. the default.

Each key is decided by itself, also the keys of one table: a project that sets `file-reference.max_file_size` leaves your `file-reference.follow_symlinks` as it is.
A list of texts replaces the whole list of a weaker source.
Of `[[tool]]` and `[[model]]`, entries with different names are all used, and the project's replaces yours of the same name.

`--config FILE`, or the variable `CONTEXTURE_CONFIG`, names a file that is used instead of the project's.
`--no-config` ignores both files, so that a result does not depend on them; variables still count.

`contexture config` prints every value with where it came from, `contexture config --path` the files that are looked at, and both take `--json`.
A key that does not exist is an error that names the file, the line and the nearest key.

A project's file may come from somebody else.
A key that only you may set is refused there, and in a file that is used instead of it.
"#;

/// The page as Markdown.
///
/// The file in the repository is compared with it by a test, which also writes it: set `UPDATE_DOCS=1`.
pub fn page() -> String {
    page_of(keys::ALL)
}

pub(super) fn page_of(rows: &[SettingRow]) -> String {
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n## Keys\n\n| key | what it is for | default |\n| --- | --- | --- |\n");
    for row in rows {
        let default = default_in_code(row);
        page.push_str(&format!("| [`{}`](#{}) | {} | {default} |\n", row.name, anchor(row.name), row.says));
    }
    for row in rows {
        page.push_str(&section(row));
    }
    page
}

fn section(row: &SettingRow) -> String {
    let mut text = format!("\n## `{}`\n\n{}\n\n| | |\n| --- | --- |\n", row.name, row.says);
    let mut line = |name: &str, value: String| text.push_str(&format!("| {name} | {value} |\n"));
    line("type", row.kind.wanted());
    let meaning = row.unset.map(|meaning| format!(": {meaning}")).unwrap_or_default();
    line("default", default_in_code(row) + &meaning);
    line("variable", row.variable().map_or("none".to_owned(), |name| format!("`{name}`")));
    line("flag", row.flag().map_or("none".to_owned(), |name| format!("`{name}`")));
    line("used by", row.used_by.iter().map(|command| format!("`{command}`")).collect::<Vec<_>>().join(", "));
    if row.is_user_only {
        line("set by", "your own file, the variable or the flag; not a project's file".to_owned());
    }
    for choice in row.kind.choices() {
        text.push_str(if choice.name == row.kind.choices()[0].name { "\n" } else { "" });
        text.push_str(&format!("- `{}`: {}\n", choice.name, choice.says));
    }
    if let ValueKind::Entries(fields) = row.kind {
        text.push_str(&fields_table(fields));
    }
    text.push_str(&format!("\n```toml\n{}\n```\n", example(row)));
    text
}

fn fields_table(fields: &[Field]) -> String {
    let mut text = "\n| field | type | required | what it is for |\n| --- | --- | --- | --- |\n".to_owned();
    for Field { name, kind, is_required, says } in fields {
        let required = if *is_required { "yes" } else { "no" };
        text.push_str(&format!("| `{name}` | {} | {required} | {says} |\n", kind.wanted()));
    }
    let choices = fields.iter().flat_map(|field| field.kind.choices().iter().map(move |choice| (field, choice)));
    for (index, (field, choice)) in choices.enumerate() {
        text.push_str(if index == 0 { "\n" } else { "" });
        text.push_str(&format!("- `{} = \"{}\"`: {}\n", field.name, choice.name, choice.says));
    }
    text
}

/// The lines that one would write in a file.
fn example(row: &SettingRow) -> String {
    match (row.kind, row.line()) {
        (ValueKind::Entries(_), _) => format!("[[{}]]\n{}", row.name, row.example),
        (_, (None, line)) => line,
        (_, (Some(table), line)) => format!("[{table}]\n{line}"),
    }
}

fn default_in_code(row: &SettingRow) -> String {
    let words = default_in_words(row);
    if row.unset.is_some() { words } else { format!("`{words}`") }
}

/// The anchor that a heading with only this name in code has.
fn anchor(name: &str) -> String {
    name.replace('.', "")
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/configuration.md");

    #[test]
    fn the_page_in_the_repository_is_current() {
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(PATH, page()).unwrap();
        }
        let found = std::fs::read_to_string(PATH).unwrap_or_default();
        assert!(
            found == page(),
            "docs/reference/configuration.md is not what the table of keys says; make it again with\n\
             UPDATE_DOCS=1 cargo test -p contexture-cli settings::page"
        );
    }
}
