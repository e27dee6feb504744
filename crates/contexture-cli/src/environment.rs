//! The environment of this process, and how secrets in it are kept from the programs that it starts.
//!
//! A process of the same user can read the environment with which another was started (`/proc/PID/environ` on Linux), so
//! it is not enough to start programs without the variables. [`keep_from_programs`] therefore starts this program again
//! in the same process, with the usual variables only, and hands the others over in memory. It also
//! makes the process unreadable for other processes of the user (`PR_SET_DUMPABLE`). The first holds for `root` too, the
//! second also for what is in memory. Elsewhere than on Linux neither is done.

use std::ffi::OsString;
use std::sync::OnceLock;

/// The variables that are not in the environment of the process any more.
static HELD: OnceLock<Vec<(OsString, OsString)>> = OnceLock::new();

/// All variables that this program was started with.
pub fn variables() -> Vec<(OsString, OsString)> {
    let mut variables: Vec<_> = std::env::vars_os().filter(|(name, _)| name != handover::VARIABLE).collect();
    variables.extend(HELD.get().into_iter().flatten().cloned());
    variables
}

/// The value of a variable that this program was started with.
pub fn variable_os(name: &str) -> Option<OsString> {
    let held = HELD.get().into_iter().flatten().find(|(other, _)| other == name);
    held.map(|(_, value)| value.clone()).or_else(|| std::env::var_os(name))
}

/// The value of a variable that this program was started with, if it is Unicode.
pub fn variable(name: &str) -> Option<String> {
    variable_os(name)?.into_string().ok()
}

/// Forbids other processes of the user to read what this one has in memory: keys, and what passes through it. Its
/// environment cannot be read either, but programs that it starts get all of it.
pub fn keep_from_others() {
    handover::unreadable();
}

/// Keeps the environment from programs that are started later; [`variables`] and its siblings still have it. It may
/// start this program from its beginning, so it is called before anything is read or written.
pub fn keep_from_programs() {
    keep_from_others();
    // What was handed over is there from now on; the first call wins.
    let _ = HELD.set(handover::receive().unwrap_or_else(|| {
        // Returns only if that is not possible.
        handover::start_again();
        Vec::new()
    }));
}

#[cfg(target_os = "linux")]
mod handover {
    //! Hands variables to the same program in the same process.

    use std::ffi::OsString;
    use std::fs::{File, OpenOptions};
    use std::io::{Read, Write};
    use std::os::fd::AsRawFd;
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    use std::os::unix::fs::FileExt;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    use contexture::host::ProgramEnvironment;
    use rustix::fs::{MemfdFlags, memfd_create};
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};

    /// The descriptor of what is handed over.
    pub(super) const VARIABLE: &str = "CONTEXTURE_HANDED_OVER";
    /// What the text begins with; it is not read from another file.
    const MARK: &[u8] = b"contexture-variables\0";
    /// This program, also if its file was replaced meanwhile.
    const THIS_PROGRAM: &str = "/proc/self/exe";
    /// Variables that this program's own libraries read; those with a password are no secret of a provider.
    const NEEDED: [&str; 7] =
        ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy", "RUST_MIN_STACK"];

    /// Forbids other processes of the user to read this one.
    pub(super) fn unreadable() {
        // A kernel that does not have it is as before.
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }

    /// Starts this program again without the variables that programs do not get.
    pub(super) fn start_again() {
        let all: Vec<(OsString, OsString)> = std::env::vars_os().collect();
        // It was started again, but nothing arrived: not once more.
        if all.iter().any(|(name, _)| name == VARIABLE) {
            return;
        }
        let needed = NEEDED.map(str::to_owned);
        let usual = ProgramEnvironment::select(all.iter().cloned(), &needed);
        let is_usual = |name: &OsString| usual.names().any(|other| other == name);
        let (kept, held): (Vec<_>, Vec<_>) = all.into_iter().partition(|(name, _)| is_usual(name));
        if held.is_empty() {
            return;
        }
        let Some(file) = written(&held) else { return };
        let mut arguments = std::env::args_os();
        let mut command = Command::new(THIS_PROGRAM);
        if let Some(own_name) = arguments.next() {
            command.arg0(own_name);
        }
        command.args(arguments).env_clear().envs(kept).env(VARIABLE, file.as_raw_fd().to_string());
        // It returns only if it failed, and then the variables stay where they are.
        let _ = command.exec();
    }

    /// A file in memory with the variables, which the program finds again after it was started.
    fn written(held: &[(OsString, OsString)]) -> Option<File> {
        let mut bytes = MARK.to_vec();
        for (name, value) in held {
            bytes.extend([name.as_bytes(), b"=", value.as_bytes(), b"\0"].concat());
        }
        let mut file = File::from(memfd_create("variables", MemfdFlags::empty()).ok()?);
        file.write_all(&bytes).ok()?;
        // Without a mounted `/proc` it could not be read.
        File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()?;
        Some(file)
    }

    /// The variables that were handed over. The file is empty afterwards, since later programs inherit it.
    pub(super) fn receive() -> Option<Vec<(OsString, OsString)>> {
        let descriptor: u32 = std::env::var(VARIABLE).ok()?.parse().ok()?;
        let path = format!("/proc/self/fd/{descriptor}");
        let is_in_memory =
            std::fs::read_link(&path).is_ok_and(|link| link.as_os_str().as_bytes().starts_with(b"/memfd:"));
        if !is_in_memory {
            return None;
        }
        let mut file = OpenOptions::new().read(true).write(true).open(&path).ok()?;
        let mut mark = vec![0; MARK.len()];
        file.read_exact_at(&mut mark, 0).ok().filter(|()| mark == MARK)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        file.set_len(0).ok()?;
        let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let pair = |line: &[u8]| {
            // Windows' names that begin with `=` do not occur here.
            let at = line.iter().position(|byte| *byte == b'=')?;
            Some((text(&line[..at]), text(&line[at + 1..])))
        };
        Some(bytes[MARK.len()..].split(|byte| *byte == 0).filter_map(pair).collect())
    }
}

#[cfg(not(target_os = "linux"))]
mod handover {
    //! Nothing is handed over where the environment of another process cannot be read as a file.

    use std::ffi::OsString;

    pub(super) const VARIABLE: &str = "CONTEXTURE_HANDED_OVER";

    pub(super) fn unreadable() {}

    pub(super) fn start_again() {}

    pub(super) fn receive() -> Option<Vec<(OsString, OsString)>> {
        None
    }
}
