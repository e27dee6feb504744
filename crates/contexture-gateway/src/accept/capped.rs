//! Refuses requests that would spend more than the cap.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode};

use crate::accept::collect::{MOST_BYTES, collected};
use crate::accept::incoming::IncomingRequest;
use crate::accept::refusal::{ErrorForm, refusal};
use crate::account::cap::ReachedCap;
use crate::account::record::RequestRecord;
use crate::decide::prepared::PreparedRequest;
use crate::shared::Shared;
use crate::write::RecordPlace;

/// By this header the clients of Anthropic and OpenAI know that a repetition is of no use.
const SHOULD_RETRY: &str = "x-should-retry";

/// The refusal of a request if the cap for a day is reached.
pub(crate) async fn by_day(
    shared: &Arc<Shared>,
    form: ErrorForm,
    headers: &HeaderMap,
    body: Body,
) -> Result<Body, Response<Body>> {
    let Some(reached) = shared.spending.day_reached(shared.decider.now_ms()).await else { return Ok(body) };
    // A client that is still sending would see a broken connection in place of the sentence.
    let _ = collected(headers, body, MOST_BYTES).await;
    Err(refused(shared, form, &reached, RequestRecord::default()))
}

/// The refusal of a request if the cap for its conversation is reached. What was decided about it is taken back.
pub(crate) fn by_conversation(
    shared: &Arc<Shared>,
    form: ErrorForm,
    incoming: &IncomingRequest,
    prepared: &PreparedRequest,
) -> Option<Response<Body>> {
    let conversation = prepared.conversation().filter(|_| !incoming.is_count)?;
    let spent = conversation.state().billed().account().spent();
    let reached = shared.spending.conversation_reached(spent)?;
    prepared.note_unsent();
    let record = RequestRecord {
        conversation: Some(conversation.id().to_string()),
        model: prepared.model_name().to_owned(),
        format: Some(incoming.format),
        ..RequestRecord::default()
    };
    Some(refused(shared, form, &reached, record))
}

fn refused(shared: &Arc<Shared>, form: ErrorForm, reached: &ReachedCap, record: RequestRecord) -> Response<Body> {
    shared.spending.note_refused();
    let record = RequestRecord {
        session: shared.session.id().to_owned(),
        time_ms: shared.decider.now_ms(),
        status: StatusCode::FORBIDDEN.as_u16(),
        passed: Some(reached.reason().to_owned()),
        ..record
    };
    note(shared, record);
    let mut response = refusal(form, StatusCode::FORBIDDEN, &reached.to_string());
    response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    response
}

/// Records a request of which nothing was sent, or nothing is known but its status.
pub(crate) fn note(shared: &Arc<Shared>, record: RequestRecord) {
    shared.session.expect();
    let shared = shared.clone();
    // Writing waits for the disk, so it runs in the background.
    tokio::task::spawn_blocking(move || shared.session.note(RecordPlace::new(), record));
}

/// When a request began, for a record that is made now.
pub(crate) fn began_ms(shared: &Shared, began: Instant) -> u64 {
    shared.decider.now_ms().saturating_sub(began.elapsed().as_millis() as u64)
}
