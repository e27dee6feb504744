//! Runs one hook with its state and timeout, and background recalls.

use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Either, select};
use tokio::sync::OwnedMutexGuard;
use tracing::Instrument;

use super::eventual::{RecallInputs, Refresh};
use super::frame::HookFrame;
use super::render::measure;
use super::shared::{Background, SharedExecution};
use crate::error::BoxError;
use crate::event::{Event, MemoryTraceSpan, SpanBudget, SpanStatus};
use crate::layer::*;

/// Whether a hook runs exclusively.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// No other hook or function of the layer runs at the same time.
    Alone,
    /// It runs concurrently with other hooks of the layer, so that nothing waits for it.
    Beside,
}

/// A hook that has returned.
struct Begun<T> {
    answer: HookResult<T>,
    /// The state that it got.
    state: Option<StateValue>,
    /// Held until its state change is applied.
    alone: Option<OwnedMutexGuard<()>>,
}

/// The outcome of a hook run.
pub(crate) enum HookRun<T> {
    /// It returned, and its state change is applied.
    Done(T),
    /// The layer has no such hook.
    Absent,
    /// The layer is disabled or uninitialised.
    Skipped,
    /// It failed, panicked or exceeded its timeout. A fault reports it.
    Failed(BoxError),
}

impl<T> HookRun<T> {
    /// The result, if there is one.
    pub(crate) fn done(self) -> Option<T> {
        match self {
            HookRun::Done(answer) => Some(answer),
            HookRun::Absent | HookRun::Skipped | HookRun::Failed(_) => None,
        }
    }
}

impl SharedExecution {
    /// Runs a hook that needs a running layer.
    pub(crate) async fn run<'a, T, F>(self: &'a Arc<Self>, layer: &'a LayerRef, hook: Hook, call: F) -> HookRun<T>
    where
        T: ErasedResult + Send,
        F: FnOnce(Option<StateValue>, ExecutionContext) -> BoxFuture<'a, HookResult<T>> + Send,
    {
        if !layer.may_have(hook) {
            return HookRun::Absent;
        }
        if !self.is_running(layer) {
            self.skipped(layer, hook);
            return HookRun::Skipped;
        }
        self.run_always(layer, hook, Manner::Alone, |_| None, call).await
    }

    /// Runs a hook even if the layer is not initialised. `measure` computes the span's budget from the result.
    pub(crate) async fn run_always<'a, T, F>(
        self: &'a Arc<Self>,
        layer: &'a LayerRef,
        hook: Hook,
        manner: Manner,
        measure: impl FnOnce(&T) -> Option<SpanBudget>,
        call: F,
    ) -> HookRun<T>
    where
        T: ErasedResult + Send,
        F: FnOnce(Option<StateValue>, ExecutionContext) -> BoxFuture<'a, HookResult<T>> + Send,
    {
        let id = &layer.spec().id;
        let clock = &*self.core().host.clock;
        let started = clock.monotonic();
        let ctx = self.context();
        let trace = ctx.trace.clone();
        let span = |status| HookSpan::new(hook, clock.monotonic().saturating_sub(started), status);
        if let Some(doing) = HookFrame::running(self.id(), id) {
            let message = format!("the layer called itself from `{doing}`");
            return self.failed(layer, span(SpanStatus::Error), message.clone(), &trace, message.into());
        }
        let limit = layer.spec().timeouts.of(hook);
        match within(clock, limit, self.begin(layer, hook, manner, call, ctx)).await {
            FutureEnd::Done(Begun { answer: Ok(mut answer), state, alone }) => {
                self.keep_state(layer, hook, state, answer.take_state(), alone).await;
                let (budget, item_count) = (measure(&answer), answer.item_count());
                self.span(layer, HookSpan { budget, item_count, ..span(SpanStatus::Ok) }, &trace);
                HookRun::Done(answer)
            }
            FutureEnd::Done(Begun { answer: Err(error), .. }) if error.is::<AbsentHook>() => {
                layer.mark_absent(hook);
                HookRun::Absent
            }
            FutureEnd::Done(Begun { answer: Err(error), .. }) => {
                let message = crate::state::describe(&*error);
                self.failed(layer, span(SpanStatus::Error), message, &trace, error)
            }
            FutureEnd::Panicked(message) => {
                let message = format!("panicked: {message}");
                self.failed(layer, span(SpanStatus::Error), message.clone(), &trace, message.into())
            }
            FutureEnd::Late(limit) => {
                let message = format!("took longer than {} ms and was cancelled", limit.as_millis());
                self.failed(layer, span(SpanStatus::Timeout), message.clone(), &trace, message.into())
            }
        }
    }

    /// Waits until the layer is free, and calls the hook. Waiting counts against the hook's timeout.
    async fn begin<'a, T, F>(
        &'a self,
        layer: &'a LayerRef,
        hook: Hook,
        manner: Manner,
        call: F,
        ctx: ExecutionContext,
    ) -> Begun<T>
    where
        F: FnOnce(Option<StateValue>, ExecutionContext) -> BoxFuture<'a, HookResult<T>> + Send,
    {
        let id = &layer.spec().id;
        let alone = match manner {
            Manner::Alone => Some(self.lock_of(id).lock_owned().await),
            Manner::Beside => None,
        };
        let state = self.state(id);
        let given = state.clone();
        let span = tracing::debug_span!("memory_hook", layer_id = id.as_str(), hook = hook.as_str());
        let running = HookFrame::run(self.id(), id, hook.as_str(), async move { call(given, ctx).await });
        Begun { answer: running.instrument(span).await, state, alone }
    }

    /// Applies a state change, and schedules a new recall of an eventual layer.
    pub(crate) fn change_state(self: &Arc<Self>, layer: &LayerRef, change: StateChange<StateValue>) {
        if self.set_state(layer, change) {
            self.refresh_later(layer);
        }
    }

    /// Schedules a background recall of an eventual layer: once for any number of changes in the meantime, and not at all
    /// if neither its state nor the newest user message has changed since. A layer without a state is recalled whenever
    /// the conversation has become longer.
    ///
    /// The recall runs in this execution, since every execution has its own states.
    pub(crate) fn refresh_later(self: &Arc<Self>, layer: &LayerRef) {
        self.refresh(layer, false);
    }

    /// Like [`refresh`](Self::refresh), even if nothing has changed: a layer requested it.
    pub(crate) fn refresh_as_wished(self: &Arc<Self>, layer: &LayerRef) {
        self.refresh(layer, true);
    }

    fn refresh(self: &Arc<Self>, layer: &LayerRef, forced: bool) {
        if !self.is_eventual(layer) || !layer.may_have(Hook::Recall) {
            return;
        }
        // Without a runtime nothing can run in the background; the next change inside one will schedule it.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let Some(lease) = self.stay_open() else { return };
        let (key, shared, asked) = (self.cache_key(layer), self.clone(), layer.clone());
        let recall = Box::pin(async move { Some(shared.recall_in_background(&asked).await?.items) });
        let (shared, id, has_state) = (self.clone(), layer.spec().id.clone(), layer.has_state());
        let about = Box::new(move || {
            let Background { log, query } = shared.background();
            let thread = shared.context_data().thread_id.clone();
            RecallInputs { thread, query, items: (!has_state).then(|| log.len()), state: shared.state(&id) }
        });
        self.core().eventual.refresh(
            &runtime,
            key,
            Refresh { about, recall, clock: self.core().host.clock.clone(), forced, lease },
        );
    }

    async fn recall_in_background(self: &Arc<Self>, layer: &LayerRef) -> Option<RecallResult<StateValue>> {
        if !self.is_running(layer) {
            return None;
        }
        let Background { log, query } = self.background();
        // The result is cut to its share when it is used; here the budget is the largest that the layer can get.
        let budget = layer.spec().budget.max().unwrap_or(self.core().settings.policy.token_budget);
        let watched = self.core().observer.is_some();
        let measure = |answer: &RecallResult<StateValue>| {
            watched.then(|| measure(&*self.core().counter, layer.spec(), &answer.items, budget))
        };
        let run = self.run_always(layer, Hook::Recall, Manner::Beside, measure, move |state, ctx| {
            let state = layer.state_or_default(state.as_ref());
            layer.recall(RecallParams { log, query, ctx, state, budget })
        });
        run.await.done()
    }

    /// Applies the state change of a hook, unless it ran concurrently and another change came first.
    async fn keep_state(
        self: &Arc<Self>,
        layer: &LayerRef,
        hook: Hook,
        seen: Option<StateValue>,
        change: StateChange<StateValue>,
        alone: Option<OwnedMutexGuard<()>>,
    ) {
        if matches!(change, StateChange::Keep) {
            return;
        }
        let id = &layer.spec().id;
        let ran_beside = alone.is_none();
        let _alone = match alone {
            Some(alone) => alone,
            None => self.lock_of(id).lock_owned().await,
        };
        let unchanged = match (&seen, &self.state(id)) {
            (Some(seen), Some(now)) => seen.is_same(now),
            (seen, now) => seen.is_none() && now.is_none(),
        };
        if ran_beside && !unchanged {
            // That change has scheduled another recall, which sees the newer state.
            return;
        }
        match hook {
            // A recall that changes its own state would otherwise be recalled for ever.
            Hook::Recall => drop(self.set_state(layer, change)),
            _ => self.change_state(layer, change),
        }
    }

    fn failed<T>(
        &self,
        layer: &LayerRef,
        span: HookSpan,
        message: String,
        trace: &HookTrace,
        error: BoxError,
    ) -> HookRun<T> {
        let hook = span.hook;
        self.span(layer, HookSpan { error: Some(message.clone()), ..span }, trace);
        self.fault(Some(&layer.spec().id), hook.as_str(), message);
        HookRun::Failed(error)
    }

    /// Reports that a recall was served from the cache, with the age of the result.
    pub(crate) fn served(&self, layer: &LayerRef, budget: SpanBudget, item_count: usize, age: Option<Duration>) {
        let span = HookSpan::new(Hook::Recall, Duration::ZERO, SpanStatus::Cached);
        let span = HookSpan { budget: Some(budget), item_count: Some(item_count), age, ..span };
        self.span(layer, span, &HookTrace::default());
    }

    /// Reports that a hook was not run, because its layer is disabled or uninitialised.
    pub(crate) fn skipped(&self, layer: &LayerRef, hook: Hook) {
        self.span(layer, HookSpan::new(hook, Duration::ZERO, SpanStatus::Skipped), &HookTrace::default());
    }

    /// Reports a hook run to `tracing` and the observer.
    fn span(&self, layer: &LayerRef, span: HookSpan, trace: &HookTrace) {
        tracing::debug!(
            execution_id = self.id().as_str(),
            layer_id = layer.spec().id.as_str(),
            layer_name = layer.spec().name.as_deref(),
            hook = span.hook.as_str(),
            duration_us = span.took.as_micros() as u64,
            status = ?span.status,
            budget = ?span.budget,
            item_count = span.item_count,
            age = ?span.age,
            error = span.error,
            "hook ran"
        );
        if self.core().observer.is_none() {
            return;
        }
        let span = MemoryTraceSpan {
            execution_id: self.id().clone(),
            layer_id: layer.spec().id.clone(),
            layer_name: layer.spec().name.clone(),
            hook: span.hook,
            duration: span.took,
            status: span.status,
            budget: span.budget,
            item_count: span.item_count,
            age: span.age,
            error: span.error,
            notes: trace.take(),
        };
        self.core().emit(Event::Span(&span));
    }
}

/// The span of a hook run.
struct HookSpan {
    hook: Hook,
    took: Duration,
    status: SpanStatus,
    budget: Option<SpanBudget>,
    item_count: Option<usize>,
    age: Option<Duration>,
    error: Option<String>,
}

impl HookSpan {
    fn new(hook: Hook, took: Duration, status: SpanStatus) -> Self {
        Self { hook, took, status, budget: None, item_count: None, age: None, error: None }
    }
}

/// How a guarded future ended.
pub(crate) enum FutureEnd<T> {
    Done(T),
    Panicked(String),
    Late(Duration),
}

/// Runs a future until it completes, panics, or times out. One that is ready at once needs no timer.
///
/// One that blocked its thread past the limit, so that no timer could stop it, is late too.
pub(crate) async fn within<T>(
    clock: &dyn crate::clock::Clock,
    limit: Duration,
    future: impl Future<Output = T> + Send,
) -> FutureEnd<T> {
    let started = clock.monotonic();
    let mut future = pin!(AssertUnwindSafe(future).catch_unwind());
    let first = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await;
    let ended = match first {
        Poll::Ready(ended) => ended,
        Poll::Pending => match select(future, clock.limit(limit)).await {
            Either::Left((ended, _)) => ended,
            Either::Right(_) => return FutureEnd::Late(limit),
        },
    };
    match ended {
        Ok(_) if clock.monotonic().saturating_sub(started) > limit => FutureEnd::Late(limit),
        Ok(answer) => FutureEnd::Done(answer),
        Err(panic) => FutureEnd::Panicked(panic_text(&*panic)),
    }
}
