//! Removes private data from texts: keys, passwords, and the name of the home directory.

/// The replacement for removed data.
const REDACTED: &str = "[redacted]";

/// Prefixes by which keys can be recognised.
const KEY_STARTS: &[&str] = &[
    "sk-",
    "sk_live_",
    "sk_test_",
    "rk_live_",
    "pk_live_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xoxa-",
    "xoxs-",
    "AKIA",
    "ASIA",
    "AIza",
    "ya29.",
    "npm_",
    "pypi-",
    "hf_",
    "eyJ",
    "dop_v1_",
    "SG.",
];

/// Names that are followed by a secret.
const SECRET_NAMES: &[&str] = &[
    "password",
    "passwd",
    "secret",
    "api_key",
    "apikey",
    "api-key",
    "access_key",
    "auth_token",
    "access_token",
    "bearer",
];

/// The shortest key.
const LEAST_KEY: usize = 16;

/// The shortest secret after a name.
const LEAST_SECRET: usize = 6;

/// Returns a text without keys and passwords.
pub fn redacted(text: &str) -> String {
    let text = without_blocks(text);
    let mut clean = String::with_capacity(text.len());
    let mut rest = text.as_str();
    // Whether a secret is expected, because its name came just before.
    let mut is_expected = false;
    while let Some(first) = rest.chars().next() {
        if !is_word(first) {
            let end = rest.find(is_word).unwrap_or(rest.len());
            // A name and its secret are on one line, with little between them.
            is_expected &= end <= 4 && !rest[..end].contains('\n');
            clean.push_str(&rest[..end]);
            rest = &rest[end..];
            continue;
        }
        let end = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len());
        let word = &rest[..end];
        if is_key(word) || (is_expected && word.len() >= LEAST_SECRET && !is_scheme(word)) {
            clean.push_str(REDACTED);
            is_expected = false;
        } else {
            clean.push_str(word);
            is_expected = is_secret_name(word) || (is_expected && is_scheme(word));
        }
        rest = &rest[end..];
    }
    clean
}

fn is_word(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.' | '+' | '~')
}

fn is_scheme(word: &str) -> bool {
    word.eq_ignore_ascii_case("bearer") || word.eq_ignore_ascii_case("basic") || word.eq_ignore_ascii_case("token")
}

fn is_secret_name(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    SECRET_NAMES.iter().any(|name| word.ends_with(name))
}

fn is_key(word: &str) -> bool {
    let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
    word.len() >= LEAST_KEY && has_digit && KEY_STARTS.iter().any(|start| word.starts_with(start))
}

/// Returns a text without private key blocks.
fn without_blocks(text: &str) -> String {
    const BEGIN: &str = "-----BEGIN ";
    const END: &str = "PRIVATE KEY-----";
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(BEGIN) {
        let (before, block) = rest.split_at(at);
        clean.push_str(before);
        let title_end = block.find('\n').unwrap_or(block.len());
        let end = block.get(title_end..).and_then(|body| Some(title_end + body.find(END)? + END.len()));
        match end.filter(|_| block[..title_end].contains("PRIVATE KEY")) {
            Some(end) => {
                clean.push_str(REDACTED);
                rest = &block[end..];
            }
            None => {
                clean.push_str(BEGIN);
                rest = &block[BEGIN.len()..];
            }
        }
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(redacted(text), expected);
    }

    #[test]
    fn keys_and_passwords_are_taken_out() {
        check("key sk-ant-api03-abcdefgh12345678 here", "key [redacted] here");
        check("export GITHUB=ghp_0123456789abcdefghij", "export GITHUB=[redacted]");
        check("password: hunter2hunter2", "password: [redacted]");
        check("\"api_key\": \"abcdef123456\"", "\"api_key\": \"[redacted]\"");
        check("Authorization: Bearer abcdef.ghijkl", "Authorization: Bearer [redacted]");
        check("a\n-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----\nb", "a\n[redacted]\nb");
    }

    #[test]
    fn plain_text_stays() {
        for text in [
            "fn password() {}",
            "the password is\nnot here",
            "sk-short",
            "naïve 🦀 text",
            "",
            "-----BEGIN CERTIFICATE-----",
        ] {
            check(text, text);
        }
    }
}
