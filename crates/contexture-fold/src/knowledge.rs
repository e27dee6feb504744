//! What is known of files, and what recent talk is about.

use std::collections::VecDeque;

use contexture_core::item::{FunctionCall, FunctionCallOutput, Item, Message};
use serde_json::Value;

use super::cuts::{ChunkCuts, ChunkMoment};
use super::tuning::RECENT_MESSAGES;
use super::view::Chunk;
use super::vocabulary::WordNumbers;
use super::words::{MessageWords, RecentWords};
use contexture_files::dialect::Dialects;
use contexture_files::model::{Compared, FileModel, Mention, Who, named_places};
use contexture_files::observation::{Kind, Observation, Seen};
use contexture_files::observer::Observer;
use contexture_text::packed::{Damaged, Packer, Unpacker};

/// What is known of files, and what is needed to decide which of it matters now.
#[derive(Default)]
pub(super) struct Knowledge {
    observer: Observer,
    model: FileModel,
    cuts: ChunkCuts,
    vocabulary: WordNumbers,
    /// What the newest messages said, the newest first.
    spoken: VecDeque<MessageWords>,
    /// Moments at which a person said something.
    asks: Vec<u32>,
    /// Files touched or named since the last request.
    touched: Vec<usize>,
    /// Files of which a line was named since the last request.
    pointed_at: Vec<usize>,
    /// Names that people and the agent used since the last request, oldest first.
    named: VecDeque<Box<str>>,
    /// The newest moment at the last request.
    last_request: u32,
}

/// Most names that are remembered until the next request.
const MAX_NAMED: usize = 16;

/// Files that something happened to since the last request.
pub(super) struct TouchedFiles {
    /// Touched or named.
    pub(super) files: Vec<usize>,
    /// Those of which a line was named.
    pub(super) pointed_at: Vec<usize>,
}

impl Knowledge {
    /// Sets other dialects.
    pub(super) fn set_dialects(&mut self, dialects: Dialects) {
        self.observer = Observer::new(dialects);
    }

    /// What is known of files.
    pub(super) fn model(&self) -> &FileModel {
        &self.model
    }

    /// The same, for marking lines as shown by a view.
    pub(super) fn model_mut(&mut self) -> &mut FileModel {
        &mut self.model
    }

    /// Begins a message, whose words become the most recent.
    pub(super) fn begin_message(&mut self) {
        self.spoken.truncate(RECENT_MESSAGES - 1);
        self.spoken.push_front(MessageWords::default());
    }

    /// Takes in what a person or the model said. Files that it names are brought back if there is room.
    pub(super) fn hear(&mut self, moment: u32, who: Who, text: &str, has_room: bool) {
        if who == Who::User {
            self.asks.push(moment);
        }
        self.note_talk(text);
        self.note_names(text);
        for place in named_places(text) {
            let Some(file) = self.model.name(moment, place.path, who) else { continue };
            if has_room {
                self.touched.push(file);
            }
            if who == Who::User && place.line.is_some() {
                self.model.mention(file, Mention { at: moment, line: place.line });
                self.pointed_at.push(file);
            }
        }
    }

    /// Takes in the names in a text: words that are specific enough to have come from somewhere.
    fn note_names(&mut self, text: &str) {
        if text.len() > MAX_NAMING_BYTES {
            return;
        }
        for name in names(text) {
            if !self.named.iter().any(|other| **other == *name) {
                if self.named.len() == MAX_NAMED {
                    self.named.pop_front();
                }
                self.named.push_back(name.into());
            }
        }
    }

    /// Names that people and the agent used since the last request, oldest first.
    pub(super) fn named(&self) -> &VecDeque<Box<str>> {
        &self.named
    }

    /// Takes in words of the newest message.
    fn note_talk(&mut self, text: &str) {
        if let Some(spoken) = self.spoken.front_mut() {
            spoken.talk(text, &mut self.vocabulary);
        }
    }

    /// Takes in a call that is made. If it does nothing to files, it may be a plan that names some.
    pub(super) fn plan(&mut self, moment: u32, call: &FunctionCall) {
        self.observer.expect(call);
        if !matches!(self.observer.dialects().kind(call), Kind::Answer | Kind::Other) {
            return;
        }
        let arguments = call.parsed_arguments();
        self.note_talk(&arguments.to_string());
        for place in texts_in(&arguments).into_iter().flat_map(named_places) {
            self.model.name(moment, place.path, Who::Agent);
        }
    }

    /// Examines the newest call and its output, without learning from them.
    pub(super) fn look(&mut self, call: &FunctionCall, output: &FunctionCallOutput) -> Seen {
        self.observer.observe(call, output)
    }

    /// Examines an older call and its output again. Where files are is not worked out again.
    pub(super) fn look_back(&self, call: &FunctionCall, output: &FunctionCallOutput) -> Seen {
        self.observer.dialects().observe(call, output)
    }

    /// Learns what the attachments of a message tell about files.
    pub(super) fn take_attachments(&mut self, moment: u32, message: &Message) {
        for observation in self.observer.hear(message) {
            self.model.apply(moment, &observation);
        }
    }

    /// Learns what a call and its output tell.
    pub(super) fn learn(&mut self, moment: u32, seen: &Seen) {
        for observation in &seen.observations {
            self.model.apply(moment, observation);
        }
        self.touched.extend(seen.paths.iter().filter_map(|path| self.model.place(path)));
        let pointed_at = seen.observations.iter().filter_map(|observation| match observation {
            Observation::Mentioned { path, line: Some(_) } => self.model.place_like(path),
            _ => None,
        });
        self.pointed_at.extend(pointed_at);
    }

    /// Applies what was found on the disk.
    pub(super) fn take_over(&mut self, moment: u32, compared: &[Compared]) {
        for compared in compared {
            self.model.take_over(moment, compared);
        }
    }

    /// Files that something happened to since the last request.
    pub(super) fn touched(&self) -> TouchedFiles {
        TouchedFiles { files: self.touched.clone(), pointed_at: self.pointed_at.clone() }
    }

    /// Ends a request.
    pub(super) fn end_request(&mut self, moment: u32) {
        self.touched.clear();
        self.pointed_at.clear();
        self.named.clear();
        self.last_request = moment;
    }

    /// Cuts those files into chunks again that may have changed.
    pub(super) fn cut(&mut self, files: &[usize]) {
        self.cuts.refresh(&self.model, &mut self.vocabulary, files);
    }

    /// Cuts all files.
    pub(super) fn cut_all(&mut self) {
        self.cut(&self.all_files());
    }

    /// All files, by their place in the model.
    pub(super) fn all_files(&self) -> Vec<usize> {
        (0..self.model.files().len()).collect()
    }

    /// The chunks of some files as they were last cut, with their signs for now.
    pub(super) fn chunks(&self, files: &[usize], now: u32) -> Vec<Chunk> {
        let moment = ChunkMoment { now, last_request: self.last_request, asks: &self.asks };
        let mut chunks = self.cuts.chunks(&self.model, files, moment);
        RecentWords::of(&self.spoken).weigh(&self.model, &self.vocabulary, &mut chunks);
        chunks
    }
}

/// Storing and restoring. Chunks and words are computed again when they are needed.
impl Knowledge {
    /// Writes what cannot be computed again.
    pub(super) fn rest(&self, packer: &mut Packer<'_>) {
        let Self {
            observer,
            model,
            cuts: _,
            vocabulary: _,
            spoken: _,
            asks: _,
            touched,
            pointed_at,
            named,
            last_request,
        } = self;
        observer.rest(packer);
        model.rest(packer);
        packer.list(touched, |packer, file| packer.number(*file));
        packer.list(pointed_at, |packer, file| packer.number(*file));
        packer.list(named, |packer, name| packer.text(name));
        packer.number(*last_request);
    }

    /// Reads it again. The dialects are not stored; those that were set are used.
    pub(super) fn wake(&mut self, unpacker: &mut Unpacker<'_>) -> Result<(), Damaged> {
        self.observer.wake(unpacker)?;
        self.model = FileModel::wake(unpacker)?;
        let files = self.model.files().len();
        self.touched = unpacker.list(|unpacker| unpacker.place(files))?;
        self.pointed_at = unpacker.list(|unpacker| unpacker.place(files))?;
        self.named = unpacker.list(|unpacker| Ok(unpacker.text()?.as_ref().into()))?.into();
        self.last_request = unpacker.number()?;
        Ok(())
    }

    /// Notes again that a person said something at a moment.
    pub(super) fn hear_again(&mut self, moment: u32) {
        self.asks.push(moment);
    }

    /// Takes in again what the newest message said.
    pub(super) fn talk_again(&mut self, item: &Item) {
        match item {
            Item::Message(message) => self.note_talk(&message.text_cow()),
            Item::FunctionCall(call) if matches!(self.observer.dialects().kind(call), Kind::Answer | Kind::Other) => {
                self.note_talk(&call.parsed_arguments().to_string());
            }
            _ => {}
        }
    }
}

/// Longest text in which names are looked for; longer texts were pasted.
const MAX_NAMING_BYTES: usize = 8_000;

/// Shortest name, in bytes.
const LEAST_NAME_BYTES: usize = 6;

/// The names in a text: identifiers, codes, commits and addresses, but no plain words and no paths, which the model of
/// files knows better.
fn names(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '-');
    let runs = text.split(move |c: char| !is_part(c));
    let names = runs.map(|run| run.trim_matches(|c: char| !c.is_ascii_alphanumeric()));
    names.filter(|name| name.len() >= LEAST_NAME_BYTES && is_telling(name))
}

/// Whether a word is no plain word: it has a digit, an underscore, a path separator of code, or capitals inside.
fn is_telling(name: &str) -> bool {
    let has_digit =
        name.bytes().any(|byte| byte.is_ascii_digit()) && name.bytes().any(|byte| byte.is_ascii_alphabetic());
    let has_hump = name.as_bytes().windows(2).any(|pair| pair[0].is_ascii_lowercase() && pair[1].is_ascii_uppercase());
    has_digit || has_hump || name.contains('_') || name.contains("::")
}

/// All texts in the arguments of a call.
fn texts_in(arguments: &Value) -> Vec<&str> {
    match arguments {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().flat_map(texts_in).collect(),
        Value::Object(fields) => fields.values().flat_map(texts_in).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}
