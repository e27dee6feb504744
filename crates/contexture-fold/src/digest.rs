//! What changed on the disk since the agent saw it.

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
