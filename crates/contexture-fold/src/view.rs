//! The current view of the files in use: which of the known lines to show, and how.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::Arc;

use contexture_core::window::fence_for;

use super::claims::LinesClaim;
use super::tuning::{NEAR_LINES, weight};
use super::written::{CHANGED, SEEN, VERIFIED};
use contexture_files::model::{Claim, DiskChange, Fact, FileModel, FileState, Line, join_lines};
use contexture_text::one_line::one_line;

/// A run of lines that is shown or left out as one.
#[derive(Clone, Debug, PartialEq)]
pub struct Chunk {
    /// The file, by its place in the model.
    pub file: usize,
    /// The segment of the file.
    pub segment: usize,
    /// The lines of the segment.
    pub lines: Range<usize>,
    /// Bytes of the lines with their line feeds.
    pub bytes: usize,
    /// The signs that it should be shown.
    pub signs: Signs,
    /// The words of its lines by their numbers in the vocabulary, each once.
    pub(super) words: Arc<[u32]>,
}

/// The signs that a chunk should be shown. Ages are counted in messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Signs {
    /// Since its newest line was shown or written.
    pub seen_age: f64,
    /// Since one of its lines was changed by the agent.
    pub edit_age: Option<f64>,
    /// Whether the agent changed the file.
    pub is_file_edited: bool,
    /// Lines to the nearest line that the agent changed.
    pub edit_distance: Option<usize>,
    /// Whether it is only a hit of a search.
    pub is_hit: bool,
    /// How many lines were shown together with it.
    pub span: u32,
    /// Whether the user pinned the file.
    pub is_pinned: bool,
    /// How many messages the user wrote since it was seen.
    pub asks: usize,
    /// Whether recent talk names the file.
    pub is_named: bool,
    /// Whether the file was named, however long ago, and the agent did not change it since.
    pub is_pending: bool,
    /// Whether one of its lines was named since the last request.
    pub is_pointed_at: bool,
    /// Rare words in common with recent talk, as a logarithm.
    pub talk_words: f64,
    /// Whether the file changed since one of its lines was seen.
    pub is_changed: bool,
}

impl Chunk {
    /// The lines of the chunk.
    pub fn lines<'a>(&self, model: &'a FileModel) -> &'a [Line] {
        &model.files()[self.file].segments[self.segment].lines[self.lines.clone()]
    }
}

/// Most bytes of a file's heading, besides its path.
const HEADING_BYTES: usize = 110;

/// Most bytes of the mark of a gap.
const GAP_BYTES: usize = 24;

/// Whether a chunk is what the agent changed, or near it. Such chunks are left out only when there is no room.
pub fn is_own_work(signs: &Signs) -> bool {
    signs.edit_distance.is_some_and(|lines| lines <= NEAR_LINES)
}

/// Chooses the chunks that are most likely needed for their size, within a number of bytes.
///
/// Chunks below the least need, and those that are already shown, are left out. What the agent changed is never below
/// it, and pinned chunks come first. The result is in the order of `chunks`.
pub fn choose(chunks: &[Chunk], shown: &[bool], least: f64, bytes: usize) -> Vec<usize> {
    let needs = chunks.iter().enumerate().map(|(index, chunk)| {
        let need = need(&chunk.signs);
        match chunk.signs {
            Signs { is_pinned: true, .. } => (f64::INFINITY, index),
            signs if is_own_work(&signs) => (need.max(least), index),
            _ => (need, index),
        }
    });
    let mut order: Vec<(f64, usize)> = needs.filter(|(need, index)| *need >= least && !shown[*index]).collect();
    order.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    let mut left = bytes;
    let mut chosen = vec![false; chunks.len()];
    let mut opened = HashSet::new();
    for (_, index) in order {
        let chunk = &chunks[index];
        let adjoins = |other: Option<usize>| {
            other.and_then(|other| Some(chosen[other] && chunks.get(other)?.is_beside(chunk))).unwrap_or(false)
        };
        let is_apart = !adjoins(index.checked_sub(1)) && !adjoins(Some(index + 1).filter(|next| *next < chunks.len()));
        let heading = if opened.contains(&chunk.file) { 0 } else { HEADING_BYTES };
        let cost = chunk.bytes + heading + if is_apart { GAP_BYTES } else { 0 };
        if cost <= left {
            left -= cost;
            opened.insert(chunk.file);
            chosen[index] = true;
        }
    }
    (0..chunks.len()).filter(|index| chosen[*index]).collect()
}

/// Returns the bytes of the lines of some chunks.
pub fn bytes(chunks: &[Chunk], some: &[usize]) -> usize {
    some.iter().map(|index| chunks[*index].bytes).sum()
}

impl Chunk {
    fn is_beside(&self, other: &Chunk) -> bool {
        self.file == other.file
            && self.segment == other.segment
            && (self.lines.end == other.lines.start || other.lines.end == self.lines.start)
    }
}

/// Returns the chosen chunks and their neighbours that are shown elsewhere, so that text that spans both is in one
/// piece.
pub fn with_neighbours(chunks: &[Chunk], shown: &[bool], chosen: &[usize]) -> Vec<usize> {
    let mut all = chosen.to_vec();
    for index in chosen.iter().copied() {
        let around = [index.checked_sub(1), Some(index + 1)].into_iter().flatten();
        let beside =
            |other: &usize| chunks.get(*other).is_some_and(|chunk| shown[*other] && chunk.is_beside(&chunks[index]));
        all.extend(around.filter(beside));
    }
    all.sort_unstable();
    all.dedup();
    all
}

/// Rendered chunks and what they claim.
pub struct Rendered {
    /// The text.
    pub text: String,
    /// What it claims about files.
    pub claims: Vec<LinesClaim>,
}

/// Writes chunks, file by file, with the least recently touched file first.
///
/// Lines are put in fences that they cannot close, and paths and commands are kept on one line, so nothing in a file or
/// an output can pass for a heading.
pub fn render(model: &FileModel, chunks: &[&Chunk]) -> Rendered {
    let mut files: Vec<(u32, usize, Vec<&Chunk>)> = Vec::new();
    for chunk in chunks {
        match files.last_mut() {
            Some((_, file, list)) if *file == chunk.file => list.push(chunk),
            _ => files.push((model.files()[chunk.file].touched, chunk.file, vec![chunk])),
        }
    }
    files.sort_by_key(|(touched, file, _)| (*touched, *file));
    let mut rendered = Rendered { text: String::new(), claims: Vec::new() };
    for (_, file, list) in files {
        FileRuns::new(model, file, &list).write(&mut rendered);
    }
    rendered
}

/// What is shown of one file.
struct FileRuns<'a> {
    file: &'a FileState,
    index: usize,
    runs: Vec<LineRun<'a>>,
    is_whole: bool,
}

/// A run of consecutive lines.
struct LineRun<'a> {
    lines: &'a [Line],
    /// What is claimed of each of its regions, which together are all of it.
    regions: Vec<(Range<usize>, Claim)>,
}

/// Most regions of a run of which different things are said. With more, of small ones is said what is said of a worse one
/// beside them.
const MAX_REGIONS: usize = 8;

/// Joins regions until few enough are left, so that something worse is said of as few lines as possible.
fn joined(mut regions: Vec<(Range<usize>, Fact)>) -> Vec<Range<usize>> {
    while regions.len() > MAX_REGIONS {
        let worsened = |at: usize| {
            let (one, other) = (&regions[at], &regions[at + 1]);
            if one.1 > other.1 { one.0.len() } else { other.0.len() }
        };
        let at = (0..regions.len() - 1).min_by_key(|at| worsened(*at)).expect("there are several");
        let (next, fact) = regions.remove(at + 1);
        regions[at] = (regions[at].0.start..next.end, regions[at].1.min(fact));
        // Of what is beside it the same may be said now.
        regions.dedup_by(|next, before| {
            let is_same = next.1 == before.1;
            if is_same {
                before.0.end = next.0.end;
            }
            is_same
        });
    }
    regions.into_iter().map(|(region, _)| region).collect()
}

impl<'a> LineRun<'a> {
    fn new(model: &'a FileModel, file: usize, segment: usize, lines: Range<usize>) -> Self {
        let mut regions = model.claims(file, segment, lines.clone());
        if regions.len() > MAX_REGIONS {
            let told = regions.into_iter().map(|(region, claim)| (region, claim.fact)).collect();
            let joined = joined(told).into_iter();
            regions = joined.map(|region| (region.clone(), model.claim(file, segment, region))).collect();
        }
        for (region, _) in &mut regions {
            *region = region.start - lines.start..region.end - lines.start;
        }
        Self { lines: &model.files()[file].segments[segment].lines[lines], regions }
    }

    /// The number of its first line, if that is certain.
    fn first(&self) -> Option<usize> {
        self.regions.first().and_then(|(_, claim)| claim.first)
    }

    /// Says of which of its regions something else is said than of most lines of the file.
    fn exceptions(&self, most: &Claim) -> String {
        let is_other = |claim: &Claim| claim.fact != most.fact;
        match self.regions.as_slice() {
            [(_, only)] if is_other(only) => format!(", {}", fact_text(only)),
            [_] => String::new(),
            regions => {
                let others = regions.iter().filter(|(_, claim)| is_other(claim));
                others.map(|(region, claim)| format!("; {} {}", self.numbers(region), fact_text(claim))).collect()
            }
        }
    }

    /// The numbers of some of its lines: those of the file, or else counted from its first line.
    fn numbers(&self, region: &Range<usize>) -> String {
        let before = self.first().map_or(0, |first| first - 1);
        let (first, last) = (before + region.start + 1, before + region.end);
        let of = if self.first().is_some() { "" } else { " of these" };
        if first == last { format!("line {first}{of}") } else { format!("lines {first}–{last}{of}") }
    }
}

impl<'a> FileRuns<'a> {
    fn new(model: &'a FileModel, index: usize, chunks: &[&Chunk]) -> Self {
        let file = &model.files()[index];
        let mut ranges: Vec<(usize, Range<usize>)> = Vec::new();
        for chunk in chunks {
            match ranges.last_mut() {
                Some((segment, lines)) if *segment == chunk.segment && lines.end == chunk.lines.start => {
                    lines.end = chunk.lines.end;
                }
                _ => ranges.push((chunk.segment, chunk.lines.clone())),
            }
        }
        let is_all = matches!(ranges.as_slice(), [(0, lines)] if *lines == (0..file.segments[0].lines.len()));
        let is_whole = is_all && model.claim_whole(index).is_some();
        let runs = ranges.into_iter().map(|(segment, lines)| LineRun::new(model, index, segment, lines));
        Self { file, index, runs: runs.collect(), is_whole }
    }

    /// What is claimed of most of its lines, with the moments of all of these. Of facts that are equally common it is the
    /// worst.
    fn most(&self) -> Claim {
        let regions = || self.runs.iter().flat_map(|run| &run.regions);
        let lines_of = |fact: Fact| -> usize {
            regions().filter(|(_, claim)| claim.fact == fact).map(|(region, _)| region.len()).sum()
        };
        let common = |(_, claim): &&(Range<usize>, Claim)| (lines_of(claim.fact), std::cmp::Reverse(claim.fact));
        let fact = regions().max_by_key(common).map(|(_, claim)| claim.fact);
        let same = || regions().map(|(_, claim)| claim).filter(|claim| Some(claim.fact) == fact);
        // The first cause is that of the region that is known longest.
        let oldest = same().min_by_key(|claim| claim.since).expect("a view shows at least one run");
        Claim { until: same().map(|claim| claim.until).max().unwrap_or(oldest.until), ..oldest.clone() }
    }

    /// Writes a heading that says what is shown and what is known of most of it, then the lines. Anything else is said
    /// where it is.
    fn write(&self, rendered: &mut Rendered) {
        let Self { file, index, runs, is_whole } = self;
        let text = &mut rendered.text;
        let shown: usize = runs.iter().map(|run| run.lines.len()).sum();
        let whole = if *is_whole { "whole file, " } else { "" };
        let noun = if shown == 1 { "line" } else { "lines" };
        let most = self.most();
        let changed = file.disk_change.as_ref().map_or_else(String::new, changed_on_disk);
        let ends = if file.has_carriage_returns() { "; has CR LF line ends" } else { "" };
        let inside = if *is_whole { runs[0].exceptions(&most) } else { String::new() };
        // Writing to a string cannot fail.
        let known = match file.not_compared {
            Some(why) => format!("not compared ({}), as seen at message {}", why.as_str(), most.since),
            None => fact_text(&most),
        };
        let _ = writeln!(text, "## `{}`: {whole}{shown} {noun}, {known}{inside}{ends}{changed}", one_line(&file.path));
        for run in runs {
            let _ = match run.first() {
                _ if *is_whole => Ok(()),
                Some(first) => writeln!(text, "from line {first}{}:", run.exceptions(&most)),
                None => writeln!(text, "lines of uncertain number{}:", run.exceptions(&most)),
            };
            let body = join_lines(run.lines);
            let fence = fence_for(&body);
            let _ = writeln!(text, "{fence}\n{body}\n{fence}");
            if *is_whole {
                rendered.claims.push(LinesClaim::new(*index, run.lines, &run.regions[0].1, true));
                continue;
            }
            for (region, claim) in &run.regions {
                let claim = Claim { first: claim.first.filter(|_| run.first().is_some()), ..claim.clone() };
                rendered.claims.push(LinesClaim::new(*index, &run.lines[region.clone()], &claim, false));
            }
        }
    }
}

/// Says that a file changed on the disk, and where. What is there now is not shown: the agent has not seen it.
fn changed_on_disk(change: &DiskChange) -> String {
    let lines =
        |(first, last): &(usize, usize)| if first == last { first.to_string() } else { format!("{first}–{last}") };
    let differ = match change.differ.as_slice() {
        [] => String::new(),
        [(first, last)] if first == last => format!(", line {first} differs"),
        some => format!(", lines {} differ", some.iter().map(lines).collect::<Vec<_>>().join(", ")),
    };
    format!("; changed on disk since you read it{differ}: read it again")
}

/// Says what is known of lines.
fn fact_text(claim: &Claim) -> String {
    match (claim.fact, &claim.by) {
        (Fact::Verified, _) => VERIFIED.to_owned(),
        (Fact::Seen, _) if claim.since == claim.until => format!("{SEEN} message {}", claim.since),
        (Fact::Seen, _) => format!("{SEEN} messages {}–{}", claim.since, claim.until),
        (Fact::Changed, Some(cause)) => format!("{CHANGED} by {}", short_cause(&cause.by)),
        (Fact::Changed, None) => CHANGED.to_owned(),
    }
}

/// Longest name of a call in a heading, in characters.
const MAX_CAUSE_CHARS: usize = 60;

/// The name of a call, on one line and without what could end it.
fn short_cause(by: &str) -> String {
    let bare: String = by.chars().filter(|c| *c != '`').map(|c| if c.is_whitespace() { ' ' } else { c }).collect();
    let by: String = one_line(&bare).chars().filter(|c| *c != char::REPLACEMENT_CHARACTER).collect();
    match by.char_indices().nth(MAX_CAUSE_CHARS) {
        Some((end, _)) => format!("`{}…`", &by[..end]),
        None => format!("`{by}`"),
    }
}

/// Returns how likely the agent is to need a chunk's text soon, for its size, on a logarithmic scale.
///
/// Most weights were fitted to recorded work (a Poisson regression of "an edit within the next 40 requests needs this
/// text, and nothing touches the file before it" on the signs, per byte) and rounded. What was seen lately is needed,
/// and what the agent changed is needed for longer. Rare words in common with recent talk raise the need, and so does a
/// task or a plan that names the file. Chunks that only a search showed are hardly ever needed.
pub fn need(signs: &Signs) -> f64 {
    let log = |count: f64| count.ln_1p();
    let seen = log(signs.seen_age);
    let edited = signs.edit_age.map_or(0.0, |age| weight::EDIT_AGE * log(age));
    let file_edited = if signs.is_file_edited { weight::FILE_EDITED } else { 0.0 };
    let hit = if signs.is_hit { weight::HIT * seen } else { 0.0 };
    let named = if signs.is_named { weight::NAMED } else { 0.0 };
    let pending = if signs.is_pending { weight::PENDING } else { 0.0 };
    let pointed_at = if signs.is_pointed_at { weight::POINTED_AT } else { 0.0 };
    let changed = if signs.is_changed { weight::IN_DOUBT } else { 0.0 };
    weight::SEEN * seen * seen
        + edited
        + file_edited
        + hit
        + named
        + pending
        + pointed_at
        + changed
        + weight::TALK_WORDS * signs.talk_words
        + weight::SPAN * (log(f64::from(signs.span)) - weight::MIDDLE_SPAN)
        + weight::ASKS * log(signs.asks as f64)
}
