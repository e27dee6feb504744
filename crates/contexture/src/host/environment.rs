//! The environment variables that started programs get.

use std::ffi::{OsStr, OsString};
use std::fmt;

use contexture_text::pattern::name_matches;

/// Variables that programs need to work, and that hold no secrets; `*` stands for any characters.
const USUAL: &[&str] = &[
    // Who and where.
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "HOSTNAME",
    "PATH",
    "PWD",
    "OLDPWD",
    "SHLVL",
    "TMPDIR",
    "TMP",
    "TEMP",
    "XDG_*",
    "SSH_AUTH_SOCK",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    // Language, time and terminal.
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TERM",
    "TERM_PROGRAM",
    "COLORTERM",
    "COLUMNS",
    "LINES",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "EDITOR",
    "VISUAL",
    "PAGER",
    "LESS",
    "MANPATH",
    "CI",
    // Compilers and libraries.
    "CC",
    "CXX",
    "AR",
    "CFLAGS",
    "CPPFLAGS",
    "CXXFLAGS",
    "LDFLAGS",
    "MAKEFLAGS",
    "CPATH",
    "LIBRARY_PATH",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "DYLD_FALLBACK_LIBRARY_PATH",
    "PKG_CONFIG_PATH",
    "SDKROOT",
    "DEVELOPER_DIR",
    "NIX_PATH",
    "NIX_PROFILES",
    // Languages and their tools.
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "CARGO_INCREMENTAL",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "RUSTFLAGS",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "GOPATH",
    "GOROOT",
    "GOBIN",
    "GOCACHE",
    "GOMODCACHE",
    "GOFLAGS",
    "GOPROXY",
    "GOTOOLCHAIN",
    "JAVA_HOME",
    "MAVEN_HOME",
    "M2_HOME",
    "GRADLE_HOME",
    "GRADLE_USER_HOME",
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "SDKMAN_DIR",
    "NVM_DIR",
    "NVM_BIN",
    "NVM_INC",
    "FNM_DIR",
    "FNM_MULTISHELL_PATH",
    "VOLTA_HOME",
    "PNPM_HOME",
    "COREPACK_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "NODE_PATH",
    "NODE_ENV",
    "NODE_OPTIONS",
    "NODE_EXTRA_CA_CERTS",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CONDA_DEFAULT_ENV",
    "CONDA_EXE",
    "UV_CACHE_DIR",
    "PIPX_HOME",
    "POETRY_HOME",
    "RBENV_ROOT",
    "GEM_HOME",
    "GEM_PATH",
    "ASDF_DIR",
    "ASDF_DATA_DIR",
    "MISE_DATA_DIR",
    "DOTNET_ROOT",
    "DOCKER_HOST",
    "KUBECONFIG",
    // The network.
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NIX_SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    // Windows.
    "SYSTEMROOT",
    "SYSTEMDRIVE",
    "WINDIR",
    "COMSPEC",
    "PATHEXT",
    "PSMODULEPATH",
    "APPDATA",
    "LOCALAPPDATA",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "PROGRAMW6432",
    "COMMONPROGRAMFILES",
    "ALLUSERSPROFILE",
    "PUBLIC",
    "USERPROFILE",
    "USERNAME",
    "USERDOMAIN",
    "HOMEDRIVE",
    "HOMEPATH",
    "COMPUTERNAME",
    "NUMBER_OF_PROCESSORS",
    "PROCESSOR_ARCHITECTURE",
    "OS",
];

/// The environment variables of a program that is started for a model: a command, or an MCP server.
///
/// What such a program prints is sent to the model and stored, so it does not get the environment of this process but
/// the variables on a list: directories, language, terminal, and what compilers and package managers need. A variable of
/// the list whose value is an address with a password is left out too. Others are added by name.
///
/// ```
/// use contexture::host::ProgramEnvironment;
/// let variables = [("PATH", "/bin"), ("GITHUB_TOKEN", "ghp_1"), ("MY_REGION", "north")];
/// let variables = variables.map(|(name, value)| (name.into(), value.into()));
/// let environment = ProgramEnvironment::select(variables, &["MY_*".to_owned()]);
/// assert_eq!(environment.names().collect::<Vec<_>>(), ["PATH", "MY_REGION"]);
/// ```
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ProgramEnvironment {
    variables: Vec<(OsString, OsString)>,
}

impl ProgramEnvironment {
    /// The variables of this process that are on the list.
    pub fn of_process() -> Self {
        Self::select(std::env::vars_os(), &[])
    }

    /// Those of some variables that are on the list, or that one of `more` names; `*` stands for any characters.
    pub fn select(variables: impl IntoIterator<Item = (OsString, OsString)>, more: &[String]) -> Self {
        let is_passed = |(name, value): &(OsString, OsString)| {
            let Some(name) = name.to_str() else { return false };
            more.iter().any(|pattern| name_matches(pattern, name))
                || (is_usual(name) && !has_password(&value.to_string_lossy()))
        };
        Self { variables: variables.into_iter().filter(is_passed).collect() }
    }

    /// The same with one more variable, or with another value of it.
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        let name = name.into();
        self.variables.retain(|(other, _)| *other != name);
        self.variables.push((name, value.into()));
        self
    }

    /// The same without some variables.
    pub fn without(mut self, names: impl IntoIterator<Item = impl AsRef<str>>) -> Self {
        for name in names {
            self.variables.retain(|(other, _)| other != name.as_ref());
        }
        self
    }

    /// The names of the variables.
    pub fn names(&self) -> impl Iterator<Item = &OsStr> {
        self.variables.iter().map(|(name, _)| name.as_os_str())
    }

    /// The variables, as a command takes them after its own were cleared.
    pub(crate) fn variables(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }
}

impl fmt::Debug for ProgramEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProgramEnvironment").field(&self.names().collect::<Vec<_>>()).finish()
    }
}

/// Whether a variable is on the list.
fn is_usual(name: &str) -> bool {
    // Names of variables have no case on Windows.
    let upper = if cfg!(windows) { name.to_uppercase() } else { name.to_owned() };
    USUAL.iter().any(|pattern| name_matches(pattern, &upper))
}

/// Whether a value has an address with somebody's name or password, as in `http://me:secret@proxy`.
fn has_password(value: &str) -> bool {
    value.split("://").skip(1).any(|rest| {
        let host = rest.split(['/', '?', '#', ' ', ',']).next().unwrap_or_default();
        host.contains('@')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn passed(variables: &[(&str, &str)], more: &[&str]) -> Vec<String> {
        let variables = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let more: Vec<String> = more.iter().map(|name| (*name).to_owned()).collect();
        let environment = ProgramEnvironment::select(variables, &more);
        environment.names().map(|name| name.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn only_variables_of_the_list_are_passed() {
        let usual = ["PATH", "HOME", "LC_ALL", "XDG_CACHE_HOME", "TERM", "CARGO_HOME", "NVM_DIR", "SYSTEMROOT", "TZ"];
        for name in usual {
            assert_eq!(passed(&[(name, "x")], &[]), [name]);
        }
        let others = [
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "AWS_SECRET_ACCESS_KEY",
            "GITHUB_TOKEN",
            "npm_config__authToken",
            "NPM_TOKEN",
            "CARGO_REGISTRY_TOKEN",
            "PGPASSWORD",
            "DATABASE_URL",
            "CONTEXTURE_CHAT_KEY",
            "BASH_ENV",
            "BASH_FUNC_git%%",
            "LD_PRELOAD",
            "PATHS",
            "MY_HOME",
            "",
        ];
        for name in others {
            assert_eq!(passed(&[(name, "x")], &[]), [""; 0], "{name}");
        }
    }

    #[test]
    fn a_setting_adds_variables_and_an_address_with_a_password_is_none_of_the_usual_ones() {
        let variables = [("AWS_PROFILE", "a"), ("AWS_REGION", "b"), ("SECRET", "c")];
        assert_eq!(passed(&variables, &["AWS_*"]), ["AWS_PROFILE", "AWS_REGION"]);
        for value in ["http://me:pass@proxy:8080", "https://token@proxy", "direct,https://a:b@goproxy.example/x"] {
            assert_eq!(passed(&[("HTTPS_PROXY", value), ("GOPROXY", value)], &[]), [""; 0], "{value}");
        }
        assert_eq!(passed(&[("HTTPS_PROXY", "http://proxy:8080/a@b")], &[]), ["HTTPS_PROXY"]);
        assert_eq!(passed(&[("HTTPS_PROXY", "http://me:pass@proxy")], &["HTTPS_PROXY"]), ["HTTPS_PROXY"]);
    }

    #[test]
    fn values_are_not_shown() {
        let environment = ProgramEnvironment::default().with("A", "one").with("B", "two").with("A", "three");
        assert_eq!(format!("{environment:?}"), r#"ProgramEnvironment(["B", "A"])"#);
        assert_eq!(environment.without(["B"]).variables().collect::<Vec<_>>(), [("A".as_ref(), "three".as_ref())]);
    }
}
