//! The hooks and functions that are running in this task, to detect a layer that calls itself.

use std::future::Future;
use std::sync::Arc;

use crate::id::{ExecutionId, LayerId};

/// A running hook or function of a layer, and the frame it runs in.
pub(crate) struct HookFrame {
    execution: ExecutionId,
    layer: LayerId,
    /// The name of the hook, or `function`.
    doing: &'static str,
    above: Option<Arc<HookFrame>>,
}

tokio::task_local! {
    static FRAME: Arc<HookFrame>;
}

impl HookFrame {
    fn current() -> Option<Arc<HookFrame>> {
        FRAME.try_with(Arc::clone).ok()
    }

    /// Runs code of a layer in a new frame.
    pub(crate) fn run<F: Future>(
        execution: &ExecutionId,
        layer: &LayerId,
        doing: &'static str,
        running: F,
    ) -> impl Future<Output = F::Output> + use<F> {
        let (execution, layer) = (execution.clone(), layer.clone());
        FRAME.scope(Arc::new(HookFrame { execution, layer, doing, above: HookFrame::current() }), running)
    }

    /// The number of hooks and functions, of any execution, that are running around this point.
    pub(crate) fn depth() -> usize {
        std::iter::successors(HookFrame::current(), |frame| frame.above.clone()).count()
    }

    /// The hook or function of this layer that is running around this point.
    pub(crate) fn running(execution: &ExecutionId, layer: &LayerId) -> Option<&'static str> {
        std::iter::successors(HookFrame::current(), |frame| frame.above.clone())
            .find(|frame| frame.execution == *execution && frame.layer == *layer)
            .map(|frame| frame.doing)
    }
}
