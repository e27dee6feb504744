//! `contexture install` and `contexture uninstall`: an agent that always works through a gateway of its own, whoever
//! starts it.

mod edit;
pub(crate) mod record;
mod service;

use std::fs;
use std::io::{self, BufRead, IsTerminal, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use contexture_agents::Install;
use contexture_gateway::{AccessKey, Upstreams};
use serde_json::{Value, json};

use super::agents::{Agent, otherwise, wanted};
use super::configured::{SettingsSyntax, Surroundings, path_of};
use super::flags;
use crate::config::{ConfigFlags, OfGateway};
use crate::environment;
use crate::failure::Failure;
use crate::settings;
use contexture_terminal::harmless::written_out;
use edit::AgentSetting;
use record::{ChangedFile, ChangedSetting, InstallRecord, write_private, write_with_mode};
use service::{Service, shell_quoted};

/// The first port that is tried.
const FIRST_PORT: u16 = 7720;

/// How many ports are tried.
const PORTS: u16 = 200;

/// Largest file of settings that is changed.
const MOST_BYTES: u64 = 4 << 20;

/// How long to wait for a service that was started.
const PATIENCE: Duration = Duration::from_secs(3);

/// Make an agent always work through a gateway of its own, whoever starts it
///
/// For agents that an editor or an IDE starts. The gateway is a service of yours with a fixed port and a key of its own,
/// which the system starts at login. What would be written is shown first, and a copy of the agent's settings is kept.
/// `contexture uninstall` undoes it.
#[derive(Args)]
pub struct InstallCommand {
    /// Do not ask
    #[arg(long)]
    yes: bool,
    /// The port of the gateway [default: a free one from 7720 on]
    #[arg(long, value_name = "PORT", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// The agent
    #[arg(value_name = "AGENT")]
    agent: String,
    #[command(flatten)]
    config: ConfigFlags<OfGateway>,
}

/// Undo `contexture install`: the agent's settings are as before, and the service is gone
///
/// Settings that were changed since are left as they are, apart from those that `install` has written.
#[derive(Args)]
pub struct Uninstall {
    /// The agent
    #[arg(value_name = "AGENT")]
    agent: String,
}

/// Carries out `contexture install`.
///
/// # Errors
/// The agent's settings cannot be changed, the user does not want it, or something cannot be written.
pub fn install(command: &InstallCommand) -> Result<(), Failure> {
    let agent = Agent::named(&command.agent);
    let row = agent.installed_by()?;
    let service = Service::new(&agent.name, environment::variable)?;
    if let Some(record) = InstallRecord::of(&agent.name)? {
        let mut told = format!("`{}` is installed already, with its gateway at {}\n", agent.name, record.address);
        told.push_str(&started(&agent, &service, &record.address));
        return Ok(io::stdout().write_all(told.as_bytes())?);
    }
    let home = environment::variable("HOME").or_else(|| environment::variable("USERPROFILE")).unwrap_or_default();
    let around = Surroundings { variable: &environment::variable, directory: Path::new(&home), arguments: &[] };
    let config = command.config.load(settings::Command::Serve, Path::new(&home))?;
    let upstreams = destination(&agent, row, flags::upstreams(&config), &around)?;
    let address = format!("127.0.0.1:{}", port(command.port)?);
    let key = AccessKey::fresh("own");
    let changed = changed(&agent, row, &around, &address, &key)?;
    let files = service.files()?;
    let paths = files.iter().map(|(path, _)| path.clone()).collect();
    let record = InstallRecord::new(&agent.name, address, upstreams, changed, paths);
    let shown = plan(&agent, &record, &files)?.replace(key.secret(), "(key)");
    io::stdout().write_all(shown.as_bytes())?;
    if !command.yes && !is_wanted()? {
        return Err(Failure::work("nothing was written").hint("pass --yes to agree without being asked"));
    }
    if let Err(failure) = write(&record, &service, &key) {
        // What was written is of no use without the rest; what cannot be removed is told by `uninstall`.
        let _ = undo(&record, &service);
        return Err(failure);
    }
    let told = running(&agent, &service, &record.address);
    Ok(io::stdout().write_all(told.as_bytes())?)
}

/// Carries out `contexture uninstall`.
///
/// # Errors
/// The agent is not installed, or its settings cannot be read any more.
pub fn uninstall(command: &Uninstall) -> Result<(), Failure> {
    let Some(record) = InstallRecord::of(&command.agent)? else {
        let failure = Failure::work(format!("`{}` is not installed", command.agent));
        let names: Vec<String> = InstallRecord::all().into_iter().map(|record| record.agent).collect();
        return Err(failure.hint(match names.is_empty() {
            true => "no agent is; `contexture install AGENT` installs one".to_owned(),
            false => format!("installed are {}", names.join(", ")),
        }));
    };
    let service = Service::new(&record.agent, environment::variable)?;
    let told = undo(&record, &service)?;
    Ok(io::stdout().write_all(told.as_bytes())?)
}

/// Where the gateway sends requests: what the agent uses now.
fn destination(
    agent: &Agent,
    row: &Install,
    usual: Upstreams,
    around: &Surroundings<'_>,
) -> Result<Upstreams, Failure> {
    let hint = format!("correct it, or start the agent with `contexture run {}`", agent.name);
    if let Some(name) = otherwise(row, around).map_err(|failure| failure.hint(&hint))? {
        let failure = Failure::work(format!("`{}` cannot be installed: {name} is set", agent.name));
        return Err(failure.hint(format!("start it with `contexture run {}`", agent.name)));
    }
    agent.destination(usual, around).map(|found| found.upstreams).map_err(|failure| failure.hint(hint))
}

/// A free port, or the one that was asked for.
fn port(asked: Option<u16>) -> Result<u16, Failure> {
    let taken: Vec<String> = InstallRecord::all().into_iter().map(|record| record.address).collect();
    let is_free = |port: u16| {
        let address = format!("127.0.0.1:{port}");
        !taken.contains(&address) && TcpListener::bind(&address).is_ok()
    };
    match asked {
        Some(port) if is_free(port) => Ok(port),
        Some(port) => Err(Failure::work(format!("port {port} is in use")).hint("choose another one with --port")),
        None => (FIRST_PORT..FIRST_PORT + PORTS).find(|port| is_free(*port)).ok_or_else(|| {
            let last = FIRST_PORT + PORTS - 1;
            Failure::work(format!("no port from {FIRST_PORT} to {last} is free")).hint("choose one with --port")
        }),
    }
}

/// The file of the agent's settings, and what is to be in it.
fn changed(
    agent: &Agent,
    row: &Install,
    around: &Surroundings<'_>,
    address: &str,
    key: &AccessKey,
) -> Result<ChangedFile, Failure> {
    let paths: Vec<PathBuf> = row.files().iter().filter_map(|file| path_of(file, around)).collect();
    let path = paths.iter().find(|path| path.exists()).or(paths.first());
    let path = path.ok_or_else(|| Failure::work(format!("where the settings of `{}` are is not known", agent.name)))?;
    // A link to a file that is kept elsewhere stays a link.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
    let (before, mode) = text_of(&path)?;
    let program = std::env::current_exe().unwrap_or_default().display().to_string();
    let url = format!("http://{address}/{}", key.secret());
    let fill = |value: &String| {
        value.replace("{url}", &url).replace("{program}", &shell_quoted(&program)).replace("{address}", address)
    };
    let mut after = before.clone().unwrap_or_default();
    let mut set = Vec::new();
    let syntax = SettingsSyntax::of(&path);
    let fail = |why: String| unchanged(&path, &why);
    let settings = edit::read(syntax, &after).map_err(fail)?;
    for (name, value) in wanted(row, |name| edit::found(&settings, &parts(name)).is_some()) {
        let setting = AgentSetting { key: parts(name), value: fill(value) };
        let old = edit::found(&settings, &setting.key).and_then(|value| value.as_str()).map(str::to_owned);
        after = edit::with(syntax, &after, &setting).map_err(fail)?;
        set.push(ChangedSetting { key: setting.key, value: setting.value, before: old });
    }
    let made = path.ancestors().skip(1).take_while(|directory| !directory.exists()).map(Path::to_owned).collect();
    Ok(ChangedFile { path, was_there: before.is_some(), mode, after, set, made })
}

fn parts(name: &str) -> Vec<String> {
    name.split('.').map(str::to_owned).collect()
}

fn unchanged(path: &Path, why: &str) -> Failure {
    let failure = Failure::work(format!("`{}` cannot be changed ({why}), so nothing was written", path.display()));
    failure.hint("correct it (comments in JSON would be lost), or start the agent with `contexture run`")
}

/// The text of a file and its permissions, if it is there.
fn text_of(path: &Path) -> Result<(Option<String>, u32), Failure> {
    let found = match fs::metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((None, 0o600)),
        Err(error) => return Err(unchanged(path, &error.to_string())),
    };
    match () {
        () if !found.is_file() => return Err(unchanged(path, "it is no file")),
        () if found.len() > MOST_BYTES => return Err(unchanged(path, "it is too large")),
        () => {}
    }
    let bytes = fs::read(path).map_err(|error| unchanged(path, &error.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|_| unchanged(path, "it is no text"))?;
    #[cfg(unix)]
    let mode = std::os::unix::fs::PermissionsExt::mode(&found.permissions());
    #[cfg(not(unix))]
    let mode = 0o600;
    Ok((Some(text), mode))
}

/// What will be written, for a person to decide by.
fn plan(agent: &Agent, record: &InstallRecord, files: &[(PathBuf, String)]) -> Result<String, Failure> {
    let ChangedFile { path, set, was_there, .. } = &record.settings;
    let kept = if *was_there { "will be changed; a copy is kept" } else { "will be made" };
    let mut told = format!(
        "`{}` will work through a gateway of its own at {}, whoever starts it.\n\n{} {kept}, for you only to read:\n",
        agent.name,
        record.address,
        path.display()
    );
    for ChangedSetting { key, value, before } in set {
        if let Some(before) = before {
            told.push_str(&format!("- {} = {}\n", key.join("."), written_out(before)));
        }
        told.push_str(&format!("+ {} = {}\n", key.join("."), written_out(value)));
    }
    if let Some(note) = agent.install_note() {
        told.push_str(&format!("{note}\n"));
    }
    told.push_str(&format!("\n{} will be made, with the gateway's key\n", record.keys()?.display()));
    for (path, text) in files {
        let ending = if text.is_empty() { ", empty" } else { ":" };
        told.push_str(&format!("\n{} will be made{ending}\n", path.display()));
        told.extend(text.lines().map(|line| format!("+ {}\n", written_out(&crate::failure::without_passwords(line)))));
    }
    Ok(told + "\n")
}

/// Asks whoever is at the terminal.
fn is_wanted() -> Result<bool, Failure> {
    if !io::stdin().is_terminal() {
        return Ok(false);
    }
    let mut output = io::stdout();
    output.write_all(b"Write this? [y/N] ")?;
    output.flush()?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// Writes everything, and starts the service; the agent's settings come last, since they need the rest.
fn write(record: &InstallRecord, service: &Service, key: &AccessKey) -> Result<(), Failure> {
    let settings = &record.settings;
    if settings.was_there {
        let bytes = fs::read(&settings.path).map_err(|error| unchanged(&settings.path, &error.to_string()))?;
        write_private(&record.copy()?, &bytes)?;
    }
    record.write()?;
    write_private(&record.keys()?, format!("{} = \"{}\"\n", key.name(), key.secret()).as_bytes())?;
    service.write()?;
    service.start().map_err(|why| {
        let failure = Failure::work(format!(
            "the gateway of `{}` cannot be started by the system ({why}), so nothing was installed",
            record.agent
        ));
        failure.hint(format!(
            "start the agent with `contexture run {}`; in an editor, run `contexture serve` yourself and put the address \
             that it prints into the agent's settings",
            record.agent
        ))
    })?;
    // It holds the gateway's key from now on.
    write_with_mode(&settings.path, settings.after.as_bytes(), settings.mode & 0o600)
}

/// Starts the service of an agent that is installed, and says what is to be done if that is not possible.
fn started(agent: &Agent, service: &Service, address: &str) -> String {
    match service.start() {
        Err(why) => by_hand(agent, service, &why),
        Ok(()) => running(agent, service, address),
    }
}

/// Whether the service that was started runs, and what is to be done if it does not.
fn running(agent: &Agent, service: &Service, address: &str) -> String {
    if !is_up(address) {
        return by_hand(agent, service, "it was started, but does not answer");
    }
    let told = format!("the gateway runs at {address}; `contexture status` shows it\n");
    told + &format!("`contexture uninstall {}` undoes everything\n", agent.name)
}

fn by_hand(agent: &Agent, service: &Service, why: &str) -> String {
    format!(
        "the gateway does not run yet ({why}), and `{0}` cannot reach its model without it: start it, and keep it \
         running, with\n  {1}\n`contexture uninstall {0}` undoes everything\n",
        agent.name,
        service.by_hand()
    )
}

/// Waits until somebody listens on an address.
fn is_up(address: &str) -> bool {
    let began = Instant::now();
    while began.elapsed() < PATIENCE {
        if std::net::TcpStream::connect(address).is_ok() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    false
}

/// Undoes what was installed; the agent's settings first, since they need the rest.
fn undo(record: &InstallRecord, service: &Service) -> Result<String, Failure> {
    let settings = &record.settings;
    let shown = settings.path.display();
    let now = match fs::read(&settings.path) {
        Ok(bytes) => Some(bytes),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(Failure::work(format!("read `{shown}`: {error}"))),
    };
    let copy = record.copy()?;
    let before = if settings.was_there { fs::read(&copy).ok() } else { None };
    let is_as_written = now.as_deref() == Some(settings.after.as_bytes());
    let mut keeps_copy = false;
    let mut told = match (now, before) {
        (None, _) => format!("{shown} is gone already\n"),
        // Nothing was written into it yet.
        (now, before @ Some(_)) if now == before => format!("{shown} is as it was\n"),
        (_, Some(before)) if is_as_written => {
            write_with_mode(&settings.path, &before, settings.mode)?;
            format!("{shown} is as it was, byte for byte\n")
        }
        (_, None) if is_as_written && !settings.was_there => {
            record::remove(&settings.path)?;
            // One that is not empty holds something of others.
            let _ = settings.made.iter().try_for_each(fs::remove_dir);
            format!("{shown} is gone, as it was\n")
        }
        (Some(now), _) => {
            keeps_copy = settings.was_there && copy.exists();
            let text = without_ours(record, now)?;
            write_with_mode(&settings.path, text.as_bytes(), settings.mode)?;
            let kept = if keeps_copy { format!("; how it was before is in {}", copy.display()) } else { String::new() };
            format!("{shown} was changed since, so only what was installed is gone from it{kept}\n")
        }
    };
    service.stop(&record.service)?;
    record.remove(keeps_copy)?;
    told.push_str(&format!("the gateway of `{}` is gone\n", record.agent));
    Ok(told)
}

/// Settings that were changed since, without what was installed, or with what was there before it.
fn without_ours(record: &InstallRecord, now: Vec<u8>) -> Result<String, Failure> {
    let settings = &record.settings;
    let fail = |why: String| {
        let failure = Failure::work(format!(
            "`{}` was changed since `{}` was installed, and cannot be read ({why}), so nothing was undone",
            settings.path.display(),
            record.agent
        ));
        failure.hint(format!("correct it, or remove what leads to {} yourself, and try again", record.address))
    };
    let mut text = String::from_utf8(now).map_err(|_| fail("it is no text".to_owned()))?;
    let syntax = SettingsSyntax::of(&settings.path);
    let earlier = fs::read_to_string(record.copy()?).ok().and_then(|text| edit::read(syntax, &text).ok());
    for ChangedSetting { key, value, before } in &settings.set {
        let found = edit::read(syntax, &text).map_err(fail)?;
        // What the user has set to something else is the user's.
        if edit::found(&found, key).and_then(|found| found.as_str()) != Some(value) {
            continue;
        }
        text = match before {
            Some(before) => edit::with(syntax, &text, &AgentSetting { key: key.clone(), value: before.clone() }),
            None => without_made(syntax, &text, key, earlier.as_ref()),
        }
        .map_err(fail)?;
    }
    Ok(text)
}

/// A text without a setting, and without the tables that were made for it, unless they hold something else by now: an
/// agent may refuse an empty one.
fn without_made(syntax: SettingsSyntax, text: &str, key: &[String], earlier: Option<&Value>) -> Result<String, String> {
    let text = edit::without(syntax, text, key)?;
    let Some((_, table @ [_, ..])) = key.split_last() else { return Ok(text) };
    let is_empty = edit::found(&edit::read(syntax, &text)?, table).is_some_and(|found| *found == json!({}));
    match earlier.is_some_and(|earlier| edit::found(earlier, table).is_some()) || !is_empty {
        true => Ok(text),
        false => without_made(syntax, &text, table, earlier),
    }
}
