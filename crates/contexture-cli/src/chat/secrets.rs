//! Keys that no output of a tool, no file and no message shows.

use std::sync::Arc;

use contexture::BoxFuture;
use contexture::host::{Base, DirEntry, FileError, FileStamp, FileText, FsAdapter, ReadLimits};

use crate::settings::Config;

use crate::environment::variables;

/// Words in the names of variables whose values are keys.
const TELLING: [&str; 8] = ["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "AUTH"];
/// Shorter values are too common to be searched for.
const MIN_BYTES: usize = 8;
/// Takes the place of a key.
const HIDDEN: &str = "[key]";

/// The keys that the program knows: a command may find one in a file, and what it prints is sent and stored. Cheap to
/// clone.
#[derive(Clone, Default)]
pub(super) struct Secrets(Arc<[String]>);

impl Secrets {
    /// The keys of the environment and of the configuration.
    pub(super) fn known(config: &Config, key_variables: &[String]) -> Self {
        let own = variables().into_iter().filter_map(|(name, value)| Some((name.into_string().ok()?, value)));
        let own = own.filter_map(|(name, value)| Some((name, value.into_string().ok()?)));
        let servers = config.mcp().into_iter().flat_map(|entry| entry.env);
        let servers =
            servers.filter_map(|text| text.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned())));
        let named = own.chain(servers).filter(|(name, _)| is_telling(name) || key_variables.contains(name));
        Self::of(named.map(|(_, value)| value).chain(config.chat_key()))
    }

    fn of(values: impl Iterator<Item = String>) -> Self {
        // Paths, such as that of an agent's socket, are no keys.
        let is_key = |value: &String| value.len() >= MIN_BYTES && !value.starts_with('/');
        let mut values: Vec<String> = values.map(|value| value.trim().to_owned()).filter(is_key).collect();
        // The longest first: one may be the beginning of another.
        values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        Self(values.into())
    }

    /// A text without the keys.
    pub(super) fn hidden_in(&self, text: String) -> String {
        self.0.iter().fold(text, |text, key| if text.contains(key) { text.replace(key, HIDDEN) } else { text })
    }
}

/// Files as layers read them, for `#path` and for folds: without the keys.
pub(super) struct FilesWithoutKeys<F> {
    pub(super) files: F,
    pub(super) secrets: Secrets,
}

impl<F: FsAdapter> FsAdapter for FilesWithoutKeys<F> {
    fn stat<'a>(&'a self, path: &'a str, limits: ReadLimits) -> BoxFuture<'a, Result<FileStamp, FileError>> {
        self.files.stat(path, limits)
    }

    fn read<'a>(&'a self, path: &'a str, limits: ReadLimits) -> BoxFuture<'a, Result<FileText, FileError>> {
        Box::pin(async move {
            let mut file = self.files.read(path, limits).await?;
            file.text = self.secrets.hidden_in(file.text);
            Ok(file)
        })
    }

    fn base_names(&self) -> Vec<String> {
        self.files.base_names()
    }

    fn base(&self) -> BoxFuture<'_, Base> {
        self.files.base()
    }

    fn list<'a>(
        &'a self,
        path: &'a str,
        max_entries: usize,
        limits: ReadLimits,
    ) -> BoxFuture<'a, Result<Vec<DirEntry>, FileError>> {
        self.files.list(path, max_entries, limits)
    }

    fn stat_many<'a>(
        &'a self,
        paths: &'a [&'a str],
        limits: ReadLimits,
    ) -> BoxFuture<'a, Vec<Result<FileStamp, FileError>>> {
        self.files.stat_many(paths, limits)
    }
}

fn is_telling(name: &str) -> bool {
    let name = name.to_uppercase();
    name.split(['_', '-', '.']).any(|part| TELLING.iter().any(|word| part.ends_with(word) || part.starts_with(word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_which_values_are_keys() {
        for name in ["OPENAI_API_KEY", "GITHUB_TOKEN", "npm_config__authToken", "PGPASSWORD", "APIKEY", "AUTH_HEADER"] {
            assert!(is_telling(name), "{name}");
        }
        for name in ["PATH", "MONKEYS", "HOME", "LANG", "PWD"] {
            assert!(!is_telling(name), "{name}");
        }
    }

    #[test]
    fn the_longest_key_is_hidden_first_and_short_values_and_paths_are_not() {
        let values = ["sk-abcdef", "sk-abcdef-more", "1", "/run/agent.sock"].map(str::to_owned);
        let secrets = Secrets::of(values.into_iter());
        let text = "a sk-abcdef-more b sk-abcdef c 1 /run/agent.sock".to_owned();
        assert_eq!(secrets.hidden_in(text), "a [key] b [key] c 1 /run/agent.sock");
    }
}
