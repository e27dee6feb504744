//! One turn as a state machine that never awaits.
//!
//! The engine calls [`Turn::next`], performs the action, and reports the result to the turn. Between two actions the
//! turn can be stored and read back: an interrupted turn continues from its last committed state, and a tool that may
//! have run is not run again.

mod stored;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub(crate) use stored::StoredTurn;

use crate::id::LayerId;
use crate::item::FunctionCall;
use crate::model::LlmResponse;

/// How often a response may be retried with guidance before it is accepted.
pub const MAX_GUIDED_RETRIES: u32 = 3;
/// How many rounds of re-renders that request further re-renders may run before one model call.
pub const MAX_RERENDER_DEPTH: u32 = 3;

/// One user message and all model calls and tool calls it leads to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Turn {
    phase: TurnPhase,
    /// The number of accepted responses.
    steps: u32,
    max_steps: u32,
    /// Responses of the current step that were rejected with guidance.
    retries: u32,
    /// The guidance that layers gave on them.
    guidance: Vec<String>,
    /// The last response, until `store` ran for every layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owed: Option<OwedStore>,
}

/// A response that some layers have not stored yet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct OwedStore {
    response: Arc<LlmResponse>,
    layers: Vec<LayerId>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TurnPhase {
    /// The model is to be called.
    Model,
    /// The calls of the last response, from `next` on, are to be run.
    Tools {
        calls: Arc<[FunctionCall]>,
        next: usize,
        /// The call `next` may have begun to run.
        started: bool,
    },
    /// Nothing is left to do.
    Done,
}

/// The next action of the engine.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Assemble a window and call the model; then [`Turn::responded`] or [`Turn::guided`].
    CallModel,
    /// Call `store` of these layers with this logged response, [`Turn::stored`] for each as soon as it ran, then commit.
    Store(Arc<LlmResponse>, Vec<LayerId>),
    /// Call `before_tool_call` of the layers. If they allow the call: [`Turn::start_tool`], commit, run it, log its output.
    /// If not, log their reason or guidance as its output. Then [`Turn::answered`].
    RunTool(FunctionCall),
    /// Tell the model that the outcome of this call is unknown, then [`Turn::answered`].
    AnswerInterrupted(FunctionCall),
    /// The turn is over.
    Finish,
    /// The turn has had all its steps.
    GiveUp,
}

impl Turn {
    /// A new turn whose user message is logged.
    pub fn new(max_steps: u32) -> Self {
        Self { phase: TurnPhase::Model, steps: 0, max_steps, retries: 0, guidance: Vec::new(), owed: None }
    }

    /// Returns the next action.
    pub fn next(&self) -> Next {
        if let Some(owed) = &self.owed {
            return Next::Store(owed.response.clone(), owed.layers.clone());
        }
        match &self.phase {
            TurnPhase::Model if self.steps >= self.max_steps => Next::GiveUp,
            TurnPhase::Model => Next::CallModel,
            TurnPhase::Tools { calls, next, started } => match calls.get(*next) {
                Some(call) if *started => Next::AnswerInterrupted(call.clone()),
                Some(call) => Next::RunTool(call.clone()),
                None => unreachable!("a turn leaves the tools phase with its last answer"),
            },
            TurnPhase::Done => Next::Finish,
        }
    }

    /// The response was accepted and will be logged; it has these calls.
    pub fn responded(&mut self, calls: Vec<FunctionCall>) {
        self.steps += 1;
        self.retries = 0;
        self.guidance.clear();
        self.phase = match calls.is_empty() {
            true => TurnPhase::Done,
            false => TurnPhase::Tools { calls: calls.into(), next: 0, started: false },
        };
    }

    /// `store` of these layers is owed for the response that was just logged. It stays so if the turn is interrupted.
    pub fn owe(&mut self, response: Arc<LlmResponse>, layers: Vec<LayerId>) {
        self.owed = (!layers.is_empty()).then_some(OwedStore { response, layers });
    }

    /// `store` of a layer ran, or failed.
    pub fn stored(&mut self, layer: &LayerId) {
        if let Some(owed) = &mut self.owed {
            owed.layers.retain(|other| other != layer);
        }
        self.owed.take_if(|owed| owed.layers.is_empty());
    }

    /// Requests a retry with this guidance. Returns `false` if there were too many retries; then accept the response.
    pub fn guided(&mut self, guidance: String) -> bool {
        if self.retries >= MAX_GUIDED_RETRIES {
            return false;
        }
        self.retries += 1;
        self.guidance.push(guidance);
        true
    }

    /// The next tool call is about to run. Must be committed before it does.
    pub fn start_tool(&mut self) {
        if let TurnPhase::Tools { started, .. } = &mut self.phase {
            *started = true;
        }
    }

    /// The next tool call has its output in the log.
    pub fn answered(&mut self) {
        let TurnPhase::Tools { calls, next, started } = &mut self.phase else { return };
        (*next, *started) = (*next + 1, false);
        if *next == calls.len() {
            self.phase = TurnPhase::Model;
        }
    }

    /// Ends the turn. Returns the calls that have no output yet; the caller must log one for each.
    pub fn finish(&mut self) -> Vec<FunctionCall> {
        self.owed = None;
        match std::mem::replace(&mut self.phase, TurnPhase::Done) {
            TurnPhase::Tools { calls, next, .. } => calls.get(next..).unwrap_or_default().to_vec(),
            TurnPhase::Model | TurnPhase::Done => Vec::new(),
        }
    }

    /// What layers said about the responses of this step that were sent back, oldest first. Every further call of the
    /// step shows all of it. Guidance on a tool call is not among it: that is the call's output.
    pub fn guidance(&self) -> &[String] {
        &self.guidance
    }

    /// The number of accepted responses.
    pub fn steps(&self) -> u32 {
        self.steps
    }

    /// Whether nothing is left to do.
    pub fn is_done(&self) -> bool {
        self.phase == TurnPhase::Done && self.owed.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> FunctionCall {
        FunctionCall::new(id, "read", "{}")
    }

    #[test]
    fn a_turn_answers_every_call_before_it_asks_again() {
        let mut turn = Turn::new(10);
        assert_eq!(turn.next(), Next::CallModel);
        turn.responded(vec![call("a"), call("b")]);
        assert_eq!(turn.next(), Next::RunTool(call("a")));
        turn.start_tool();
        turn.answered();
        assert_eq!(turn.next(), Next::RunTool(call("b")));
        turn.answered();
        assert_eq!(turn.next(), Next::CallModel);
        turn.responded(vec![]);
        assert_eq!(turn.next(), Next::Finish);
        assert_eq!(turn.steps(), 2);
    }

    #[test]
    fn a_tool_that_may_have_run_is_not_run_again() {
        let mut turn = Turn::new(10);
        turn.responded(vec![call("a"), call("b")]);
        turn.start_tool();
        let text = serde_json::to_string(&turn).unwrap();
        let mut resumed: Turn = serde_json::from_str(&text).unwrap();
        assert_eq!(resumed.next(), Next::AnswerInterrupted(call("a")));
        resumed.answered();
        assert_eq!(resumed.next(), Next::RunTool(call("b")));
    }

    #[test]
    fn guidance_is_given_three_times_at_most() {
        let mut turn = Turn::new(10);
        assert!((0..3).all(|_| turn.guided("shorter".into())));
        assert!(!turn.guided("shorter".into()));
        assert_eq!(turn.guidance().len(), 3);
        turn.responded(vec![]);
        assert!(turn.guidance().is_empty());
    }

    #[test]
    fn steps_are_limited() {
        let mut turn = Turn::new(1);
        turn.responded(vec![call("a")]);
        turn.answered();
        assert_eq!(turn.next(), Next::GiveUp);
        assert!(turn.finish().is_empty());
        assert_eq!(turn.next(), Next::Finish);
    }

    #[test]
    fn finishing_early_gives_back_what_has_no_answer() {
        let mut turn = Turn::new(10);
        turn.responded(vec![call("a"), call("b"), call("c")]);
        turn.answered();
        assert_eq!(turn.finish(), [call("b"), call("c")]);
    }
}
