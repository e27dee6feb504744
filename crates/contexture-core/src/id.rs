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
            /// Borrows the name as text.
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
    /// A kind of resource: `user`, `project`, or what a program calls its own.
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
    /// The kind of resource that a layer belongs to unless it names another.
    pub fn user() -> Self {
        Self::from("user")
    }

    /// What several people work on together.
    pub fn project() -> Self {
        Self::from("project")
    }
}

impl Default for ResourceKind {
    fn default() -> Self {
        Self::user()
    }
}

/// Where fresh names come from.
///
/// The engine asks once for every execution it starts. Core has no randomness of its own, so that a test
/// can say exactly which names a run gets.
pub trait IdSource: Send + Sync {
    /// A name that this source has never given before and that no other source gives.
    fn fresh(&self) -> String;
}

/// A map from ids. Every hook run looks into a few of these, and hashing ids against an attacker would cost more than
/// all the rest of it: an engine has as many layers as its author wrote.
pub(crate) type IdMap<K, V> = HashMap<K, V, foldhash::fast::FixedState>;
