//! Every gate of local file access, one by one, with both ways of resolving a path.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use contexture::fs::LocalFs;
use contexture::host::{Base, FileError, FileErrorCode, FileStamp, FsAdapter, ReadLimits};
use tempfile::TempDir;

use crate::wait;

const MAX_BYTES: u64 = 1024 * 1024;
const PLAIN: ReadLimits = ReadLimits { max_bytes: MAX_BYTES, follow_symlinks: false };
const FOLLOWING: ReadLimits = ReadLimits { max_bytes: MAX_BYTES, follow_symlinks: true };

/// No answer, good or bad, may take longer, on a machine that is busy with other things too. What hangs takes for ever,
/// and what reads a file that it should refuse takes longer, since that one has [`HUGE_BYTES`].
const PATIENCE: Duration = Duration::from_secs(10);

/// The size of a file without contents: reading so many zeros takes half a minute and more.
const HUGE_BYTES: u64 = 1 << 37;

/// `outside/secret.txt` beside the base `inside`, which holds files and links of all kinds.
fn tree() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let (inside, outside) = (dir.path().join("inside"), dir.path().join("outside"));
    fs::create_dir_all(inside.join("src/deep/er")).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret.txt"), "outside").unwrap();
    fs::write(inside.join("a.txt"), "a").unwrap();
    fs::write(inside.join("empty.txt"), "").unwrap();
    fs::write(inside.join("src/b.txt"), "b").unwrap();
    fs::write(inside.join("src/deep/er/c.txt"), "c").unwrap();
    fs::write(inside.join("日本.md"), "日本").unwrap();
    fs::write(inside.join("my notes.md"), "notes").unwrap();
    for (target, link) in [
        ("a.txt", "to_a.txt"),
        ("to_a.txt", "to_to_a.txt"),
        ("src", "to_src"),
        ("../a.txt", "src/up.txt"),
        ("../../../a.txt", "src/deep/er/up.txt"),
        ("../outside/secret.txt", "leak.txt"),
        ("../outside", "leak"),
        ("../../outside/secret.txt", "src/leak.txt"),
        ("../inside/a.txt", "out_and_in.txt"),
        ("..", "parent"),
        ("loop.txt", "loop.txt"),
        ("pong", "ping"),
        ("ping", "pong"),
        ("nowhere.txt", "dangling.txt"),
        (".", "src/here"),
        ("a.txt/", "slashed.txt"),
    ] {
        symlink(target, inside.join(link)).unwrap();
    }
    symlink(outside.join("secret.txt"), inside.join("absolute.txt")).unwrap();
    symlink(inside.join("a.txt"), inside.join("absolute_inside.txt")).unwrap();
    symlink(inside.join("src"), inside.join("absolute_src")).unwrap();
    symlink(inside.join("src/../../outside/secret.txt"), inside.join("absolute_out.txt")).unwrap();
    dir
}

fn both(base: &Path) -> [LocalFs; 2] {
    let files = LocalFs::open(base).unwrap();
    let walking = files.without_openat2().unwrap();
    [files, walking]
}

/// Reads and looks, which must agree on everything that a look can see, and be quick.
#[track_caller]
fn read(files: &LocalFs, path: &str, limits: ReadLimits) -> Result<String, FileErrorCode> {
    let start = Instant::now();
    let (text, stamp) = wait(async { (files.read(path, limits).await, files.stat(path, limits).await) });
    assert!(start.elapsed() < PATIENCE, "{path:?} took {:?}", start.elapsed());
    match (&text, &stamp) {
        (Ok(text), Ok(stamp)) => assert!(text.stamp.matches(stamp), "{path:?}"),
        (Err(error), Err(other)) => assert_eq!(error, other),
        // Only reading can tell these.
        (Err(FileError { code: FileErrorCode::NotText | FileErrorCode::PermissionDenied, .. }), Ok(_)) => {}
        _ => panic!("{path:?}: {text:?} but {stamp:?}"),
    }
    if let Err(error) = &text {
        assert_eq!(error.path, path, "errors carry the path as asked for");
    }
    text.map(|text| text.text).map_err(|error| error.code)
}

#[track_caller]
fn check(path: &str, limits: ReadLimits, expected: Result<&str, FileErrorCode>) {
    let dir = tree();
    for files in both(&dir.path().join("inside")) {
        assert_eq!(read(&files, path, limits).as_deref().map_err(|code| *code), expected, "{path:?} by {files:?}");
    }
}

#[test]
fn plain_files_are_read() {
    check("a.txt", PLAIN, Ok("a"));
    check("./a.txt", PLAIN, Ok("a"));
    check("src/b.txt", PLAIN, Ok("b"));
    check("src//b.txt", PLAIN, Ok("b"));
    check("src/deep/er/c.txt", PLAIN, Ok("c"));
    check("src/../a.txt", PLAIN, Ok("a"));
    check("empty.txt", PLAIN, Ok(""));
    check("日本.md", PLAIN, Ok("日本"));
    check("my notes.md", PLAIN, Ok("notes"));
}

#[test]
fn paths_that_lead_out_are_refused() {
    for limits in [PLAIN, FOLLOWING] {
        check("../outside/secret.txt", limits, Err(FileErrorCode::PathTraversal));
        check("src/../../outside/secret.txt", limits, Err(FileErrorCode::PathTraversal));
        check("..", limits, Err(FileErrorCode::PathTraversal));
        check("/etc/passwd", limits, Err(FileErrorCode::AbsolutePath));
        check("//etc/passwd", limits, Err(FileErrorCode::AbsolutePath));
    }
}

#[test]
fn links_are_refused_at_every_depth_unless_followed() {
    for path in [
        "to_a.txt",
        "to_to_a.txt",
        "to_src/b.txt",
        "to_src/deep/er/c.txt",
        "src/up.txt",
        "src/deep/er/up.txt",
        "src/here/b.txt",
        "leak.txt",
        "leak/secret.txt",
        "src/leak.txt",
        "absolute.txt",
        "parent/outside/secret.txt",
        "loop.txt",
        "ping",
        "dangling.txt",
        "out_and_in.txt",
    ] {
        check(path, PLAIN, Err(FileErrorCode::SymlinkRejected));
    }
}

#[test]
fn followed_links_must_stay_beneath_the_base() {
    check("to_a.txt", FOLLOWING, Ok("a"));
    check("to_to_a.txt", FOLLOWING, Ok("a"));
    check("to_src/b.txt", FOLLOWING, Ok("b"));
    check("to_src/deep/er/up.txt", FOLLOWING, Ok("a"));
    check("src/up.txt", FOLLOWING, Ok("a"));
    check("src/here/here/here/b.txt", FOLLOWING, Ok("b"));
    check("leak.txt", FOLLOWING, Err(FileErrorCode::PathTraversal));
    check("leak/secret.txt", FOLLOWING, Err(FileErrorCode::PathTraversal));
    check("src/leak.txt", FOLLOWING, Err(FileErrorCode::PathTraversal));
    check("absolute.txt", FOLLOWING, Err(FileErrorCode::PathTraversal));
    // An absolute target beneath the base is looked up from the base.
    check("absolute_inside.txt", FOLLOWING, Ok("a"));
    check("absolute_src/deep/er/c.txt", FOLLOWING, Ok("c"));
    check("absolute_out.txt", FOLLOWING, Err(FileErrorCode::PathTraversal));
    check("out_and_in.txt", FOLLOWING, Err(FileErrorCode::PathTraversal));
    check("parent/inside/a.txt", FOLLOWING, Err(FileErrorCode::PathTraversal));
    check("loop.txt", FOLLOWING, Err(FileErrorCode::SymlinkRejected));
    check("ping/a.txt", FOLLOWING, Err(FileErrorCode::SymlinkRejected));
    check("dangling.txt", FOLLOWING, Err(FileErrorCode::NotFound));
    check("slashed.txt", FOLLOWING, Err(FileErrorCode::NotFound));
}

#[test]
fn what_is_not_there_is_not_found() {
    for limits in [PLAIN, FOLLOWING] {
        check("nothing.txt", limits, Err(FileErrorCode::NotFound));
        check("no/such/dir.txt", limits, Err(FileErrorCode::NotFound));
        check("a.txt/b.txt", limits, Err(FileErrorCode::NotFound));
    }
}

#[test]
fn odd_paths_give_a_code_and_no_panic() {
    let long = "a".repeat(300);
    let deep = "d/".repeat(3000) + "a.txt";
    for limits in [PLAIN, FOLLOWING] {
        check("", limits, Err(FileErrorCode::NotAFile));
        check(".", limits, Err(FileErrorCode::NotAFile));
        check("src", limits, Err(FileErrorCode::NotAFile));
        check("src/", limits, Err(FileErrorCode::NotAFile));
        check("a\0.txt", limits, Err(FileErrorCode::ReadFailed));
        check(&long, limits, Err(FileErrorCode::ReadFailed));
        check(&deep, limits, Err(FileErrorCode::ReadFailed));
        check("a\n.txt", limits, Err(FileErrorCode::NotFound));
    }
    check("slashed.txt", PLAIN, Err(FileErrorCode::SymlinkRejected));
}

#[test]
fn only_regular_files_are_read_and_nothing_blocks() {
    let dir = tempfile::tempdir().unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, dir.path().join("pipe.txt"), rustix::fs::Mode::RWXU).unwrap();
    let _listener = UnixListener::bind(dir.path().join("socket.txt")).unwrap();
    fs::create_dir(dir.path().join("dir.txt")).unwrap();
    for files in both(dir.path()) {
        for name in ["pipe.txt", "socket.txt", "dir.txt"] {
            for limits in [PLAIN, FOLLOWING] {
                assert_eq!(read(&files, name, limits), Err(FileErrorCode::NotAFile), "{name}");
            }
        }
    }
    for files in both(Path::new("/dev")) {
        for name in ["null", "zero"] {
            assert_eq!(read(&files, name, PLAIN), Err(FileErrorCode::NotAFile), "{name}");
        }
    }
}

#[test]
fn sizes_are_limited() {
    let dir = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: usize| fs::write(dir.path().join(name), "x".repeat(bytes)).unwrap();
    write("at.txt", MAX_BYTES as usize);
    write("above.txt", MAX_BYTES as usize + 1);
    fs::File::create(dir.path().join("sparse.txt")).unwrap().set_len(HUGE_BYTES).unwrap();
    for files in both(dir.path()) {
        assert_eq!(read(&files, "at.txt", PLAIN).map(|text| text.len()), Ok(MAX_BYTES as usize));
        assert_eq!(read(&files, "above.txt", PLAIN), Err(FileErrorCode::FileTooLarge));
        assert_eq!(read(&files, "sparse.txt", PLAIN), Err(FileErrorCode::FileTooLarge));
        let nothing = ReadLimits { max_bytes: 0, follow_symlinks: false };
        assert_eq!(read(&files, "at.txt", nothing), Err(FileErrorCode::FileTooLarge));
    }
}

#[test]
fn only_text_is_read() {
    let dir = tempfile::tempdir().unwrap();
    for (name, bytes) in [
        ("latin1.txt", b"caf\xe9".as_slice()),
        ("utf16.txt", b"\xff\xfeh\0i\0"),
        ("cut.txt", b"\xe6\x97"),
        ("nul.txt", b"a\0b"),
        ("overlong.txt", b"\xc0\xaf"),
        ("surrogate.txt", b"\xed\xa0\x80"),
    ] {
        fs::write(dir.path().join(name), bytes).unwrap();
        for files in both(dir.path()) {
            assert_eq!(read(&files, name, PLAIN), Err(FileErrorCode::NotText), "{name}");
        }
    }
}

/// As a user without rights, on a thread of its own, since the superuser may read everything.
#[test]
fn what_the_system_forbids_is_permission_denied() {
    let dir = tempfile::tempdir().unwrap();
    let mode = |path: &Path, mode: u32| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let (file, locked) = (dir.path().join("file.txt"), dir.path().join("locked"));
    fs::write(&file, "x").unwrap();
    fs::create_dir(&locked).unwrap();
    fs::write(locked.join("file.txt"), "x").unwrap();
    mode(dir.path(), 0o755);
    mode(&file, 0);
    mode(&locked, 0);
    let files = both(dir.path());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            if rustix::process::geteuid().is_root() {
                let nobody = rustix::fs::Uid::from_raw(65534);
                rustix::thread::set_thread_res_uid(nobody, nobody, nobody).unwrap();
            }
            for files in &files {
                assert_eq!(read(files, "file.txt", PLAIN), Err(FileErrorCode::PermissionDenied));
                assert_eq!(read(files, "locked/file.txt", PLAIN), Err(FileErrorCode::PermissionDenied));
            }
        });
    });
    mode(&locked, 0o755);
}

#[test]
fn a_file_that_grows_or_shrinks_while_it_is_read_stays_within_the_limit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("log.txt");
    fs::write(&path, "").unwrap();
    let files = LocalFs::open(dir.path()).unwrap();
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut log = fs::OpenOptions::new().append(true).open(&path).unwrap();
            let line = "line\n".repeat(1000);
            while !done.load(Ordering::Relaxed) {
                log.write_all(line.as_bytes()).unwrap();
                if log.metadata().unwrap().len() > 2 * MAX_BYTES {
                    log.set_len(0).unwrap();
                }
            }
        });
        let start = Instant::now();
        let (mut texts, mut refusals) = (0, 0);
        while start.elapsed() < Duration::from_millis(300) || texts == 0 || refusals == 0 {
            match wait(files.read("log.txt", PLAIN)) {
                Ok(text) => {
                    texts += 1;
                    assert!(text.text.len() as u64 <= MAX_BYTES);
                }
                Err(error) => {
                    refusals += 1;
                    assert_eq!(error.code, FileErrorCode::FileTooLarge);
                }
            }
            assert!(start.elapsed() < Duration::from_secs(20), "{texts} texts, {refusals} refusals");
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn every_kind_of_change_shows_in_the_stamp() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    fs::create_dir(at("src")).unwrap();
    fs::write(at("src/a.txt"), "one").unwrap();
    for files in both(dir.path()) {
        let look = || wait(files.stat("src/a.txt", PLAIN)).unwrap();
        let differs = |before: FileStamp, what: &str| {
            let after = look();
            assert!(!before.matches(&after), "{what}");
            after
        };
        let before = look();
        fs::write(at("src/a.txt"), "three").unwrap();
        let before = differs(before, "change of size");
        fs::write(at("other.txt"), "three").unwrap();
        fs::rename(at("other.txt"), at("src/a.txt")).unwrap();
        let before = differs(before, "rename over");
        fs::remove_file(at("src/a.txt")).unwrap();
        assert_eq!(wait(files.stat("src/a.txt", PLAIN)).unwrap_err().code, FileErrorCode::NotFound);
        fs::write(at("src/a.txt"), "three").unwrap();
        let after = look();
        assert!(!before.matches(&after) || !after.settled, "recreated");
        fs::create_dir(at("new")).unwrap();
        fs::write(at("new/a.txt"), "three").unwrap();
        fs::rename(at("src"), at("old")).unwrap();
        fs::rename(at("new"), at("src")).unwrap();
        differs(after, "rename over the parent directory");
        fs::remove_dir_all(at("old")).unwrap();
    }
}

#[test]
fn many_files_are_looked_at_as_one_by_one() {
    let dir = tree();
    let paths = [
        "a.txt",
        "src/b.txt",
        "src/deep/er/c.txt",
        "src/up.txt",
        "src/none.txt",
        "leak/secret.txt",
        "leak/other.txt",
        "to_src/b.txt",
        "../x",
        "/x",
        "src",
        "a.txt",
    ];
    for files in both(&dir.path().join("inside")) {
        for limits in [PLAIN, FOLLOWING] {
            let many = wait(files.stat_many(&paths, limits));
            let single: Vec<_> = paths.iter().map(|path| wait(files.stat(path, limits))).collect();
            let settle = |stamp: Result<FileStamp, FileError>| stamp.map(|stamp| FileStamp { settled: true, ..stamp });
            assert_eq!(
                many.into_iter().map(settle).collect::<Vec<_>>(),
                single.into_iter().map(settle).collect::<Vec<_>>()
            );
        }
    }
}

#[test]
fn the_base_is_held_by_handle() {
    let dir = tree();
    for files in both(&dir.path().join("inside")) {
        fs::rename(dir.path().join("inside"), dir.path().join("moved")).unwrap();
        symlink(dir.path().join("outside"), dir.path().join("inside")).unwrap();
        assert_eq!(read(&files, "a.txt", PLAIN), Ok("a".to_owned()));
        assert_eq!(read(&files, "secret.txt", PLAIN), Err(FileErrorCode::NotFound));
        fs::remove_file(dir.path().join("inside")).unwrap();
        fs::rename(dir.path().join("moved"), dir.path().join("inside")).unwrap();
    }
}

#[test]
fn a_base_that_is_no_directory_is_refused() {
    let dir = tree();
    let code = |path: &str| LocalFs::open(dir.path().join(path)).map(|_| ()).unwrap_err().code;
    assert_eq!(code("inside/a.txt"), FileErrorCode::NotAFile);
    assert_eq!(code("nowhere"), FileErrorCode::NotFound);
}

#[test]
fn messages_hold_no_path_of_the_host() {
    let dir = tree();
    let host = dir.path().to_str().unwrap().to_owned();
    for files in both(&dir.path().join("inside")) {
        for path in ["leak.txt", "src", "absolute.txt", "none.txt", "../x", "loop.txt", "a\0"] {
            for limits in [PLAIN, FOLLOWING] {
                let error = wait(files.read(path, limits)).unwrap_err();
                assert!(!error.to_string().contains(&host), "{error}");
            }
        }
    }
}

#[test]
fn a_base_that_is_moved_or_made_again_is_noticed() {
    let dir = tree();
    let inside = dir.path().join("inside");
    for files in both(&inside) {
        let base = || wait(files.base());
        assert!(matches!(base(), Base::Here { device: Some(_), names } if !names.is_empty()));
        let moved = dir.path().join("moved");
        fs::rename(&inside, &moved).unwrap();
        assert_eq!(base(), Base::Gone);
        assert_eq!(files.base_names(), Vec::<String>::new());
        fs::create_dir(&inside).unwrap();
        assert_eq!(base(), Base::Replaced);
        fs::remove_dir(&inside).unwrap();
        fs::write(&inside, "a file").unwrap();
        assert_eq!(base(), Base::Replaced);
        fs::remove_file(&inside).unwrap();
        fs::rename(&moved, &inside).unwrap();
        assert!(matches!(base(), Base::Here { .. }));
    }
}
