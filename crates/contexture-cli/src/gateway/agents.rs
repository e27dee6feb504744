//! How agents are pointed at the gateway.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::{env, fs, io, process};

use contexture_server::Upstreams;
use serde::Deserialize;
use serde_json::Value;

use crate::failure::Failure;

/// The table as it comes with the program.
const TABLE: &str = include_str!("agents.toml");

/// An agent that is known.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Agent {
    /// Its name here.
    pub(super) name: String,
    /// The program.
    pub(super) command: String,
    /// Variables that it gets.
    #[serde(default)]
    pub(super) set: BTreeMap<String, String>,
    /// Arguments that it gets before the user's.
    #[serde(default)]
    pub(super) arguments: Vec<String>,
    /// Files that it is told of by an argument, with what is in them.
    #[serde(default)]
    pub(super) files: BTreeMap<String, String>,
    /// Variables in which the user may have set an address, with the upstream that it becomes.
    #[serde(default)]
    pub(super) upstream: BTreeMap<String, Upstream>,
    /// Files of its settings in which the user may have set an address, with the keys and the upstream that each becomes.
    #[serde(default)]
    pub(super) settings: BTreeMap<String, BTreeMap<String, Upstream>>,
    /// A variable without which nobody knows where its requests go.
    #[serde(default)]
    pub(super) needs: Option<String>,
    /// Variables with which it speaks to somebody else.
    #[serde(default)]
    pub(super) bypass: Vec<String>,
    /// Arguments with which it asks one question.
    #[serde(default, rename = "try")]
    pub(super) trial: Vec<String>,
    /// What to look at if nothing of it is seen.
    #[serde(default)]
    pub(super) hint: Option<String>,
}

/// One of the gateway's upstreams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Upstream {
    Anthropic,
    Openai,
    /// One address for everything.
    Any,
}

#[derive(Deserialize)]
struct Agents {
    agent: Vec<Agent>,
}

impl Agent {
    /// The agent of a name; any other command is one that is only told by `--set`.
    pub(super) fn named(name: &str) -> Self {
        let known = known().into_iter().find(|agent| agent.name == name);
        known.unwrap_or_else(|| Self {
            name: name.to_owned(),
            command: name.to_owned(),
            set: BTreeMap::new(),
            arguments: Vec::new(),
            files: BTreeMap::new(),
            upstream: BTreeMap::new(),
            settings: BTreeMap::new(),
            needs: None,
            bypass: Vec::new(),
            trial: Vec::new(),
            hint: None,
        })
    }

    /// Whether anything points it at the gateway.
    pub(super) fn is_pointed(&self) -> bool {
        !self.set.is_empty() || !self.arguments.is_empty()
    }

    /// Says how an agent that is not known can be pointed at the gateway.
    pub(super) fn check_pointed(&self) -> Result<(), Failure> {
        if self.is_pointed() {
            return Ok(());
        }
        let names: Vec<String> = known().into_iter().map(|agent| agent.name).collect();
        let failure = Failure::usage(format!("`{}` is no agent that is known", self.name));
        Err(failure.hint(format!(
            "say how it finds the gateway, as in `--set OPENAI_BASE_URL={{url}}/openai`; known are {}",
            names.join(", ")
        )))
    }

    /// The same with variables of the user's, written as `NAME=VALUE`.
    pub(super) fn with(mut self, set: &[String]) -> Result<Self, Failure> {
        for pair in set {
            let Some((name, value)) = pair.split_once('=').filter(|(name, _)| !name.is_empty()) else {
                let failure = Failure::usage(format!("`{pair}` is no variable"));
                return Err(failure.hint("write it as `--set OPENAI_BASE_URL={url}/openai`"));
            };
            self.set.insert(name.to_owned(), value.to_owned());
        }
        Ok(self)
    }

    /// Where requests go: to what the user has set in a variable or in the agent's settings, or as usual.
    pub(super) fn upstreams(&self, mut upstreams: Upstreams, variable: impl Fn(&str) -> Option<String>) -> Upstreams {
        for (file, keys) in &self.settings {
            let Some(settings) = settings_of(file, variable("HOME").as_deref()) else { continue };
            for (key, upstream) in keys {
                if let Some(url) = settings.pointer(&format!("/{}", key.replace('.', "/"))).and_then(Value::as_str) {
                    upstream.set(&mut upstreams, url);
                }
            }
        }
        for (name, upstream) in &self.upstream {
            if let Some(url) = variable(name) {
                upstream.set(&mut upstreams, &url);
            }
        }
        upstreams
    }

    /// Says what has to be set before anybody knows where requests go.
    pub(super) fn check_needs(&self, variable: impl Fn(&str) -> Option<String>) -> Result<(), Failure> {
        match self.needs.as_deref().filter(|name| variable(name).is_none_or(|url| url.is_empty())) {
            Some(name) => {
                let failure = Failure::usage(format!("where `{}` sends its requests is not known", self.name));
                let hint = self.hint.as_deref().map(|hint| format!("; {hint}")).unwrap_or_default();
                Err(failure.hint(format!("set `{name}` to the address of its provider, or pass --upstream{hint}")))
            }
            None => Ok(()),
        }
    }

    /// Its variables and arguments for a gateway at an address.
    pub(super) fn pointed_at(&self, url: &str) -> io::Result<Pointed> {
        let files = match self.files.is_empty() {
            true => None,
            false => Some(OwnFiles::write(&self.files, url)?),
        };
        let directory = files.as_ref().map(|files| files.0.display().to_string()).unwrap_or_default();
        let fill = |text: &String| text.replace("{url}", url).replace("{files}", &directory);
        Ok(Pointed {
            set: self.set.iter().map(|(name, value)| (name.clone(), fill(value))).collect(),
            arguments: self.arguments.iter().map(fill).collect(),
            _files: files,
        })
    }
}

impl Upstream {
    fn set(self, upstreams: &mut Upstreams, url: &str) {
        let url = url.trim().trim_end_matches('/');
        match self {
            _ if url.is_empty() => {}
            Self::Anthropic => upstreams.anthropic = url.to_owned(),
            Self::Openai => {
                (upstreams.openai, upstreams.chat, upstreams.responses) = (url.to_owned(), None, None);
            }
            Self::Any => *upstreams = Upstreams::one(url),
        }
    }
}

/// The settings in a file, if it is there and can be read. `~` is the user's directory.
fn settings_of(file: &str, home: Option<&str>) -> Option<Value> {
    let path = match file.strip_prefix("~/") {
        Some(rest) => PathBuf::from(home?).join(rest),
        None => PathBuf::from(file),
    };
    let text = fs::read_to_string(path).ok()?;
    match file.ends_with(".toml") {
        true => toml::from_str(&text).ok(),
        false => serde_json::from_str(&text).ok(),
    }
}

/// What an agent is told, for as long as it runs.
pub(super) struct Pointed {
    /// Variables.
    pub(super) set: Vec<(String, String)>,
    /// Arguments before the user's.
    pub(super) arguments: Vec<String>,
    _files: Option<OwnFiles>,
}

/// A directory of the gateway's own, which is deleted at the end.
struct OwnFiles(PathBuf);

impl OwnFiles {
    fn write(files: &BTreeMap<String, String>, url: &str) -> io::Result<Self> {
        let port = url.rsplit(':').next().unwrap_or_default();
        let own = Self(env::temp_dir().join(format!("contexture-{}-{port}", process::id())));
        let mut builder = fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        // One that is there already is somebody else's.
        builder.create(&own.0)?;
        for (name, text) in files {
            fs::write(own.0.join(name), text.replace("{url}", url))?;
        }
        Ok(own)
    }
}

impl Drop for OwnFiles {
    fn drop(&mut self) {
        // An error only leaves a directory for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// All agents of the table.
pub(super) fn known() -> Vec<Agent> {
    let agents: Agents = toml::from_str(TABLE).expect("the table that comes with the program is well formed");
    agents.agent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_of_the_table_is_pointed_at_the_gateway() {
        for agent in known() {
            let pointed = agent.pointed_at("http://127.0.0.1:4711").unwrap();
            let files = pointed._files.iter().flat_map(|files| fs::read_dir(&files.0).unwrap());
            let files = files.map(|file| fs::read_to_string(file.unwrap().path()).unwrap()).collect::<String>();
            let told = format!("{:?}{:?}{files}", pointed.set, pointed.arguments);
            let is_pointed = told.contains("127.0.0.1:4711");
            assert!(is_pointed && agent.is_pointed(), "{}", agent.name);
            assert!(!told.contains("{url}") && !told.contains("{files}"), "{}", agent.name);
        }
    }

    #[test]
    fn an_address_that_the_user_has_set_becomes_the_upstream() {
        let agent = Agent::named("claude");
        let upstreams = agent.upstreams(Upstreams::default(), |name| {
            (name == "ANTHROPIC_BASE_URL").then(|| "https://proxy.example/".to_owned())
        });
        assert_eq!(upstreams.anthropic, "https://proxy.example");
        let configured = Upstreams::one("https://other.example");
        assert_eq!(agent.upstreams(configured.clone(), |_| None), configured);
        let agent = Agent::named("copilot");
        let upstreams = agent.upstreams(Upstreams::default(), |_| Some("https://proxy.example/v1".to_owned()));
        assert_eq!(upstreams, Upstreams::one("https://proxy.example/v1"));
    }

    #[test]
    fn an_address_in_the_settings_of_an_agent_becomes_the_upstream_unless_a_variable_says_otherwise() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join(".codex")).unwrap();
        let path = home.path().join(".codex/config.toml");
        fs::write(&path, "model = \"m\"\nopenai_base_url = \"https://proxy.example/v1/\"\n").unwrap();
        let of_home = |name: &str| (name == "HOME").then(|| home.path().display().to_string());
        assert_eq!(Agent::named("codex").upstreams(Upstreams::default(), of_home).openai, "https://proxy.example/v1");
        let of_both = |name: &str| match name {
            "OPENAI_BASE_URL" => Some("https://other.example/v1".to_owned()),
            name => of_home(name),
        };
        assert_eq!(Agent::named("codex").upstreams(Upstreams::default(), of_both).openai, "https://other.example/v1");
        fs::write(&path, "what = is = this").unwrap();
        assert_eq!(Agent::named("codex").upstreams(Upstreams::default(), of_home), Upstreams::default());
        fs::create_dir_all(home.path().join(".config/opencode")).unwrap();
        let settings = r#"{"provider":{"anthropic":{"options":{"baseURL":"https://a.example/v1"}}}}"#;
        fs::write(home.path().join(".config/opencode/opencode.json"), settings).unwrap();
        assert_eq!(Agent::named("opencode").upstreams(Upstreams::default(), of_home).anthropic, "https://a.example/v1");
    }

    #[test]
    fn a_key_is_not_sent_to_somebody_else_because_nobody_knows_where_it_belongs() {
        for name in ["copilot", "kimi"] {
            let agent = Agent::named(name);
            let needed = agent.needs.clone().unwrap();
            let failure = format!("{:?}", agent.check_needs(|_| None).unwrap_err());
            assert!(failure.contains("is not known"), "{failure}");
            assert!(agent.check_needs(|name| (name == needed).then(|| "https://p.example".to_owned())).is_ok());
        }
    }
}
