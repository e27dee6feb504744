//! Values from the environment: `CONTEXTURE_BUDGET` for the key `budget`.

use super::error::{ConfigError, clip};
use super::nearest::nearest;
use super::origin::SettingOrigin;
use super::row::{SettingRow, VARIABLE_PREFIX};
use super::setting::{Setting, SettingOfSource};

/// The variable that names a file which is used instead of the project's.
pub const FILE_VARIABLE: &str = "CONTEXTURE_CONFIG";

/// The variable by which an agent, and what it starts, is told the address of its gateway. It sets no key.
pub const GATEWAY_VARIABLE: &str = "CONTEXTURE_GATEWAY";

/// Reads the variables that belong to keys. An empty variable counts as not set, as shells have no other way to unset
/// one for a single command.
pub(super) fn read(
    rows: &[&'static SettingRow],
    variables: &[(String, String)],
) -> Result<Vec<SettingOfSource>, ConfigError> {
    let mut given = Vec::new();
    for row in rows {
        let Some(name) = row.variable() else { continue };
        let Some((_, text)) = variables.iter().find(|(other, text)| *other == name && !text.is_empty()) else {
            continue;
        };
        let origin = SettingOrigin::Variable(name.clone());
        let value = match row.kind.read_text(text).map(|value| row.accept(value)) {
            Some(Ok(value)) => value,
            refused => {
                let problem = match refused {
                    Some(Err(problem)) => format!("`{}` {problem}", row.name),
                    _ if row.kind.is_secret() => format!("`{}` must be {}", row.name, row.kind.wanted()),
                    _ => format!("`{}` is `{}`, but must be {}", row.name, clip(text), row.kind.wanted()),
                };
                return Err(ConfigError::new(&origin, &problem, hint(row, &name, text)));
            }
        };
        given.push(SettingOfSource { row, setting: Setting { value, origin } });
    }
    Ok(given)
}

/// The variables of this program that set no key.
const OTHERS: [&str; 2] = [FILE_VARIABLE, GATEWAY_VARIABLE];

/// The variables that look as if they set a key and do not, each with the variable that was probably meant.
pub(super) fn unknown(rows: &[&'static SettingRow], variables: &[(String, String)]) -> Vec<(String, Option<String>)> {
    let known: Vec<String> = rows.iter().filter_map(|row| row.variable()).chain(OTHERS.map(str::to_owned)).collect();
    let names = variables.iter().map(|(name, _)| name);
    let names = names.filter(|name| name.starts_with(VARIABLE_PREFIX) && !known.contains(name));
    // Only what follows the prefix is compared, so that its length does not make everything look near.
    let suffix = |name: &str| name.strip_prefix(VARIABLE_PREFIX).unwrap_or(name).to_owned();
    let suffixes: Vec<String> = known.iter().map(|name| suffix(name)).collect();
    let meant = |name: &String| nearest(&suffix(name), suffixes.iter().map(String::as_str));
    let told = |name: &String| (name.clone(), meant(name).map(|meant| format!("{VARIABLE_PREFIX}{meant}")));
    let mut unknown: Vec<(String, Option<String>)> = names.map(told).collect();
    unknown.sort();
    unknown
}

fn hint(row: &SettingRow, name: &str, text: &str) -> String {
    match nearest(text, row.kind.choices().iter().map(|choice| choice.name)) {
        Some(choice) => format!("did you mean `{choice}`?"),
        None => format!("write it as `{name}={}`", row.example.trim_matches('"')),
    }
}
