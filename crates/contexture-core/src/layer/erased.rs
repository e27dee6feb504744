//! Layers as the engine holds them: the same hooks with the state's type erased.

use std::any::{Any, TypeId};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use futures_util::future::BoxFuture;
use serde_json::Value;

use super::context::ExecutionContext;
use super::contract::{Absent, MemoryLayer};
use super::hook::{Hook, HookResult, HookSet, for_each_hook};
use super::hooks::*;
use super::panic::without_panic;
use super::provides::{FnFailure, FnResult, LayerDataDecl, LayerDecl, LayerProvides};
use super::spec::LayerSpec;
// In the table of hooks `S` is the state, whose type is erased here.
use super::state::StateValue as S;
use super::state::{AnyState, StateCodec, StateValue};
use super::untyped::{HookParams, TypedResult};
use crate::item::Item;

/// A layer as the engine holds it.
pub(crate) type LayerRef = Arc<dyn DynLayer>;

/// A function of a layer as the engine holds it.
pub(crate) struct ErasedFunction {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) input: Value,
    pub(crate) output: Value,
    /// Whether the schemas were given as JSON and so may be wrong.
    pub(crate) given: bool,
    /// Whether it is not offered to the model.
    pub(crate) for_program: bool,
}

/// The functions of a layer.
pub(crate) fn functions_of<S>(provides: &LayerProvides<S>) -> Vec<ErasedFunction> {
    let functions = provides.entries().iter().filter_map(|(name, declaration)| match declaration {
        LayerDecl::Data(_) => None,
        LayerDecl::Function(function) => Some(ErasedFunction {
            name: name.clone(),
            description: function.description.clone(),
            input: function.input.clone(),
            output: function.output.clone(),
            given: function.given,
            for_program: function.for_program,
        }),
    });
    functions.collect()
}

/// [`MemoryLayer`] with the type of its state erased. A cleared state is passed as `None` and read as the default.
pub(crate) trait DynLayer: DynHooks + StateCodec {
    fn spec(&self) -> &LayerSpec;
    fn functions(&self) -> &[ErasedFunction];
    /// What introduces the one tool for all of them, if there is one.
    fn one_tool(&self) -> Option<&str>;
    /// Whether this is a layer of that type.
    fn type_id(&self) -> TypeId;
    /// Whether its state can differ from one moment to another.
    fn has_state(&self) -> bool;
    /// The names of its data.
    fn data_names(&self) -> Vec<&str>;
    /// Whether the layer may have that hook; `false` once it is known not to.
    fn may_have(&self, hook: Hook) -> bool;
    fn mark_absent(&self, hook: Hook);

    /// The state to give to a hook: this one, or the default.
    fn state_or_default(&self, state: Option<&StateValue>) -> Arc<AnyState>;
    /// `Err`: the message of a panic.
    fn render_delta(&self, pinned: &[Arc<Item>], current: &[Arc<Item>]) -> Result<Option<String>, String>;
    fn read(&self, name: &str, state: Option<&StateValue>) -> Option<Box<dyn Any + Send>>;
    fn read_json(&self, name: &str, state: Option<&StateValue>) -> Option<Value>;

    fn execute(
        &self,
        function: &str,
        arguments: Value,
        state: Option<StateValue>,
        ctx: ExecutionContext,
    ) -> Option<BoxFuture<'static, Result<FnResult<Value, StateValue>, FnFailure>>>;
}

impl dyn DynLayer {
    /// Whether this is a layer of the type `L`.
    pub(crate) fn is_made_by<L: MemoryLayer>(&self) -> bool {
        self.type_id() == TypeId::of::<L>()
    }

    /// Whether this is a layer of the same type, so that each can read the other's state.
    pub(crate) fn is_like(&self, other: &LayerRef) -> bool {
        self.type_id() == (**other).type_id()
    }
}

/// Whether the layer implements a hook itself, that is, whether its future is not the default's.
///
/// Takes the method only for its type and never calls it.
fn is_written<L: 'static, P, T: 'static, F: Future<Output = HookResult<T>> + 'static>(
    _: fn(&'static L, P) -> F,
) -> bool {
    TypeId::of::<F>() != TypeId::of::<Absent<T>>()
}

macro_rules! erased_hooks {
    ($( $(#[$moment:meta])* $kind:ident: $hook:ident($params:ident) -> $result:ty, $timeout_s:literal s; )*) => {
        /// The hooks of a layer with the type of its state erased.
        pub(crate) trait DynHooks: Send + Sync {
            $(
                fn $hook(&self, params: <$params<()> as HookParams>::Untyped)
                -> BoxFuture<'_, HookResult<$result>>;
            )*
        }

        impl<L: MemoryLayer> DynHooks for Erased<L> {
            $(
                fn $hook(&self, params: <$params<()> as HookParams>::Untyped)
                -> BoxFuture<'_, HookResult<$result>> {
                    let running = self.layer.$hook(<$params<L::State> as HookParams>::typed(params));
                    Box::pin(async move { Ok(running.await?.erased()) })
                }
            )*
        }

        /// The hooks that a layer implements itself.
        fn written_hooks<L: MemoryLayer>() -> HookSet {
            let written = [$( (Hook::$kind, is_written(L::$hook)) ),*];
            written.into_iter().filter(|(_, written)| *written).fold(HookSet::NONE, |set, (hook, _)| set.with(hook))
        }
    };
}

for_each_hook!(erased_hooks);

/// Erases the type of a layer, calling `spec` and `provides` once.
pub(crate) fn erase<L: MemoryLayer>(layer: L) -> LayerRef {
    let provides = layer.provides();
    let functions = functions_of(&provides);
    let absent = layer.hooks().missing_bits() | written_hooks::<L>().missing_bits();
    Arc::new(Erased { spec: layer.spec(), functions, provides, absent: AtomicU16::new(absent), layer })
}

struct Erased<L: MemoryLayer> {
    layer: L,
    spec: LayerSpec,
    provides: LayerProvides<L::State>,
    functions: Vec<ErasedFunction>,
    /// One bit for each hook that the layer is known not to have.
    absent: AtomicU16,
}

impl<L: MemoryLayer> Erased<L> {
    fn state(&self, state: Option<&StateValue>) -> Arc<L::State> {
        match state {
            Some(state) => state.downcast().expect("a layer's state is of the layer's own type"),
            None => Arc::default(),
        }
    }

    fn data(&self, name: &str) -> Option<&LayerDataDecl<L::State>> {
        self.provides.entries().iter().find_map(|(declared, declaration)| match declaration {
            LayerDecl::Data(data) if declared == name => Some(data),
            _ => None,
        })
    }
}

impl<L: MemoryLayer> StateCodec for Erased<L> {
    fn decode(&self, bytes: &[u8]) -> Result<StateValue, String> {
        let mut deserializer = serde_json::Deserializer::from_slice(bytes);
        let decoded = without_panic(|| serde_path_to_error::deserialize::<_, L::State>(&mut deserializer));
        let state = decoded.map_err(|panic| format!("panicked: {panic}"))?.map_err(|error| error.to_string())?;
        without_panic(|| self.layer.check_state(&state)).map_err(|panic| format!("panicked: {panic}"))??;
        Ok(StateValue::new(state))
    }

    fn merge(&self, base: Option<&StateValue>, ours: &StateValue, theirs: &StateValue) -> Option<StateValue> {
        // A merge that panics counts as `None`: the newer state wins, with a diagnostic.
        let base = base.map(|base| self.state(Some(base)));
        let (ours, theirs) = (self.state(Some(ours)), self.state(Some(theirs)));
        let united = without_panic(|| self.layer.merge_since(base.as_deref(), &ours, &theirs));
        united.ok().flatten().map(StateValue::new)
    }
}

impl<L: MemoryLayer> DynLayer for Erased<L> {
    fn spec(&self) -> &LayerSpec {
        &self.spec
    }

    fn functions(&self) -> &[ErasedFunction] {
        &self.functions
    }

    fn one_tool(&self) -> Option<&str> {
        self.provides.one_tool()
    }

    fn type_id(&self) -> TypeId {
        TypeId::of::<L>()
    }

    fn has_state(&self) -> bool {
        size_of::<L::State>() > 0
    }

    fn data_names(&self) -> Vec<&str> {
        let data = self.provides.entries().iter().filter(|(_, declaration)| matches!(declaration, LayerDecl::Data(_)));
        data.map(|(name, _)| name.as_str()).collect()
    }

    fn may_have(&self, hook: Hook) -> bool {
        self.absent.load(Ordering::Relaxed) & (1 << hook as u16) == 0
    }

    fn mark_absent(&self, hook: Hook) {
        self.absent.fetch_or(1 << hook as u16, Ordering::Relaxed);
    }

    fn state_or_default(&self, state: Option<&StateValue>) -> Arc<AnyState> {
        state.map_or_else(|| Arc::<L::State>::default() as Arc<AnyState>, |state| state.value().clone())
    }

    fn render_delta(&self, pinned: &[Arc<Item>], current: &[Arc<Item>]) -> Result<Option<String>, String> {
        without_panic(|| self.layer.render_delta(pinned, current))
    }

    fn read(&self, name: &str, state: Option<&StateValue>) -> Option<Box<dyn Any + Send>> {
        Some((self.data(name)?.read)(&self.state(state)))
    }

    fn read_json(&self, name: &str, state: Option<&StateValue>) -> Option<Value> {
        Some((self.data(name)?.read_json)(&self.state(state)))
    }

    fn execute(
        &self,
        function: &str,
        arguments: Value,
        state: Option<StateValue>,
        ctx: ExecutionContext,
    ) -> Option<BoxFuture<'static, Result<FnResult<Value, StateValue>, FnFailure>>> {
        let execute = self.provides.entries().iter().find_map(|(name, declaration)| match declaration {
            LayerDecl::Function(declared) if name == function => Some(&declared.execute),
            _ => None,
        })?;
        let running = execute(arguments, self.state(state.as_ref()), ctx);
        Some(Box::pin(async move {
            let answer = running.await?;
            Ok(FnResult { result: answer.result, state: answer.state.map(StateValue::new) })
        }))
    }
}
