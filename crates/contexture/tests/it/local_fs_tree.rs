//! Any path in any tree of directories, files and links: both ways of resolving agree, and neither leaves the base.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use contexture::fs::LocalFs;
use contexture::host::{FileErrorCode, FsAdapter, ReadLimits, relative_path};
use contexture::layers::FileReferenceOptions;
use contexture::layers::file_reference::testing::Conversation;
use proptest::prelude::*;

use crate::wait;

/// Something to put into a tree, if it can be put there.
#[derive(Clone, Debug)]
enum Plant {
    Directory(String),
    File(String),
    Link { at: String, target: String },
    Pipe(String),
}

fn name() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["a", "b", "c", "d.rs", "e.rs"])
}

fn place() -> impl Strategy<Value = String> {
    prop::collection::vec(name(), 1..4).prop_map(|names| names.join("/"))
}

/// A path as somebody hostile would write it.
fn path() -> impl Strategy<Value = String> {
    let component = prop_oneof![8 => name(), 2 => Just(".."), 1 => Just("."), 1 => Just("")];
    let absolute = prop::bool::weighted(0.05);
    (absolute, prop::collection::vec(component, 1..7)).prop_map(|(absolute, components)| {
        let path = components.join("/");
        if absolute { format!("/{path}") } else { path }
    })
}

fn plant() -> impl Strategy<Value = Plant> {
    let outside = prop::sample::select(vec![
        "../outside/secret.rs",
        "../../outside",
        "../outside",
        "OUTSIDE/secret.rs",
        "OUTSIDE",
        "/",
    ]);
    let target = prop_oneof![4 => path(), 1 => outside.prop_map(str::to_owned)];
    prop_oneof![
        3 => place().prop_map(Plant::Directory),
        3 => place().prop_map(Plant::File),
        4 => (place(), target).prop_map(|(at, target)| Plant::Link { at, target }),
        1 => place().prop_map(Plant::Pipe),
    ]
}

/// A base `inside` with these plants, beside `outside` with a secret.
fn grow(plants: &[Plant]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let (inside, outside) = (dir.path().join("inside"), dir.path().join("outside"));
    fs::create_dir(&inside).unwrap();
    fs::create_dir(&outside).unwrap();
    for name in ["secret.rs", "d.rs", "e.rs"] {
        fs::write(outside.join(name), "outside").unwrap();
    }
    for plant in plants {
        let (Plant::Directory(at) | Plant::File(at) | Plant::Link { at, .. } | Plant::Pipe(at)) = plant;
        // Never through a link: that would plant outside.
        if !leads_through_directories(&inside, at) || inside.join(at).symlink_metadata().is_ok() {
            continue;
        }
        let at = inside.join(at);
        match plant {
            Plant::Directory(_) => fs::create_dir(at).unwrap(),
            Plant::File(_) => fs::write(at, "inside").unwrap(),
            Plant::Link { target, .. } => {
                let target = target.replace("OUTSIDE", outside.to_str().unwrap());
                let target = if target.is_empty() { ".".to_owned() } else { target };
                symlink(target, at).unwrap();
            }
            Plant::Pipe(_) => rustix::fs::mkfifoat(rustix::fs::CWD, at, rustix::fs::Mode::RWXU).unwrap(),
        }
    }
    dir
}

/// Makes the directories above a place, unless something else is in the way.
fn leads_through_directories(base: &Path, at: &str) -> bool {
    let mut here = base.to_owned();
    let mut components: Vec<&str> = at.split('/').collect();
    components.pop();
    for component in components {
        here.push(component);
        match here.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => {}
            Ok(_) => return false,
            Err(_) => fs::create_dir(&here).unwrap(),
        }
    }
    true
}

/// What reading must come to when links are not followed, by looking at one component after the other.
fn expected(base: &Path, path: &str) -> Result<(), FileErrorCode> {
    let relative = relative_path(path).map_err(|error| error.code)?;
    let mut here = base.to_owned();
    let components: Vec<&str> = relative.split('/').collect();
    for (index, component) in components.iter().enumerate() {
        here.push(component);
        let metadata = here.symlink_metadata().map_err(|_| FileErrorCode::NotFound)?;
        let last = index + 1 == components.len();
        match metadata.file_type() {
            kind if kind.is_symlink() => return Err(FileErrorCode::SymlinkRejected),
            kind if last && kind.is_file() => {}
            _ if last => return Err(FileErrorCode::NotAFile),
            kind if kind.is_dir() => {}
            _ => return Err(FileErrorCode::NotFound),
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn both_resolvers_agree_and_stay_inside(
        plants in prop::collection::vec(plant(), 0..16),
        paths in prop::collection::vec(path(), 1..16),
    ) {
        let dir = grow(&plants);
        let base = dir.path().join("inside");
        let files = LocalFs::open(&base).unwrap();
        let walking = files.without_openat2().unwrap();
        for follow_symlinks in [false, true] {
            let limits = ReadLimits { max_bytes: 100, follow_symlinks };
            for path in &paths {
                let [one, other] = [&files, &walking].map(|files| wait(files.read(path, limits)));
                let [one, other] = [one, other].map(|read| read.map(|text| text.text).map_err(|error| error.code));
                prop_assert_eq!(&one, &other, "{}, follow {}", path, follow_symlinks);
                prop_assert!(one.as_deref() != Ok("outside"), "{} escaped", path);
                let [look, walked] = [&files, &walking].map(|files| wait(files.stat(path, limits)).map_err(|error| error.code));
                prop_assert_eq!(look.map(|_| ()), one.clone().map(|_| ()), "look and read: {}", path);
                prop_assert_eq!(walked.map(|_| ()), one.clone().map(|_| ()), "walking look and read: {}", path);
                if !follow_symlinks {
                    prop_assert_eq!(one.map(|_| ()), expected(&base, path), "{}", path);
                }
            }
        }
    }

    #[test]
    fn a_message_with_any_references_shows_nothing_from_outside(
        plants in prop::collection::vec(plant(), 0..12),
        paths in prop::collection::vec(path(), 1..12),
        follow_symlinks: bool,
    ) {
        let dir = grow(&plants);
        let files = LocalFs::open(dir.path().join("inside")).unwrap();
        let options = FileReferenceOptions { follow_symlinks, ..Default::default() };
        let mut talk = Conversation::new(Arc::new(files), options).unwrap();
        let message: String = paths.iter().map(|path| format!("#\"{path}\" #{path} ")).collect();
        let shown = wait(talk.ask(&message));
        prop_assert!(!shown.contains("\noutside\n"), "{}", shown);
        prop_assert!(!shown.contains(dir.path().to_str().unwrap()), "{}", shown);
        for path in paths.iter().filter(|path| !path.is_empty()) {
            prop_assert!(talk.state().find(path).is_some() || relative_path(path).is_ok(), "{} is not tracked", path);
        }
    }
}
