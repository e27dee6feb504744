//! Calls that a script makes: Codex gives some models its tools as functions of JavaScript.
//!
//! A script is understood as a whole or not at all: the name of every tool and all its arguments are written out in it.

use std::iter::Peekable;
use std::str::CharIndices;

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
}
