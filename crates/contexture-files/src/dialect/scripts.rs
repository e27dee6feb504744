//! Calls that a script makes: Codex gives some models its tools as functions of JavaScript.
//!
//! A script is understood as a whole or not at all: the name of every tool and all its arguments are written out in it.

use std::collections::HashMap;
use std::iter::Peekable;
use std::str::CharIndices;

use contexture_agents::every;
use contexture_core::item::FunctionCallOutput;
use serde_json::{Map, Number, Value};

/// The object that has the tools.
const TOOLS: &str = "tools";

/// Names that may run something that is not in the script.
const HIDING: &[&str] = &["eval", "Function", "globalThis", "load", "import", "require"];

/// A piece of a script.
#[derive(Clone, Debug, PartialEq)]
enum Token<'a> {
    Name(&'a str),
    Text(String),
    Number(&'a str),
    Sign(char),
}

/// The script that a call is given, if it is one.
pub(super) fn source(arguments: &Value) -> Option<&str> {
    let source = arguments.get("input").and_then(Value::as_str).or_else(|| arguments.as_str())?;
    source.contains("tools.").then_some(source)
}

/// What a script prints of one of its calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Printed {
    /// Which call it is.
    call: usize,
    /// Whether it is the text that the call returned, and not all that is known of it.
    is_text: bool,
}

/// What a script prints, if that is all that it does with what its calls return.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Prints {
    printed: Vec<Printed>,
    /// Whether it makes several calls at once.
    pub(super) are_at_once: bool,
}

impl Prints {
    /// What a script prints; `None` if it may do more with it.
    pub(super) fn of(source: &str) -> Option<Self> {
        let tokens = tokens(source)?;
        let mut reader = StatementReader { rest: &tokens, calls: 0, bound: HashMap::new(), prints: Self::default() };
        while !reader.rest.is_empty() {
            reader.statement()?;
        }
        Some(reader.prints)
    }

    /// What each of a number of calls returned, by the output of the script; `None` for one of which nothing was printed.
    pub(super) fn outputs(&self, output: &FunctionCallOutput, calls: usize) -> Option<Vec<Option<String>>> {
        let is_head = |text: &str| every(|agent| agent.output().scripts()).any(|start| text.starts_with(start));
        let whole = is_head(&output.output).then_some(&*output.output)?;
        let texts = match output.texts().as_slice() {
            [head, texts @ ..] if head.trim_end().ends_with("\nOutput:") => texts.to_vec(),
            // A text that was joined of a head and what was printed.
            _ => whole.split_once("\nOutput:\n").map(|(_, text)| vec![text.strip_prefix('\n').unwrap_or(text)])?,
        };
        if texts.len() != self.printed.len() {
            return None;
        }
        let mut outputs = vec![None; calls];
        for (Printed { call, is_text }, text) in self.printed.iter().zip(texts) {
            let place = outputs.get_mut(*call)?;
            *place = place.take().or(Some(if *is_text { framed(None, text) } else { returned(text) }));
        }
        Some(outputs)
    }
}

/// What a command returned, as an object or as a text.
fn returned(text: &str) -> String {
    let value: Option<Value> = serde_json::from_str(text).ok();
    let output = value.as_ref().and_then(|value| value["output"].as_str());
    match output {
        Some(output) => framed(value.as_ref().and_then(|value| value["exit_code"].as_i64()), output),
        None => text.to_owned(),
    }
}

/// An output as the tool prints it that a script calls.
fn framed(exit: Option<i64>, output: &str) -> String {
    match exit {
        Some(exit) => format!("Exit code: {exit}\nOutput:\n{output}"),
        None => format!("Wall time: 0\nOutput:\n{output}"),
    }
}

/// Reads the statements of a script one after the other.
struct StatementReader<'t, 'a> {
    rest: &'t [Token<'a>],
    calls: usize,
    /// The names of what calls returned.
    bound: HashMap<&'a str, Vec<usize>>,
    prints: Prints,
}

impl<'t, 'a> StatementReader<'t, 'a> {
    fn takes(&mut self, tokens: &[Token<'_>]) -> bool {
        let is_next = self.rest.starts_with(tokens);
        if is_next {
            self.rest = &self.rest[tokens.len()..];
        }
        is_next
    }

    fn sign(&mut self, sign: char) -> bool {
        self.takes(&[Token::Sign(sign)])
    }

    fn word(&mut self, word: &str) -> bool {
        self.takes(&[Token::Name(word)])
    }

    fn name(&mut self) -> Option<&'a str> {
        let [Token::Name(name), rest @ ..] = self.rest else { return None };
        self.rest = rest;
        Some(name)
    }

    fn statement(&mut self) -> Option<()> {
        if self.sign(';') {
            return Some(());
        }
        if self.word("const") || self.word("let") || self.word("var") {
            return self.binding();
        }
        if self.word("await") {
            return self.made().map(drop);
        }
        if self.word("for") {
            return self.each();
        }
        self.print(None)
    }

    /// `text(r.output)`, perhaps with a name for each of several results.
    fn print(&mut self, each: Option<(&str, &[usize])>) -> Option<()> {
        if !(self.word("text") && self.sign('(')) {
            return None;
        }
        let (calls, is_text) = self.value(each)?;
        if !self.sign(')') {
            return None;
        }
        self.prints.printed.extend(calls.into_iter().map(|call| Printed { call, is_text }));
        Some(())
    }

    /// What is printed, and whether it is the text that a call returned.
    fn value(&mut self, each: Option<(&str, &[usize])>) -> Option<(Vec<usize>, bool)> {
        let calls = if self.sign('(') {
            let calls = self.word("await").then(|| self.made())??;
            self.sign(')').then_some(calls)?
        } else if self.word("await") {
            return Some((vec![self.one()?], false));
        } else {
            let name = self.name()?;
            let calls = match each {
                Some((own, calls)) if own == name => calls.to_vec(),
                _ => self.bound.get(name)?.clone(),
            };
            match self.index() {
                Some(index) => vec![*calls.get(index)?],
                None if calls.len() == 1 || each.is_some() => calls,
                None => return None,
            }
        };
        let is_text = self.sign('.');
        (!is_text || self.word("output")).then_some((calls, is_text))
    }

    /// `[0]`
    fn index(&mut self) -> Option<usize> {
        let [Token::Sign('['), Token::Number(number), Token::Sign(']'), rest @ ..] = self.rest else { return None };
        self.rest = rest;
        number.parse().ok()
    }

    /// `const r = await …`, `const [a, b] = await …`
    fn binding(&mut self) -> Option<()> {
        let mut names = Vec::new();
        let is_list = self.sign('[');
        loop {
            names.push(self.name()?);
            if !(is_list && self.sign(',')) {
                break;
            }
        }
        if is_list && !self.sign(']') {
            return None;
        }
        if !(self.sign('=') && self.word("await")) {
            return None;
        }
        let calls = self.made()?;
        match is_list {
            true if names.len() == calls.len() => {
                self.bound.extend(names.into_iter().zip(calls.into_iter().map(|call| vec![call])));
            }
            true => return None,
            false => _ = self.bound.insert(names[0], calls),
        }
        Some(())
    }

    /// `for (const r of results) text(r.output)`
    fn each(&mut self) -> Option<()> {
        if !(self.sign('(') && (self.word("const") || self.word("let"))) {
            return None;
        }
        let own = self.name()?;
        let calls = self.word("of").then(|| self.name())?.and_then(|name| self.bound.get(name))?.clone();
        let has_braces = self.sign(')').then(|| self.sign('{'))?;
        self.print(Some((own, &calls)))?;
        self.sign(';');
        (!has_braces || self.sign('}')).then_some(())
    }

    /// The calls of what is waited for.
    fn made(&mut self) -> Option<Vec<usize>> {
        let all = [Token::Name("Promise"), Token::Sign('.'), Token::Name("all"), Token::Sign('('), Token::Sign('[')];
        if !self.takes(&all) {
            return Some(vec![self.one()?]);
        }
        let mut calls = Vec::new();
        while !self.sign(']') {
            calls.push(self.one()?);
            self.sign(',');
        }
        self.prints.are_at_once |= calls.len() > 1;
        self.sign(')').then_some(calls)
    }

    /// `tools.exec_command({…})`
    fn one(&mut self) -> Option<usize> {
        let [Token::Name(TOOLS), Token::Sign('.'), Token::Name(_), Token::Sign('('), argument @ ..] = self.rest else {
            return None;
        };
        let (_, after) = literal(argument)?;
        self.rest = after;
        self.calls += 1;
        self.sign(')').then_some(self.calls - 1)
    }
}

/// The calls that a script makes, each with the name of its tool and its argument; `None` if it may make others.
pub(super) fn calls(source: &str) -> Option<Vec<(String, Value)>> {
    let tokens = tokens(source)?;
    if tokens.iter().any(|token| matches!(token, Token::Name(name) if HIDING.contains(name))) {
        return None;
    }
    let mut calls = Vec::new();
    let mut rest = tokens.as_slice();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        if *first != Token::Name(TOOLS) {
            continue;
        }
        let [Token::Sign('.'), Token::Name(name), Token::Sign('('), argument @ ..] = rest else { return None };
        let (value, after) = literal(argument)?;
        let [Token::Sign(')'), after @ ..] = after else { return None };
        calls.push(((*name).to_owned(), value));
        rest = after;
    }
    Some(calls)
}

/// A value that is written out, and what comes after it.
fn literal<'t, 'a>(tokens: &'t [Token<'a>]) -> Option<(Value, &'t [Token<'a>])> {
    let (first, mut rest) = tokens.split_first()?;
    let value = match first {
        Token::Text(text) => text.as_str().into(),
        Token::Number(number) => Value::Number(serde_json::from_str::<Number>(number).ok()?),
        Token::Name("true") => true.into(),
        Token::Name("false") => false.into(),
        Token::Name("null" | "undefined") => Value::Null,
        Token::Sign('[') => {
            let mut values = Vec::new();
            while rest.first()? != &Token::Sign(']') {
                let (value, after) = literal(rest)?;
                values.push(value);
                rest = after_comma(after, ']')?;
            }
            rest = &rest[1..];
            values.into()
        }
        Token::Sign('{') => {
            let mut fields = Map::new();
            while rest.first()? != &Token::Sign('}') {
                let [Token::Name(_) | Token::Text(_), Token::Sign(':'), after @ ..] = rest else { return None };
                let name = match &rest[0] {
                    Token::Text(text) => text.clone(),
                    Token::Name(name) => (*name).to_owned(),
                    Token::Number(_) | Token::Sign(_) => return None,
                };
                let (value, after) = literal(after)?;
                fields.insert(name, value);
                rest = after_comma(after, '}')?;
            }
            rest = &rest[1..];
            Value::Object(fields)
        }
        Token::Name(_) | Token::Sign(_) => return None,
    };
    Some((value, rest))
}

/// What comes after a comma, or the end of a list that comes without one.
fn after_comma<'t, 'a>(tokens: &'t [Token<'a>], end: char) -> Option<&'t [Token<'a>]> {
    match tokens {
        [Token::Sign(','), rest @ ..] => Some(rest),
        [Token::Sign(sign), ..] if *sign == end => Some(tokens),
        _ => None,
    }
}

/// The pieces of a script; `None` if it has something that cannot be told from others without its grammar.
fn tokens(source: &str) -> Option<Vec<Token<'_>>> {
    let mut tokens = Vec::new();
    let mut chars = source.char_indices().peekable();
    while let Some((at, first)) = chars.next() {
        let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        match first {
            c if c.is_whitespace() => {}
            '/' => comment(&mut chars)?,
            '"' | '\'' | '`' => tokens.push(Token::Text(text(&mut chars, first)?)),
            // A name with an escape in it.
            '\\' => return None,
            c if is_name(c) => {
                let mut end = at + c.len_utf8();
                let is_number = c.is_ascii_digit();
                while let Some((at, c)) = chars.next_if(|(_, c)| is_name(*c) || (is_number && *c == '.')) {
                    end = at + c.len_utf8();
                }
                let word = &source[at..end];
                tokens.push(if is_number { Token::Number(word) } else { Token::Name(word) });
            }
            sign => tokens.push(Token::Sign(sign)),
        }
    }
    Some(tokens)
}

/// Skips a comment; `None` if there is none, since it may be a pattern then.
fn comment(chars: &mut Peekable<CharIndices<'_>>) -> Option<()> {
    match chars.next()?.1 {
        '/' => while chars.next_if(|(_, c)| *c != '\n').is_some() {},
        '*' => {
            let mut before = ' ';
            loop {
                let (_, c) = chars.next()?;
                if (before, c) == ('*', '/') {
                    break;
                }
                before = c;
            }
        }
        _ => return None,
    }
    Some(())
}

/// The rest of a text that began with a quote; `None` if something is put into it when the script runs.
fn text(chars: &mut Peekable<CharIndices<'_>>, quote: char) -> Option<String> {
    let mut text = String::new();
    loop {
        let (_, c) = chars.next()?;
        match c {
            _ if c == quote => return Some(text),
            '$' if quote == '`' && chars.peek().is_some_and(|(_, c)| *c == '{') => return None,
            '\n' if quote != '`' => return None,
            '\\' => match chars.next()?.1 {
                'n' => text.push('\n'),
                't' => text.push('\t'),
                'r' => text.push('\r'),
                '\n' => {}
                c @ ('\\' | '\'' | '"' | '`' | '$' | '/') => text.push(c),
                // Numbers of signs, and what is not an escape at all.
                _ => return None,
            },
            c => text.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(source: &str, expected: Option<&[(&str, Value)]>) {
        let expected =
            expected.map(|all| all.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect());
        assert_eq!(calls(source), expected, "{source}");
    }

    #[test]
    fn calls_are_read_from_scripts() {
        let cat = ("exec_command", json!({"cmd": "cat 'a b.py'", "max_output_tokens": 6000}));
        check(
            "// @exec: {\"yield_time_ms\": 1}\nconst r = await tools.exec_command({cmd: \"cat 'a b.py'\", max_output_tokens: 6000,});\ntext(r.output);\n",
            Some(std::slice::from_ref(&cat)),
        );
        let patch = ("apply_patch", json!("*** Begin Patch\n*** End Patch"));
        check(
            "const [a, b] = await Promise.all([tools.exec_command({\"cmd\": 'cat \\'a b.py\\'', \"max_output_tokens\": 6000}), tools.apply_patch(`*** Begin Patch\n*** End Patch`)]); /* tools.no() */ text(a.output + b)",
            Some(&[cat, patch]),
        );
        check("text('tools.exec_command({})')", Some(&[]));
        check("await tools.wait({a: [1, true, null, {b: -0.5}]})", None);
        check(
            "await tools.wait({a: [1, true, null, {b: 0.5}]})",
            Some(&[("wait", json!({"a": [1, true, null, {"b": 0.5}]}))]),
        );
    }

    #[test]
    fn a_script_that_may_do_more_is_not_understood() {
        for source in [
            "for (const f of files) await tools.exec_command({cmd: `cat ${f}`})",
            "await tools.exec_command({cmd: 'cat ' + name})",
            "await tools.exec_command({cmd})",
            "await tools.exec_command({...options, cmd: 'ls'})",
            "await tools['exec_command']({cmd: 'rm -r src'})",
            "const t = tools; await t.exec_command({cmd: 'ls'})",
            "const {exec_command: run} = tools; await run({cmd: 'ls'})",
            "await tools.exec_command.call(null, {cmd: 'ls'})",
            "await tools.exec_command({cmd: 'ls'}, more)",
            "const q = /\"/; await tools.exec_command({cmd: 'rm a'}); const p = \"/\"",
            "eval(source); await tools.exec_command({cmd: 'ls'})",
            "await tools.exec_command({cmd: '\\x72m a'})",
            "await to\\u006fls.exec_command({cmd: 'ls'}); tools.wait({})",
            "await tools.exec_command({cmd: 'ls'",
        ] {
            check(source, None);
        }
    }

    #[test]
    fn what_a_script_prints_of_its_calls_is_known_or_nothing_of_it() {
        let check = |source: &str, expected: Option<(&[(usize, bool)], bool)>| {
            let printed = |(call, is_text): &(usize, bool)| Printed { call: *call, is_text: *is_text };
            let expected = expected.map(|(printed_calls, are_at_once)| Prints {
                printed: printed_calls.iter().map(printed).collect(),
                are_at_once,
            });
            assert_eq!(Prints::of(source), expected, "{source}");
        };
        let call = "tools.exec_command({cmd: 'cat a'})";
        check(&format!("const r = await {call};\ntext(r.output);\n"), Some((&[(0, true)], false)));
        check(&format!("text((await {call}).output)"), Some((&[(0, true)], false)));
        check(&format!("text(await {call})"), Some((&[(0, false)], false)));
        check(&format!("await {call}; const r = await {call}; text(r)"), Some((&[(1, false)], false)));
        let both = format!("const [a, b] = await Promise.all([{call}, {call}]);");
        check(&format!("{both} text(b.output); text(a.output)"), Some((&[(1, true), (0, true)], true)));
        let all = format!("const all = await Promise.all([{call}, {call},]);");
        check(&format!("{all} for (const r of all) {{ text(r.output); }}"), Some((&[(0, true), (1, true)], true)));
        check(&format!("{all} text(all[1].output)"), Some((&[(1, true)], true)));
        for source in [
            format!("const r = await {call}; text(r.output.slice(0, 9))"),
            format!("const r = await {call}; text(r.output + '.')"),
            format!("const r = await {call}; if (r.exit_code) text(r.output)"),
            format!("{all} text(all)"),
            "text('done')".to_owned(),
        ] {
            check(&source, None);
        }
    }
}
