//! The scope of a layer in one execution, as it is in keys.

use std::fmt;

use crate::id::{LayerId, ResourceId, ResourceKind};
use crate::layer::MemoryScope;
use crate::store::{escape_segment, layer_prefix};

/// A scope with whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    kind: String,
    id: String,
}

impl Scope {
    pub(crate) fn new(kind: &str, id: &str) -> Self {
        Self { kind: kind.to_owned(), id: id.to_owned() }
    }

    /// The scope of a resource. Users have no kind in their keys, as ever; other kinds are told apart by it.
    pub(crate) fn of_resource(kind: &ResourceKind, resource: &ResourceId) -> Self {
        let scope = MemoryScope::Resource.as_str();
        match *kind == ResourceKind::user() {
            true => Self::new(scope, resource.as_str()),
            false => Self::new(&format!("{scope}.{kind}"), resource.as_str()),
        }
    }

    /// The prefix of a layer's keys in this scope.
    pub(crate) fn prefix(&self, layer: &LayerId) -> String {
        layer_prefix(layer.as_str(), &self.kind, &self.id)
    }
}

/// `resource:ann`, `resource.project:site`, `thread:main`. Everything behind the first colon is the id.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", escape_segment(&self.kind).replace(':', "%3A"), self.id)
    }
}
