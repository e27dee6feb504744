//! Names for what Contexture wrote, as people know it.

use contexture::files::model::Fact;
use contexture::fold::{RECORDS_MARK, ToldLines, Written, told_lines};

use super::block::{BlockDraft, BlockKind, BlockSource};
use super::text::first_line;
use super::view::{FileGrade, FileView};

/// Most files that a name lists.
const NAMED_FILES: usize = 2;

/// What a text or a call is of which a part is left out, as the API names it.
const CUT: &str = "cut";

/// Characters of a name that is the start of a text.
const NAME_CHARS: usize = 60;

/// Marks a block that did not come as it is sent: a text as written by Contexture, named by what it holds, and a call as
/// cut. A shortened output is told by its state.
pub fn marked(draft: BlockDraft) -> BlockDraft {
    match draft.kind {
        BlockKind::Text => {
            let made = kind(&draft.text);
            let name = if draft.name.is_empty() { name(&draft.text) } else { draft.name };
            BlockDraft { source: BlockSource::Made, name, made, ..draft }
        }
        BlockKind::Call => BlockDraft { made: CUT, ..draft },
        _ => draft,
    }
}

/// What a text is that Contexture wrote, as the API names it.
fn kind(text: &str) -> &'static str {
    match Written::of(text) {
        Written::Views => "views",
        Written::Records if text.starts_with(RECORDS_MARK) => "records",
        Written::Records => "account",
        Written::BroughtBack => "brought_back",
        Written::Echoes => "echoes",
        Written::Digest => "digest",
        Written::References => "references",
        Written::Note => "note",
        Written::Other => CUT,
    }
}

/// The name of a text that Contexture wrote: the files that it shows, or what it is about.
fn name(text: &str) -> String {
    match Written::of(text) {
        Written::Records if text.starts_with(RECORDS_MARK) => "notes on calls".to_owned(),
        Written::Records => "account of the earlier conversation".to_owned(),
        Written::Echoes => "what earlier outputs said".to_owned(),
        Written::Digest => "what was changed, and what else is known".to_owned(),
        Written::Note => "a note".to_owned(),
        Written::Other => first_line(text, NAME_CHARS),
        Written::Views | Written::BroughtBack | Written::References => files_in(text),
    }
}

fn files_in(text: &str) -> String {
    let mut names: Vec<String> = Vec::new();
    for lines in told_lines(text) {
        let name = lines.path.rsplit(['/', '\\']).next().unwrap_or(&lines.path).to_owned();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    match names.len() {
        0 => "a file".to_owned(),
        count if count <= NAMED_FILES => names.join(", "),
        count => format!("{} and {} more", names[..NAMED_FILES].join(", "), count - NAMED_FILES),
    }
}

/// The lines of files that a text shows.
pub fn views(block: u32, text: &str) -> Vec<FileView> {
    told_lines(text).into_iter().map(|lines| view(block, lines)).collect()
}

fn view(block: u32, told: ToldLines) -> FileView {
    let lines = match (told.first, told.count) {
        (_, count) if told.is_whole => format!("all {count}"),
        (Some(first), 1) => first.to_string(),
        (Some(first), count) => format!("{first}–{}", first + count - 1),
        (None, 1) => "1 line".to_owned(),
        (None, count) => format!("{count} lines"),
    };
    let cause = match told.has_changed_on_disk {
        true => Some("changed on disk since it was read".to_owned()),
        false => told.cause,
    };
    FileView {
        block,
        path: told.path,
        lines,
        count: told.count as u64,
        grade: grade(told.fact),
        moments: told.moments,
        cause,
        is_written: true,
    }
}

/// A fact as the API has it.
pub fn grade(fact: Fact) -> FileGrade {
    match fact {
        Fact::Changed => FileGrade::Changed,
        Fact::Seen => FileGrade::Seen,
        Fact::Verified => FileGrade::Verified,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_named_by_what_they_hold() {
        let text = "# Files as you know them at message 7\n## `src/a.rs`: whole file, 1 line, as you saw or wrote it at message 5\n```\nx\n```\n\
                    ## `src/b.rs`: 2 lines, changed since by `make x`\nfrom line 3:\n```\na\nb\n```\n";
        assert_eq!((kind(text), name(text).as_str()), ("views", "a.rs, b.rs"));
        let views = views(9, text);
        let first = (views[0].lines.as_str(), views[0].grade, views[0].moments);
        assert_eq!(first, ("all 1", FileGrade::Seen, Some((5, 5))));
        let second = (views[1].path.as_str(), views[1].lines.as_str(), views[1].grade, views[1].cause.as_deref());
        assert_eq!(second, ("src/b.rs", "3–4", FileGrade::Changed, Some("make x")));
        assert_eq!(name("# What you changed\n- x"), "what was changed, and what else is known");
        let account = "[Contexture's account of the earlier conversation, messages 2 to 9, in quotes]\nUser:\n";
        assert_eq!((kind(account), name(account).as_str()), ("account", "account of the earlier conversation"));
        let records = "[Contexture's notes on calls made here]\n- read a.rs";
        assert_eq!((kind(records), name(records).as_str()), ("records", "notes on calls"));
    }
}
