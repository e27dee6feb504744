//! Names of files that say that they hold secrets: `.env`, `token.txt`, `.aws/credentials`, `terraform.tfvars`.

use std::sync::LazyLock;

use serde::Deserialize;

/// How names say it, in lower case.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Signs {
    /// Whole names.
    names: Vec<String>,
    /// Directories whose files are secret.
    secret_directories: Vec<String>,
    /// Directories whose data is.
    directories: Vec<String>,
    /// Extensions, wherever they are among the parts of a name: `terraform.tfvars.json`, `.env.local`.
    extensions: Vec<String>,
    /// Parts of the name of a file that only shows how a secret one is written.
    samples: Vec<String>,
    /// Parts of words, however they are joined: `dbpasswords.csv`, `clientSecret.json`.
    roots: Vec<String>,
    /// Words.
    words: Vec<String>,
    /// Words of settings,
    settings: Vec<String>,
    /// and of the places where they are for real: `application-prod.properties`.
    places: Vec<String>,
    /// Extensions of data, in files of which a word says what they hold. In code it says what the code is about.
    data: Vec<String>,
    /// Extensions of languages in which settings are written; there only the whole name says it.
    scripts: Vec<String>,
}

static SIGNS: LazyLock<Signs> = LazyLock::new(|| {
    serde_json::from_str(include_str!("secret_names.json")).expect("it comes with the program, and a test reads it")
});

/// Whether the name of a file says that it holds secrets.
///
/// ```
/// use contexture::reference::secret_names::is_secret;
/// assert!(is_secret("service-account.json") && is_secret(".cargo/credentials.toml"));
/// assert!(!is_secret("src/token.rs") && !is_secret(".env.example"));
/// ```
pub fn is_secret(path: &str) -> bool {
    let path = path.replace('\\', "/");
    let (directories, name) = path.rsplit_once('/').unwrap_or(("", &path));
    let lower = name.to_lowercase();
    let has = |list: &[String], text: &str| list.iter().any(|entry| entry == text);
    let directories = directories.to_lowercase();
    let is_beneath = |list: &[String]| directories.split('/').any(|part| has(list, part));
    if is_beneath(&SIGNS.secret_directories) || has(&SIGNS.names, &lower) {
        return true;
    }
    let (first, parts) = lower.split_once('.').unwrap_or((&lower, ""));
    if lower.split('.').any(|part| has(&SIGNS.samples, part)) {
        return false;
    }
    if parts.split('.').any(|part| has(&SIGNS.extensions, part)) {
        return true;
    }
    let extension = parts.rsplit('.').next().filter(|_| !first.is_empty()).unwrap_or_default();
    let words = words_of(name);
    let stem = words.strip_suffix(&[extension.to_owned()]).unwrap_or(&words);
    let joined = stem.concat();
    let says = |list: &[String]| stem.iter().any(|word| has(list, word));
    if has(&SIGNS.data, extension) {
        let is_deployed = says(&SIGNS.settings) && says(&SIGNS.places);
        let is_said = is_beneath(&SIGNS.directories) || says(&SIGNS.words);
        return is_deployed || is_said || SIGNS.roots.iter().any(|root| joined.contains(root));
    }
    has(&SIGNS.scripts, extension) && has(&SIGNS.roots, joined.trim_end_matches('s'))
}

/// The words of a name, in lower case: `GCP_accessKey-2.json` has `gcp`, `access`, `key` and `json`.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for sign in name.chars() {
        let begins = !sign.is_alphabetic() || sign.is_uppercase() && was_lower;
        if begins {
            words.push(String::new());
        }
        was_lower = sign.is_lowercase();
        if sign.is_alphabetic() {
            words.last_mut().expect("there is always one").extend(sign.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secret_files_are_told_from_others() {
        let secret = "service-account.json .cargo/credentials.toml terraform.tfvars wp-config.php \
             application-prod.properties token.txt .env .env.local prod.env secrets.yml secrets.toml secrets.json \
             config/secrets.yml credentials.json aws_credentials.csv client_secret.json client_secret_12-ab.apps.json \
             .aws/config .aws/credentials .kube/config .docker/config.json .ssh/config .npmrc .pypirc .netrc .pgpass \
             .git-credentials .htpasswd id_rsa key.json keys.json api_keys.yaml apikeys.txt api-key.txt passwords.txt \
             password.txt dbpassword.conf passwd.txt creds.json auth.json oauth.json github_token.txt tokens.json \
             access-token.txt terraform.tfstate prod.auto.tfvars dev.tfvars.json appsettings.Production.json \
             config.prod.json settings.production.yml database.yml vault.yml vault_pass.txt keystore.properties \
             key.properties local.properties google-services.json GoogleService-Info.plist \
             my-project-firebase-adminsdk-x1.json gcp-key.json serviceAccountKey.json kubeconfig.yaml rclone.conf \
             local_settings.py secrets.py credentials.py secrets.rb cookies.txt wallet.json private-key.txt \
             TOKEN.TXT Secrets.YAML passwords.md login.csv jwt.txt sftp-config.json secrets/db.yaml .yarnrc.yml \
             jenkins/credentials.xml .terraform/terraform.rc server.key tls.pem";
        for path in secret.split_whitespace() {
            assert!(is_secret(path), "{path}");
        }
        let open = "src/main.rs token.rs src/tokens.rs tokenizer.py secrets.rs passwords/mod.rs auth.ts auth/login.py \
             Password.java .env.example secrets.example.yml package.json tsconfig.json Cargo.toml keyboard.json \
             monkeys.txt README.md notes.md docs/tokens-and-keys.md pyproject.toml application.properties settings.py \
             settings.json config.yaml passage.txt compass.json authors.txt tokenization.md path.txt pattern.json \
             production.log password_reset.html oauth.go Dockerfile Makefile .gitignore environment.yml envelope.json";
        for path in open.split_whitespace() {
            assert!(!is_secret(path), "{path}");
        }
    }
}
