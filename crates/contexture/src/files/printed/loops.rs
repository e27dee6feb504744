//! Loops that print one file after the other, each behind its name.

use super::super::shell::Command;
use super::prints::of_command;
use super::{Headed, Prints};

/// What stands for the loop's variable while its body is looked into. No path has it.
const NAME: &str = "\u{1}";

/// If the commands begin with a `for` loop whose body prints a name and then a file of that name: what it prints,
/// and how many commands it has.
///
/// Loops over words that are written out are unrolled by the parser; this is for `for f in src/*.rs`.
pub(super) fn of_loop(commands: &[Command], directory: Option<&str>) -> Option<(Prints, usize)> {
    let [head, rest @ ..] = commands else { return None };
    let [keyword, variable, _, ..] = head.words.as_slice() else { return None };
    if keyword != "for" {
        return None;
    }
    let end = rest.iter().position(|command| command.program() == "done")?;
    let is_plain = rest.get(end + 1).is_none_or(|behind| !behind.piped) && rest[end].writes.is_empty();
    let [echo, print, others @ ..] = &rest[..end] else { return None };
    let blank_only = others.iter().all(|command| command.program() == "echo" && command.arguments().is_empty());
    if !is_plain || !blank_only || [echo, print].iter().any(|command| command.piped || !command.writes.is_empty()) {
        return None;
    }
    let (echo, print) = (echo.without_keyword().with_variable(variable, NAME), print.with_variable(variable, NAME));
    if echo.program() != "echo" {
        return None;
    }
    let text = echo.arguments().join(" ");
    let (prefix, suffix) = text.split_once(NAME)?;
    let Prints::File(each) = of_command(&print, &|path| path.to_owned()) else { return None };
    // Without anything around the name, a line of the file could pass for it.
    if each.path != NAME || (prefix.trim().is_empty() && suffix.trim().is_empty()) {
        return None;
    }
    let (prefix, suffix) = (prefix.to_owned(), suffix.to_owned());
    let headed = Headed { prefix, suffix, directory: directory.map(str::to_owned), each };
    Some((Prints::Headed(headed), end + 2))
}
