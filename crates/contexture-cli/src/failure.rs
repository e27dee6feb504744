//! Errors of the program: a message, a hint and an exit code.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use contexture::store::Place;

use contexture_terminal::harmless::written_out;
use contexture_terminal::screen::{Screen, TextStyle};

/// The exit code of work that failed.
const FAILED_WORK: u8 = 1;

/// The exit code of invalid usage.
const BAD_USAGE: u8 = 2;

/// The end of the program, with a message.
#[derive(Debug)]
pub struct Failure {
    kind: FailureCause,
    sentence: String,
    hint: Option<String>,
}

#[derive(Debug)]
enum FailureCause {
    Usage,
    Work,
    /// Not a failure: help or the version.
    Asked,
    /// Nothing is there of what was asked for, and the output says so.
    Nothing,
    /// The reader of our output has closed it.
    Unread,
}

impl Failure {
    /// Invalid usage.
    pub fn usage(sentence: impl Into<String>) -> Self {
        Self { kind: FailureCause::Usage, sentence: sentence.into(), hint: None }
    }

    /// The work failed.
    pub fn work(sentence: impl Into<String>) -> Self {
        Self { kind: FailureCause::Work, sentence: sentence.into(), hint: None }
    }

    /// Nothing is there of what was asked for, and the output says so already.
    pub(crate) fn nothing() -> Self {
        Self { kind: FailureCause::Nothing, sentence: String::new(), hint: None }
    }

    /// The work failed, with an error of the library: its sentence, its causes, and its hint.
    pub fn of(error: &(dyn std::error::Error + 'static)) -> Self {
        let (mut sentence, mut hint) = (String::new(), None);
        let mut next = Some(error);
        while let Some(error) = next {
            let text = error.to_string();
            let (said, hinted) = text.split_once("\nhint: ").map_or((&*text, None), |(said, hint)| (said, Some(hint)));
            // A cause that its error shows already is not repeated.
            if !sentence.ends_with(said) {
                sentence.push_str(if sentence.is_empty() { "" } else { ": " });
                sentence.push_str(said);
            }
            hint = hint.or(hinted.map(str::to_owned));
            next = error.source();
        }
        Self { kind: FailureCause::Work, sentence, hint }
    }

    /// Adds a hint.
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    /// The same as invalid usage: what was asked for could not even begin.
    pub fn not_begun(self) -> Self {
        match self.kind {
            FailureCause::Work => Self { kind: FailureCause::Usage, ..self },
            _ => self,
        }
    }

    /// The hint.
    pub fn said_hint(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The message, on one line.
    pub fn sentence(&self) -> &str {
        &self.sentence
    }

    /// Prints the message and returns the exit code.
    pub fn report(self) -> ExitCode {
        match self.kind {
            FailureCause::Unread => return ExitCode::SUCCESS,
            FailureCause::Nothing => return ExitCode::from(FAILED_WORK),
            FailureCause::Asked => {
                // If the help cannot be written, there is nowhere to report it.
                let _ = io::stdout().write_all(self.sentence.as_bytes());
                return ExitCode::SUCCESS;
            }
            FailureCause::Usage | FailureCause::Work => {}
        }
        let screen = Screen::of_errors();
        // A sentence may quote a provider, a file or an argument.
        let shown = |text: &str| written_out(&without_passwords(text));
        eprintln!("{} {}", screen.paint(TextStyle::Error, "error:"), shown(&self.sentence));
        if let Some(hint) = &self.hint {
            eprintln!("{} {}", screen.paint(TextStyle::Hint, "hint:"), shown(hint));
        }
        ExitCode::from(if matches!(self.kind, FailureCause::Usage) { BAD_USAGE } else { FAILED_WORK })
    }
}

impl Failure {
    /// Converts an error of clap: requested help, or invalid usage.
    pub fn from_clap(error: &clap::Error, screen: Screen, program: &clap::Command, words: &[OsString]) -> Self {
        let text = error.render();
        // A command that only has others beneath it lists them.
        let asked =
            [ErrorKind::DisplayHelp, ErrorKind::DisplayVersion, ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand];
        if asked.contains(&error.kind()) {
            let text = if screen.has_colours { text.ansi().to_string() } else { text.to_string() };
            return Self { kind: FailureCause::Asked, sentence: screen.wrap_lines(&text), hint: None };
        }
        let text = text.to_string();
        let mut paragraphs = text.split("\n\n");
        let first = paragraphs.next().unwrap_or_default();
        let usage = paragraphs.find_map(|paragraph| paragraph.trim_start().strip_prefix("Usage: "));
        let command = words.iter().skip(1).find_map(|word| program.find_subcommand(word));
        let command = command.map(|command| format!("contexture {}", command.get_name()));
        let failure = Self::usage(sentence(error, first, command.as_deref()));
        let nearest = nearest(error, command.as_deref()).or_else(|| nearest_help(program, words));
        let nearest = nearest.map(|nearest| format!("did you mean `{nearest}`?"));
        let is_value = matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue);
        let hint = match (nearest, usage, command) {
            (Some(nearest), ..) => nearest,
            (None, _, Some(command)) if is_value => {
                let command = command.trim_start_matches("contexture ");
                format!("`contexture help {command}` lists its arguments and flags")
            }
            (None, Some(usage), Some(_)) => {
                format!("write it as `{}`", usage.lines().next().unwrap_or_default().trim())
            }
            _ => "`contexture help` lists all commands".to_owned(),
        };
        failure.hint(hint)
    }
}

/// The text without the passwords of addresses in it, as in an argument that is out of place.
pub(crate) fn without_passwords(text: &str) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let start = rest[..at].rfind(|sign: char| !sign.is_ascii_alphanumeric()).map_or(0, |before| before + 1);
        let ends = |sign: char| sign.is_whitespace() || ['`', '\'', '"'].contains(&sign);
        let end = rest[at..].find(ends).map_or(rest.len(), |length| at + length);
        let address = &rest[start..end];
        shown.push_str(&rest[..start]);
        match () {
            () if address.starts_with("http") => shown.push_str(&without_credentials(address)),
            () if address.contains('@') || address.starts_with("postgres") => {
                shown.push_str(&Place::Postgres(address.to_owned()).to_string());
            }
            () => shown.push_str(address),
        }
        rest = &rest[end..];
    }
    shown + rest
}

/// The address of a web service without what is before its host, and without values in its query: both may be keys.
fn without_credentials(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, rest) = rest.split_at(end);
    // A password may have a slash or a question mark in it that should have been encoded.
    let (host, rest) = match rest.rsplit_once('@') {
        Some((_, after)) if !host.contains('@') && host.contains(':') => (after, ""),
        _ => (host, rest),
    };
    let host = host.rsplit_once('@').map_or(host.to_owned(), |(_, host)| format!("(not shown)@{host}"));
    let Some((path, query)) = rest.split_once('?') else { return format!("{scheme}://{host}{rest}") };
    let pairs = query.split('&').map(|pair| match pair.split_once('=') {
        Some((name, _)) if is_telling(name) => format!("{name}=(not shown)"),
        _ => pair.to_owned(),
    });
    format!("{scheme}://{host}{path}?{}", pairs.collect::<Vec<_>>().join("&"))
}

/// Whether a name in a query is one under which keys are given.
fn is_telling(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["key", "token", "secret", "password", "sig", "code", "auth", "credential"].iter().any(|word| name.contains(word))
}

/// The message, rewritten where clap's is hard to understand.
fn sentence(error: &clap::Error, first: &str, command: Option<&str>) -> String {
    let named = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text),
        _ => None,
    };
    match (error.kind(), named(ContextKind::InvalidSubcommand), named(ContextKind::InvalidArg)) {
        (ErrorKind::InvalidSubcommand, Some(word), _) => format!("there is no command `{word}`"),
        (ErrorKind::UnknownArgument, _, Some(word)) => {
            format!("`{}` does not take `{word}`", command.unwrap_or("contexture"))
        }
        _ => {
            let sentence = first.strip_prefix("error: ").unwrap_or(first);
            with_plain_range(&sentence.split_whitespace().collect::<Vec<_>>().join(" "))
        }
    }
}

/// A sentence that says in words which numbers are allowed: without an upper end, clap names the largest one there is.
fn with_plain_range(sentence: &str) -> String {
    let parts = || {
        let (before, range) = sentence.rsplit_once(" is not in ")?;
        let (start, _) = before.rsplit_once(": ")?;
        let (least, most) = range.split_once("..")?;
        let most: u64 = most.trim_start_matches('=').parse().ok()?;
        Some((start, least, most))
    };
    match parts() {
        Some((start, least, most)) if most >= i64::MAX as u64 => format!("{start}: it is at least {least}"),
        Some((start, least, most)) => format!("{start}: it is from {least} to {most}"),
        None => sentence.to_owned(),
    }
}

/// A suggestion for a mistyped command after `help`, for which clap has none.
fn nearest_help(program: &clap::Command, words: &[OsString]) -> Option<String> {
    let [name, help, word] = words else { return None };
    if help != "help" {
        return None;
    }
    let error = program.clone().try_get_matches_from([name, word]).err()?;
    Some(nearest(&error, None)?.replace("contexture ", "contexture help "))
}

/// The suggestion, for what was written after a command.
fn nearest(error: &clap::Error, command: Option<&str>) -> Option<String> {
    let first = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => texts.first().cloned(),
        _ => None,
    };
    let command = command.unwrap_or("contexture");
    let command = first(ContextKind::SuggestedSubcommand).map(|name| format!("{command} {name}"));
    command.or_else(|| first(ContextKind::SuggestedArg)).or_else(|| first(ContextKind::SuggestedValue))
}

impl From<clap::Error> for Failure {
    /// The same for a program without commands.
    fn from(error: clap::Error) -> Self {
        Self::from_clap(&error, Screen::of_output(), &clap::Command::new(""), &[])
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self { kind: FailureCause::Unread, sentence: String::new(), hint: None },
            _ => Self::work(format!("write the output: {error}")),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::from(io::Error::from(error))
    }
}

impl From<anyhow::Error> for Failure {
    fn from(error: anyhow::Error) -> Self {
        Self::work(format!("{error:#}"))
    }
}

#[cfg(test)]
mod tests {
    use super::{with_plain_range, without_passwords};

    #[test]
    fn ranges_are_told_in_words() {
        let told =
            |range: &str| with_plain_range(&format!("invalid value '1' for '--budget <TOKENS>': 1 is not in {range}"));
        assert_eq!(
            told("4000..18446744073709551615"),
            "invalid value '1' for '--budget <TOKENS>': it is at least 4000"
        );
        assert_eq!(told("2..=8"), "invalid value '1' for '--budget <TOKENS>': it is from 2 to 8");
        assert_eq!(told("a list"), "invalid value '1' for '--budget <TOKENS>': 1 is not in a list");
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(without_passwords(text), expected);
    }

    #[test]
    fn passwords_of_addresses_are_not_printed() {
        check("`serve` does not take `postgres://ann:word@host/db`", "`serve` does not take `postgres://ann@host/db`");
        check("'mysql://ann:word@host/db' is odd", "'mysql://ann@host/db' is odd");
        check("see https://host/path?query=1 and more", "see https://host/path?query=1 and more");
        check("see \"https://ann:word@host/v1\",", "see \"https://(not shown)@host/v1\",");
        check("https://sk-token@host:8/v1", "https://(not shown)@host:8/v1");
        check("https://ann:wo/rd@host/v1", "https://host/v1");
        check("https://host/v1?api-version=2&key=k&a=b", "https://host/v1?api-version=2&key=(not shown)&a=b");
        check("https://host/@scope/x", "https://host/@scope/x");
        check("no address", "no address");
        check("://", "://");
    }
}
