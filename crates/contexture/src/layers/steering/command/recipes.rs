//! The recipes of a Makefile or a justfile, as the command lines that a goal runs.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap, HashSet};

use super::asked::{RecipeProgram, RecipeRequest};

/// How deep variables of variables are followed, how many in all, and how long a line may become.
const MAX_DEPTH: usize = 12;
const MAX_VALUES: usize = 100_000;
const MAX_LINE_BYTES: usize = 64 * 1024;
/// What is written for a word that is not known: a variable of the shell, which may be anything.
const UNKNOWN: &str = "\"$unknown\"";

/// A rule, as it is written.
struct RecipeRule {
    targets: String,
    needs: String,
    lines: Vec<String>,
}

/// A file of recipes.
pub(super) struct Recipes {
    writing: RecipeProgram,
    rules: Vec<RecipeRule>,
    /// Other names of rules.
    aliases: Vec<RecipeRule>,
    /// The values of variables; `None` if there are several.
    variables: HashMap<String, Option<String>>,
    included: Vec<String>,
    /// What is run whenever the file is read.
    always: Vec<String>,
    is_clear: bool,
    /// How many variables were followed.
    values: Cell<usize>,
}

impl Recipes {
    pub(super) fn read(writing: RecipeProgram, text: &str, asked: &RecipeRequest<'_>) -> Self {
        let built_in = [("CC", "cc"), ("CXX", "c++"), ("AR", "ar"), ("LD", "ld"), ("RM", "rm -f"), ("MAKE", "make")];
        let more = [("CURDIR", "."), ("PWD", "."), ("INSTALL", "install")];
        let variables =
            built_in.iter().chain(&more).map(|(name, value)| ((*name).to_owned(), Some((*value).to_owned())));
        let mut recipes = Self {
            writing,
            rules: Vec::new(),
            aliases: Vec::new(),
            variables: variables.collect(),
            included: Vec::new(),
            always: Vec::new(),
            is_clear: true,
            values: Cell::new(0),
        };
        let mut defining: Option<(String, Vec<&str>)> = None;
        let joined = text.replace("\\\r\n", " ").replace("\\\n", " ");
        for line in joined.lines() {
            match (&mut defining, line.trim()) {
                (Some((name, lines)), "endef") => {
                    recipes.variables.insert(std::mem::take(name), Some(lines.join("\n")));
                    defining = None;
                }
                (Some((_, lines)), _) => lines.push(line),
                (None, line) if writing == RecipeProgram::Make && line.starts_with("define ") => {
                    let name = line["define ".len()..].split(['=', ':', '?', '+', ' ']).next().unwrap_or_default();
                    defining = Some((name.to_owned(), Vec::new()));
                }
                (None, _) => recipes.line(line),
            }
        }
        for (name, value) in &asked.variables {
            recipes.variables.insert((*name).to_owned(), value.map(str::to_owned));
        }
        recipes
    }

    fn line(&mut self, line: &str) {
        let is_recipe = match self.writing {
            RecipeProgram::Make => line.starts_with('\t'),
            RecipeProgram::Just => line.starts_with(['\t', ' ']),
        };
        if is_recipe && let Some(rule) = self.rules.last_mut() {
            return rule.lines.push(line.trim().to_owned());
        }
        let line = without_comment(line).trim().to_owned();
        if self.writing == RecipeProgram::Make {
            self.always.extend(shells(&line));
        }
        self.is_clear &= !line.contains("$(eval") && !line.contains("${eval");
        if line.is_empty() || self.directive(&line) || self.assignment(&line) {
            return;
        }
        let Some((targets, needs)) = line.split_once(':') else { return };
        let (needs, first) = needs.split_once(';').map_or((needs, None), |(needs, first)| (needs, Some(first)));
        let targets = match self.writing {
            RecipeProgram::Make => targets.to_owned(),
            // Parameters follow the name.
            RecipeProgram::Just => {
                targets.split_whitespace().next().unwrap_or_default().trim_start_matches('@').to_owned()
            }
        };
        let lines = first.into_iter().map(|line| line.trim().to_owned()).collect();
        self.rules.push(RecipeRule { targets, needs: needs.to_owned(), lines });
    }

    /// A line that is no rule.
    fn directive(&mut self, line: &str) -> bool {
        let first = line.split_whitespace().next().unwrap_or_default();
        let rest = line[first.len()..].trim();
        match (self.writing, first) {
            (RecipeProgram::Make, "include" | "-include" | "sinclude") => {
                for path in rest.split_whitespace() {
                    match self.expanded(path, 0) {
                        path if path.contains('$') => self.is_clear &= path.ends_with(".d") || line.contains(".d)"),
                        path => self.included.push(path),
                    }
                }
                true
            }
            (
                RecipeProgram::Make,
                "ifeq" | "ifneq" | "ifdef" | "ifndef" | "else" | "endif" | "vpath" | "unexport" | "undefine",
            ) => true,
            (RecipeProgram::Just, "import" | "import?" | "mod" | "mod?") => {
                self.is_clear = false;
                true
            }
            (RecipeProgram::Just, "set") => {
                self.is_clear &= !rest.starts_with("shell") || rest.contains("sh\"") || rest.contains("sh'");
                true
            }
            (RecipeProgram::Just, "alias") => {
                if let Some((name, value)) = rest.split_once(":=") {
                    let (targets, needs) = (name.trim().to_owned(), value.trim().to_owned());
                    self.aliases.push(RecipeRule { targets, needs, lines: Vec::new() });
                }
                true
            }
            (RecipeProgram::Just, first) => first.starts_with('['),
            (RecipeProgram::Make, _) => false,
        }
    }

    fn assignment(&mut self, line: &str) -> bool {
        let Some(at) = line.find('=') else { return false };
        let (before, value) = (&line[..at], line[at + 1..].trim());
        let name = before.trim_end_matches([':', '+', '?', '!']);
        let is_more = before.ends_with('+');
        let is_run = before.ends_with('!');
        // `goal: NAME = value` is for one goal.
        let name = name.rsplit(':').next().unwrap_or(name).trim();
        let name = ["export ", "override ", "private "]
            .iter()
            .fold(name, |name, word| name.strip_prefix(word).unwrap_or(name));
        if name.is_empty()
            || name.contains(char::is_whitespace)
            || (self.writing == RecipeProgram::Just && !before.ends_with(':'))
        {
            return false;
        }
        if is_run {
            self.always.push(value.to_owned());
        }
        if self.writing == RecipeProgram::Make {
            self.is_clear &= name != ".RECIPEPREFIX" && (name != "SHELL" || value.ends_with("sh"));
        }
        let value = if self.writing == RecipeProgram::Just { unquoted(value) } else { Some(value.to_owned()) };
        let value = value.filter(|_| !is_run);
        let known = match (self.variables.get(name), is_more) {
            (Some(Some(old)), true) => value.map(|value| format!("{old} {value}")),
            (Some(Some(old)), false) if !self.is_built_in(name) && Some(old) != value.as_ref() => None,
            (Some(None), _) => None,
            _ => value,
        };
        self.variables.insert(name.to_owned(), known);
        true
    }

    fn is_built_in(&self, name: &str) -> bool {
        matches!(name, "CC" | "CXX" | "AR" | "LD" | "RM" | "MAKE" | "CURDIR" | "PWD" | "INSTALL")
    }

    /// The files of more rules.
    pub(super) fn included(&self) -> &[String] {
        &self.included
    }

    /// Whether the file was understood.
    pub(super) fn is_clear(&self) -> bool {
        self.is_clear
    }

    /// The command lines that run.
    pub(super) fn lines(&self, asked: &RecipeRequest<'_>) -> Vec<String> {
        let mut lines: Vec<String> = self.always.iter().map(|line| self.expanded(line, 0)).collect();
        if !asked.only_shows {
            let rules = self.reached(asked);
            let recipes = rules.into_iter().flat_map(|rule| self.recipe(rule));
            lines.extend(recipes);
        }
        lines
    }

    fn recipe(&self, rule: &RecipeRule) -> Vec<String> {
        let is_script = rule.lines.first().is_some_and(|line| line.starts_with("#!"));
        let plain = |line: &String| self.expanded(line.trim_start_matches(['@', '-', '+', ' ']), 0);
        let lines: Vec<String> = rule.lines.iter().map(plain).collect();
        // A script in one piece; in another language it is not read, and doubted.
        match lines.first() {
            Some(first) if is_script && first.ends_with("sh") => vec![lines.join("\n")],
            Some(_) if is_script => vec!["\"$unknown\"".to_owned()],
            _ => lines,
        }
    }

    /// The names in a list of targets or of what they need.
    fn names(&self, text: &str) -> Vec<String> {
        let text = self.expanded(text, 0);
        let names = text.split(|c: char| c.is_whitespace() || "|()&:\"".contains(c));
        names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    /// The rules that the goals need.
    fn reached(&self, asked: &RecipeRequest<'_>) -> Vec<&RecipeRule> {
        let Some(goals) = &asked.goals else { return self.rules.iter().collect() };
        let rules: Vec<&RecipeRule> = self.rules.iter().chain(&self.aliases).collect();
        let mut by_target: HashMap<String, Vec<usize>> = HashMap::new();
        // Rules for many names, which may make whatever no rule names.
        let (mut loose, mut first) = (Vec::new(), None);
        for (at, rule) in rules.iter().enumerate() {
            for target in self.names(&rule.targets) {
                let is_special = target.starts_with('.') && target != ".PHONY";
                if target.contains(['%', '$']) || is_special {
                    loose.push(at);
                } else if first.is_none() && target != ".PHONY" {
                    first = Some(target.clone());
                }
                by_target.entry(target).or_default().push(at);
            }
        }
        let mut waiting: Vec<String> = goals.iter().map(|goal| (*goal).to_owned()).collect();
        if waiting.is_empty() {
            waiting.extend(first);
        }
        let (mut reached, mut known) = (BTreeSet::new(), HashSet::new());
        while let Some(goal) = waiting.pop() {
            if !known.insert(goal.clone()) {
                continue;
            }
            let made = by_target.get(&goal).cloned().unwrap_or_else(|| std::mem::take(&mut loose));
            for at in made {
                if reached.insert(at) {
                    waiting.extend(self.names(&rules[at].needs));
                }
            }
        }
        reached.into_iter().map(|at| rules[at]).collect()
    }

    /// A line with the values of its variables; what is not known becomes a variable of the shell.
    fn expanded(&self, line: &str, depth: usize) -> String {
        if self.writing == RecipeProgram::Just {
            return self.interpolated(line);
        }
        let mut text = String::new();
        let mut rest = line;
        while let Some(at) = rest.find('$') {
            self.values.set(self.values.get() + 1);
            if text.len() > MAX_LINE_BYTES || depth > MAX_DEPTH || self.values.get() > MAX_VALUES {
                return UNKNOWN.to_owned();
            }
            text.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let Some(sign) = rest.chars().next() else { break };
            match sign {
                '$' => text.push('$'),
                '(' | '{' => {
                    let Some(end) = closing(rest) else { return UNKNOWN.to_owned() };
                    text.push_str(&self.value(&rest[1..end], depth));
                    rest = &rest[end + 1..];
                    continue;
                }
                '@' | '<' | '^' | '+' | '*' | '?' | '|' | '%' => text.push_str("made"),
                name => text.push_str(&self.value(&name.to_string(), depth)),
            }
            rest = &rest[sign.len_utf8()..];
        }
        text + rest
    }

    /// The value of what is in `$(…)`.
    fn value(&self, name: &str, depth: usize) -> String {
        let (first, rest) = name.split_once(char::is_whitespace).unwrap_or((name, ""));
        match first {
            "shell" => return format!("$({})", self.expanded(rest, depth + 1)),
            "info" | "warning" | "error" => return String::new(),
            "@D" | "@F" | "<D" | "<F" | "*D" | "*F" | "^D" | "^F" => return "made".to_owned(),
            // The first one is the name of a variable with the text.
            "call" => {
                let name = rest.split(',').next().unwrap_or_default().trim();
                let value = self.variables.get(name).cloned().flatten();
                return value.map_or(UNKNOWN.to_owned(), |value| self.expanded(&value, depth + 1));
            }
            _ => {}
        }
        match self.variables.get(name) {
            Some(Some(value)) => self.expanded(value, depth + 1),
            _ => UNKNOWN.to_owned(),
        }
    }

    /// The same for a justfile.
    fn interpolated(&self, line: &str) -> String {
        let mut text = String::new();
        let mut rest = line;
        while let Some((before, after)) = rest.split_once("{{") {
            let Some((name, after)) = after.split_once("}}") else { return UNKNOWN.to_owned() };
            text.push_str(before);
            match self.variables.get(name.trim()) {
                Some(Some(value)) => text.push_str(value),
                _ => text.push_str(UNKNOWN),
            }
            rest = after;
        }
        text + rest
    }
}

/// Where the bracket at the beginning of a text is closed.
fn closing(text: &str) -> Option<usize> {
    let (open, close) = if text.starts_with('(') { ('(', ')') } else { ('{', '}') };
    let mut depth = 0usize;
    for (at, c) in text.char_indices() {
        depth = match c {
            c if c == open => depth + 1,
            c if c == close => depth - 1,
            _ => depth,
        };
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// The commands of `$(shell …)` in a line.
fn shells(line: &str) -> Vec<String> {
    let starts =
        line.match_indices("$(shell ").map(|(at, _)| at).chain(line.match_indices("${shell ").map(|(at, _)| at));
    let inner = starts.filter_map(|at| {
        let rest = &line[at + 1..];
        Some(rest[1..closing(rest)?].trim_start_matches("shell").trim().to_owned())
    });
    inner.collect()
}

/// A line up to a comment.
fn without_comment(line: &str) -> &str {
    let comment = line.char_indices().find(|(at, c)| *c == '#' && !line[..*at].ends_with('\\'));
    comment.map_or(line, |(at, _)| &line[..at])
}

/// The text of a value in quotes, if it is nothing else.
fn unquoted(value: &str) -> Option<String> {
    let inner = ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote))?;
    (!inner.contains(['"', '\''])).then(|| inner.to_owned())
}
