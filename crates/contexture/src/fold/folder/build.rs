//! What a fold puts in place of the past.

use std::sync::Arc;

use super::losses::{self, LEFT_OUT_TOKENS};
use super::{Fold, Folder, Part, ShownLines, cut, shown_lines};
use crate::fold::cuts::Moment;
use crate::fold::digest::changed_files;
use crate::fold::outline;
use crate::fold::view::{self, Chunk};
use crate::fold::window::Slot;
use crate::fold::words::Recent;
use crate::transcript::Role;

/// What stands over a view.
const VIEW_TITLE: &str = "# Files as you know them now\n";

/// What stands over outlines.
const OUTLINE_TITLE: &str = "# What you know besides, to be read again when needed\n";

/// Share of the budget that a fold leaves free at least, so that the next one is not at once.
const FREE_SHARE: f64 = 0.22;

/// The same when the newest step alone is so large that it takes [`LARGE_STEP_SHARE`]: the next ones will be smaller,
/// and the view needs the room.
const FREE_SHARE_BEHIND_LARGE_STEP: f64 = 0.15;

/// Share of the budget from which on what a fold must show besides the view is large.
const LARGE_STEP_SHARE: f64 = 0.2;

/// Share of the view that may be idle in kept parts when a fresh view would need all of it.
const IDLE_SHARE: f64 = 0.1;

/// Least bytes of a part, unless nothing is left for it.
const LEAST_PART_BYTES: usize = 6_000;

/// Requests that a fold is expected to last when nothing is known yet.
const EXPECTED_REQUESTS: f64 = 10.0;

/// How hard a fold has to try: each level leaves out more, and the last one always fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Squeeze {
    /// Everything the policy asks for.
    None,
    /// Only the newest step, its outputs cut.
    Step,
    /// The same cut harder, without the opening.
    Hard,
    /// No message in its own place.
    All,
}

const SQUEEZES: [Squeeze; 4] = [Squeeze::None, Squeeze::Step, Squeeze::Hard, Squeeze::All];

/// A fold before its view is chosen.
struct Frame {
    start: usize,
    opening: Vec<Slot>,
    /// What the user asked last, if it would not be shown otherwise.
    ask: Option<Slot>,
    digest: String,
    /// Most tokens of the outlines of what is known but not shown.
    outline_tokens: u64,
    shortened: Vec<(usize, Arc<str>)>,
    tokens: u64,
}

/// A part that a fold adds to the view.
struct AddedPart {
    text: Arc<str>,
    chunks: Vec<usize>,
}

impl Folder {
    /// Decides what stands for the past from now on.
    pub(super) fn build_fold(&mut self, reason: &str) -> Fold {
        let frame = self.frame();
        let files: Vec<usize> = (0..self.model.files().len()).collect();
        let chunks = self.weighed_chunks(&files);
        let room = self.view_room(frame.tokens);
        let kept = self.kept_parts(&frame, &chunks, room);
        let marks: Vec<u32> = self.parts[..kept].iter().map(|part| part.mark).collect();
        let shown: Vec<bool> = chunks.iter().map(|chunk| self.is_shown(chunk, frame.start, &marks)).collect();
        let taken: u64 = self.part_slots().take(kept).map(|slot| self.slot_tokens(slot)).sum();
        let added = self.added_parts(&chunks, &shown, room.saturating_sub(taken));
        self.finish_fold(frame, kept, &chunks, &shown, added, reason)
    }

    /// The chunks of some files, with what speaks for showing them.
    pub(super) fn weighed_chunks(&mut self, files: &[usize]) -> Vec<Chunk> {
        self.cuts.refresh(&self.model, &mut self.vocabulary, files);
        let now = self.messages.len() as u32;
        let moment = Moment { now, last_request: self.last_request, asks: &self.asks };
        let mut chunks = self.cuts.chunks(&self.model, files, moment);
        Recent::of(&self.spoken).weigh(&self.model, &self.vocabulary, &mut chunks);
        chunks
    }

    fn finish_fold(
        &self,
        frame: Frame,
        kept: usize,
        chunks: &[Chunk],
        is_shown: &[bool],
        added: Vec<AddedPart>,
        reason: &str,
    ) -> Fold {
        let same_opening = self.start > 0 && self.window.slots().starts_with(&frame.opening);
        let keep = if same_opening { frame.opening.len() + kept } else { 0 };
        let mut head = Vec::new();
        if !same_opening {
            head.extend(frame.opening.iter().cloned());
            head.extend(self.part_slots().take(kept).cloned());
        }
        let mut parts = self.parts[..kept].to_vec();
        let mut shown: Vec<Vec<ShownLines>> = Vec::new();
        let mut in_window = is_shown.to_vec();
        for part in added {
            part.chunks.iter().for_each(|index| in_window[*index] = true);
            let lines = shown_lines(chunks, &part.chunks);
            let bytes = view::bytes(chunks, &part.chunks);
            let mark = self.marks + 1 + shown.len() as u32;
            parts.push(Part { mark, lines: lines.iter().map(|lines| lines.count).sum(), bytes });
            head.push(Slot::Made(part.text));
            shown.push(lines);
        }
        let left_out = self.left_out(chunks, is_shown, &shown);
        let outline = self.outline(chunks, &in_window, frame.outline_tokens);
        let digest = format!("{}{outline}{}", frame.digest, self.tell_left_out(&left_out));
        if !digest.is_empty() {
            head.push(Slot::Made(digest.into()));
        }
        head.extend(frame.ask);
        let cut_messages = frame.shortened.len();
        let mut fold = Fold {
            at: self.messages.len(),
            keep,
            head,
            start: frame.start,
            shortened: frame.shortened,
            parts,
            shown,
            reason: losses::reason(reason, frame.start < self.messages.len(), cut_messages, &left_out),
            left_out,
            before_tokens: self.window.total(),
            after_tokens: 0,
            cost: 0.0,
            saves_per_request: 0.0,
        };
        self.price(&mut fold);
        fold
    }

    /// The outlines of what is known but not in the window, within a number of tokens.
    fn outline(&self, chunks: &[Chunk], in_window: &[bool], tokens: u64) -> String {
        let mut text = outline::outline(&self.model, chunks, |index| in_window[index], tokens as usize * 4);
        if text.is_empty() {
            return text;
        }
        text.insert_str(0, OUTLINE_TITLE);
        while self.counter.count(&text) > tokens {
            let Some(end) = text.trim_end().rfind('\n') else { return String::new() };
            text.truncate(end + 1);
        }
        if text == OUTLINE_TITLE { String::new() } else { text }
    }

    /// Chosen chunks in groups of whole files: those least likely to change first, so that the groups before the
    /// first that changes can stay as they are at the next fold.
    fn steadiest_first(&self, chunks: &[Chunk], chosen: Vec<usize>) -> Vec<Vec<usize>> {
        let mut files: Vec<Vec<usize>> = Vec::new();
        for index in chosen {
            match files.last_mut() {
                Some(list) if chunks[list[0]].file == chunks[index].file => list.push(index),
                _ => files.push(vec![index]),
            }
        }
        files.sort_by_key(|list| {
            let file = &self.model.files()[chunks[list[0]].file];
            (file.edited, std::cmp::Reverse(file.touched))
        });
        let mut groups: Vec<(usize, Vec<usize>)> = Vec::new();
        for list in files {
            let bytes = view::bytes(chunks, &list);
            match groups.last_mut() {
                Some((size, group)) if *size < LEAST_PART_BYTES => {
                    *size += bytes;
                    group.extend(list);
                }
                _ => groups.push((bytes, list)),
            }
        }
        groups.into_iter().map(|(_, group)| group).collect()
    }

    fn price(&self, fold: &mut Fold) {
        let kept: u64 = self.window.slots()[..fold.keep].iter().map(|slot| self.slot_tokens(slot)).sum();
        let head: u64 = fold.head.iter().map(|slot| self.slot_tokens(slot)).sum();
        let cut = |at: usize| fold.shortened.iter().find(|(cut, _)| *cut == at).map(|(_, text)| text.clone());
        let shown = |at: usize| match cut(at) {
            Some(text) => Slot::Shortened(at, text),
            None if self.pointers.contains(&at) => Slot::Logged(at),
            None => self.slot_of(at),
        };
        let tail: u64 = (fold.start..self.messages.len()).map(|at| self.slot_tokens(&shown(at))).sum();
        let prices = self.policy.prices;
        fold.after_tokens = kept + head + tail;
        let rewritten = if self.is_cold { 0 } else { head + tail };
        fold.cost = thousandths((prices.write - prices.read) * rewritten as f64);
        let spared = fold.before_tokens.saturating_sub(fold.after_tokens);
        fold.saves_per_request = thousandths(prices.read * spared as f64);
    }

    /// The messages of the parts in the window, in order.
    fn part_slots(&self) -> impl Iterator<Item = &Slot> {
        let made = self.window.slots().iter().filter(|slot| matches!(slot, Slot::Made(_)));
        made.take(self.parts.len())
    }

    /// The tokens that the view may have beside what else a fold shows.
    fn view_room(&self, frame_tokens: u64) -> u64 {
        let budget = self.policy.budget as f64;
        let is_large = frame_tokens as f64 > budget * LARGE_STEP_SHARE;
        let free_share = if is_large { FREE_SHARE_BEHIND_LARGE_STEP } else { FREE_SHARE };
        let most = (budget * (1.0 - free_share)) as u64;
        most.saturating_sub(frame_tokens).min(self.policy.view_tokens)
    }

    /// Everything of a fold but its view: the least squeezed that leaves room.
    fn frame(&self) -> Frame {
        let most = (self.policy.budget as f64 * (1.0 - FREE_SHARE)) as u64;
        for squeeze in SQUEEZES {
            let frame = self.squeezed(squeeze);
            if frame.tokens <= most || squeeze == Squeeze::All {
                return frame;
            }
        }
        unreachable!("the last squeeze is always taken")
    }

    fn squeezed(&self, squeeze: Squeeze) -> Frame {
        let budget = self.policy.budget;
        let start = self.tail_start(squeeze);
        let opening = if squeeze >= Squeeze::Hard { Vec::new() } else { self.opening(start) };
        let ask = self.ask(opening.len(), start);
        let mut digest = self.digest(start, ask);
        let ask = ask.map(|at| self.ask_slot(at));
        if squeeze >= Squeeze::Hard {
            digest = cut(&*self.counter, &digest, budget / 4);
        }
        let limit = match squeeze {
            Squeeze::None => u64::MAX,
            Squeeze::Step => budget / 4,
            Squeeze::Hard | Squeeze::All => budget / 12,
        };
        let mut shortened = Vec::new();
        let outline_tokens = if squeeze == Squeeze::None { self.policy.outline_tokens } else { 0 };
        let mut tokens = LEFT_OUT_TOKENS
            + outline_tokens
            + self.counter.count(&digest)
            + opening.iter().chain(&ask).map(|slot| self.slot_tokens(slot)).sum::<u64>();
        for at in start..self.messages.len() {
            let mut slot = self.slot_of(at);
            if self.pointers.contains(&at) {
                slot = Slot::Logged(at);
            }
            if self.slot_tokens(&slot) > limit && self.counter.count(&self.message(at).text) > limit {
                let text = self.shortened(at, limit);
                slot = Slot::Shortened(at, text.clone());
                shortened.push((at, text));
            }
            tokens += self.slot_tokens(&slot);
        }
        Frame { start, opening, ask, digest, outline_tokens, shortened, tokens }
    }

    /// The first message that stays in its own place.
    fn tail_start(&self, squeeze: Squeeze) -> usize {
        let len = self.messages.len();
        if squeeze == Squeeze::All {
            return len;
        }
        let most = if squeeze == Squeeze::None { self.policy.tail_tokens } else { 0 };
        let mut start = len;
        let mut tokens = 0;
        for at in (self.start..len).rev() {
            tokens += self.slot_tokens(&self.slot_of(at));
            if tokens > most && start < len {
                break;
            }
            if self.notes[at].opens && self.is_closed(at) {
                start = at;
            }
        }
        start
    }

    /// Whether no answer from a position on belongs to a call before it.
    fn is_closed(&self, at: usize) -> bool {
        let mut answers = self.notes[at..].iter().take(MAX_STEP_MESSAGES).filter_map(|note| note.answers);
        answers.all(|made| made >= at)
    }

    /// The messages with which the conversation opened: short ones whole, long ones cut to equal shares of the rest.
    fn opening(&self, start: usize) -> Vec<Slot> {
        let said = self.notes[..start].iter().take_while(|note| matches!(note.role, Role::User | Role::System)).count();
        let mut sizes: Vec<u64> = self.notes[..said].iter().map(|note| note.tokens).collect();
        sizes.sort_unstable();
        let mut left = self.policy.opening_tokens;
        let mut share = 0;
        for (index, size) in sizes.iter().enumerate() {
            share = left / (said - index) as u64;
            left -= share.min(*size);
        }
        let slot = |at: usize| {
            if self.notes[at].tokens <= share {
                return Slot::Logged(at);
            }
            Slot::Shortened(at, self.shortened(at, share))
        };
        (0..said).map(slot).collect()
    }

    /// What the user said since the opening, which files were changed, and what was done.
    fn digest(&self, start: usize, ask: Option<usize>) -> String {
        let said = self.said(ask.unwrap_or(start));
        let changed = changed_files(&self.model, self.policy.ledger_tokens as usize * 2);
        let done = self.ledger.render(start, self.policy.ledger_tokens as usize * 4);
        let mut text = String::new();
        for (title, body) in
            [("# What the user said", said), ("# What you changed", changed), ("# What you did last", done)]
        {
            if !body.is_empty() {
                text.push_str(title);
                text.push('\n');
                text.push_str(&body);
                text.push('\n');
            }
        }
        text
    }

    /// User messages between the opening and the tail: the newest at length, older ones in short, while they fit.
    fn said(&self, start: usize) -> String {
        let opening = self.notes.iter().take_while(|note| matches!(note.role, Role::User | Role::System)).count();
        let said = (opening..start).rev().filter(|at| self.notes[*at].role == Role::User);
        let mut left = self.policy.users_tokens;
        let mut entries: Vec<String> = Vec::new();
        for (rank, at) in said.enumerate() {
            let share = if rank == 0 { self.policy.users_tokens / 2 } else { self.policy.users_tokens / 8 };
            let entry = format!("- {}\n", cut(&*self.counter, &self.message(at).text, share));
            let tokens = self.counter.count(&entry);
            if tokens > left {
                break;
            }
            left -= tokens;
            entries.push(entry);
        }
        entries.reverse();
        entries.concat()
    }

    /// How many parts of the view stay as they are: as many as cost less to keep than to write again.
    ///
    /// A part of which one line changed must go, and every part behind it with it.
    fn kept_parts(&self, frame: &Frame, chunks: &[Chunk], room: u64) -> usize {
        let opening_stays = self.start > 0 && self.window.slots().starts_with(&frame.opening);
        if !opening_stays || self.is_cold {
            return 0;
        }
        let current = self.current_lines();
        let valid = self.parts.iter().zip(&current).take_while(|(part, lines)| part.lines == **lines).count();
        let shown: Vec<bool> = chunks.iter().map(|chunk| self.is_shown(chunk, frame.start, &[])).collect();
        let (room_tokens, room) = (room, self.bytes_in(room));
        let fresh = view::choose(chunks, &shown, self.policy.least_need_behind(self.messages.len()), room);
        let fresh_bytes = view::bytes(chunks, &fresh);
        let slack = room.saturating_sub(fresh_bytes) + (room as f64 * IDLE_SHARE) as usize;
        let wanted: Vec<usize> =
            self.parts[..valid].iter().map(|part| self.wanted_bytes(part, chunks, &fresh)).collect();
        let idle = |kept: usize| -> usize {
            (0..kept).map(|index| self.parts[index].bytes.saturating_sub(wanted[index])).sum()
        };
        let prices = self.policy.prices;
        let requests = f64::from(self.requests_since_fold).max(EXPECTED_REQUESTS);
        let cost = |kept: usize| {
            let rewritten: usize = wanted[kept..].iter().sum();
            prices.read * requests * idle(kept) as f64 + (prices.write - prices.read) * rewritten as f64
        };
        let taken = |kept: usize| self.part_slots().take(kept).map(|slot| self.slot_tokens(slot)).sum::<u64>();
        let fitting = (0..=valid).filter(|kept| idle(*kept) <= slack && taken(*kept) <= room_tokens);
        fitting.min_by(|a, b| cost(*a).total_cmp(&cost(*b)).then(b.cmp(a))).unwrap_or(0)
    }

    /// How many lines of each part still stand in the model as they are shown.
    fn current_lines(&self) -> Vec<usize> {
        let mut counts = vec![0; self.parts.len()];
        let lines = self.model.files().iter().flat_map(|file| &file.segments).flat_map(|segment| &segment.lines);
        for line in lines.filter(|line| line.shown > 0) {
            if let Some(index) = self.parts.iter().position(|part| part.mark == line.shown) {
                counts[index] += 1;
            }
        }
        counts
    }

    /// Bytes of a part that a fresh view would show too.
    fn wanted_bytes(&self, part: &Part, chunks: &[Chunk], fresh: &[usize]) -> usize {
        let of_part = |chunk: &&Chunk| chunk.lines(&self.model).iter().all(|line| line.shown == part.mark);
        fresh.iter().map(|index| &chunks[*index]).filter(of_part).map(|chunk| chunk.bytes).sum()
    }

    /// Whether a chunk stands in the new window as one piece: in a kept part, or in one message of the tail.
    fn is_shown(&self, chunk: &Chunk, start: usize, marks: &[u32]) -> bool {
        let lines = chunk.lines(&self.model);
        let first = &lines[0];
        if marks.contains(&first.shown) {
            return lines.iter().all(|line| line.shown == first.shown);
        }
        first.seen as usize > start && lines.iter().all(|line| line.seen == first.seen && line.edited < line.seen)
    }

    /// Chooses chunks and renders them as parts of the view, all of them within a number of tokens.
    fn added_parts(&self, chunks: &[Chunk], is_shown: &[bool], tokens: u64) -> Vec<AddedPart> {
        let render = |group: Vec<usize>| {
            let listed = view::with_neighbours(chunks, is_shown, &group);
            let listed: Vec<&Chunk> = listed.iter().map(|index| &chunks[*index]).collect();
            let text = format!("{VIEW_TITLE}{}", view::render(&self.model, &listed));
            AddedPart { text: text.into(), chunks: group }
        };
        let fitting = self.fit(tokens, self.view_bytes_in(tokens), |bytes| {
            let chosen = view::choose(chunks, is_shown, self.policy.least_need_behind(self.messages.len()), bytes);
            let taken = view::bytes(chunks, &chosen);
            let parts: Vec<AddedPart> = self.steadiest_first(chunks, chosen).into_iter().map(render).collect();
            let count = parts.iter().map(|part| self.policy.message_tokens + self.counts.of(&part.text)).sum();
            (parts, taken, count)
        });
        fitting.unwrap_or_default()
    }

    /// Makes something of a number of bytes, fewer each time, until it has at most a number of tokens.
    ///
    /// `make` answers what it made, how many of the bytes it took, and the tokens that came out.
    pub(super) fn fit<T>(&self, tokens: u64, mut bytes: usize, make: impl Fn(usize) -> (T, usize, u64)) -> Option<T> {
        for _ in 0..MAX_TRIES {
            let (made, taken, count) = make(bytes);
            if count <= tokens {
                return Some(made);
            }
            bytes = (taken.min(bytes) as f64 * tokens as f64 / count as f64 * 0.95) as usize;
        }
        None
    }

    /// How many bytes a number of tokens are, by what was counted so far.
    fn bytes_in(&self, tokens: u64) -> usize {
        bytes_in(tokens, self.text)
    }

    /// How many bytes of lines a view of a number of tokens can show, by the views in the window.
    ///
    /// Views have headings, and their text is denser than talk: a first guess that is right saves counting twice.
    pub(super) fn view_bytes_in(&self, tokens: u64) -> usize {
        let bytes: usize = self.parts.iter().map(|part| part.bytes).sum();
        let counted: u64 = self.part_slots().map(|slot| self.slot_tokens(slot)).sum();
        match counted {
            0 => self.bytes_in(tokens),
            _ => bytes_in(tokens, (bytes as u64, counted)),
        }
    }
}

/// How many bytes a number of tokens are, if some bytes have some tokens.
fn bytes_in(tokens: u64, (bytes, counted): (u64, u64)) -> usize {
    let bytes = u128::from(tokens) * u128::from(bytes) / u128::from(counted.max(1));
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// A price as people write it.
fn thousandths(price: f64) -> f64 {
    (price * 1_000.0).round() / 1_000.0
}

/// How often a view is chosen anew because it came out too large.
const MAX_TRIES: usize = 4;

/// Most messages that one step can have for its calls and answers to be found together.
const MAX_STEP_MESSAGES: usize = 512;
