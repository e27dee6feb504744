//! The picture of a conversation in `docs/chat.md`: what a terminal showed, as SVG.

use std::time::{Duration, Instant};

use serde_json::json;

use super::line_mode::place;
use super::provider::{Provider, Reply};
use super::screen::{Cell, Look, Screen};
use super::terminal::{PATIENCE, Terminal};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/images/chat.svg");

const COLUMNS: u16 = 84;

/// The size of a character, and the space around all of them.
const WIDTH: f64 = 7.8;
const HEIGHT: usize = 18;
const MARGIN: usize = 16;

#[test]
fn the_picture_in_the_docs_is_what_a_terminal_shows() {
    let place = place();
    let edit = json!({"path": "src/lib.rs", "old_string": "    2", "new_string": "    1"});
    let provider = Provider::start(vec![
        Reply::Calls("read_file", json!({"path": "src/lib.rs"})),
        Reply::Calls("edit_file", edit),
        Reply::Calls("execute_bash", json!({"command": "sh check.sh"})),
        Reply::Says("Fixed: `one` returned 2. The check passes now."),
    ]);
    let mut terminal = Terminal::start(place.path(), &provider, COLUMNS, &[]);
    terminal.expect("› ");
    terminal.press("why does check.sh fail? fix #lb");
    terminal.expect("▸ src/lib.rs");
    terminal.press("\t\r");
    terminal.expect("[n]o: ");
    terminal.press("y");
    terminal.expect("[n]o: ");
    terminal.press("y");
    terminal.expect("passes now.");
    terminal.expect("› ");
    terminal.press("/files\r");
    terminal.expect("lines");
    terminal.expect("› ");
    terminal.press("and #");
    terminal.expect("▸ check.sh");
    let directory = place.path().join("project").canonicalize().expect("a directory").display().to_string();
    let drawn = || svg(&Screen::after(&terminal.all().replace(&directory, "~/project"), COLUMNS.into()));
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::thread::sleep(Duration::from_secs(1));
        std::fs::write(PATH, drawn()).expect("the picture can be written");
    }
    let wanted = std::fs::read_to_string(PATH).unwrap_or_default();
    let start = Instant::now();
    while drawn() != wanted {
        let hint = "docs/images/chat.svg is not what is shown; make it again with\nUPDATE_DOCS=1 cargo test -p contexture-cli picture";
        assert!(start.elapsed() < PATIENCE, "{hint}\n{}", drawn());
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn svg(screen: &Screen) -> String {
    let rows = screen.rows();
    let (width, height) = (f64::from(COLUMNS) * WIDTH + 2.0 * MARGIN as f64, rows.len() * HEIGHT + 2 * MARGIN);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height}\" width=\"{width:.0}\" height=\"{height}\" \
         font-family=\"ui-monospace, Menlo, Consolas, monospace\" font-size=\"13\">\n\
         <title>A conversation in the terminal</title>\n<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#16181d\"/>\n"
    );
    let (row, column) = screen.cursor();
    let (x, y) = (left(column), MARGIN + row * HEIGHT);
    text.push_str(&format!("<rect x=\"{x:.1}\" y=\"{y}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#5b6270\"/>\n"));
    for (number, row) in rows.iter().enumerate() {
        let y = MARGIN + number * HEIGHT + 13;
        runs(row).iter().for_each(|run| text.push_str(&run.svg(y)));
    }
    text + "</svg>\n"
}

fn left(column: usize) -> f64 {
    MARGIN as f64 + column as f64 * WIDTH
}

/// Characters side by side that look the same.
struct Run {
    column: usize,
    columns: usize,
    text: String,
    look: Look,
}

fn runs(row: &[Cell]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (column, cell) in row.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if run.look == cell.look => {
                run.columns += 1;
                run.text.push_str(if cell.text.is_empty() && !is_second(row, column) { " " } else { &cell.text });
            }
            _ => runs.push(Run { column, columns: 1, text: cell.text.clone(), look: cell.look }),
        }
    }
    runs.retain(|run| !run.text.trim().is_empty());
    runs
}

/// Whether a column belongs to the wide character before it.
fn is_second(row: &[Cell], column: usize) -> bool {
    column > 0 && unicode_width::UnicodeWidthStr::width(row[column - 1].text.as_str()) == 2
}

impl Run {
    fn svg(&self, y: usize) -> String {
        let colour = match (self.look.colour, self.look.is_dim) {
            (Some(31), _) => "#ff7b72",
            (Some(32), _) => "#7ee787",
            (Some(36), _) => "#76d9e6",
            (_, true) => "#8b94a3",
            _ => "#e6e8eb",
        };
        let weight = if self.look.is_bold { " font-weight=\"bold\"" } else { "" };
        let (x, length) = (left(self.column), self.columns as f64 * WIDTH);
        let text = self.text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        format!(
            "<text x=\"{x:.1}\" y=\"{y}\" fill=\"{colour}\"{weight} textLength=\"{length:.1}\" xml:space=\"preserve\">{text}</text>\n"
        )
    }
}
