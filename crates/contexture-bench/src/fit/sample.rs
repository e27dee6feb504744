//! Plays a recording, samples the chunks known at some requests, and finds which of them were needed.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use contexture::files::dialect::Dialects;
use contexture::files::model::FileModel;
use contexture::files::observation::{Observation, Seen};
use contexture::fold::{Folder, Meter, Policy};
use contexture::item::{FunctionCall, Item};
use contexture::tokens::{Estimate, count_item};
use contexture::transcript::Record;
use contexture_fold::fitting::{WEIGHT_COUNT, terms};
use contexture_fold::view::Chunk;

use contexture_measure::random::Rng;

/// A chunk is needed if an edit within this many requests needs its text.
pub(super) const HORIZON_REQUESTS: usize = 40;

/// Most chunks that are kept of one request. Of more, all needed chunks are kept, and a sample of the others, each of
/// which represents several.
pub(super) const MOST_CHUNKS: usize = 1_000;

/// The shortest text of an edit that is searched for, in characters: shorter ones occur everywhere.
const LEAST_TARGET_CHARS: usize = 20;

/// Which requests of a recording are sampled.
pub(super) struct Sampling {
    /// Only requests of conversations longer than this many tokens.
    pub(super) budget: u64,
    /// Most requests.
    pub(super) requests: usize,
    pub(super) seed: u64,
}

/// What was known at a request.
pub(super) struct RequestSample {
    pub(super) chunks: Vec<ChunkSample>,
}

/// A known chunk.
pub(super) struct ChunkSample {
    /// The features by which the weights are multiplied.
    pub(super) terms: [f32; WEIGHT_COUNT],
    pub(super) bytes: f32,
    /// How many known chunks it represents.
    pub(super) stands_for: f32,
    /// Messages since it was seen.
    pub(super) seen_age: f32,
    /// When its file was last touched.
    pub(super) touched: u32,
    /// Whether an edit needed its text before anything else touched the file.
    pub(super) is_needed: bool,
}

/// Plays a recording. Returns the sampled requests at which something was needed, and how many were sampled.
pub(super) fn play(records: &[Record], sampling: &Sampling) -> (Vec<RequestSample>, usize) {
    let mut rng = Rng::new(sampling.seed);
    let sampled = choose_requests(records, sampling, &mut rng);
    let mut player = SamplePlayer {
        folder: Folder::new(Policy::new(sampling.budget), Meter::new(Arc::new(Estimate))),
        dialects: Dialects::builtin(),
        calls: HashMap::new(),
        open: Vec::new(),
        done: Vec::new(),
        rng,
    };
    let mut request = 0;
    for record in records {
        if record.is_response() {
            player.request(request, sampled.contains(&request));
            player.calls.extend(record.calls().map(|call| (&*call.call_id, (request, call))));
            request += 1;
        }
        player.take_in(record);
    }
    player.close(usize::MAX);
    (player.done, sampled.len())
}

/// Requests at which the conversation is longer than the budget, evenly spread from a random start.
fn choose_requests(records: &[Record], sampling: &Sampling, rng: &mut Rng) -> HashSet<usize> {
    let mut long = Vec::new();
    let (mut request, mut tokens) = (0, 0);
    for record in records {
        if record.is_response() {
            if tokens > sampling.budget {
                long.push(request);
            }
            request += 1;
        }
        tokens += record.items().iter().map(|item| count_item(&Estimate, item)).sum::<u64>();
    }
    let count = sampling.requests.min(long.len());
    if count == 0 {
        return HashSet::new();
    }
    let start = rng.below(long.len());
    (0..count).map(|n| long[(start + n * long.len() / count) % long.len()]).collect()
}

struct SamplePlayer<'a> {
    folder: Folder,
    dialects: Dialects,
    /// Calls by their ids, with the request whose response made them.
    calls: HashMap<&'a str, (usize, &'a FunctionCall)>,
    /// Sampled requests whose chunks may still be needed.
    open: Vec<OpenSample>,
    done: Vec<RequestSample>,
    rng: Rng,
}

impl<'a> SamplePlayer<'a> {
    fn request(&mut self, request: usize, is_sampled: bool) {
        self.close(request);
        if is_sampled {
            let chunks = self.folder.known_chunks();
            self.open.push(OpenSample::new(request, &chunks, self.folder.model()));
        }
        self.folder.request();
        // These are not replayed.
        drop(self.folder.take_decisions());
    }

    fn take_in(&mut self, record: &'a Record) {
        if let Some(output) = record.output()
            && let Some((request, call)) = self.calls.remove(&*output.call_id)
        {
            let seen = self.dialects.observe(call, output);
            self.open.iter_mut().for_each(|open| open.take_in(request, &seen, self.folder.model()));
        }
        let counted = |item: &Item| (Arc::new(item.clone()), count_item(&Estimate, item));
        self.folder.push(record.items().iter().map(counted));
    }

    /// Ends the samples whose chunks can no longer be needed.
    fn close(&mut self, request: usize) {
        let is_over = |open: &mut OpenSample| request.saturating_sub(open.request) >= HORIZON_REQUESTS;
        for open in self.open.extract_if(.., is_over) {
            self.done.extend(open.finish(&mut self.rng));
        }
    }
}

/// A sampled request while the following ones are played.
struct OpenSample {
    request: usize,
    chunks: Vec<OpenChunk>,
    /// For each file touched since, the request whose response touched it.
    touched: HashMap<usize, usize>,
}

struct OpenChunk {
    file: usize,
    segment: usize,
    lines: Vec<Arc<str>>,
    known: ChunkSample,
}

impl OpenSample {
    fn new(request: usize, chunks: &[Chunk], model: &FileModel) -> Self {
        let open = |chunk: &Chunk| OpenChunk {
            file: chunk.file,
            segment: chunk.segment,
            lines: chunk.lines(model).iter().map(|line| line.text.clone()).collect(),
            known: ChunkSample {
                terms: terms(&chunk.signs).map(|term| term as f32),
                bytes: chunk.bytes as f32,
                stands_for: 1.0,
                seen_age: chunk.signs.seen_age as f32,
                touched: model.files()[chunk.file].touched,
                is_needed: false,
            },
        };
        Self { request, chunks: chunks.iter().map(open).collect(), touched: HashMap::new() }
    }

    /// Processes a call of the response to a request, with what was known before its output arrived.
    fn take_in(&mut self, request: usize, seen: &Seen, model: &FileModel) {
        // The outputs of an earlier response may still be missing.
        if request < self.request {
            return;
        }
        for observation in &seen.observations {
            for (path, old) in old_texts(observation) {
                let file = model.place(path);
                // Calls of one response are made before any of their outputs is seen.
                let is_open = |file: &usize| self.touched.get(file).is_none_or(|touched| *touched >= request);
                if let Some(file) = file.filter(is_open) {
                    self.need(file, &old);
                }
            }
        }
        let is_touch = |observation: &&Observation| {
            !matches!(observation, Observation::Found { .. } | Observation::Mentioned { .. })
        };
        for path in seen.observations.iter().filter(is_touch).flat_map(Observation::paths) {
            if let Some(file) = model.place(path) {
                self.touched.entry(file).or_insert(request);
            }
        }
    }

    /// Marks a text of a file as needed.
    fn need(&mut self, file: usize, old: &str) {
        let of_file = |chunk: &OpenChunk| chunk.file == file;
        let Some(start) = self.chunks.iter().position(of_file) else { return };
        let end = start + self.chunks[start..].iter().take_while(|chunk| of_file(chunk)).count();
        for segment in self.chunks[start..end].chunk_by_mut(|one, two| one.segment == two.segment) {
            need_in_segment(segment, old);
        }
    }

    /// What was known and needed, if anything was.
    fn finish(self, rng: &mut Rng) -> Option<RequestSample> {
        let (needed, others): (Vec<ChunkSample>, Vec<ChunkSample>) =
            self.chunks.into_iter().map(|chunk| chunk.known).partition(|known| known.is_needed);
        if needed.is_empty() || others.is_empty() {
            return None;
        }
        let most = MOST_CHUNKS.saturating_sub(needed.len()).max(1);
        Some(RequestSample { chunks: needed.into_iter().chain(thinned(others, most, rng)).collect() })
    }
}

/// Samples some chunks, each of which represents several. They are evenly spread, so that all files are included.
fn thinned(mut chunks: Vec<ChunkSample>, most: usize, rng: &mut Rng) -> Vec<ChunkSample> {
    let count = chunks.len();
    if count <= most {
        return chunks;
    }
    let start = rng.below(count);
    chunks.rotate_left(start);
    let mut index = 0;
    chunks.retain(|_| {
        index += 1;
        (index - 1) * most / count != index * most / count
    });
    let stands_for = count as f32 / chunks.len() as f32;
    chunks.iter_mut().for_each(|known| known.stands_for = stands_for);
    chunks
}

/// The texts that must be known to make a change, each with its file.
fn old_texts(change: &Observation) -> Vec<(&str, String)> {
    let texts: Vec<(&str, String)> = match change {
        Observation::Edit { path, old, .. } => vec![(path, old.replace("\r\n", "\n"))],
        Observation::Patch { path, hunks } => hunks.iter().map(|hunk| (path.as_str(), hunk.old.join("\n"))).collect(),
        _ => Vec::new(),
    };
    let trimmed = texts.into_iter().map(|(path, old)| (path, old.trim_matches('\n').to_owned()));
    trimmed.filter(|(_, old)| old.chars().count() >= LEAST_TARGET_CHARS).collect()
}

/// Marks the chunks of a segment that contain a text, if the segment contains all of it.
fn need_in_segment(segment: &mut [OpenChunk], old: &str) {
    let mut text = String::new();
    let mut ends = Vec::new();
    for chunk in segment.iter() {
        for line in &chunk.lines {
            text.push_str(line);
            text.push('\n');
        }
        ends.push(text.len());
    }
    let Some(start) = text.find(old) else { return };
    let first = ends.partition_point(|end| *end <= start);
    let last = ends.partition_point(|end| *end < start + old.len());
    segment[first..=last].iter_mut().for_each(|chunk| chunk.known.is_needed = true);
}
