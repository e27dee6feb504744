//! The forms of secrets, as data: a new one is a row here or in `keys.txt`, and an example in
//! `tests/data/redact/secrets.txt`.
//!
//! The formats are those that their makers publish so that keys are found in logs and commits, with lengths that are at
//! most the published ones: a key that was cut is a secret too.

use std::sync::LazyLock;

use super::signs::KeyCharacters;

/// How a key begins, what follows, at least how many of it, and what it is called.
pub(super) struct KeyFormat(pub &'static str, pub KeyCharacters, pub usize, pub &'static str);

/// Keys that are known by how they begin: `keys.txt`.
pub(super) static FORMATS: LazyLock<Vec<KeyFormat>> = LazyLock::new(|| {
    let lines = include_str!("keys.txt").lines().filter(|line| !line.starts_with('#'));
    lines.map(|line| key_format(line).unwrap_or_else(|| panic!("a rule is written otherwise: {line}"))).collect()
});

fn key_format(line: &'static str) -> Option<KeyFormat> {
    let (kind, key) = line.split_once(" | ")?;
    let (begin, rest) = key.strip_suffix('}')?.rsplit_once('{')?;
    let (characters, least) = rest.split_once(':')?;
    Some(KeyFormat(begin, KeyCharacters::named(characters)?, least.parse().ok()?, kind))
}

/// A secret that is known by what it has inside: how many signs are before that, what it is, and how many are after it.
pub(super) struct SecretShape(
    pub KeyCharacters,
    pub std::ops::RangeInclusive<usize>,
    pub &'static str,
    pub KeyCharacters,
    pub std::ops::RangeInclusive<usize>,
    pub &'static str,
);

pub(super) const SHAPES: &[SecretShape] = &[
    SecretShape(KeyCharacters::Alnum, 12..=16, ".atlasv1.", KeyCharacters::Word, 30..=256, "Terraform token"),
    SecretShape(KeyCharacters::Tilde, 4..=4, "Q~", KeyCharacters::Tilde, 28..=40, "Azure client secret"),
    SecretShape(KeyCharacters::Word, 8..=64, ":APA91b", KeyCharacters::Word, 60..=256, "Firebase key"),
    SecretShape(KeyCharacters::Hex, 32..=32, "-us", KeyCharacters::Digit, 1..=2, "Mailchimp key"),
    SecretShape(KeyCharacters::Alnum, 17..=17, ".", KeyCharacters::Hex, 64..=64, "Airtable token"),
    SecretShape(KeyCharacters::Alnum, 60..=96, "AZDO", KeyCharacters::Alnum, 4..=4, "Azure DevOps token"),
    // The makers put a mark of their own into keys of these services.
    SecretShape(KeyCharacters::Base64, 76..=76, "+ASt", KeyCharacters::Base64, 4..=10, "Azure storage key"),
    SecretShape(KeyCharacters::Base64, 76..=76, "+ABa", KeyCharacters::Base64, 4..=10, "Azure batch key"),
    SecretShape(KeyCharacters::Base64, 76..=76, "ACDb", KeyCharacters::Base64, 4..=10, "Azure database key"),
    SecretShape(KeyCharacters::Base64, 42..=42, "+ACR", KeyCharacters::Base64, 4..=10, "Azure registry key"),
    SecretShape(KeyCharacters::Word, 44..=44, "AzFu", KeyCharacters::Word, 4..=10, "Azure function key"),
    SecretShape(KeyCharacters::Alnum, 42..=42, "AzSe", KeyCharacters::Alnum, 4..=10, "Azure search key"),
    SecretShape(KeyCharacters::Alnum, 33..=33, "AzCa", KeyCharacters::Alnum, 4..=10, "Azure cache key"),
    SecretShape(KeyCharacters::Alnum, 52..=52, "JQQJ99", KeyCharacters::Alnum, 20..=40, "Azure AI key"),
    SecretShape(KeyCharacters::Word, 36..=36, "_mmk", KeyCharacters::Word, 0..=0, "MaxMind key"),
    SecretShape(KeyCharacters::Hex, 36..=36, "NRAL", KeyCharacters::Word, 0..=0, "New Relic key"),
    SecretShape(KeyCharacters::Hex, 32..=32, ".", KeyCharacters::Alnum, 16..=16, "Zhipu key"),
    SecretShape(KeyCharacters::Hex, 32..=32, "@o", KeyCharacters::Host, 3..=64, "Sentry key"),
    SecretShape(KeyCharacters::Alnum, 60..=80, "::server:", KeyCharacters::Alnum, 16..=64, "K3s token"),
    SecretShape(KeyCharacters::Alnum, 15..=15, "!", KeyCharacters::Wide, 80..=160, "Salesforce token"),
    SecretShape(KeyCharacters::Digit, 10..=20, ":", KeyCharacters::Hex, 32..=32, "Asana token"),
    SecretShape(KeyCharacters::Digit, 6..=9, "_", KeyCharacters::Upper, 32..=32, "ClickUp token"),
    // As part of an address, where no word begins.
    SecretShape(KeyCharacters::Digit, 8..=10, ":AA", KeyCharacters::Word, 32..=34, "Telegram token"),
    SecretShape(
        KeyCharacters::Host,
        4..=64,
        ".webhook.office.com/webhookb2/",
        KeyCharacters::Path,
        60..=256,
        "Teams webhook",
    ),
];

/// A telling name, and what its value is.
pub(super) struct Name(pub &'static str, pub &'static str);

/// Names without case, spaces, dashes and underscores. Longer ones first where one begins another.
pub(super) const NAMES: &[Name] = &[
    Name("password", PASSWORD),
    Name("passphrase", PASSWORD),
    Name("passwort", PASSWORD),
    Name("contraseña", PASSWORD),
    Name("motdepasse", PASSWORD),
    Name("wachtwoord", PASSWORD),
    Name("kennwort", PASSWORD),
    Name("senha", PASSWORD),
    Name("hasło", PASSWORD),
    Name("lösenord", PASSWORD),
    Name("пароль", PASSWORD),
    Name("passwd", PASSWORD),
    Name("passcode", PASSWORD),
    Name("pwd", PASSWORD),
    Name("pw", PASSWORD),
    Name("psk", PASSWORD),
    Name(CREDS, PASSWORD),
    Name(PASS, PASSWORD),
    Name("密码", PASSWORD),
    Name("密碼", PASSWORD),
    Name("パスワード", PASSWORD),
    Name("비밀번호", PASSWORD),
    Name("apikey", "key"),
    Name("apitoken", "token"),
    Name("applicationkey", "key"),
    Name("appkey", "key"),
    Name("appsecret", "secret"),
    Name("accesskeyid", "key"),
    Name("accesskey", "key"),
    Name("accesstoken", "token"),
    Name("authtoken", "token"),
    Name("authkey", "key"),
    Name("refreshtoken", "token"),
    Name("secretaccesskey", "key"),
    Name("secretkey", "key"),
    Name("securitytoken", "token"),
    Name("sessiontoken", "token"),
    Name(SESSION, "token"),
    Name("subscriptionkey", "key"),
    Name("sharedaccesskey", "key"),
    Name("privatekeyid", "key"),
    Name("privatekey", "key"),
    Name("privatetoken", "token"),
    Name(SIGNING_KEY, "key"),
    Name("encryptionkey", "key"),
    Name("masterkey", "key"),
    Name("accountkey", "key"),
    Name("presharedkey", "key"),
    Name("licensekey", "key"),
    Name("geniekey", "key"),
    Name("adminkey", "key"),
    Name("writekey", "key"),
    Name("servicekey", "key"),
    Name("integrationkey", "key"),
    Name(KEY, "key"),
    Name(PAT, "token"),
    Name("clientsecret", "secret"),
    Name("credentials", "secret"),
    Name("credential", "secret"),
    Name("authorization", "token"),
    Name("bearer", "token"),
    Name("basic", "token"),
    Name("secret", "secret"),
    Name("token", "token"),
    Name("amzsignature", SIGNATURE),
    Name("googsignature", SIGNATURE),
    Name(SIG, SIGNATURE),
    Name(AUTH, "token"),
    Name("密钥", "key"),
    Name("令牌", "token"),
    Name("トークン", "token"),
];

pub(super) const PASSWORD: &str = "password";
/// What grants access to an address.
pub(super) const SIGNATURE: &str = "signature";
/// A name only at the end of another one, as in `DB_PASS`.
pub(super) const PASS: &str = "pass";
/// A name only at the end of that of a variable of the environment, as in `STRIPE_KEY`.
pub(super) const KEY: &str = "key";
/// The same of a personal access token, as in `AZURE_DEVOPS_EXT_PAT`.
pub(super) const PAT: &str = "pat";
/// What is before such a name if the key is no secret.
pub(super) const OPEN_KEYS: &[&str] = &["PUBLIC_", "PUB_", "CACHE_", "PUBLISHABLE_", "HOST_", "PRIMARY_", "SORT_"];
/// A name whose value has a password only after the name of a user: `creds: ada:…`.
pub(super) const CREDS: &str = "creds";
/// Names only as a whole, or after `_`.
pub(super) const SHORT_NAMES: &[&str] = &["pw", "psk"];
/// What begins the name of a function that sets a password.
pub(super) const SETTERS: &[&str] = &["set", "set_", "with", "with_", "change", "change_"];
/// What may be before the value of a header, beside the links.
pub(super) const SCHEMES: &[&str] =
    &["SharedKey ", "ApiKey ", "GenieKey ", "Splunk ", "SSWS ", "Negotiate ", "Digest "];
/// A name whose value may be the fingerprint of a key, as in the settings of git.
pub(super) const SIGNING_KEY: &str = "signingkey";
/// A name whose value may be an identifier.
pub(super) const SESSION: &str = "sessionid";
/// A name only in the query of an address.
pub(super) const SIG: &str = "sig";
/// A name only as a whole, as in `"auth": "…"` and `_auth = …`.
pub(super) const AUTH: &str = "auth";

/// The names of lists of words that are a key.
pub(super) const PHRASES: &[&str] = &["mnemonic", "seed phrase", "seed_phrase", "recovery phrase", "recovery_phrase"];
/// What such a list is called.
pub(super) const PHRASE: &str = "seed phrase";

/// Words between a name and its value.
pub(super) const LINKS: &[&str] = &[
    "is", "was", "to", "ist", "lautet", "est", "es", "är", "jest", "bearer", "basic", "token", "value", "=>", ":=",
    "=", ":", "：", "＝", "是", "为", "為", "は",
];

/// What ends the name of another thing that only begins with a telling name, as `PASSWORD_HASH`.
pub(super) const OTHER_NAMES: &[&str] = &[
    "HASH",
    "HASHERS",
    "FILE",
    "PATH",
    "DIR",
    "URL",
    "URI",
    "LENGTH",
    "LEN",
    "SIZE",
    "TTL",
    "NAME",
    "EXPIRES",
    "EXPIRY",
    "TIMEOUT",
    "MIN",
    "MAX",
    "POLICY",
    "FIELD",
    "COUNT",
    "LIMIT",
    "TYPE",
    "ALGORITHM",
    "ENDPOINT",
    "COST",
    "VERSION",
    "PREFIX",
    "HEADER",
    "ENV",
    "VAR",
    "ENABLED",
    "REQUIRED",
    "ARN",
    "REF",
];

/// Where a key is used, at the end of its name.
pub(super) const STAGES: &[&str] =
    &["prod", "production", "dev", "test", "staging", "live", "base", "main", "old", "new"];

/// Lines of configuration files that are a name and a password, which may have spaces after `=`.
pub(super) const DIRECTIVES: &[&str] =
    &["requirepass", "masterauth", "bindpw", "rootpw", "wpa-psk", "wpa_passphrase", "psk"];

/// Words of SQL after which a password is quoted.
pub(super) const STATEMENTS: &[&str] =
    &["IDENTIFIED BY", "WITH PASSWORD", "PASSWORD(", "ENCRYPTED PASSWORD", "PASSWORD"];

/// Functions that are given a password in quotes, and as which argument, counted from 0.
pub(super) const CALLS: &[(&str, usize)] = &[
    ("mysqli_connect(", 2),
    ("new mysqli(", 2),
    (".getConnection(", 2),
    ("db.auth(", 1),
    ("server.login(", 1),
    ("smtp.login(", 1),
    ("imap.login(", 1),
    ("mail.login(", 1),
    ("ftp.login(", 1),
    ("cohere.Client(", 0),
    ("cohere.ClientV2(", 0),
    ("cohere.AsyncClient(", 0),
    ("algoliasearch(", 1),
    ("SearchClient.create(", 1),
];

/// Words before a login that is written as `ada / VALUE`.
pub(super) const LOGINS: &[&str] = &["login", "logins", "credentials", "creds", "account", "zugang", "user", "admin"];

/// What a program is waited for with that asks for a password, before one is sent to it: in scripts of `expect`.
pub(super) const ASKED: &[&str] = &["assword", "assphrase", "asscode"];

/// What a value says that is put in place of a secret.
pub(super) const PLACEHOLDERS: &[&str] = &[
    "your",
    "changeme",
    "change_me",
    "change-me",
    "placeholder",
    "example",
    "redacted",
    "replace",
    "replaceme",
    "todo",
    "insert",
    "here",
    "none",
    "null",
    "nil",
    "undefined",
    "true",
    "false",
    "yes",
    "empty",
    "dummy",
    "foobar",
    "hidden",
];

/// What may be after the name of a password without being one: types, labels, states, and names of variables.
pub(super) const NOT_PASSWORDS: &[&str] = &[
    "string",
    "text",
    "char",
    "varchar",
    "bytes",
    "byte",
    "bool",
    "boolean",
    "int",
    "integer",
    "number",
    "object",
    "array",
    "buffer",
    "unknown",
    "any",
    "never",
    "void",
    "enum",
    "date",
    "uuid",
    "email",
    "optional",
    "required",
    "invalid",
    "valid",
    "wrong",
    "incorrect",
    "correct",
    "missing",
    "expired",
    "disabled",
    "enabled",
    "mismatch",
    "accepted",
    "rejected",
    "denied",
    "allowed",
    "changed",
    "updated",
    "unchanged",
    "weak",
    "strong",
    "strict",
    "basic",
    "plain",
    "plaintext",
    "hash",
    "hashed",
    "encoded",
    "decoded",
    "encrypted",
    "decrypted",
    "digest",
    "salted",
    "field",
    "input",
    "value",
    "default",
    "prompt",
    "file",
    "env",
    "vault",
    "user",
    "username",
    "name",
    "login",
    "account",
    "password",
    "passwd",
    "passphrase",
    "passwort",
    "secret",
    "secrets",
    "token",
    "credential",
    "credentials",
    "pass",
    "pwd",
    "self",
    "this",
    "line",
    "data",
    "result",
    "response",
    "request",
    "body",
    "args",
    "param",
    "params",
    "option",
    "options",
    "flag",
    "argument",
    "parameter",
    "config",
    "settings",
    "props",
    "state",
    "form",
    "generated",
    "random",
    "ask",
    "stdin",
    "keyring",
    "static",
    "dynamic",
    "auto",
    "manual",
    "include",
    "with",
    "and",
    "that",
    "which",
    "from",
    "rotate",
    "reset",
    "create",
    "update",
    "delete",
    "verify",
    "const",
    "await",
    "async",
    "return",
    "unset",
    "blank",
    "test",
    "nothing",
    "protected",
    "private",
    "public",
    "authentication",
    "manager",
    "both",
];

/// What fields of programs begin with.
pub(super) const OBJECTS: &[&str] = &[
    "config", "cfg", "conf", "settings", "self", "this", "args", "opts", "options", "params", "req", "request", "data",
];

/// What the length of a password is counted in.
pub(super) const UNITS: &[&str] =
    &["character", "char", "digit", "letter", "symbol", "word", "byte", "bit", "day", "month", "step"];

/// How an option of a program gives a password.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// In the same word: `-pVALUE`.
    Joined,
    /// In the next word: `-p VALUE`.
    Next,
    /// Either.
    Either,
    /// Either, after a user name and this sign: `-u user:VALUE`.
    After(char),
    /// As this word of those that are no options, counted from 0 after the program: `rabbitmqctl add_user ada VALUE`.
    Word(usize),
    /// The same, for what always has a digit: `vault login VALUE`.
    Key(usize),
    /// As the word after this one: `nmcli … password VALUE`.
    AfterWord(&'static str),
    /// In the first word, between a user name and a host: `sqlplus ada/VALUE@db`.
    Login,
    /// In a word, between a user name and a host: `impacket-psexec corp/ada:VALUE@host`.
    UserInfo,
    /// In a word that sets something whose name says so: `helm … --set auth.password=VALUE`.
    Setting,
}

/// Programs, a word that must come before the option, the option, and how it gives a password.
pub(super) struct PasswordProgram(pub &'static [&'static str], pub &'static str, pub &'static str, pub How);

pub(super) const PROGRAMS: &[PasswordProgram] = &[
    PasswordProgram(
        &["mysql", "mysqldump", "mysqladmin", "mysqlimport", "mysqlshow", "mysqlcheck", "mysqlpump", "mycli"],
        "",
        "-p",
        How::Joined,
    ),
    PasswordProgram(&["mariadb", "mariadb-dump", "mariadb-admin", "xtrabackup", "mariabackup"], "", "-p", How::Joined),
    PasswordProgram(&["curl"], "", "-u", How::After(':')),
    PasswordProgram(&["curl"], "", "--user", How::After(':')),
    PasswordProgram(&["curl"], "", "-U", How::After(':')),
    PasswordProgram(&["curl"], "", "--proxy-user", How::After(':')),
    PasswordProgram(&["http", "https", "xh"], "", "-a", How::After(':')),
    PasswordProgram(&["http", "https", "xh"], "", "--auth", How::After(':')),
    PasswordProgram(&["http", "https", "xh"], "bearer", "-a", How::Next),
    PasswordProgram(&["mysqlsh"], "", "--uri", How::After(':')),
    PasswordProgram(&["sshpass"], "", "-p", How::Either),
    PasswordProgram(
        &["docker", "podman", "nerdctl", "buildah", "skopeo", "helm", "oc", "az", "crane", "oras", "regctl", "cf"],
        "login",
        "-p",
        How::Next,
    ),
    PasswordProgram(&["redis-cli", "valkey-cli", "keydb-cli"], "", "-a", How::Next),
    PasswordProgram(&["redis-cli", "valkey-cli", "keydb-cli"], "", "--pass", How::Next),
    PasswordProgram(
        &["mongo", "mongosh", "mongodump", "mongorestore", "mongoexport", "mongoimport"],
        "",
        "-p",
        How::Next,
    ),
    PasswordProgram(&["sqlcmd", "bcp", "osql", "isql"], "", "-P", How::Either),
    PasswordProgram(
        &["ldapsearch", "ldapadd", "ldapmodify", "ldapdelete", "ldapwhoami", "ldappasswd"],
        "",
        "-w",
        How::Either,
    ),
    PasswordProgram(&["smbclient", "rpcclient", "net"], "", "-U", How::After('%')),
    PasswordProgram(&["7z", "7za", "7zr", "7zz"], "", "-p", How::Joined),
    PasswordProgram(&["rar", "unrar"], "", "-p", How::Joined),
    PasswordProgram(&["rar", "unrar"], "", "-hp", How::Joined),
    PasswordProgram(&["zip", "unzip"], "", "-P", How::Next),
    PasswordProgram(&["openssl"], "", "-passin", How::After(':')),
    PasswordProgram(&["openssl"], "", "-passout", How::After(':')),
    PasswordProgram(&["openssl"], "", "-pass", How::After(':')),
    PasswordProgram(&["openssl"], "enc", "-k", How::Next),
    PasswordProgram(&["plink", "pscp", "psftp", "putty"], "", "-pw", How::Next),
    PasswordProgram(&["evil-winrm", "crackmapexec", "netexec", "nxc"], "", "-p", How::Next),
    PasswordProgram(&["ssh-keygen"], "", "-N", How::Next),
    PasswordProgram(&["ssh-keygen"], "", "-P", How::Next),
    PasswordProgram(&["gh"], "secret", "--body", How::Next),
    PasswordProgram(&["gh"], "secret", "-b", How::Next),
    PasswordProgram(&["aws"], "put-parameter", "--value", How::Next),
    PasswordProgram(&["aws"], "create-secret", "--secret-string", How::Next),
    PasswordProgram(&["composer"], "config", "", How::Key(3)),
    PasswordProgram(&["vault", "ansible", "ansible-playbook", "helm", "heroku", "fly", "flyctl"], "", "", How::Setting),
    PasswordProgram(
        &["impacket-psexec", "impacket-secretsdump", "impacket-smbclient", "impacket-smbexec", "impacket-wmiexec"],
        "",
        "",
        How::UserInfo,
    ),
    PasswordProgram(&["keytool", "jarsigner", "apksigner"], "", "-storepass", How::Next),
    PasswordProgram(&["keytool", "jarsigner", "apksigner"], "", "-keypass", How::Next),
    PasswordProgram(&["keytool"], "", "-srcstorepass", How::Next),
    PasswordProgram(&["keytool"], "", "-deststorepass", How::Next),
    PasswordProgram(&["htpasswd"], "-b", "", How::Word(2)),
    // With `-n`, nothing is written to a file, and none is named.
    PasswordProgram(&["htpasswd"], "-nb", "", How::Word(1)),
    PasswordProgram(&["apksigner"], "", "--ks-pass", How::After(':')),
    PasswordProgram(&["apksigner"], "", "--key-pass", How::After(':')),
    PasswordProgram(&["skopeo", "buildah", "podman"], "", "--creds", How::After(':')),
    PasswordProgram(&["skopeo", "buildah", "podman"], "", "--src-creds", How::After(':')),
    PasswordProgram(&["skopeo", "buildah", "podman"], "", "--dest-creds", How::After(':')),
    PasswordProgram(&["useradd", "usermod"], "", "-p", How::Next),
    PasswordProgram(&["nmcli"], "password", "", How::AfterWord("password")),
    PasswordProgram(&["rclone"], "pass", "", How::AfterWord("pass")),
    PasswordProgram(&["neo4j-admin"], "set-initial-password", "", How::AfterWord("set-initial-password")),
    PasswordProgram(&["prefect"], "login", "-k", How::Next),
    PasswordProgram(&["snyk"], "auth", "", How::Key(1)),
    PasswordProgram(&["cloudflared"], "service", "", How::Key(2)),
    PasswordProgram(&["sqlplus", "sqlldr", "expdp", "impdp", "rman"], "", "", How::Login),
    PasswordProgram(&["xfreerdp", "xfreerdp3", "wlfreerdp", "mstsc"], "", "/p:", How::Joined),
    PasswordProgram(&["rdesktop"], "", "-p", How::Next),
    PasswordProgram(&["mosquitto_pub", "mosquitto_sub", "mosquitto_rr"], "", "-P", How::Next),
    PasswordProgram(&["ipmitool", "ipmipower"], "", "-P", How::Next),
    PasswordProgram(&["cqlsh"], "", "-p", How::Next),
    PasswordProgram(&["influx"], "", "-password", How::Next),
    PasswordProgram(&["snmpwalk", "snmpget", "snmpset"], "", "-A", How::Next),
    PasswordProgram(&["snmpwalk", "snmpget", "snmpset"], "", "-X", How::Next),
    PasswordProgram(&["lftp"], "", "-u", How::After(',')),
    PasswordProgram(&["rabbitmqctl"], "add_user", "", How::Word(2)),
    PasswordProgram(&["rabbitmqctl"], "change_password", "", How::Word(2)),
    PasswordProgram(&["vault"], "login", "", How::Key(1)),
    PasswordProgram(&["wpa_passphrase"], "", "", How::Word(1)),
    PasswordProgram(&["mc", "mcli"], "alias", "", How::Word(5)),
    PasswordProgram(&["net"], "", "/user:", How::Next),
    PasswordProgram(&["net"], "user", "", How::Key(2)),
    PasswordProgram(&["bw"], "unlock", "", How::Key(1)),
    PasswordProgram(&["bw"], "login", "", How::Key(2)),
    PasswordProgram(&["nats-server", "nats"], "", "--auth", How::Next),
    PasswordProgram(&["beeline"], "", "-p", How::Next),
    PasswordProgram(&["db2"], "using", "", How::AfterWord("using")),
    PasswordProgram(&["security"], "unlock-keychain", "-p", How::Next),
    PasswordProgram(&["security"], "create-keychain", "-p", How::Next),
    PasswordProgram(&["signtool"], "sign", "/p", How::Next),
    PasswordProgram(&["ConvertTo-SecureString"], "", "", How::Word(0)),
    PasswordProgram(&["aws"], "aws_secret_access_key", "", How::Key(3)),
    PasswordProgram(&["aws"], "aws_session_token", "", How::Key(3)),
];

/// What follows the name of an option in a sentence about it.
pub(super) const SENTENCE: &[&str] = &[
    "option",
    "options",
    "flag",
    "flags",
    "argument",
    "parameter",
    "only",
    "and",
    "with",
    "without",
    "takes",
    "for",
    "asks",
    "means",
    "the",
    "sets",
    "value",
    "instead",
    "requires",
    "reads",
    "prompts",
    "from",
];

/// Programs that read a password from what `echo` writes to them, and the option with which they do.
pub(super) const READERS: &[(&str, &str)] = &[
    ("sudo", "-S"),
    ("passwd", "--stdin"),
    ("chpasswd", ""),
    ("docker", "--password-stdin"),
    ("podman", "--password-stdin"),
    ("helm", "--password-stdin"),
    ("gh", "--with-token"),
    ("smbpasswd", "-s"),
    ("kinit", ""),
    ("wrangler", "put"),
    ("flyctl", "import"),
    ("cryptsetup", ""),
];
