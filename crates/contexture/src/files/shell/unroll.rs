//! Loops over words that are written out, as the commands they run.

use super::Command;

/// Most commands that loops may become.
const MAX_UNROLLED: usize = 400;

/// The commands with `for` loops over plain words replaced by what they run; other loops stay as they are.
pub(super) fn unroll(commands: Vec<Command>) -> Vec<Command> {
    let mut unrolled = Vec::with_capacity(commands.len());
    let mut at = 0;
    while at < commands.len() {
        match plain_loop(&commands[at..]) {
            Some((variable, items, body)) if unrolled.len() + items.len() * body.len() <= MAX_UNROLLED => {
                for item in items {
                    unrolled.extend(body.iter().map(|command| command.without_keyword().with_variable(variable, item)));
                }
                at += body.len() + 2;
            }
            _ => {
                unrolled.push(commands[at].clone());
                at += 1;
            }
        }
    }
    unrolled
}

/// The variable, the words and the body of a loop that the commands begin with.
fn plain_loop(commands: &[Command]) -> Option<(&str, &[String], &[Command])> {
    let [head, rest @ ..] = commands else { return None };
    let [keyword, variable, preposition, items @ ..] = head.words.as_slice() else { return None };
    let is_plain = |item: &String| !item.contains(['*', '?', '[', '$', '`', '{']);
    if keyword != "for" || preposition != "in" || items.is_empty() || !items.iter().all(is_plain) {
        return None;
    }
    let end = rest.iter().position(|command| command.program() == "done")?;
    let body = &rest[..end];
    let is_nested = body.iter().any(|command| command.words.iter().any(|word| word == "for" || word == "while"));
    let is_consumed = rest.get(end + 1).is_some_and(|behind| behind.piped) || !rest[end].writes.is_empty();
    let begins = body.first()?.program() == "do";
    (begins && !is_nested && !is_consumed).then_some((variable.as_str(), items, body))
}

impl Command {
    /// The command without a `do` before it.
    pub(crate) fn without_keyword(&self) -> Command {
        let mut command = self.clone();
        if command.program() == "do" {
            command.words.remove(0);
        }
        command
    }

    /// The command with a variable replaced by its value.
    pub(crate) fn with_variable(&self, name: &str, value: &str) -> Command {
        let mut command = self.clone();
        for word in &mut command.words {
            *word = replaced(word, name, value);
        }
        for write in &mut command.writes {
            write.path = replaced(&write.path, name, value);
        }
        command
    }
}

/// A word with `$name` and `${name}` replaced.
fn replaced(word: &str, name: &str, value: &str) -> String {
    let mut done = String::with_capacity(word.len());
    let mut rest = word;
    while let Some(at) = rest.find('$') {
        let behind = &rest[at + 1..];
        done.push_str(&rest[..at]);
        let braced = behind.strip_prefix('{').and_then(|inner| inner.strip_prefix(name)?.strip_prefix('}'));
        let bare = behind
            .strip_prefix(name)
            .filter(|after| !after.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_'));
        match braced.or(bare) {
            Some(after) => {
                done.push_str(value);
                rest = after;
            }
            None => {
                done.push('$');
                rest = behind;
            }
        }
    }
    done.push_str(rest);
    done
}
