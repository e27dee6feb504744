//! What is running in this task, so that a layer that calls itself is noticed.

use std::future::Future;
use std::sync::Arc;

use crate::id::{ExecutionId, LayerId};

/// A hook or function of a layer that is running, and what it runs in.
pub(crate) struct Frame {
    execution: ExecutionId,
    layer: LayerId,
    /// The name of the hook, or `function`.
    doing: &'static str,
    above: Option<Arc<Frame>>,
}

tokio::task_local! {
    static FRAME: Arc<Frame>;
}

impl Frame {
    fn current() -> Option<Arc<Frame>> {
        FRAME.try_with(Arc::clone).ok()
    }

    /// Runs code of a layer as part of what runs in this task.
    pub(crate) fn run<F: Future>(
        execution: &ExecutionId,
        layer: &LayerId,
        doing: &'static str,
        running: F,
    ) -> impl Future<Output = F::Output> + use<F> {
        let (execution, layer) = (execution.clone(), layer.clone());
        FRAME.scope(Arc::new(Frame { execution, layer, doing, above: Frame::current() }), running)
    }

    /// How many hooks and functions of any execution are running around this point.
    pub(crate) fn depth() -> usize {
        std::iter::successors(Frame::current(), |frame| frame.above.clone()).count()
    }

    /// What this very layer is doing around this point already.
    pub(crate) fn running(execution: &ExecutionId, layer: &LayerId) -> Option<&'static str> {
        std::iter::successors(Frame::current(), |frame| frame.above.clone())
            .find(|frame| frame.execution == *execution && frame.layer == *layer)
            .map(|frame| frame.doing)
    }
}
