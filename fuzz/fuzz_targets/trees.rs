//! Any tree of directories, files and links, and any paths: nothing from outside is read, and both resolvers agree.

#![no_main]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use arbitrary::Arbitrary;
use contexture::fs::LocalFs;
use contexture::host::{FsAdapter, ReadLimits};
use libfuzzer_sys::fuzz_target;

const NAMES: [&str; 8] = ["a", "b", "c.rs", "..", ".", "", "outside", "inside"];

#[derive(Arbitrary, Debug)]
enum Plant {
    Directory(Vec<u8>),
    File(Vec<u8>),
    Link { at: Vec<u8>, target: Vec<u8>, absolute: bool },
    Pipe(Vec<u8>),
}

#[derive(Arbitrary, Debug)]
struct Input {
    plants: Vec<Plant>,
    paths: Vec<Vec<u8>>,
    raw_path: String,
}

fn path(bytes: &[u8]) -> String {
    bytes.iter().take(12).map(|byte| NAMES[usize::from(*byte) % NAMES.len()]).collect::<Vec<_>>().join("/")
}

/// Where to plant: beneath the base, through directories only.
fn place(base: &Path, bytes: &[u8]) -> Option<PathBuf> {
    let mut place = base.to_owned();
    for byte in bytes.iter().take(4) {
        if place != base && !place.symlink_metadata().is_ok_and(|metadata| metadata.is_dir()) {
            fs::create_dir(&place).ok()?;
        }
        place.push(NAMES[usize::from(*byte) % 3]);
    }
    (place != base && place.symlink_metadata().is_err()).then_some(place)
}

fn plant(base: &Path, outside: &Path, plant: &Plant) -> Option<()> {
    match plant {
        Plant::Directory(at) => fs::create_dir(place(base, at)?).ok(),
        Plant::File(at) => fs::write(place(base, at)?, "inside").ok(),
        Plant::Link { at, target, absolute } => {
            let target = path(target);
            let target = if *absolute { format!("{}/{target}", outside.display()) } else { target };
            symlink(target, place(base, at)?).ok()
        }
        Plant::Pipe(at) => rustix::fs::mkfifoat(rustix::fs::CWD, place(base, at)?, rustix::fs::Mode::RWXU).ok(),
    }
}

fuzz_target!(|input: Input| {
    let dir = tempfile::tempdir().expect("a directory");
    let (inside, outside) = (dir.path().join("inside"), dir.path().join("outside"));
    fs::create_dir(&inside).expect("the base");
    fs::create_dir(&outside).expect("the outside");
    fs::write(outside.join("c.rs"), "outside").expect("a secret");
    for planted in input.plants.iter().take(32) {
        plant(&inside, &outside, planted);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let files = LocalFs::open(&inside).expect("the base opens");
    let walking = files.without_openat2().expect("and again");
    let paths = input.paths.iter().take(32).map(|bytes| path(bytes)).chain([input.raw_path]);
    for path in paths {
        for follow_symlinks in [false, true] {
            let limits = ReadLimits { max_bytes: 100, follow_symlinks };
            let read = |files: &LocalFs| {
                let read = runtime.block_on(files.read(&path, limits));
                read.map(|text| text.text).map_err(|error| error.code)
            };
            let (one, other) = (read(&files), read(&walking));
            assert_eq!(one, other, "{path:?}");
            assert_ne!(one.as_deref(), Ok("outside"), "{path:?}");
        }
    }
});
