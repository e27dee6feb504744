//! Secrets in the formats of known providers.

use super::random::is_word;
use super::{Secret, begins_word};

/// Which characters follow the beginning of a key.
#[derive(Clone, Copy)]
enum Signs {
    /// Capital letters and digits.
    Upper,
    /// Hexadecimal digits.
    Hex,
    /// Letters and digits.
    Alnum,
    /// Letters, digits, `-` and `_`.
    Word,
    /// The same and `.`, `=`, `/`, `+`, `~`.
    Wide,
}

impl Signs {
    fn has(self, byte: u8) -> bool {
        match self {
            Signs::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Signs::Hex => byte.is_ascii_hexdigit(),
            Signs::Alnum => byte.is_ascii_alphanumeric(),
            Signs::Word => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'),
            Signs::Wide => byte.is_ascii_alphanumeric() || b"-_.=/+~".contains(&byte),
        }
    }
}

/// How a key begins, what follows, and at least how many of it.
struct Format(&'static str, Signs, usize, &'static str);

/// The formats that providers publish, so that their keys are found in logs and commits.
const FORMATS: &[Format] = &[
    Format("AKIA", Signs::Upper, 16, "AWS access key"),
    Format("ASIA", Signs::Upper, 16, "AWS access key"),
    Format("ABIA", Signs::Upper, 16, "AWS access key"),
    Format("ACCA", Signs::Upper, 16, "AWS access key"),
    Format("AIza", Signs::Word, 35, "Google API key"),
    Format("ya29.", Signs::Word, 20, "Google token"),
    Format("GOCSPX-", Signs::Word, 20, "Google client secret"),
    Format("ghp_", Signs::Alnum, 30, "GitHub token"),
    Format("gho_", Signs::Alnum, 30, "GitHub token"),
    Format("ghu_", Signs::Alnum, 30, "GitHub token"),
    Format("ghs_", Signs::Alnum, 30, "GitHub token"),
    Format("ghr_", Signs::Alnum, 30, "GitHub token"),
    Format("github_pat_", Signs::Word, 22, "GitHub token"),
    Format("glpat-", Signs::Word, 20, "GitLab token"),
    Format("gldt-", Signs::Word, 20, "GitLab token"),
    Format("glrt-", Signs::Word, 20, "GitLab token"),
    Format("glcbt-", Signs::Word, 20, "GitLab token"),
    Format("glptt-", Signs::Word, 20, "GitLab token"),
    Format("sk-ant-", Signs::Word, 20, "Anthropic key"),
    Format("sk-", Signs::Word, 20, "API key"),
    Format("sess-", Signs::Alnum, 32, "session key"),
    Format("gsk_", Signs::Alnum, 32, "Groq key"),
    Format("xai-", Signs::Alnum, 40, "xAI key"),
    Format("pplx-", Signs::Alnum, 32, "Perplexity key"),
    Format("hf_", Signs::Alnum, 30, "Hugging Face token"),
    Format("r8_", Signs::Alnum, 30, "Replicate token"),
    Format("nvapi-", Signs::Word, 40, "NVIDIA key"),
    Format("xoxb-", Signs::Word, 10, "Slack token"),
    Format("xoxp-", Signs::Word, 10, "Slack token"),
    Format("xoxa-", Signs::Word, 10, "Slack token"),
    Format("xoxr-", Signs::Word, 10, "Slack token"),
    Format("xoxs-", Signs::Word, 10, "Slack token"),
    Format("xoxe.", Signs::Wide, 20, "Slack token"),
    Format("xapp-", Signs::Word, 10, "Slack token"),
    Format("https://hooks.slack.com/services/", Signs::Wide, 20, "Slack webhook"),
    Format("https://discord.com/api/webhooks/", Signs::Wide, 40, "Discord webhook"),
    Format("sk_live_", Signs::Alnum, 16, "Stripe key"),
    Format("sk_test_", Signs::Alnum, 16, "Stripe key"),
    Format("rk_live_", Signs::Alnum, 16, "Stripe key"),
    Format("rk_test_", Signs::Alnum, 16, "Stripe key"),
    Format("whsec_", Signs::Wide, 24, "webhook secret"),
    Format("npm_", Signs::Alnum, 36, "npm token"),
    Format("pypi-", Signs::Word, 50, "PyPI token"),
    Format("rubygems_", Signs::Hex, 48, "RubyGems key"),
    Format("cio", Signs::Alnum, 32, "crates.io token"),
    Format("dckr_pat_", Signs::Word, 20, "Docker token"),
    Format("dop_v1_", Signs::Hex, 64, "DigitalOcean token"),
    Format("doo_v1_", Signs::Hex, 64, "DigitalOcean token"),
    Format("shpat_", Signs::Hex, 32, "Shopify token"),
    Format("shpss_", Signs::Hex, 32, "Shopify secret"),
    Format("SG.", Signs::Wide, 40, "SendGrid key"),
    Format("key-", Signs::Hex, 32, "Mailgun key"),
    Format("SK", Signs::Hex, 32, "Twilio key"),
    Format("hvs.", Signs::Word, 24, "Vault token"),
    Format("hvb.", Signs::Word, 24, "Vault token"),
    Format("lin_api_", Signs::Alnum, 30, "Linear key"),
    Format("ntn_", Signs::Alnum, 40, "Notion token"),
    Format("secret_", Signs::Alnum, 40, "Notion token"),
    Format("tskey-", Signs::Word, 20, "Tailscale key"),
    Format("sbp_", Signs::Hex, 40, "Supabase token"),
    Format("figd_", Signs::Word, 30, "Figma token"),
    Format("glsa_", Signs::Word, 32, "Grafana token"),
    Format("dapi", Signs::Hex, 32, "Databricks token"),
    Format("PMAK-", Signs::Word, 40, "Postman key"),
    Format("ATATT3", Signs::Wide, 60, "Atlassian token"),
    Format("AGE-SECRET-KEY-1", Signs::Upper, 50, "age key"),
    Format("sq0csp-", Signs::Word, 40, "Square secret"),
    Format("EAAA", Signs::Word, 58, "Square token"),
    Format("pscale_tkn_", Signs::Word, 32, "PlanetScale token"),
    Format("fo1_", Signs::Word, 40, "Fly token"),
    Format("pcsk_", Signs::Word, 40, "Pinecone key"),
];

const WEB_TOKEN: &str = "web token";
const BOT_TOKEN: &str = "bot token";
const PASSWORD: &str = "password";

/// What secrets of these formats are called.
pub(super) fn kinds() -> impl Iterator<Item = &'static str> {
    FORMATS.iter().map(|Format(.., kind)| *kind).chain([WEB_TOKEN, BOT_TOKEN, PASSWORD])
}

/// Adds the secrets of known formats.
pub(super) fn find(text: &str, found: &mut Vec<Secret>) {
    let bytes = text.as_bytes();
    let first = first_bytes();
    for at in 0..bytes.len() {
        // Most places are inside of a word.
        let is_inside = at >= 2 && bytes[at - 1].is_ascii_lowercase() && bytes[at - 2].is_ascii_lowercase();
        if is_inside || !first[usize::from(bytes[at])] || !text.is_char_boundary(at) || !begins_word(text, at) {
            continue;
        }
        let mut formats = FORMATS.iter().filter(|Format(begin, ..)| begin.as_bytes()[0] == bytes[at]);
        let key = formats.find_map(|format| key_at(bytes, at, format));
        let other = || web_token(bytes, at).or_else(|| bot_token(bytes, at)).or_else(|| address_password(bytes, at));
        found.extend(key.or_else(other));
    }
}

/// Which bytes a secret can begin with.
fn first_bytes() -> [bool; 256] {
    let mut first = [false; 256];
    for Format(begin, ..) in FORMATS {
        first[usize::from(begin.as_bytes()[0])] = true;
    }
    first[usize::from(b'e')] = true;
    (b'0'..=b'9').for_each(|digit| first[usize::from(digit)] = true);
    (b'a'..=b'z').for_each(|letter| first[usize::from(letter)] = true);
    first
}

fn key_at(bytes: &[u8], at: usize, format: &Format) -> Option<Secret> {
    let Format(begin, signs, least, kind) = *format;
    let rest = bytes[at..].strip_prefix(begin.as_bytes())?;
    let len = rest.iter().take_while(|byte| signs.has(**byte)).count();
    // Words joined by dashes, such as `sk-learn-is-a-library-for-python`, have no digit; keys of that length do.
    let is_random = rest[..len].iter().any(u8::is_ascii_digit) || rest[..len].iter().any(u8::is_ascii_uppercase);
    let len = trimmed(&rest[..len]);
    // Branches, classes and files begin so too: `sk-1234-fix-the-parser`, `sk-SK-translations-2024`.
    let is_random = is_random && (begin != "sk-" || !is_name_of_words(&rest[..len]));
    (len >= least && is_random).then(|| Secret { range: at..at + begin.len() + len, kind })
}

/// Whether short words are joined by dashes; of a key some part is long or random.
fn is_name_of_words(bytes: &[u8]) -> bool {
    let mut parts = bytes.split(|byte| matches!(byte, b'-' | b'_'));
    parts.all(|part| part.len() < 20 && std::str::from_utf8(part).is_ok_and(is_word))
}

/// The length without full stops and the like at the end, which belong to the sentence.
fn trimmed(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| !matches!(byte, b'.' | b'/')).map_or(0, |last| last + 1)
}

/// A JSON web token: three parts in base64, of which the first is an object.
fn web_token(bytes: &[u8], at: usize) -> Option<Secret> {
    let rest = bytes[at..].strip_prefix(b"eyJ")?;
    let len = rest.iter().take_while(|byte| Signs::Word.has(**byte) || **byte == b'.').count();
    let parts: Vec<&[u8]> = rest[..len].split(|byte| *byte == b'.').collect();
    let is_token = parts.len() >= 3 && parts[1].len() >= 8 && parts[0].len() >= 8;
    is_token.then(|| Secret { range: at..at + 3 + trimmed(&rest[..len]), kind: WEB_TOKEN })
}

/// A token of a Telegram bot: digits, a colon, 35 characters.
fn bot_token(bytes: &[u8], at: usize) -> Option<Secret> {
    let rest = &bytes[at..];
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let key = rest[digits..].strip_prefix(b":")?;
    let len = key.iter().take_while(|byte| Signs::Word.has(**byte)).count();
    let is_token = (8..=10).contains(&digits) && (34..=36).contains(&len);
    is_token.then(|| Secret { range: at..at + digits + 1 + len, kind: BOT_TOKEN })
}

/// The password in `scheme://user:password@host`.
fn address_password(bytes: &[u8], at: usize) -> Option<Secret> {
    let rest = &bytes[at..];
    let scheme = rest.iter().take(20).take_while(|byte| byte.is_ascii_alphanumeric() || **byte == b'+').count();
    let part = rest[scheme..].strip_prefix(b"://")?;
    let end = part.iter().position(|byte| byte.is_ascii_whitespace() || b"/?#\"'`<>".contains(byte));
    let part = &part[..end.unwrap_or(part.len())];
    let host = part.iter().rposition(|byte| *byte == b'@')?;
    let colon = part[..host].iter().position(|byte| *byte == b':')?;
    let start = at + scheme + 3 + colon + 1;
    let is_variable = matches!(part.get(colon + 1), None | Some(b'$' | b'{' | b'<' | b'[' | b'*'));
    (host > colon + 1 && !is_variable).then(|| Secret { range: start..at + scheme + 3 + host, kind: PASSWORD })
}
