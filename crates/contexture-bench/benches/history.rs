//! The cost of folding a long history: the next request, the request that folds, processing a read, a restart, and a
//! snapshot of a folder.
//!
//! Every round does the same, so each time is the minimum over all rounds: the cost when nothing interferes. The
//! history has 2 000 messages, about half of them reads of 8 kB, as [`synthetic::history`] makes it.

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture::Item;
use contexture::bpe::Bpe;
use contexture::fold::{FoldDecision, Folder, Meter, Policy, Replay, Rest};
use contexture::tokens::{Estimate, TokenCounter};
use contexture::transcript::Record;
use contexture_bench::{resident_mb, show, synthetic};

/// The number of messages in the history.
const MESSAGES: usize = 2_000;

/// How many times it is played for the measurements.
const ROUNDS: usize = 9;

/// The window sizes, in tokens.
const BUDGETS: [u64; 3] = [32_000, 64_000, 200_000];

/// Folders that are in memory at once, to measure the size of one.
const HELD_FOLDERS: usize = 8;

/// One message of the history.
struct Told {
    items: Vec<Arc<Item>>,
    /// Whether it is the output of a file read.
    is_read: bool,
}

impl Told {
    fn new(record: Record, is_read: bool) -> Self {
        Self { items: record.into_items().into_iter().map(Arc::new).collect(), is_read }
    }

    fn is_response(&self) -> bool {
        self.items[0].is_of_model()
    }

    /// The items with their tokens. Counting is part of processing them.
    fn counted(&self, counter: &dyn TokenCounter) -> impl Iterator<Item = (Arc<Item>, u64)> {
        self.items.iter().map(move |item| (item.clone(), tokens(counter, item)))
    }
}

/// The message at the end of the history.
fn question() -> Told {
    Told::new(Item::user("What is next on the list?").into(), false)
}

fn tokens(counter: &dyn TokenCounter, item: &Item) -> u64 {
    match item {
        Item::Message(message) => counter.count(&message.text_cow()),
        Item::FunctionCallOutput(output) => counter.count(&output.output),
        Item::FunctionCall(call) => 5 + counter.count(&call.arguments),
        Item::Reasoning(_) | Item::Opaque(_) => 0,
    }
}

fn main() {
    let records = synthetic::history(MESSAGES, 42).records;
    let is_read: Vec<bool> = {
        let mut reads = synthetic::reads(&records).peekable();
        records.iter().map(|record| reads.next_if(|read| std::ptr::eq(*read, record)).is_some()).collect()
    };
    let messages: Vec<Told> =
        records.into_iter().zip(is_read).map(|(record, is_read)| Told::new(record, is_read)).collect();
    let reads = messages.iter().filter(|message| message.is_read).count();
    let bytes: usize = messages.iter().flat_map(|message| &message.items).map(|item| text_bytes(item)).sum();
    println!("{MESSAGES} messages, {reads} of them reads, {:.1} MB of text", bytes as f64 / 1e6);
    let counters: [Arc<dyn TokenCounter>; 2] = [Arc::new(Estimate), Arc::new(Bpe::o200k())];
    for counter in &counters {
        // The vocabulary is loaded once and is not part of a folder's cost.
        counter.count("warm up");
        for budget in BUDGETS {
            report(&messages, budget, counter);
        }
    }
    report_memory(&messages, &counters[0]);
}

fn text_bytes(item: &Item) -> usize {
    match item {
        Item::Message(message) => message.text_cow().len(),
        Item::FunctionCallOutput(output) => output.output.len(),
        Item::FunctionCall(_) | Item::Reasoning(_) | Item::Opaque(_) => 0,
    }
}

fn folder(budget: u64, counter: &Arc<dyn TokenCounter>) -> Folder {
    Folder::new(Policy::new(budget), Meter::of_texts(counter.clone()))
}

/// Replays the history with its decisions.
fn resume(folder: Folder, counter: &dyn TokenCounter, messages: &[Told], decisions: Vec<FoldDecision>) -> Folder {
    let mut replay = Replay::new(folder, decisions);
    for message in messages {
        if message.is_response() {
            replay.request();
        }
        replay.push(message.counted(counter));
    }
    replay.go_on()
}

/// The times of each operation, in order.
#[derive(Default)]
struct Times {
    requests: Vec<Duration>,
    folds: Vec<Duration>,
    reads: Vec<Duration>,
    other_messages: Vec<Duration>,
    next: Vec<Duration>,
    resumes: Vec<Duration>,
    rests: Vec<Duration>,
    wakes: Vec<Duration>,
    first_requests: Vec<Duration>,
    /// Bytes of the snapshot.
    rest_bytes: usize,
}

impl Times {
    /// The minimum of these times and those of another round.
    fn least(mut self, round: Times) -> Times {
        let keep = |mine: &mut Vec<Duration>, theirs: Vec<Duration>| {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine = theirs.min(*mine));
        };
        keep(&mut self.requests, round.requests);
        keep(&mut self.folds, round.folds);
        keep(&mut self.reads, round.reads);
        keep(&mut self.other_messages, round.other_messages);
        keep(&mut self.next, round.next);
        keep(&mut self.resumes, round.resumes);
        keep(&mut self.rests, round.rests);
        keep(&mut self.wakes, round.wakes);
        keep(&mut self.first_requests, round.first_requests);
        self
    }

    /// Plays the history once, with a request before every response, and makes one more request at its end.
    fn play(&mut self, mut folder: Folder, counter: &dyn TokenCounter, messages: &[Told]) -> Folder {
        for message in messages {
            if message.is_response() {
                self.request(&mut folder);
            }
            let took = time(|| folder.push(message.counted(counter)));
            if message.is_read { self.reads.push(took) } else { self.other_messages.push(took) }
        }
        folder.push(question().counted(counter));
        let took = time(|| _ = black_box(folder.request()));
        self.next.push(took);
        folder
    }

    /// Takes a snapshot of a folder, stores it, and restores it with the log.
    fn rest(&mut self, played: &Folder, fresh: Folder, log: &[(Arc<Item>, u64)]) {
        let begin = Instant::now();
        let stored = played.rest(log).expect("it is its log").as_bytes().to_vec();
        self.rests.push(begin.elapsed());
        self.rest_bytes = stored.len();
        let begin = Instant::now();
        let mut woken = fresh.wake(&Rest::from_bytes(stored).expect("as it was stored"), log).expect("it is its log");
        self.wakes.push(begin.elapsed());
        woken.cache_is_cold();
        let took = time(|| _ = black_box(woken.request()));
        self.first_requests.push(took);
    }

    fn request(&mut self, folder: &mut Folder) {
        let before = folds(folder);
        let took = time(|| _ = black_box(folder.request()));
        if folds(folder) > before { self.folds.push(took) } else { self.requests.push(took) }
    }
}

fn folds(folder: &Folder) -> usize {
    folder.decisions().iter().filter(|decision| matches!(decision, FoldDecision::Fold(_))).count()
}

fn time(run: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    run();
    begin.elapsed()
}

fn report(messages: &[Told], budget: u64, counter: &Arc<dyn TokenCounter>) {
    let question = question();
    let log: Vec<_> = messages.iter().chain([&question]).flat_map(|message| message.counted(&**counter)).collect();
    let round = |_| {
        let mut times = Times::default();
        let played = times.play(folder(budget, counter), &**counter, messages);
        let decisions = played.decisions().to_vec();
        let fresh = folder(budget, counter);
        times.resumes.push(time(|| drop(resume(fresh, &**counter, messages, decisions))));
        times.rest(&played, folder(budget, counter), &log);
        times
    };
    let times = (0..ROUNDS).map(round).reduce(Times::least).expect("there are rounds");
    println!("\nwindows of {budget} tokens, counted by {}, {} folds", counter.name(), times.folds.len());
    for (what, took) in [
        ("a request", times.requests),
        ("the next request behind all of it", times.next),
        ("a request that folds", times.folds),
        ("taking in a read of 8 kB", times.reads),
        ("taking in another message", times.other_messages),
        ("a restart from log and decisions", times.resumes),
        ("putting the folder to rest", times.rests),
        ("waking it with the log", times.wakes),
        ("a folding request after waking", times.first_requests),
    ] {
        print_row(what, took);
    }
    println!("  the folder at rest has {} kB", times.rest_bytes.div_ceil(1_000));
}

/// Prints the median, the 99th percentile, and the maximum.
fn print_row(what: &str, mut took: Vec<Duration>) {
    took.sort_unstable();
    let Some(worst) = took.last() else { return };
    let (median, late) = (took[took.len() / 2], took[took.len() * 99 / 100]);
    println!("  {what:<36} median {:>9}, 99 of 100 {:>9}, worst {:>9}", show(median), show(late), show(*worst));
}

/// The memory of one folder without the messages and its decisions, which the owner of the log has.
fn report_memory(messages: &[Told], counter: &Arc<dyn TokenCounter>) {
    let Some(before) = resident_mb() else { return };
    let play = |_| {
        let mut folder = Times::default().play(folder(BUDGETS[1], counter), &**counter, messages);
        drop(folder.take_decisions());
        folder
    };
    let held: Vec<Folder> = (0..HELD_FOLDERS).map(play).collect();
    if let Some(after) = resident_mb() {
        println!("\nmemory of a folder beside messages and decisions: {:.1} MB", (after - before) / held.len() as f64);
    }
}
