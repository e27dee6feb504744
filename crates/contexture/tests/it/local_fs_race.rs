//! Attacks on local file access by somebody who changes the tree while it is read.
//!
//! Two seconds by default; set `CONTEXTURE_RACE_SECONDS` for a longer siege.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use contexture::fs::LocalFs;
use contexture::host::{FileErrorCode, FsAdapter, ReadLimits};
use rustix::fs::{CWD, RenameFlags, renameat_with};

const SCENES: u32 = 12;

/// How long each scene is fought.
fn duration() -> Duration {
    let seconds = std::env::var("CONTEXTURE_RACE_SECONDS").ok().and_then(|text| text.parse::<f64>().ok());
    Duration::from_secs_f64(seconds.unwrap_or(2.0)) / SCENES
}

/// How many attacks and how many reads a scene has at least, however slow the machine is.
const LEAST: u64 = 50;

/// How often each outcome was seen.
#[derive(Debug, Default)]
struct Tally {
    inside: u64,
    refused: u64,
}

impl Tally {
    /// Reads a file once: what it holds is from inside, or it is refused.
    fn read(&mut self, runtime: &tokio::runtime::Runtime, files: &LocalFs, path: &str, limits: ReadLimits) {
        match runtime.block_on(files.read(path, limits)) {
            Ok(text) => {
                assert_eq!(text.text, "inside", "bytes from outside the base");
                self.inside += 1;
            }
            Err(error) => {
                use FileErrorCode::*;
                assert!(matches!(error.code, SymlinkRejected | PathTraversal | NotFound | ReadFailed), "{error}");
                self.refused += 1;
            }
        }
    }
}

/// Reads `path` over and over while `attack` changes the tree at full speed.
///
/// Before that, both sides of the attack are looked at one after the other, so that both are seen whatever the
/// scheduler does.
fn fight(files: &LocalFs, path: &str, follow_symlinks: bool, attack: impl Fn() + Sync) -> Tally {
    let limits = ReadLimits { max_bytes: 1024, follow_symlinks };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut tally = Tally::default();
    for _ in 0..2 {
        tally.read(&runtime, files, path, limits);
        attack();
    }
    let (done, attacks, mut reads) = (AtomicBool::new(false), AtomicU64::new(0), 0);
    std::thread::scope(|scope| {
        let attacker = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                attack();
                attacks.fetch_add(1, Ordering::Relaxed);
            }
        });
        let start = Instant::now();
        let enough = |reads: u64| reads >= LEAST && attacks.load(Ordering::Relaxed) >= LEAST;
        while start.elapsed() < duration() || !(enough(reads) || attacker.is_finished()) {
            tally.read(&runtime, files, path, limits);
            reads += 1;
        }
        done.store(true, Ordering::Relaxed);
        attacker.join().unwrap();
    });
    tally
}

fn exchange(a: &Path, b: &Path) {
    // Another move may be under way; then this one simply does not happen.
    let _ = renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE);
}

/// The base `inside` with `dir/leaf.txt`, and `outside` with the same names and other bytes.
fn scene() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for side in ["inside", "outside"] {
        fs::create_dir_all(dir.path().join(side).join("dir/sub")).unwrap();
        fs::write(dir.path().join(side).join("dir/leaf.txt"), side).unwrap();
        fs::write(dir.path().join(side).join("dir/sub/leaf.txt"), side).unwrap();
        fs::write(dir.path().join(side).join("leaf.txt"), side).unwrap();
    }
    dir
}

#[test]
fn no_race_yields_bytes_from_outside() {
    for walk in [false, true] {
        for follow_symlinks in [false, true] {
            for (name, tally) in [
                ("directory and link", swap_directory(walk, follow_symlinks)),
                ("leaf and link", swap_leaf(walk, follow_symlinks)),
                ("directory moved out under a link with ..", move_out(walk, follow_symlinks)),
            ] {
                println!("walk {walk}, follow {follow_symlinks}, {name}: {tally:?}");
                assert!(tally.inside + tally.refused > LEAST);
            }
        }
    }
}

fn open(dir: &Path, walk: bool) -> LocalFs {
    let files = LocalFs::open(dir.join("inside")).unwrap();
    if walk { files.without_openat2().unwrap() } else { files }
}

fn swap_directory(walk: bool, follow_symlinks: bool) -> Tally {
    let dir = scene();
    let at = |path: &str| dir.path().join(path);
    symlink(at("outside/dir"), at("inside/evil")).unwrap();
    let tally = fight(&open(dir.path(), walk), "dir/sub/leaf.txt", follow_symlinks, || {
        exchange(&at("inside/dir"), &at("inside/evil"));
    });
    assert!(tally.inside > 0 && tally.refused > 0, "both sides of the race were seen: {tally:?}");
    tally
}

fn swap_leaf(walk: bool, follow_symlinks: bool) -> Tally {
    let dir = scene();
    let at = |path: &str| dir.path().join(path);
    symlink("../../outside/dir/leaf.txt", at("inside/dir/evil.txt")).unwrap();
    let tally = fight(&open(dir.path(), walk), "dir/leaf.txt", follow_symlinks, || {
        exchange(&at("inside/dir/leaf.txt"), &at("inside/dir/evil.txt"));
    });
    assert!(tally.inside > 0 && tally.refused > 0, "both sides of the race were seen: {tally:?}");
    tally
}

/// `dir/sub/up` leads to `../leaf.txt`; while it is followed, `sub` moves out of the base, where `..` is elsewhere.
fn move_out(walk: bool, follow_symlinks: bool) -> Tally {
    let dir = scene();
    let at = |path: &str| dir.path().join(path);
    symlink("../leaf.txt", at("inside/dir/sub/up.txt")).unwrap();
    fs::create_dir(at("outside/hole")).unwrap();
    fs::write(at("outside/hole/leaf.txt"), "outside").unwrap();
    let (home, away) = (at("inside/dir/sub"), at("outside/hole/sub"));
    let tally = fight(&open(dir.path(), walk), "dir/sub/up.txt", follow_symlinks, || {
        fs::rename(&home, &away).unwrap();
        fs::rename(&away, &home).unwrap();
    });
    assert!(follow_symlinks || tally.inside == 0, "{tally:?}");
    tally
}
