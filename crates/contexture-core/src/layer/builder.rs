//! Layers made from closures.

use std::marker::PhantomData;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::contract::{AbsentHook, MemoryLayer};
use super::hook::{Hook, HookResult, HookSet, for_each_hook};
use super::hooks::*;
use super::provides::{FnResult, LayerProvides, layer_fn};
use super::spec::LayerSpec;
use super::state::LayerState;

/// A hook as a closure.
type HookFn<P, R> = Arc<dyn Fn(P) -> BoxFuture<'static, HookResult<R>> + Send + Sync>;

/// Starts a layer made from closures.
///
/// ```
/// use contexture_core::layer::*;
/// use contexture_core::Slot;
///
/// let greeter = layer::<()>(LayerSpec::new("greeter", Slot::REMINDER, MemoryScope::Thread))
///     .recall(|params| async move { Ok(format!("The user says: {}", params.query).into()) })
///     .build();
/// assert_eq!(greeter.spec().id.as_str(), "greeter");
/// ```
pub fn layer<S: LayerState>(spec: LayerSpec) -> LayerBuilder<S> {
    LayerBuilder { spec, provides: LayerProvides::new(), hooks: Hooks::default() }
}

/// Collects the hooks of a layer made from closures.
#[must_use = "call `build` to get the layer"]
pub struct LayerBuilder<S: LayerState> {
    spec: LayerSpec,
    provides: LayerProvides<S>,
    hooks: Hooks<S>,
}

/// A layer made from closures by [`layer`].
pub struct ClosureLayer<S: LayerState> {
    spec: LayerSpec,
    provides: LayerProvides<S>,
    hooks: Hooks<S>,
}

impl<S: LayerState> LayerBuilder<S> {
    /// Sets data and functions for the program and the model, in place of those from before.
    pub fn provides(mut self, provides: LayerProvides<S>) -> Self {
        self.provides = provides;
        self
    }

    /// Adds a tool with a state of its own, which is the state of this layer: it is stored, scoped and shown like that of
    /// any other.
    ///
    /// The model calls it as `layer id/name`. A call that fails leaves the state as it was.
    ///
    /// ```
    /// use contexture_core::layer::*;
    /// use contexture_core::Slot;
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Task {
    ///     /// What is to be done, in one sentence.
    ///     task: String,
    /// }
    ///
    /// let tasks = layer::<Vec<String>>(LayerSpec::new("tasks", Slot::WORKING_MEMORY, MemoryScope::Thread))
    ///     .tool("add", "Notes what is to be done; returns how much there is.", |task: Task, tasks| {
    ///         tasks.push(task.task);
    ///         Ok(tasks.len())
    ///     })
    ///     .recall(|params| async move { Ok(params.state.join("\n").into()) })
    ///     .build();
    /// # let _ = tasks;
    /// ```
    pub fn tool<I, O, F>(mut self, name: impl Into<String>, says: impl Into<String>, call: F) -> Self
    where
        I: DeserializeOwned + JsonSchema + Send + 'static,
        O: Serialize + JsonSchema + Send + 'static,
        F: Fn(I, &mut S) -> HookResult<O> + Send + Sync + 'static,
    {
        let call = Arc::new(call);
        let function = layer_fn(says, move |input: I, state: Arc<S>, _| {
            let call = call.clone();
            async move {
                let mut state = Arc::unwrap_or_clone(state);
                Ok(FnResult::new(call(input, &mut state)?).with_state(state))
            }
        });
        self.provides = self.provides.function(name, function);
        self
    }

    /// Changes the spec: `builder.map_spec(|spec| spec.with_placement(Placement::Live))`.
    pub fn map_spec(mut self, change: impl FnOnce(LayerSpec) -> LayerSpec) -> Self {
        self.spec = change(self.spec);
        self
    }

    /// Returns the finished layer.
    pub fn build(self) -> ClosureLayer<S> {
        ClosureLayer { spec: self.spec, provides: self.provides, hooks: self.hooks }
    }
}

/// Defines, for each hook: its field, its setter on the builder, and its method in `MemoryLayer`.
macro_rules! closure_hooks {
    ($( $(#[$moment:meta])* $kind:ident: $hook:ident($params:ident) -> $result:ty, $timeout_s:literal s; )*) => {
        struct Hooks<S: LayerState> {
            $( $hook: Option<HookFn<$params<S>, $result>>, )*
            state: PhantomData<fn() -> S>,
        }

        impl<S: LayerState> Default for Hooks<S> {
            fn default() -> Self {
                Self { $( $hook: None, )* state: PhantomData }
            }
        }

        impl<S: LayerState> LayerBuilder<S> {
            $(
                #[doc = concat!("Adds the hook [`", stringify!($hook), "`](MemoryLayer::", stringify!($hook), ").")]
                pub fn $hook<F, Fut>(mut self, hook: F) -> Self
                where
                    F: Fn($params<S>) -> Fut + Send + Sync + 'static,
                    Fut: Future<Output = HookResult<$result>> + Send + 'static,
                {
                    self.hooks.$hook = Some(Arc::new(move |params| Box::pin(hook(params))));
                    self
                }
            )*
        }

        // Hidden from the compiler's suggestions, which should be to write a layer, not to convert to this one.
        #[diagnostic::do_not_recommend]
        impl<S: LayerState> MemoryLayer for ClosureLayer<S> {
            type State = S;

            fn spec(&self) -> LayerSpec {
                self.spec.clone()
            }

            fn provides(&self) -> LayerProvides<S> {
                self.provides.clone()
            }

            fn hooks(&self) -> HookSet {
                let mut hooks = HookSet::NONE;
                $(
                    if self.hooks.$hook.is_some() {
                        hooks = hooks.with(Hook::$kind);
                    }
                )*
                hooks
            }

            $(
                async fn $hook(&self, params: $params<S>) -> HookResult<$result> {
                    match &self.hooks.$hook {
                        Some(hook) => hook(params).await,
                        None => Err(AbsentHook.into()),
                    }
                }
            )*
        }
    };
}

for_each_hook!(closure_hooks);
