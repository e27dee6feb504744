//! A request that is sent to the provider, and its response.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{HeaderMap, Response, StatusCode, header};
use bytes::Bytes;
use contexture::wire::{AnswerReader, Answered, Plan, Request, asking_for_diagnosis};

use crate::accept::coding::Coding;
use crate::accept::headers;
use crate::accept::refusal::refusal;
use crate::account::cap::Spent;
use crate::account::record::RequestRecord;
use crate::conversation::state::AcceptedForm;
use crate::decide::prepared::{PreparedRequest, SecondAnswer};
use crate::decide::rewriting::{newly_folded, unbound};
use crate::provider::client::SendError;
use crate::provider::upstream::Route;
use crate::remember::passing::PassingRequest;
use crate::report::session::BegunRecord;
use crate::report::spending::Admission;
use crate::send::passing::Passing;
use crate::send::rejection::Rejection;
use crate::shared::SharedState;
use crate::watch::{AnswerCopy, RequestWatch};

/// How long a response waits until it is written that the request was sent.
const BEGINNING: Duration = Duration::from_millis(50);

/// Counts what is new of a conversation, for the record of a request.
type Following = tokio::task::JoinHandle<()>;

/// Begins that. It takes as long as reading the request once more, so it waits until the provider has the request.
pub(crate) type ToFollow = Box<dyn FnOnce() -> Following + Send + Sync>;

/// Where a request goes, and how.
pub(crate) struct ProviderTarget {
    /// The route.
    pub(crate) route: Route,
    /// The headers to forward.
    pub(crate) headers: HeaderMap,
    /// How its bodies are compressed.
    pub(crate) coding: Coding,
}

/// The forms of a request's body.
pub(crate) struct Bodies {
    /// As received.
    pub(crate) came: Bytes,
    /// The decompressed text of the received body, without the tools that were left out.
    pub(crate) text: Bytes,
    /// As it is sent.
    sent: Bytes,
}

impl Bodies {
    /// The bodies of a request that is sent as decided.
    pub(crate) async fn new(came: Bytes, text: Bytes, prepared: &PreparedRequest, coding: Coding) -> Self {
        let sent = match prepared.body() {
            Some(body) => coding.packed(body.clone()).await,
            None if prepared.lean_conversation().is_some() => coding.packed(text.clone()).await,
            None => came.clone(),
        };
        Self { came, text, sent }
    }
}

/// How long things took.
pub(crate) struct Timing {
    /// When the request began.
    pub(crate) began: Instant,
    /// How long the gateway itself worked on it.
    pub(crate) own: Duration,
}

/// The forms in which a request can be sent that was refused as rewritten, beside the one that came.
#[derive(Default)]
struct ChangedForms {
    /// As what was decided before makes of it.
    earlier: Option<Bytes>,
    /// The kinds of blocks that were in what was refused and are not understood.
    kinds: Vec<Box<str>>,
    /// As it came, without reasoning that the provider binds to what the gateway sent before it, and the plan for that.
    unbound: Option<(Bytes, Plan)>,
}

/// A response, or why there is none.
type ProviderAnswer = Result<reqwest::Response, SendError>;

/// A request after the decision, until its response has been forwarded.
pub(crate) struct Exchange {
    shared: Arc<SharedState>,
    target: ProviderTarget,
    prepared: PreparedRequest,
    bodies: Bodies,
    timing: Timing,
    /// What watchers heard of it.
    watched: Option<RequestWatch>,
    /// Its record in the store.
    begun: BegunRecord,
    /// What is kept of it when its response has ended.
    passing: Option<PassingRequest>,
    /// What counts the signals of harm, once the request was sent.
    to_follow: Option<ToFollow>,
    /// Counts them.
    following: Option<Following>,
    /// Counts what it is expected to take against the cap, until that is known.
    admission: Option<Admission>,
}

impl Exchange {
    pub(crate) fn new(
        shared: Arc<SharedState>,
        target: ProviderTarget,
        prepared: PreparedRequest,
        bodies: Bodies,
        timing: Timing,
        (watched, begun, to_follow): (Option<RequestWatch>, BegunRecord, Option<ToFollow>),
    ) -> Self {
        let (following, passing, admission) = (None, None, None);
        Self { shared, target, prepared, bodies, timing, watched, begun, to_follow, following, passing, admission }
    }

    /// Sets what is kept of it when its response has ended.
    pub(crate) fn remembering(self, passing: Option<PassingRequest>) -> Self {
        Self { passing, ..self }
    }

    /// Sets what counts against the cap until its response has ended.
    pub(crate) fn admitted(self, admission: Option<Admission>) -> Self {
        Self { admission, ..self }
    }

    pub(crate) async fn send(mut self) -> Response<Body> {
        let measuring = self.prepared.measuring(&self.bodies.text).map(tokio::task::spawn_blocking);
        let (mut answer, rejection) = self.heard(self.ask().await).await;
        if let Some(measuring) = measuring
            && let Ok(sizes) = measuring.await
        {
            self.prepared.note_sizes(sizes);
        }
        self.following = self.to_follow.take().map(|follow| follow());
        let is_rewritten = self.prepared.body().is_some();
        answer = match rejection {
            Some(first) if is_rewritten => self.retried(first).await,
            Some(_) => self.with_all_tools(answer).await,
            None => answer,
        };
        self.begun.wait(BEGINNING).await;
        match answer {
            Ok(answer) => self.pass(answer),
            Err(error) => {
                let response = unreachable_upstream(&self.target.route, error);
                let answered = (&Answered::default(), None);
                self.note(response.status().as_u16(), Vec::new(), answered, self.timing.began.elapsed());
                response
            }
        }
    }

    /// Sends the request again after it was refused as rewritten: in the form that was accepted before, with the new
    /// messages, and if that is refused too, as it came.
    async fn retried(&mut self, first: Rejection) -> ProviderAnswer {
        let ChangedForms { earlier, kinds, unbound } = self.other_forms();
        let was_earlier_tried = earlier.is_some();
        if let Some(body) = earlier {
            let packed = self.target.coding.packed(body.clone()).await;
            let (again, second) = self.heard(self.post(packed).await).await;
            if again.as_ref().is_ok_and(|answer| answer.status().is_success()) {
                self.prepared.fall_back(body, kinds);
                return again;
            }
            if second.is_none() {
                self.prepared.give_up(SecondAnswer::Other, kinds, AcceptedForm::Earlier);
                return again;
            }
        }
        let body = match &unbound {
            Some((body, _)) => self.target.coding.packed(body.clone()).await,
            None => self.bodies.came.clone(),
        };
        let (again, second) = self.heard(self.post(body).await).await;
        let said = match second {
            Some(second) if second.is_like(&first) => SecondAnswer::RefusedAlike,
            None if again.as_ref().is_ok_and(|answer| answer.status().is_success()) => SecondAnswer::Accepted,
            _ => SecondAnswer::Other,
        };
        if said == SecondAnswer::Accepted && unbound.is_none() {
            self.note_whole();
        }
        let unbound = unbound.map(|(_, plan)| plan);
        let accepted = AcceptedForm::Original { was_earlier_refused: was_earlier_tried, unbound };
        self.prepared.give_up(said, kinds, accepted);
        again
    }

    /// Sends a request as it came after it was refused without some of its tools. Without that, the answer is the same.
    async fn with_all_tools(&mut self, answer: ProviderAnswer) -> ProviderAnswer {
        if self.prepared.lean_conversation().is_none() {
            return answer;
        }
        let again = self.post(self.bodies.came.clone()).await;
        if again.as_ref().is_ok_and(|answer| answer.status().is_success()) {
            self.note_whole();
        }
        again
    }

    /// Notes that the conversation has all its tools from here on, if some were left out.
    fn note_whole(&mut self) {
        if let Some((leaner, conversation)) = self.shared.leaner.as_ref().zip(self.prepared.lean_conversation()) {
            leaner.give_up(conversation);
        }
        self.prepared.note_whole();
    }

    /// The other forms in which the request can be sent.
    fn other_forms(&self) -> ChangedForms {
        let Route { format, model, .. } = &self.target.route;
        let text = std::str::from_utf8(&self.bodies.text).ok();
        let request = format.zip(text).and_then(|(format, text)| Request::parse(format, text).ok());
        let Some(request) = request.map(|request| request.addressed_to(model.as_deref())) else {
            return ChangedForms::default();
        };
        let before = self.prepared.before();
        let conversation = self.prepared.conversation();
        let kinds = conversation.zip(before).map(|(conversation, before)| {
            let plan = conversation.state().decisions().plan_for(request.messages().len());
            newly_folded(&request, before, &plan)
        });
        // What was never sent in another form has its reasoning for itself.
        let was_changed = before.is_none_or(|before| !before.is_as_it_came())
            || conversation.is_some_and(|conversation| conversation.state().health().was_refused());
        ChangedForms {
            earlier: self.shared.decider.earlier(&request, &self.prepared),
            kinds: kinds.unwrap_or_default(),
            unbound: was_changed.then(|| unbound(&request)).flatten(),
        }
    }

    /// Reads what the provider says if it refuses the request. Returns the same answer.
    async fn heard(&self, answer: ProviderAnswer) -> (ProviderAnswer, Option<Rejection>) {
        let answer = match answer {
            Ok(answer) if Rejection::is_in(&answer) => answer,
            other => return (other, None),
        };
        let (answer, rejection) = Rejection::read(answer).await;
        if let Some(tokens) = rejection.window() {
            self.shared.options.models.note_window(self.prepared.model_name(), tokens);
        }
        (answer.map_err(SendError::from), Some(rejection))
    }

    /// Sends the request, with a query about the provider's cache if that is enabled.
    async fn ask(&self) -> ProviderAnswer {
        let Some(asking) = self.asking().await else { return self.post(self.bodies.sent.clone()).await };
        let answer = self.post(asking).await;
        if !answer.as_ref().is_ok_and(Rejection::is_in) {
            return answer;
        }
        // Not every model supports the query. A refusal because of it says nothing about the decisions.
        let answer = self.post(self.bodies.sent.clone()).await;
        if !answer.as_ref().is_ok_and(Rejection::is_in) {
            self.shared.diagnosing.stop();
        }
        answer
    }

    /// The body that asks the provider for its view of its cache.
    async fn asking(&self) -> Option<Bytes> {
        let conversation = self.prepared.conversation().filter(|_| self.shared.diagnosing.is_on())?;
        let previous = conversation.state().billed().answer_id().map(str::to_owned);
        let text = std::str::from_utf8(self.prepared.body().unwrap_or(&self.bodies.text)).ok()?;
        let asking = asking_for_diagnosis(self.target.route.format?, text, previous.as_deref())?;
        Some(self.target.coding.packed(asking.into()).await)
    }

    async fn post(&self, body: Bytes) -> ProviderAnswer {
        let request = || self.shared.client.post(&self.target.route.url, self.target.headers.clone(), body.clone());
        match request().await {
            // Nothing was sent, so retrying cannot do anything twice.
            Err(SendError::Connect) => request().await,
            answer => answer,
        }
    }

    fn pass(mut self, answer: reqwest::Response) -> Response<Body> {
        if Rejection::is_in(&answer) {
            self.prepared.note_refused();
        }
        let (status, headers) = (answer.status(), headers::without_hop_headers(answer.headers()));
        let frames = frames_of(&headers);
        let copy = self.watched.as_ref().filter(|_| status.is_success() && frames != AnswerFrames::Amazon);
        let copy = copy.and_then(|watched| watched.copy(frames == AnswerFrames::Events));
        let reader = if self.passing.is_some() { frames.reader().with_text() } else { frames.reader() };
        // Among them is a reason phrase that is not the usual one of the status.
        let extensions = answer.extensions().clone();
        self.let_go();
        let (quota, first_byte) = (headers::quota_of(&headers), self.timing.began.elapsed());
        let at_end = Box::new(move |answered: &Answered, copy: Option<AnswerCopy>| {
            self.note(status.as_u16(), quota, (answered, copy), first_byte);
        });
        let mut response = Response::new(Passing::body(Box::pin(answer.bytes_stream()), reader, copy, at_end));
        (*response.status_mut(), *response.headers_mut()) = (status, headers);
        *response.extensions_mut() = extensions;
        response
    }

    /// Frees the bodies: many responses take long, and nothing is sent again.
    fn let_go(&mut self) {
        self.bodies = Bodies { came: Bytes::new(), text: Bytes::new(), sent: Bytes::new() };
        self.prepared.free_body();
    }

    /// Bills the request and records its outcome.
    fn note(
        &mut self,
        status: u16,
        quota: Vec<(String, String)>,
        (answered, copy): (&Answered, Option<AnswerCopy>),
        first_byte: Duration,
    ) {
        self.prepared.take_adopted();
        self.prepared.take_found();
        let passing = self.passing.take().filter(|_| status < 400).map(|passing| (passing, answered.said.clone()));
        let (following, admission) = (self.following.take(), self.admission.take());
        let Self { shared, prepared, .. } = &*self;
        let now_ms = shared.decider.now_ms();
        let mut record = self.record(status, quota, answered, first_byte, now_ms);
        record.note_fold_bill();
        let spent = Spent::of(&record);
        // A client that repeats a request at once is told by what was spent with this one.
        let of_conversation = prepared.conversation().map(|found| found.state().billed_mut().spend(spent));
        shared.spending.add(&record, of_conversation);
        // From here on what it took is counted, in place of what was expected.
        drop(admission);
        let (shared, watched, place) = (shared.clone(), self.watched.clone(), self.begun.place());
        let is_saved = record.bill.is_some() || prepared.outgoing().has_given_up();
        let conversation = prepared.conversation().cloned();
        record.is_held_out = conversation.as_ref().and_then(|found| shared.decider.held_out(found));
        shared.session.expect();
        // Writing waits for the disk, so it runs in the background.
        tokio::task::spawn_blocking(move || {
            if let Some((following, runtime)) = following.zip(tokio::runtime::Handle::try_current().ok()) {
                // If that task panicked, nothing is counted.
                let _ = runtime.block_on(following);
            }
            if let Some(conversation) = &conversation {
                let signals = conversation.signals();
                record.signals = Some(signals.counts());
                record.title = signals.title().filter(|_| shared.options.keeps_texts);
            }
            if let Some(conversation) = conversation.filter(|_| is_saved) {
                shared.decider.save(&conversation);
            }
            if let Some(watched) = watched {
                watched.end(&record, copy);
            }
            if let Some((passing, said)) = passing {
                passing.keep(said, now_ms);
            }
            shared.session.note(place, record);
        });
    }

    /// What is recorded of the request, with its bill.
    fn record(
        &self,
        status: u16,
        quota: Vec<(String, String)>,
        answered: &Answered,
        first_byte: Duration,
        now_ms: u64,
    ) -> RequestRecord {
        let Self { shared, target: ProviderTarget { route, .. }, prepared, timing, .. } = self;
        let whole = timing.began.elapsed();
        let time_ms = now_ms.saturating_sub(whole.as_millis() as u64);
        let usage = answered.usage.filter(|_| !route.is_count);
        let bill = usage.map(|usage| prepared.bill(time_ms, &usage, answered, now_ms));
        let [dollars, dollars_through] = bill.map_or([None; 2], |bill| prepared.dollars(&bill));
        let is_unreported = usage.is_none() && !route.is_count && status < 300;
        RequestRecord {
            format: route.format,
            cloud: route.cloud,
            is_count: route.is_count,
            status,
            usage,
            unreported: is_unreported.then(|| prepared.expected()),
            bill,
            dollars,
            dollars_through,
            diagnosis: answered.diagnosis.clone(),
            provider_edits: prepared.edit_notes(answered),
            own_us: timing.own.as_micros() as u64,
            first_byte_ms: first_byte.as_millis() as u64,
            whole_ms: whole.as_millis() as u64,
            would_send: usage.filter(|_| shared.options.observe).map(|usage| prepared.would_send(&usage)),
            quota,
            is_on_plan: headers::is_on_plan(&self.target.headers),
            ..prepared.whole_record(shared.session.id(), time_ms)
        }
    }
}

/// How a response is framed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AnswerFrames {
    /// One JSON value.
    Whole,
    /// Server-sent events.
    Events,
    /// Events as Amazon frames them.
    Amazon,
}

impl AnswerFrames {
    /// What reads such a response.
    fn reader(self) -> AnswerReader {
        match self {
            AnswerFrames::Amazon => AnswerReader::of_amazon(),
            AnswerFrames::Whole | AnswerFrames::Events => AnswerReader::new(self == AnswerFrames::Events),
        }
    }
}

fn frames_of(headers: &HeaderMap) -> AnswerFrames {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.trim_start().to_ascii_lowercase();
    match kind {
        kind if kind.starts_with("application/vnd.amazon.eventstream") => AnswerFrames::Amazon,
        kind if kind.starts_with("text/event-stream") => AnswerFrames::Events,
        _ => AnswerFrames::Whole,
    }
}

/// The response to the client if the provider cannot be reached.
pub(crate) fn unreachable_upstream(route: &Route, error: SendError) -> Response<Body> {
    let kind = match error {
        SendError::Certificate(wrong) => format!(
            "has a certificate {wrong}; if a proxy reads along, set NODE_EXTRA_CA_CERTS or SSL_CERT_FILE to the \
             file with its certificate before the gateway is started"
        ),
        SendError::Connect => "cannot be reached".to_owned(),
        SendError::Timeout => "did not answer in time".to_owned(),
        SendError::Broken => "broke off".to_owned(),
    };
    let host = route.url.split('/').nth(2).unwrap_or_default();
    // The part before the host may contain one too.
    let host = host.rsplit('@').next().unwrap_or_default();
    refusal(route.format, StatusCode::BAD_GATEWAY, &format!("the provider at `{host}` {kind}"))
}
