//! Builds the next window: projected history, and a summary if one is needed.

use std::sync::Arc;

use super::recall::Recalled;
use super::shared::SharedExecution;
use super::summary::summarize;
use super::thread::Thread;
use crate::decision::{Action, Price};
use crate::error::Error;
use crate::event::Event;
use crate::history::History;
use crate::id::LayerId;
use crate::item::Item;
use crate::layer::*;
use crate::window::{Assembly, ProjectionPolicy, Summary, Window, WindowInput, guidance_tokens};

/// Builds the next window and records its decisions in the thread.
pub(crate) async fn assemble(
    shared: &Arc<SharedExecution>,
    thread: &mut Thread,
    recalled: &Recalled,
) -> Result<Window, Error> {
    let policy = thread.provider().in_counted_tokens(&shared.core().settings.policy);
    let history = project_history(shared, thread, recalled, &policy).await;
    let mut summary = None;
    loop {
        match try_assemble(shared, thread, recalled, &policy, &history, summary.take())? {
            Assembly::Ready(mut window) => {
                for (action, reason) in std::mem::take(&mut window.decisions) {
                    decide(shared, thread, None, action, reason, None);
                }
                thread.provider_mut().cache_renewed();
                shared.core().emit(Event::Usage(&window.usage));
                return Ok(*window);
            }
            Assembly::NeedsSummary(request) => {
                summary = Some(summarize(shared, thread.log(), &policy, &request).await);
            }
        }
    }
}

fn try_assemble(
    shared: &SharedExecution,
    thread: &mut Thread,
    recalled: &Recalled,
    policy: &ProjectionPolicy,
    history: &History,
    summary: Option<Summary>,
) -> Result<Assembly, Error> {
    let (core, roster, toolbox) = (shared.core(), shared.roster(), shared.toolbox());
    let guidance = thread.turn().map_or_else(Vec::new, |turn| turn.guidance().to_vec());
    let delta = |layer: &LayerId, pinned: &[Arc<Item>], current: &[Arc<Item>]| {
        roster.get(layer.as_str())?.render_delta(pinned, current).unwrap_or_else(|panic| {
            shared.fault(Some(layer), "render_delta", format!("panicked: {panic}"));
            None
        })
    };
    let input = WindowInput {
        policy,
        counter: &*core.counter,
        system_tokens: core.instructions.tokens(),
        tools_tokens: toolbox.tokens(),
        system_fingerprint: core.instructions.fingerprint() ^ toolbox.fingerprint(),
        blocks: recalled.blocks(),
        history,
        guidance: &guidance,
        delta: &delta,
        cache_lost: thread.provider().cache_lost(),
        summary,
    };
    thread.assemble(&input)
}

/// Calls `project_history` of every layer, by slot.
async fn project_history(
    shared: &Arc<SharedExecution>,
    thread: &mut Thread,
    recalled: &Recalled,
    policy: &ProjectionPolicy,
) -> History {
    let mut history = thread.history();
    let guidance = thread.turn().map_or_else(Vec::new, |turn| turn.guidance().to_vec());
    let budget = room_for_history(shared, recalled, policy, &guidance);
    let cache = thread.provider().cache_state();
    for layer in shared.roster().by_slot() {
        let id = &layer.spec().id;
        let decisions = thread.decisions_of(id);
        let given = history.clone();
        let run = shared.run(layer, Hook::ProjectHistory, move |state, ctx| {
            let state = layer.state_or_default(state.as_ref());
            layer.project_history(ProjectHistoryParams { history: given, decisions, ctx, state, budget, cache })
        });
        let Some(answer) = run.await.done() else { continue };
        if !answer.history.log().is_same(thread.log()) {
            let message = "returned a history of another log; the previous history was kept";
            shared.fault(Some(id), Hook::ProjectHistory.as_str(), message.to_owned());
            continue;
        }
        history = answer.history;
        for NewDecision { what, reason, price } in answer.decisions {
            decide(shared, thread, Some(id.clone()), Action::Layer(what), reason, price);
        }
    }
    history
}

/// The part of the window that blocks and guidance leave for history. A larger history would be cut after the layers.
fn room_for_history(
    shared: &SharedExecution,
    recalled: &Recalled,
    policy: &ProjectionPolicy,
    guidance: &[String],
) -> u64 {
    let blocks: u64 = recalled.blocks().iter().map(|block| block.tokens).sum();
    let system = shared.core().instructions.tokens();
    let taken = [policy.response_reserve, system, shared.toolbox().tokens()];
    let available = taken.into_iter().fold(policy.token_budget, u64::saturating_sub);
    let tail = guidance_tokens(&*shared.core().counter, guidance, available);
    available.saturating_sub(blocks).saturating_sub(tail)
}

/// Records a decision in the thread, and reports it to the observer.
fn decide(
    shared: &SharedExecution,
    thread: &mut Thread,
    layer: Option<LayerId>,
    action: Action,
    reason: String,
    price: Option<Price>,
) {
    let decision = thread.decide(layer, action, reason, price);
    shared.core().emit(Event::Decision(decision));
}
