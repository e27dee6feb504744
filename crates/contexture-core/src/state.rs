//! placeholder
use crate::id::*;
use crate::layer::LayerState;
use std::sync::Arc;
/// x
pub struct LayerStateStore;
impl LayerStateStore {
    /// x
    pub fn get<T: LayerState>(&self, _e: &ExecutionId, _l: &LayerId) -> Option<Arc<T>> {
        None
    }
}
