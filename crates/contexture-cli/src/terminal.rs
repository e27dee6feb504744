//! How wide the output may be.

use std::io;

/// Columns where nothing says otherwise, so that lines fit a common terminal.
const DEFAULT_COLUMNS: usize = 78;

/// The columns of the terminal that standard output is, at most the usual number; that number where it is none.
pub fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stdout());
    let columns = size.map_or(0, |size| usize::from(size.ws_col));
    if columns == 0 { DEFAULT_COLUMNS } else { columns.min(DEFAULT_COLUMNS) }
}
