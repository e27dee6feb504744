//! The structure of a command line: lists, pipelines, compound commands and here-documents.

use super::constants::Constants;
use super::{Joint, Pipeline, Redirect, Script, Simple, Word};

/// Most levels of substitutions and compound commands that are followed.
const MAX_DEPTH: usize = 40;

/// Reads a whole script; `finds_all` follows more, to find its commands and not to know what it does.
pub(super) fn script(line: &str, finds_all: bool) -> Option<Script> {
    let mut parser = Parser { finds_all, ..Parser::new(line) };
    parser.list(&[])?;
    if !parser.rest().is_empty() || !parser.documents.is_empty() {
        return None;
    }
    Some(parser.into_script())
}

/// A here-document whose text begins at the next line.
struct Document {
    /// The placeholder that its redirection has until then.
    id: usize,
    end: String,
    is_indented: bool,
    is_quoted: bool,
}

pub(super) struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// How many subshells the current place is in.
    apart: usize,
    /// How many conditionals and loops the current place is in.
    inside: usize,
    is_straight: bool,
    /// Whether only the commands matter, and not what they do together.
    pub(super) finds_all: bool,
    pipelines: Vec<Pipeline>,
    others: Vec<Simple>,
    documents: Vec<Document>,
    texts: Vec<Option<(String, bool)>>,
    pub(super) constants: Constants<'a>,
}

/// Words that begin or continue a compound command.
const RESERVED: [&str; 17] = [
    "if", "then", "else", "elif", "fi", "do", "done", "while", "until", "for", "case", "esac", "select", "function",
    "coproc", "time", "in",
];

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            apart: 0,
            inside: 0,
            is_straight: true,
            finds_all: false,
            pipelines: Vec::new(),
            others: Vec::new(),
            documents: Vec::new(),
            texts: Vec::new(),
            constants: Constants::new(text),
        }
    }

    pub(super) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    pub(super) fn advance(&mut self, bytes: usize) {
        self.at += bytes;
    }

    fn into_script(mut self) -> Script {
        let documents = std::mem::take(&mut self.texts);
        let fill = |simple: &mut Simple| {
            for redirect in &mut simple.redirects {
                if let Redirect::Document { text, is_plain } = redirect
                    && let Some(id) = text.strip_prefix('\0').and_then(|id| id.parse::<usize>().ok())
                    && let Some(Some((body, plain))) = documents.get(id)
                {
                    (*text, *is_plain) = (body.clone(), *plain);
                }
            }
        };
        self.pipelines
            .iter_mut()
            .flat_map(|pipeline| pipeline.commands.iter_mut().chain(&mut pipeline.inner))
            .for_each(fill);
        self.others.iter_mut().for_each(fill);
        let script = Script { pipelines: self.pipelines, others: self.others, is_straight: self.is_straight };
        if script.is_straight { script } else { script.branching() }
    }

    /// Skips blanks, comments and escaped line feeds, but not line feeds.
    pub(super) fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(' ' | '\t') => self.at += 1,
                Some('\\') if self.rest().starts_with("\\\n") => self.at += 2,
                Some('#') if self.is_at_word_start() => {
                    self.at += self.rest().find('\n').unwrap_or(self.rest().len());
                }
                _ => return,
            }
        }
    }

    fn is_at_word_start(&self) -> bool {
        self.text[..self.at].chars().next_back().is_none_or(|before| before.is_whitespace() || ";&|()".contains(before))
    }

    /// Skips line feeds too, and reads the here-documents that begin there.
    pub(super) fn skip_lines(&mut self) -> Option<()> {
        loop {
            self.skip_blanks();
            if !self.take_line_feed()? {
                return Some(());
            }
        }
    }

    fn take_line_feed(&mut self) -> Option<bool> {
        if self.peek() != Some('\n') {
            return Some(false);
        }
        self.at += 1;
        self.take_documents()?;
        Some(true)
    }

    /// Parses a list of pipelines up to one of the words, a closing parenthesis or the end.
    fn list(&mut self, ends: &[&str]) -> Option<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        // Whether what comes next certainly runs.
        let mut is_certain = true;
        loop {
            self.skip_lines()?;
            match self.peek() {
                None | Some(')') => break,
                Some(';') if self.finds_all && self.at_case_end() => break,
                _ if self.reserved().is_some_and(|word| ends.contains(&word)) => break,
                _ if ends.contains(&"}") && self.at_brace('}') => break,
                _ => {}
            }
            let before = self.pipelines.len();
            self.pipeline()?;
            self.skip_blanks();
            let is_simple = !self.rest().starts_with(['|', '&']) || self.rest().starts_with("&&");
            let is_or = self.rest().starts_with("||");
            let joint = self.joint()?;
            if let (Some(last), true) = (self.pipelines.last_mut(), self.depth == 1) {
                last.joint = joint;
            }
            let sets = self.depth == 1 && is_certain && is_simple && self.note_constants(before);
            is_certain = !is_or && (joint == Joint::Then || sets);
        }
        self.depth -= 1;
        Some(())
    }

    /// Notes the variables that the last pipeline sets, if it is one command that does nothing else.
    fn note_constants(&mut self, before: usize) -> bool {
        match self.pipelines.get(before..) {
            Some([Pipeline { commands, .. }]) if commands.len() == 1 => self.constants.note(&commands[0]),
            _ => false,
        }
    }

    /// Whether a branch of a `case` ends here.
    fn at_case_end(&self) -> bool {
        self.rest().starts_with(";;") || self.rest().starts_with(";&")
    }

    /// What joins a pipeline to the next one.
    fn joint(&mut self) -> Option<Joint> {
        let rest = self.rest();
        if rest.starts_with("&&") {
            self.at += 2;
            self.skip_lines()?;
            // Something must follow.
            return self.peek().filter(|next| *next != ')').map(|_| Joint::And);
        }
        if rest.starts_with("||") {
            self.at += 2;
            self.is_straight = false;
            self.skip_lines()?;
            return self.peek().map(|_| Joint::Then);
        }
        match self.peek() {
            None | Some(')') => {}
            Some('\n') => {
                self.take_line_feed()?;
            }
            Some('&') if self.finds_all => self.at += 1,
            Some(';') if self.finds_all && self.at_case_end() => {}
            // What runs in the background may change files at any later time; `;;` belongs to a `case`.
            Some(';') if !rest.starts_with(";;") => self.at += 1,
            _ if self.reserved().is_some() || self.at_brace('}') => {}
            _ => return None,
        }
        Some(Joint::Then)
    }

    fn pipeline(&mut self) -> Option<()> {
        let mut commands = Vec::new();
        let start = self.others.len();
        loop {
            self.skip_blanks();
            if let Some(prefix) = ["!", "time"].into_iter().find(|prefix| self.starts_with_word(prefix)) {
                self.at += prefix.len();
                self.is_straight = false;
                if prefix == "time" {
                    self.skip_time_options();
                }
                continue;
            }
            let before = self.others.len();
            let simple = self.command()?;
            commands.extend(simple);
            self.skip_blanks();
            let rest = self.rest();
            if rest.starts_with('|') && !rest.starts_with("||") {
                self.is_straight &= !rest.starts_with("|&");
                self.at += if rest.starts_with("|&") { 2 } else { 1 };
                // Each part of a pipeline runs in a subshell.
                self.others[before..].iter_mut().for_each(|other| other.is_apart = true);
                self.skip_lines()?;
                self.peek()?;
                continue;
            }
            break;
        }
        if commands.len() > 1 {
            commands.iter_mut().for_each(|command| command.is_apart = true);
        }
        if self.inside == 0 && self.apart == 0 {
            if !commands.is_empty() {
                let inner = self.others.split_off(start);
                self.pipelines.push(Pipeline { commands, inner, joint: Joint::Then });
            }
        } else {
            self.others.extend(commands);
        }
        Some(())
    }

    /// Skips the options of the reserved word `time`, which belong to it and not to the command after it.
    fn skip_time_options(&mut self) {
        for option in ["-p", "--"] {
            self.skip_blanks();
            if self.starts_with_word(option) {
                self.at += option.len();
            }
        }
    }

    /// The reserved word here, if there is one.
    pub(super) fn reserved(&self) -> Option<&'static str> {
        let rest = self.rest();
        RESERVED.into_iter().find(|word| {
            rest.strip_prefix(word).is_some_and(|after| {
                after.chars().next().is_none_or(|next| next.is_whitespace() || ";&|()<>".contains(next))
            })
        })
    }

    fn at_brace(&self, brace: char) -> bool {
        self.rest().strip_prefix(brace).is_some_and(|after| {
            after.chars().next().is_none_or(|next| next.is_whitespace() || (brace == '}' && ";&|)<>".contains(next)))
        })
    }

    /// Parses one command; the inner `None` means that it was a compound one, whose commands were noted.
    pub(super) fn command(&mut self) -> Option<Option<Simple>> {
        if self.rest().starts_with("((") {
            self.finds_all.then(|| self.arithmetic())??;
            return self.trailing_redirects();
        }
        if self.peek() == Some('(') {
            self.at += 1;
            self.is_straight = false;
            self.apart += 1;
            self.list(&[])?;
            self.apart -= 1;
            self.expect(")")?;
            return self.trailing_redirects();
        }
        if self.at_brace('{') {
            self.at += 1;
            self.compound(&["}"])?;
            self.expect("}")?;
            return self.trailing_redirects();
        }
        match self.reserved() {
            Some("if") => self.conditional(),
            Some(word @ ("while" | "until")) => {
                self.at += word.len();
                self.compound(&["do"])?;
                self.body()
            }
            Some("for") => self.each(),
            Some("case") if self.finds_all => {
                self.at += "case".len();
                self.is_straight = false;
                self.cases()?;
                self.trailing_redirects()
            }
            Some("function") if self.finds_all => {
                self.at += "function".len();
                self.named_function().map(Some)
            }
            Some(_) => None,
            None if self.starts_with_word("[[") => self.test(),
            None => self.simple().map(Some),
        }
    }

    fn starts_with_word(&self, word: &str) -> bool {
        self.rest().strip_prefix(word).is_some_and(|after| after.starts_with(|c: char| c.is_whitespace()))
    }

    pub(super) fn expect(&mut self, token: &str) -> Option<()> {
        self.skip_blanks();
        self.rest().starts_with(token).then(|| self.at += token.len())
    }

    /// The list inside a compound command.
    pub(super) fn compound(&mut self, ends: &[&str]) -> Option<()> {
        self.is_straight = false;
        self.inside += 1;
        self.list(ends)?;
        self.inside -= 1;
        Some(())
    }

    fn conditional(&mut self) -> Option<Option<Simple>> {
        self.at += "if".len();
        loop {
            self.compound(&["then"])?;
            self.expect("then")?;
            self.compound(&["elif", "else", "fi"])?;
            match self.reserved()? {
                "elif" => self.at += "elif".len(),
                "else" => {
                    self.at += "else".len();
                    self.compound(&["fi"])?;
                    self.expect("fi")?;
                    return self.trailing_redirects();
                }
                _ => {
                    self.expect("fi")?;
                    return self.trailing_redirects();
                }
            }
        }
    }

    fn each(&mut self) -> Option<Option<Simple>> {
        self.at += "for".len();
        self.skip_blanks();
        let name = self.word()?;
        let is_name = name.text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_name || name.text.is_empty() {
            return None;
        }
        self.is_straight = false;
        self.others.push(Simple { assigns: vec![name.text], ..Simple::default() });
        self.skip_lines()?;
        if self.reserved() == Some("in") {
            self.at += "in".len();
            loop {
                self.skip_blanks();
                match self.peek()? {
                    '\n' | ';' => break,
                    '&' | '|' | '(' | ')' | '<' | '>' => return None,
                    // The text may be evaluated where the variable is used.
                    _ if self.word()?.has_subscript_command() => return None,
                    _ => {}
                }
            }
        }
        self.skip_blanks();
        if self.peek() == Some(';') {
            self.at += 1;
        }
        self.skip_lines()?;
        self.body()
    }

    /// `do LIST done`.
    fn body(&mut self) -> Option<Option<Simple>> {
        self.expect("do")?;
        self.compound(&["done"])?;
        self.expect("done")?;
        self.trailing_redirects()
    }

    /// `[[ … ]]`, which only tests.
    fn test(&mut self) -> Option<Option<Simple>> {
        self.at += 2;
        self.is_straight = false;
        loop {
            self.skip_blanks();
            match self.peek()? {
                '\n' | ';' => return None,
                '&' | '|' | '(' | ')' | '<' | '>' => self.at += 1,
                _ if self.rest().starts_with("]]") => {
                    self.at += 2;
                    return self.trailing_redirects();
                }
                // A number may be computed from the text, and then commands in its subscripts run.
                _ if self.word()?.has_subscript_command() => return None,
                _ => {}
            }
        }
    }

    /// Redirections of a compound command.
    fn trailing_redirects(&mut self) -> Option<Option<Simple>> {
        let mut simple = Simple::default();
        loop {
            self.skip_blanks();
            if !self.redirect(&mut simple)? {
                break;
            }
        }
        if !simple.redirects.is_empty() {
            self.others.push(simple);
        }
        Some(None)
    }

    fn simple(&mut self) -> Option<Simple> {
        let mut simple = Simple { is_apart: self.apart > 0, ..Simple::default() };
        loop {
            self.skip_blanks();
            if self.redirect(&mut simple)? {
                continue;
            }
            match self.peek() {
                None | Some('\n' | ';' | '&' | '|' | ')') => break,
                Some('(') if self.finds_all && simple.words.len() == 1 && self.rest().starts_with("()") => {
                    self.at += 2;
                    return self.function_body();
                }
                // A function definition, or something else that is not a simple command.
                Some('(' | '<' | '>') => return None,
                Some(_) => {}
            }
            let start = self.at;
            let word = self.word()?;
            if self.at == start {
                return None;
            }
            let name = self.text[start..self.at].split_once('=').map(|(name, _)| name.trim_end_matches('+'));
            match name.filter(|name| simple.words.is_empty() && is_name(name)) {
                Some(name) => {
                    // The elements of an array follow, or the text may be evaluated where the variable is used.
                    let is_array = self.peek() == Some('(');
                    if (is_array && !self.finds_all) || word.has_subscript_command() {
                        return None;
                    }
                    if is_array {
                        self.array()?;
                    }
                    simple.assigns.push(name.to_owned());
                    simple.assigned.push(word);
                }
                None => simple.words.push(word),
            }
        }
        let is_empty = simple.words.is_empty() && simple.assigns.is_empty() && simple.redirects.is_empty();
        (!is_empty).then_some(simple)
    }

    /// Reads a redirection if one begins here.
    fn redirect(&mut self, simple: &mut Simple) -> Option<bool> {
        let digits = self.rest().bytes().take_while(u8::is_ascii_digit).count();
        let (number, rest) = self.rest().split_at(digits);
        let is_redirect = rest.starts_with(['<', '>']) || (number.is_empty() && rest.starts_with("&>"));
        if !is_redirect {
            return Some(false);
        }
        // Reading from or writing to another process.
        if self.finds_all && number.is_empty() && (rest.starts_with("<(") || rest.starts_with(">(")) {
            let word = self.process_substitution()?;
            simple.words.push(word);
            return Some(true);
        }
        if rest.starts_with("<(") || rest.starts_with(">(") || rest.starts_with("<>") {
            return None;
        }
        self.at += digits;
        const SIGNS: [&str; 11] = ["&>>", "&>", ">>", ">|", ">&", ">", "<<<", "<<-", "<<", "<&", "<"];
        let sign = SIGNS.into_iter().find(|sign| self.rest().starts_with(sign))?;
        self.at += sign.len();
        self.skip_blanks();
        if sign.starts_with("<<") && sign != "<<<" {
            let document = self.document(sign == "<<-")?;
            simple.redirects.push(if is_input(number) { document } else { Redirect::Copy });
            return Some(true);
        }
        let start = self.at;
        let word = self.word()?;
        if self.at == start {
            return None;
        }
        // A variable that is read from the text may be evaluated where it is used.
        if sign == "<<<" && word.has_subscript_command() {
            return None;
        }
        simple.redirects.push(redirect_of(sign, number, word)?);
        Some(true)
    }

    fn document(&mut self, is_indented: bool) -> Option<Redirect> {
        let start = self.at;
        let end = self.word()?;
        if self.at == start || end.expands != super::Expands::Never {
            return None;
        }
        let id = self.texts.len();
        self.texts.push(None);
        self.documents.push(Document { id, end: end.text, is_indented, is_quoted: end.is_quoted });
        Some(Redirect::Document { text: format!("\0{id}"), is_plain: false })
    }

    /// Reads the texts of the here-documents of the line that just ended.
    fn take_documents(&mut self) -> Option<()> {
        for document in std::mem::take(&mut self.documents) {
            let mut text = String::new();
            loop {
                let rest = self.rest();
                // If the end is missing, the shell only warns and takes everything that is left.
                if rest.is_empty() {
                    return None;
                }
                let line = rest.split('\n').next().unwrap_or_default();
                self.at += (line.len() + 1).min(rest.len());
                let bare = if document.is_indented { line.trim_start_matches('\t') } else { line };
                if bare == document.end {
                    break;
                }
                text.push_str(bare);
                text.push('\n');
            }
            let continues = |line: &str| line.bytes().rev().take_while(|byte| *byte == b'\\').count() % 2 == 1;
            // A line that is continued may hide where the text ends.
            if !document.is_quoted && text.lines().any(continues) {
                return None;
            }
            let is_plain = document.is_quoted || !text.contains(['$', '`', '\\']);
            if !is_plain && (text.contains("$(") || text.contains('`')) {
                // Commands may run inside, and their words follow different rules.
                return None;
            }
            self.texts[document.id] = Some((text, is_plain));
        }
        Some(())
    }

    /// Reads a script inside a word, such as one in back quotes.
    pub(super) fn nested(&mut self, line: &str) -> Option<()> {
        if self.depth + 1 >= MAX_DEPTH {
            return None;
        }
        let script = script(line, self.finds_all)?;
        self.others.extend(script.commands().map(|command| Simple { is_apart: true, ..command.clone() }));
        Some(())
    }

    /// Parses the commands of `$(…)`, after its parenthesis.
    pub(super) fn substitution(&mut self) -> Option<()> {
        let outer = (std::mem::take(&mut self.documents), self.is_straight, self.inside);
        self.apart += 1;
        self.inside += 1;
        self.list(&[])?;
        self.apart -= 1;
        // A here-document must end inside.
        if !self.documents.is_empty() {
            return None;
        }
        (self.documents, self.is_straight, self.inside) = outer;
        self.rest().starts_with(')').then(|| self.at += 1)
    }
}

/// Whether a descriptor is the one that commands read from.
fn is_input(number: &str) -> bool {
    number.is_empty() || number.parse() == Ok(0)
}

fn redirect_of(sign: &str, number: &str, word: Word) -> Option<Redirect> {
    let descriptor = if number.is_empty() { None } else { number.parse::<u32>().ok() };
    Some(match (sign, descriptor) {
        ("<<<", _) if !is_input(number) => Redirect::Copy,
        ("<<<", _) => {
            let is_plain = word.plain().is_some();
            Redirect::Document { text: format!("{}\n", word.text), is_plain }
        }
        ("<", _) => Redirect::Read(word),
        ("<&", _) => Redirect::Copy,
        (">&", Some(2)) if word.text == "1" => Redirect::ErrorsToOutput,
        (">&", _) if word.text == "-" || word.text.chars().all(|c| c.is_ascii_digit()) => Redirect::Copy,
        ("&>" | "&>>", _) | (">&", None) => Redirect::Both(word),
        (">" | ">|", None | Some(1)) => Redirect::Write(word),
        (">>", None | Some(1)) => Redirect::Append(word),
        (_, Some(2)) => Redirect::Errors(word),
        _ => Redirect::Other(word),
    })
}

/// Whether a text can name a variable.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
