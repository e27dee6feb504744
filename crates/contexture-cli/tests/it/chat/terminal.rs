//! A conversation in a pseudo-terminal.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use serde_json::json;

use super::line_mode::{chat, place};
use super::provider::{Provider, Reply};

/// How long is waited for what must come.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// The program in a terminal.
pub struct Terminal {
    child: Child,
    keys: File,
    shown: Arc<Mutex<String>>,
    /// Everything that was ever shown.
    all: Arc<Mutex<Vec<u8>>>,
}

impl Terminal {
    pub fn start(place: &Path, provider: &Provider, columns: u16, arguments: &[&str]) -> Self {
        let controller = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a pseudo-terminal");
        grantpt(&controller).expect("it is ours");
        unlockpt(&controller).expect("it is ours");
        let name = ptsname(&controller, Vec::new()).expect("it has a name");
        let open = || -> OwnedFd {
            rustix::fs::open(&name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).expect("its other end")
        };
        tcsetwinsize(&controller, Winsize { ws_row: 24, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 }).expect("a size");
        let mut command = chat(place, &[&["--url", &provider.url, "--model", "m"], arguments].concat());
        command.env("TERM", "xterm").stdin(Stdio::from(open())).stdout(Stdio::from(open())).stderr(Stdio::from(open()));
        let child = command.spawn().expect("the program starts");
        let keys = File::from(controller);
        let shown = Arc::new(Mutex::new(String::new()));
        let all = Arc::new(Mutex::new(Vec::new()));
        let (mut output, text, bytes) = (keys.try_clone().expect("a handle"), shown.clone(), all.clone());
        std::thread::spawn(move || {
            let mut buffer = [0; 65_536];
            // The end of the program is an error here.
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                text.lock().expect("no panic").push_str(&String::from_utf8_lossy(&buffer[..count]));
                bytes.lock().expect("no panic").extend_from_slice(&buffer[..count]);
            }
        });
        Self { child, keys, shown, all }
    }

    /// Everything that was shown so far.
    pub fn all(&self) -> String {
        String::from_utf8_lossy(&self.all.lock().expect("no panic")).into_owned()
    }

    /// Tells the program to end.
    fn terminate(&self) {
        let id = rustix::process::Pid::from_raw(i32::try_from(self.child.id()).expect("an id")).expect("an id");
        rustix::process::kill_process(id, rustix::process::Signal::TERM).expect("it runs");
    }

    /// Whether the terminal sends whole lines and shows what is typed, as a shell wants it.
    fn is_as_it_was(&self) -> bool {
        let modes = rustix::termios::tcgetattr(&self.keys).expect("it is a terminal").local_modes;
        modes.contains(rustix::termios::LocalModes::ICANON | rustix::termios::LocalModes::ECHO)
    }

    fn shown(&self) -> String {
        self.shown.lock().expect("no panic").clone()
    }

    pub fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Waits until a text was shown, and forgets everything up to its end.
    #[track_caller]
    pub fn expect(&self, text: &str) -> String {
        let start = Instant::now();
        loop {
            {
                let mut shown = self.shown.lock().expect("no panic");
                if let Some(at) = shown.find(text) {
                    return shown.drain(..at + text.len()).collect();
                }
            }
            assert!(start.elapsed() < PATIENCE, "{text:?} is not in {:?}", self.shown());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[track_caller]
    fn ends(&mut self) -> i32 {
        let start = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("it was started") {
                return status.code().expect("no signal");
            }
            assert!(start.elapsed() < PATIENCE, "it does not end: {:?}", self.shown());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It has usually ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn prompt_completion_answer_and_end() {
    for columns in [30, 200] {
        let (place, provider) = (place(), Provider::start(vec![Reply::Says("It returns two.")]));
        let mut terminal = Terminal::start(place.path(), &provider, columns, &[]);
        terminal.expect("› ");
        terminal.press("日本 #lb");
        terminal.expect("▸ src/lib.rs");
        terminal.press("\t");
        terminal.expect("#src/lib.rs");
        terminal.press("\r");
        terminal.expect("It returns two.");
        terminal.expect("› ");
        assert!(provider.last().contains("日本 ") && provider.last().contains("pub fn one()"));
        terminal.press("/context\r");
        terminal.expect("Newest");
        terminal.expect("› ");
        terminal.press("\x04");
        terminal.expect("--thread");
        // Marks of pastes are turned off again.
        terminal.expect("\x1b[?2004l");
        assert_eq!(terminal.ends(), 0);
    }
}

#[test]
fn a_change_is_shown_asked_for_and_taken_back() {
    let place = place();
    let edit = json!({"path": "src/lib.rs", "old_string": "    2", "new_string": "    1"});
    let provider = Provider::start(vec![
        Reply::Calls("read_file", json!({"path": "src/lib.rs"})),
        Reply::Calls("edit_file", edit),
        Reply::Calls("execute_bash", json!({"command": "touch made"})),
        Reply::Says("Done."),
    ]);
    let file = place.path().join("project/src/lib.rs");
    let before = fs::read_to_string(&file).expect("a file");
    let mut terminal = Terminal::start(place.path(), &provider, 80, &[]);
    terminal.expect("› ");
    terminal.press("fix it\r");
    let diff = terminal.expect("[n]o: ");
    assert!(diff.contains("\x1b[32m     2 +    1\x1b[0m"), "{diff:?}");
    assert_eq!(fs::read_to_string(&file).expect("a file"), before, "nothing happens before the reply");
    terminal.press("y");
    terminal.expect("$ touch made");
    terminal.expect("[n]o: ");
    assert!(fs::read_to_string(&file).expect("a file").contains("    1"));
    terminal.press("n");
    terminal.expect("Done.");
    assert!(provider.last().contains("the user said no"), "{}", provider.last());
    assert!(!place.path().join("project/made").exists());
    terminal.expect("› ");
    terminal.press("/undo\r");
    terminal.expect("is as it was");
    assert_eq!(fs::read_to_string(&file).expect("a file"), before);
    terminal.expect("› ");
    terminal.press("/quit\r");
    assert_eq!(terminal.ends(), 0);
}

#[test]
fn ctrl_c_interrupts_an_answer_and_an_empty_line_goes_on() {
    let (place, provider) = (place(), Provider::start(vec![Reply::Stalls("half of"), Reply::Says("all of it")]));
    let mut terminal = Terminal::start(place.path(), &provider, 80, &[]);
    terminal.expect("› ");
    terminal.press("say it\r");
    terminal.expect("half of");
    terminal.press("\x03");
    terminal.expect("Interrupted.");
    terminal.expect("› ");
    terminal.press("\r");
    terminal.expect("all of it");
    terminal.expect("› ");
    terminal.press("\x03");
    terminal.expect("Ctrl-C again");
    terminal.press("\x03");
    assert_eq!(terminal.ends(), 0);
    assert_eq!(provider.last().matches("say it").count(), 1);
}

#[test]
fn a_paste_of_ten_thousand_lines_is_a_mark_and_arrives_whole() {
    let (place, provider) = (place(), Provider::start(vec![Reply::Says("Long.")]));
    let mut terminal = Terminal::start(place.path(), &provider, 80, &["--budget", "400000"]);
    terminal.expect("› ");
    let text: String = (0..10_000).map(|line| format!("line {line}\r")).collect();
    terminal.press(&format!("\x1b[200~{text}\x1b[201~"));
    terminal.expect("[pasted 10 000 lines]");
    terminal.press("\r");
    terminal.expect("Long.");
    assert!(provider.last().contains("line 0\\nline 1\\n") && provider.last().contains("line 9999"));
}

#[test]
fn what_is_approved_reads_as_it_is() {
    let place = place();
    let provider = Provider::start(vec![
        Reply::Calls("execute_bash", json!({"command": "echo \u{202e}/ fr- mr\u{202c}; touch made"})),
        Reply::Calls("write_file", json!({"path": "bidi.py", "content": "x = '\u{2066}\u{e0041}' # \x1b[2J\n"})),
        Reply::Says("Done."),
    ]);
    let mut terminal = Terminal::start(place.path(), &provider, 80, &[]);
    terminal.expect("› ");
    terminal.press("go\r");
    let question = terminal.expect("[n]o: ");
    assert!(question.contains("$ echo \\u{202e}/ fr- mr\\u{202c}; touch made"), "{question:?}");
    terminal.press("n");
    let question = terminal.expect("[n]o: ");
    assert!(question.contains("x = '\\u{2066}\\u{e0041}' # \\u{1b}[2J"), "{question:?}");
    terminal.press("n");
    terminal.expect("Done.");
    let harmful = |c: char| matches!(c, '\u{202e}' | '\u{202c}' | '\u{2066}' | '\u{e0041}');
    assert!(!terminal.all().contains(harmful), "{:?}", terminal.all());
}

/// Who interrupts a question has allowed nothing, and the model must know that.
#[test]
fn a_call_that_was_interrupted_before_it_was_allowed_was_not_run() {
    let place = place();
    let write = json!({"path": "made.txt", "content": "x"});
    let provider = Provider::start(vec![Reply::Calls("write_file", write), Reply::Says("I see.")]);
    let mut terminal = Terminal::start(place.path(), &provider, 80, &[]);
    terminal.expect("› ");
    terminal.press("write it\r");
    terminal.expect("[n]o: ");
    terminal.press("\x03");
    terminal.expect("Interrupted.");
    terminal.expect("› ");
    terminal.press("\r");
    terminal.expect("I see.");
    let told = provider.last();
    assert!(told.contains("it was not run") && !told.contains("may or may not"), "{told}");
    assert!(!place.path().join("project/made.txt").exists());
}

#[test]
fn a_window_is_told_in_seven_parts() {
    let (place, provider) = (place(), Provider::start(vec![Reply::Says("Two.")]));
    fs::write(place.path().join("project/AGENTS.md"), "Be kind.\n").expect("a file");
    let mut terminal = Terminal::start(place.path(), &provider, 80, &[]);
    terminal.expect("› ");
    terminal.press("hello\r");
    terminal.expect("Two.");
    terminal.expect("› ");
    terminal.press("see #src/lib.rs \r");
    terminal.expect("Two.");
    terminal.expect("› ");
    terminal.press("/context\r");
    let table = terminal.expect("in the last request too");
    let mut names = Vec::new();
    // The menu, which may be drawn before, has no line with both words.
    let is_head = |line: &&str| line.contains("part") && line.contains("tokens");
    for line in table.lines().skip_while(|line| !is_head(line)).skip(1) {
        names.extend(line.split_whitespace().next().filter(|_| !line.starts_with(' ')));
    }
    let seven = ["Instructions", "AGENTS.md", "People", "Agent", "Files", "Calls", "Newest"];
    assert!(names.starts_with(&seven), "{names:?} in {table}");
    let tokens =
        |name: &str| table.lines().find(|line| line.starts_with(name)).and_then(|line| line.split_whitespace().nth(1));
    assert!(
        ["AGENTS.md", "People", "Agent", "Files", "Newest"].iter().all(|name| tokens(name) != Some("0")),
        "{table}"
    );
    assert_eq!(tokens("Calls"), Some("0"), "{table}");
    assert!(["band", "anchor", "layer"].iter().all(|word| !table.contains(word)), "{table}");
}

#[test]
fn files_of_any_length_are_listed() {
    let place = place();
    for (name, text) in [("empty", ""), ("one", "1\n"), ("two", "1\n2\n"), ("bare", "1"), ("crlf", "1\r\n2\r\n")] {
        fs::write(place.path().join("project").join(name), text).expect("a file");
    }
    let read = |name: &str| (name.to_owned(), "read_file", json!({"path": name}));
    let calls = Reply::CallsAll(["empty", "one", "two", "bare", "crlf"].map(read).to_vec());
    let provider = Provider::start(vec![calls, Reply::Says("Read.")]);
    let mut terminal = Terminal::start(place.path(), &provider, 80, &[]);
    terminal.expect("› ");
    terminal.press("read\r");
    terminal.expect("Read.");
    terminal.expect("› ");
    terminal.press("/files\r");
    // A word of the table that the menu does not have.
    terminal.expect("lines");
    let table = terminal.expect("› ");
    for (name, lines) in [("empty", "0"), ("one", "1"), ("two", "2"), ("bare", "1"), ("crlf", "2")] {
        let row = table.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {table}"));
        let words: Vec<&str> = row.split_whitespace().collect();
        assert_eq!(words[1..3], [lines, "(all)"], "{table}");
    }
}

#[test]
fn a_program_that_is_told_to_end_leaves_the_terminal_as_it_was() {
    let command = json!({"command": "echo $$ > pid; sleep 300"});
    let replies = [
        vec![Reply::Says("never")],
        vec![Reply::Stalls("half of"), Reply::Says("all of it")],
        vec![Reply::Calls("execute_bash", command), Reply::Says("all of it")],
    ];
    for (case, replies) in replies.into_iter().enumerate() {
        let (place, provider) = (place(), Provider::start(replies));
        let mut terminal = Terminal::start(place.path(), &provider, 80, &["--yes"]);
        terminal.expect("› ");
        assert!(!terminal.is_as_it_was());
        match case {
            0 => terminal.press("not said yet"),
            1 => {
                terminal.press("say it\r");
                terminal.expect("half of");
            }
            _ => {
                terminal.press("run it\r");
                let start = Instant::now();
                while !place.path().join("project/pid").exists() {
                    assert!(start.elapsed() < PATIENCE, "the command does not run");
                    std::thread::sleep(Duration::from_millis(10));
                }
            }
        }
        terminal.terminate();
        terminal.expect("\x1b[?2004l");
        assert_eq!(terminal.ends(), 143);
        assert!(terminal.is_as_it_was());
        if case > 0 {
            let mut terminal = Terminal::start(place.path(), &provider, 80, &["--continue"]);
            terminal.expect("A turn was interrupted");
            terminal.press("\r");
            terminal.expect("all of it");
        }
    }
}

#[test]
fn a_plan_is_shown_and_the_inspector_opens() {
    let place = place();
    let steps = json!([{"text": "Read the code"}, {"text": "Mend it"}]);
    let provider = Provider::start(vec![
        Reply::Calls("plan__propose", json!({"goal": "One is one", "steps": steps})),
        Reply::Calls("plan__approve", json!({})),
        Reply::Calls("plan__update", json!({"step": "1", "status": "done"})),
        Reply::Says("Shall I go on?"),
    ]);
    let mut terminal = Terminal::start(place.path(), &provider, 80, &[]);
    terminal.expect("› ");
    terminal.press("/plan\r");
    terminal.expect("no plan");
    terminal.expect("› ");
    terminal.press("make a plan\r");
    terminal.expect("Shall I go on?");
    terminal.expect("› ");
    terminal.press("/plan\r");
    terminal.expect("One is one (it is carried out)");
    terminal.expect("✓ 1 Read the code");
    terminal.expect("▸ 2 Mend it");
    terminal.expect("› ");
    terminal.press("/inspect\r");
    terminal.expect("page    http://");
    let address = terminal.expect("/inspect/#token=");
    let address = address.trim_end_matches("/inspect/#token=").to_owned();
    let token = terminal.expect("thread ");
    let token = token.split_whitespace().next().expect("a token").to_owned();
    let requests = asked(&address, "/api/v1/conversations", &token);
    assert!(requests.contains("\"requests\":4"), "{requests}");
    assert!(asked(&address, "/api/v1/conversations", "wrong").starts_with("HTTP/1.1 401"));
}

/// Asks the inspector for something.
fn asked(address: &str, path: &str, token: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).expect("the inspector listens");
    write!(
        stream,
        "GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    )
    .expect("it takes requests");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    answer
}

/// `cargo test --release -p contexture-cli --test it fifty_thousand -- --ignored --nocapture`
#[test]
#[ignore = "it makes 50 000 files and measures"]
fn fifty_thousand_files_delay_neither_the_prompt_nor_a_completion() {
    let (place, provider) = (place(), Provider::start(vec![Reply::Says("never")]));
    for directory in 0..500 {
        let path = place.path().join(format!("project/part{:02}/module{directory}", directory % 20));
        fs::create_dir_all(&path).expect("a directory");
        (0..100).for_each(|file| fs::write(path.join(format!("source_{file}.rs")), "").expect("a file"));
    }
    let start = Instant::now();
    let mut terminal = Terminal::start(place.path(), &provider, 80, &[]);
    terminal.expect("› ");
    let prompt = start.elapsed();
    // All files are known when the last one is offered; `find` prints in the order of the directory.
    terminal.press("#m499s99");
    terminal.expect("▸ part19/module499/source_99.rs");
    let known = start.elapsed();
    terminal.press("\x15");
    terminal.expect("› ");
    let mut slowest = Duration::ZERO;
    for number in 0..20 {
        let start = Instant::now();
        terminal.press(&format!("#m{}s7", 100 + number));
        terminal.expect(&format!("▸ part{:02}/module{}/source_7.rs", (100 + number) % 20, 100 + number));
        slowest = slowest.max(start.elapsed());
        terminal.press("\x15");
        terminal.expect("› ");
    }
    println!("prompt after {prompt:?}, all files after {known:?}, slowest of 20 completions {slowest:?}");
    assert!(prompt < Duration::from_secs(1), "{prompt:?}");
    assert!(slowest < Duration::from_millis(50), "{slowest:?}");
}
