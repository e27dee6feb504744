//! A request that is sent to the provider, and its response.

use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{HeaderMap, Response, StatusCode, header};
use bytes::Bytes;
use contexture::wire::{Answered, asking_for_diagnosis};

use crate::accept::coding::Coding;
use crate::accept::headers;
use crate::accept::incoming::Ready;
use crate::accept::refusal::refusal;
use crate::account::bill::{Account, Sent};
use crate::account::record::RequestRecord;
use crate::send::passing::Passing;
use crate::send::upstream::Route;
use crate::shared::Shared;
use crate::watching::Watched;

/// A request after the decision, until its response has been forwarded.
pub(crate) struct Exchange {
    pub(crate) shared: Arc<Shared>,
    pub(crate) route: Route,
    /// The headers to forward.
    pub(crate) headers: HeaderMap,
    /// How its bodies are compressed.
    pub(crate) coding: Coding,
    pub(crate) ready: Ready,
    /// The body as received.
    pub(crate) came: Bytes,
    /// The body that is sent.
    pub(crate) sent: Bytes,
    /// The decompressed text of the received body.
    pub(crate) text: Bytes,
    pub(crate) began: Instant,
    /// How long the gateway itself worked on it.
    pub(crate) own: Duration,
    /// The inspector's entry for it.
    pub(crate) watched: Option<Watched>,
}

impl Exchange {
    pub(crate) async fn send(mut self) -> Response<Body> {
        let mut answer = self.ask().await;
        if self.ready.body.is_some() && is_refused(&answer) {
            answer = self.post(self.came.clone()).await;
            self.give_up(answer.as_ref().is_ok_and(|answer| answer.status().is_success()));
        }
        match answer {
            Ok(answer) => self.pass(answer),
            Err(error) => {
                let response = unreachable_upstream(&self.route, &error);
                self.note(response.status().as_u16(), Vec::new(), &Answered::default(), self.began.elapsed());
                response
            }
        }
    }

    /// Sends the request, with a query about the provider's cache if that is enabled.
    async fn ask(&self) -> Result<reqwest::Response, reqwest::Error> {
        let Some(asking) = self.asking().await else { return self.post(self.sent.clone()).await };
        let answer = self.post(asking).await;
        if !is_refused(&answer) {
            return answer;
        }
        // Not every model supports the query. A refusal because of it says nothing about the decisions.
        let answer = self.post(self.sent.clone()).await;
        if !is_refused(&answer) {
            self.shared.diagnosing.stop();
        }
        answer
    }

    /// The body that asks the provider for its view of its cache.
    async fn asking(&self) -> Option<Bytes> {
        let conversation = self.ready.conversation.as_ref().filter(|_| self.shared.diagnosing.is_on())?;
        let previous = conversation.state().answer_id.clone();
        let text = self.ready.body.as_ref().unwrap_or(&self.text);
        let asking = asking_for_diagnosis(self.route.format?, std::str::from_utf8(text).ok()?, previous.as_deref())?;
        Some(self.coding.packed(asking.into()).await)
    }

    async fn post(&self, body: Bytes) -> Result<reqwest::Response, reqwest::Error> {
        let request =
            || self.shared.client.post(&self.route.url).headers(self.headers.clone()).body(body.clone()).send();
        match request().await {
            // Nothing was sent, so retrying cannot do anything twice.
            Err(error) if error.is_connect() => request().await,
            answer => answer,
        }
    }

    /// Handles a refused request that was then sent unchanged. If the provider accepted that, the last decisions were
    /// at fault: they are reverted, and nothing more is folded. If that has happened before, all decisions are.
    fn give_up(&mut self, is_taken: bool) {
        self.ready.body = None;
        self.ready.has_given_up = true;
        self.ready.sent_tokens = self.ready.came_tokens;
        let Some(conversation) = self.ready.conversation.as_ref().filter(|_| is_taken) else {
            self.ready.passed = Some("the provider refused it, rewritten and as it came".to_owned());
            return;
        };
        {
            let mut state = conversation.state();
            match std::mem::replace(&mut state.is_refused, true) {
                false => state
                    .take_back(self.ready.messages, "nothing more is folded: the provider refused a rewritten request"),
                true => {
                    state.take_back(0, "passed through from here on: the provider refused rewritten requests twice")
                }
            }
        }
        self.ready.decided.clear();
        self.ready.passed =
            Some("the provider refused the rewritten request, so it was sent again as it came".to_owned());
    }

    fn pass(mut self, answer: reqwest::Response) -> Response<Body> {
        let (status, headers) = (answer.status(), headers::kept(answer.headers()));
        let is_stream = headers
            .get(header::CONTENT_TYPE)
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream"));
        // Among them is a reason phrase that is not the usual one of the status.
        let extensions = answer.extensions().clone();
        self.let_go();
        let (quota, first_byte) = (headers::quota_of(&headers), self.began.elapsed());
        let at_end = Box::new(move |answered: &Answered| self.note(status.as_u16(), quota, answered, first_byte));
        let mut response = Response::new(Passing::body(Box::pin(answer.bytes_stream()), is_stream, at_end));
        (*response.status_mut(), *response.headers_mut()) = (status, headers);
        *response.extensions_mut() = extensions;
        response
    }

    /// Adds earlier decisions that took effect with this request.
    fn take_adopted(&mut self) {
        let Ready { conversation: Some(conversation), messages, decided, .. } = &mut self.ready else { return };
        let adopted = conversation.state().adopted.take_if(|adopted| adopted.messages == *messages);
        decided.splice(0..0, adopted.into_iter().flat_map(|adopted| adopted.notes));
    }

    /// Frees the bodies: many responses take long, and nothing is sent again.
    fn let_go(&mut self) {
        (self.came, self.sent, self.text) = (Bytes::new(), Bytes::new(), Bytes::new());
        self.ready.body = self.ready.body.take().map(|_| Bytes::new());
    }

    /// Bills the request and records its outcome.
    fn note(&mut self, status: u16, quota: Vec<(String, String)>, answered: &Answered, first_byte: Duration) {
        self.take_adopted();
        let Self { shared, ready, .. } = &*self;
        let now_ms = shared.decider.now_ms();
        let sent = Sent {
            sent_tokens: ready.sent_tokens,
            came_tokens: ready.came_tokens,
            is_changed: ready.body.is_some(),
            has_moved: ready.decided.iter().any(|note| note.what == "fold") || ready.has_given_up,
            time_ms: now_ms.saturating_sub(self.began.elapsed().as_millis() as u64),
        };
        let billed = answered.usage.filter(|_| !self.route.is_count);
        let bill = billed.map(|usage| match &ready.conversation {
            Some(conversation) => {
                let mut state = conversation.state();
                state.answer_id = answered.id.clone();
                state.account.note(&ready.known.model, &ready.prices, sent, &usage, now_ms)
            }
            // Without a conversation it was sent as it came, so pass-through would have cost the same.
            None => Account::default().note(&ready.known.model, &ready.prices, sent, &usage, now_ms),
        });
        let record = RequestRecord {
            session: shared.session.id().to_owned(),
            conversation: ready.conversation.as_ref().map(|conversation| conversation.id().to_string()),
            time_ms: sent.time_ms,
            format: self.route.format,
            model: ready.model_name.clone(),
            is_count: self.route.is_count,
            status,
            is_changed: ready.body.is_some(),
            passed: ready.passed.clone(),
            is_unsaved: ready.is_unsaved,
            decided: ready.decided.clone(),
            usage: billed,
            bill,
            dollars: bill.and_then(|bill| ready.known.model.dollars(bill.sent)),
            dollars_through: bill.and_then(|bill| ready.known.model.dollars(bill.came)),
            price_from: Some(ready.known.price.clone()),
            context: Some(ready.known.model.context),
            context_from: Some(ready.known.window.clone()),
            would_send: ready.would_send,
            diagnosis: answered.diagnosis.clone(),
            own_us: self.own.as_micros() as u64,
            first_byte_ms: first_byte.as_millis() as u64,
            whole_ms: self.began.elapsed().as_millis() as u64,
            quota,
        };
        if let Some(watcher) = &shared.options.watcher {
            watcher.seen(&record);
        }
        let (shared, conversation, watched) = (shared.clone(), ready.conversation.clone(), self.watched.clone());
        let has_given_up = ready.has_given_up;
        shared.session.expect();
        // Writing waits for the disk, so it runs in the background.
        tokio::task::spawn_blocking(move || {
            if let Some(conversation) = conversation.filter(|_| bill.is_some() || has_given_up) {
                shared.decider.save(&conversation);
            }
            if let Some(watched) = watched {
                watched.end(&shared, &record);
            }
            shared.session.note(record);
        });
    }
}

fn is_refused(answer: &Result<reqwest::Response, reqwest::Error>) -> bool {
    answer.as_ref().is_ok_and(|answer| matches!(answer.status().as_u16(), 400 | 413 | 422))
}

/// The response to the client if the provider cannot be reached.
pub(crate) fn unreachable_upstream(route: &Route, error: &reqwest::Error) -> Response<Body> {
    // The URL may contain a key in its query, so it is left out of errors.
    let kind = match () {
        () if error.is_connect() => "cannot be reached",
        () if error.is_timeout() => "did not answer in time",
        () => "broke off",
    };
    let host = route.url.split('/').nth(2).unwrap_or_default();
    // The part before the host may contain one too.
    let host = host.rsplit('@').next().unwrap_or_default();
    refusal(route.format, StatusCode::BAD_GATEWAY, &format!("the provider at `{host}` {kind}"))
}
