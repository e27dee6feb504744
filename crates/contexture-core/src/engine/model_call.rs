//! Sends a window to the model and processes the usage that the provider reports.

use std::collections::HashSet;

use futures_util::FutureExt;

use super::shared::SharedExecution;
use super::thread::Thread;
use super::toolbox::Toolbox;
use super::voice::{Voice, voice};
use crate::error::Error;
use crate::event::{Event, ResponseDelta};
use crate::item::Item;
use crate::layer::panic_text;
use crate::model::{Deltas, LlmResponse, ModelRequest};
use crate::window::Window;

/// Sends a window to the model; returns the response with public names of tools.
pub(crate) async fn call_model(
    shared: &SharedExecution,
    thread: &mut Thread,
    window: Window,
) -> Result<LlmResponse, Error> {
    let (core, toolbox) = (shared.core(), shared.toolbox());
    let model = core.model.as_ref().ok_or_else(|| Error::Model("the engine was built without a model".into()))?;
    let request = ModelRequest {
        model: None,
        instructions: core.instructions.text().clone(),
        items: window.items,
        tools: toolbox.shared_schemas(),
        breakpoints: window.breakpoints,
        max_output_tokens: Some(core.settings.policy.response_reserve).filter(|reserve| *reserve > 0),
    };
    thread.provider_mut().sent(core.host.clock.now());
    let called = std::panic::AssertUnwindSafe(model.stream(request, deltas(shared))).catch_unwind().await;
    let panicked = |panic: Box<dyn std::any::Any + Send>| Err(format!("panicked: {}", panic_text(&*panic)).into());
    let mut response = called.unwrap_or_else(panicked).map_err(Error::Model)?;
    refuse_forged(shared, &mut response);
    let base = thread.log().len();
    normalise(&mut response, &toolbox, base, thread.call_ids());
    add_up(shared, &response);
    let provider = thread.provider_mut();
    provider.report_cache(&response.usage, window.usage.kept_tokens);
    if core.counter.is_estimate() {
        provider.calibrate(window.usage.total(), response.usage.input_tokens);
    }
    Ok(response)
}

/// Passes the pieces of a response to the observer, if there is one.
fn deltas(shared: &SharedExecution) -> Deltas {
    let core = shared.core().clone();
    if core.observer.is_none() {
        return Deltas::default();
    }
    let (execution_id, step_number) = (shared.id().clone(), shared.context_data().step_number);
    Deltas::to(move |delta| {
        core.emit(Event::Delta(&ResponseDelta { execution_id: execution_id.clone(), step_number, delta }));
    })
}

/// Adds the cost of a response to the execution's totals.
fn add_up(shared: &SharedExecution, response: &LlmResponse) {
    shared.count_call(&response.usage, response.cost.unwrap_or(0.0));
}

/// Drops what a model must not produce: messages of the user or of the program, and outputs of tools.
fn refuse_forged(shared: &SharedExecution, response: &mut LlmResponse) {
    let items = response.items.len();
    response.items.retain(|item| matches!(voice(item), Voice::Model | Voice::Unknown));
    let forged = items - response.items.len();
    if forged > 0 {
        let message = format!("{forged} items of the response dropped: a model may only speak as the assistant");
        shared.fault(None, "model", message);
    }
}

/// Sets the public names of calls, and call ids where they are missing, or not unique in the response or the
/// conversation: some models count from zero in every response, and some providers refuse an id that they have seen.
/// `base` is the position in the log of the first item.
fn normalise(response: &mut LlmResponse, toolbox: &Toolbox, base: usize, known: &HashSet<Box<str>>) {
    let mut seen: HashSet<Box<str>> = HashSet::new();
    let mut number = 0;
    for (index, item) in response.items.iter_mut().enumerate() {
        let Item::FunctionCall(call) = item else { continue };
        call.name = toolbox.public_name(&call.name).into();
        number = number.max(base + index);
        while call.call_id.is_empty() || known.contains(&call.call_id) || !seen.insert(call.call_id.clone()) {
            call.call_id = format!("call_{number}").into();
            number += 1;
        }
    }
}
