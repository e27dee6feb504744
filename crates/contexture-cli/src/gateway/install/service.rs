//! A gateway as a service of its user: started by the system's service manager, at login and after a fault.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::record::{path_of, remove, write_private};
use crate::failure::Failure;

/// Variables that a gateway needs and that a service manager does not pass on.
const PASSED_ON: [&str; 13] = [
    "XDG_STATE_HOME",
    "XDG_CONFIG_HOME",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
];

/// Who starts services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manager {
    /// systemd, for a user.
    Systemd,
    /// launchd, for a user.
    Launchd,
    /// Nobody who is known.
    Nobody,
}

/// The service of an agent's gateway.
pub(super) struct Service {
    manager: Manager,
    agent: String,
    /// This program, and its arguments.
    command: Vec<String>,
    variables: Vec<(String, String)>,
    home: PathBuf,
}

impl Service {
    /// The service for an agent.
    ///
    /// # Errors
    /// This program's own path, or the user's directory, is not known.
    pub(super) fn new(agent: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let program = std::env::current_exe().ok().and_then(|path| path.to_str().map(str::to_owned));
        let program = program.ok_or_else(|| Failure::work("where this program is cannot be told"))?;
        let home = variable("HOME").or_else(|| variable("USERPROFILE")).filter(|home| Path::new(home).is_absolute());
        let home = home.ok_or_else(|| Failure::work("your directory is not known").hint("set HOME"))?;
        let set = PASSED_ON.iter().filter_map(|name| Some(((*name).to_owned(), variable(name)?)));
        Ok(Self {
            manager: Manager::here(),
            agent: agent.to_owned(),
            command: vec![program, "serve".to_owned(), "--installed".to_owned(), agent.to_owned()],
            variables: set.filter(|(_, value)| !value.is_empty() && !value.contains(['\n', '\r', '\0'])).collect(),
            home: PathBuf::from(home),
        })
    }

    /// The files that it needs, with what is in them.
    pub(super) fn files(&self) -> Result<Vec<(PathBuf, String)>, Failure> {
        Ok(match self.manager {
            Manager::Systemd => {
                let variables = path_of(&self.agent, "env")?;
                let config = self.variables.iter().find(|(name, _)| name == "XDG_CONFIG_HOME");
                let config = config.map_or_else(|| self.home.join(".config"), |(_, path)| PathBuf::from(path));
                let unit = config.join("systemd/user").join(self.name());
                vec![(variables.clone(), self.environment()), (unit, self.unit(&variables))]
            }
            Manager::Launchd => {
                vec![(self.home.join("Library/LaunchAgents").join(self.name()), self.property_list())]
            }
            Manager::Nobody => Vec::new(),
        })
    }

    /// The name of the file by which the service manager knows it.
    fn name(&self) -> String {
        match self.manager {
            Manager::Launchd => format!("dev.contexture.{}.plist", self.agent),
            _ => format!("contexture-{}.service", self.agent),
        }
    }

    /// Starts it now and at every login.
    ///
    /// # Errors
    /// Why that was not possible, in a sentence.
    pub(super) fn start(&self) -> Result<(), String> {
        match self.manager {
            Manager::Systemd => {
                run_manager("systemctl", &["--user", "daemon-reload"])?;
                run_manager("systemctl", &["--user", "enable", "--now", &self.name()])
            }
            Manager::Launchd => run_manager("launchctl", &["load", "-w", &self.plist_path()]),
            Manager::Nobody => Err("no service manager is known on this system".to_owned()),
        }
    }

    /// Stops it for good, and removes its files.
    ///
    /// # Errors
    /// A file cannot be removed. That the service manager knows nothing of it is no error.
    pub(super) fn stop(&self, files: &[PathBuf]) -> Result<(), Failure> {
        // An error means that it was not started, or that there is no service manager.
        let _ = match self.manager {
            Manager::Systemd => run_manager("systemctl", &["--user", "disable", "--now", &self.name()]),
            Manager::Launchd => run_manager("launchctl", &["unload", "-w", &self.plist_path()]),
            Manager::Nobody => Ok(()),
        };
        for file in files {
            remove(file)?;
        }
        if self.manager == Manager::Systemd {
            // The same.
            let _ = run_manager("systemctl", &["--user", "daemon-reload"]);
        }
        Ok(())
    }

    /// Writes its files.
    ///
    /// # Errors
    /// One cannot be written.
    pub(super) fn write(&self) -> Result<(), Failure> {
        self.files()?.iter().try_for_each(|(path, text)| write_private(path, text.as_bytes()))
    }

    /// What a person runs to start the gateway without a service manager.
    pub(super) fn by_hand(&self) -> String {
        self.command.iter().map(|word| shell_quoted(word)).collect::<Vec<_>>().join(" ")
    }

    fn plist_path(&self) -> String {
        self.home.join("Library/LaunchAgents").join(self.name()).display().to_string()
    }

    /// The variables, as systemd reads them.
    fn environment(&self) -> String {
        let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"");
        self.variables.iter().map(|(name, value)| format!("{name}=\"{}\"\n", escaped(value))).collect()
    }

    fn unit(&self, variables: &Path) -> String {
        let command: Vec<String> = self.command.iter().map(|word| unit_quoted(word)).collect();
        format!(
            "[Unit]\nDescription=Contexture, the gateway of {}\n\n[Service]\nExecStart={}\nEnvironmentFile={}\n\
             Restart=on-failure\nRestartSec=2\n\n[Install]\nWantedBy=default.target\n",
            self.agent,
            command.join(" "),
            variables.display().to_string().replace('%', "%%"),
        )
    }

    fn property_list(&self) -> String {
        let strings: String =
            self.command.iter().map(|word| format!("    <string>{}</string>\n", xml_quoted(word))).collect();
        let pair = |(name, value): &(String, String)| {
            format!("    <key>{}</key>\n    <string>{}</string>\n", xml_quoted(name), xml_quoted(value))
        };
        let variables: String = self.variables.iter().map(pair).collect();
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n\
             <plist version=\"1.0\">\n<dict>\n  <key>Label</key>\n  <string>dev.contexture.{}</string>\n  \
             <key>ProgramArguments</key>\n  <array>\n{strings}  </array>\n  <key>EnvironmentVariables</key>\n  \
             <dict>\n{variables}  </dict>\n  <key>RunAtLoad</key>\n  <true/>\n  <key>KeepAlive</key>\n  <true/>\n\
             </dict>\n</plist>\n",
            xml_quoted(&self.agent)
        )
    }
}

impl Manager {
    /// That of this system.
    fn here() -> Self {
        match () {
            () if cfg!(target_os = "linux") => Self::Systemd,
            () if cfg!(target_os = "macos") => Self::Launchd,
            () => Self::Nobody,
        }
    }
}

/// Runs a command of the service manager.
fn run_manager(program: &str, arguments: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("`{program}` cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let said = said.lines().find(|line| !line.trim().is_empty()).unwrap_or("it failed").trim().to_owned();
    Err(format!("`{program} {}`: {said}", arguments.join(" ")))
}

/// A word of a command as systemd reads it.
fn unit_quoted(word: &str) -> String {
    let escaped = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    format!("\"{escaped}\"")
}

/// A word of a command as shells read it.
pub(super) fn shell_quoted(word: &str) -> String {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "-_./:=@+".contains(sign);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

fn xml_quoted(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn service(manager: Manager) -> Service {
        Service {
            manager,
            agent: "claude".to_owned(),
            command: vec!["/my \"own\"/100% & <b>/$x".to_owned(), "serve".to_owned()],
            variables: vec![("HTTPS_PROXY".to_owned(), "http://a:b\"c\\d@p".to_owned())],
            home: PathBuf::from("/home/ada"),
        }
    }

    #[test]
    fn paths_with_signs_stay_one_word() {
        let unit = service(Manager::Systemd).unit(Path::new("/state/50%/claude.env"));
        assert!(unit.contains("ExecStart=\"/my \\\"own\\\"/100%% & <b>/$$x\" \"serve\"\n"), "{unit}");
        assert!(unit.contains("EnvironmentFile=/state/50%%/claude.env\n"), "{unit}");
        assert_eq!(service(Manager::Systemd).environment(), "HTTPS_PROXY=\"http://a:b\\\"c\\\\d@p\"\n");
        let list = service(Manager::Launchd).property_list();
        assert!(list.contains("<string>/my &quot;own&quot;/100% &amp; &lt;b&gt;/$x</string>"), "{list}");
        assert!(list.contains("<key>HTTPS_PROXY</key>"), "{list}");
        assert_eq!(service(Manager::Nobody).by_hand(), "'/my \"own\"/100% & <b>/$x' serve");
        assert_eq!(shell_quoted("it's"), "'it'\\''s'");
    }
}
