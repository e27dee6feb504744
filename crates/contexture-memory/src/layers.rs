//! The layers that remember beyond a conversation: one file each, its manual page on top.

pub mod entity;
pub mod observations;
pub mod episodic;
pub mod semantic_recall;

pub use entity::Entity;
pub use episodic::Episodic;
pub use observations::Observations;
pub use semantic_recall::SemanticRecall;
