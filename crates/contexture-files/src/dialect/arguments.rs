//! The arguments of a call by meaning, and what a successful call tells about files.

use contexture_agents::{Tool, every, tool as known};
use contexture_core::item::{FunctionCallOutput, Outcome};
use serde_json::Value;

use super::reads::{ReadRequest, passages};
use super::{Does, ToolEntry, examined_call, guess, names, own_name, text_of, value_of};
use crate::completion::{self, Completion};
use crate::found::observe_hits;
use crate::mentions::observe_mentions;
use crate::numbering::{MAX_LINE_NUMBER, Passage, line_number, numbered, split_lines};
use crate::observation::{Observation, Seen, Who};
use crate::patched::observe_patch;
use crate::path::Directory;

/// Arguments that say whether all of a file was asked for.
const ENTIRE_NAMES: &[&str] = &["should_read_entire_file"];

/// The longest output that is taken for a sentence about a file, in bytes.
const MOST_SAID_BYTES: usize = 400;

/// The number in a value, limited to the greatest line number: a read from beyond it is still a part of a file.
fn number_in(value: &Value) -> Option<usize> {
    let number = value.as_u64()?;
    Some(usize::try_from(number).unwrap_or(MAX_LINE_NUMBER).min(MAX_LINE_NUMBER))
}

/// The arguments of a call, by meaning.
pub(super) struct CallArguments<'a> {
    pub(super) value: &'a Value,
    pub(super) entry: Option<&'a ToolEntry>,
    /// The tool's name.
    pub(super) tool: &'a str,
}

impl<'a> CallArguments<'a> {
    fn path(&self) -> Option<&'a str> {
        text_of(self.value, self.entry.and_then(|entry| entry.path.as_deref()), names().path())
    }

    pub(super) fn workdir(&self) -> Option<&'a str> {
        text_of(self.value, None, names().workdir())
    }

    /// The command line. A list of words is joined, and `bash -lc TEXT` is unwrapped.
    pub(super) fn command(&self) -> Option<String> {
        // A tool that is a program is told only what comes after its name.
        if own_name(self.tool) == "git" {
            let words = |names: &[&str]| match value_of(self.value, None, names)? {
                Value::String(text) => Some(text.clone()),
                Value::Array(words) => Some(words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ")),
                _ => None,
            };
            let told = [names().command(), &["subcommand"], names().word()].into_iter().filter_map(words);
            let line = told.collect::<Vec<_>>().join(" ");
            return Some(if line.starts_with("git ") { line } else { format!("git {line}") });
        }
        let named = self.entry.and_then(|entry| entry.command.as_deref());
        if let Some(text) = text_of(self.value, named, names().command()) {
            return Some(text.to_owned());
        }
        let words = value_of(self.value, named, names().command())?.as_array()?;
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        match words.as_slice() {
            [shell, flag, text] if shell.ends_with("sh") && flag.starts_with('-') => Some((*text).to_owned()),
            words => Some(words.join(" ")),
        }
    }

    fn patch_text(&self) -> Option<&'a str> {
        if let Value::String(text) = self.value {
            return Some(text);
        }
        text_of(self.value, self.entry.and_then(|entry| entry.content.as_deref()), names().patch())
    }

    pub(super) fn paths(&self, does: Does) -> Vec<String> {
        match does {
            Does::Run | Does::Hear | Does::Nothing => Vec::new(),
            _ => self.path().map(str::to_owned).into_iter().collect(),
        }
    }

    /// Whether an argument is given that none of some names reads, so that it is unknown what the call does.
    fn has_others(&self, known: &[&[&str]]) -> bool {
        let Some(object) = self.value.as_object() else { return !self.value.is_string() };
        let own = self.entry.map_or([None; 5], |entry| {
            [&entry.path, &entry.content, &entry.old, &entry.new, &entry.command].map(Option::as_deref)
        });
        let is_known = |name: &str| {
            own.contains(&Some(name)) || known.iter().chain(&[names().idle()]).any(|names| names.contains(&name))
        };
        object.iter().any(|(name, value)| !value.is_null() && !is_known(name))
    }

    /// Whether more than one argument is given for the same thing.
    fn is_told_twice(&self, names: &[&str]) -> bool {
        let values: Vec<&Value> =
            names.iter().filter_map(|name| self.value.get(*name)).filter(|value| !value.is_null()).collect();
        values.windows(2).any(|pair| pair[0] != pair[1])
    }

    /// The file, if exactly one is named.
    fn only_path(&self) -> Option<String> {
        let is_named = self.entry.is_some_and(|entry| entry.path.is_some());
        self.path().filter(|_| is_named || !self.is_told_twice(names().path())).map(str::to_owned)
    }

    pub(super) fn observe(&self, does: Does, result: &str) -> Vec<Observation> {
        if does == Does::Search {
            return self.observe_search(self.path(), result);
        }
        let path = self.only_path();
        if does == Does::Read {
            return path.map(|path| self.observe_read(path, result)).unwrap_or_default();
        }
        let shown = path.as_deref().filter(|_| matches!(does, Does::Edit | Does::Insert));
        let shown = shown.map(|path| shown_after(path, result)).unwrap_or_default();
        // What is not read completely has changed the file somehow, or any file.
        let mut told = self.observe_change(does, path.as_deref()).unwrap_or_else(|| vec![self.somehow(path)]);
        told.extend(shown);
        told
    }

    /// What a short output says that the file of the call is, whatever became of the call.
    pub(super) fn said_of_file(&self, does: Does, output: &FunctionCallOutput) -> Option<Observation> {
        let text = output.output.trim();
        let is_note = text.starts_with('<') || output.outcome != Outcome::Done;
        if !is_note || text.len() > MOST_SAID_BYTES || matches!(does, Does::Search | Does::Move | Does::Patch) {
            return None;
        }
        let (path, text) = (self.only_path()?, text.to_lowercase());
        if every(|agent| agent.output().absent()).any(|phrase| text.contains(phrase)) {
            return Some(Observation::Absent { path });
        }
        if does == Does::Read && every(|agent| agent.output().empty()).any(|phrase| text.contains(phrase)) {
            return Some(Observation::Read { path, block: Passage::plain(Some(1), ""), whole: true });
        }
        let lines = every(|agent| agent.output().length()).find_map(|around| {
            let (_, rest) = text.split_once(around.before())?;
            line_number(rest.split_once(around.after())?.0)
        });
        lines.filter(|_| does == Does::Read).map(|lines| Observation::Length { path, lines })
    }

    fn somehow(&self, path: Option<String>) -> Observation {
        let by = format!("`{}`", self.tool);
        match path {
            Some(path) => Observation::Changed { path, by, who: Who::Agent },
            None => Observation::could_write(by),
        }
    }

    /// What a tool changed; `None` if that is not certain.
    fn observe_change(&self, does: Does, path: Option<&str>) -> Option<Vec<Observation>> {
        let named = || path.map(str::to_owned);
        let is_read = |known: &[&[&str]]| (!self.has_others(known)).then_some(());
        match does {
            Does::Write | Does::Append => {
                is_read(&[names().path(), names().content(), names().mode()])?;
                let (path, text) = (named()?, self.content()?);
                Some(vec![match does {
                    Does::Append => Observation::Append { path, text },
                    _ => Observation::Write { path, text },
                }])
            }
            Does::Edit => {
                is_read(&[
                    names().path(),
                    names().old(),
                    names().replacement(),
                    names().edits(),
                    names().all(),
                    names().rehearsal(),
                    &["command"],
                ])?;
                self.observe_edits(path?)
            }
            Does::Insert => {
                is_read(&[names().path(), names().insert(), &["insert_line", "after_line", "line", "command"]])?;
                self.observe_insert(named()?).map(|insert| vec![insert])
            }
            Does::Patch => {
                is_read(&[names().path(), names().patch()])?;
                Some(observe_patch(self.patch_text()?, named())).filter(|changes| !changes.is_empty())
            }
            Does::Delete => {
                is_read(&[names().path()])?;
                Some(vec![Observation::Delete { path: named()? }])
            }
            Does::Move => self.observe_move(),
            _ => None,
        }
    }

    /// What a call did that could write any file.
    pub(super) fn observe_anything(&self, does: Does, output: &FunctionCallOutput, directory: &Directory) -> Seen {
        let completion = completion::of_run(own_name(self.tool), output.outcome, &output.output, None);
        let mut observations = observe_mentions(&output.output, None);
        if completion != Completion::Undone {
            observations.insert(0, Observation::could_write(format!("`{}`", self.tool)));
        }
        let failed = matches!(completion, Completion::Undone | Completion::Failed);
        let placed = guess::paths_in(self.value).into_iter();
        let placed = placed.map(|path| directory.place_for_tool(&path).unwrap_or(path)).collect();
        examined_call(does, placed, None, observations, failed)
    }

    fn content(&self) -> Option<String> {
        let named = self.entry.and_then(|entry| entry.content.as_deref());
        if named.is_none() && self.is_told_twice(names().content()) {
            return None;
        }
        text_of(self.value, named, names().content()).map(str::to_owned)
    }

    fn number(&self, names: &[&str]) -> Option<usize> {
        let value = value_of(self.value, None, names)?;
        number_in(value).or_else(|| line_number(value.as_str()?.trim()))
    }

    /// What a read was asked for.
    fn asked(&self) -> ReadRequest<'a> {
        let given = |names: &[&str]| value_of(self.value, None, names).is_some_and(|value| !value.is_null());
        let known: [&[&str]; 7] = [
            names().path(),
            names().offset(),
            names().start(),
            names().limit(),
            names().range(),
            ENTIRE_NAMES,
            &["command"],
        ];
        let range = value_of(self.value, None, names().range()).and_then(Value::as_array);
        let firsts = match () {
            () if self.has_others(&known) => Vec::new(),
            () if given(names().range()) => range.and_then(|range| number_in(range.first()?)).into_iter().collect(),
            () if given(names().start()) => self.number(names().start()).into_iter().collect(),
            // Tools count from 0 or from 1.
            () if given(names().offset()) => match self.number(names().offset()) {
                Some(0) => vec![1],
                Some(offset) => vec![offset, offset + 1],
                None => Vec::new(),
            },
            () => vec![1],
        };
        let firsts: Vec<usize> = if firsts.contains(&0) { Vec::new() } else { firsts };
        let is_entire = value_of(self.value, None, ENTIRE_NAMES).is_none_or(|value| value.as_bool() == Some(true));
        let is_narrowed = !firsts.contains(&1) || given(names().limit()) || given(names().range()) || !is_entire;
        let range = range.filter(|_| !firsts.is_empty()).and_then(|range| match range.as_slice() {
            [first, last] => Some((number_in(first)?, number_in(last)?)),
            _ => None,
        });
        ReadRequest { tool: own_name(self.tool), firsts, is_narrowed, range, path: self.path().unwrap_or_default() }
    }

    /// Whether the command continues after the call.
    pub(super) fn is_in_background(&self) -> bool {
        let names = ["run_in_background", "is_background", "background", "async", "detach"];
        value_of(self.value, None, &names).and_then(Value::as_bool) == Some(true)
    }

    fn observe_read(&self, path: String, result: &str) -> Vec<Observation> {
        let asked = self.asked();
        if path.ends_with(".ipynb") {
            return Vec::new();
        }
        let read = |(block, whole)| Observation::Read { path: path.clone(), block, whole };
        passages(&asked, result).into_iter().map(read).collect()
    }

    /// Hits of a search, if each line certainly carries its number.
    fn observe_search(&self, path: Option<&str>, result: &str) -> Vec<Observation> {
        let is_numbered = value_of(self.value, None, &["-n"]).and_then(Value::as_bool) == Some(true);
        if !is_numbered || text_of(self.value, None, &["output_mode"]) != Some("content") {
            return Vec::new();
        }
        let lines: Vec<&str> = split_lines(result).collect();
        // Spaces may be missing at the end of the last one.
        let lines = &lines[..lines.len().saturating_sub(1)];
        let hits = |path: &str| observe_hits(lines, Some(path), &Directory::Start);
        let is_named = lines.iter().any(|line| !line.starts_with(|c: char| c.is_ascii_digit()) && *line != "--");
        match path {
            Some(path) if !is_named => hits(path),
            _ => observe_hits(lines, None, &Directory::Start),
        }
    }

    /// The edits of a call; `None` if one of them is not read completely.
    fn observe_edits(&self, path: &str) -> Option<Vec<Observation>> {
        let listed: &[Value] = match value_of(self.value, None, names().edits()) {
            Some(Value::Array(list)) => list,
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        let mut edits: Vec<Observation> = Vec::with_capacity(listed.len() + 1);
        for one in listed {
            let is_known = |name: &String| {
                [names().old(), names().replacement(), names().all()].iter().any(|names| names.contains(&name.as_str()))
            };
            one.as_object().filter(|object| object.keys().all(is_known))?;
            edits.push(self.observe_edit(path, one)?);
        }
        let own = value_of(self.value, self.entry.and_then(|entry| entry.old.as_deref()), names().old());
        if own.is_some() {
            edits.push(self.observe_edit(path, self.value)?);
        }
        (!edits.is_empty()).then_some(edits)
    }

    fn observe_edit(&self, path: &str, value: &Value) -> Option<Observation> {
        let named_old = self.entry.and_then(|entry| entry.old.as_deref());
        let named_new = self.entry.and_then(|entry| entry.new.as_deref());
        let old = text_of(value, named_old, names().old())?.to_owned();
        let new = match value_of(value, named_new, names().replacement()).filter(|new| !new.is_null()) {
            Some(new) => new.as_str()?.to_owned(),
            None => String::new(),
        };
        let all = match value_of(value, None, names().all()) {
            None | Some(Value::Null) => false,
            Some(Value::String(text)) => text.parse().ok()?,
            Some(all) => all.as_bool()?,
        };
        let takes_feed =
            known(own_name(self.tool)).is_some_and(Tool::takes_feed) && new.is_empty() && !old.ends_with('\n');
        let path = path.to_owned();
        Some(if old.is_empty() {
            Observation::Write { path, text: new }
        } else {
            Observation::Edit { path, old, new, all, takes_feed }
        })
    }

    /// Lines that are inserted: `insert_line` is the line before them, `line` the one after, 0 the end.
    fn observe_insert(&self, path: String) -> Option<Observation> {
        let named = self.entry.and_then(|entry| entry.content.as_deref());
        let text =
            text_of(self.value, named, names().insert()).filter(|_| !self.is_told_twice(names().insert()))?.to_owned();
        let after = match (self.number(&["insert_line", "after_line"]), self.number(&["line"])) {
            (None, Some(0)) => return Some(Observation::Append { path, text }),
            (None, Some(line)) => line - 1,
            (after, _) => after?,
        };
        Some(Observation::Insert { path, after, text })
    }

    /// A renamed file; `None` if not both names are read.
    fn observe_move(&self) -> Option<Vec<Observation>> {
        if self.has_others(&[names().from(), names().to(), names().path()]) || self.is_told_twice(names().to()) {
            return Some(vec![self.somehow(None)]);
        }
        let named = self.entry.and_then(|entry| entry.path.as_deref());
        let path = text_of(self.value, named, names().path());
        let both = match (text_of(self.value, None, names().from()), path, text_of(self.value, None, names().to())) {
            (Some(from), None, Some(to)) | (None, Some(from), Some(to)) => Some((from.to_owned(), to.to_owned())),
            _ => None,
        };
        // Both places are unknown if one is.
        Some(vec![both.map_or_else(|| self.somehow(None), |(from, to)| Observation::Move { from, to })])
    }
}

/// Lines of a file as an editor shows them after its change, if it says that it does: someone else may have changed them
/// too.
fn shown_after(path: &str, result: &str) -> Vec<Observation> {
    let Some((_, shown)) = result.split_once("the result of running `cat -n`") else { return Vec::new() };
    let read = |block| Observation::Read { path: path.to_owned(), block, whole: false };
    numbered(shown).into_iter().flatten().map(read).collect()
}
