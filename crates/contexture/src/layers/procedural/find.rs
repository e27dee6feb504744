//! Which skills there are.

use std::collections::HashMap;
use std::sync::Arc;

use contexture_core::host::{DirEntry, EntryKind, FileStamp, FsAdapter};

use super::{LIMITS, MAX_DEPTH, MAX_SKILLS};
use contexture_text::block::{flat, start_of};
use contexture_text::front_matter::FrontMatter;

/// Where skills are searched for, highest precedence first.
const FOLDERS: [&str; 6] = [
    ".contexture/skills",
    ".agents/skills",
    ".claude/skills",
    ".contexture/plugins",
    ".agents/plugins",
    ".claude/plugins",
];
/// Most folders that are searched.
const MAX_FOLDERS: usize = 1_000;
/// Most bytes of a description that are kept; the format allows 1 024 characters.
const MAX_DESCRIPTION_BYTES: usize = 4 * 1_024;
/// Fields that the model reads when it opens the skill; the format allows 500 characters for the first.
const SHOWN_FIELDS: [&str; 2] = ["compatibility", "license"];
/// Most bytes of such a field that are kept.
const MAX_FIELD_BYTES: usize = 2 * 1_024;
/// Most bytes of a name that are kept.
const MAX_NAME_BYTES: usize = 100;

/// A skill that was read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Skill {
    pub(super) name: String,
    /// In one line.
    pub(super) description: String,
    pub(super) body: String,
    pub(super) folder: String,
    pub(super) is_users: bool,
    /// Whether only a person may open it: the model is not told of it.
    is_hidden: bool,
}

/// The result of reading a skill, with the stamp of its file.
type CachedSkill = (FileStamp, Option<Arc<Skill>>);

/// Cached skills, valid while their files do not change.
#[derive(Clone, Default)]
pub(super) struct SkillCache {
    files: HashMap<(bool, String), CachedSkill>,
}

impl SkillCache {
    /// All skills by name, and how many folders were left out because of their content.
    pub(super) async fn find(
        &mut self,
        project: &Arc<dyn FsAdapter>,
        user: Option<&Arc<dyn FsAdapter>>,
    ) -> (Vec<Arc<Skill>>, usize) {
        let mut skills: Vec<Arc<Skill>> = Vec::new();
        let mut left_out = 0;
        for (fs, is_users) in std::iter::once((project, false)).chain(user.map(|user| (user, true))) {
            for root in FOLDERS {
                for folder in folders(&**fs, root).await {
                    match self.read(&**fs, &folder, is_users).await {
                        Some(skill) if skill.is_hidden || skills.iter().any(|other| other.name == skill.name) => {}
                        Some(skill) if skills.len() < MAX_SKILLS => skills.push(skill),
                        _ => left_out += 1,
                    }
                }
            }
        }
        skills.sort_by(|one, other| one.name.cmp(&other.name));
        (skills, left_out)
    }

    async fn read(&mut self, fs: &dyn FsAdapter, folder: &str, is_users: bool) -> Option<Arc<Skill>> {
        let path = format!("{folder}/SKILL.md");
        let stamp = fs.stat(&path, LIMITS).await.ok()?;
        let key = (is_users, path.clone());
        let is_current = |(kept, _): &&CachedSkill| kept.settled && kept.matches(&stamp);
        if let Some((_, skill)) = self.files.get(&key).filter(is_current) {
            return skill.clone();
        }
        let read = fs.read(&path, LIMITS).await.ok()?;
        let skill = parse(folder, &read.text, is_users).map(Arc::new);
        if self.files.len() > 2 * MAX_SKILLS {
            self.files.clear();
        }
        self.files.insert(key, (read.stamp, skill.clone()));
        skill
    }
}

/// The folders below a directory that have a SKILL.md. Folders inside a skill belong to it.
async fn folders(fs: &dyn FsAdapter, root: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting = vec![(root.to_owned(), 0)];
    let mut looked = 0;
    while let Some((folder, depth)) = waiting.pop() {
        looked += 1;
        if looked > MAX_FOLDERS || found.len() >= MAX_SKILLS {
            break;
        }
        let Ok(entries) = fs.list(&folder, MAX_FOLDERS, LIMITS).await else { continue };
        let is_skill = |entry: &DirEntry| entry.name == "SKILL.md" && entry.kind != EntryKind::Directory;
        if depth > 0 && entries.iter().any(is_skill) {
            found.push(folder);
            continue;
        }
        let inner = entries.into_iter().filter(|entry| depth < MAX_DEPTH && is_folder(entry));
        waiting.extend(inner.map(|entry| (format!("{folder}/{}", entry.name), depth + 1)));
    }
    found.sort();
    found
}

/// A link may lead to a folder; whether it stays below the base is checked when it is listed.
fn is_folder(entry: &DirEntry) -> bool {
    matches!(entry.kind, EntryKind::Directory | EntryKind::Link)
        && !matches!(entry.name.as_str(), ".git" | "node_modules")
}

/// Parses a skill file; `None` if it does not say when to open it.
fn parse(folder: &str, text: &str, is_users: bool) -> Option<Skill> {
    let front = FrontMatter::read(text);
    let own_name = folder.rsplit('/').next().unwrap_or(folder);
    let name = front.text("name").map(|name| flat(&name)).filter(|name| !name.is_empty());
    let name = start_of(&name.unwrap_or_else(|| flat(own_name)), MAX_NAME_BYTES).into_owned();
    let description = front.text("description").map(|text| flat(&text)).filter(|text| !text.is_empty())?;
    let description = start_of(&description, MAX_DESCRIPTION_BYTES).into_owned();
    let field = |name: &str| {
        let text = front.text(name).map(|text| flat(&text)).filter(|text| !text.is_empty())?;
        Some(format!("{name}: {}\n", start_of(&text, MAX_FIELD_BYTES)))
    };
    let fields: String = SHOWN_FIELDS.into_iter().filter_map(field).collect();
    let body = match fields.is_empty() {
        true => front.body.trim().to_owned(),
        false => format!("{fields}\n{}", front.body.trim()),
    };
    let is_hidden = front.text("disable-model-invocation").is_some_and(|text| text.trim() == "true");
    Some(Skill { name, description, body, folder: folder.to_owned(), is_users, is_hidden })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(&str, &str, &str)>) {
        let skill = parse(".claude/skills/folder", text, false);
        let found = skill.as_ref().map(|skill| (skill.name.as_str(), skill.description.as_str(), skill.body.as_str()));
        assert_eq!(found, expected, "{text}");
    }

    /// Variants that occur in practice.
    #[test]
    fn skills_are_read_leniently() {
        check("---\nname: pdf\ndescription: Fills forms.\n---\n# PDF\n", Some(("pdf", "Fills forms.", "# PDF")));
        check("---\ndescription: Use when: told so\n---\nbody", Some(("folder", "Use when: told so", "body")));
        check(
            "---\nname: Odd Name!\ndescription: |\n  Two\n  lines.\nallowed-tools: Read, Bash(git:*)\nmetadata:\n  a: b\n---\n",
            Some(("Odd Name!", "Two lines.", "")),
        );
        check(
            "---\ndescription: x\nlicense: MIT\ncompatibility: Requires git: 2.40\n---\nbody",
            Some(("folder", "x", "compatibility: Requires git: 2.40\nlicense: MIT\n\nbody")),
        );
        check("\u{feff}---\r\nname: 'crlf'\r\ndescription: \"x\"\r\n---\r\nbody\r\n", Some(("crlf", "x", "body")));
        check("---\nname: no-description\n---\nbody", None);
        check("---\nname: x\ndescription:\n---\nbody", None);
        check("no front matter", None);
        check("---\nname: never closed\ndescription: x\n", None);
        check("", None);
    }
}
