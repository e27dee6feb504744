//! Code in colours: strings, numbers, comments and words that most languages share.

const KEYWORD: &str = "35";
const STRING: &str = "32";
const NUMBER: &str = "33";
const COMMENT: &str = "2";

/// How comments of a language begin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Language {
    /// With `//`.
    #[default]
    Slashes,
    /// With `#`.
    Hashes,
    /// With `--`.
    Dashes,
    /// It is prose or data, and is not coloured.
    None,
}

impl Language {
    /// That of the name after a fence.
    pub fn named(name: &str) -> Self {
        let name = name.split([' ', ',', '{']).next().unwrap_or_default().to_lowercase();
        match name.as_str() {
            "py" | "python" | "sh" | "bash" | "zsh" | "shell" | "console" | "fish" | "rb" | "ruby" | "toml"
            | "yaml" | "yml" | "dockerfile" | "make" | "makefile" | "perl" | "r" | "elixir" | "nix" | "cmake" => {
                Self::Hashes
            }
            "sql" | "lua" | "haskell" | "hs" | "elm" | "ada" => Self::Dashes,
            "" | "text" | "txt" | "md" | "markdown" | "csv" | "log" | "diff" | "patch" | "html" | "xml" => Self::None,
            _ => Self::Slashes,
        }
    }

    fn comment(self) -> Option<&'static str> {
        match self {
            Self::Slashes => Some("//"),
            Self::Hashes => Some("#"),
            Self::Dashes => Some("--"),
            Self::None => None,
        }
    }
}

/// Words that mean something in several languages.
const KEYWORDS: [&str; 62] = [
    "abstract",
    "and",
    "as",
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "def",
    "do",
    "done",
    "elif",
    "else",
    "enum",
    "esac",
    "except",
    "export",
    "extends",
    "false",
    "fi",
    "finally",
    "fn",
    "for",
    "from",
    "func",
    "function",
    "if",
    "impl",
    "import",
    "in",
    "interface",
    "is",
    "let",
    "loop",
    "match",
    "mod",
    "mut",
    "new",
    "nil",
    "not",
    "null",
    "None",
    "or",
    "package",
    "pub",
    "raise",
    "return",
    "static",
    "struct",
    "then",
    "throw",
    "trait",
    "true",
    "try",
    "type",
    "use",
    "var",
    "while",
    "with",
];

/// A line of code in its styles.
pub fn coloured(line: &str, language: Language) -> Vec<(char, &'static str)> {
    let mut glyphs = Vec::with_capacity(line.len());
    let mut push = |text: &str, style: &'static str| glyphs.extend(text.chars().map(|character| (character, style)));
    let Some(comment) = language.comment() else {
        push(line, "");
        return glyphs;
    };
    let mut rest = line;
    let mut before = ' ';
    while let Some(first) = rest.chars().next() {
        let (length, style) = match first {
            _ if rest.starts_with(comment) && (before.is_whitespace() || language == Language::Slashes) => {
                (rest.len(), COMMENT)
            }
            '"' | '\'' | '`' => string(rest, first).map_or((first.len_utf8(), ""), |length| (length, STRING)),
            '0'..='9' => (span(rest, |c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.')), NUMBER),
            c if c.is_alphabetic() || c == '_' => {
                let length = span(rest, |c| c.is_alphanumeric() || c == '_');
                (length, if KEYWORDS.contains(&&rest[..length]) { KEYWORD } else { "" })
            }
            other => (other.len_utf8(), ""),
        };
        push(&rest[..length], style);
        before = rest[..length].chars().next_back().unwrap_or(' ');
        rest = &rest[length..];
    }
    glyphs
}

fn span(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|character| !is_part(character)).unwrap_or(text.len())
}

/// The length of a string that ends in its line; a lifetime or an apostrophe is none.
fn string(text: &str, quote: char) -> Option<usize> {
    let mut is_escaped = false;
    for (at, character) in text.char_indices().skip(1) {
        match character {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            character if character == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, language: Language, expected: &[(&str, &str)]) {
        let glyphs = coloured(line, language);
        let runs: Vec<(String, &str)> = glyphs
            .chunk_by(|(_, one), (_, other)| one == other)
            .map(|run| (run.iter().map(|(character, _)| *character).collect(), run[0].1))
            .collect();
        let runs: Vec<(&str, &str)> = runs.iter().map(|(text, style)| (text.as_str(), *style)).collect();
        assert_eq!(runs, expected);
    }

    #[test]
    fn parts_of_code_have_their_styles() {
        let rust = Language::named("rust");
        check(
            "let x = 1; // a",
            rust,
            &[("let", KEYWORD), (" x = ", ""), ("1", NUMBER), ("; ", ""), ("// a", COMMENT)],
        );
        check(
            "f(\"a\\\"b\", 'c')",
            rust,
            &[("f(", ""), ("\"a\\\"b\"", STRING), (", ", ""), ("'c'", STRING), (")", "")],
        );
        check("&'a str", rust, &[("&'a str", "")]);
        check("a#b # c", Language::named("sh"), &[("a#b ", ""), ("# c", COMMENT)]);
        check("letter = é", rust, &[("letter = é", "")]);
        check("if 1", Language::named(""), &[("if 1", "")]);
        check("x -- y", Language::named("sql"), &[("x ", ""), ("-- y", COMMENT)]);
    }
}
