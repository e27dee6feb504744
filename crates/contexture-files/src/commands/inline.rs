//! Programs of other languages on a command line: `python3 -c '…'`, `node -e '…'`, `perl -pe '…'`.
//!
//! They are not run and not parsed. A text that has none of the words with which these languages change files, run
//! other programs or hide what they do is presumed to read only. If all that it writes is named in it, only that is in
//! doubt.

use self::words::{OTHER_DEEDS, PYTHON_DEEDS, PYTHON_FINDERS, PYTHON_MODULES, PYTHON_WRITERS, SCRIPT_DEEDS};
use super::sed::{PatternSyntax, has_flag, needed_text};
use super::table::Language;
use super::{Effects, command_label, operands_of, reach};
use crate::change_words::CHANGERS;
use crate::mentions::looks_like_file;
use crate::model::named_places;
use crate::observation::{LineChange, Observation};
use crate::path::Directory;
use crate::shell::{Redirect, Simple, Word};

mod words;

/// What a program text does, by its words.
#[derive(Debug, PartialEq, Eq)]
enum Deeds<'a> {
    /// It has no word with which something is changed.
    Reads,
    /// It writes, and these are all the names of files that it has.
    Writes(Vec<&'a str>),
    /// It may do anything.
    Unknown,
}

/// Returns what a command does that is given its program on the command line; `None` if it is not given one.
pub(super) fn effects(language: Language, command: &Simple, directory: &Directory) -> Option<Effects> {
    let deeds = match language {
        Language::Python => python(given(command, &["-c"], true)?),
        Language::JavaScript => script(given(command, &["-e", "-p", "-pe", "--eval", "--print"], true)?),
        Language::Ruby => other(given(command, &["-e", "-ne", "-pe"], false)?),
        Language::Perl => return perl(command, directory),
    };
    Some(of_deeds(deeds, command, directory))
}

fn of_deeds(deeds: Deeds<'_>, command: &Simple, directory: &Directory) -> Effects {
    let by = command_label(command);
    match deeds {
        Deeds::Reads => Effects::presumed(),
        Deeds::Writes(names) => {
            let swept = |name: &&str| Observation::Swept {
                under: directory.place_somewhere(name),
                extensions: Vec::new(),
                by: by.clone(),
            };
            Effects { doubts: names.iter().map(swept).collect(), ..Effects::presumed() }
        }
        Deeds::Unknown => Effects::all(command),
    }
}

/// Options without a value that change nothing of what a program does to files.
const PLAIN: &[&str] = &["-u", "-I", "-S", "-s", "-B", "-E", "--no-warnings", "--input-type=module"];

/// The text of the program, if it is given after one of some options, or as input.
fn given<'a>(command: &'a Simple, options: &[&str], takes_input: bool) -> Option<&'a str> {
    let words = command.arguments();
    if let Some(at) = words.iter().position(|word| word.plain().is_some_and(|text| options.contains(&text))) {
        // Only options without a value may come before it.
        let are_plain = words[..at].iter().all(|word| word.plain().is_some_and(|text| PLAIN.contains(&text)));
        return words.get(at + 1).filter(|_| are_plain).map(|word| word.text.as_str());
    }
    let reads_input = words.is_empty() || words.first()?.plain() == Some("-");
    let mut inputs = command.redirects.iter().filter_map(|redirect| match redirect {
        Redirect::Document { text, is_plain: true } => Some(text.as_str()),
        _ => None,
    });
    inputs.next().filter(|_| takes_input && reads_input && inputs.next().is_none())
}

/// The words of a text: names, each with whether a dot is before it.
fn names(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty())
}

fn python(text: &str) -> Deeds<'_> {
    let mut bare =
        text.replace("sys.stdout.write", "print").replace("sys.stderr.write", "print").replace("re.compile", "re");
    // What lines are joined to is no name of a file.
    for feed in ["\"\\n\".join(", "'\\n'.join("] {
        bare = bare.replace(feed, "str(");
    }
    let has = |words: &[&str]| names(&bare).any(|name| words.contains(&name));
    let has_odd = bare.contains("os.open")
        || bare.contains("os.replace")
        || bare.contains("sys.path")
        || bare.contains("sys.modules");
    // `Path.replace` renames a file.
    let renames = |at: usize| within(&bare[at + ".replace(".len()..]).is_none_or(|all| top_level(all).count() < 2);
    let may_rename = has(&["Path", "pathlib"]) && bare.match_indices(".replace(").any(|(at, _)| renames(at))
        || bare.contains(".replace)");
    if has(PYTHON_DEEDS) || has_odd || may_rename {
        return Deeds::Unknown;
    }
    // What is imported is code of the project, as in a test, or of a package. With names of its own it may write.
    let is_known = imports_known(&bare);
    let writes = match opens(&bare) {
        Some(writes) => writes || has(PYTHON_WRITERS),
        None => return Deeds::Unknown,
    };
    if !writes {
        return if imports(&bare).any(says_change) { Deeds::Unknown } else { Deeds::Reads };
    }
    let literals = python_literals(text);
    // Names may also be put together from parts.
    let is_part = |literal: &&str| {
        literal.ends_with('/')
            || (literal.starts_with('.') && !literal.starts_with("./") && !literal.starts_with("../"))
    };
    let is_composed = has(PYTHON_FINDERS) || composes(text) || literals.iter().any(is_part);
    if is_composed || !is_known {
        return Deeds::Unknown;
    }
    let mut files: Vec<&str> =
        literals.into_iter().filter(|literal| looks_like_file(literal) && !literal.contains('\n')).collect();
    files.extend(named_places(text).map(|place| place.path).filter(|path| path.contains('/')));
    files.sort_unstable();
    files.dedup();
    if files.is_empty() { Deeds::Unknown } else { Deeds::Writes(files) }
}

/// Whether the name of a file may be put together: where one is opened, or with the sign for parts of paths.
fn composes(text: &str) -> bool {
    let is_put_together = |arguments: &str| {
        let first = top_level(arguments).next().unwrap_or_default();
        first.contains(['+', '%', '{', '(', '/']) && !first.trim().starts_with(['\'', '"'])
            || first.contains("f'")
            || first.contains("f\"")
            || first.contains("' ")
            || first.contains("\" ")
    };
    let opened = ["open(", "Path("]
        .iter()
        .flat_map(|begin| text.match_indices(begin).map(|(at, _)| within(&text[at + begin.len()..]).unwrap_or("+")));
    opened.into_iter().any(is_put_together) || text.contains(") / ") || text.contains("' / ") || text.contains("\" / ")
}

/// The modules that a text imports.
fn imports(text: &str) -> impl Iterator<Item = &str> {
    let statements = text.split(['\n', ';']).map(str::trim);
    let names = statements.filter_map(|line| line.strip_prefix("import ").or_else(|| line.strip_prefix("from ")));
    names.flat_map(|names| names.split([',', ' ', '.'])).filter(|name| !name.is_empty())
}

/// Whether all modules that a text imports are known.
fn imports_known(text: &str) -> bool {
    let is_known = |name: &str| PYTHON_MODULES.contains(&name.trim().split(['.', ' ']).next().unwrap_or_default());
    let statements = text.split(['\n', ';']).map(str::trim);
    statements.into_iter().all(|statement| match (statement.strip_prefix("import "), statement.strip_prefix("from ")) {
        (Some(names), _) => names.split(',').all(is_known),
        (_, Some(rest)) => is_known(rest),
        // One inside of a line, such as after a colon.
        _ => !names(statement).any(|name| name == "import"),
    })
}

/// Whether any file is opened for writing; `None` if that is not certain.
fn opens(text: &str) -> Option<bool> {
    let mut writes = false;
    for (at, _) in text.match_indices("open(") {
        let arguments = within(&text[at + "open(".len()..])?;
        for argument in top_level(arguments).skip(1) {
            let value = argument
                .trim()
                .strip_prefix("mode")
                .map_or(argument.trim(), |rest| rest.trim_start().trim_start_matches('=').trim());
            let is_named = ["encoding", "errors", "newline", "buffering"].iter().any(|name| value.starts_with(name));
            if is_named {
                continue;
            }
            let mode = value.strip_prefix(['\'', '"']).and_then(|mode| mode.strip_suffix(['\'', '"']))?;
            writes |= mode.contains(['w', 'a', 'x', '+']);
        }
        // `Path(…).open('w')` has its mode first.
        writes |= text[..at].ends_with('.') && arguments.contains(['w', 'a', 'x', '+']);
    }
    Some(writes)
}

/// The text up to the parenthesis that closes it.
fn within(text: &str) -> Option<&str> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' if depth == 0 => return Some(&text[..at]),
            ')' | ']' | '}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

/// Arguments separated by commas.
fn top_level(arguments: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_i32;
    arguments.split(move |c: char| {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    })
}

/// The texts between quotes in a program of Python, without those in comments.
fn python_literals(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(next) = text[at..].find(['#', '\'', '"']) {
        at += next;
        let rest = &text[at..];
        if rest.starts_with('#') {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        let quote = ["\"\"\"", "'''"].into_iter().find(|quote| rest.starts_with(quote)).unwrap_or(&rest[..1]);
        let inner = &rest[quote.len()..];
        let mut end = 0;
        while end < inner.len() && !inner[end..].starts_with(quote) {
            let escaped = usize::from(inner[end..].starts_with('\\'));
            let skipped: usize = inner[end..].chars().take(1 + escaped).map(char::len_utf8).sum();
            end += skipped;
        }
        found.push(&inner[..end.min(inner.len())]);
        at += quote.len() + end.min(inner.len()) + quote.len();
        if at >= text.len() {
            break;
        }
    }
    found
}

/// The texts between quotes, however they are nested.
fn literals(text: &str) -> Vec<&str> {
    let parts = |quote: char| text.split(quote).skip(1).step_by(2).collect::<Vec<&str>>();
    let mut all = parts('\'');
    all.extend(parts('"'));
    all
}

fn script(text: &str) -> Deeds<'_> {
    let bare = text.replace("process.stdout.write", "print").replace("console.", "print.");
    // What is loaded is code of the project, as in a test, or of a package.
    let loads = |begin: &str| {
        let loaded: Vec<String> = bare
            .match_indices(begin)
            .map(|(at, _)| {
                let argument = within(&bare[at + begin.len()..]).unwrap_or_default().trim();
                let name = argument.strip_prefix(['\'', '"']).and_then(|name| name.strip_suffix(['\'', '"']));
                name.unwrap_or_default().to_owned()
            })
            .collect();
        loaded
    };
    let is_plain = |module: &String| !module.is_empty() && !module.contains("child_process") && !says_change(module);
    let is_harmless = loads("require(").iter().chain(&loads("import(")).all(is_plain)
        && literals(&bare).iter().filter(|literal| literal.contains('/')).all(|literal| !says_change(literal));
    let has_deed = names(&bare).any(|name| SCRIPT_DEEDS.contains(&name));
    // A member may be named by a text that is put together.
    if !is_harmless || has_deed || bare.contains("fs[") || bare.contains("process[") {
        Deeds::Unknown
    } else {
        Deeds::Reads
    }
}

/// Whether the name of a module says that it changes something.
fn says_change(module: &str) -> bool {
    let name = module.rsplit('/').next().unwrap_or(module);
    let parts = name.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_ascii_lowercase);
    parts.into_iter().any(|part| CHANGERS.contains(&part.as_str()))
}

fn other(text: &str) -> Deeds<'_> {
    let has_deed = names(text).any(|name| OTHER_DEEDS.contains(&name));
    if has_deed || text.contains(['`', '>', '|']) { Deeds::Unknown } else { Deeds::Reads }
}

/// `perl -ne`, `perl -pe` and, in place, `perl -pi -e`.
fn perl(command: &Simple, directory: &Directory) -> Option<Effects> {
    let words = command.arguments();
    let at = words.iter().position(|word| word.text.starts_with('-') && word.text.ends_with('e'))?;
    let options = &words[..=at];
    let is_plain = |text: &str| text.starts_with('-') && text[1..].chars().all(|c| "07nplaewiE".contains(c));
    if !options.iter().all(|word| word.plain().is_some_and(is_plain)) {
        return None;
    }
    let code = words.get(at + 1)?;
    // `e` at the end of a substitution runs its result. What the shell puts into one is text.
    let is_plain = code.plain().is_some();
    let is_text = code.is_quoted && code.text.trim_start().starts_with("s/");
    let runs = has_flag(&code.text, &['e']) || !(is_plain || is_text);
    let text = if is_plain { code.text.clone() } else { code.text.replace("``", "") };
    if runs || !(only_substitutes(&text) || other(&text) == Deeds::Reads) {
        return None;
    }
    let in_place = options.iter().any(|word| word.text.contains('i'));
    if !in_place {
        return Some(Effects::presumed());
    }
    let by = command_label(command);
    let operands: Vec<_> = operands_of(command).filter(|word| !std::ptr::eq(*word, code)).collect();
    if operands.is_empty() || operands.iter().any(|word| word.text.starts_with('-')) {
        return None;
    }
    // Line by line, a substitution touches only lines that have its text.
    let is_by_line = options.iter().all(|word| !word.text.contains(['0', 'l', 'a', 'n'])) && is_printing(options);
    if let Some(change) = substitution(&code.text).filter(|_| is_by_line && is_plain) {
        let one = |word: &&Word| {
            let path = directory.place(word.plain()?)?;
            Some(Observation::Rewrite { path, changes: vec![change.clone()], by: by.clone() })
        };
        if let Some(changes) = operands.iter().map(one).collect::<Option<Vec<_>>>() {
            return Some(Effects { changes, ..Effects::presumed() });
        }
    }
    let doubts = operands.into_iter().map(|word| reach(word, directory, &by)).collect();
    Some(Effects { doubts, ..Effects::presumed() })
}

/// Whether a program of Perl consists of substitutions alone, whose texts do nothing.
fn only_substitutes(code: &str) -> bool {
    let mut statements = code.split([';', '\n']).map(str::trim).filter(|statement| !statement.is_empty());
    let runs = ["@{", "${", "(?{", "(??{"].iter().any(|sign| code.contains(sign));
    !runs
        && statements
            .all(|statement| statement.strip_prefix('s').is_some_and(|rest| rest.starts_with(['/', '|', '#', '{'])))
}

/// Whether options of Perl let it print every line after its program ran.
fn is_printing(options: &[Word]) -> bool {
    options.iter().any(|word| word.text.contains('p'))
}

/// The lines that a single substitution of Perl may touch.
fn substitution(code: &str) -> Option<LineChange> {
    let rest = code.trim().trim_end_matches(';').strip_prefix('s')?;
    let delimiter = rest.chars().next().filter(|c| "/|#,!%~".contains(*c))?;
    let parts: Vec<&str> = rest[1..].split(delimiter).collect();
    let [pattern, replacement, flags] = parts.as_slice() else { return None };
    let is_plain = flags.chars().all(|c| c == 'g') && !pattern.ends_with('\\') && !replacement.ends_with('\\');
    let keeps_count = !replacement.contains("\\n") && !replacement.contains('\n');
    let text = needed_text(pattern, PatternSyntax::Perl).filter(|_| is_plain)?;
    Some(LineChange::Perhaps { text, keeps_count })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_only_print_are_presumed_to_read() {
        let reads = [
            "import json,sys; print(json.load(sys.stdin)['a'])",
            "print(1 + 1)",
            "import json\nwith open('/p/a.json') as f:\n    print(json.load(f))",
            "import re\nfor m in re.compile('a').findall(open('a.txt', encoding='utf-8').read()): print(m)",
            "import sys; sys.stdout.write('x')",
        ];
        for text in reads {
            assert_eq!(python(text), Deeds::Reads, "{text}");
        }
        let unknown = [
            "import os; os.remove('a.txt')",
            "import shutil; shutil.copy('a', 'b')",
            "import os; getattr(os, 're' + 'move')('a')",
            "exec('x')",
            "open('a.txt', m).write('x')",
            "from pathlib import Path; Path('a').replace('b')",
            "import mine; open('a.txt', 'w').write(mine.text())",
            "import migrate; migrate.go()",
            "if 1: import mine\nopen('a.txt', 'w')",
            "p = 'src'\nopen(p + '/a.txt', 'w')",
            "import pathlib\n(pathlib.Path('src') / 'a.txt').write_text('x')",
            "import glob\nfor f in glob.glob('*'): open(f, 'w')",
            "open('a' + '.txt', 'w')",
            "open(f'{x}.txt', 'w')",
            "__import__('os').system('rm a')",
        ];
        for text in unknown {
            assert_eq!(python(text), Deeds::Unknown, "{text}");
        }
    }

    #[test]
    fn programs_that_write_what_they_name_reach_only_that() {
        let text = "s = open('src/a.go').read()\ns = s.replace('x', 'y')\nopen('src/a.go', 'w').write(s)";
        assert_eq!(python(text), Deeds::Writes(vec!["src/a.go"]));
        let text = "for p in ['a/x.go', 'b/y.go']:\n    s = open(p).read()\n    open(p, 'w').write(s)\n    print(f'{p} %d' % 1)";
        assert_eq!(python(text), Deeds::Writes(vec!["a/x.go", "b/y.go"]));
        assert_eq!(python("open('a.txt', mode='a')"), Deeds::Writes(vec!["a.txt"]));
        assert_eq!(python("from pathlib import Path\nPath('a.txt').open('w')"), Deeds::Writes(vec!["a.txt"]));
    }

    #[test]
    fn texts_of_python_are_found_whatever_is_in_comments() {
        let text = "# it's\nx = r'a\\'b' + \"\"\"c 'd'\"\"\" # \"e\"\ny = 'f'";
        assert_eq!(python_literals(text), ["a\\'b", "c 'd'", "f"]);
        assert_eq!(python_literals("x = 'open"), ["open"]);
        let text = "import pathlib\n# don't\nfor p in ['a/x.go']:\n    t = pathlib.Path(p).read_text()\n    pathlib.Path(p).write_text(t.replace('a', 'b'))";
        assert_eq!(python(text), Deeds::Writes(vec!["a/x.go"]));
    }

    #[test]
    fn substitutions_of_perl_do_nothing_else() {
        for code in ["s/a->b|c/d/g", "s|a|b|; s/need/keep/"] {
            assert!(only_substitutes(code) && !has_flag(code, &['e']), "{code}");
        }
        for code in ["s/a/b/; unlink 'x'", "s/a/@{[unlink 'x']}/", "s/a/unlink 'x'/e", "s{a}{f()}ge"] {
            assert!(!only_substitutes(code) || has_flag(code, &['e']), "{code}");
        }
    }

    #[test]
    fn scripts_are_judged_by_their_words() {
        assert_eq!(script("console.log(require('./package.json').version)"), Deeds::Reads);
        assert_eq!(script("import { f } from './src/f'; console.log(f(1))"), Deeds::Reads);
        assert_eq!(script("import { go } from './scripts/migrate.ts'; go()"), Deeds::Unknown);
        assert_eq!(script("console.log(JSON.parse(require('fs').readFileSync('a.json','utf8')).a)"), Deeds::Reads);
        for text in [
            "require('fs').writeFileSync('a','b')",
            "require('./codegen.js')",
            "require('child_process')",
            "fs['rm'+'Sync']('a')",
        ] {
            assert_eq!(script(text), Deeds::Unknown, "{text}");
        }
        assert_eq!(other("print if /x/"), Deeds::Reads);
        assert_eq!(other("system('rm a')"), Deeds::Unknown);
        assert_eq!(other("open(F, 'a')"), Deeds::Unknown);
    }
}
