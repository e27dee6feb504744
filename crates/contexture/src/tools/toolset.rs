//! All tools of a directory at once.

use std::sync::Arc;

use contexture_core::engine::EngineBuilder;

use super::edit_file::EditFile;
use super::execute_bash::ExecuteBash;
use super::list_files::ListFiles;
use super::read_file::ReadFile;
use super::search_files::SearchFiles;
use super::workspace::Workspace;
use super::write_file::WriteFile;

impl Workspace {
    /// Adds all tools and the files of the directory to an engine.
    pub fn add_tools<Ls>(&self, builder: EngineBuilder<Ls>) -> EngineBuilder<Ls> {
        let builder = builder.fs(Arc::new(self.files().clone()));
        let builder = builder.tool(ReadFile::new(self.clone())).tool(WriteFile::new(self.clone()));
        let builder = builder.tool(EditFile::new(self.clone())).tool(SearchFiles::new(self.clone()));
        builder.tool(ListFiles::new(self.clone())).tool(ExecuteBash::new(self.clone()))
    }
}
