//! Shell command lines, as far as they read or change files.
//!
//! This is not a shell. It splits a line into simple commands with their redirections and here-documents, well
//! enough to see which files a coding agent printed, searched or wrote. What it does not understand it leaves
//! out; it never guesses a path.

mod unroll;

/// One simple command of a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// The words, unquoted; the first one is the program.
    pub words: Vec<String>,
    /// The files that output is written to, in order.
    pub writes: Vec<Redirect>,
    /// The text of a here-document or here-string that feeds it.
    pub input: Option<String>,
    /// Whether the shell replaces variables in that text.
    pub expands: bool,
    /// Whether it reads what the command before it printed.
    pub piped: bool,
}

/// A redirection of output into a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// The file as written.
    pub path: String,
    /// Whether output is added to its end.
    pub append: bool,
    /// Whether it takes the error messages and not the output.
    pub of_errors: bool,
}

impl Command {
    /// The program's name without its directory.
    pub fn program(&self) -> &str {
        let word = self.words.first().map_or("", String::as_str);
        word.rsplit('/').next().unwrap_or(word)
    }

    /// The arguments, without the program.
    pub fn arguments(&self) -> &[String] {
        self.words.get(1..).unwrap_or_default()
    }
}

/// Longest command line that is looked into, in bytes.
pub const MAX_COMMAND_BYTES: usize = 1 << 20;

/// Splits a command line into simple commands, in order; loops over words that are written out are unrolled.
///
/// ```
/// use contexture::files::shell::parse;
/// let commands = parse("cd src && sed -n '1,20p' main.rs | head -5 > out.txt");
/// let programs: Vec<_> = commands.iter().map(|command| command.program()).collect();
/// assert_eq!(programs, ["cd", "sed", "head"]);
/// assert_eq!(commands[1].words, ["sed", "-n", "1,20p", "main.rs"]);
/// assert!(commands[2].piped);
/// assert_eq!(commands[2].writes[0].path, "out.txt");
/// ```
pub fn parse(line: &str) -> Vec<Command> {
    if line.len() > MAX_COMMAND_BYTES {
        return Vec::new();
    }
    let mut parser = Parser {
        text: line,
        at: 0,
        commands: Vec::new(),
        current: Command::default(),
        waiting: Vec::new(),
        of_errors: false,
    };
    parser.run();
    unroll::unroll(parser.commands)
}

/// A here-document whose text begins at the next line.
struct Waiting {
    /// The command it feeds; its index once finished.
    command: usize,
    end: String,
    indented: bool,
    expands: bool,
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    commands: Vec<Command>,
    current: Command,
    waiting: Vec<Waiting>,
    /// Whether the redirection that comes next takes error messages.
    of_errors: bool,
}

impl<'a> Parser<'a> {
    fn run(&mut self) {
        while let Some(next) = self.peek() {
            match next {
                ' ' | '\t' | '\r' => self.at += 1,
                '\n' => {
                    self.at += 1;
                    self.finish(false);
                    self.take_documents();
                }
                '#' if self.current.words.is_empty() || self.after_blank() => self.skip_line(),
                '\\' if self.rest().starts_with("\\\n") => self.at += 2,
                ';' | '(' | ')' | '{' | '}' if self.is_separator(next) => {
                    self.at += 1;
                    self.finish(false);
                }
                '&' if self.rest().starts_with("&>") => self.redirect(),
                '&' | '|' => self.connect(next),
                '>' | '<' => self.redirect(),
                _ => self.word(),
            }
        }
        self.finish(false);
    }

    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn after_blank(&self) -> bool {
        self.text[..self.at].ends_with([' ', '\t', '\n'])
    }

    /// Braces separate only when they stand alone, so that `{a,b}` and `${x}` stay words.
    fn is_separator(&self, next: char) -> bool {
        match next {
            '{' | '}' => self.rest()[1..].chars().next().is_none_or(|after| after.is_whitespace() || after == ';'),
            _ => true,
        }
    }

    fn skip_line(&mut self) {
        self.at += self.rest().find('\n').unwrap_or(self.rest().len());
    }

    fn connect(&mut self, next: char) {
        let rest = self.rest();
        let doubled = rest[1..].starts_with(next);
        let pipe = next == '|' && !doubled;
        self.at += if doubled || rest.starts_with("|&") { 2 } else { 1 };
        self.finish(pipe);
    }

    fn finish(&mut self, pipe: bool) {
        let done = std::mem::take(&mut self.current);
        if !done.words.is_empty() || !done.writes.is_empty() {
            self.commands.push(done);
        }
        self.current.piped = pipe;
    }

    fn redirect(&mut self) {
        let of_errors = std::mem::take(&mut self.of_errors);
        let rest = self.rest();
        if let Some(after) = rest.strip_prefix("<<<") {
            self.at += rest.len() - after.trim_start_matches(' ').len();
            let text = self.read_word();
            self.current.input = Some(format!("{text}\n"));
            self.current.expands = true;
        } else if rest.starts_with("<<") {
            self.document();
        } else if let Some(after) = rest.strip_prefix('<') {
            self.at += rest.len() - after.trim_start_matches([' ', '(']).len();
            self.read_word();
        } else {
            let bare = rest.trim_start_matches('&');
            let append = bare.starts_with(">>");
            let after = bare.trim_start_matches(['>', '|']).trim_start_matches(' ');
            self.at += rest.len() - after.len();
            if after.starts_with('&') {
                self.at += 1;
                self.read_word();
                return;
            }
            let path = self.read_word();
            if !path.is_empty() && !path.starts_with("/dev/") {
                self.current.writes.push(Redirect { path, append, of_errors });
            }
        }
    }

    fn document(&mut self) {
        self.at += 2;
        let indented = self.rest().starts_with('-');
        if indented {
            self.at += 1;
        }
        self.at += self.rest().len() - self.rest().trim_start_matches(' ').len();
        let start = self.at;
        let end = self.read_word();
        let expands = !self.text[start..self.at].contains(['\'', '"', '\\']);
        if !end.is_empty() {
            self.waiting.push(Waiting { command: self.commands.len(), end, indented, expands });
        }
    }

    /// Reads the texts of the here-documents of the line that just ended.
    fn take_documents(&mut self) {
        for waiting in std::mem::take(&mut self.waiting) {
            let mut text = String::new();
            while self.at < self.text.len() {
                let rest = self.rest();
                let line = rest.split('\n').next().unwrap_or_default();
                self.at += (line.len() + 1).min(rest.len());
                let bare = if waiting.indented { line.trim_start_matches('\t') } else { line };
                if bare.trim_end() == waiting.end {
                    break;
                }
                text.push_str(bare);
                text.push('\n');
            }
            if let Some(command) = self.commands.get_mut(waiting.command) {
                command.input = Some(text);
                command.expands = waiting.expands;
            }
        }
    }

    fn word(&mut self) {
        let start = self.at;
        let word = self.read_word();
        if self.at == start {
            // A character that no word can hold; stepping over it keeps the loop finite.
            self.at += self.peek().map_or(1, char::len_utf8);
            return;
        }
        let is_descriptor = word.chars().all(|c| c.is_ascii_digit()) && self.rest().starts_with(['>', '<']);
        let is_assignment = self.current.words.is_empty() && is_assignment(&word);
        self.of_errors = is_descriptor && word == "2";
        if !is_descriptor && !is_assignment {
            self.current.words.push(word);
        }
    }

    /// Reads one word, with quotes and escapes resolved; substitutions stay as they are written.
    fn read_word(&mut self) -> String {
        let mut word = String::new();
        while let Some(next) = self.peek() {
            match next {
                ' ' | '\t' | '\n' | '\r' | ';' | '|' | '&' | '>' | '<' | ')' => break,
                '(' if word.is_empty() => break,
                '\'' => {
                    let rest = &self.rest()[1..];
                    let len = rest.find('\'').unwrap_or(rest.len());
                    word.push_str(&rest[..len]);
                    self.at += (len + 2).min(self.rest().len());
                }
                '"' => self.double_quoted(&mut word),
                '$' | '`' if self.rest().starts_with("$(") || next == '`' => self.substitution(&mut word),
                '\\' => {
                    self.at += 1;
                    if let Some(escaped) = self.peek() {
                        self.at += escaped.len_utf8();
                        if escaped != '\n' {
                            word.push(escaped);
                        }
                    }
                }
                _ => {
                    word.push(next);
                    self.at += next.len_utf8();
                }
            }
        }
        word
    }

    fn double_quoted(&mut self, word: &mut String) {
        self.at += 1;
        while let Some(next) = self.peek() {
            self.at += next.len_utf8();
            match next {
                '"' => return,
                '\\' => {
                    let escaped = self.peek();
                    match escaped {
                        Some('"' | '\\' | '$' | '`') => {}
                        Some('\n') => {
                            self.at += 1;
                            continue;
                        }
                        _ => {
                            word.push('\\');
                            continue;
                        }
                    }
                    if let Some(escaped) = escaped {
                        self.at += escaped.len_utf8();
                        word.push(escaped);
                    }
                }
                '$' if self.rest().starts_with('(') => {
                    self.at -= 1;
                    self.substitution(word);
                }
                _ => word.push(next),
            }
        }
    }

    /// Copies `$(…)` or a backquoted command as it stands.
    fn substitution(&mut self, word: &mut String) {
        let rest = self.rest();
        let len = match rest.strip_prefix('`') {
            Some(inner) => inner.find('`').map_or(rest.len(), |end| end + 2),
            None => closing_parenthesis(rest),
        };
        word.push_str(&rest[..len]);
        self.at += len;
    }
}

/// The length of a `$(…)` that begins `text`, with nested ones.
fn closing_parenthesis(text: &str) -> usize {
    let mut depth = 0_usize;
    for (index, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return index + 1;
                }
            }
            _ => {}
        }
    }
    text.len()
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}
