//! Which project a directory belongs to, so that all its checkouts share what is remembered of it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use contexture_core::ResourceId;

/// Returns the project of a directory: the repository that it is in, or the directory itself if it is in none.
///
/// All worktrees of a repository have one common directory, so they are one project. The id is an absolute path without
/// symbolic links: two clones of a repository are two projects.
///
/// ```no_run
/// # async fn run(engine: contexture::prelude::Engine<()>) -> Result<(), Box<dyn std::error::Error>> {
/// let project = contexture::project::project_of(".")?;
/// let execution = engine.execution("thread").resource("ada").resource_of("project", project).start().await?;
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The directory does not exist or cannot be read.
pub fn project_of(directory: impl AsRef<Path>) -> io::Result<ResourceId> {
    let directory = fs::canonicalize(directory)?;
    let common = directory.ancestors().find_map(|directory| common_directory(&directory.join(".git")));
    let project = match common {
        // The directory that has `.git`, or a bare repository itself.
        Some(common) if common.file_name().is_some_and(|name| name == ".git") => {
            common.parent().map_or_else(|| common.clone(), Path::to_path_buf)
        }
        Some(common) => common,
        None => directory,
    };
    Ok(ResourceId::from(project.to_string_lossy()))
}

/// The common directory of a repository, from `.git`: a directory, or in a worktree a file that names one.
fn common_directory(git: &Path) -> Option<PathBuf> {
    let own = if git.is_dir() { git.to_path_buf() } else { named(git, "gitdir:")? };
    // A directory that only looks like a repository is none.
    if !own.join("HEAD").is_file() {
        return None;
    }
    let common = match fs::read_to_string(own.join("commondir")) {
        Ok(path) => own.join(path.trim()),
        Err(_) => own,
    };
    fs::canonicalize(common).ok()
}

/// The path that a file names after a word.
fn named(file: &Path, word: &str) -> Option<PathBuf> {
    let text = fs::read_to_string(file).ok()?;
    let path = text.strip_prefix(word)?.trim();
    Some(file.parent()?.join(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a directory with these files.
    fn write(base: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = base.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn worktrees_share_a_project_and_clones_do_not() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        let gitdir = format!("gitdir: {}\n", base.join("app/.git/worktrees/fix").display());
        write(
            &base,
            &[
                ("app/.git/HEAD", "ref: refs/heads/main\n"),
                ("app/src/deep/a.rs", ""),
                ("app/.git/worktrees/fix/HEAD", "ref: refs/heads/fix\n"),
                ("app/.git/worktrees/fix/commondir", "../..\n"),
                ("fix/.git", &gitdir),
                ("fix/src/a.rs", ""),
                ("clone/.git/HEAD", "ref: refs/heads/main\n"),
                ("bare.git/HEAD", "ref: refs/heads/main\n"),
                ("bare.git/worktrees/w/HEAD", ""),
                ("bare.git/worktrees/w/commondir", "../.."),
                ("w/.git", "gitdir: ../bare.git/worktrees/w"),
                ("broken/.git", "gitdir: ../nowhere"),
                ("plain/notes.md", ""),
            ],
        );
        let project = |path: &str| project_of(base.join(path)).unwrap();
        let expected = |path: &str| ResourceId::from(base.join(path).to_string_lossy());
        for path in ["app", "app/src/deep", "fix", "fix/src"] {
            assert_eq!(project(path), expected("app"), "{path}");
        }
        for path in ["clone", "plain", "broken"] {
            assert_eq!(project(path), expected(path), "{path}");
        }
        assert_eq!(project("w"), expected("bare.git"));
        assert!(project_of(base.join("none")).is_err());
    }
}
