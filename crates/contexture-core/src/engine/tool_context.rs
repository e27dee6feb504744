//! What a running tool can do on behalf of its execution: start children, and read and call memory.

use std::sync::Arc;

use serde_json::Value;

use super::access::MemoryAccess;
use super::child::{ChildBuilder, Parent, join};
use super::execution::Execution;
use super::shared::SharedExecution;
use crate::error::Error;
use crate::layer::ExecutionContext;
use crate::memory::AnyLayers;
use crate::tool::ToolContext;

impl<'a> ToolContext<'a> {
    fn shared(&self) -> &'a Arc<SharedExecution> {
        self.execution.downcast_ref().expect("only the engine makes the context of a call")
    }

    /// The context that hooks of the execution get: depth, usage, files, shell, clock, model, conversation.
    pub fn execution(&self) -> ExecutionContext {
        self.shared().context()
    }

    /// The layers' data and functions, by type or by id.
    ///
    /// A change of state is durable with the commit of this call's output.
    pub fn memory(&self) -> MemoryAccess<AnyLayers> {
        MemoryAccess::new(self.shared().clone())
    }

    /// Returns a builder for a child of the execution, as [`Execution::child`] does. End it with [`join`](Self::join).
    ///
    /// It ends as aborted when this call does, and its usage is added to the execution's.
    pub fn child(&self) -> ChildBuilder<'a, AnyLayers, AnyLayers> {
        let shared = self.shared();
        ChildBuilder::new(if shared.is_closed() { Err(Error::Aborted) } else { Ok(Parent::InCall(shared)) })
    }

    /// Ends a child as a success and returns its result, as [`Execution::join`] does.
    ///
    /// # Errors
    /// As [`Execution::join`].
    pub async fn join<Cs>(&self, child: Execution<Cs>, result: impl Into<Value>) -> Result<Value, Error> {
        join(self.shared(), child, result.into()).await
    }
}
