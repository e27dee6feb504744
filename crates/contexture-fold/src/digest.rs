//! A short account of files: what the agent changed, and what changed on the disk.

use contexture_files::model::{DiskChange, FileModel, FileState};
use contexture_text::one_line::one_line;

/// Longest path in a list, in characters.
const MAX_LINE_CHARS: usize = 140;

fn clip(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Lists the files that this agent changed, newest first, as many as fit.
pub fn changed_files(model: &FileModel, bytes: usize) -> String {
    let mut changed: Vec<_> = model.files().iter().filter(|file| file.edits > 0).collect();
    changed.sort_by_key(|file| std::cmp::Reverse(file.edited));
    let mut left = bytes;
    let mut text = String::new();
    for file in changed {
        let state = if file.deleted { "deleted" } else { "changed" };
        let times = if file.edits == 1 { "once".to_owned() } else { format!("{} times", file.edits) };
        let line = format!("- `{}` ({state} {times})\n", one_line(&file.path));
        if line.len() > left {
            break;
        }
        left -= line.len();
        text.push_str(&line);
    }
    text
}

/// Most files that are listed as changed on the disk.
const MAX_DISK_CHANGES: usize = 12;

/// Lists the files whose known text is no longer on the disk, according to a comparison, newest first.
pub fn lost_on_disk(model: &FileModel, is_wanted: impl Fn(&FileState, &DiskChange) -> bool) -> String {
    let lost = model.files().iter().filter_map(|file| Some((file, file.disk_change.as_ref()?)));
    let mut lost: Vec<(&FileState, &DiskChange)> = lost.filter(|(file, change)| is_wanted(file, change)).collect();
    lost.sort_by_key(|(_, change)| std::cmp::Reverse(change.at));
    let line = |(file, change): &(&FileState, &DiskChange)| {
        let path = clip(&one_line(&file.path), MAX_LINE_CHARS);
        match (file.deleted, change.lost) {
            (true, _) => format!("- `{path}` is gone from the disk\n"),
            (false, 1) => format!("- `{path}` changed on disk: 1 line that you knew is not there any more\n"),
            (false, count) => {
                format!("- `{path}` changed on disk: {count} lines that you knew are not there any more\n")
            }
        }
    };
    lost.iter().filter(|(file, change)| file.deleted || change.lost > 0).take(MAX_DISK_CHANGES).map(line).collect()
}
