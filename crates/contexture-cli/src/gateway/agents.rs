//! How agents are pointed at the gateway.

mod own_files;

use std::collections::BTreeMap;
use std::{env, fs, io, process};

use contexture_gateway::Upstreams;
use contexture_gateway::access::fresh_secret;
use serde::Deserialize;

use self::own_files::{OwnFiles, remove_left};
use super::configured::{SettingPlace, Surroundings, path_of};
use crate::failure::Failure;

/// The table as it comes with the program.
const TABLE: &str = include_str!("agents.toml");

/// What can be done about an agent that is not served.
const OTHERWISE: &str = "say where its requests go with --upstream, or run `contexture serve --upstream URL` and put the \
                         address that it prints into the agent's own settings";

/// An agent that is known.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Agent {
    /// Its name here.
    pub(super) name: String,
    /// The program.
    pub(super) command: String,
    /// The command that installs it.
    #[serde(default)]
    package: Option<String>,
    /// Variables that it gets.
    #[serde(default)]
    pub(super) set: BTreeMap<String, String>,
    /// Variables that it gets unless the user has set them.
    #[serde(default)]
    unless_set: BTreeMap<String, String>,
    /// Arguments that it gets before the user's.
    #[serde(default)]
    arguments: Vec<String>,
    /// Files that it is told of by an argument, with what is in them.
    #[serde(default)]
    files: BTreeMap<String, String>,
    /// A file in a directory of its own.
    #[serde(default)]
    placed: Option<PlacedFile>,
    /// What it is told besides if its settings beat variables.
    #[serde(default)]
    beaten: Beaten,
    /// Where the user may have set an address.
    #[serde(default)]
    address: Vec<Address>,
    /// What else decides where its requests go.
    #[serde(default)]
    choice: Vec<RouteChoice>,
    /// A variable without which nobody knows where its requests go.
    #[serde(default)]
    needs: Option<String>,
    /// How it asks one question.
    #[serde(default, rename = "try")]
    trial: Trial,
    /// How its own settings point it at a gateway for good.
    #[serde(default)]
    install: Option<AgentInstall>,
    /// What to look at if nothing of it is seen.
    #[serde(default)]
    pub(super) hint: Option<String>,
}

/// How an agent's own settings point it at a gateway for good.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentInstall {
    /// The file; the first one that is there counts, or the first.
    #[serde(default)]
    pub(super) files: Vec<String>,
    /// The settings, by their names.
    #[serde(default)]
    set: BTreeMap<String, String>,
    /// Settings that are written unless the first part of their name is there already, as for a status line.
    #[serde(default)]
    unless_there: BTreeMap<String, String>,
    /// Settings that are written unless they are there already.
    #[serde(default)]
    unless_set: BTreeMap<String, String>,
    /// What makes other settings count than those that are written, if one of these says yes.
    #[serde(default)]
    not_when: Vec<SettingPlace>,
    /// Why it has no such settings.
    #[serde(default)]
    cannot: Option<String>,
    /// What else a user should know.
    #[serde(default)]
    note: Option<String>,
}

impl AgentInstall {
    /// What makes other settings count than those that are written.
    pub(super) fn otherwise(&self, around: &Surroundings<'_>) -> Result<Option<String>, Failure> {
        for source in &self.not_when {
            if source.value(around)?.is_some_and(|value| is_yes(&value)) {
                return Ok(Some(source.name()));
            }
        }
        Ok(None)
    }

    /// The settings to write, if `is_there` says which are there already.
    pub(super) fn wanted(&self, is_there: impl Fn(&str) -> bool) -> Vec<(&String, &String)> {
        let first = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
        let kept = self.unless_set.iter().filter(|(name, _)| !is_there(name));
        let absent = self.unless_there.iter().filter(|(name, _)| !is_there(&first(name)));
        self.set.iter().chain(kept).chain(absent).collect()
    }
}

/// How an agent asks one question and ends.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Trial {
    #[serde(default)]
    arguments: Vec<String>,
    /// Variables that it gets besides, unless the user has set them.
    #[serde(default)]
    unless_set: BTreeMap<String, String>,
    /// Arguments that it gets besides, if it has no setting of its own: the first that fits.
    #[serde(default)]
    or: Vec<TrialArguments>,
    /// Whether the user has such a setting.
    #[serde(default)]
    unless: Vec<SettingPlace>,
}

/// Arguments of a trial that need a key.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrialArguments {
    /// The variable with the key.
    variable: String,
    arguments: Vec<String>,
}

/// A file of ours in a directory of the agent's.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlacedFile {
    directory: String,
    name: String,
    text: String,
}

/// What beats settings that beat variables.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Beaten {
    #[serde(default)]
    arguments: Vec<String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
}

/// An address that the user may have set.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Address {
    upstream: Upstream,
    /// The first one that is set counts.
    from: Vec<SettingPlace>,
    /// Where requests go if none is set, for an agent of a provider of its own. `{region|default}` is the first of
    /// `region` that is set, or the default.
    #[serde(default)]
    usual: Option<String>,
    #[serde(default)]
    region: Vec<SettingPlace>,
    /// It counts only if one of these says yes; without them always.
    #[serde(default)]
    when: Vec<SettingPlace>,
}

/// Something that decides where requests go.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RouteChoice {
    /// The values with which requests reach the gateway; `x*` is all that begin with x.
    #[serde(default)]
    served: Vec<String>,
    /// Why the others are refused.
    why: String,
    /// The first one that is set counts.
    from: Vec<SettingPlace>,
    /// If one of these is set, every value is served.
    #[serde(default)]
    unless: Vec<SettingPlace>,
}

/// One of the gateway's upstreams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Upstream {
    Anthropic,
    Openai,
    Google,
    /// One address for everything.
    Any,
}

/// Where the requests of an agent go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Destination {
    /// The addresses.
    pub(super) upstreams: Upstreams,
    /// Whether the agent has settings that beat variables.
    is_beaten: bool,
    /// What may keep its requests from the gateway, in sentences.
    pub(super) doubts: Vec<String>,
}

impl Destination {
    /// The same with other addresses.
    pub(super) fn map_upstreams(self, change: impl FnOnce(Upstreams) -> Upstreams) -> Self {
        Self { upstreams: change(self.upstreams), ..self }
    }
}

#[derive(Deserialize)]
struct Agents {
    agent: Vec<Agent>,
}

impl Agent {
    /// The failure if it cannot be started.
    pub(super) fn not_started(&self, error: &io::Error) -> Failure {
        let Self { command, package, .. } = self;
        if error.kind() != io::ErrorKind::NotFound {
            return Failure::work(format!("start `{command}`: {error}"));
        }
        let failure = Failure::work(format!("start `{command}`: it is not installed, or not on the PATH"));
        match package {
            Some(package) => failure.hint(format!("install it with `{package}`")),
            None => failure.hint("is it installed, and on the PATH?"),
        }
    }

    /// The agent of a name; any other command is one that is only told by `--set`.
    pub(super) fn named(name: &str) -> Self {
        let known = known().into_iter().find(|agent| agent.name == name);
        known.unwrap_or_else(|| Self { name: name.to_owned(), command: name.to_owned(), ..Self::default() })
    }

    /// Whether it is one of the table.
    pub(super) fn is_known(&self) -> bool {
        !self.trial.arguments.is_empty()
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

    /// Where requests go: to what the user has set for the agent, wherever that is, or as usual.
    ///
    /// # Errors
    /// It is configured in a way that cannot be served, or nobody knows where its requests go.
    pub(super) fn destination(&self, usual: Upstreams, around: &Surroundings<'_>) -> Result<Destination, Failure> {
        for choice in &self.choice {
            if let Some(sentence) = self.unserved(choice, around)? {
                return Err(Failure::usage(sentence).hint(OTHERWISE));
            }
        }
        let (mut upstreams, mut is_beaten, mut is_known) = (usual, false, false);
        for address in &self.address {
            if !address.counts(around)? {
                continue;
            }
            if let Some((source, url)) = first(&address.from, around)? {
                check_url(source, &url)?;
                address.upstream.set(&mut upstreams, &url);
                is_beaten |= source.beats;
                is_known = true;
            } else if let Some(url) = address.usual_url(around)? {
                address.upstream.set(&mut upstreams, &url);
            }
        }
        match &self.needs {
            Some(name) if !is_known => {
                let failure = Failure::usage(format!("where `{}` sends its requests is not known", self.name));
                let hint = self.hint.as_deref().map(|hint| format!("; {hint}")).unwrap_or_default();
                Err(failure.hint(format!("set `{name}` to the address of its provider, or pass --upstream{hint}")))
            }
            _ => Ok(Destination { upstreams, is_beaten, doubts: Vec::new() }),
        }
    }

    /// The same, if the user says where requests go. Nothing is refused then, but what may keep them from the gateway
    /// all the same is said.
    pub(super) fn destination_given(&self, upstreams: Upstreams, around: &Surroundings<'_>) -> Destination {
        let mut doubts = Vec::new();
        for choice in &self.choice {
            match self.unserved(choice, around) {
                Ok(sentence) => doubts.extend(sentence),
                Err(failure) => doubts.push(failure.sentence().to_owned()),
            }
        }
        let mut is_beaten = false;
        for address in &self.address {
            match first(&address.from, around) {
                Ok(found) => is_beaten |= found.is_some_and(|(source, _)| source.beats),
                Err(failure) => doubts.push(failure.sentence().to_owned()),
            }
        }
        doubts.sort_unstable();
        doubts.dedup();
        Destination { upstreams, is_beaten, doubts }
    }

    /// The same, if nothing is sent to a provider: nothing is needed.
    pub(super) fn destination_if_known(&self, around: &Surroundings<'_>) -> Result<Destination, Failure> {
        Self { needs: None, ..self.clone() }.destination(Upstreams::default(), around)
    }

    /// Why a choice of the user's keeps requests from the gateway, or from the right provider after it.
    fn unserved(&self, choice: &RouteChoice, around: &Surroundings<'_>) -> Result<Option<String>, Failure> {
        let Some((source, value)) = first(&choice.from, around)? else { return Ok(None) };
        let is_served = |served: &String| match served.strip_suffix('*') {
            Some(start) => value.starts_with(start),
            None => value == *served,
        };
        let is_any = choice.served.iter().any(is_served) || first(&choice.unless, around)?.is_some();
        Ok((!is_any).then(|| format!("`{}` has {} set to `{value}`, {}", self.name, source.name(), choice.why)))
    }

    /// How its own settings point it at a gateway for good.
    ///
    /// # Errors
    /// It is not known, or has no settings for that.
    pub(super) fn installed_by(&self) -> Result<&AgentInstall, Failure> {
        self.check_pointed().map_err(|failure| {
            let installable = known().into_iter().filter(|agent| agent.installed_by().is_ok());
            let names: Vec<String> = installable.map(|agent| agent.name).collect();
            failure.hint(format!("those that can be installed are {}", names.join(", ")))
        })?;
        let run = || format!("start it with `contexture run {}`", self.name);
        match &self.install {
            Some(AgentInstall { cannot: Some(why), .. }) => {
                Err(Failure::work(format!("`{}` cannot be installed: {why}", self.name)).hint(run()))
            }
            Some(install) => Ok(install),
            None => {
                let failure =
                    Failure::work(format!("`{}` cannot be installed: it reads no address from a file", self.name));
                Err(failure.hint(run()))
            }
        }
    }

    /// What a user should know of its installation.
    pub(super) fn install_note(&self) -> Option<&str> {
        self.install.as_ref()?.note.as_deref()
    }

    /// The arguments with which it asks one question.
    ///
    /// # Errors
    /// A file of its settings cannot be understood.
    pub(super) fn question(&self, around: &Surroundings<'_>) -> Result<Vec<String>, Failure> {
        let mut arguments = self.trial.arguments.clone();
        if first(&self.trial.unless, around)?.is_none() {
            let is_set = |name: &str| (around.variable)(name).is_some_and(|value| !value.is_empty());
            let found = self.trial.or.iter().find(|or| is_set(&or.variable));
            arguments.extend(found.into_iter().flat_map(|or| or.arguments.iter().cloned()));
        }
        Ok(arguments)
    }

    /// The variables that it gets besides for one question.
    pub(super) fn variables_for_question(&self, around: &Surroundings<'_>) -> Vec<(String, String)> {
        let own = self.trial.unless_set.iter().filter(|(name, _)| (around.variable)(name).is_none());
        own.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Its variables and arguments for a gateway at an address.
    pub(super) fn pointed_at(
        &self,
        url: &str,
        destination: &Destination,
        around: &Surroundings<'_>,
    ) -> io::Result<Pointed> {
        let beaten = if destination.is_beaten { self.beaten.clone() } else { Beaten::default() };
        let id = format!("{}-{}", process::id(), &fresh_secret()[..8]);
        let mut own = OwnFiles::default();
        let files: BTreeMap<&String, &String> = self.files.iter().chain(&beaten.files).collect();
        let directory = env::temp_dir().join(format!("contexture-{id}"));
        if !files.is_empty() {
            own.make_directory(&directory)?;
        }
        for (name, text) in files {
            own.write(&directory.join(name), &text.replace("{url}", url))?;
        }
        if let Some(placed) = &self.placed {
            let directory = path_of(&placed.directory, around).ok_or(io::ErrorKind::NotFound)?;
            fs::create_dir_all(&directory)?;
            remove_left(&directory, &placed.name);
            own.write(&directory.join(placed.name.replace("{id}", &id)), &placed.text.replace("{url}", url))?;
        }
        let fill = |text: &String| text.replace("{files}", &directory.display().to_string()).replace("{id}", &id);
        let is_unset = |(name, _): &(&String, &String)| (around.variable)(name).is_none();
        let set = self.set.iter().chain(self.unless_set.iter().filter(is_unset));
        Ok(Pointed {
            set: set.map(|(name, value)| (name.clone(), fill(value).replace("{url}", url))).collect(),
            // Every user of the machine can read arguments, so the address with its key is never in them.
            arguments: self.arguments.iter().chain(&beaten.arguments).map(fill).collect(),
            _files: own,
        })
    }
}

impl Address {
    /// Whether the agent looks at it.
    fn counts(&self, around: &Surroundings<'_>) -> Result<bool, Failure> {
        Ok(self.when.is_empty() || first(&self.when, around)?.is_some_and(|(_, value)| is_yes(&value)))
    }

    fn usual_url(&self, around: &Surroundings<'_>) -> Result<Option<String>, Failure> {
        let Some(url) = self.usual.clone() else { return Ok(None) };
        let Some((start, (default, end))) =
            url.split_once("{region|").and_then(|(start, rest)| Some((start, rest.split_once('}')?)))
        else {
            return Ok(Some(url));
        };
        let region = match first(&self.region, around)? {
            Some((source, region)) => {
                check_region(source, &region)?;
                region
            }
            None => default.to_owned(),
        };
        Ok(Some(format!("{start}{region}{end}")))
    }
}

fn is_yes(value: &str) -> bool {
    !matches!(value.trim().to_lowercase().as_str(), "" | "0" | "false" | "no" | "off")
}

/// The first source that has a value.
fn first<'a>(
    from: &'a [SettingPlace],
    around: &Surroundings<'_>,
) -> Result<Option<(&'a SettingPlace, String)>, Failure> {
    for source in from {
        if let Some(value) = source.value(around)? {
            return Ok(Some((source, value)));
        }
    }
    Ok(None)
}

fn check_url(source: &SettingPlace, url: &str) -> Result<(), Failure> {
    let host = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://")).unwrap_or_default();
    match host.is_empty() || url.contains(char::is_whitespace) || url.contains(['$', '{']) {
        true => {
            let failure =
                Failure::usage(format!("{} is `{url}`, which is no address that is understood", source.name()));
            Err(failure.hint("say where requests go with --upstream"))
        }
        false => Ok(()),
    }
}

fn check_region(source: &SettingPlace, region: &str) -> Result<(), Failure> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match region.bytes().all(is_plain) {
        true => Ok(()),
        false => Err(Failure::usage(format!("{} is `{region}`, which is no region", source.name()))
            .hint("say where requests go with --upstream")),
    }
}

impl Upstream {
    fn set(self, upstreams: &mut Upstreams, url: &str) {
        let url = url.trim().trim_end_matches('/');
        match self {
            Self::Anthropic => upstreams.anthropic = url.to_owned(),
            Self::Openai => {
                (upstreams.openai, upstreams.chat, upstreams.responses) = (url.to_owned(), None, None);
            }
            Self::Google => upstreams.google = Upstreams::one(url).google,
            Self::Any => *upstreams = Upstreams::one(url),
        }
    }
}

/// What an agent is told, for as long as it runs.
pub(super) struct Pointed {
    /// Variables.
    pub(super) set: Vec<(String, String)>,
    /// Arguments before the user's.
    pub(super) arguments: Vec<String>,
    _files: OwnFiles,
}

/// All agents of the table.
pub(super) fn known() -> Vec<Agent> {
    let agents: Agents =
        toml::from_str(TABLE).unwrap_or_else(|error| panic!("agents.toml, which comes with the program: {error}"));
    agents.agent
}

#[cfg(test)]
mod tests;
