//! A plan as the model reads it.

use std::time::Duration;

use contexture_core::LayerId;
use contexture_core::tokens::TokenCounter;

use super::tree::{Status, Step};
use super::{MAX_TEXT_BYTES, Phase, PlanState};
use contexture_text::block::{fit_parts, flat, start_of};
use contexture_text::date::minute;

/// The plan within a number of tokens. Finished steps are dropped first, then those farthest from the next one.
pub(super) fn block(counter: &dyn TokenCounter, layer: &LayerId, plan: &PlanState, tokens: u64) -> Option<String> {
    let ranks = ranks(plan);
    fit_parts(counter, layer, tokens, ranks.len(), |shown| text(plan, &ranks[..shown]))
}

/// The steps by importance: open ones, nearest to the next one first, then finished ones.
fn ranks(plan: &PlanState) -> Vec<usize> {
    let steps = plan.steps();
    let next = plan.next().and_then(|next| steps.iter().position(|step| step.id == next.id)).unwrap_or(0);
    let mut ranks: Vec<usize> = (0..steps.len()).collect();
    let is_over = |step: &Step| matches!(step.status, Status::Done | Status::Skipped);
    ranks.sort_by_key(|index| (is_over(&steps[*index]), index.abs_diff(next)));
    ranks
}

fn text(plan: &PlanState, shown: &[usize]) -> String {
    let steps = plan.steps();
    let mut text = format!("Goal: {}\n{}\n", short(plan.goal()), phase(plan));
    let mut indices = shown.to_vec();
    indices.sort_unstable();
    for index in indices {
        text.push_str(&line(plan, &steps[index]));
    }
    let left = steps.len() - shown.len();
    if left > 0 {
        let over = steps.iter().filter(|step| matches!(step.status, Status::Done | Status::Skipped)).count();
        text.push_str(&format!("({left} of {} steps are not shown; {over} are done or skipped)\n", steps.len()));
    }
    if let (Phase::Executing, Some(next)) = (plan.phase(), plan.next()) {
        text.push_str(&format!("Next: step {}, {}\n", next.id, short(&next.text)));
    }
    text.trim_end().to_owned()
}

fn phase(plan: &PlanState) -> String {
    match (plan.phase(), plan.approved()) {
        (Phase::Executing, Some(approval)) => {
            let at = minute(Duration::from_secs(approval.at_s));
            format!("Approved {at} UTC. This is decided: carry it out step by step.")
        }
        (Phase::Finished, _) => "Every step is done or skipped.".to_owned(),
        _ => "Not approved yet: only tools that read may run.".to_owned(),
    }
}

/// A text in one line, shortened if a stored plan has a longer one.
fn short(text: &str) -> String {
    flat(&start_of(text, MAX_TEXT_BYTES))
}

fn line(plan: &PlanState, step: &Step) -> String {
    let mark = match step.status {
        Status::Pending => ' ',
        Status::InProgress => '>',
        Status::Done => 'x',
        Status::Failed => '!',
        Status::Skipped => '-',
    };
    let indent = "  ".repeat(plan.steps.depth(step));
    let after = if step.after.is_empty() { String::new() } else { format!(" (after {})", step.after.join(", ")) };
    let note = if step.note.is_empty() { String::new() } else { format!(": {}", short(&step.note)) };
    format!("{indent}- [{mark}] {} {}{after}{note}\n", step.id, short(&step.text))
}
