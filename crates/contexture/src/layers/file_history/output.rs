//! The function `output`: the full text of shortened outputs.

use contexture_core::item::Item;
use contexture_core::layer::{ExecutionContext, FnResult, LayerFunctionDecl, layer_fn_with_schema};
use contexture_core::log::ItemLog;
use contexture_core::tokens::TokenCounter;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::fold::has_hash;
use contexture_fold::rows::Rows;
use contexture_text::fit::{Made, fit};

/// The largest number of tokens of one result. It is never shortened, so it must fit into a small window.
const MAX_ANSWER_TOKENS: u64 = 1_500;

/// The default number of lines.
const DEFAULT_LINES: usize = 200;

const DESCRIPTION: &str = "Shows a shortened output by its hash, in pieces.";

/// The input of `output`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct OutputQuery {
    /// The hash given where the output was shortened.
    pub hash: String,
    /// The first line to show, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_line: Option<usize>,
    /// How many lines to show at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lines: Option<usize>,
    /// Show only lines that contain this text, in upper or lower case, each with its number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<String>,
}

/// The function, described for the model: in few words, since they are sent with every request.
pub(super) fn function() -> LayerFunctionDecl<()> {
    let input = json!({
        "type": "object",
        "properties": {
            "hash": { "type": "string" },
            "from_line": { "type": "integer" },
            "lines": { "type": "integer" },
            "search": { "type": "string" },
        },
        "required": ["hash"],
        "additionalProperties": false,
    });
    let output = json!({ "type": "string" });
    layer_fn_with_schema(DESCRIPTION, input, output, |query, _, ctx: ExecutionContext| async move {
        let query: OutputQuery = serde_json::from_value(query)?;
        let text = find(&ctx.log(), &query.hash).ok_or_else(|| unknown(&query.hash))?;
        Ok(FnResult::new(Value::String(answer(ctx.counter(), &text, &query))))
    })
}

fn unknown(hash: &str) -> String {
    format!("nothing in this conversation has the hash `{hash}`; hashes stand where an output is shown shortened")
}

/// The newest text of the log with a hash.
fn find(log: &ItemLog, hash: &str) -> Option<String> {
    let newest = log.range(0..log.len()).rev().map(|(_, entry)| &*entry.item);
    newest.filter_map(text_of).find(|text| has_hash(text, hash))
}

fn text_of(item: &Item) -> Option<String> {
    match item {
        Item::FunctionCallOutput(output) => Some(output.output.clone()),
        Item::Message(message) => Some(message.text()),
        _ => None,
    }
}

/// The requested part of a text, within the limit of one result.
fn answer(counter: &dyn TokenCounter, text: &str, query: &OutputQuery) -> String {
    let rows = Rows::new(text);
    let first = query.from_line.unwrap_or(1).saturating_sub(1);
    if first >= rows.len() {
        return format!("[the output has only {} lines]", rows.len());
    }
    let most = query.lines.unwrap_or(DEFAULT_LINES).max(1);
    let piece = match &query.search {
        Some(needle) => PrintableLines::found(&rows, first, needle),
        None => PrintableLines::run(&rows, first),
    };
    piece.render(counter, rows.len(), most)
}

/// Lines that could be shown, each with its number and its text.
struct PrintableLines<'a> {
    lines: Vec<(usize, &'a str)>,
    /// Whether they are search results, which need not be consecutive.
    is_search: bool,
}

impl<'a> PrintableLines<'a> {
    fn run(rows: &Rows<'a>, first: usize) -> Self {
        Self { lines: rows.iter().enumerate().skip(first).collect(), is_search: false }
    }

    fn found(rows: &Rows<'a>, first: usize, needle: &str) -> Self {
        let wanted = needle.to_lowercase();
        let all = rows.iter().enumerate().skip(first);
        Self { lines: all.filter(|(_, row)| row.to_lowercase().contains(&wanted)).collect(), is_search: true }
    }

    /// As many lines as fit, with a heading above them and where to continue below.
    fn render(&self, counter: &dyn TokenCounter, of: usize, most: usize) -> String {
        let count = self.lines.len().min(most);
        let make = |count: usize| {
            let text = self.first(count, of);
            let tokens = counter.count(&text);
            Made { made: text, bytes: count, tokens }
        };
        fit(MAX_ANSWER_TOKENS, count, make).unwrap_or_else(|| self.first(count.min(1), of))
    }

    fn first(&self, count: usize, of: usize) -> String {
        let shown = &self.lines[..count];
        let mut text = match (self.is_search, shown) {
            (true, []) => return format!("[none of {of} lines contains it]"),
            (true, _) => format!("[{} of {of} lines contain it]\n", self.lines.len()),
            (false, lines) => {
                let (first, last) = (lines.first().map_or(0, |line| line.0), lines.last().map_or(0, |line| line.0));
                format!("[lines {}-{} of {of}]\n", first + 1, last + 1)
            }
        };
        for (number, line) in shown {
            match self.is_search {
                // A search result needs its number, and a mark where a long line continues.
                true => text.push_str(&format!("{}: {}\n", number + 1, line.trim_end_matches(['\r', '\n']))),
                false => text.push_str(line),
            }
        }
        if let Some((next, _)) = self.lines.get(count) {
            if !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&format!("[… go on with \"from_line\":{} …]", next + 1));
        }
        text
    }
}
