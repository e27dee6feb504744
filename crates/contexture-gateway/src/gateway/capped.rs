//! Refuses requests that would spend more than the cap.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode};

use crate::accept::collect::{MOST_BYTES, collected};
use crate::accept::incoming::IncomingRequest;
use crate::accept::refusal::{ErrorForm, refusal};
use crate::account::cap::{ReachedCap, Spent, day_of};
use crate::account::record::RequestRecord;
use crate::decide::prepared::PreparedRequest;
use crate::report::spending::{Admission, CappedConversation};
use crate::shared::SharedState;
use crate::write::RecordPlace;

/// By this header the clients of Anthropic and OpenAI know that a repetition is of no use.
const SHOULD_RETRY: &str = "x-should-retry";

/// The refusal of a request if the cap for a day is reached.
pub(crate) async fn by_day(
    shared: &Arc<SharedState>,
    form: ErrorForm,
    headers: &HeaderMap,
    body: Body,
) -> Result<Body, Response<Body>> {
    let Some(reached) = shared.spending.day_reached(shared.decider.now_ms()).await else { return Ok(body) };
    // A client that is still sending would see a broken connection in place of the sentence.
    let _ = collected(headers, body, MOST_BYTES).await;
    Err(refused(shared, form, &reached, RequestRecord::default()))
}

/// Lets a request be sent, or returns its refusal if a cap is reached. It waits if what is on its way may reach the cap.
/// What was decided about a request that is refused is taken back.
pub(crate) async fn admitted(
    shared: &Arc<SharedState>,
    form: ErrorForm,
    incoming: &IncomingRequest,
    prepared: &PreparedRequest,
) -> Result<Option<Admission>, Response<Body>> {
    if incoming.is_count {
        return Ok(None);
    }
    let spent = || prepared.conversation().map_or(Spent::default(), |found| found.state().billed().account().spent());
    let conversation = prepared.conversation().map(|found| CappedConversation { id: found.id(), spent: &spent });
    let day = day_of(shared.decider.now_ms());
    let reached = match shared.spending.admit(day, conversation, prepared.expected()).await {
        Ok(admission) => return Ok(admission),
        Err(reached) => reached,
    };
    prepared.note_unsent();
    let record = RequestRecord {
        conversation: prepared.conversation().map(|found| found.id().to_string()),
        model: prepared.model_name().to_owned(),
        format: Some(incoming.format),
        ..RequestRecord::default()
    };
    Err(refused(shared, form, &reached, record))
}

fn refused(shared: &Arc<SharedState>, form: ErrorForm, reached: &ReachedCap, record: RequestRecord) -> Response<Body> {
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
pub(crate) fn note(shared: &Arc<SharedState>, record: RequestRecord) {
    shared.session.expect();
    let shared = shared.clone();
    // Writing waits for the disk, so it runs in the background.
    tokio::task::spawn_blocking(move || shared.session.note(RecordPlace::new(None), record));
}

/// When a request began, for a record that is made now.
pub(crate) fn began_ms(shared: &SharedState, began: Instant) -> u64 {
    shared.decider.now_ms().saturating_sub(began.elapsed().as_millis() as u64)
}
