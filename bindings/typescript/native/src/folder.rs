//! A folder for one conversation.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use contexture_in_process::{DecidedNote, FoldReport, FoldedBody, Folder, Format};
use napi::Env;
use napi::bindgen_prelude::{AsyncTask, Buffer, ObjectFinalize};
use napi_derive::napi;

use crate::work::{Work, number, promised, thrown};

/// What a folder takes in memory for each byte of its longest request: 25 folders that were not freed took 10.8 times as
/// much as their requests. It is only told to the garbage collector.
const BYTES_FOR_BYTE: usize = 10;

/// The folder that `Folder` uses.
#[napi(custom_finalize)]
pub struct NativeFolder {
    folder: Arc<Folder>,
    /// Bytes outside its heap that the garbage collector was told of.
    told: AtomicUsize,
}

impl ObjectFinalize for NativeFolder {
    fn finalize(self, env: Env) -> napi::Result<()> {
        self.tell(env, 0)
    }
}

/// What to send for a request.
#[napi(object)]
pub struct NativeFolded {
    /// The body to send; missing for the one that was passed.
    pub changed: Option<Buffer>,
    /// What was decided.
    pub report: Report,
}

/// What was decided about a request.
#[napi(object)]
pub struct Report {
    /// The number of the request in its folder.
    pub number: u32,
    /// The format that it is written in.
    #[napi(ts_type = "'chat' | 'messages' | 'responses' | 'gemini'")]
    pub format: String,
    /// Whether the body differs from what was passed.
    pub is_changed: bool,
    /// Why nothing new was decided, if that is so.
    pub passed: Option<String>,
    /// The decisions that take effect with it.
    pub decisions: Vec<Decision>,
    /// Tokens of the body to send, by our own count.
    pub sent_tokens: u32,
    /// Tokens of what was passed, by our own count.
    pub came_tokens: u32,
    /// The name of the conversation. A request that differs inside begins a branch with a name of its own.
    pub conversation: Option<String>,
}

/// One thing that was decided about a request.
#[napi(object)]
pub struct Decision {
    /// Its kind.
    #[napi(ts_type = "'fold' | 'shorten' | 'bring back' | 'cold' | 'disk' | 'reference' | 'memory' | (string & {})")]
    pub what: String,
    /// Why.
    pub reason: String,
    /// Whether it is a fold that the budget forced.
    pub is_forced: bool,
    /// Tokens of the conversation before it.
    pub before_tokens: u32,
    /// Tokens of the conversation after it.
    pub after_tokens: u32,
    /// What a fold makes the provider bill again, in tokens at the plain input price.
    pub cost: f64,
    /// What a fold saves in every later request, in tokens at the plain input price.
    pub saves_per_request: f64,
}

/// What was billed for a request.
#[napi(object)]
pub struct Bill {
    /// What was billed for input, in tokens at the plain input price.
    pub billed: f64,
    /// What would have been billed without the folder.
    pub passed_through: f64,
    /// Input tokens that were sent.
    pub sent: u32,
    /// Input tokens that would have been sent without the folder.
    pub came: u32,
}

impl From<FoldedBody> for NativeFolded {
    fn from(folded: FoldedBody) -> Self {
        let FoldReport { number: of, format, is_changed, passed, decisions, sent_tokens, came_tokens, conversation } =
            folded.report;
        let report = Report {
            number: number(of),
            format: name(format).to_owned(),
            is_changed,
            passed,
            decisions: decisions.into_iter().map(Decision::from).collect(),
            sent_tokens: number(sent_tokens),
            came_tokens: number(came_tokens),
            conversation,
        };
        Self { changed: folded.changed.map(|body| Vec::from(body).into()), report }
    }
}

/// The name by which an option and a report call a format.
fn name(format: Format) -> &'static str {
    match format {
        Format::Messages => "messages",
        Format::Chat => "chat",
        Format::Responses => "responses",
        Format::Gemini => "gemini",
    }
}

impl From<DecidedNote> for Decision {
    fn from(note: DecidedNote) -> Self {
        Self {
            what: note.what.name().to_owned(),
            reason: note.reason,
            is_forced: note.is_forced,
            before_tokens: number(note.before_tokens),
            after_tokens: number(note.after_tokens),
            cost: note.cost,
            saves_per_request: note.saves_per_request,
        }
    }
}

#[napi]
impl NativeFolder {
    /// A folder with options, which are JSON, and what it goes on from.
    #[napi(constructor)]
    pub fn new(options: String, snapshot: Option<String>) -> napi::Result<Self> {
        let folder = Folder::new(&options, snapshot.as_deref()).map_err(|failure| thrown(&failure))?;
        Ok(Self { folder: Arc::new(folder), told: AtomicUsize::new(0) })
    }

    /// What to send for a request, decided in another thread.
    #[napi(ts_return_type = "Promise<NativeFolded>")]
    pub fn request(&self, env: Env, body: &[u8]) -> napi::Result<AsyncTask<Work<NativeFolded>>> {
        self.tell(env, body.len() * BYTES_FOR_BYTE)?;
        // The caller may change its bytes while they are read.
        let (folder, body) = (Arc::clone(&self.folder), body.to_vec());
        Ok(promised(move || folder.request(&body).map(NativeFolded::from)))
    }

    /// The same at once.
    #[napi]
    pub fn request_sync(&self, env: Env, body: &[u8]) -> napi::Result<NativeFolded> {
        self.tell(env, body.len() * BYTES_FOR_BYTE)?;
        self.folder.request(body).map(NativeFolded::from).map_err(|failure| thrown(&failure))
    }

    /// Notes what was billed for a request. Returns the bill.
    #[napi]
    pub fn usage(&self, of: Option<u32>, reported: &[u8]) -> napi::Result<Bill> {
        let bill = self.folder.usage(of.map(u64::from), reported).map_err(|failure| thrown(&failure))?;
        let (sent, came) = (number(bill.sent), number(bill.came));
        Ok(Bill { billed: bill.billed, passed_through: bill.passed_through, sent, came })
    }

    /// Notes that the provider refused a request.
    #[napi]
    pub fn refused(&self, of: Option<u32>, original_was_accepted: bool) -> napi::Result<()> {
        let noted = self.folder.refused(of.map(u64::from), original_was_accepted);
        noted.map_err(|failure| thrown(&failure))
    }

    /// What was decided so far, as JSON.
    #[napi]
    pub fn snapshot(&self) -> napi::Result<String> {
        self.folder.snapshot().map_err(|failure| thrown(&failure))
    }

    /// Frees what is in memory, once other threads have finished with it.
    #[napi]
    pub fn close(&self, env: Env) -> napi::Result<()> {
        self.folder.close();
        self.tell(env, 0)
    }
}

impl NativeFolder {
    /// Tells the garbage collector how much is held outside its heap, so that folders that nobody uses are freed in time.
    fn tell(&self, env: Env, bytes: usize) -> napi::Result<()> {
        let before = self.told.load(Ordering::Relaxed);
        // A shorter request frees nothing.
        if bytes > before || bytes == 0 {
            self.told.store(bytes, Ordering::Relaxed);
            env.adjust_external_memory(bytes as i64 - before as i64)?;
        }
        Ok(())
    }
}
