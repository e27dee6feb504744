//! Metadata of an item.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Extra;

/// Metadata of an item. It is not sent to a model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// When it was created, in milliseconds since the Unix epoch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
    /// The agent's working directory at that moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<Arc<str>>,
    /// Who wrote it.
    #[serde(default, skip_serializing_if = "Origin::is_said")]
    pub origin: Origin,
    /// Fields that are not interpreted.
    #[serde(flatten)]
    pub extra: Extra,
}

impl Meta {
    /// Whether nothing is known.
    pub fn is_empty(&self) -> bool {
        let Self { time_ms, directory, origin, extra } = self;
        time_ms.is_none() && directory.is_none() && origin.is_said() && extra.is_empty()
    }
}

/// Who wrote an item.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Origin {
    /// The speaker that its role names: the user, the system, a developer, the model, a tool.
    #[default]
    Said,
    /// A memory layer.
    Layer {
        /// The layer's id.
        id: Box<str>,
    },
    /// The program that runs the agent, on its own initiative: a file that it attached, a reminder.
    Harness {
        /// Its kind, as that program names it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<Box<str>>,
        /// The file that it is about.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<Box<str>>,
    },
}

impl Origin {
    /// Whether the speaker that its role names wrote it.
    pub fn is_said(&self) -> bool {
        *self == Origin::Said
    }
}
