//! The page about what commands do has the table of programs.

use contexture_files::commands::table::readers;

const PAGE: &str = include_str!("../../../../docs/reference/what-commands-do.md");

#[test]
fn the_page_lists_the_programs_that_only_read() {
    let row = |(names, unless): (Vec<&str>, &[&str])| {
        let code = |words: &[&str]| words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        format!("| {} | {} |", code(&names), code(unless))
    };
    let rows: Vec<String> = readers().map(row).collect();
    let (_, table) = PAGE.split_once("| --- | --- |\n").unwrap();
    let (table, _) = table.split_once("\n\n").unwrap();
    assert_eq!(table.lines().collect::<Vec<_>>(), rows, "the page and `programs.toml` differ");
    assert!((40..=80).contains(&rows.len()), "{} programs", rows.len());
}
