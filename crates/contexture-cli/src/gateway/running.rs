//! The gateways that run: those of this user on this machine, which keep a note while they run, and those that a store
//! knows of.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use contexture_gateway::remote::{GatewayStatus, status_of};
use contexture_gateway::{Gateway, StoreError};
use serde::{Deserialize, Serialize};

use super::place::StoreFlag;
use crate::environment;
use crate::failure::Failure;
use crate::settings::GATEWAY_VARIABLE;
use crate::state_directory::state_directory;

/// The most processes above this one that are looked at.
const MOST_ABOVE: usize = 64;

/// What a gateway notes of itself while it runs. Only its user can read it.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct RunningNote {
    address: String,
    token: String,
    pid: u32,
    /// What it runs for.
    #[serde(default)]
    what: String,
}

/// A note that is deleted when its gateway ends.
pub(super) struct KeptNote(PathBuf);

impl KeptNote {
    /// Notes a gateway. If that fails, only `status` does not find it.
    pub(super) fn write(gateway: &Gateway, what: &str) -> Option<Self> {
        let directory = directory()?;
        let note = RunningNote {
            address: gateway.address().to_string(),
            token: gateway.token().to_owned(),
            pid: std::process::id(),
            what: what.to_owned(),
        };
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&directory).ok()?;
        let path = directory.join(format!("{}-{}.json", note.pid, gateway.address().port()));
        // One that is there already is of a process that had the same number.
        let _ = fs::remove_file(&path);
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&path).ok()?;
        let kept = Self(path);
        file.write_all(serde_json::to_string(&note).ok()?.as_bytes()).ok()?;
        Some(kept)
    }
}

impl Drop for KeptNote {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

fn directory() -> Option<PathBuf> {
    Some(state_directory().ok()?.join("running"))
}

/// Removes a note, and the directories that were made for it, if nothing else is in them.
fn remove(path: &Path) {
    // Whatever stays is removed by the next `status`.
    let _ = fs::remove_file(path);
    for directory in path.ancestors().skip(1).take(2) {
        if fs::remove_dir(directory).is_err() {
            return;
        }
    }
}

/// A gateway of this machine that runs.
pub(super) struct LocalGateway {
    pub(super) address: String,
    pub(super) token: String,
    pub(super) pid: u32,
    /// What it runs for, if that is known.
    pub(super) what: String,
    pub(super) status: GatewayStatus,
}

/// A gateway that another machine runs.
pub(super) struct Elsewhere {
    pub(super) address: String,
    pub(super) host: String,
}

/// The gateways that run, oldest first. Notes of those that were killed are removed.
///
/// # Errors
/// The store cannot be read.
pub(super) async fn all(flag: &StoreFlag) -> Result<(Vec<LocalGateway>, Vec<Elsewhere>), Failure> {
    let (mut here, mut elsewhere) = (Vec::new(), Vec::new());
    let fail = |error: StoreError| Failure::work(error.to_string());
    if let Some(store) = flag.existing()? {
        for gateway in store.gateways().map_err(fail)? {
            // Their addresses mean something on their own machines only.
            if !gateway.host.is_empty() && gateway.host != contexture::host::machine() {
                elsewhere.push(Elsewhere { address: gateway.address, host: gateway.host });
                continue;
            }
            match status_of(&gateway.address, &gateway.token).await {
                Some(status) => here.push(LocalGateway {
                    address: gateway.address,
                    token: gateway.token,
                    pid: gateway.pid,
                    what: String::new(),
                    status,
                }),
                // It was killed, or it would have said so itself.
                None => store.forget_gateway(&gateway.id).map_err(fail)?,
            }
        }
    }
    for (path, RunningNote { address, token, pid, what }) in notes() {
        if let Some(known) = here.iter_mut().find(|known| known.address == address && known.token == token) {
            known.what = what;
            continue;
        }
        match status_of(&address, &token).await {
            Some(status) => here.push(LocalGateway { address, token, pid, what, status }),
            None => remove(&path),
        }
    }
    Ok((here, elsewhere))
}

/// The notes that can be read, oldest first.
fn notes() -> Vec<(PathBuf, RunningNote)> {
    let entries = directory().and_then(|directory| fs::read_dir(directory).ok());
    let mut found = Vec::new();
    for entry in entries.into_iter().flatten().flatten() {
        let written = entry.metadata().and_then(|found| found.modified()).ok();
        let text = fs::read(entry.path()).unwrap_or_default();
        if let Ok(note) = serde_json::from_slice::<RunningNote>(&text) {
            found.push((written, entry.path(), note));
        }
    }
    found.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
    found.into_iter().map(|(_, path, note)| (path, note)).collect()
}

/// The gateway of whoever asks: the one with an address that was named, the one that a variable names, or the one that
/// runs the program from which this one was started.
pub(super) fn own<'a>(running: &'a [LocalGateway], named: Option<&str>) -> Option<&'a LocalGateway> {
    let at = |address: &str| running.iter().find(|gateway| gateway.address == address);
    if let Some(address) = named {
        return at(address);
    }
    if let Some(found) = of_variable(running) {
        return Some(found);
    }
    let values: Vec<String> =
        environment::variables().into_iter().filter_map(|(_, value)| value.into_string().ok()).collect();
    let is_named = |gateway: &&LocalGateway| {
        let start = format!("http://{}/", gateway.address);
        values.iter().any(|value| value.contains(&start))
    };
    let above = above();
    let nearest = || above.iter().find_map(|pid| running.iter().find(|gateway| gateway.pid == *pid));
    running.iter().find(is_named).or_else(nearest)
}

/// The gateway that `contexture run` has told its agent of.
pub(super) fn of_variable(running: &[LocalGateway]) -> Option<&LocalGateway> {
    let address = environment::variable(GATEWAY_VARIABLE)?;
    running.iter().find(|gateway| gateway.address == address)
}

/// The processes above this one, the nearest first.
#[cfg(target_os = "linux")]
fn above() -> Vec<u32> {
    let parent = |pid: u32| -> Option<u32> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name of the program, in brackets, may have anything in it.
        text.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
    };
    let first = parent(std::process::id());
    std::iter::successors(first, |pid| parent(*pid)).take_while(|pid| *pid > 1).take(MOST_ABOVE).collect()
}

/// Elsewhere only the one above it is known.
#[cfg(all(unix, not(target_os = "linux")))]
fn above() -> Vec<u32> {
    vec![std::os::unix::process::parent_id()].into_iter().take(MOST_ABOVE).collect()
}

#[cfg(not(unix))]
fn above() -> Vec<u32> {
    Vec::with_capacity(MOST_ABOVE)
}
