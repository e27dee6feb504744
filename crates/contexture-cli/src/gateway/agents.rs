//! How agents are pointed at the gateway.

mod own_files;

use std::collections::BTreeMap;
use std::{env, fs, io, process};

use contexture_agents::{Address, Beaten, Install, RouteChoice, Run, SettingPlace, Upstream};
use contexture_gateway::access::fresh_secret;
use contexture_gateway::{References, Upstreams};

use self::own_files::{OwnFiles, remove_left};
use super::configured::{Surroundings, name_of, path_of, value};
use crate::failure::Failure;
use crate::settings::nearest::did_you_mean;

/// What can be done about an agent that is not served.
const OTHERWISE: &str = "say where its requests go with --upstream, or run `contexture serve --upstream URL` and put the \
                         address that it prints into the agent's own settings";

/// An agent: a known one, or any other command.
#[derive(Clone, Debug)]
pub(super) struct Agent {
    /// Its name here.
    pub(super) name: String,
    /// The program.
    pub(super) command: String,
    /// Variables that it gets.
    set: BTreeMap<String, String>,
    /// What is known of it.
    run: Run,
}

/// What makes other settings count than those that are written.
pub(super) fn otherwise(install: &Install, around: &Surroundings<'_>) -> Result<Option<String>, Failure> {
    for source in install.not_when() {
        if value(source, around)?.is_some_and(|value| is_yes(&value)) {
            return Ok(Some(name_of(source)));
        }
    }
    Ok(None)
}

/// The settings to write, if `is_there` says which are there already.
pub(super) fn wanted(install: &Install, is_there: impl Fn(&str) -> bool) -> Vec<(&String, &String)> {
    let first = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let kept = install.unless_set().iter().filter(|(name, _)| !is_there(name));
    let absent = install.unless_there().iter().filter(|(name, _)| !is_there(&first(name)));
    install.set().iter().chain(kept).chain(absent).collect()
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

impl Agent {
    /// The failure if it cannot be started.
    pub(super) fn not_started(&self, error: &io::Error) -> Failure {
        let command = &self.command;
        if error.kind() != io::ErrorKind::NotFound {
            return Failure::work(format!("start `{command}`: {error}"));
        }
        let failure = Failure::work(format!("start `{command}`: it is not installed, or not on the PATH"));
        match self.run.package() {
            Some(package) => failure.hint(format!("install it with `{package}`")),
            None => failure.hint("is it installed, and on the PATH?"),
        }
    }

    /// The agent of a name; any other command is one that is only told by `--set`.
    pub(super) fn named(name: &str) -> Self {
        let known = known().into_iter().find(|agent| agent.name == name);
        known.unwrap_or_else(|| Self {
            name: name.to_owned(),
            command: name.to_owned(),
            set: BTreeMap::new(),
            run: Run::default(),
        })
    }

    /// Its file, if it has one.
    pub(super) fn file(&self) -> Option<&'static contexture_agents::Agent> {
        let is_it = |agent: &&contexture_agents::Agent| agent.run().is_some_and(|run| run.name() == self.name);
        contexture_agents::agents().iter().find(is_it)
    }

    /// In which text of messages it has a person's references to files.
    pub(super) fn references(&self) -> References {
        let known = self.file().and_then(|agent| agent.typed());
        known.map_or(References::Unknown, |typed| References::Beside(typed.beside()))
    }

    /// Whether it is one of the table.
    pub(super) fn is_known(&self) -> bool {
        !self.run.trial().arguments().is_empty()
    }

    /// Whether anything points it at the gateway.
    pub(super) fn is_pointed(&self) -> bool {
        !self.set.is_empty() || !self.run.arguments().is_empty()
    }

    /// Says how an agent that is not known can be pointed at the gateway.
    pub(super) fn check_pointed(&self) -> Result<(), Failure> {
        if self.is_pointed() {
            return Ok(());
        }
        let names: Vec<String> = known().into_iter().map(|agent| agent.name).collect();
        let failure = Failure::usage(format!("`{}` is no agent that is known", self.name));
        if let Some(meant) = did_you_mean(&self.name, names.iter().map(String::as_str)) {
            return Err(failure.hint(meant));
        }
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
        let (destination, is_known) = self.found(usual, around)?;
        match self.run.needs() {
            Some(name) if !is_known => {
                let failure = Failure::usage(format!("where `{}` sends its requests is not known", self.name));
                let hint = self.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
                Err(failure.hint(format!("set `{name}` to the address of its provider, or pass --upstream{hint}")))
            }
            _ => Ok(destination),
        }
    }

    /// Where requests go, and whether the user has set that.
    fn found(&self, usual: Upstreams, around: &Surroundings<'_>) -> Result<(Destination, bool), Failure> {
        for choice in self.run.choice() {
            if let Some(sentence) = self.unserved(choice, around)? {
                return Err(Failure::usage(sentence).hint(OTHERWISE));
            }
        }
        let (mut upstreams, mut is_beaten, mut is_known) = (usual, false, false);
        for address in self.run.address() {
            if !counts(address, around)? {
                continue;
            }
            if let Some((source, url)) = first(address.from(), around)? {
                check_url(source, &url)?;
                set(&mut upstreams, *address.upstream(), &url);
                is_beaten |= source.beats();
                is_known = true;
            } else if let Some(url) = usual_url(address, around)? {
                set(&mut upstreams, *address.upstream(), &url);
            }
        }
        Ok((Destination { upstreams, is_beaten, doubts: Vec::new() }, is_known))
    }

    /// The same, if the user says where requests go. Nothing is refused then, but what may keep them from the gateway
    /// all the same is said.
    pub(super) fn destination_given(&self, upstreams: Upstreams, around: &Surroundings<'_>) -> Destination {
        let mut doubts = Vec::new();
        for choice in self.run.choice() {
            match self.unserved(choice, around) {
                Ok(sentence) => doubts.extend(sentence),
                Err(failure) => doubts.push(failure.sentence().to_owned()),
            }
        }
        let mut is_beaten = false;
        for address in self.run.address() {
            match first(address.from(), around) {
                Ok(found) => is_beaten |= found.is_some_and(|(source, _)| source.beats()),
                Err(failure) => doubts.push(failure.sentence().to_owned()),
            }
        }
        doubts.sort_unstable();
        doubts.dedup();
        Destination { upstreams, is_beaten, doubts }
    }

    /// The same, if nothing is sent to a provider: nothing is needed.
    pub(super) fn destination_if_known(&self, around: &Surroundings<'_>) -> Result<Destination, Failure> {
        self.found(Upstreams::default(), around).map(|(destination, _)| destination)
    }

    /// Why a choice of the user's keeps requests from the gateway, or from the right provider after it.
    fn unserved(&self, choice: &RouteChoice, around: &Surroundings<'_>) -> Result<Option<String>, Failure> {
        let Some((source, value)) = first(choice.from(), around)? else { return Ok(None) };
        let is_served = |served: &&str| match served.strip_suffix('*') {
            Some(start) => value.starts_with(start),
            None => value == *served,
        };
        let is_any = choice.served().iter().any(is_served) || first(choice.unless(), around)?.is_some();
        Ok((!is_any).then(|| format!("`{}` has {} set to `{value}`, {}", self.name, name_of(source), choice.why())))
    }

    /// How its own settings point it at a gateway for good.
    ///
    /// # Errors
    /// It is not known, or has no settings for that.
    pub(super) fn installed_by(&self) -> Result<&Install, Failure> {
        self.check_pointed().map_err(|failure| {
            if did_you_mean(&self.name, known().iter().map(|agent| agent.name.as_str())).is_some() {
                return failure;
            }
            let installable = known().into_iter().filter(|agent| agent.installed_by().is_ok());
            let names: Vec<String> = installable.map(|agent| agent.name).collect();
            failure.hint(format!("those that can be installed are {}", names.join(", ")))
        })?;
        let run = || format!("start it with `contexture run {}`", self.name);
        match self.run.install().map(|install| (install, install.cannot())) {
            Some((_, Some(why))) => {
                Err(Failure::work(format!("`{}` cannot be installed: {why}", self.name)).hint(run()))
            }
            Some((install, None)) => Ok(install),
            None => {
                let failure =
                    Failure::work(format!("`{}` cannot be installed: it reads no address from a file", self.name));
                Err(failure.hint(run()))
            }
        }
    }

    /// What a user should know of its installation.
    pub(super) fn install_note(&self) -> Option<&str> {
        self.run.install()?.note()
    }

    /// What to look at if nothing of it is seen.
    pub(super) fn hint(&self) -> Option<&str> {
        self.run.hint()
    }

    /// The arguments with which it asks one question.
    ///
    /// # Errors
    /// A file of its settings cannot be understood.
    pub(super) fn question(&self, around: &Surroundings<'_>) -> Result<Vec<String>, Failure> {
        let trial = self.run.trial();
        let mut arguments: Vec<&str> = trial.arguments().to_vec();
        if first(trial.unless(), around)?.is_none() {
            let is_set = |name: &str| (around.variable)(name).is_some_and(|value| !value.is_empty());
            let found = trial.or().iter().find(|or| is_set(or.variable()));
            arguments.extend(found.into_iter().flat_map(|or| or.arguments()));
        }
        Ok(arguments.into_iter().map(str::to_owned).collect())
    }

    /// The variables that it gets besides for one question.
    pub(super) fn variables_for_question(&self, around: &Surroundings<'_>) -> Vec<(String, String)> {
        let own = self.run.trial().unless_set().iter().filter(|(name, _)| (around.variable)(name).is_none());
        own.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// Its variables and arguments for a gateway at an address.
    pub(super) fn pointed_at(
        &self,
        url: &str,
        destination: &Destination,
        around: &Surroundings<'_>,
    ) -> io::Result<Pointed> {
        let beaten = if destination.is_beaten { self.run.beaten() } else { &Beaten::default() };
        let id = format!("{}-{}", process::id(), &fresh_secret()[..8]);
        let mut own = OwnFiles::default();
        let files: BTreeMap<&String, &String> = self.run.files().iter().chain(beaten.files()).collect();
        let directory = env::temp_dir().join(format!("contexture-{id}"));
        if !files.is_empty() {
            own.make_directory(&directory)?;
        }
        for (name, text) in files {
            own.write(&directory.join(name), &text.replace("{url}", url))?;
        }
        if let Some(placed) = self.run.placed() {
            let directory = path_of(placed.directory(), around).ok_or(io::ErrorKind::NotFound)?;
            fs::create_dir_all(&directory)?;
            remove_left(&directory, placed.name());
            own.write(&directory.join(placed.name().replace("{id}", &id)), &placed.text().replace("{url}", url))?;
        }
        let fill = |text: &str| text.replace("{files}", &directory.display().to_string()).replace("{id}", &id);
        let is_unset = |(name, _): &(&String, &String)| (around.variable)(name).is_none();
        let set = self.set.iter().chain(self.run.unless_set().iter().filter(is_unset));
        Ok(Pointed {
            set: set.map(|(name, value)| (name.clone(), fill(value).replace("{url}", url))).collect(),
            // Every user of the machine can read arguments, so the address with its key is never in them.
            arguments: self.run.arguments().iter().chain(beaten.arguments()).map(|text| fill(text)).collect(),
            _files: own,
        })
    }
}

/// Whether the agent looks at an address.
fn counts(address: &Address, around: &Surroundings<'_>) -> Result<bool, Failure> {
    Ok(address.when().is_empty() || first(address.when(), around)?.is_some_and(|(_, value)| is_yes(&value)))
}

fn usual_url(address: &Address, around: &Surroundings<'_>) -> Result<Option<String>, Failure> {
    let Some(url) = address.usual() else { return Ok(None) };
    let Some((start, (default, end))) =
        url.split_once("{region|").and_then(|(start, rest)| Some((start, rest.split_once('}')?)))
    else {
        return Ok(Some(url.to_owned()));
    };
    let region = match first(address.region(), around)? {
        Some((source, region)) => {
            check_region(source, &region)?;
            region
        }
        None => default.to_owned(),
    };
    Ok(Some(format!("{start}{region}{end}")))
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
        if let Some(value) = value(source, around)? {
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
                Failure::usage(format!("{} is `{url}`, which is no address that is understood", name_of(source)));
            Err(failure.hint("say where requests go with --upstream"))
        }
        false => Ok(()),
    }
}

fn check_region(source: &SettingPlace, region: &str) -> Result<(), Failure> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    match region.bytes().all(is_plain) {
        true => Ok(()),
        false => Err(Failure::usage(format!("{} is `{region}`, which is no region", name_of(source)))
            .hint("say where requests go with --upstream")),
    }
}

/// Sets the address of an upstream.
fn set(upstreams: &mut Upstreams, upstream: Upstream, url: &str) {
    let url = url.trim().trim_end_matches('/');
    match upstream {
        Upstream::Anthropic => upstreams.anthropic = url.to_owned(),
        Upstream::Openai => {
            (upstreams.openai, upstreams.chat, upstreams.responses) = (url.to_owned(), None, None);
        }
        Upstream::Google => upstreams.google = Upstreams::one(url).google,
        Upstream::Any => *upstreams = Upstreams::one(url),
    }
}

impl Agent {
    /// How many tokens of a model's window are free when it summarises its conversation; 0 if that is not known.
    pub(super) fn leaves(&self) -> u64 {
        self.file().and_then(|agent| agent.compaction().leaves()).copied().unwrap_or(0)
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

/// All agents that are known.
pub(super) fn known() -> Vec<Agent> {
    let of = |run: &Run| Agent {
        name: run.name().to_owned(),
        command: run.command().to_owned(),
        set: run.set().clone(),
        run: run.clone(),
    };
    contexture_agents::agents().iter().filter_map(|agent| agent.run().map(of)).collect()
}

#[cfg(test)]
mod tests;
