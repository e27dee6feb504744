//! Changes of an agent's settings that leave the rest of the file as it is, byte for byte.
//!
//! A change is checked by reading the result: it says what the text said before, and the change, or nothing is written.

use std::collections::HashMap;

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::gateway::configured::{SettingsSyntax, parsed};

/// A setting: the names that lead to it, and its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AgentSetting {
    pub(super) key: Vec<String>,
    pub(super) value: String,
}

/// The settings in a text.
///
/// # Errors
/// It cannot be read, or is no table of settings; comments in JSON are not read.
pub(super) fn read(syntax: SettingsSyntax, text: &str) -> Result<Value, String> {
    if text.trim().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    let value = match syntax {
        // What has comments would have to be written with them.
        SettingsSyntax::Json => serde_json::from_str(text).map_err(|error| error.to_string())?,
        _ => parsed(syntax, text)?,
    };
    match value {
        Value::Object(_) => Ok(value),
        Value::Null => Ok(Value::Object(Map::new())),
        _ => Err("it is no table of settings".to_owned()),
    }
}

/// The value of a setting, if it is there.
pub(super) fn found<'a>(settings: &'a Value, key: &[String]) -> Option<&'a Value> {
    key.iter().try_fold(settings, |value, part| value.get(part))
}

/// The text with a setting.
///
/// # Errors
/// The text cannot be read, or the setting cannot be added to it without touching anything else.
pub(super) fn with(syntax: SettingsSyntax, text: &str, setting: &AgentSetting) -> Result<String, String> {
    let mut expected = read(syntax, text)?;
    put(&mut expected, &setting.key, &setting.value)?;
    let changed = match syntax {
        SettingsSyntax::Json => {
            let text = if text.trim().is_empty() { "{}\n" } else { text };
            json_with(text, &setting.key, &setting.value)?
        }
        _ => line_with(syntax, text, &setting.key, &setting.value)?,
    };
    checked(syntax, changed, &expected)
}

/// The text without a setting.
///
/// # Errors
/// The text cannot be read, or the setting cannot be removed from it without touching anything else.
pub(super) fn without(syntax: SettingsSyntax, text: &str, key: &[String]) -> Result<String, String> {
    let mut expected = read(syntax, text)?;
    let Some((last, above)) = key.split_last() else { return Ok(text.to_owned()) };
    let parent = above.iter().try_fold(&mut expected, |value, part| value.get_mut(part));
    let Some(parent) = parent.and_then(Value::as_object_mut) else { return Ok(text.to_owned()) };
    if parent.remove(last).is_none() {
        return Ok(text.to_owned());
    }
    let changed = match syntax {
        SettingsSyntax::Json => json_without(text, key)?,
        _ => lines_without(syntax, text, key)?,
    };
    checked(syntax, changed, &expected)
}

fn put(settings: &mut Value, key: &[String], new: &str) -> Result<(), String> {
    let mut value = settings;
    for (at, part) in key.iter().enumerate() {
        let table = value.as_object_mut().ok_or_else(|| format!("`{}` is no table in it", key[..at].join(".")))?;
        value = table.entry(part.clone()).or_insert_with(|| Value::Object(Map::new()));
    }
    *value = Value::String(new.to_owned());
    Ok(())
}

fn checked(syntax: SettingsSyntax, text: String, expected: &Value) -> Result<String, String> {
    match read(syntax, &text) {
        Ok(found) if found == *expected => Ok(text),
        _ => Err("it is written in a way in which it cannot be changed safely".to_owned()),
    }
}

/// The members of an object, in order, each with where its value is in the text.
fn members<'a>(text: &'a str, object: &'a str) -> Result<Vec<(String, usize, usize)>, String> {
    let table: HashMap<String, &'a RawValue> = serde_json::from_str(object).map_err(|error| error.to_string())?;
    let start = |raw: &RawValue| raw.get().as_ptr() as usize - text.as_ptr() as usize;
    let mut members: Vec<(String, usize, usize)> =
        table.into_iter().map(|(name, raw)| (name, start(raw), start(raw) + raw.get().len())).collect();
    members.sort_by_key(|member| member.1);
    Ok(members)
}

/// Where the object is that the whole text is.
fn whole(text: &str) -> (usize, usize) {
    let start = text.len() - text.trim_start().len();
    (start, text.trim_end().len())
}

fn json_with(text: &str, key: &[String], value: &str) -> Result<String, String> {
    let (mut start, mut end) = whole(text);
    let mut rest = key;
    loop {
        let Some((name, deeper)) = rest.split_first() else { return Err("no setting is named".to_owned()) };
        let members = members(text, &text[start..end])?;
        match members.iter().find(|member| member.0 == *name) {
            Some((_, from, to)) if deeper.is_empty() => {
                return Ok(format!("{}{}{}", &text[..*from], Value::from(value), &text[*to..]));
            }
            Some((_, from, to)) => (start, end, rest) = (*from, *to, deeper),
            None => return Ok(json_added(text, (start, end), &members, (name, deeper), value)),
        }
    }
}

/// A text with one more member at the end of an object, written as the others are.
fn json_added(
    text: &str,
    (start, end): (usize, usize),
    members: &[(String, usize, usize)],
    (name, deeper): (&String, &[String]),
    value: &str,
) -> String {
    let mut inner = Value::from(value);
    for part in deeper.iter().rev() {
        inner = Value::Object(Map::from_iter([(part.clone(), inner)]));
    }
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let indent_at = |at: usize| {
        let line = text[..at].rfind('\n').map_or(0, |before| before + 1);
        let rest = &text[line..];
        rest[..rest.len() - rest.trim_start_matches([' ', '\t']).len()].to_owned()
    };
    let outer = indent_at(start);
    let (Some(first), Some(last)) = (members.first(), members.last()) else {
        let indent = format!("{outer}  ");
        let member = written(name, &inner, &indent, newline);
        return format!("{}{{{newline}{indent}{member}{newline}{outer}}}{}", &text[..start], &text[end..]);
    };
    match text[start..first.1].contains('\n') {
        true => {
            let indent = indent_at(first.1);
            let member = written(name, &inner, &indent, newline);
            format!("{},{newline}{indent}{member}{}", &text[..last.2], &text[last.2..])
        }
        false => format!("{}, {}: {inner}{}", &text[..last.2], Value::from(name.as_str()), &text[last.2..]),
    }
}

/// A member over several lines, if it has members itself.
fn written(name: &str, value: &Value, indent: &str, newline: &str) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    format!("{}: {}", Value::from(name), text.replace('\n', &format!("{newline}{indent}")))
}

fn json_without(text: &str, key: &[String]) -> Result<String, String> {
    let (mut start, mut end) = whole(text);
    let mut rest = key;
    loop {
        let Some((name, deeper)) = rest.split_first() else { return Err("no setting is named".to_owned()) };
        let members = members(text, &text[start..end])?;
        let Some(at) = members.iter().position(|member| member.0 == *name) else { return Ok(text.to_owned()) };
        let (_, from, to) = members[at];
        if !deeper.is_empty() {
            (start, end, rest) = (from, to, deeper);
            continue;
        }
        // The name begins with the first quote after what is before it.
        let before = if at == 0 { start + 1 } else { members[at - 1].2 };
        let name_at = |before: usize, from: usize| text[before..from].find('"').map(|quote| before + quote);
        return match (at, members.get(at + 1)) {
            (0, None) => Ok(format!("{}{{}}{}", &text[..start], &text[end..])),
            (0, Some(next)) => {
                let here = name_at(before, from).ok_or("its name is not found")?;
                let there = name_at(to, next.1).ok_or("its name is not found")?;
                Ok(format!("{}{}", &text[..here], &text[there..]))
            }
            _ => Ok(format!("{}{}", &text[..before], &text[to..])),
        };
    }
}

/// The line of a setting in a format of lines.
fn line(syntax: SettingsSyntax, name: &str, value: &str) -> String {
    match syntax {
        SettingsSyntax::Yaml => format!("{name}: {}", Value::from(value)),
        SettingsSyntax::Variables => format!("{name}='{value}'"),
        // A text of TOML is escaped as one of JSON is.
        SettingsSyntax::Toml | SettingsSyntax::Json => format!("{name} = {}", Value::from(value)),
    }
}

/// Whether a line sets a name.
fn sets(syntax: SettingsSyntax, line: &str, name: &str) -> bool {
    let (line, sign) = match syntax {
        SettingsSyntax::Yaml => (line, ':'),
        SettingsSyntax::Variables => {
            let line = line.trim_start();
            (line.strip_prefix("export ").unwrap_or(line), '=')
        }
        SettingsSyntax::Toml | SettingsSyntax::Json => (line.trim_start(), '='),
    };
    line.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with(sign))
}

/// Where the lines end among which a setting of the whole file can be.
fn end_of_head(syntax: SettingsSyntax, lines: &[&str]) -> usize {
    let table = lines.iter().position(|line| syntax == SettingsSyntax::Toml && line.trim_start().starts_with('['));
    table.unwrap_or(lines.len())
}

fn only(key: &[String]) -> Result<&str, String> {
    match key {
        [name] => Ok(name),
        _ => Err("a setting in a table of it cannot be changed".to_owned()),
    }
}

fn line_with(syntax: SettingsSyntax, text: &str, key: &[String], value: &str) -> Result<String, String> {
    let name = only(key)?;
    let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let new = line(syntax, name, value) + newline;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let head = end_of_head(syntax, &lines);
    let at = lines[..head].iter().rposition(|line| sets(syntax, line, name));
    Ok(match (at, syntax) {
        (Some(at), _) => lines[..at].concat() + &new + &lines[at + 1..].concat(),
        // What follows the header of a table belongs to it.
        (None, SettingsSyntax::Toml) => new + text,
        (None, _) if text.is_empty() || text.ends_with('\n') => format!("{text}{new}"),
        (None, _) => format!("{text}{newline}{new}"),
    })
}

fn lines_without(syntax: SettingsSyntax, text: &str, key: &[String]) -> Result<String, String> {
    let name = only(key)?;
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let head = end_of_head(syntax, &lines);
    let kept = lines.iter().enumerate().filter(|(at, line)| *at >= head || !sets(syntax, line, name));
    Ok(kept.map(|(_, line)| *line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(key: &str, value: &str) -> AgentSetting {
        AgentSetting { key: key.split('.').map(str::to_owned).collect(), value: value.to_owned() }
    }

    #[track_caller]
    fn check(syntax: SettingsSyntax, before: &str, key: &str, after: &str) {
        let setting = setting(key, "http://x");
        assert_eq!(with(syntax, before, &setting).unwrap(), after);
        // Taken away again, the rest says what it said, if the setting was not there.
        if found(&read(syntax, before).unwrap(), &setting.key).is_none() {
            let mut back = read(syntax, &without(syntax, after, &setting.key).unwrap()).unwrap();
            let mut expected = read(syntax, before).unwrap();
            // Tables that were made for it stay, and are empty.
            for settings in [&mut back, &mut expected] {
                let table = settings.as_object_mut().unwrap();
                table.retain(|_, value| *value != Value::Object(Map::new()));
            }
            assert_eq!(back, expected, "{after}");
        }
    }

    #[test]
    fn settings_are_added_to_json_and_the_rest_stays_as_it_is() {
        let json = SettingsSyntax::Json;
        check(json, "", "env.A", "{\n  \"env\": {\n    \"A\": \"http://x\"\n  }\n}\n");
        check(json, "{}", "a", "{\n  \"a\": \"http://x\"\n}");
        check(json, "{\"b\": 1.50}", "a", "{\"b\": 1.50, \"a\": \"http://x\"}");
        check(
            json,
            "{\n\t\"b\" : [1,\n2],\n\t\"env\": {}\n}\n",
            "env.A",
            "{\n\t\"b\" : [1,\n2],\n\t\"env\": {\n\t  \"A\": \"http://x\"\n\t}\n}\n",
        );
        check(
            json,
            "{\"env\": {\"A\": \"old\", \"B\": \"}\\\"{\"}}",
            "env.A",
            "{\"env\": {\"A\": \"http://x\", \"B\": \"}\\\"{\"}}",
        );
        check(json, "{\r\n  \"b\": 1\r\n}\r\n", "a", "{\r\n  \"b\": 1,\r\n  \"a\": \"http://x\"\r\n}\r\n");
        check(json, "{\n  \"é\": \"ü\"\n}", "a", "{\n  \"é\": \"ü\",\n  \"a\": \"http://x\"\n}");
    }

    #[test]
    fn settings_are_taken_out_of_json() {
        let check = |before: &str, key: &str, after: &str| {
            let key = setting(key, "").key;
            assert_eq!(without(SettingsSyntax::Json, before, &key).unwrap(), after);
        };
        check("{\"a\": 1, \"b\": 2, \"c\": 3}", "a", "{\"b\": 2, \"c\": 3}");
        check("{\"a\": 1, \"b\": 2, \"c\": 3}", "b", "{\"a\": 1, \"c\": 3}");
        check("{\"a\": 1, \"b\": 2, \"c\": 3}", "c", "{\"a\": 1, \"b\": 2}");
        check("{\n  \"a\": 1,\n  \"b\": 2\n}\n", "b", "{\n  \"a\": 1\n}\n");
        check("{\n  \"a\": 1\n}\n", "a", "{}\n");
        check("{\"env\": {\"A\": 1}}", "env.A", "{\"env\": {}}");
        check("{\"env\": 5}", "env.A", "{\"env\": 5}");
        check("{\"a\": 1}", "b", "{\"a\": 1}");
    }

    #[test]
    fn settings_are_lines_elsewhere() {
        check(SettingsSyntax::Toml, "", "a", "a = \"http://x\"\n");
        check(
            SettingsSyntax::Toml,
            "# mine\nb = 1\n[t]\na = 2\n",
            "a",
            "a = \"http://x\"\n# mine\nb = 1\n[t]\na = 2\n",
        );
        check(SettingsSyntax::Toml, "b = 1\na = 'old' # why\n[t]\n", "a", "b = 1\na = \"http://x\"\n[t]\n");
        check(SettingsSyntax::Yaml, "B: x", "A", "B: x\nA: \"http://x\"\n");
        check(SettingsSyntax::Yaml, "A: old\nB:\n  A: other\n", "A", "A: \"http://x\"\nB:\n  A: other\n");
        check(SettingsSyntax::Variables, "export A=old\nB=1\n", "A", "A='http://x'\nB=1\n");
        check(SettingsSyntax::Variables, "", "A", "A='http://x'\n");
    }

    #[test]
    fn what_cannot_be_changed_safely_is_left_alone() {
        let fails = |syntax: SettingsSyntax, text: &str, key: &str| {
            with(syntax, text, &setting(key, "http://x")).expect_err(text);
        };
        for text in ["{ // mine\n}", "{\"a\": 1,}", "[1]", "\"text\"", "{\"a\"", "\u{feff}{}", "nonsense", "{} {}"] {
            fails(SettingsSyntax::Json, text, "b");
        }
        fails(SettingsSyntax::Json, "{\"env\": \"text\"}", "env.A");
        fails(SettingsSyntax::Json, "{\"env\": null}", "env.A");
        fails(SettingsSyntax::Toml, "what = is = this", "a");
        fails(SettingsSyntax::Toml, "text = \"\"\"\na = 1\n\"\"\"\n\"a\" = 'old'\n", "a");
        fails(SettingsSyntax::Toml, "[t]\n", "t.a");
        fails(SettingsSyntax::Yaml, "mine: &mine\n  A: x\n<<: *mine\n", "A");
    }
}
