//! Reads what a user has configured for an agent: in variables, in arguments and in the agent's own files.

use std::path::{Path, PathBuf};
use std::{fs, io};

use contexture_agents::{DirectoryReach, SettingPlace};
use contexture_text::yaml;
use serde_json::Value;

use crate::failure::Failure;

/// Largest file of settings that is read.
const MOST_BYTES: u64 = 4 << 20;
/// Most files of an agent's that are looked through for a word.
const MOST_FILES: usize = 1000;

/// Where an agent runs.
pub(super) struct Surroundings<'a> {
    /// Its variables.
    pub(super) variable: &'a dyn Fn(&str) -> Option<String>,
    /// Its working directory.
    pub(super) directory: &'a Path,
    /// The user's arguments for it.
    pub(super) arguments: &'a [String],
}

/// The value, if it is there.
///
/// # Errors
/// A file is there, but cannot be understood, so nobody knows what it says.
pub(super) fn value(place: &SettingPlace, around: &Surroundings<'_>) -> Result<Option<String>, Failure> {
    if let Some(name) = place.variable() {
        return Ok((around.variable)(name).filter(|value| !value.trim().is_empty()));
    }
    if let Some(names) = place.argument() {
        let value = argument(around.arguments, names, place.after());
        return if place.key().is_empty() { Ok(value) } else { value_in(place, value, around) };
    }
    if place.directory() {
        let first = around.arguments.first().filter(|first| around.directory.join(first).is_dir());
        return Ok(first.filter(|first| *first != ".").cloned());
    }
    if let Some(flag) = place.flag() {
        return Ok(around.arguments.iter().any(|given| given == flag).then(|| "on".to_owned()));
    }
    if let Some(word) = place.word() {
        return Ok(paths(place, around).iter().find_map(|path| file_with(path, word)));
    }
    for path in paths(place, around) {
        let settings = settings_of(&path).map_err(|why| unreadable(&path, &why))?;
        let value = settings.and_then(|settings| looked_up(&settings, place.key()));
        if let Some(value) = value.filter(|value| !value.trim().is_empty()) {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

/// The files that count, in the order in which they do.
fn paths(place: &SettingPlace, around: &Surroundings<'_>) -> Vec<PathBuf> {
    match place.file() {
        Some(file) => {
            let own = place.except().and_then(|own| fs::canonicalize(path_of(own, around)?).ok());
            let is_own = |path: &PathBuf| own.is_some() && fs::canonicalize(path).ok() == own;
            paths_of(file, *place.reach(), around).into_iter().filter(|path| !is_own(path)).collect()
        }
        None => nearest(place.nearest(), around).into_iter().collect(),
    }
}

/// The value of the key in settings that an argument has or names.
fn value_in(place: &SettingPlace, given: Option<String>, around: &Surroundings<'_>) -> Result<Option<String>, Failure> {
    let Some(given) = given else { return Ok(None) };
    let settings = match given.trim_start().starts_with('{') {
        true => serde_json::from_str(&given).ok(),
        false => {
            let path = around.directory.join(&given);
            settings_of(&path).map_err(|why| unreadable(&path, &why))?
        }
    };
    Ok(settings.and_then(|settings| looked_up(&settings, place.key())).filter(|value| !value.trim().is_empty()))
}

/// Its name, for people.
pub(super) fn name_of(place: &SettingPlace) -> String {
    let file = place.file().or(place.nearest().first().copied());
    match (place.variable(), place.argument(), place.flag(), file) {
        (.., Some(file)) if place.word().is_some() => format!("an extension in `{}`", plain(file)),
        (Some(name), ..) | (_, _, Some(name), _) => format!("`{name}`"),
        (_, Some(names), ..) if !place.key().is_empty() => format!("`{}` in `{}`", place.key(), names[0]),
        (_, Some(names), ..) => format!("`{} {}`", names[0], place.after()).replace(" `", "`"),
        (.., Some(file)) => format!("`{}` in `{}`", place.key(), plain(file)),
        _ if place.directory() => "its directory".to_owned(),
        _ => String::new(),
    }
}

fn unreadable(path: &Path, why: &str) -> Failure {
    let failure = Failure::usage(format!("`{}` cannot be read ({why}), and may say where requests go", path.display()));
    failure.hint("correct it, or say where they go with --upstream")
}

/// A file's name without variables, as most people know it.
fn plain(file: &str) -> String {
    match (file.strip_prefix('{'), file.split_once('}')) {
        (Some(_), Some((variable, rest))) => {
            format!("{}{rest}", variable.split_once('|').map_or("", |(_, usual)| usual))
        }
        _ => file.to_owned(),
    }
}

/// The path of a file as the table writes it.
pub(super) fn path_of(file: &str, around: &Surroundings<'_>) -> Option<PathBuf> {
    paths_of(file, DirectoryReach::default(), around).into_iter().next()
}

/// The same; a relative name may be that of several files, of which the nearest comes first.
pub(super) fn paths_of(file: &str, reach: DirectoryReach, around: &Surroundings<'_>) -> Vec<PathBuf> {
    let file = match (file.strip_prefix('{'), file.split_once('}')) {
        (Some(_), Some((variable, rest))) => {
            let (name, usual) = variable[1..].split_once('|').unwrap_or((&variable[1..], ""));
            let set = (around.variable)(name).filter(|value| !value.is_empty());
            match set.unwrap_or_else(|| usual.to_owned()) {
                start if start.is_empty() => return Vec::new(),
                start => format!("{start}{rest}"),
            }
        }
        _ => file.to_owned(),
    };
    match file.strip_prefix("~/") {
        Some(rest) => {
            let home = (around.variable)("HOME").or_else(|| (around.variable)("USERPROFILE"));
            home.map(|home| PathBuf::from(home).join(rest)).into_iter().collect()
        }
        None if Path::new(&file).is_absolute() => vec![PathBuf::from(file)],
        None => above(around.directory, &file, reach),
    }
}

/// The files of that name in a directory and in those above it that count.
fn above(directory: &Path, file: &str, reach: DirectoryReach) -> Vec<PathBuf> {
    let repository = || directory.ancestors().position(|directory| directory.join(".git").exists());
    let depth = match reach {
        DirectoryReach::Here => 0,
        DirectoryReach::Repository => repository().unwrap_or(0),
        DirectoryReach::Root => repository().unwrap_or(usize::MAX - 1),
    };
    let files = directory.ancestors().take(depth + 1).map(|directory| directory.join(file));
    files.filter(|path| path.exists()).collect()
}

/// The first of some files that is there: by directory from this one to the root, and then in the user's.
fn nearest(names: &[&str], around: &Surroundings<'_>) -> Option<PathBuf> {
    let (own, shared): (Vec<_>, Vec<_>) = names.iter().partition(|name| !name.starts_with(['~', '{']));
    let near = around.directory.ancestors().flat_map(|directory| own.iter().map(|name| directory.join(name)));
    let users = shared.into_iter().filter_map(|name| path_of(name, around));
    near.chain(users).find(|path| path.exists())
}

/// A file with that word in a directory, or in those in it.
fn file_with(directory: &Path, word: &str) -> Option<String> {
    let inside = |directory: &Path| fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    let files = inside(directory).flat_map(|path| if path.is_dir() { inside(&path).collect() } else { vec![path] });
    let is_short = |path: &Path| fs::metadata(path).is_ok_and(|found| found.len() <= MOST_BYTES);
    let has_word = |path: &PathBuf| is_short(path) && fs::read_to_string(path).is_ok_and(|text| text.contains(word));
    files.take(MOST_FILES).find(has_word).map(|path| path.display().to_string())
}

/// The value of an argument, as `--name value` or `--name=value`.
fn argument(arguments: &[String], names: &[&str], after: &str) -> Option<String> {
    let own = arguments.iter().take_while(|argument| *argument != "--");
    let follows = arguments.iter().skip(1).map(Some).chain([None]);
    let found = own.zip(follows).filter_map(|(argument, next)| {
        names.iter().find_map(|name| match argument.strip_prefix(*name)? {
            "" => Some(next.cloned().unwrap_or_default()),
            rest if name.starts_with("--") => rest.strip_prefix('=').map(str::to_owned),
            rest => Some(rest.trim_start_matches('=').to_owned()),
        })
    });
    // The last one counts.
    found.filter_map(|value| value.replace(' ', "").strip_prefix(after).map(str::to_owned)).last()
}

/// The settings in a file, if it is there.
fn settings_of(path: &Path) -> Result<Option<Value>, String> {
    let text = match fs::metadata(path) {
        Ok(found) if found.len() > MOST_BYTES => return Err("it is too large".to_owned()),
        Ok(found) if !found.is_file() => return Ok(None),
        Ok(_) => fs::read_to_string(path).map_err(|error| error.to_string())?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    parsed(SettingsSyntax::of(path), &text).map(Some)
}

/// How settings are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SettingsSyntax {
    /// JSON, in which some agents allow comments.
    Json,
    /// TOML.
    Toml,
    /// YAML.
    Yaml,
    /// A variable in each line.
    Variables,
}

impl SettingsSyntax {
    /// That of a file, by its name.
    pub(super) fn of(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("toml") => Self::Toml,
            Some("yaml" | "yml") => Self::Yaml,
            Some("json" | "jsonc") => Self::Json,
            _ => Self::Variables,
        }
    }
}

/// The settings in a text.
pub(super) fn parsed(syntax: SettingsSyntax, text: &str) -> Result<Value, String> {
    match syntax {
        SettingsSyntax::Toml => toml::from_str(text).map_err(|error| error.message().to_owned()),
        SettingsSyntax::Yaml => yaml::read(text),
        SettingsSyntax::Json if text.trim().is_empty() => Ok(Value::Null),
        SettingsSyntax::Json => {
            let plain = || serde_json::from_str(&without_comments(text));
            serde_json::from_str(text).or_else(|_| plain()).map_err(|error| error.to_string())
        }
        SettingsSyntax::Variables => Ok(of_variables(text)),
    }
}

/// The values of a file of variables.
fn of_variables(text: &str) -> Value {
    let lines = text.lines().map(|line| line.trim_start()).filter(|line| !line.starts_with('#'));
    let pairs = lines.filter_map(|line| line.strip_prefix("export ").unwrap_or(line).split_once('='));
    Value::Object(pairs.map(|(name, value)| (name.trim().to_owned(), Value::String(unquoted(value)))).collect())
}

/// A value without quotes, or without the comment that follows it.
fn unquoted(text: &str) -> String {
    let text = text.trim();
    for quote in ['"', '\''] {
        if let Some((value, _)) = text.strip_prefix(quote).and_then(|rest| rest.split_once(quote)) {
            return value.to_owned();
        }
    }
    text.split(" #").next().unwrap_or_default().trim().to_owned()
}

/// JSON without comments and without commas before a bracket.
fn without_comments(text: &str) -> String {
    let (mut plain, mut signs, mut is_text) = (String::with_capacity(text.len()), text.chars().peekable(), false);
    while let Some(sign) = signs.next() {
        match (is_text, sign, signs.peek()) {
            (true, '\\', _) => {
                plain.push(sign);
                plain.extend(signs.next());
                continue;
            }
            (_, '"', _) => is_text = !is_text,
            (false, '/', Some('/')) => {
                while signs.peek().is_some_and(|sign| *sign != '\n') {
                    signs.next();
                }
                continue;
            }
            (false, '/', Some('*')) => {
                let mut before = ' ';
                signs.next();
                for sign in signs.by_ref() {
                    if (before, sign) == ('*', '/') {
                        break;
                    }
                    before = sign;
                }
                continue;
            }
            (false, '}' | ']', _) => {
                let kept = plain.trim_end().trim_end_matches(',').len();
                plain.truncate(kept);
            }
            _ => {}
        }
        plain.push(sign);
    }
    plain
}

/// The value of a key, of which `<...>` parts are values of other keys; `*` is the first entry of a list or table that has
/// the rest.
fn looked_up(settings: &Value, key: &str) -> Option<String> {
    let (mut value, mut rest) = (settings, key);
    while !rest.is_empty() {
        let end = end_of_part(rest);
        let (part, after) = (&rest[..end], rest[end..].trim_start_matches('.'));
        let inner = part.strip_prefix('<').and_then(|part| part.strip_suffix('>'));
        if part == "*" {
            return entries(value).into_iter().find_map(|entry| looked_up(entry, after));
        }
        value = match inner {
            Some(inner) => value.get(looked_up(settings, inner)?)?,
            None => value.get(part)?,
        };
        rest = after;
    }
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// What a list or a table has.
fn entries(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(entries) => entries.iter().collect(),
        Value::Object(entries) => entries.values().collect(),
        _ => Vec::new(),
    }
}

/// Where the first part of a key ends.
fn end_of_part(key: &str) -> usize {
    let mut depth = 0_usize;
    for (at, sign) in key.char_indices() {
        match sign {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            '.' if depth == 0 => return at,
            _ => {}
        }
    }
    key.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn keys_may_be_named_by_other_keys() {
        let settings =
            json!({"default": "k.2", "models": {"k.2": {"provider": "p"}}, "providers": {"p": {"url": "u"}}});
        assert_eq!(looked_up(&settings, "providers.<models.<default>.provider>.url").as_deref(), Some("u"));
        assert_eq!(looked_up(&settings, "providers.<models.<other>.provider>.url"), None);
        assert_eq!(looked_up(&settings, "providers.q.url"), None);
    }

    #[test]
    fn files_are_read_as_agents_read_them() {
        let variables = of_variables("#A=1\nexport A=\"b c\" # d\nB='e'\n C = f # g\nnothing\n");
        assert_eq!(variables, json!({"A": "b c", "B": "e", "C": "f"}));
        let text = "{ // one\n \"a\": \"http://x/*y*/\", /* two */ \"b\": [1, 2,],\n}";
        let json: Value = serde_json::from_str(&without_comments(text)).unwrap();
        assert_eq!(json, json!({"a": "http://x/*y*/", "b": [1, 2]}));
    }

    #[test]
    fn arguments_are_found_however_they_are_written() {
        let check = |arguments: &[&str], expected: Option<&str>| {
            let arguments: Vec<String> = arguments.iter().map(|text| (*text).to_owned()).collect();
            assert_eq!(
                argument(&arguments, &["-c", "--config"], "model_provider=").as_deref(),
                expected,
                "{arguments:?}"
            );
        };
        check(&["-c", "model_provider=x"], Some("x"));
        check(&["exec", "--config=model_provider = x"], Some("x"));
        check(&["-cmodel_provider=x", "-c", "model=y"], Some("x"));
        check(&["-c", "model_provider=x", "-c", "model_provider=y"], Some("y"));
        check(&["-c", "model=y"], None);
        check(&["--", "-c", "model_provider=x"], None);
        check(&["--config"], None);
    }
}
