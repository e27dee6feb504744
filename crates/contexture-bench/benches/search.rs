//! Prints the cost of semantic recall in a large index: `cargo bench -p contexture-bench --bench search [-- DIRECTORY]`.
//!
//! Items are added in batches to an index on disk, and questions are asked at 1 000, 10 000 and 100 000 items. Ratios
//! compare sizes on the same machine: the time of a question should grow far less than the number of items.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture::bpe::Bpe;
use contexture::recall::{Extent, Passage, PastIndex, PastQuery};
use contexture::store::SqliteIndex;
use contexture_bench::show;

const SIZES: [usize; 3] = [1_000, 10_000, 100_000];
const BATCH: usize = 256;
const QUESTIONS: usize = 60;

const SUBJECTS: &[&str] =
    &["The parser", "My sister", "The release", "Our neighbour", "The cache", "A customer", "The test"];
const VERBS: &[&str] =
    &["moved to", "depends on", "was fixed by", "talked about", "is slower than", "failed because of"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // `cargo bench` adds an option of its own.
    let parent = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let parent = parent.map_or_else(std::env::temp_dir, PathBuf::from);
    let directory = tempfile::tempdir_in(parent)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build()?;
    runtime.block_on(async {
        let past = PastIndex::new(Arc::new(SqliteIndex::new(directory.path().join("index.db"))), "resource:someone");
        let (mut added, mut medians) = (0, Vec::new());
        for size in SIZES {
            let begin = Instant::now();
            let first = added;
            while added < size {
                let end = (added + BATCH).min(size);
                past.add((added..end).map(passage).collect()).await?;
                added = end;
            }
            let each = begin.elapsed() / u32::try_from(size - first)?;
            let (fitting, full) = (ask(&past, Extent::Fitting).await?, ask(&past, Extent::Full).await?);
            println!(
                "{size:>7} items: added in {} each, a question takes {} (p90 {}), one that fills 4 000 tokens {}",
                show(each),
                show(fitting.0),
                show(fitting.1),
                show(full.0)
            );
            medians.push(fitting.0);
        }
        let ratio = medians[2].as_secs_f64() / medians[0].as_secs_f64();
        println!("a question at 100 000 items takes {ratio:.1} times one at 1 000");
        Ok(())
    })
}

/// Words of a Zipf-like vocabulary, and a rare one for each item.
fn passage(number: usize) -> Passage {
    let mixed = (number as u64).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let pick = |from: &[&'static str], shift: u32| from[(mixed >> shift) as usize % from.len()];
    let mut text = format!("{} {}", pick(SUBJECTS, 7), pick(VERBS, 13));
    for word in 0..18_u32 {
        // Small numbers are frequent.
        let uniform =
            ((mixed.rotate_left(word * 3) ^ u64::from(word)).wrapping_mul(0xBF58_476D_1CE4_E5B9) >> 11) as f64;
        let rank = (8_000.0_f64.powf(uniform / (1_u64 << 53) as f64)) as u64;
        text.push_str(&format!(" word{}", letters(rank)));
    }
    text.push_str(&format!(" and item{}.", letters(number as u64)));
    let (thread, speaker) = (format!("thread {}", number / 500), ["user", "assistant"][number % 2].to_owned());
    Passage {
        thread,
        position: number as u64,
        id: None,
        speaker,
        at_ms: Some(1_700_000_000_000 + number as u64 * 60_000),
        source: None,
        text,
    }
}

/// A number as a word, so that it is one term.
fn letters(mut number: u64) -> String {
    let mut word = String::new();
    loop {
        word.push(char::from(b'a' + (number % 26) as u8));
        number /= 26;
        if number == 0 {
            return word;
        }
    }
}

/// The median and the ninth decile of the times that questions take.
async fn ask(past: &PastIndex, extent: Extent) -> Result<(Duration, Duration), Box<dyn std::error::Error>> {
    let counter = Bpe::o200k();
    let mut times = Vec::new();
    for question in 0..QUESTIONS {
        let text = format!(
            "What did my sister say about word{} and item{}?",
            letters(question as u64 * 40 + 3),
            letters(question as u64 * 7)
        );
        let query = PastQuery {
            text: &text,
            now_ms: 1_800_000_000_000,
            budget: 4_000,
            counter: &counter,
            extent,
            visible: None,
        };
        let begin = Instant::now();
        past.search(query).await?;
        times.push(begin.elapsed());
    }
    times.sort_unstable();
    Ok((times[QUESTIONS / 2], times[QUESTIONS * 9 / 10]))
}
