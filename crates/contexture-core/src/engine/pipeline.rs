//! Passes new items through `on_item_append` of every layer, by slot.

use super::recall::{RecallContext, Recalled};
use super::voice::{Voice, may_speak, meets_schema, voice};
use crate::id::LayerId;
use crate::item::{FunctionCallOutput, Item, Origin, Role};
use crate::layer::*;

/// The output that the model gets when a layer dropped the output of a tool.
const WITHHELD: &str = "The output of this call was withheld.";

/// Passes a user message through every layer before it is logged. The result may be empty.
pub(crate) async fn filter_message(
    recall_context: &RecallContext<'_>,
    recalled: &mut Recalled,
    message: Item,
) -> Vec<Item> {
    filter(recall_context, recalled, vec![message], None).await
}

/// Passes the output of a call through every layer before it is logged. The output is always the first item.
pub(crate) async fn filter_output(
    recall_context: &RecallContext<'_>,
    recalled: &mut Recalled,
    output: Item,
) -> Vec<Item> {
    let call_id = output.as_output().map(|output| output.call_id.clone()).unwrap_or_default();
    let outcome = output.as_output().map(|output| output.outcome).unwrap_or_default();
    let mut items = filter(recall_context, recalled, vec![output], Some(&call_id)).await;
    // Providers reject a conversation in which a call is not directly followed by its output.
    match items.iter().position(|item| item.as_output().is_some()) {
        Some(output) => items[..=output].rotate_right(1),
        None => items.insert(0, FunctionCallOutput::new(&call_id, WITHHELD, outcome).into()),
    }
    if let Item::FunctionCallOutput(output) = &mut items[0] {
        // An output that a layer changed keeps its outcome: a failed call stays failed.
        output.outcome = if output.outcome.is_done() { outcome } else { output.outcome };
    }
    items
}

/// Each layer gets what the previous one returned. `call_id` is the call that the items are the output of.
async fn filter(
    recall_context: &RecallContext<'_>,
    recalled: &mut Recalled,
    mut items: Vec<Item>,
    call_id: Option<&str>,
) -> Vec<Item> {
    let shared = recall_context.shared;
    let roster = shared.roster();
    let mut budgets = None;
    for layer in roster.by_slot() {
        if !layer.may_have(Hook::OnItemAppend) {
            continue;
        }
        let budgets = budgets.get_or_insert_with(|| recall_context.budgets(&roster));
        let budget = budgets.get(&layer.spec().id).copied().unwrap_or_default();
        let (before, log) = (items.clone(), recall_context.log.clone());
        let given = before.clone();
        let run = shared.run(layer, Hook::OnItemAppend, move |state, ctx| {
            let state = layer.state_or_default(state.as_ref());
            layer.on_item_append(OnItemAppendParams { items: given, log, ctx, state, budget })
        });
        let Some(answer) = run.await.done() else { continue };
        let answered = answer.items.len();
        match admissible(layer.spec(), &before, answer.items, call_id) {
            Some(admitted) => items = admitted,
            None => {
                let message = "returned items that do not match its own schema; the items were kept unchanged";
                shared.fault(Some(&layer.spec().id), Hook::OnItemAppend.as_str(), message.to_owned());
                continue;
            }
        }
        items.iter_mut().filter(|item| !before.contains(item)).for_each(|item| sign(item, &layer.spec().id));
        if items.len() < answered {
            let message = format!(
                "{} items dropped: a layer may only add its own messages, as its schemas declare them",
                answered - items.len()
            );
            shared.fault(Some(&layer.spec().id), Hook::OnItemAppend.as_str(), message);
        }
        if let Some(wish) = answer.rerender {
            recalled.wish(&shared.roster(), layer, wish);
        }
        if items.is_empty() {
            break;
        }
    }
    items
}

/// Records in an item that a layer added which layer it was. A message of the user that a layer changed is the user's.
fn sign(item: &mut Item, layer: &LayerId) {
    if let Item::Message(message) = item
        && matches!(message.role, Role::System | Role::Developer)
        && message.meta.origin.is_said()
    {
        message.meta.origin = Origin::Layer { id: layer.as_str().into() };
    }
}

/// The items of a layer that may be logged: no calls, no reasoning, only one output, for the call `call_id`, and as many
/// messages of the user as there were before, changed or not. `None`: these do not match a schema.
fn admissible(spec: &LayerSpec, before: &[Item], items: Vec<Item>, call_id: Option<&str>) -> Option<Vec<Item>> {
    // Which items were returned unchanged, each counted once.
    let mut left: Vec<&Item> = before.iter().collect();
    let mut is_unchanged =
        |item: &Item| left.iter().position(|other| *other == item).map(|at| left.remove(at)).is_some();
    let unchanged: Vec<bool> = items.iter().map(&mut is_unchanged).collect();
    let mut changeable = left.iter().filter(|item| voice(item) == Voice::User).count();
    let mut answered = false;
    let mut admitted = Vec::with_capacity(items.len());
    for (item, unchanged) in items.into_iter().zip(unchanged) {
        let is_changed_speech = !unchanged && changeable > 0 && is_message(&item) && voice(&item) == Voice::User;
        let is_output = match &item {
            Item::FunctionCallOutput(output) => call_id == Some(&*output.call_id) && !answered,
            _ => false,
        };
        let admit = match &item {
            Item::FunctionCallOutput(_) => is_output,
            _ => unchanged || is_changed_speech || may_speak(spec, &item),
        };
        let breaks_schema = !unchanged && meets_schema(spec, &item) == Some(false);
        match (admit, breaks_schema) {
            (true, true) if is_changed_speech || is_output => return None,
            (true, false) => {
                changeable -= usize::from(is_changed_speech);
                answered |= is_output;
                admitted.push(item);
            }
            _ => {}
        }
    }
    Some(admitted)
}

fn is_message(item: &Item) -> bool {
    matches!(item, Item::Message(_) | Item::Opaque(_))
}
