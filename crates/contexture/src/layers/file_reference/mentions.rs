//! Finds the files that messages name.

use std::borrow::Cow;
use std::collections::HashMap;

use contexture_core::host::{FileError, relative_path};
use contexture_core::item::{Content, Item, Role};
use contexture_core::log::ItemLog;
use serde_json::Value;

use super::state::{FileReferences, disallowed};
use crate::reference::kinds::AllowList;
use crate::reference::{LineRange, Reference, find, rewrite};

/// How many references of one message are used; the rest stays plain text.
const MAX_MENTIONS: usize = super::state::MAX_TRACKED_FILES;

/// Longer tool arguments are not searched for paths.
const MAX_ARGUMENT_BYTES: usize = 64 * 1024;

/// A file that a message names.
#[derive(Debug, PartialEq)]
pub(super) struct FileMention {
    /// The path below the base, or the reference as written if it can't be a path.
    pub(super) path: String,
    /// The reference as written, where that differs.
    pub(super) written: Option<String>,
    /// The lines named by all its references in this message; empty means all lines.
    pub(super) lines: Vec<LineRange>,
    /// Why the file is not read at all, if so.
    pub(super) refusal: Option<FileError>,
}

/// The files that a batch of items names.
#[derive(Debug, Default)]
pub(super) struct MessageFiles {
    /// The files that user messages name, each once.
    pub(super) mentions: Vec<FileMention>,
    /// The texts of the user messages as written.
    pub(super) query: String,
    /// The same without the references.
    pub(super) bare_query: String,
    /// How many user messages there are.
    pub(super) user_messages: u64,
}

impl MessageFiles {
    /// Collects the files named in user messages. Only people can name files: a message of the user's role is a person's
    /// unless its origin says otherwise.
    pub(super) fn of(items: &[Item], allow_list: &AllowList) -> MessageFiles {
        let mut found = MessageFiles::default();
        let mut places = HashMap::new();
        for item in items.iter().filter(|item| is_typed(item)) {
            found.user_messages += 1;
            let contents = item.as_message().map(|message| &*message.content).unwrap_or_default();
            for text in contents.iter().filter_map(Content::as_text) {
                found.add(text, allow_list, &mut places);
            }
        }
        found
    }

    fn add(&mut self, text: &str, allow_list: &AllowList, places: &mut HashMap<String, usize>) {
        self.query.push_str(text);
        self.query.push('\n');
        let mut copied = 0;
        for reference in find(text, |name| allow_list.is_name(name)) {
            self.bare_query.push_str(&text[copied..reference.range.start]);
            copied = reference.range.end;
            let (path, refusal) = resolve(reference.path, allow_list);
            let place = places.get(&*path).copied();
            match place {
                Some(place) => self.mentions[place].join(&reference),
                None if self.mentions.len() >= MAX_MENTIONS => {}
                None => {
                    places.insert(path.clone().into_owned(), self.mentions.len());
                    let written = (path != reference.path).then(|| reference.path.to_owned());
                    let lines = reference.lines.into_iter().collect();
                    self.mentions.push(FileMention { path: path.into_owned(), written, lines, refusal });
                }
            }
        }
        self.bare_query.push_str(&text[copied..]);
        self.bare_query.push('\n');
    }
}

impl FileMention {
    /// Merges another reference to the same file: more of its lines, or all of them.
    fn join(&mut self, reference: &Reference<'_>) {
        match reference.lines {
            Some(lines) if !self.lines.is_empty() => self.lines.push(lines),
            _ => self.lines.clear(),
        }
    }
}

/// Whether a person wrote an item.
fn is_typed(item: &Item) -> bool {
    item.as_message().is_some_and(|message| message.role == Role::User && message.meta.origin.is_said())
}

/// The path that a reference means, and why it is not read at all, if so.
fn resolve<'a>(written: &'a str, allow_list: &AllowList) -> (Cow<'a, str>, Option<FileError>) {
    match relative_path(written) {
        Ok(path) if allow_list.allows(&path) => (path, None),
        Ok(path) => (path, Some(disallowed(written, allow_list))),
        Err(error) => (Cow::Borrowed(written), Some(error)),
    }
}

/// Turns references to tracked files in user messages into links. Everything else is unchanged.
pub(super) fn link(items: &mut [Item], state: &FileReferences, allow_list: &AllowList) {
    let messages = items.iter_mut().filter_map(|item| match item {
        Item::Message(message) if message.role == Role::User && message.meta.origin.is_said() => Some(message),
        _ => None,
    });
    for content in messages.flat_map(|message| &mut message.content) {
        let Content::Text { text } = content else { continue };
        let references = find(text, |name| allow_list.is_name(name));
        let linked = rewrite(text, &references, |reference| {
            let (path, _) = resolve(reference.path, allow_list);
            let index = state.position(&path).ok()?;
            Some(state.files[index].anchor.clone())
        });
        if let Cow::Owned(linked) = linked {
            *text = linked;
        }
    }
}

/// The indices of tracked files on which tools were called whose outputs are among the items.
pub(super) fn touched(items: &[Item], log: &ItemLog, state: &FileReferences) -> Vec<usize> {
    let mut found = Vec::new();
    if state.files.is_empty() {
        return found;
    }
    for output in items.iter().filter_map(Item::as_output) {
        let mut open = log.open_calls().filter_map(|position| log.get(position)?.item.as_call());
        let Some(call) = open.find(|call| call.call_id == output.call_id) else { continue };
        if call.arguments.len() > MAX_ARGUMENT_BYTES {
            continue;
        }
        if let Ok(arguments) = serde_json::from_str::<Value>(&call.arguments) {
            collect(&arguments, state, &mut found);
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}

fn collect(value: &Value, state: &FileReferences, found: &mut Vec<usize>) {
    match value {
        Value::String(text) => found.extend(text.split_whitespace().filter_map(|word| tracked(word, state))),
        Value::Array(values) => values.iter().for_each(|value| collect(value, state, found)),
        Value::Object(fields) => fields.values().for_each(|value| collect(value, state, found)),
        _ => {}
    }
}

/// The tracked file that a word of an argument refers to: its path, with or without that of the base.
fn tracked(word: &str, state: &FileReferences) -> Option<usize> {
    let word = word.trim_matches(|c: char| matches!(c, '"' | '\'' | '`' | ',' | ';'));
    let word = word.strip_prefix("./").unwrap_or(word);
    let behind = word.match_indices('/').map(|(slash, _)| &word[slash + 1..]);
    std::iter::once(word).chain(behind).find_map(|path| state.position(path).ok())
}

#[cfg(test)]
mod tests {
    use contexture_core::host::FileErrorCode;
    use contexture_core::item::{Meta, Origin};

    use super::*;

    type Told = (String, Option<String>, Vec<LineRange>, Option<FileErrorCode>);

    fn mentions(text: &str) -> Vec<Told> {
        let found = MessageFiles::of(&[Item::user(text)], &AllowList::default());
        let mention = |mention: FileMention| {
            (mention.path, mention.written, mention.lines, mention.refusal.map(|error| error.code))
        };
        found.mentions.into_iter().map(mention).collect()
    }

    fn plain(path: &str) -> Told {
        (path.to_owned(), None, Vec::new(), None)
    }

    #[test]
    fn one_file_is_one_mention_however_it_is_written() {
        let written = Some("./src/a.rs".to_owned());
        assert_eq!(mentions("#./src/a.rs and #src/a.rs"), [("src/a.rs".to_owned(), written, vec![], None)]);
        assert_eq!(mentions("#a.rs #b.rs"), [plain("a.rs"), plain("b.rs")]);
    }

    #[test]
    fn lines_of_one_message_add_up_and_the_whole_file_wins() {
        let lines = |text| mentions(text).remove(0).2;
        assert_eq!(lines("#a.rs:1-2 #a.rs:8"), [LineRange::new(1, 2), LineRange::new(8, 8)]);
        assert_eq!(lines("#a.rs:1-2 #a.rs"), []);
        assert_eq!(lines("#a.rs #a.rs:1-2"), []);
    }

    #[test]
    fn what_cannot_be_read_is_found_with_its_code() {
        let code = |text| mentions(text).remove(0).3;
        assert_eq!(code("#photo.png"), Some(FileErrorCode::DisallowedExtension));
        assert_eq!(code("#../a.rs"), Some(FileErrorCode::PathTraversal));
        assert_eq!(code("#/etc/passwd"), Some(FileErrorCode::AbsolutePath));
        assert_eq!(code("#\"a\0.rs\""), Some(FileErrorCode::ReadFailed));
    }

    #[test]
    fn only_people_can_name_files() {
        let origin = Origin::Harness { kind: None, path: None };
        let added = Item::user("#d.rs").with_meta(Meta { origin, ..Meta::default() });
        let items = [Item::assistant("#a.rs"), Item::developer("#b.rs"), Item::output("1", "#c.rs"), added];
        assert_eq!(MessageFiles::of(&items, &AllowList::default()).mentions, []);
    }
}
