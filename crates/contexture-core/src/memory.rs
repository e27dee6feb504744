//! The layers of an agent, as one value that keeps their types.

use crate::layer::{LayerRef, MemoryLayer, erase};

/// Collects layers, in order of registration, into a memory.
///
/// The result keeps the types of its layers, so that asking a running execution for one that is not among
/// them does not compile.
///
/// ```
/// use contexture_core::layer::{layer, LayerSpec, MemoryScope};
/// use contexture_core::{memory, Slot};
///
/// let notes = layer::<String>(LayerSpec::new("notes", Slot::WORKING_MEMORY, MemoryScope::Thread)).build();
/// let memory = memory((notes,));
/// assert_eq!(memory.len(), 1);
/// ```
pub fn memory<Ls: Layers>(layers: Ls) -> MemoryConfig<Ls> {
    MemoryConfig { layers: layers.into_erased(), shape: std::marker::PhantomData }
}

/// Layers whose types are known: see [`memory`].
pub struct MemoryConfig<Ls> {
    pub(crate) layers: Vec<ErasedLayer>,
    shape: std::marker::PhantomData<fn() -> Ls>,
}

impl<Ls> MemoryConfig<Ls> {
    /// Adds a layer, without typed access to it.
    pub fn with_layer(mut self, layer: impl MemoryLayer) -> Self {
        self.layers.push(ErasedLayer::new(layer));
        self
    }

    /// How many layers it has.
    pub fn len(&self) -> usize {
        self.layers.len()
    }

    /// Whether it has no layers.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }
}

/// A layer whose type is erased.
pub struct ErasedLayer(pub(crate) LayerRef);

impl ErasedLayer {
    /// Erases the type of a layer.
    pub fn new(layer: impl MemoryLayer) -> Self {
        Self(erase(layer))
    }
}

/// A tuple of layers.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a tuple of memory layers",
    note = "write `memory((First::new(), Second::new()))`; a single layer needs a comma: `memory((Only::new(),))`",
    note = "a tuple has at most 16 layers; add more with `memory((…)).with_layer(More::new())`"
)]
pub trait Layers {
    /// Erases their types, in order.
    fn into_erased(self) -> Vec<ErasedLayer>;
}

/// A tuple that contains the layer `L`.
///
/// The compiler infers the index. If a tuple has two layers of one type, name it: `memory.read::<Notes, _, At<1>>(data)`
/// reads the second layer of the tuple.
#[diagnostic::on_unimplemented(
    message = "the layer `{L}` is not in this memory",
    label = "this execution's memory has no `{L}`",
    note = "add it where the memory is built: `memory((…, {L}::new()))`"
)]
pub trait Has<L, Index> {
    /// Its index among the layers, in order of registration; `None`: the first layer of the type.
    #[doc(hidden)]
    const PLACE: Option<usize>;
}

/// The index of a layer in its tuple.
pub struct At<const N: usize>;

/// The layers of an execution whose tuple is not known, as in a tool: each is looked up by its type when it is asked for.
pub struct AnyLayers;

#[diagnostic::do_not_recommend]
impl<L> Has<L, At<0>> for AnyLayers {
    const PLACE: Option<usize> = None;
}

/// An index that no layer has.
///
/// With only one implementation of [`Has`], the compiler would assume that every requested layer is that one, and report
/// mismatched types. With a second candidate it shows the message of [`Has`].
#[doc(hidden)]
pub enum Nothing {}

#[diagnostic::do_not_recommend]
impl<A> Has<Nothing, Nothing> for (A,) {
    const PLACE: Option<usize> = Some(usize::MAX);
}

impl Layers for () {
    fn into_erased(self) -> Vec<ErasedLayer> {
        Vec::new()
    }
}

/// Implements the traits for one tuple, then for the tuple with one more layer, and so on.
macro_rules! layer_tuples {
    ([$($name:ident . $index:tt),+]) => {
        impl<$($name: MemoryLayer),+> Layers for ($($name,)+) {
            fn into_erased(self) -> Vec<ErasedLayer> {
                vec![$(ErasedLayer::new(self.$index)),+]
            }
        }
        layer_tuples!(@places ($($name),+) $($name . $index),+);
    };
    ([$($name:ident . $index:tt),+] $next:ident . $n:tt $(, $rest:ident . $r:tt)*) => {
        layer_tuples!([$($name . $index),+]);
        layer_tuples!([$($name . $index,)+ $next . $n] $($rest . $r),*);
    };
    (@places $all:tt $($name:ident . $index:tt),+) => {
        $( layer_tuples!(@place $name . $index $all); )+
    };
    (@place $target:ident . $index:tt ($($name:ident),+)) => {
        #[diagnostic::do_not_recommend]
        impl<$($name),+> Has<$target, At<$index>> for ($($name,)+) {
            const PLACE: Option<usize> = Some($index);
        }
    };
}

layer_tuples!([A.0] B.1, C.2, D.3, E.4, F.5, G.6, H.7, I.8, J.9, K.10, L.11, M.12, N.13, O.14, P.15);
