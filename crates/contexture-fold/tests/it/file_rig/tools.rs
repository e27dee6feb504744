//! Steps of a session that use tools for files: reads, edits, writes and patches.

use std::fs;
use std::path::Path;

use contexture_core::item::Outcome;
use serde_json::json;

use super::Rig;

impl Rig {
    /// A file of the project with its text.
    fn some_file(&mut self) -> Option<(String, String)> {
        let files = self.files();
        if files.is_empty() {
            return None;
        }
        let name = self.dice.pick(&files).clone();
        let text = fs::read_to_string(self.root.join(&name)).ok()?;
        Some((self.root.join(name).to_str().unwrap().to_owned(), text))
    }

    /// Reads every file of the project.
    pub(super) fn read_all(&mut self) {
        for name in self.files() {
            let path = self.root.join(name);
            let Ok(text) = fs::read_to_string(&path) else { continue };
            let shown: String =
                text.lines().enumerate().map(|(index, line)| format!("{:6}→{line}\n", index + 1)).collect();
            self.tool("Read", json!({"file_path": path.to_str().unwrap()}), &shown, Outcome::Done);
        }
    }

    pub(super) fn read(&mut self) {
        let Some((path, text)) = self.some_file() else { return };
        let lines: Vec<&str> = text.lines().collect();
        let (first, count) = match self.dice.roll(2) {
            0 => (0, lines.len()),
            _ => (self.dice.roll(lines.len().max(1)), 1 + self.dice.roll(8)),
        };
        let is_part = first > 0 || count != lines.len();
        let asked = |names: [&str; 2]| {
            let mut arguments = json!({"file_path": path});
            if is_part {
                arguments[names[0]] = json!(first + 1);
                arguments[names[1]] = json!(count);
            }
            arguments
        };
        let end = lines.len().min(first + count);
        let shown = |mark: &str, width: usize| -> String {
            let numbered = lines.iter().enumerate().skip(first).take(count);
            numbered.map(|(index, line)| format!("{:width$}{mark}{line}\n", index + 1)).collect()
        };
        match self.dice.roll(7) {
            // Without numbers, and some say that there is more.
            0 => {
                let text: String = text.split_inclusive('\n').skip(first).take(count).collect();
                self.tool("read_file", asked(["offset", "limit"]), &text, Outcome::Done);
            }
            1 if !is_part && count > 4 => {
                let half: String = lines[..count / 2].iter().map(|line| format!("{line}\n")).collect();
                let note = format!("{half}\n[... {} lines omitted ...]\n", count - count / 2);
                self.tool("read_file", json!({"file_path": path}), &note, Outcome::Done);
            }
            2 if !is_part && count > 4 => {
                let half: String = lines[..count / 2]
                    .iter()
                    .enumerate()
                    .map(|(index, line)| format!("{:6}\t{line}\n", index + 1))
                    .collect();
                let note = format!("{half}(Showing 1-{} of {})\n", count / 2, count);
                self.tool("Read", json!({"file_path": path}), &note, Outcome::Done);
            }
            3 => {
                let text = format!("<file>\n{}(End of file - total {end} lines)\n</file>", shown("| ", 5));
                self.tool("read", asked(["offset", "limit"]), &text, Outcome::Done);
            }
            _ => self.tool("Read", asked(["offset", "limit"]), &shown("→", 6), Outcome::Done),
        }
    }

    pub(super) fn edit(&mut self) {
        let Some((path, text)) = self.some_file() else { return };
        let lines: Vec<&str> = text.split('\n').collect();
        let start = self.dice.roll(lines.len());
        let end = (start + 1 + self.dice.roll(3)).min(lines.len());
        let mut old = lines[start..end].join("\n");
        if self.dice.roll(3) == 0 && old.len() > 3 && old.is_ascii() {
            old = old[1..old.len() - 1].to_owned();
        }
        let new = match self.dice.roll(6) {
            0 => String::new(),
            1 => format!("edited {}\nand more", self.dice.roll(100)),
            // The end of the last line, or one more line.
            2 => format!("{old}\n"),
            3 => format!("edited {}\n", self.dice.roll(100)),
            _ => format!("edited {}", self.dice.roll(100)),
        };
        let count = text.matches(old.as_str()).count();
        if old.is_empty() || old.contains('\r') {
            return;
        }
        let all = self.dice.roll(5) == 0;
        let arguments = json!({"file_path": path, "old_string": old, "new_string": new, "replace_all": all});
        if (count != 1 && !all) || self.dice.roll(8) == 0 {
            return self.tool("Edit", arguments, "String to replace not found in file.", Outcome::Failed);
        }
        // Some take the line feed after what is removed, and some do not.
        let takes =
            new.is_empty() && !old.ends_with('\n') && self.dice.roll(2) == 0 && text.contains(&format!("{old}\n"));
        let taken = if takes { format!("{old}\n") } else { old };
        let after = if all { text.replace(&taken, &new) } else { text.replacen(&taken, &new, 1) };
        if fs::write(&path, after).is_err() {
            return;
        }
        self.tool("Edit", arguments, "The file has been updated.", Outcome::Done);
    }

    pub(super) fn write(&mut self) {
        let name = match self.dice.roll(2) {
            0 => self.some_file().map(|(path, _)| path),
            _ => Some(self.root.join(format!("made{}.txt", self.dice.roll(5))).to_str().unwrap().to_owned()),
        };
        let Some(path) = name.filter(|path| !Path::new(path).is_dir()) else { return };
        let end = if self.dice.roll(4) == 0 { "" } else { "\n" };
        let text: String = (0..self.dice.roll(6)).map(|n| format!("written {n} {}\n", self.dice.roll(9))).collect();
        let text = text.trim_end().to_owned() + end;
        let arguments = json!({"file_path": path, "content": text});
        match self.dice.roll(6) {
            0 => self.tool("Write", arguments, "The user doesn't want to proceed with this tool use.", Outcome::Denied),
            _ if fs::write(&path, &text).is_ok() => {
                self.tool("Write", arguments, "File created successfully.", Outcome::Done);
            }
            _ => {}
        }
    }

    /// A patch that is applied as the tool does: after the line that it names, at the end if it says so, otherwise at
    /// the first place where its lines are. The file ends with a line feed after it.
    pub(super) fn patch(&mut self) {
        let Some((path, text)) = self.some_file() else { return };
        if text.contains('\r') || !text.is_ascii() || path.contains(['\n', '`']) {
            return;
        }
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        if lines.is_empty() {
            return;
        }
        let mut start = self.dice.roll(lines.len());
        let count = 1 + self.dice.roll(3);
        let is_at_end = self.dice.roll(4) == 0;
        if is_at_end {
            start = lines.len().saturating_sub(count);
        }
        let old = lines[start..(start + count).min(lines.len())].to_vec();
        let new = vec![format!("patched {}", self.dice.roll(50)); self.dice.roll(3)];
        // The name of a place is a line before it, without the blanks around it.
        let named = (self.dice.roll(3) == 0 && start > 0).then(|| lines[self.dice.roll(start)].trim().to_owned());
        let named = named.filter(|named| !named.is_empty());
        let from = named.as_ref().map_or(0, |named| {
            let exact = lines.iter().position(|line| line == named);
            exact.or_else(|| lines.iter().position(|line| line.trim() == named)).unwrap() + 1
        });
        let first = lines[from..].windows(old.len()).position(|window| window == old).map(|place| from + place);
        let Some(place) = Some(start).filter(|start| is_at_end && *start >= from).or(first.filter(|_| !is_at_end))
        else {
            return;
        };
        let body: String =
            old.iter().map(|line| format!("-{line}\n")).chain(new.iter().map(|line| format!("+{line}\n"))).collect();
        let to = (self.dice.roll(6) == 0).then(|| self.root.join(format!("moved{}.txt", self.dice.roll(4))));
        let to = to.filter(|to| !to.exists()).map(|to| to.to_str().unwrap().to_owned());
        let moved = to.as_ref().map(|to| format!("*** Move to: {to}\n")).unwrap_or_default();
        let (name, end) = (named.map(|named| format!(" {named}")), if is_at_end { "*** End of File\n" } else { "" });
        let patch = format!(
            "*** Begin Patch\n*** Update File: {path}\n{moved}@@{}\n{body}{end}*** End Patch",
            name.unwrap_or_default()
        );
        lines.splice(place..place + old.len(), new);
        let after: String = lines.into_iter().map(|line| line + "\n").collect();
        let target = to.as_ref().unwrap_or(&path);
        if fs::write(target, after).is_err() || (*target != path && fs::remove_file(&path).is_err()) {
            return;
        }
        self.tool("apply_patch", json!({"input": patch}), "Success. Updated the following files:", Outcome::Done);
    }
}
