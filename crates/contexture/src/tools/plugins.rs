//! Plugin folders: skills and MCP servers that come in one directory.
//!
//! A plugin is a folder in `.contexture/plugins`, `.agents/plugins` or `.claude/plugins` of a project. Its skills, in
//! `skills`, are shown by the layer [`procedural`](crate::layers::procedural); its servers are those of its `.mcp.json`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::{fs, io};

use contexture_core::error::BoxError;
use serde::Deserialize;

use super::mcp::{McpError, McpServer};

/// Where plugins are looked for.
const FOLDERS: [&str; 3] = [".contexture/plugins", ".agents/plugins", ".claude/plugins"];
/// What stands for the folder of the plugin in the command of a server.
const ROOTS: [&str; 2] = ["${PLUGIN_ROOT}", "${CLAUDE_PLUGIN_ROOT}"];

/// A server of a plugin, which is not started yet.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PluginServer {
    /// The folder of the plugin.
    pub folder: PathBuf,
    /// The prefix of the server's tools.
    pub name: String,
    /// The program.
    pub command: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Environment variables that it gets besides those that every program gets.
    pub variables: Vec<(String, String)>,
}

#[derive(Deserialize)]
struct McpFile {
    #[serde(rename = "mcpServers")]
    servers: BTreeMap<String, McpEntry>,
}

#[derive(Deserialize)]
struct McpEntry {
    command: String,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
}

impl PluginServer {
    /// Reads the servers of all plugins of a project, by folder and name. None is started: whether a project may start
    /// programs is for the program to decide.
    ///
    /// # Errors
    /// Names the first `.mcp.json` that cannot be read, or has a server without a command.
    pub fn of_project(project: impl AsRef<Path>) -> Result<Vec<Self>, BoxError> {
        let mut servers = Vec::new();
        for plugins in FOLDERS.map(|folder| project.as_ref().join(folder)) {
            let Ok(entries) = fs::read_dir(&plugins) else { continue };
            let mut folders: Vec<PathBuf> =
                entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<_>>()?;
            folders.sort();
            for folder in folders {
                servers.extend(servers_of(&folder)?);
            }
        }
        Ok(servers)
    }

    /// Starts the server in the folder of its plugin.
    ///
    /// # Errors
    /// As for [`McpServer::start`].
    pub async fn start(&self) -> Result<McpServer, McpError> {
        McpServer::start(&self.name, &self.command, &self.arguments, &self.variables, &self.folder).await
    }
}

fn servers_of(folder: &Path) -> Result<Vec<PluginServer>, BoxError> {
    let path = folder.join(".mcp.json");
    let text = match fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(format!("read {}: {error}", path.display()).into()),
    };
    let file: McpFile = serde_json::from_str(&text).map_err(|error| format!("read {}: {error}", path.display()))?;
    let root = folder.to_string_lossy();
    let rooted = |text: &str| ROOTS.iter().fold(text.to_owned(), |text, name| text.replace(name, &root));
    let server = |(name, entry): (String, McpEntry)| PluginServer {
        folder: folder.to_owned(),
        name,
        command: rooted(&entry.command),
        arguments: entry.args.iter().map(|argument| rooted(argument)).collect(),
        variables: entry.env.iter().map(|(name, value)| (name.clone(), rooted(value))).collect(),
    };
    Ok(file.servers.into_iter().map(server).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(project: &Path, path: &str, text: &str) {
        let path = project.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_servers_of_all_plugins_are_read() {
        let project = tempfile::tempdir().unwrap();
        let project = project.path();
        assert_eq!(PluginServer::of_project(project).unwrap(), []);
        write(project, ".claude/plugins/note.md", "no plugin");
        write(project, ".claude/plugins/plain/skills/a/SKILL.md", "---\ndescription: A.\n---\n");
        let entry = r#"{"command":"${CLAUDE_PLUGIN_ROOT}/run","args":["--in","${PLUGIN_ROOT}"],"env":{"A":"1"}}"#;
        write(project, ".agents/plugins/db/.mcp.json", &format!(r#"{{"mcpServers":{{"db":{entry}}}}}"#));
        let folder = project.join(".agents/plugins/db");
        let root = folder.to_string_lossy().into_owned();
        let db = PluginServer {
            name: "db".to_owned(),
            command: format!("{root}/run"),
            arguments: vec!["--in".to_owned(), root],
            variables: vec![("A".to_owned(), "1".to_owned())],
            folder,
        };
        assert_eq!(PluginServer::of_project(project).unwrap(), [db]);
        write(project, ".claude/plugins/web/.mcp.json", r#"{"mcpServers":{"web":{"url":"https://example.org"}}}"#);
        let error = PluginServer::of_project(project).unwrap_err().to_string();
        assert!(error.contains("web/.mcp.json") && error.contains("command"), "{error}");
    }
}
