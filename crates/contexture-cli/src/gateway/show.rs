//! `contexture show`: full texts of shortened outputs, and the decisions about a conversation.

use std::io::{self, Write};

use clap::Args;
use contexture::fold::FoldDecision;
use contexture_gateway::Store;

use super::forget::{ambiguous, unknown};
use super::place::StoreFlag;
use crate::failure::Failure;
use contexture_terminal::harmless::for_output;
use contexture_text::numbers::{counted, thousands};

/// Print the full text of an output that was shortened, or the decisions about a conversation
///
/// Shortened outputs name a hash, and receipts name conversations; the first characters are enough.
#[derive(Args)]
pub struct ShowCommand {
    /// The hash or the conversation; also as it is written where an output was shortened
    #[arg(value_name = "ID", required = true)]
    id: Vec<String>,
    /// The first line to print
    #[arg(long, value_name = "LINE")]
    from_line: Option<usize>,
    #[command(flatten)]
    store: StoreFlag,
}

/// What is asked for.
#[derive(Debug, PartialEq, Eq)]
struct ShowSelection {
    id: String,
    from_line: usize,
}

/// Carries out the command.
///
/// # Errors
/// Nothing of that name is kept.
pub fn run(command: &ShowCommand) -> Result<(), Failure> {
    let asked = selection_of(&command.id.join(" "), command.from_line);
    let store = command.store.existing()?.ok_or_else(|| unknown(&asked.id))?;
    let fail = |error: contexture_gateway::StoreError| Failure::work(error.to_string());
    if let Some(shown) = store.text(&asked.id).map_err(fail)? {
        let text: String = shown.text.split_inclusive('\n').skip(asked.from_line - 1).collect();
        return Ok(io::stdout().write_all(for_output(&text).as_bytes())?);
    }
    let names = store.names(&asked.id).map_err(fail)?;
    match names.as_slice() {
        [] => Err(unknown(&asked.id)),
        [name] => Ok(io::stdout().write_all(for_output(&decisions(&*store, name)?).as_bytes())?),
        several => Err(ambiguous(&asked.id, several.len())),
    }
}

/// What is asked for: an id, or a hash and a line as they are written where an output was shortened. A shell may have
/// taken quotes and braces off.
fn selection_of(text: &str, from_line: Option<usize>) -> ShowSelection {
    let plain: String = text.chars().filter(|sign| !"{}\"'".contains(*sign)).collect();
    let mut asked = ShowSelection { id: plain.trim().to_owned(), from_line: from_line.unwrap_or(1).max(1) };
    for part in plain.split([',', ' ']) {
        match part.split_once(':') {
            Some(("hash", hash)) => asked.id = hash.to_owned(),
            Some(("from_line", line)) if from_line.is_none() => asked.from_line = line.parse().unwrap_or(1).max(1),
            _ => {}
        }
    }
    asked
}

fn decisions(store: &dyn Store, name: &str) -> Result<String, Failure> {
    let decided = store.decisions(name).map_err(|error| Failure::work(error.to_string()))?;
    let mut text = format!("conversation {name}: {}\n", counted(decided.len(), "decision"));
    for decided in decided {
        let at = format!("before the request of {}", counted(decided.messages, "message"));
        text.push_str(&match &decided.decision {
            FoldDecision::Fold(fold) => format!(
                "fold {at}: {} tokens to {}, because {}; it costs {:.0} and saves {:.0} with every request\n",
                thousands(fold.before_tokens),
                thousands(fold.after_tokens),
                fold.reason,
                fold.cost,
                fold.saves_per_request
            ),
            FoldDecision::BringBack(brought) => {
                format!("brought back {at}: {} bytes of files that were used or named again\n", brought.text.len())
            }
            FoldDecision::Cold { .. } => format!("{at}: the provider's cache had expired\n"),
            FoldDecision::Disk(checked) => format!("{at}: {}\n", checked.reason()),
            FoldDecision::Shorten { text, reason, .. } => format!("shortened to {} bytes {at}: {reason}\n", text.len()),
        });
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::{ShowSelection, selection_of};

    #[test]
    fn what_is_written_where_an_output_was_shortened_is_understood() {
        let expected = ShowSelection { id: "0123456789ab".to_owned(), from_line: 12 };
        assert_eq!(selection_of(r#"{"hash":"0123456789ab","from_line":12}"#, None), expected);
        assert_eq!(selection_of("hash:0123456789ab from_line:12", None), expected);
        assert_eq!(selection_of("0123456789ab", Some(12)), expected);
        assert_eq!(selection_of("0123456789ab", None), ShowSelection { from_line: 1, ..expected });
    }
}
