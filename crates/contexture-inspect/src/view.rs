//! The types that the API returns. `docs/reference/api.md` documents them.

mod bill;
mod files;
mod lists;
mod story;
mod window;

pub use bill::{BillLine, ExpensiveRequest, ToolLine};
pub use files::{FileEvent, FileEventKind, FileGrade, FileLine, ReadLines};
pub use lists::{
    About, ConversationEvent, ConversationLine, Cost, ListPage, RequestLine, RequestVerdict, TextHit, VerdictKind,
};
pub use story::{
    AnswerBlock, FoldStory, HiddenPart, NamedBlock, Overview, OverviewColumn, PartLine, RemovedKind, RemovedPart,
    RequestStory, SignalKind, SignalLine, WindowFile,
};
pub use window::{BlockLine, BlockState, BlockText, FileView, WindowForm, WindowPage};
