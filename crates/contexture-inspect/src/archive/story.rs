//! A request in whole: what the model saw, what was taken away, what it answered, and what it cost.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::PoisonError;

use contexture_gateway::account::record::DecidedNote;
use contexture_gateway::write::StoreError;
use contexture_text::spoken::title_of;
use contexture_text::window_part::WindowPart;
use rusqlite::Connection;

use super::super::block::{BlockKind, BlockSource};
use super::super::timeline::Timeline;
use super::super::view::{
    AnswerBlock, BlockState, Cost, FileGrade, FileView, FoldStory, HiddenPart, NamedBlock, PartLine, RemovedKind,
    RemovedPart, RequestLine, RequestStory, WindowFile, WindowForm,
};
use super::super::window::{ComparedWindow, ShownBlock, TokenScale, newest_from};
use super::Archive;
use super::blocks::{self, BlockRow};
use super::lists::Lists;
use super::signals::signals;
use super::writing::read_answer;

/// How many requests before and after count as those around it.
const AROUND: usize = 10;

/// How many earlier requests are looked through, for signs and for what was lost.
const MOST_EARLIER: u64 = 500;

/// How many later requests are looked through for the next fold and for what was paid back.
const MOST_LATER: u64 = 500;

/// Blocks that are named of a part of a window, the largest.
const MOST_NAMED: usize = 3;

impl Archive {
    /// A request in whole; `None` if there is no such request.
    ///
    /// # Errors
    /// The archive cannot be read.
    pub fn story(&self, conversation: &str, n: u64) -> Result<Option<RequestStory>, StoreError> {
        let first = n.saturating_sub(MOST_EARLIER - 1).max(1);
        let mut lines = self.requests(conversation, first, n.saturating_sub(first) + 1 + AROUND as u64)?.items;
        let Some(at) = lines.iter().position(|line| line.n == n) else { return Ok(None) };
        if lines[at].is_fold() {
            lines.truncate(at + 1);
            lines.extend(self.requests(conversation, n + 1, MOST_LATER)?.items);
        }
        let (lists, before) = self.lists(conversation, n)?;
        let timeline = self.timeline(conversation)?;
        let connection = self.lock();
        let timeline = timeline.lock().unwrap_or_else(PoisonError::into_inner);
        let mut teller = StoryTeller::new(&connection, conversation, &timeline);
        let (past, later) = lines.split_at(at + 1);
        teller.tell(past, later, &lists, &before).map(Some)
    }
}

/// Tells the stories of requests of one conversation. What blocks are is read once.
pub struct StoryTeller<'a> {
    connection: &'a Connection,
    conversation: &'a str,
    timeline: &'a Timeline,
    rows: HashMap<u32, BlockRow>,
    /// The lines of files that blocks show which Contexture wrote.
    views: HashMap<u32, Vec<FileView>>,
}

impl<'a> StoryTeller<'a> {
    /// Tells the stories of a conversation.
    pub fn new(connection: &'a Connection, conversation: &'a str, timeline: &'a Timeline) -> Self {
        Self { connection, conversation, timeline, rows: HashMap::new(), views: HashMap::new() }
    }

    /// The story of the last one of some requests. `later` are those after it, as far as they matter.
    pub fn tell(
        &mut self,
        past: &[RequestLine],
        later: &[RequestLine],
        lists: &Lists,
        before: &[u32],
    ) -> Result<RequestStory, StoreError> {
        let line = past.last().cloned().unwrap_or_default();
        self.read(lists.sent.iter().chain(before))?;
        let own = lists.sent.iter().filter_map(|id| self.rows.get(id)).map(|row| row.tokens).sum();
        let scale = TokenScale::new(line.sent_tokens, own);
        let steps = HashMap::new();
        let compared = ComparedWindow { came: &lists.came, sent: &lists.sent, before, steps: &steps };
        let shown = compared.shown(WindowForm::Before);
        let (hidden, seen) = self.hidden(&lists.sent, scale);
        Ok(RequestStory {
            parts: self.parts(&lists.sent, lists.sent.len() - seen.len(), &line, scale),
            blocks: lists.sent.len() as u64,
            hidden,
            again: self.again(&shown, &line, scale),
            files: self.files(seen, line.n),
            removed: self.removed(&shown, scale),
            fold: fold_of(&line, later, scale),
            lost: lost(past),
            answer: self.answer(&line)?,
            signals: signals(past),
            times_usual: times_usual(past, later),
            dollars: line.record.paid(),
            line,
        })
    }

    /// Reads what is not known yet of some blocks.
    fn read<'b>(&mut self, ids: impl Iterator<Item = &'b u32>) -> Result<(), StoreError> {
        let new: HashSet<u32> = ids.copied().filter(|id| !self.rows.contains_key(id)).collect();
        let new: Vec<u32> = new.into_iter().collect();
        self.rows.extend(blocks::rows(self.connection, &new)?);
        for id in new {
            if let Some(row) = self.rows.get(&id).filter(|row| row.source == BlockSource::Made) {
                self.views.insert(id, blocks::views(self.connection, row)?);
            }
        }
        Ok(())
    }

    /// A window by its parts. Of the first blocks, the provider hides all but instructions.
    fn parts(&self, sent: &[u32], hidden: usize, line: &RequestLine, scale: TokenScale) -> Vec<PartLine> {
        let is_of_model = |id: &u32| self.rows.get(id).is_some_and(|row| row.source == BlockSource::Model);
        let newest = newest_from(sent, is_of_model);
        let mut parts: BTreeMap<WindowPart, Vec<&BlockRow>> = BTreeMap::new();
        for (place, row) in sent.iter().enumerate().filter_map(|(place, id)| Some((place, self.rows.get(id)?))) {
            let part = if place >= newest { row.part().of_newest() } else { row.part() };
            let is_head = matches!(row.source, BlockSource::System | BlockSource::Tools);
            if place >= hidden || is_head {
                parts.entry(part).or_default().push(row);
            }
        }
        let told = parts.into_iter().map(|(part, rows)| PartLine {
            part,
            tokens: line.parts.get(&part).copied().unwrap_or_default(),
            blocks: rows.len() as u64,
            largest: largest(rows, scale),
        });
        told.collect()
    }

    /// Tokens that are unchanged since the request before, and were not read from the cache.
    fn again(&self, shown: &[ShownBlock], line: &RequestLine, scale: TokenScale) -> u64 {
        let Some(cached) = line.cached_tokens else { return 0 };
        let unchanged = shown.iter().filter(|block| matches!(block.state, BlockState::Same | BlockState::Behind));
        let tokens = unchanged.filter_map(|block| self.rows.get(&block.id)).map(|row| row.tokens).sum();
        scale.of(tokens).saturating_sub(cached)
    }

    /// What the provider's newest compaction hides of a window, and what the model sees of it. Instructions and tools
    /// are always seen.
    fn hidden<'b>(&self, sent: &'b [u32], scale: TokenScale) -> (Option<HiddenPart>, &'b [u32]) {
        let is_compaction = |id: &u32| self.rows.get(id).is_some_and(|row| row.kind == BlockKind::Compaction);
        let Some(place) = sent.iter().rposition(is_compaction) else { return (None, sent) };
        let is_message = |row: &&BlockRow| !matches!(row.source, BlockSource::System | BlockSource::Tools);
        let before = || sent[..place].iter().filter_map(|id| self.rows.get(id)).filter(is_message);
        let tokens = scale.of(before().map(|row| row.tokens).sum());
        let part = HiddenPart { block: sent[place], blocks: before().count() as u64, tokens };
        (Some(part), &sent[place..])
    }

    /// The files that a window shows, those that changed since first.
    fn files(&self, sent: &[u32], n: u64) -> Vec<WindowFile> {
        let mut files: BTreeMap<&str, WindowFile> = BTreeMap::new();
        let mut told = HashSet::new();
        let rows = || sent.iter().filter_map(|id| self.rows.get(id));
        for row in rows().filter(|row| told.insert(row.id)) {
            for view in self.views.get(&row.id).into_iter().flatten() {
                files.entry(&view.path).or_insert_with(|| WindowFile::new(&view.path, row.id)).add_view(view);
            }
        }
        // A part that was read again is counted where it was read last, as long as that is in the window.
        for row in rows().rev().filter(|row| row.source == BlockSource::File && told.remove(&row.id)) {
            let Some(read) = self.timeline.grade(row.id, n) else { continue };
            let file = files.entry(&row.name).or_insert_with(|| WindowFile::new(&row.name, row.id));
            if file.lines == 0 || read.grade != FileGrade::ReadAgain {
                file.add_read(&read);
            }
        }
        let mut files: Vec<WindowFile> = files.into_values().collect();
        files.sort_by_key(|file| (Reverse(file.changed), file.causes.clone(), Reverse(file.lines)));
        files
    }

    /// What left the window, the largest kinds first.
    fn removed(&self, shown: &[ShownBlock], scale: TokenScale) -> Vec<RemovedPart> {
        let mut removed: HashMap<RemovedKind, Vec<&BlockRow>> = HashMap::new();
        let gone = shown.iter().filter(|block| block.state == BlockState::Gone);
        for row in gone.filter_map(|block| self.rows.get(&block.id)) {
            removed.entry(removed_kind(row)).or_default().push(row);
        }
        let part = |(kind, rows): (RemovedKind, Vec<&BlockRow>)| RemovedPart {
            kind,
            count: rows.len() as u64,
            tokens: rows.iter().map(|row| scale.of(row.tokens)).sum(),
            largest: largest(rows, scale),
        };
        let mut removed: Vec<RemovedPart> = removed.into_iter().map(part).collect();
        removed.sort_by_key(|part| (Reverse(part.tokens), part.kind as u8));
        removed
    }

    /// What the model answered, as far as it is known.
    fn answer(&self, line: &RequestLine) -> Result<Vec<AnswerBlock>, StoreError> {
        let ids = read_answer(self.connection, self.conversation, line.n)?;
        let rows = blocks::rows(self.connection, &ids)?;
        let own = rows.values().map(|row| row.tokens).sum();
        let scale = TokenScale::new(line.record.usage.map_or(0, |usage| usage.output), own);
        let block = |row: &BlockRow| AnswerBlock {
            id: row.id,
            kind: row.kind,
            name: row.name.clone(),
            tokens: scale.of(row.tokens),
            preview: row.preview.clone(),
        };
        Ok(ids.iter().filter_map(|id| rows.get(id)).map(block).collect())
    }
}

/// The largest of some blocks, with names that lead to them.
fn largest(mut rows: Vec<&BlockRow>, scale: TokenScale) -> Vec<NamedBlock> {
    rows.sort_by_key(|row| Reverse(row.tokens));
    let named = |row: &&BlockRow| NamedBlock { block: row.id, name: name_of(row), tokens: scale.of(row.tokens) };
    rows.iter().take(MOST_NAMED).map(named).collect()
}

fn name_of(row: &BlockRow) -> String {
    match row.source {
        BlockSource::Said => title_of(&row.preview).unwrap_or_else(|| row.preview.clone()),
        _ if row.name.is_empty() => row.preview.clone(),
        _ => row.name.clone(),
    }
}

fn removed_kind(row: &BlockRow) -> RemovedKind {
    match (row.source, row.kind) {
        (BlockSource::Made, _) => RemovedKind::Made,
        (BlockSource::File, _) => RemovedKind::File,
        (_, BlockKind::Call) => RemovedKind::Call,
        (_, BlockKind::Output) => RemovedKind::Output,
        (_, BlockKind::Thought) => RemovedKind::Thought,
        (BlockSource::Model, _) => RemovedKind::Told,
        (BlockSource::Said, _) => RemovedKind::Said,
        _ => RemovedKind::Other,
    }
}

/// The newest fold up to a request that had no room for the agent's own changes.
fn lost(past: &[RequestLine]) -> Option<(u64, Vec<String>)> {
    let left_out = |line: &RequestLine| line.record.decided.iter().flat_map(|note| note.left_out.clone()).collect();
    past.iter().rev().map(|line| (line.n, left_out(line))).find(|(_, files): &(u64, Vec<String>)| !files.is_empty())
}

fn fold_of(line: &RequestLine, later: &[RequestLine], scale: TokenScale) -> Option<FoldStory> {
    let note: &DecidedNote = line.record.decided.iter().find(|note| note.is_fold())?;
    let price =
        |tokens: f64| Cost { dollars: line.record.dollars.map(|(input, _)| tokens * input / 1e6), billed: tokens };
    let has_paid = |line: &&RequestLine| line.record.bill.is_some_and(|bill| bill.has_paid_back);
    Some(FoldStory {
        reason: note.reason.clone(),
        left_out_tokens: scale.of(note.before_tokens.saturating_sub(note.after_tokens)),
        cost: price(note.cost),
        saves_per_request: price(note.saves_per_request),
        estimated: note.estimated.map(|(cost, _)| price(cost)),
        paid_back: later.iter().find(has_paid).map(|line| line.n),
        next: later.iter().find(|line| line.is_fold()).map(|line| line.n),
        cut: note.cut.iter().map(|cut| (cut.what.clone(), cut.hash.clone(), scale.of(cut.tokens))).collect(),
    })
}

/// How many times the bill is of the last request what it is of the one in the middle of those around it, by size.
fn times_usual(past: &[RequestLine], later: &[RequestLine]) -> f64 {
    let Some((line, past)) = past.split_last() else { return 1.0 };
    let around = past.iter().rev().take(AROUND).chain(later.iter().take(AROUND));
    let mut bills: Vec<f64> = around.filter_map(|other| other.record.bill).map(|bill| bill.billed).collect();
    bills.sort_by(f64::total_cmp);
    let usual = bills.get(bills.len() / 2).copied().filter(|usual| *usual > 0.0);
    usual.zip(line.record.bill).map_or(1.0, |(usual, bill)| bill.billed / usual)
}
