//! Support for the benchmarks: a stopwatch, synthetic histories and files, and the measures of the program.
//!
//! Each file in `benches/` is a separate program: it makes its input with [`synthetic`], runs closures through
//! [`measure`], and prints the results with [`print_table`]. Run one with `cargo bench -p contexture-bench --bench
//! tokens`. What `contexture-bench fit` does is documented in [`fit`], and `contexture-bench judge` in [`judge`].

pub mod store;
pub mod synthetic;
pub mod fit;
pub mod judge;
pub mod recall;
pub mod twin;

use std::hint::black_box;
use std::time::{Duration, Instant};

/// How many samples are taken.
const SAMPLES: usize = 25;

/// The shortest sample; shorter runs are repeated within it, so that the resolution of the clock does not matter.
const MIN_SAMPLE: Duration = Duration::from_millis(2);

/// No further sample is started once all together took this long, but at least one is taken.
const MAX_TOTAL: Duration = Duration::from_secs(3);

/// How long one run of something takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// What was measured.
    pub name: String,
    /// The fastest sample: the time when nothing interferes.
    pub min: Duration,
    /// The median sample: the time on a machine with other load.
    pub median: Duration,
    /// How many bytes one run processes, if throughput matters.
    pub bytes: Option<u64>,
}

/// Measures how long one call of `run` takes.
///
/// ```
/// let measured = contexture_bench::measure("sum", || (0..100_u64).sum::<u64>());
/// assert!(measured.min <= measured.median);
/// ```
pub fn measure<T>(name: &str, mut run: impl FnMut() -> T) -> Measured {
    let begin = Instant::now();
    let first = time(1, &mut run);
    let repeats = (MIN_SAMPLE.as_nanos() / first.as_nanos().max(1)).clamp(1, 1_000_000) as u32;
    let mut samples = Vec::with_capacity(SAMPLES);
    while samples.is_empty() || (samples.len() < SAMPLES && begin.elapsed() < MAX_TOTAL) {
        samples.push(time(repeats, &mut run) / repeats);
    }
    samples.sort_unstable();
    Measured { name: name.into(), min: samples[0], median: samples[samples.len() / 2], bytes: None }
}

fn time<T>(repeats: u32, run: &mut impl FnMut() -> T) -> Duration {
    let begin = Instant::now();
    for _ in 0..repeats {
        black_box(run());
    }
    begin.elapsed()
}

impl Measured {
    /// Sets how many bytes one run processes.
    pub fn of_bytes(mut self, bytes: usize) -> Self {
        self.bytes = Some(bytes as u64);
        self
    }

    /// Megabytes per second, by the median.
    pub fn mb_per_s(&self) -> Option<f64> {
        self.bytes.map(|bytes| bytes as f64 / 1e6 / self.median.as_secs_f64())
    }
}

/// Prints the measurements, one per line.
pub fn print_table(title: &str, rows: &[Measured]) {
    println!("\n{title}");
    println!("{:<44} {:>12} {:>12} {:>10}", "", "min", "median", "MB/s");
    for row in rows {
        let speed = row.mb_per_s().map_or(String::new(), |speed| format!("{speed:.1}"));
        println!("{:<44} {:>12} {:>12} {speed:>10}", row.name, show(row.min), show(row.median));
    }
}

/// Resident memory of this process, in MB; `None` if the system does not provide it.
pub fn resident_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse::<f64>().ok().map(|kb| kb / 1024.0)
}

/// A duration with three digits and a unit.
pub fn show(duration: Duration) -> String {
    let ns = duration.as_nanos() as f64;
    let (value, unit) = match ns {
        ..1e3 => (ns, "ns"),
        ..1e6 => (ns / 1e3, "µs"),
        ..1e9 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let digits = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
    format!("{value:.digits$} {unit}")
}
