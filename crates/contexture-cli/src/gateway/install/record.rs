//! What was installed for an agent, as a file by which it can be undone.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use contexture_gateway::Upstreams;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::state_directory::state_directory;

/// What was installed for an agent. Only its user can read it, since it holds the gateway's key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct InstallRecord {
    /// The agent.
    pub(crate) agent: String,
    /// Where the gateway listens.
    pub(crate) address: String,
    /// Where it sends requests: what the agent would have used.
    upstreams: RecordedUpstreams,
    /// The agent's settings.
    pub(super) settings: ChangedFile,
    /// The files of the service.
    pub(super) service: Vec<PathBuf>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct RecordedUpstreams {
    anthropic: String,
    openai: String,
    chat: Option<String>,
    responses: Option<String>,
    /// Earlier versions did not write it.
    #[serde(default = "google")]
    google: String,
}

fn google() -> String {
    Upstreams::default().google
}

/// A file of the agent's settings, before and after.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ChangedFile {
    /// The file.
    pub(super) path: PathBuf,
    /// Whether it was there before; then there is a copy.
    pub(super) was_there: bool,
    /// Its permissions before.
    pub(super) mode: u32,
    /// What was written.
    pub(super) after: String,
    /// The settings that were written.
    pub(super) set: Vec<ChangedSetting>,
    /// Directories that were made for it, the innermost first.
    pub(super) made: Vec<PathBuf>,
}

/// A setting that was written.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ChangedSetting {
    pub(super) key: Vec<String>,
    pub(super) value: String,
    /// What was there before, if that was a text.
    pub(super) before: Option<String>,
}

impl InstallRecord {
    pub(super) fn new(
        agent: &str,
        address: String,
        upstreams: Upstreams,
        settings: ChangedFile,
        service: Vec<PathBuf>,
    ) -> Self {
        let Upstreams { anthropic, openai, chat, responses, google } = upstreams;
        let upstreams = RecordedUpstreams { anthropic, openai, chat, responses, google };
        Self { agent: agent.to_owned(), address, upstreams, settings, service }
    }

    /// Where the gateway sends requests.
    pub(crate) fn upstreams(&self) -> Upstreams {
        let RecordedUpstreams { anthropic, openai, chat, responses, google } = self.upstreams.clone();
        Upstreams { anthropic, openai, chat, responses, google }
    }

    /// What was installed for an agent, if anything was.
    ///
    /// # Errors
    /// There is a record that cannot be read.
    pub(crate) fn of(agent: &str) -> Result<Option<Self>, Failure> {
        let path = path_of(agent, "json")?;
        let fail = |why: String| Failure::work(format!("read what was installed in `{}`: {why}", path.display()));
        match fs::read(&path) {
            Ok(text) => serde_json::from_slice(&text).map(Some).map_err(|error| fail(error.to_string())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(fail(error.to_string())),
        }
    }

    /// Everything that is installed and can be read.
    pub(crate) fn all() -> Vec<Self> {
        let directory = directory().ok().and_then(|directory| fs::read_dir(directory).ok());
        let files = directory.into_iter().flatten().flatten().map(|entry| entry.path());
        let records = files.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
        records.filter_map(|path| serde_json::from_slice(&fs::read(path).ok()?).ok()).collect()
    }

    /// Writes it.
    pub(super) fn write(&self) -> Result<(), Failure> {
        let text = serde_json::to_vec_pretty(self)?;
        write_private(&path_of(&self.agent, "json")?, &text)
    }

    /// Removes it, with everything that was kept beside it.
    pub(super) fn remove(&self, keeps_copy: bool) -> Result<(), Failure> {
        for kind in ["toml", "env", "json"] {
            remove(&path_of(&self.agent, kind)?)?;
        }
        if !keeps_copy {
            remove(&self.copy()?)?;
        }
        // Others may be installed, and then it is not empty.
        let _ = fs::remove_dir(directory()?);
        Ok(())
    }

    /// The file with the keys of the gateway.
    pub(crate) fn keys(&self) -> Result<PathBuf, Failure> {
        path_of(&self.agent, "toml")
    }

    /// The copy of the agent's settings.
    pub(super) fn copy(&self) -> Result<PathBuf, Failure> {
        path_of(&self.agent, "before")
    }
}

/// The addresses to which requests go in the end: for an installed gateway, the address that it sends to.
pub(crate) fn behind_installed(upstreams: Upstreams) -> Upstreams {
    let mut found = upstreams;
    for record in InstallRecord::all() {
        let start = format!("http://{}/", record.address);
        let after = record.upstreams();
        if found.anthropic.starts_with(&start) {
            found.anthropic = after.anthropic;
        }
        if found.openai.starts_with(&start) {
            (found.openai, found.chat, found.responses) = (after.openai, after.chat, after.responses);
        }
    }
    found
}

fn directory() -> Result<PathBuf, Failure> {
    Ok(state_directory()?.join("installed"))
}

/// A file that belongs to an installed agent.
pub(super) fn path_of(agent: &str, kind: &str) -> Result<PathBuf, Failure> {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "-_".contains(sign);
    if agent.is_empty() || !agent.chars().all(is_plain) {
        return Err(Failure::usage(format!("`{agent}` is no name of an agent")).hint("as in `claude` or `codex`"));
    }
    Ok(directory()?.join(format!("{agent}.{kind}")))
}

/// Removes a file, which may be gone already.
pub(super) fn remove(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            Err(Failure::work(format!("remove `{}`: {error}", path.display())))
        }
        _ => Ok(()),
    }
}

/// Writes a file that only this user can read, in one step: whoever reads it meanwhile sees it before or after.
pub(super) fn write_private(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    write_with_mode(path, bytes, 0o600)
}

/// The same with other permissions.
pub(super) fn write_with_mode(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Failure> {
    let fail = |error: io::Error| Failure::work(format!("write `{}`: {error}", path.display()));
    let directory = path.parent().unwrap_or(Path::new("."));
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory).map_err(fail)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = directory.join(format!(".{name}.contexture-{}", std::process::id()));
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = options.open(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        set_mode(&file, mode)?;
        file.sync_all()?;
        fs::rename(&temporary, path)
    });
    written.map_err(|error| {
        // Nothing of it is needed any more.
        let _ = fs::remove_file(&temporary);
        fail(error)
    })
}

#[cfg(unix)]
fn set_mode(file: &fs::File, mode: u32) -> io::Result<()> {
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode & 0o7777))
}

#[cfg(not(unix))]
fn set_mode(_: &fs::File, _: u32) -> io::Result<()> {
    Ok(())
}
