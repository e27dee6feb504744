//! An observer that records all events.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::decision::Decision;
use crate::event::{Event, Fault, MemoryTraceSpan, Observer, ResponseDelta};
use crate::item::{FunctionCall, FunctionCallOutput};
use crate::layer::Hook;
use crate::usage::StepUsage;

/// Records every span, fault, decision, usage, piece of a response and output of a call. Clones share the recording.
#[derive(Clone, Default)]
pub struct Recorder {
    inner: Arc<Mutex<Recorded>>,
}

#[derive(Default)]
struct Recorded {
    spans: Vec<MemoryTraceSpan>,
    faults: Vec<Fault>,
    decisions: Vec<Decision>,
    usages: Vec<StepUsage>,
    deltas: Vec<ResponseDelta>,
    outputs: Vec<(FunctionCall, FunctionCallOutput)>,
}

impl Recorder {
    /// An empty recorder.
    pub fn new() -> Self {
        Self::default()
    }

    fn inner(&self) -> MutexGuard<'_, Recorded> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All spans, in the order in which they ended.
    pub fn spans(&self) -> Vec<MemoryTraceSpan> {
        self.inner().spans.clone()
    }

    /// The layers of the spans of one hook, in order.
    pub fn layers_of(&self, hook: Hook) -> Vec<String> {
        let inner = self.inner();
        inner.spans.iter().filter(|span| span.hook == hook).map(|span| span.layer_id.to_string()).collect()
    }

    /// All faults, in order.
    pub fn faults(&self) -> Vec<Fault> {
        self.inner().faults.clone()
    }

    /// All decisions, in order.
    pub fn decisions(&self) -> Vec<Decision> {
        self.inner().decisions.clone()
    }

    /// The usage of every window, in order.
    pub fn usages(&self) -> Vec<StepUsage> {
        self.inner().usages.clone()
    }

    /// All calls with their outputs, in order.
    pub fn outputs(&self) -> Vec<(FunctionCall, FunctionCallOutput)> {
        self.inner().outputs.clone()
    }

    /// All pieces of responses, in the order in which they arrived.
    pub fn deltas(&self) -> Vec<ResponseDelta> {
        self.inner().deltas.clone()
    }
}

impl Observer for Recorder {
    fn event(&self, event: Event<'_>) {
        let mut inner = self.inner();
        match event {
            Event::Span(span) => inner.spans.push(span.clone()),
            Event::Fault(fault) => inner.faults.push(fault.clone()),
            Event::Decision(decision) => inner.decisions.push(decision.clone()),
            Event::Usage(usage) => inner.usages.push(usage.clone()),
            Event::Delta(delta) => inner.deltas.push(delta.clone()),
            Event::Output(answered) => inner.outputs.push((answered.call.clone(), answered.output.clone())),
        }
    }
}
