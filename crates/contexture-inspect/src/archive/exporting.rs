//! Reads a whole conversation for export.

use std::collections::HashMap;
use std::sync::PoisonError;

use contexture_gateway::write::StoreError;
use rusqlite::{Connection, params};
use serde_json::{Value, json};

use super::super::block::BlockKind;
use super::super::exported::{ExportRow, ExportedWindows, ExportedWords};
use super::super::timeline::Timeline;
use super::super::view::{BlockState, RequestLine, RequestStory, WindowForm};
use super::super::window::{ComparedWindow, ShownBlock, TokenScale, boundary, first_difference};
use super::lists::Lists;
use super::reasons::Reasons;
use super::story::StoryTeller;
use super::{Archive, blocks, lists};

/// How many requests around one are looked through for its story.
const MOST_AROUND: usize = 500;

/// What the export needs to know of each block.
struct ExportedBlock {
    tokens: u64,
    since: u64,
    left: Option<u64>,
}

/// The requests of a conversation, as an export has them.
pub struct ExportedRequests {
    /// Their lines, as lists have them.
    pub lines: Vec<RequestLine>,
    /// Their stories.
    pub stories: Vec<RequestStory>,
    /// Their windows, by form.
    pub windows: [(WindowForm, ExportedWindows); 3],
    /// The words in these.
    pub words: ExportedWords,
}

impl Archive {
    /// The requests of a conversation with their windows and stories. What they have in common is read once.
    pub(in super::super) fn exported_requests(&self, conversation: &str) -> Result<ExportedRequests, StoreError> {
        let lines = self.requests(conversation, 0, u64::from(u32::MAX))?.items;
        let timeline = self.timeline(conversation)?;
        let connection = self.lock();
        let timeline = timeline.lock().unwrap_or_else(PoisonError::into_inner);
        let (known, steps) = known(&connection, conversation)?;
        let mut rows = WindowRows {
            known: &known,
            timeline: &timeline,
            reasons: Reasons::new(&connection, conversation),
            reason_places: HashMap::new(),
            words: ExportedWords::default(),
        };
        let mut teller = StoryTeller::new(&connection, conversation, &timeline);
        let forms = [WindowForm::Sent, WindowForm::Came, WindowForm::Before];
        let mut windows = forms.map(|form| (form, ExportedWindows::default()));
        let (mut stories, mut before, mut at) = (Vec::with_capacity(lines.len()), Vec::new(), 0);
        lists::each(&connection, conversation, |list: &Lists| {
            let (past, later) = lines.split_at((at + 1).min(lines.len()));
            let compared = ComparedWindow { came: &list.came, sent: &list.sent, before: &before, steps: &steps };
            for (form, windows) in &mut windows {
                rows.add(&compared.shown(*form), *form, &lines[at], windows)?;
            }
            let past = &past[past.len().saturating_sub(MOST_AROUND)..];
            stories.push(teller.tell(past, &later[..later.len().min(MOST_AROUND)], list, &before)?);
            (before, at) = (list.sent.clone(), at + 1);
            Ok(())
        })?;
        let words = rows.words;
        Ok(ExportedRequests { lines, stories, windows, words })
    }

    /// Calls a function with each block of a conversation and its text.
    pub(in super::super) fn each_block(
        &self,
        conversation: &str,
        mut each: impl FnMut(u32, Value, &str),
    ) -> Result<(), StoreError> {
        let connection = self.lock();
        let sql = format!(
            "SELECT {}, n, text FROM places JOIN blocks ON id = block WHERE conversation = ?1 ORDER BY number",
            blocks::COLUMNS
        );
        let mut statement = connection.prepare_cached(&sql)?;
        let mut rows = statement.query(params![conversation])?;
        while let Some(row) = rows.next()? {
            let block = blocks::BlockRow::read(row, 0)?;
            let told = json!({
                "source": block.source, "kind": block.kind, "part": block.part(), "role": block.role,
                "name": block.name, "call": block.call, "is_error": block.is_error, "tokens": block.tokens,
                "bytes": block.bytes, "since": row.get::<_, i64>(11)?, "made": block.made,
                "views": blocks::views(&connection, &block)?,
            });
            each(block.id, told, &row.get::<_, String>(12)?);
        }
        Ok(())
    }
}

/// Makes the rows of windows.
struct WindowRows<'a> {
    known: &'a HashMap<u32, ExportedBlock>,
    timeline: &'a Timeline,
    reasons: Reasons<'a>,
    /// The reasons that were looked up.
    reason_places: HashMap<(BlockState, u64, Option<u64>), usize>,
    words: ExportedWords,
}

impl WindowRows<'_> {
    fn add(
        &mut self,
        shown: &[ShownBlock],
        form: WindowForm,
        line: &RequestLine,
        windows: &mut ExportedWindows,
    ) -> Result<(), StoreError> {
        let mut rows = Vec::with_capacity(shown.len());
        for block in shown {
            let (since, left) = self.known.get(&block.id).map_or((0, None), |known| (known.since, known.left));
            let key = (block.state, since, left);
            let reason = match self.reason_places.get(&key) {
                Some(place) => *place,
                None => {
                    let place = self.words.place(self.reasons.of(block.state, since, left)?);
                    self.reason_places.insert(key, place);
                    place
                }
            };
            let read = self.timeline.grade(block.id, line.n);
            let (grade, why) = read.map_or((None, None), |read| (Some(read.grade), read.reason));
            let why = self.words.place(why);
            rows.push(ExportRow(block.id, block.state, reason, grade, why, block.other.unwrap_or(0)));
        }
        let own = |id: u32| self.known.get(&id).map_or(0, |known| known.tokens);
        let is_there = |block: &&ShownBlock| block.state != BlockState::Gone;
        let scale = TokenScale::new(line.sent_tokens, shown.iter().filter(is_there).map(|block| own(block.id)).sum());
        let cached = line.cached_tokens.filter(|_| form != WindowForm::Came);
        let end = cached.map(|cached| boundary(shown, |id| scale.of(own(id)), cached));
        windows.add(rows, first_difference(shown), end);
        Ok(())
    }
}

/// The calls and outputs of a conversation, by block: which of the two it is, and the id of the call.
type WindowSteps = HashMap<u32, (BlockKind, String)>;

/// Reads all blocks of a conversation.
fn known(
    connection: &Connection,
    conversation: &str,
) -> Result<(HashMap<u32, ExportedBlock>, WindowSteps), StoreError> {
    let sql = "SELECT block, tokens, n, left_n, kind, call FROM places JOIN blocks ON id = block
               WHERE conversation = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![conversation])?;
    let (mut known, mut steps) = (HashMap::new(), HashMap::new());
    while let Some(row) = rows.next()? {
        let id: u32 = row.get(0)?;
        let left = row.get::<_, Option<i64>>(3)?.map(|left| left as u64);
        let (tokens, since) = (row.get::<_, i64>(1)? as u64, row.get::<_, i64>(2)? as u64);
        known.insert(id, ExportedBlock { tokens, since, left });
        if let Some(step) = blocks::step(row, 4)? {
            steps.insert(id, step);
        }
    }
    Ok((known, steps))
}
