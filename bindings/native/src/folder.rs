//! A folder for one conversation, which can be closed.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use contexture_gateway::account::bill::Bill;
use contexture_gateway::in_process::{
    FoldReport, OptionsError, RequestError, SnapshotError, UsageError, WireFolder, WireFolderOptions,
};

use crate::failure::{Failure, FailureKind, caught};

/// What a body should have been.
const BODY_HINT: &str =
    "a request is the JSON body of Anthropic messages, OpenAI chat completions, OpenAI responses or Gemini";

/// A folder for one conversation. It can be used by several threads at once.
pub struct Folder {
    /// `None` after it was closed.
    folder: Mutex<Option<Arc<WireFolder>>>,
}

/// What to send for a request.
pub struct FoldedBody {
    /// The body to send; `None` for the one that was passed.
    pub changed: Option<Bytes>,
    /// What was decided.
    pub report: FoldReport,
}

impl Folder {
    /// A folder with options, which are JSON, and what it goes on from.
    ///
    /// # Errors
    /// The options or the snapshot cannot be used.
    pub fn new(options: &str, snapshot: Option<&str>) -> Result<Self, Failure> {
        let folder = caught(|| {
            let options: WireFolderOptions =
                serde_json::from_str(options).map_err(|error| Failure::of(FailureKind::Input, &error))?;
            match snapshot {
                None => WireFolder::new(options).map_err(wrong_options),
                Some(snapshot) => WireFolder::restore(options, snapshot).map_err(wrong_snapshot),
            }
        })?;
        Ok(Self { folder: Mutex::new(Some(Arc::new(folder))) })
    }

    /// What to send for a request.
    ///
    /// # Errors
    /// The body is no request, or the folder is closed.
    pub fn request(&self, body: &[u8]) -> Result<FoldedBody, Failure> {
        let folder = self.open()?;
        caught(|| {
            let folded = folder.request(body).map_err(|error| no_request(&error))?;
            Ok(FoldedBody { changed: folded.report.is_changed.then_some(folded.body), report: folded.report })
        })
    }

    /// Notes what was billed for a request. Returns the bill.
    ///
    /// # Errors
    /// There is no such request, it is no usage, or the folder is closed.
    pub fn usage(&self, number: Option<u64>, reported: &[u8]) -> Result<Bill, Failure> {
        let folder = self.open()?;
        caught(|| folder.usage(number, reported).map_err(|error| no_usage(&error)))
    }

    /// Notes that the provider refused a request.
    ///
    /// # Errors
    /// There is no such request, or the folder is closed.
    pub fn refused(&self, number: Option<u64>, original_was_accepted: bool) -> Result<(), Failure> {
        let folder = self.open()?;
        caught(|| folder.refused(number, original_was_accepted).map_err(|error| no_usage(&error)))
    }

    /// What was decided so far, as JSON.
    ///
    /// # Errors
    /// The folder is closed.
    pub fn snapshot(&self) -> Result<String, Failure> {
        let folder = self.open()?;
        caught(|| Ok(folder.snapshot()))
    }

    /// Frees what is in memory, once other threads have finished with it.
    pub fn close(&self) {
        self.folder.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    fn open(&self) -> Result<Arc<WireFolder>, Failure> {
        let folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner).clone();
        folder.ok_or_else(|| {
            let failure = Failure::new(FailureKind::Closed, "the folder is closed");
            failure.with_hint("make another one, or go on from a snapshot with `Folder.restore`")
        })
    }
}

fn wrong_options(error: OptionsError) -> Failure {
    Failure::of(FailureKind::Input, &error)
}

fn wrong_snapshot(error: SnapshotError) -> Failure {
    match error {
        SnapshotError::Options(error) => wrong_options(error),
        error => Failure::of(FailureKind::Input, &error).with_hint("pass what `Folder.snapshot` returned"),
    }
}

fn no_request(error: &RequestError) -> Failure {
    Failure::of(FailureKind::Input, error).with_hint(BODY_HINT)
}

fn no_usage(error: &UsageError) -> Failure {
    let failure = Failure::of(FailureKind::Input, error);
    match error {
        UsageError::NoUsage => failure.with_hint("pass the `usage` of a response, or the whole response"),
        _ => failure.with_hint("each request is reported once, after `request` has returned"),
    }
}
