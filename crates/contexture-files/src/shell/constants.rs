//! Variables that a command line sets once, to a text that is written out in it.

use super::Simple;

/// Words after which a variable may be set in a way that is not written out.
const HIDING: [&str; 4] = ["eval", "source", "trap", "unset"];

/// The variables whose values are known from here on.
pub(super) struct Constants<'a> {
    /// The whole line.
    line: &'a str,
    known: Vec<(String, String)>,
}

impl<'a> Constants<'a> {
    pub(super) fn new(line: &'a str) -> Self {
        Self { line, known: Vec::new() }
    }

    /// Notes what a command sets that certainly runs before everything after it. Returns whether that is all it does.
    pub(super) fn note(&mut self, command: &Simple) -> bool {
        let is_export = command.assigns.is_empty() && command.program() == Some("export");
        let is_plain = command.redirects.is_empty() && (command.words.is_empty() || is_export);
        let set = if is_export { command.arguments() } else { &command.assigned };
        if !is_plain || set.is_empty() {
            return false;
        }
        for word in set {
            let Some((name, value)) = word.plain().and_then(|text| text.split_once('=')) else { continue };
            if is_set_once(self.line, name) {
                self.known.push((name.to_owned(), value.to_owned()));
            }
        }
        true
    }

    /// The value of a variable, if the shell puts exactly that in its place.
    pub(super) fn value(&self, name: &str, in_quotes: bool) -> Option<&str> {
        let (_, value) = self.known.iter().find(|(known, _)| known == name)?;
        let is_inert = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
        let stays = match in_quotes {
            // What is evaluated where a number is expected.
            true => !value.contains(['[', '`', '$']),
            false => !value.is_empty() && value.chars().all(is_inert),
        };
        stays.then_some(value.as_str())
    }
}

/// Whether a line mentions a variable once besides the places where its value is put.
fn is_set_once(line: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let is_whole = |at: &usize| !line[..*at].ends_with(is_part) && !line[at + name.len()..].starts_with(is_part);
    let is_use = |at: &usize| {
        let rest = &line[at + name.len()..];
        line[..*at].ends_with('$') || (line[..*at].ends_with("${") && rest.starts_with('}'))
    };
    let mentions = line.match_indices(name).map(|(at, _)| at).filter(is_whole).filter(|at| !is_use(at)).count();
    let parts = line.split(['\n', ';', '&', '|', '(', '{']).filter_map(|part| part.split_whitespace().next());
    let hides = parts.into_iter().any(|word| word == "." || HIDING.contains(&word));
    // With other separators a value may become several words.
    !name.is_empty() && mentions == 1 && !hides && !line.contains("IFS")
}

#[cfg(test)]
mod tests {
    use crate::shell::parse;

    fn words(line: &str) -> Vec<String> {
        let script = parse(line).unwrap();
        let last = script.commands().last().unwrap();
        last.words.iter().map(|word| word.plain().unwrap_or("?").to_owned()).collect()
    }

    #[test]
    fn a_variable_that_is_set_once_is_its_value() {
        assert_eq!(words("D=/tmp/x; ls $D/a"), ["ls", "/tmp/x/a"]);
        assert_eq!(words("A=1 && B=\"$A 2\" && echo \"${B}\""), ["echo", "1 2"]);
        assert_eq!(words("export D=/tmp/x\ncd $D"), ["cd", "/tmp/x"]);
        for line in [
            "D='a b'; ls $D",
            "D=a; D=b; ls $D",
            "test -f x && D=a; ls $D",
            "D=a ls $D",
            "read D; ls $D",
            "D=a; read D; ls $D",
            "D=a; eval \"$X\"; ls $D",
            "D=-; ls ${D:-b}",
            "D='*'; ls $D",
            "D=a | ls $D",
            "x || D=a; ls $D",
            "IFS=,; D=a,b; ls $D",
        ] {
            assert!(words(line).contains(&"?".to_owned()), "{line}");
        }
        assert_eq!(words("D=a; ls '$D'"), ["ls", "$D"]);
    }
}
