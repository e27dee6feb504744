//! The characters that parts of keys are made of.

/// Which characters a part of a key has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyCharacters {
    Digit,
    /// Capital letters and digits.
    Upper,
    /// Small letters and digits.
    Lower,
    /// Hexadecimal digits.
    Hex,
    /// Hexadecimal digits and `-`.
    Uuid,
    /// Capital letters, digits and `-`.
    Serial,
    /// Letters and digits.
    Alnum,
    /// Letters, digits, `-` and `_`.
    Word,
    /// The same, `.` and `~`.
    Tilde,
    /// The same, `=`, `/`, `+` and `$`.
    Wide,
    /// Letters, digits, `+`, `/` and `=`.
    Base64,
    /// Letters, digits and escapes such as `%3D`, of which there is one.
    Percent,
    /// The name of a host, with `/`.
    Host,
    /// The path of an address, with `@`.
    Path,
}

impl KeyCharacters {
    /// Those of a name in `keys.txt`.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "digit" => Self::Digit,
            "upper" => Self::Upper,
            "lower" => Self::Lower,
            "hex" => Self::Hex,
            "uuid" => Self::Uuid,
            "serial" => Self::Serial,
            "alnum" => Self::Alnum,
            "word" => Self::Word,
            "tilde" => Self::Tilde,
            "wide" => Self::Wide,
            "base64" => Self::Base64,
            "percent" => Self::Percent,
            "path" => Self::Path,
            _ => return None,
        })
    }

    /// Whether a byte is of the kind.
    pub(super) fn has(self, byte: u8) -> bool {
        let is_alnum = byte.is_ascii_alphanumeric();
        match self {
            KeyCharacters::Digit => byte.is_ascii_digit(),
            KeyCharacters::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            KeyCharacters::Lower => byte.is_ascii_lowercase() || byte.is_ascii_digit(),
            KeyCharacters::Hex => byte.is_ascii_hexdigit(),
            KeyCharacters::Uuid => byte.is_ascii_hexdigit() || byte == b'-',
            KeyCharacters::Serial => byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'-',
            KeyCharacters::Alnum => is_alnum,
            KeyCharacters::Word => is_alnum || matches!(byte, b'-' | b'_'),
            KeyCharacters::Tilde => is_alnum || b"-_.~".contains(&byte),
            KeyCharacters::Wide => is_alnum || b"-_.=/+~$".contains(&byte),
            KeyCharacters::Base64 => is_alnum || b"+/=".contains(&byte),
            KeyCharacters::Percent => is_alnum || byte == b'%',
            KeyCharacters::Host => is_alnum || b"-./".contains(&byte),
            KeyCharacters::Path => is_alnum || b"-./@".contains(&byte),
        }
    }

    /// How many bytes at the beginning of these are of the kind, at most so many.
    pub(super) fn run(self, bytes: &[u8], most: usize) -> usize {
        bytes.iter().take(most).take_while(|byte| self.has(**byte)).count()
    }

    /// The same at the end.
    pub(super) fn run_back(self, bytes: &[u8], most: usize) -> usize {
        bytes.iter().rev().take(most).take_while(|byte| self.has(**byte)).count()
    }
}
