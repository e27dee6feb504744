//! Exports a conversation as one self-contained file.

use std::sync::PoisonError;

use contexture::redact::{redact, redact_part, redact_value};
use contexture_gateway::write::StoreError;
use miniz_oxide::deflate::compress_to_vec;
use serde_json::{Map, Value, json};

use super::archive::{Archive, PREVIEW_CHARS};
use super::page;
use super::text::{floor, preview};
use super::view::About;

/// Most bytes of a block's text that are exported.
const MOST_TEXT: usize = 200 << 10;

/// Columns of the picture of a conversation.
const EXPORTED_COLUMNS: u64 = 300;

/// How hard the data is compressed, of 10.
const COMPRESSION: u8 = 6;

/// The document with all data of a conversation, without keys and passwords: what [`contexture::redact`] finds.
pub fn export(archive: &Archive, about: &About, conversation: &str) -> Result<String, StoreError> {
    let mut blocks = Map::new();
    archive.each_block(conversation, |id, mut block: Value, text: &str| {
        let cut = floor(text, MOST_TEXT);
        let shown = match cut == text.len() {
            true => redact(text).into_owned(),
            // Cut after it was redacted: half a key is not recognised.
            false => redact_part(text, 0..cut),
        };
        redact_value("", &mut block);
        block["preview"] = preview(&shown, PREVIEW_CHARS).into();
        block["text"] = shown.into();
        blocks.insert(id.to_string(), block);
    })?;
    let mut requests = archive.exported_requests(conversation)?;
    let timeline = archive.timeline(conversation)?;
    let timeline = timeline.lock().unwrap_or_else(PoisonError::into_inner);
    let files = timeline.files();
    let history: Map<String, Value> =
        files.iter().map(|file| (redact(&file.path).into_owned(), json!(timeline.history(&file.path)))).collect();
    drop(timeline);
    let line = archive.conversation(conversation)?.unwrap_or_default();
    for line in &mut requests.lines {
        // The use of a quota is private.
        line.record.quota.clear();
    }
    let mut stories = serde_json::to_value(&requests.stories)?;
    for story in stories.as_array_mut().into_iter().flatten() {
        // The list of requests has it.
        story["line"] = Value::Null;
    }
    let mut rest = json!({
        "about": {"version": about.version, "name": line.title, "kind": "export", "is_live": false, "can_act": false, "can_forget": false},
        "conversation": line, "requests": requests.lines, "words": requests.words.all, "files": files,
        "history": history, "tools": archive.tools(conversation)?, "events": archive.events(conversation)?,
        "overview": archive.overview(conversation, EXPORTED_COLUMNS)?, "stories": stories,
    });
    redact_value("", &mut rest);
    // These have no texts that were not redacted.
    rest["blocks"] = blocks.into();
    let windows = requests.windows.iter().map(|(form, told)| Ok((form.name().to_owned(), serde_json::to_value(told)?)));
    rest["windows"] = windows.collect::<Result<Map<String, Value>, serde_json::Error>>()?.into();
    Ok(document(&rest))
}

/// The page with its script, style and data embedded.
fn document(data: &Value) -> String {
    let data = base64(&compress_to_vec(data.to_string().as_bytes(), COMPRESSION));
    let (script_hash, style_hash) = page::hashes();
    let policy = format!(
        "default-src 'none'; script-src '{script_hash}'; style-src '{style_hash}'; img-src data:; base-uri 'none'; form-action 'none'"
    );
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>Contexture</title>\
         <style>{}</style></head><body><div id=\"app\"></div>\
         <script id=\"data\" type=\"text/plain\">{data}</script><script>{}</script></body></html>\n",
        page::STYLE,
        page::SCRIPT
    )
}

/// Bytes as text that may stand in a document.
fn base64(bytes: &[u8]) -> String {
    const SIGNS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for part in bytes.chunks(3) {
        let bits = part.iter().fold(0, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - part.len()));
        for place in 0..4 {
            let sign = char::from(SIGNS[(bits >> (18 - 6 * place)) as usize & 63]);
            text.push(if place > part.len() { '=' } else { sign });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_the_usual_text() {
        assert_eq!(
            ["", "f", "fo", "foo", "foob"].map(|text| base64(text.as_bytes())),
            ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg=="]
        );
        assert_eq!(base64(&[0xfb, 0xef, 0xff]), "++//");
    }
}
