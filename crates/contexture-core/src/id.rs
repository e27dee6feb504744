//! Names of threads, resources, executions and layers.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Returns the name as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl<T: AsRef<str>> From<T> for $name {
            fn from(text: T) -> Self {
                Self(Arc::from(text.as_ref()))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.0, f)
            }
        }
    };
}

id! {
    /// One conversation. Any text is allowed; keys made of it are escaped.
    ThreadId
}
id! {
    /// The user or project that a thread belongs to.
    ResourceId
}
id! {
    /// A kind of resource: `user`, `project`, or a kind that the program defines.
    ResourceKind
}
id! {
    /// One run over a thread, or of a child.
    ExecutionId
}
id! {
    /// The unique name of a layer within one memory.
    LayerId
}

impl ResourceKind {
    /// The default kind of resource.
    pub fn user() -> Self {
        Self::from("user")
    }

    /// A project, shared by several users.
    pub fn project() -> Self {
        Self::from("project")
    }
}

impl Default for ResourceKind {
    fn default() -> Self {
        Self::user()
    }
}

/// A source of unique names.
///
/// The engine calls it once for every execution it starts. Core has no randomness of its own, so that a test
/// can determine the names.
pub trait IdSource: Send + Sync {
    /// Returns a name that no source has returned before.
    fn fresh(&self) -> String;
}

/// A map from ids with a fast hasher. Every hook run does a few lookups, and ids of layers come from the program's
/// author, so resistance against collision attacks is not needed.
pub(crate) type IdMap<K, V> = HashMap<K, V, foldhash::fast::FixedState>;
