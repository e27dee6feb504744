//! The types that the API returns. `docs/reference/api.md` documents them.

mod bill;
mod files;
mod lists;
mod story;
mod window;

pub use bill::{BillLine, ExpensiveRequest, ToolLine};
pub use files::{FileEvent, FileEventKind, FileGrade, FileLine, ShownGrade};
pub use lists::{About, ConversationLine, ListPage, RequestLine, RequestVerdict, SearchHit, TurnStart};
pub use story::{
    AnswerBlock, FoldPrice, FoldStory, HiddenPart, Overview, OverviewColumn, RemovedKind, RequestStory, SignalKind,
    SignalLine, WindowPiece,
};
pub use window::{BlockLine, BlockState, BlockText, FileView, WindowForm, WindowPage};
