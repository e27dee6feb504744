//! The scope of a layer in one execution.

use std::fmt;

use crate::id::{LayerId, ResourceId, ResourceKind};
use crate::layer::MemoryScope;
use crate::store::{escape_segment, layer_prefix};

/// A scope with the id of its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnerScope {
    kind: String,
    id: String,
}

impl OwnerScope {
    pub(crate) fn new(kind: &str, id: &str) -> Self {
        Self { kind: kind.to_owned(), id: id.to_owned() }
    }

    /// The scope of a resource. The keys of users have no kind, for compatibility; those of other kinds do.
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

/// `resource:ann`, `resource.project:site`, `thread:main`. Everything after the first colon is the id.
impl fmt::Display for OwnerScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", escape_segment(&self.kind).replace(':', "%3A"), self.id)
    }
}
