//! The settings of a folder.

use std::sync::Arc;

use contexture_core::item::Item;

use super::meter::Meter;
use super::policy::Policy;
use super::tuning::Tuning;

/// Says what an item sets for everything after it, by names.
pub(super) type Sets = Arc<dyn Fn(&Item) -> Vec<Box<str>> + Send + Sync>;

/// The settings of a folder.
pub(super) struct FoldSettings {
    pub(super) policy: Policy,
    pub(super) tuning: Tuning,
    pub(super) meter: Meter,
    /// The tool that shows a text of the log by its hash.
    pub(super) output_tool: Option<Arc<str>>,
    /// What an item sets for everything after it, by names.
    pub(super) sets: Sets,
}

impl FoldSettings {
    pub(super) fn new(policy: Policy, meter: Meter) -> Self {
        Self { tuning: Tuning::new(policy.budget), policy, meter, output_tool: None, sets: Arc::new(|_| Vec::new()) }
    }

    pub(super) fn set_policy(&mut self, policy: Policy) {
        self.tuning = Tuning::new(policy.budget);
        self.policy = policy;
    }
}
