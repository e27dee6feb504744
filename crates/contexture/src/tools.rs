//! Tools of a coding agent, beneath one directory: read, write, edit, search and list files, and run commands.
//!
//! ```
//! use contexture::tools::Workspace;
//! # use contexture::prelude::*;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let project = tempfile::tempdir()?;
//! let workspace = Workspace::open(project.path())?;
//! let engine = workspace.add_tools(contexture::in_memory(memory(()))).build()?;
//! assert_eq!(engine.tool_schemas().len(), 6);
//! # Ok(()) }
//! ```
//!
//! Files are read and written as [`LocalFs`](crate::fs::LocalFs) does it: never outside of the directory, by handle, and
//! written wholly or not at all. A file that changed since the agent read it is not overwritten. Commands are run only
//! if [`Approve`] allows them, which it does not by default; they run without a sandbox.

mod approve;
mod workspace;
mod arguments;
mod read_file;
mod write_file;
mod replace;
mod nearest;
mod edit_file;
mod list_files;
mod search_files;
mod open_files;
mod output;
mod execute_bash;
mod toolset;
mod mcp;
mod plugins;

pub use approve::{AllowAll, Approval, Approve, NoCommands, ToolAction};
pub use edit_file::EditFile;
pub use execute_bash::ExecuteBash;
pub use list_files::ListFiles;
#[cfg(feature = "client")]
pub use mcp::McpAddress;
pub use mcp::{McpError, McpField, McpFieldKind, McpHost, McpProgress, McpQuestion, McpReply, McpServer, McpTool};
pub use open_files::OpenFiles;
pub use plugins::PluginServer;
pub use read_file::ReadFile;
pub use search_files::SearchFiles;
pub use workspace::{FileChange, Workspace};
pub use write_file::WriteFile;
