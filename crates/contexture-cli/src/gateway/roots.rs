//! Certificates that a user trusts besides those of the system, as the variables of agents name them.

use std::fs;

use contexture_gateway::ExtraRoots;

/// The variable by which Node.js, and so most agents, is told of more certificates.
const OF_NODE: &str = "NODE_EXTRA_CA_CERTS";

/// The variable that names what replaces the certificates of the system. Who connects reads it by itself.
const OF_SYSTEM: &str = "SSL_CERT_FILE";

/// The certificates that variables name, and what is wrong with those that cannot be used, in sentences.
pub(super) fn extra_roots(variable: impl Fn(&str) -> Option<String>) -> (ExtraRoots, Vec<String>) {
    let named = |name: &str| variable(name).filter(|path| !path.trim().is_empty());
    let mut warnings = Vec::new();
    if let Some(path) = named(OF_SYSTEM)
        && let Err(why) = read(&path)
    {
        warnings.push(format!("`{OF_SYSTEM}` names `{path}`, which holds no certificates: {why}"));
    }
    let roots = named(OF_NODE).and_then(|path| match read(&path) {
        Ok(roots) => Some(roots),
        Err(why) => {
            // An agent goes on without them too.
            warnings.push(format!("`{OF_NODE}` names `{path}`, of which nothing is used: {why}"));
            None
        }
    });
    (roots.unwrap_or_default(), warnings)
}

fn read(path: &str) -> Result<ExtraRoots, String> {
    ExtraRoots::read(&fs::read(path).map_err(|error| error.to_string())?)
}
