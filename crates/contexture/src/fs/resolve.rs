//! Resolves a path to a handle, without leaving the base directory.

use std::ffi::CString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;

use super::READ;

/// How often a resolution is retried because of concurrent renames.
const MAX_ATTEMPTS: usize = 128;

/// How many symbolic links one path may contain, as in the kernel.
const MAX_LINKS: usize = 40;

#[cfg(target_os = "linux")]
const HANDLE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);
#[cfg(not(target_os = "linux"))]
const HANDLE: OFlags = READ;

/// The flags to open directories for lookups.
pub(super) const DIRECTORY: OFlags = HANDLE.union(OFlags::DIRECTORY);

/// The purpose of a handle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// To read it.
    Read,
    /// To take its metadata.
    Look,
    /// To look up names in it.
    Directory,
}

impl Goal {
    fn flags(self) -> OFlags {
        match self {
            Goal::Read => READ,
            Goal::Look => HANDLE,
            Goal::Directory => DIRECTORY,
        }
    }
}

/// How a path is kept below the base.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Resolver {
    /// By the kernel, with `openat2`.
    #[cfg(target_os = "linux")]
    Kernel,
    /// By us, one component at a time; the kernel never follows a link.
    Walk,
}

impl Resolver {
    /// The best one that works here: old kernels lack `openat2`, and some sandboxes forbid it.
    pub(super) fn detect(base: BorrowedFd<'_>) -> Resolver {
        #[cfg(target_os = "linux")]
        if kernel::open(base, ".", Goal::Directory).is_ok() {
            return Resolver::Kernel;
        }
        let _ = base;
        Resolver::Walk
    }

    /// Opens a normalised relative path without following links.
    ///
    /// `EXDEV` means that it leads out of the base, `ELOOP` that there is a link.
    pub(super) fn open(self, base: BorrowedFd<'_>, path: &str, goal: Goal) -> Result<OwnedFd, Errno> {
        match self {
            #[cfg(target_os = "linux")]
            Resolver::Kernel => kernel::open(base, path, goal),
            Resolver::Walk => Ok(PathWalk::new(base, path, None)?.open_named(goal)?.0),
        }
    }
}

#[cfg(target_os = "linux")]
mod kernel {
    use rustix::fs::ResolveFlags;

    use super::*;

    const RESOLVE: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS);

    pub(super) fn open(base: BorrowedFd<'_>, path: &str, goal: Goal) -> Result<OwnedFd, Errno> {
        for _ in 0..MAX_ATTEMPTS {
            match rustix::fs::openat2(base, path, goal.flags(), Mode::empty(), RESOLVE) {
                // A concurrent rename disturbed the check; the kernel requests a retry.
                Err(Errno::AGAIN | Errno::INTR) => {}
                opened => return opened,
            }
        }
        Err(Errno::AGAIN)
    }
}

/// Opens a normalised relative path, following links that stay below the base, which has these absolute names. Also
/// returns the name of the file, if a link led to one of another name.
///
/// `EXDEV` means that a link leads out of the base, `ELOOP` that there are too many.
pub(super) fn follow(
    base: BorrowedFd<'_>,
    names: &[String],
    path: &str,
    goal: Goal,
) -> Result<(OwnedFd, Option<String>), Errno> {
    let (file, name) = PathWalk::new(base, path, Some(names))?.open_named(goal)?;
    let asked = path.rsplit('/').next().unwrap_or_default();
    let name = name.map(|name| name.to_string_lossy().into_owned());
    Ok((file, name.filter(|name| name != asked)))
}

/// Resolves a path one component at a time.
///
/// Every component is opened relative to the handle of the previous one, and the kernel never follows a link. A link is
/// read here, and its target replaces the component; one that begins with a name of the base starts at the base again.
/// `..` returns to the previous handle, so resolution can never go above the base.
struct PathWalk<'a> {
    base: BorrowedFd<'a>,
    /// The absolute names of the base; `None`: links are not followed.
    names: Option<&'a [String]>,
    /// The directories entered so far, below the base.
    entered: Vec<OwnedFd>,
    /// The remaining components, last one first.
    left: Vec<CString>,
    links: usize,
    attempts: usize,
}

impl<'a> PathWalk<'a> {
    fn new(base: BorrowedFd<'a>, path: &str, names: Option<&'a [String]>) -> Result<Self, Errno> {
        let mut walk = Self { base, names, entered: Vec::new(), left: Vec::new(), links: 0, attempts: 0 };
        walk.push(path.as_bytes())?;
        Ok(walk)
    }

    fn push(&mut self, path: &[u8]) -> Result<(), Errno> {
        // A path with a slash at the end must be a directory.
        if path.ends_with(b"/") {
            self.left.push(c".".to_owned());
        }
        for component in path.split(|byte| *byte == b'/').rev().filter(|component| !component.is_empty()) {
            self.left.push(CString::new(component).map_err(|_| Errno::INVAL)?);
        }
        Ok(())
    }

    fn here(&self) -> BorrowedFd<'_> {
        self.entered.last().map_or(self.base, AsFd::as_fd)
    }

    /// The handle, and the name by which it was finally opened.
    fn open_named(mut self, goal: Goal) -> Result<(OwnedFd, Option<CString>), Errno> {
        while let Some(component) = self.left.pop() {
            match component.to_bytes() {
                b"." => continue,
                b".." => {
                    self.entered.pop().ok_or(Errno::XDEV)?;
                    continue;
                }
                _ => {}
            }
            let last = self.left.is_empty();
            match open_component(self.here(), &component, if last { goal } else { Goal::Directory }) {
                Ok(opened) if last => return Ok((opened, Some(component))),
                Ok(directory) => self.entered.push(directory),
                Err(errno @ (Errno::LOOP | Errno::NOTDIR)) => self.link(component, errno)?,
                Err(errno) => return Err(errno),
            }
        }
        // The path ended in `.` or `..`, so it is the current directory.
        Ok((open_component(self.here(), c".", goal)?, None))
    }

    /// Replaces a component by its target, if it is a link and links are followed.
    fn link(&mut self, component: CString, errno: Errno) -> Result<(), Errno> {
        let target = match rustix::fs::readlinkat(self.here(), &component, Vec::new()) {
            Ok(target) => target,
            Err(Errno::INVAL) if errno == Errno::NOTDIR => return Err(Errno::NOTDIR),
            // It was a link when it was opened and is not one any more.
            Err(Errno::INVAL) if self.attempts < MAX_ATTEMPTS => {
                self.attempts += 1;
                self.left.push(component);
                return Ok(());
            }
            Err(Errno::INVAL) => return Err(Errno::AGAIN),
            Err(errno) => return Err(errno),
        };
        self.links += 1;
        let names = self.names.filter(|_| self.links <= MAX_LINKS).ok_or(Errno::LOOP)?;
        let target = target.to_bytes();
        if !target.starts_with(b"/") {
            return self.push(target);
        }
        let below = |name: &String| target.strip_prefix(name.trim_end_matches('/').as_bytes());
        let rest = names.iter().filter_map(below).find(|rest| rest.is_empty() || rest.starts_with(b"/"));
        self.entered.clear();
        self.push(rest.ok_or(Errno::XDEV)?)
    }
}

/// Opens one name in a directory; a link returns `ELOOP` or `ENOTDIR` and is never followed.
fn open_component(directory: BorrowedFd<'_>, name: &std::ffi::CStr, goal: Goal) -> Result<OwnedFd, Errno> {
    let opened = loop {
        match rustix::fs::openat(directory, name, goal.flags().union(OFlags::NOFOLLOW), Mode::empty()) {
            Err(Errno::INTR) => {}
            opened => break opened?,
        }
    };
    // With `O_PATH`, the handle is that of the link itself.
    if goal == Goal::Look && FileType::from_raw_mode(rustix::fs::fstat(&opened)?.st_mode) == FileType::Symlink {
        return Err(Errno::LOOP);
    }
    Ok(opened)
}
