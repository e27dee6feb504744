//! Exports a conversation as one self-contained file.

use std::sync::PoisonError;

use contexture::redact::{redact, redact_part, redact_value};
use contexture_gateway::write::StoreError;
use serde::Serialize;
use serde_json::{Value, json};

use super::archive::{Archive, PREVIEW_CHARS};
use super::exported::{ExportRow, ExportedWords};
use super::page;
use super::text::{floor, preview};
use super::view::{About, WindowForm};

/// Most bytes of a block's text that are exported.
const MOST_TEXT: usize = 200 << 10;

/// Columns of the picture of a conversation.
const EXPORTED_COLUMNS: u64 = 300;

/// Most requests of a conversation whose windows are exported as pictures, too.
const MOST_PICTURES: usize = 300;

/// A window, stored as its difference from that of the previous request.
#[derive(Clone, Debug, Serialize)]
pub struct ExportedWindow {
    /// Leading rows that are the same as in the previous request.
    pub keep: usize,
    /// The rows after them.
    pub rows: Vec<ExportRow>,
    /// The index of the first difference.
    pub first: Option<u64>,
    /// The cache boundary.
    pub boundary: Option<u64>,
}

/// The document with all data of a conversation, without keys and passwords: what [`contexture::redact`] finds.
pub fn export(archive: &Archive, about: &About, conversation: &str) -> Result<String, StoreError> {
    let mut words = ExportedWords::default();
    let mut windows = serde_json::Map::new();
    for (name, form) in [("sent", WindowForm::Sent), ("came", WindowForm::Came), ("before", WindowForm::Before)] {
        let mut told: Vec<ExportedWindow> = Vec::new();
        let mut before: Vec<ExportRow> = Vec::new();
        archive.each_window(conversation, form, &mut words, |rows, first, boundary| {
            let keep = rows.iter().zip(&before).take_while(|(now, before)| now == before).count();
            told.push(ExportedWindow { keep, rows: rows[keep..].to_vec(), first, boundary });
            before = rows;
        })?;
        windows.insert(name.to_owned(), serde_json::to_value(told)?);
    }
    let mut blocks = serde_json::Map::new();
    archive.each_block(conversation, |id, mut block: Value, text: &str| {
        let cut = floor(text, MOST_TEXT);
        // Cut after it was redacted: half a key is not recognised.
        let shown = redact_part(text, 0..cut);
        block["preview"] = preview(&shown, PREVIEW_CHARS).into();
        block["name"] = redact(block["name"].as_str().unwrap_or_default()).into_owned().into();
        block["text"] = shown.into();
        blocks.insert(id.to_string(), block);
    })?;
    let timeline = archive.timeline(conversation)?;
    let timeline = timeline.lock().unwrap_or_else(PoisonError::into_inner);
    let files = timeline.files();
    let history: serde_json::Map<String, Value> =
        files.iter().map(|file| (redact(&file.path).into_owned(), json!(timeline.history(&file.path)))).collect();
    drop(timeline);
    let line = archive.conversation(conversation)?.unwrap_or_default();
    let mut lines = archive.requests(conversation, 0, u64::from(u32::MAX))?.items;
    for line in &mut lines {
        // The use of a quota is private.
        line.record.quota.clear();
    }
    let mut rest = json!({
        "about": {"version": about.version, "name": line.title, "kind": "export", "is_live": false, "can_act": false, "can_forget": false},
        "conversation": line, "requests": lines, "words": words.all, "files": files, "history": history,
        "tools": archive.tools(conversation)?,
        "overview": archive.overview(conversation, EXPORTED_COLUMNS)?, "stories": stories(archive, conversation, lines.len())?,
    });
    redact_value("", &mut rest);
    // These have no texts that were not redacted.
    (rest["blocks"], rest["windows"]) = (blocks.into(), windows.into());
    Ok(document(&rest))
}

/// The stories of all requests.
fn stories(archive: &Archive, conversation: &str, count: usize) -> Result<Vec<Value>, StoreError> {
    let mut stories = Vec::with_capacity(count);
    for n in 1..=count as u64 {
        let mut story = serde_json::to_value(archive.story(conversation, n)?)?;
        // The list of requests has it.
        story["line"] = Value::Null;
        if count > MOST_PICTURES {
            story["pieces"] = json!([]);
        }
        stories.push(story);
    }
    Ok(stories)
}

/// The page with its script, style and data embedded.
fn document(data: &Value) -> String {
    // Escaped, so that nothing in the data can close the element that contains it.
    let data = data.to_string().replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
    let (script_hash, style_hash) = page::hashes();
    let policy = format!(
        "default-src 'none'; script-src '{script_hash}'; style-src '{style_hash}'; img-src data:; base-uri 'none'; form-action 'none'"
    );
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>Contexture</title>\
         <style>{}</style></head><body><div id=\"app\"></div>\
         <script id=\"data\" type=\"application/json\">{data}</script><script>{}</script></body></html>\n",
        page::STYLE,
        page::SCRIPT
    )
}
