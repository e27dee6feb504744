//! A request in whole: what the model saw, what was taken away, what it answered, and what it cost.

use std::collections::{HashMap, HashSet};
use std::sync::PoisonError;

use contexture_gateway::account::record::DecidedNote;
use contexture_gateway::write::StoreError;
use contexture_text::spoken::title_of;
use rusqlite::{Connection, OptionalExtension, params};

use super::super::block::{BlockKind, BlockSource};
use super::super::timeline::Timeline;
use super::super::view::{
    AnswerBlock, BlockState, FileGrade, FileView, FoldPrice, FoldStory, HiddenPart, RemovedKind, RequestLine,
    RequestStory, ShownGrade, WindowForm, WindowPiece,
};
use super::super::window::{ComparedWindow, boundary};
use super::Archive;
use super::blocks::{self, BlockRow};
use super::signals::signals;
use super::writing::read_answer;

/// Most pieces of the picture of a window.
const MOST_PIECES: u64 = 120;

/// How many requests before and after count as those around it.
const AROUND: u64 = 10;

/// How many later requests are looked through for the next fold and for what was paid back.
const MOST_LATER: u64 = 500;

impl Archive {
    /// A request in whole; `None` if there is no such request.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn story(&self, conversation: &str, n: u64) -> Result<Option<RequestStory>, StoreError> {
        let Some(line) = self.requests(conversation, n, 1)?.items.pop().filter(|line| line.n == n) else {
            return Ok(None);
        };
        let (lists, before) = self.lists(conversation, n)?;
        let timeline = self.timeline(conversation)?;
        let around = self.requests(conversation, n.saturating_sub(AROUND).max(1), 2 * AROUND + 1)?.items;
        let is_fold = line.record.decided.iter().any(DecidedNote::is_fold);
        let later = if is_fold { self.requests(conversation, n + 1, MOST_LATER)?.items } else { Vec::new() };
        let lost = self.lost_before(conversation, n)?;
        let connection = self.lock();
        let mut ids: Vec<u32> = lists.sent.iter().chain(&before).copied().collect();
        ids.sort_unstable();
        ids.dedup();
        let rows = blocks::rows(&connection, &ids)?;
        let steps = HashMap::new();
        let compared = ComparedWindow { came: &lists.came, sent: &lists.sent, before: &before, steps: &steps };
        let shown = compared.shown(WindowForm::Before);
        let tokens = |id: u32| rows.get(&id).map_or(0, |row| row.tokens);
        let cache_end = line.cached_tokens.map(|cached| boundary(&shown, tokens, cached));
        let timeline = timeline.lock().unwrap_or_else(PoisonError::into_inner);
        let (hidden, seen) = hidden_of(&rows, &lists.sent);
        let views = Views::read(&connection, &rows, seen, &timeline, n)?;
        let unseen: HashSet<u32> = hidden.iter().flat_map(|hidden| hidden.ids.iter().copied()).collect();
        let mut window = PieceList::new(line.record.budget.unwrap_or(line.sent_tokens));
        let (mut removed, mut again) = (Vec::new(), 0);
        for (place, block) in shown.iter().enumerate() {
            let Some(row) = rows.get(&block.id) else { continue };
            let is_unchanged = matches!(block.state, BlockState::Same | BlockState::Behind);
            let is_cached = cache_end.is_some_and(|end| place < end) && block.state == BlockState::Same;
            if block.state == BlockState::Gone {
                remove(&mut removed, row);
                continue;
            }
            if is_unchanged && !is_cached && cache_end.is_some() {
                again += row.tokens;
            }
            let mark = PieceMark { is_cached, is_unchanged, is_hidden: unseen.contains(&row.id) };
            window.push(row, mark, views.of(row.id));
        }
        removed.sort_by_key(|kind: &RemovedKind| std::cmp::Reverse(kind.tokens));
        Ok(Some(RequestStory {
            budget: line.record.budget,
            pieces: window.pieces,
            blocks: lists.sent.len() as u64,
            hidden: hidden.map(|hidden| hidden.part),
            again,
            views: views.all,
            removed,
            fold: fold_of(&line, &later),
            lost,
            answer: answer(&connection, conversation, n)?,
            signals: signals(&connection, conversation, n)?,
            usual: usual(&line, &around),
            dollars: line.record.paid(),
            line,
        }))
    }

    /// The newest fold up to a request that had no room for the agent's own changes.
    fn lost_before(&self, conversation: &str, n: u64) -> Result<Option<(u64, Vec<String>)>, StoreError> {
        let connection = self.lock();
        let sql = "SELECT line FROM requests WHERE conversation = ?1 AND n <= ?2
                   AND line LIKE '%\"left_out\":[%' ORDER BY n DESC LIMIT 1";
        let mut statement = connection.prepare_cached(sql)?;
        let line: Option<String> = statement.query_row(params![conversation, n as i64], |row| row.get(0)).optional()?;
        let Some(line) = line else { return Ok(None) };
        let line: RequestLine = serde_json::from_str(&line)?;
        let left_out: Vec<String> = line.record.decided.iter().flat_map(|note| note.left_out.clone()).collect();
        Ok((!left_out.is_empty()).then_some((line.n, left_out)))
    }
}

/// What the model does not see, because the provider has compacted it.
struct HiddenBlocks {
    part: HiddenPart,
    ids: Vec<u32>,
}

/// What the provider's newest compaction hides of a window, and what the model sees of it. Instructions and tools are
/// always seen.
fn hidden_of<'a>(rows: &HashMap<u32, BlockRow>, sent: &'a [u32]) -> (Option<HiddenBlocks>, &'a [u32]) {
    let is_compaction = |id: &u32| rows.get(id).is_some_and(|row| row.kind == BlockKind::Compaction);
    let Some(place) = sent.iter().rposition(is_compaction) else { return (None, sent) };
    let is_message = |row: &&BlockRow| !matches!(row.source, BlockSource::System | BlockSource::Tools);
    let before: Vec<&BlockRow> = sent[..place].iter().filter_map(|id| rows.get(id)).filter(is_message).collect();
    let tokens = before.iter().map(|row| row.tokens).sum();
    let part = HiddenPart { block: sent[place], blocks: before.len() as u64, tokens };
    // A block that comes again after it is seen there.
    let after: HashSet<u32> = sent[place..].iter().copied().collect();
    let ids = before.iter().map(|row| row.id).filter(|id| !after.contains(id)).collect();
    (Some(HiddenBlocks { part, ids }), &sent[place..])
}

/// The views of a window.
struct Views {
    all: Vec<FileView>,
    /// How many views a block has, and how many of these are from before a change.
    by_block: HashMap<u32, (u64, u64)>,
}

impl Views {
    fn read(
        connection: &Connection,
        rows: &HashMap<u32, BlockRow>,
        sent: &[u32],
        timeline: &Timeline,
        n: u64,
    ) -> Result<Self, StoreError> {
        let mut views = Self { all: Vec::new(), by_block: HashMap::new() };
        let mut seen = HashSet::new();
        for row in sent.iter().filter_map(|id| rows.get(id)).filter(|row| seen.insert(row.id)) {
            let own = match row.source {
                BlockSource::Made => blocks::views(connection, row)?,
                BlockSource::File => read_view(row, timeline, n).into_iter().collect(),
                _ => Vec::new(),
            };
            if !own.is_empty() {
                let changed = own.iter().filter(|view| is_changed(view)).count() as u64;
                views.by_block.insert(row.id, (own.len() as u64, changed));
                views.all.extend(own);
            }
        }
        views.all.sort_by_key(|view| (rank(view.grade), std::cmp::Reverse(view.count)));
        Ok(views)
    }

    fn of(&self, block: u32) -> (u64, u64) {
        self.by_block.get(&block).copied().unwrap_or_default()
    }
}

fn is_changed(view: &FileView) -> bool {
    matches!(view.grade, FileGrade::Changed | FileGrade::Overtaken)
}

/// The order in which grades are listed: what may be wrong first.
fn rank(grade: FileGrade) -> u8 {
    match grade {
        FileGrade::Overtaken => 0,
        FileGrade::Changed => 1,
        FileGrade::Deleted | FileGrade::Unknown => 2,
        FileGrade::ReadAgain => 3,
        FileGrade::Seen => 4,
        FileGrade::Verified => 5,
    }
}

/// The lines that the output of a read shows, as far as they are still known.
fn read_view(row: &BlockRow, timeline: &Timeline, n: u64) -> Option<FileView> {
    let known = timeline.grade(row.id, n)?;
    let count = timeline.lines_of(row.id);
    let grade = match known.grade {
        ShownGrade::Seen => FileGrade::Seen,
        ShownGrade::Overtaken => FileGrade::Overtaken,
        ShownGrade::ReadAgain => FileGrade::ReadAgain,
    };
    let path = row.name.clone();
    Some(FileView {
        block: row.id,
        path,
        lines: count.1,
        count: count.0,
        grade,
        cause: known.reason,
        is_written: false,
    })
}

/// How a piece of a window is marked.
#[derive(Clone, Copy)]
struct PieceMark {
    is_cached: bool,
    is_unchanged: bool,
    is_hidden: bool,
}

/// The picture of a window: blocks in order, with small neighbours joined.
struct PieceList {
    pieces: Vec<WindowPiece>,
    least: u64,
}

impl PieceList {
    fn new(scale: u64) -> Self {
        Self { pieces: Vec::new(), least: scale / MOST_PIECES }
    }

    fn push(&mut self, row: &BlockRow, mark: PieceMark, (views, changed): (u64, u64)) {
        let (least, PieceMark { is_cached, is_unchanged, is_hidden }) = (self.least, mark);
        let joins = |piece: &WindowPiece| {
            piece.source == row.source
                && (piece.is_cached, piece.is_unchanged, piece.is_hidden) == (is_cached, is_unchanged, is_hidden)
                && (piece.tokens < least || row.tokens < least)
                && (piece.views == 0) == (views == 0)
                && piece.tokens + row.tokens < 4 * least.max(1)
        };
        if let Some(piece) = self.pieces.last_mut().filter(|piece| joins(piece)) {
            piece.count += 1;
            piece.tokens += row.tokens;
            piece.views += views;
            piece.changed += changed;
            return;
        }
        self.pieces.push(WindowPiece {
            block: row.id,
            count: 1,
            source: row.source,
            made: row.made.clone(),
            name: match row.source {
                BlockSource::System => "instructions".to_owned(),
                BlockSource::Said => title_of(&row.preview).unwrap_or_else(|| row.preview.clone()),
                _ if row.name.is_empty() => row.preview.clone(),
                _ => row.name.clone(),
            },
            tokens: row.tokens,
            is_cached,
            is_unchanged,
            is_hidden,
            views,
            changed,
        });
    }
}

/// Counts a block that left the window.
fn remove(removed: &mut Vec<RemovedKind>, row: &BlockRow) {
    let kind = match (row.source, row.kind) {
        (BlockSource::Made, _) => "made",
        (BlockSource::File, _) => "file",
        (_, BlockKind::Call) => "call",
        (_, BlockKind::Output) => "output",
        (_, BlockKind::Thought) => "thought",
        (BlockSource::Model, _) => "told",
        (BlockSource::Said, _) => "said",
        _ => "other",
    };
    match removed.iter_mut().find(|known| known.kind == kind) {
        Some(known) => {
            known.count += 1;
            known.tokens += row.tokens;
        }
        None => removed.push(RemovedKind { kind, count: 1, tokens: row.tokens, block: row.id }),
    }
}

fn fold_of(line: &RequestLine, later: &[RequestLine]) -> Option<FoldStory> {
    let note: &DecidedNote = line.record.decided.iter().find(|note| note.is_fold())?;
    let own = FoldPrice { cost: note.cost, saves_per_request: note.saves_per_request };
    let estimated = note.estimated.map(|(cost, saves_per_request)| FoldPrice { cost, saves_per_request });
    let has_paid = |line: &&RequestLine| line.record.bill.is_some_and(|bill| bill.has_paid_back);
    let is_fold = |line: &&RequestLine| line.record.decided.iter().any(|note| note.is_fold());
    Some(FoldStory {
        reason: note.reason.clone(),
        before_tokens: note.before_tokens,
        after_tokens: note.after_tokens,
        billed: estimated.map(|_| own),
        estimated: Some(estimated.unwrap_or(own)),
        paid_back: later.iter().find(has_paid).map(|line| line.n),
        next: later.iter().find(is_fold).map(|line| line.n),
        left_out: note.left_out.clone(),
        cut: note.cut.iter().map(|cut| (cut.what.clone(), cut.hash.clone(), cut.tokens)).collect(),
    })
}

/// What the model answered, as far as it is known.
fn answer(connection: &Connection, conversation: &str, n: u64) -> Result<Vec<AnswerBlock>, StoreError> {
    let ids = read_answer(connection, conversation, n)?;
    let rows = blocks::rows(connection, &ids)?;
    let block = |row: &BlockRow| AnswerBlock {
        id: row.id,
        kind: row.kind,
        name: row.name.clone(),
        tokens: row.tokens,
        preview: row.preview.clone(),
    };
    Ok(ids.iter().filter_map(|id| rows.get(id)).map(block).collect())
}

/// The bill of the request in the middle of those around this one, by size.
fn usual(line: &RequestLine, around: &[RequestLine]) -> f64 {
    let others = around.iter().filter(|other| other.n != line.n);
    let mut bills: Vec<f64> = others.filter_map(|other| other.record.bill).map(|bill| bill.billed).collect();
    bills.sort_by(f64::total_cmp);
    bills.get(bills.len() / 2).copied().unwrap_or(0.0)
}
