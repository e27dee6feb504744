//! Which files hold, in order from the farthest to the nearest.

use std::collections::HashSet;
use std::sync::Arc;

use contexture_core::host::{FileErrorCode, FsAdapter, relative_path};

use super::imports::imports;
use super::read::{FileOwner, InstructionCache, markdown_beneath};
use super::render::InstructionSection;
use super::{MAX_HOPS, MAX_PATH_BYTES};
use contexture_text::block::start_of;
use contexture_text::front_matter::FrontMatter;
use contexture_text::pattern::path_matches;

/// How many problems are reported.
const MAX_PROBLEMS: usize = 10;
/// How deep rule directories are searched.
const RULES_DEPTH: usize = 3;
/// Most files that are shown.
const MAX_FILES: usize = 100;

/// Collects instructions.
pub(super) struct Collection<'a> {
    shelf: &'a mut InstructionCache,
    project: Arc<dyn FsAdapter>,
    user: Option<Arc<dyn FsAdapter>>,
    sections: Vec<InstructionSection>,
    problems: Vec<String>,
    /// Files already visited, and contents already shown.
    seen: HashSet<(FileOwner, String)>,
    contents: HashSet<[u8; 32]>,
}

/// A file to be added, and how it was reached.
struct FileToAdd {
    owner: FileOwner,
    path: String,
    hops: usize,
    by: Option<String>,
    /// Whether its imports are followed.
    imports: bool,
}

impl<'a> Collection<'a> {
    pub(super) fn new(
        shelf: &'a mut InstructionCache,
        project: Arc<dyn FsAdapter>,
        user: Option<Arc<dyn FsAdapter>>,
    ) -> Self {
        let (sections, problems) = (Vec::new(), Vec::new());
        Self { shelf, project, user, sections, problems, seen: HashSet::new(), contents: HashSet::new() }
    }

    /// Adds the user's own files, if they are trusted.
    pub(super) async fn add_user(&mut self, touched: &[&str]) {
        if self.user.is_none() {
            return;
        }
        for path in [".codex/AGENTS.override.md", ".codex/AGENTS.md"] {
            if self.add_file(FileOwner::User, path, false).await {
                break;
            }
        }
        self.add_file(FileOwner::User, ".claude/CLAUDE.md", true).await;
        self.add_rules(FileOwner::User, ".claude/rules", touched).await;
    }

    /// Adds the project's files: from the root to the working directory, then from the directories of touched files.
    pub(super) async fn add_project(&mut self, directory: &str, touched: &[&str]) {
        let mut directories = vec![String::new()];
        directories.extend(above(directory));
        self.add_rules(FileOwner::Project, ".claude/rules", touched).await;
        let mut beneath: Vec<String> = Vec::new();
        for path in touched.iter().filter(|path| path.len() <= MAX_PATH_BYTES) {
            beneath.extend(above(path).filter(|directory| !directories.contains(directory)));
        }
        beneath.sort();
        beneath.dedup();
        directories.append(&mut beneath);
        for directory in directories {
            self.add_directory(&directory).await;
        }
    }

    async fn add_directory(&mut self, directory: &str) {
        let path = |name: &str| if directory.is_empty() { name.to_owned() } else { format!("{directory}/{name}") };
        for name in ["AGENTS.override.md", "AGENTS.md"] {
            if self.add_file(FileOwner::Project, &path(name), false).await {
                break;
            }
        }
        for name in ["CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"] {
            self.add_file(FileOwner::Project, &path(name), true).await;
        }
    }

    /// Adds the rules that apply: those without `paths`, and those that match a touched path.
    async fn add_rules(&mut self, owner: FileOwner, directory: &str, touched: &[&str]) {
        let Some(fs) = self.files(owner) else { return };
        for path in markdown_beneath(&*fs, directory, RULES_DEPTH).await {
            let Ok(Some(text)) = self.shelf.read(&*fs, owner, &path).await else { continue };
            let holds = match FrontMatter::read(&text).list("paths") {
                None => true,
                Some(patterns) => touched.iter().any(|path| patterns.iter().any(|pattern| rule_matches(pattern, path))),
            };
            if holds {
                self.add_file(owner, &path, true).await;
            }
        }
    }

    pub(super) fn add_text(&mut self, name: &str, text: &str) {
        if !text.trim().is_empty() {
            self.sections.push(InstructionSection { name: name.to_owned(), by: None, text: text.trim().into() });
        }
    }

    fn files(&self, owner: FileOwner) -> Option<Arc<dyn FsAdapter>> {
        match owner {
            FileOwner::User => self.user.clone(),
            FileOwner::Project => Some(self.project.clone()),
        }
    }

    /// Adds a file and what it imports; `false` if there is none.
    async fn add_file(&mut self, owner: FileOwner, path: &str, imports: bool) -> bool {
        let before = self.sections.len();
        let mut waiting = vec![FileToAdd { owner, path: path.to_owned(), hops: 0, by: None, imports }];
        let mut is_there = false;
        while let Some(next) = waiting.pop() {
            let hops = next.hops;
            let Some(mut found) = self.add_one(next).await else { continue };
            is_there |= hops == 0;
            // The import that is named first comes first.
            found.reverse();
            waiting.append(&mut found);
        }
        is_there || self.sections.len() > before
    }

    /// Adds one file and returns its imports; `None` if it does not exist.
    async fn add_one(&mut self, waiting: FileToAdd) -> Option<Vec<FileToAdd>> {
        let FileToAdd { owner, path, hops, by, imports: has_imports } = waiting;
        let fs = self.files(owner)?;
        let name = match owner {
            FileOwner::User => format!("~/{path}"),
            FileOwner::Project => path.clone(),
        };
        if !self.seen.insert((owner, path.clone())) {
            return Some(Vec::new());
        }
        let text = match self.shelf.read(&*fs, owner, &path).await {
            Ok(Some(text)) => text,
            Ok(None) => return None,
            Err(error) => {
                self.note(&name, error.code);
                return Some(Vec::new());
            }
        };
        let body = FrontMatter::read(&text).body.trim();
        let is_new = self.contents.insert(*blake3::hash(body.as_bytes()).as_bytes());
        if !is_new || self.sections.len() >= MAX_FILES {
            return Some(Vec::new());
        }
        if !body.is_empty() {
            self.sections.push(InstructionSection { name: name.clone(), by, text: body.into() });
        }
        if !has_imports || hops >= MAX_HOPS {
            return Some(Vec::new());
        }
        let named = imports(body).into_iter().filter_map(|import| self.resolve(owner, &path, import));
        let named: Vec<(FileOwner, String)> = named.collect();
        let waits = |(owner, path)| FileToAdd { owner, path, hops: hops + 1, by: Some(name.clone()), imports: true };
        Some(named.into_iter().map(waits).collect())
    }

    /// Resolves an import; `None` if it is outside of what may be read, which is reported.
    fn resolve(&mut self, owner: FileOwner, importer: &str, import: &str) -> Option<(FileOwner, String)> {
        if let Some(home) = import.strip_prefix("~/") {
            if self.user.is_none() {
                self.note(import, FileErrorCode::PermissionDenied);
                return None;
            }
            return Some((FileOwner::User, relative_path(home).ok()?.into_owned()));
        }
        let fs = self.files(owner)?;
        let bases = fs.base_names();
        let inside = bases.iter().find_map(|base| import.strip_prefix(base.as_str())?.strip_prefix('/'));
        let path = match (inside, importer.rsplit_once('/')) {
            (Some(inside), _) => inside.to_owned(),
            (None, Some((directory, _))) if !import.starts_with('/') => format!("{directory}/{import}"),
            (None, _) => import.to_owned(),
        };
        match relative_path(&path) {
            Ok(path) => Some((owner, path.into_owned())),
            Err(error) => {
                self.note(import, error.code);
                None
            }
        }
    }

    fn note(&mut self, name: &str, code: FileErrorCode) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(format!("{} ({})", start_of(name, MAX_PATH_BYTES), code.as_str()));
        }
    }

    pub(super) fn finish(self) -> (Vec<InstructionSection>, Vec<String>) {
        (self.sections, self.problems)
    }
}

/// The parent directories of a path, farthest first, and the path itself, which may be a directory.
fn above(path: &str) -> impl Iterator<Item = String> {
    let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
    ends.filter(|end| *end > 0).map(|end| path[..end].to_owned())
}

/// Whether a rule's pattern matches a touched path. Unlike a pin, it is anchored at the root.
fn rule_matches(pattern: &str, path: &str) -> bool {
    let rooted = format!("/{}", pattern.trim_start_matches("./").trim_start_matches('/'));
    // `{a,b}` matches either alternative.
    alternatives(&rooted).iter().any(|pattern| path_matches(pattern, path))
}

fn alternatives(pattern: &str) -> Vec<String> {
    let Some((before, rest)) = pattern.split_once('{') else { return vec![pattern.to_owned()] };
    let Some((choices, after)) = rest.split_once('}') else { return vec![pattern.to_owned()] };
    choices.split(',').take(32).map(|choice| format!("{before}{choice}{after}")).collect()
}
