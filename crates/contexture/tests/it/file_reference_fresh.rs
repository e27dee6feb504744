//! The layer over real files: the next window is right, whatever happened to them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contexture::fs::LocalFs;
use contexture::layers::FileReferenceOptions;
use contexture::layers::file_reference::testing::Conversation;
use tempfile::TempDir;

use crate::wait;

struct Project {
    dir: TempDir,
    talk: Conversation,
}

impl Project {
    fn new() -> Self {
        Self::with(FileReferenceOptions::default())
    }

    fn with(options: FileReferenceOptions) -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("src")).unwrap();
        let files = LocalFs::open(dir.path()).unwrap();
        let talk = Conversation::new(Arc::new(files), options).unwrap();
        Self { dir, talk }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        fs::write(self.at(path), text).unwrap();
    }

    /// The next window holds this, and was rendered anew if it had to be.
    #[track_caller]
    fn next(&mut self, what: &str, rerender: bool, expected: &str) {
        let appended = wait(self.talk.say("go on"));
        assert_eq!(appended.rerender, rerender, "{what}");
        let shown = wait(self.talk.recall()).unwrap();
        assert!(shown.contains(expected), "{what}: {shown}");
        assert!(!shown.contains(self.dir.path().to_str().unwrap()), "no path of the host: {shown}");
    }
}

#[test]
fn every_change_is_in_the_next_window() {
    let mut project = Project::new();
    project.write("src/a.rs", "one");
    wait(project.talk.ask("#src/a.rs"));
    project.next("nothing", false, "\none\n");
    project.write("src/a.rs", "three");
    project.next("change", true, "\nthree\n");
    project.write("src/a.rs", "seven");
    project.next("change of the same size", true, "\nseven\n");
    project.write("other.rs", "eight");
    fs::rename(project.at("other.rs"), project.at("src/a.rs")).unwrap();
    project.next("rename over", true, "\neight\n");
    fs::remove_file(project.at("src/a.rs")).unwrap();
    project.next("delete", true, "- `src/a.rs`: deleted");
    project.write("src/a.rs", "eight");
    project.next("recreate with equal bytes", true, "\neight\n");
    fs::remove_file(project.at("src/a.rs")).unwrap();
    project.write("src/a.rs", "eight");
    project.next("delete and recreate with equal bytes", false, "\neight\n");
    project.write("src/a.rs", "");
    project.next("empty", true, "The file is empty.");
    project.write("src/a.rs", "full");
    project.next("full again", true, "\nfull\n");
    fs::set_permissions(project.at("src/a.rs"), fs::Permissions::from_mode(0o640)).unwrap();
    project.next("chmod", false, "\nfull\n");
    fs::remove_file(project.at("src/a.rs")).unwrap();
    fs::create_dir(project.at("src/a.rs")).unwrap();
    project.next("file to directory", true, "- `src/a.rs`: NOT_A_FILE, it is a directory");
    fs::remove_dir(project.at("src/a.rs")).unwrap();
    project.write("src/a.rs", "file");
    project.next("and back", true, "\nfile\n");
    fs::rename(project.at("src"), project.at("old")).unwrap();
    fs::create_dir(project.at("src")).unwrap();
    project.write("src/a.rs", "next");
    project.next("rename over the parent", true, "\nnext\n");
    fs::rename(project.at("src"), project.at("real")).unwrap();
    symlink("real", project.at("src")).unwrap();
    project.next("the parent is a link to the same", true, "- `src/a.rs`: SYMLINK_REJECTED");
    fs::remove_file(project.at("src")).unwrap();
    project.next("the parent is gone", true, "- `src/a.rs`: NOT_FOUND");
    fs::rename(project.at("real"), project.at("src")).unwrap();
    project.next("the parent is back", true, "\nnext\n");
    project.write("src/a.rs", "\u{0}");
    project.next("binary", true, "- `src/a.rs`: NOT_TEXT");
    project.write("src/a.rs", "text");
    project.next("text again", true, "\ntext\n");
}

/// Hundreds of changes of the same size, as fast as they can be made and seen: some share a tick of the clock.
#[test]
fn changes_within_the_same_millisecond_are_seen() {
    let mut project = Project::new();
    project.write("src/a.rs", "0000");
    wait(project.talk.ask("#src/a.rs"));
    for n in 1..500 {
        let text = format!("{n:04}");
        project.write("src/a.rs", &text);
        project.next(&text, true, &format!("\n{text}\n"));
    }
}

#[test]
fn permissions_taken_and_given_back_are_seen() {
    let mut project = Project::new();
    project.write("src/a.rs", "text");
    fs::set_permissions(project.dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mode = |mode| fs::set_permissions(project.at("src/a.rs"), fs::Permissions::from_mode(mode)).unwrap();
            mode(0o000);
            let nobody = rustix::fs::Uid::from_raw(65534);
            let root = rustix::process::geteuid();
            let become_user = |uid| {
                if root.is_root() {
                    rustix::thread::set_thread_res_uid(root, uid, root).unwrap();
                }
            };
            become_user(nobody);
            let shown = wait(project.talk.ask("#src/a.rs"));
            assert!(shown.contains("- `src/a.rs`: PERMISSION_DENIED"), "{shown}");
            become_user(root);
            let mode = |mode| fs::set_permissions(project.at("src/a.rs"), fs::Permissions::from_mode(mode)).unwrap();
            mode(0o644);
            become_user(nobody);
            project.next("given back", true, "\ntext\n");
            become_user(root);
        });
    });
}

#[test]
fn hostile_files_give_their_code_quickly_and_the_others_are_served() {
    let mut project = Project::new();
    project.write("good.rs", "good");
    project.write("latin.rs", "x");
    fs::write(project.at("latin.rs"), b"caf\xe9").unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, project.at("pipe.rs"), rustix::fs::Mode::RWXU).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(project.at("socket.rs")).unwrap();
    fs::File::create(project.at("sparse.rs")).unwrap().set_len(1 << 37).unwrap();
    fs::create_dir(project.at("dir.rs")).unwrap();
    symlink("/etc/passwd", project.at("link.rs")).unwrap();
    symlink("loop.rs", project.at("loop.rs")).unwrap();
    let long = "x".repeat(300);
    let message = format!(
        "#pipe.rs #socket.rs #sparse.rs #dir.rs #link.rs #loop.rs #latin.rs #none.rs #../up.rs #/etc/passwd #{long}.rs #\"a\0.rs\" #good.rs"
    );
    let start = Instant::now();
    let shown = wait(project.talk.ask(&message));
    let took = start.elapsed();
    // Waiting for the pipe would take for ever, and reading the sparse file more than half a minute.
    assert!(took < Duration::from_secs(10), "{took:?}");
    for line in [
        "\ngood\n",
        "- `pipe.rs`: NOT_A_FILE",
        "- `socket.rs`: NOT_A_FILE",
        "- `sparse.rs`: FILE_TOO_LARGE",
        "- `dir.rs`: NOT_A_FILE",
        "- `link.rs`: SYMLINK_REJECTED",
        "- `loop.rs`: SYMLINK_REJECTED",
        "- `latin.rs`: NOT_TEXT",
        "- `none.rs`: NOT_FOUND",
        "- `../up.rs`: PATH_TRAVERSAL",
        "- `/etc/passwd`: ABSOLUTE_PATH",
        "x.rs`: READ_FAILED, the path is too long",
    ] {
        assert!(shown.contains(line), "{line} in {shown}");
    }
    assert!(!shown.contains("root:"), "{shown}");
}

#[test]
fn followed_links_are_watched_like_files() {
    let mut project = Project::with(FileReferenceOptions { follow_symlinks: true, ..Default::default() });
    project.write("src/a.rs", "one");
    symlink("src/a.rs", project.at("link.rs")).unwrap();
    assert!(wait(project.talk.ask("#link.rs")).contains("\none\n"));
    project.write("src/a.rs", "two");
    project.next("the target changed", true, "\ntwo\n");
    project.write("src/b.rs", "six");
    fs::remove_file(project.at("link.rs")).unwrap();
    symlink("src/b.rs", project.at("link.rs")).unwrap();
    project.next("the link changed", true, "\nsix\n");
    fs::remove_file(project.at("link.rs")).unwrap();
    symlink("/etc/passwd", project.at("link.rs")).unwrap();
    project.next("the link leads out", true, "- `link.rs`: PATH_TRAVERSAL");
}

#[test]
fn a_followed_link_is_judged_by_its_targets_name_too() {
    let mut project = Project::with(FileReferenceOptions { follow_symlinks: true, ..Default::default() });
    fs::create_dir_all(project.at("deep/keys")).unwrap();
    project.write(".env", "TOKEN=secret");
    project.write("deep/keys/server.pem", "secret");
    project.write("src/a.rs", "fine");
    symlink(".env", project.at("notes.md")).unwrap();
    symlink("deep/keys/server.pem", project.at("hop")).unwrap();
    symlink("hop", project.at("two.md")).unwrap();
    symlink("src/a.rs", project.at("named-otherwise.md")).unwrap();
    project.write("large.pem", &"secret ".repeat(20_000));
    symlink("large.pem", project.at("large.md")).unwrap();
    let shown = wait(project.talk.ask("#notes.md #two.md #named-otherwise.md #large.md"));
    for path in ["notes.md", "two.md", "large.md"] {
        assert!(shown.contains(&format!("- `{path}`: SYMLINK_REJECTED")), "{shown}");
    }
    assert!(shown.contains("\nfine\n") && !shown.contains("secret"), "{shown}");
    fs::remove_file(project.at("notes.md")).unwrap();
    symlink("src/a.rs", project.at("notes.md")).unwrap();
    project.next("the link leads to something else", true, "`notes.md`");
}

#[test]
fn a_base_directory_of_its_own_is_used() {
    let project = Project::new();
    project.write("src/a.rs", "mine");
    let options = FileReferenceOptions { base_dir: Some(project.at("src")), ..Default::default() };
    let elsewhere = Arc::new(contexture::host::NoFiles);
    let mut talk = Conversation::new(elsewhere, options).unwrap();
    assert!(wait(talk.ask("#a.rs")).contains("\nmine\n"));
}
