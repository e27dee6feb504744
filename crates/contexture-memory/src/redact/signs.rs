//! The characters that parts of keys are made of.

/// Which characters a part of a key has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Signs {
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

impl Signs {
    /// Whether a byte is of the kind.
    pub(super) fn has(self, byte: u8) -> bool {
        let is_alnum = byte.is_ascii_alphanumeric();
        match self {
            Signs::Digit => byte.is_ascii_digit(),
            Signs::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Signs::Lower => byte.is_ascii_lowercase() || byte.is_ascii_digit(),
            Signs::Hex => byte.is_ascii_hexdigit(),
            Signs::Uuid => byte.is_ascii_hexdigit() || byte == b'-',
            Signs::Serial => byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'-',
            Signs::Alnum => is_alnum,
            Signs::Word => is_alnum || matches!(byte, b'-' | b'_'),
            Signs::Tilde => is_alnum || b"-_.~".contains(&byte),
            Signs::Wide => is_alnum || b"-_.=/+~$".contains(&byte),
            Signs::Base64 => is_alnum || b"+/=".contains(&byte),
            Signs::Percent => is_alnum || byte == b'%',
            Signs::Host => is_alnum || b"-./".contains(&byte),
            Signs::Path => is_alnum || b"-./@".contains(&byte),
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
