//! One conversation as one file that needs nobody.

use std::collections::HashMap;
use std::sync::PoisonError;

use serde::Serialize;
use serde_json::{Value, json};

use super::archive::Archive;
use super::page;
use super::redact::redacted;
use super::text::floor;
use super::view::{About, Form};
use crate::store::StoreError;

/// Most bytes of a block's text that are taken along.
const MOST_TEXT: usize = 200 << 10;

/// A block of a window: its name, what became of it, why, its grade, why, and the block that it replaces. Words are
/// places in a list; 0 is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Row(pub u32, pub String, pub usize, pub usize, pub usize, pub u32);

/// A window, told by how many rows it shares with the one of the request before.
#[derive(Clone, Debug, Serialize)]
pub struct Told {
    /// Rows at the start that are those of the request before.
    pub keep: usize,
    /// What follows them.
    pub rows: Vec<Row>,
    /// The first difference.
    pub first: Option<u64>,
    /// The cache boundary.
    pub boundary: Option<u64>,
}

/// Words that are said often, each once.
#[derive(Default)]
pub struct Words {
    all: Vec<String>,
    places: HashMap<String, usize>,
}

impl Words {
    /// The place of a word, from 1; 0 if there is none.
    pub fn place(&mut self, word: Option<String>) -> usize {
        let Some(word) = word else { return 0 };
        if let Some(place) = self.places.get(&word) {
            return *place;
        }
        self.all.push(redacted(&word));
        self.places.insert(word, self.all.len());
        self.all.len()
    }
}

/// The document with everything that a conversation has in it, without keys and passwords.
pub fn export(archive: &Archive, about: &About, conversation: &str) -> Result<String, StoreError> {
    let mut words = Words::default();
    let mut windows = serde_json::Map::new();
    for (name, form) in [("sent", Form::Sent), ("came", Form::Came), ("before", Form::Before)] {
        let mut told: Vec<Told> = Vec::new();
        let mut before: Vec<Row> = Vec::new();
        archive.each_window(conversation, form, &mut words, |rows, first, boundary| {
            let keep = rows.iter().zip(&before).take_while(|(now, before)| now == before).count();
            told.push(Told { keep, rows: rows[keep..].to_vec(), first, boundary });
            before = rows;
        })?;
        windows.insert(name.to_owned(), serde_json::to_value(told)?);
    }
    let mut blocks = serde_json::Map::new();
    archive.each_block(conversation, |id, mut block: Value, text: &str| {
        let cut = floor(text, MOST_TEXT);
        block["preview"] = redacted(block["preview"].as_str().unwrap_or_default()).into();
        block["name"] = redacted(block["name"].as_str().unwrap_or_default()).into();
        let text = redacted(&text[..cut]);
        block["text"] = text.into();
        blocks.insert(id.to_string(), block);
    })?;
    let timeline = archive.timeline(conversation)?;
    let timeline = timeline.lock().unwrap_or_else(PoisonError::into_inner);
    let files = timeline.files();
    let history: serde_json::Map<String, Value> =
        files.iter().map(|file| (file.path.clone(), json!(timeline.history(&file.path)))).collect();
    drop(timeline);
    let mut line = archive.conversation(conversation)?.unwrap_or_default();
    (line.title, line.name) = (redacted(&line.title), redacted(&line.name));
    let mut lines = archive.requests(conversation, 0, u64::from(u32::MAX))?.items;
    for line in &mut lines {
        line.said = line.said.take().map(|said| redacted(&said));
        // How much of a quota is used is nobody else's business.
        line.record.quota.clear();
    }
    let data = json!({
        "about": {"version": about.version, "name": line.title, "kind": "export", "is_live": false, "can_act": false, "can_forget": false},
        "conversation": line, "requests": lines, "blocks": blocks, "words": words.all, "windows": windows,
        "files": files, "history": history, "tools": archive.tools(conversation)?,
    });
    Ok(document(&data))
}

/// The page with its script, style and data inside.
fn document(data: &Value) -> String {
    // Nothing in the data can end the element that it is in.
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
